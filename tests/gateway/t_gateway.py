#!/usr/bin/env python3
"""The gateway against a real store and a scripted model that lies. Ends with "N passed, N failed"."""
import glob
import json
import os
import signal
import socket
import sys
import threading
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from rig import *  # noqa: E402,F403

passed = failed = 0


def check(ok, what):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
        print("FAIL " + what, flush=True)


def same(got, want, what):
    check(got == want, "%s: expected %r, got %r" % (what, want, got))


class Trap:
    """A listener that must never see a connection."""

    def __init__(self):
        self.s = socket.socket()
        self.s.bind(("127.0.0.1", 0))
        self.s.listen(16)
        self.s.setblocking(False)
        self.port = self.s.getsockname()[1]

    def untouched(self):
        try:
            self.s.accept()
            return False
        except BlockingIOError:
            return True


REDIRECT_TRAP, PROXY_TRAP = Trap(), Trap()
LIES = {  # marker -> (answer, status, error code or None)
    "LIE-cut": ({"cut": 40}, 502, "invalid_model_response"),
    "LIE-slow": ({"byte_ms": 200}, 504, "model_timeout"),
    "LIE-late": ({"delay_ms": 20000}, 504, "model_timeout"),
    "LIE-hang": ({"hang": True}, 504, "model_timeout"),
    "LIE-endless": ({"endless": True}, 502, "model_response_too_large"),
    "LIE-oversize": ({"body_size": 1000001}, 502, "model_response_too_large"),
    "LIE-oversize-chunked": ({"body_size": 5000000, "chunked": True}, 502, "model_response_too_large"),
    "LIE-declared": ({"length": 1000001}, 502, "model_response_too_large"),
    "LIE-short-length": ({"length": 10, "body_size": 5000000}, 502, "invalid_model_response"),
    "LIE-long-length": ({"length": 999999, "cut": 100}, 502, "invalid_model_response"),
    "LIE-type": ({"type": "text/html", "body": "{}"}, 502, "invalid_model_response"),
    "LIE-no-type": ({"type": "", "body": "{}"}, 502, "invalid_model_response"),
    "LIE-no-json": ({"body": "hello"}, 502, "invalid_model_response"),
    "LIE-half-json": ({"body": "{\"a\":1"}, 502, "invalid_model_response"),
    "LIE-twice": ({"body": "{\"a\":1,\"a\":2}"}, 502, "invalid_model_response"),
    "LIE-deep": ({"body": "[" * 200000 + "]" * 200000}, 502, "invalid_model_response"),
    "LIE-empty": ({"body": ""}, 502, None),
    "LIE-gzip": ({"gzip": True}, 502, "invalid_model_response"),
    "LIE-garbage": ({"garbage": 4096}, 502, "invalid_model_response"),
    "LIE-close": ({"close": True}, 502, "model_unreachable"),
    "LIE-key": ({"body": json.dumps({"you sent": KEY})}, 502, "invalid_model_response"),
    "LIE-401": ({"status": 401, "body": json.dumps({"error": {"message": "bad key " + KEY}})}, 401, None),
    "LIE-429": ({"status": 429, "body": "{\"error\":{\"message\":\"slow down\"}}"}, 429, None),
    "LIE-500": ({"status": 500, "body": "{\"error\":{\"message\":\"oops\"}}"}, 500, None),
    "LIE-500-text": ({"status": 500, "type": "text/plain", "body": "oops"}, 502, "invalid_model_response"),
    "LIE-headers": ({"headers": {"x-secret": "1", "set-cookie": "a=b", "server": "evil"}}, 200, None),
    "LIE-max": ({"body_size": 999900}, 200, None),
    "LIE-chunked": ({"chunked": True}, 200, None),
}
for status in (301, 302, 303, 307, 308):
    LIES["LIE-%d" % status] = ({"status": status, "location": "http://127.0.0.1:%d/x" % REDIRECT_TRAP.port}, 502,
                               "model_redirect_refused")
SCENARIO = {"model": MODEL,
            "rules": [{"when": {"marker": m + "."}, "answer": a} for m, (a, _, _) in LIES.items()] +
                     [{"when": {"marker": "WAIT"}, "answer": {"delay_ms": 300, "content": "ok"}},
                      {"when": {"marker": "LONG"}, "answer": {"delay_ms": 2000, "content": "ok"}},
                      {"answer": {"content": "hi", "usage": {"prompt": 7, "completion": 3}}}]}
BASE = {"model": MODEL, "messages": [{"role": "user", "content": "x"}]}


def asked(model, run_text):
    return sum(1 for r in model.requests() if run_text in r["body"])


def test_call(rig, model):
    run = rig.run(3)
    a = run.chat("plain call of " + run.id)
    same(a.status, 200, "a plain call")
    same(a.json["choices"][0]["message"]["content"], "hi", "its answer")
    same(sorted(a.headers), sorted(["content-type", "cache-control", "x-content-type-options", "x-request-id",
                                    "content-length", "date", "connection"]) if "connection" in a.headers else
         sorted(["content-type", "cache-control", "x-content-type-options", "x-request-id", "content-length", "date"]),
         "only listed headers")
    shown = run.shown()
    same((shown["used"], shown["prompt"], shown["completion"]), (1, 7, 3), "budget and usage")
    sent = [r for r in model.requests() if run.id in r["body"]][0]
    body = json.loads(sent["body"])
    same(body, {"model": MODEL, "messages": [{"role": "user", "content": "plain call of " + run.id}], "stream": False,
                "max_tokens": 4096}, "what is sent upstream is rebuilt")
    check(sent["key_match"], "the provider's key is attached")
    check("proxy" not in sent["headers"] and "x-agent" not in sent["headers"], "no header of the caller goes upstream")
    same(sent["path"], "/v1/chat/completions", "the operator's address")
    a = run.chat("tools", tools=[{"type": "function", "function": {"name": "f", "description": "d", "strict": True,
                                                                    "parameters": {"type": "object", "api_base": 1}}}])
    same(a.status, 200, "tools with a free schema")
    kinds = [k for _, k, _ in run.events()]
    same(kinds.count("model.called"), 2, "each call is an event")


def test_models(rig, model):
    run = rig.run(1)
    a = get(run.port, "/internal/v1/models", run.token())
    same((a.status, a.json), (200, {"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "pinfold"}]}),
         "models")
    same(get(run.port, "/internal/v1/models?x=%41", run.token()).status, 200, "a query is ignored")
    same(run.shown()["used"], 0, "models spends nothing")


def test_audiences(rig, model):
    run = rig.run(9)
    bodies = set()
    for route in ("model", "events", "approvals"):
        for audience in ("model", "events", "approvals"):
            token = run.token(audience)
            if route == "model":
                a = run.chat("matrix", token=token)
            elif route == "events":
                a = run.send_events([run.line()], token=token)
            else:
                a = get(run.port, run.path("approvals"), token)
            if route == audience:
                check(a.status in (200, 202), "%s token at %s: %d" % (audience, route, a.status))
            else:
                same((a.status, a.code), (401, "invalid_run_token"), "%s token at %s" % (audience, route))
                a.json.pop("requestId")
                bodies.add(json.dumps(a.json))
    same(len(bodies), 1, "every refusal says the same")
    same(run.shown()["used"], 1, "refusals spend nothing")


def test_other_run(rig, model):
    one, two = rig.run(5), rig.run(5)
    three = rig.run(5, tenant="other")
    for audience in ("model", "events", "approvals"):
        token = one.token(audience)
        for box in (two, three):
            if audience == "model":
                a = post(box.port, one.path(audience), token, BASE)
            elif audience == "events":
                a = post(box.port, one.path(audience), token, {"lines": [one.line()]})
            else:
                a = get(box.port, one.path(audience), token)
            same((a.status, a.code), (401, "invalid_run_token"), "%s token of one run in another's box" % audience)
    a = post(one.port, two.path("events"), one.token("events"), {"lines": [two.line()]})
    same((a.status, a.code), (401, "invalid_run_token"), "another run's id in the path")
    a = get(one.port, two.path("approvals"), one.token("approvals"))
    same((a.status, a.code), (401, "invalid_run_token"), "another run's id in the poll's path")
    for r in (one, two, three):
        same(r.shown()["used"], 0, "nothing spent")


def test_token_mutations(rig, model):
    run = rig.run(5)
    good = run.token()
    path = "/internal/v1/models"
    same(get(run.port, path, good).status, 200, "the token itself")
    bad = 0
    conn = None
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for i, c in enumerate(good):
        new = "A" if c == "." else alphabet[(alphabet.index(c) + 1) % 64]
        a = get(run.port, path, good[:i] + new + good[i + 1:])
        bad += (a.status, a.code) != (401, "invalid_run_token")
    same(bad, 0, "every one-character change is refused")
    first, mac = good.split(".")
    for name, t in {"padding": good + "=", "padding before": first + "=." + mac, "third part": good + ".x",
                    "empty third": good + ".", "no mac": first + ".", "no dot": first, "empty": ".", "blank": good + " x",
                    "standard alphabet": first + "." + mac.replace("-", "+").replace("_", "/") + "+",
                    "short mac": first + "." + b64url(b"\0" * 31), "long mac": first + "." + b64url(b"\0" * 33),
                    "long": good + "A" * 2000, "upper": good.upper()}.items():
        a = get(run.port, path, t)
        same((a.status, a.code), (401, "invalid_run_token"), "token: " + name)
    check(get(run.port, path, "A" * 1000000).status in (0, 400, 401, 413, 431), "a token of 1 MB")
    claims = claims_of(good)

    def changed(**more):
        c = dict(claims, **more)
        return json.dumps({k: v for k, v in c.items() if v is not None}, separators=(",", ":"))

    for name, text in {"v 2": changed(v=2), "v text": changed(v="1"), "extra claim": changed(admin=True),
                       "no kid": changed(kid=None), "aud suffix": changed(aud=claims["aud"] + "/"),
                       "aud case": changed(aud=claims["aud"].upper()), "aud array": changed(aud=[claims["aud"]]),
                       "exp text": changed(exp=str(claims["exp"])), "exp negative": changed(exp=-1),
                       "exp float": changed(exp=float(claims["exp"])),
                       "exp huge": changed().replace(str(claims["exp"]), "1e308"),
                       "run other": changed(runId="x"), "tenant other": changed(tenant="other"),
                       "twice": changed()[:-1] + ",\"v\":1}", "blank": changed().replace(",", ", "),
                       "not an object": "[1]", "order": json.dumps(dict(reversed(claims.items())), separators=(",", ":")),
                       "empty": "", "nested": "[" * 300}.items():
        a = get(run.port, path, sign(text))
        check(a.status == 401 and a.code in ("invalid_run_token", "expired_run_token"),
              "signed but wrong, %s: %s %s" % (name, a.status, a.code))
    for name, delta_iat, delta_exp in (("future", 60, 60), ("long life", 0, 1), ("short life", 0, -1)):
        a = get(run.port, path, sign(changed(iat=claims["iat"] + delta_iat, exp=claims["exp"] + delta_exp)))
        same((a.status, a.code), (401, "expired_run_token"), "token time: " + name)
    same(get(run.port, path, run.token(ago=301)).code, "expired_run_token", "an old token")
    same(get(run.port, path, sign(changed(), "x" * 40)).code, "invalid_run_token", "another secret")
    same(get(run.port, path, sign(changed())).status, 200, "our own signing is right")
    same(get(run.port, path, None).code, "invalid_run_token", "no token")
    same(run.shown()["used"], 0, "nothing spent")


def test_next_secret(rig, model):
    run = rig.run(5)
    claims = claims_of(run.token())
    kid = json.loads(os.environ.get("PINFOLD_TEST_NEXT_KID", "null"))
    a = get(run.port, "/internal/v1/models", sign(json.dumps(claims, separators=(",", ":")), NEXT_SECRET))
    check(a.status in (200, 401) and (a.status == 200 or kid is None), "a token of the next secret: %d" % a.status)


def test_race(rig, model):
    run = rig.run(4)
    token = run.token()
    text = "WAIT race " + run.id
    got = []

    def one():
        a = run.chat(text, token=token)
        got.append((a.status, a.code))

    threads = [threading.Thread(target=one) for _ in range(32)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    same(sum(1 for s, _ in got if s == 200), 4, "calls of 32 at once that were answered")
    same(sum(1 for g in got if g == (429, "model_request_budget_exhausted")), 28, "calls refused")
    same(asked(model, text), 4, "requests the model saw")
    same(run.shown()["used"], 4, "the counter")
    same(run.send_events([run.line()]).status, 202, "events do not need budget")
    same(get(run.port, run.path("approvals"), run.token("approvals")).status, 202, "nor does the poll")


def test_killed_gateway(rig, model):
    run = rig.run(4)
    token = run.token()
    text = "WAIT killed " + run.id
    threads = [threading.Thread(target=lambda: run.chat(text, token=token)) for _ in range(8)]
    [t.start() for t in threads]
    while asked(model, text) == 0:
        time.sleep(0.01)
    rig.restart()
    [t.join() for t in threads]
    for _ in range(6):
        run.chat(text, token=token)
    same(run.chat(text).code, "model_request_budget_exhausted", "a killed gateway gives nothing back")
    check(asked(model, text) <= 4, "the model saw at most 4")
    same(run.shown()["used"], 4, "the counter after a kill")


def test_client_leaves(rig, model):
    run = rig.run(3)
    text = "WAIT leaves " + run.id
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": text}]}).encode()
    for _ in range(10):
        s = socket.create_connection(("127.0.0.1", run.port))
        s.sendall(request("POST", run.path("model"), run.token(), body))
        s.close()
    deadline = time.time() + 20
    while run.shown()["used"] < 3 and time.time() < deadline:
        time.sleep(0.02)
    same(run.chat(text).code, "model_request_budget_exhausted", "leaving early is no refund")
    check(asked(model, text) <= 3, "the model saw at most 3")


def test_bad_bodies(rig, model):
    run = rig.run(5)
    before = len(model.requests())
    msg = {"role": "user", "content": "x"}
    tool = {"type": "function", "function": {"name": "f"}}
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    cases = [
        (b"", "invalid_json", None), (b"{", "invalid_json", None), (b"{}{}", "invalid_json", None),
        (b"{\"model\":\"a\",\"model\":\"a\"}", "invalid_json", None), (b"\xff", "invalid_json", None),
        (b"{\"a\":\"\\ud800\"}", "invalid_json", None), (b"{\"a\":\"\xed\xa0\x80\"}", "invalid_json", None),
        (b"{\"a\":\"\xc0\xaf\"}", "invalid_json", None), (b"{}\0", "invalid_json", None),
        (b"[" * 100000 + b"]" * 100000, "invalid_json", None), (b"[" * 65 + b"]" * 65, "invalid_json", None),
        (b"[]", "invalid_model_request", None), (b"1", "invalid_model_request", None),
        ({}, "model_not_allowed", "model"), (dict(BASE, model="other"), "model_not_allowed", "model"),
        (dict(BASE, model=1), "model_not_allowed", "model"), ({"model": MODEL}, "invalid_messages", "messages"),
        (dict(BASE, messages=[]), "invalid_messages", "messages"),
        (dict(BASE, messages=[msg] * 65), "invalid_messages", "messages"),
        (dict(BASE, messages=[1]), "invalid_messages", "messages[0]"),
        (dict(BASE, messages=[{"content": "x"}]), "invalid_messages", "messages[0].role"),
        (dict(BASE, messages=[msg, {"role": 1}]), "invalid_messages", "messages[1].role"),
        (dict(BASE, messages=[dict(msg, content=1)]), "invalid_messages", "messages[0].content"),
        (dict(BASE, messages=[dict(msg, content=[{"type": "image_url", "text": "x"}])]), "invalid_messages",
         "messages[0].content[0].type"),
        (dict(BASE, messages=[dict(msg, content=[{"type": "text"}])]), "invalid_messages", "messages[0].content[0].text"),
        (dict(BASE, messages=[dict(msg, tool_calls=[dict(call, type="x")])]), "invalid_messages",
         "messages[0].tool_calls[0].type"),
        (dict(BASE, messages=[dict(msg, tool_calls=[{"id": "1", "type": "function", "function": {"name": "f"}}])]),
         "invalid_messages", "messages[0].tool_calls[0].function.arguments"),
        (dict(BASE, tools={}), "invalid_tools", "tools"), (dict(BASE, tools=[tool] * 17), "invalid_tools", "tools"),
        (dict(BASE, tools=[1]), "invalid_tools", "tools[0]"),
        (dict(BASE, tools=[{"type": "web_search"}]), "invalid_tools", "tools[0].type"),
        (dict(BASE, tools=[{"type": "function", "function": {"name": "f", "parameters": 1}}]), "invalid_tools",
         "tools[0].function.parameters"),
    ]
    extra = {"n": 128, "max_completion_tokens": 1000000, "max_tokens": 4097, "service_tier": "x", "stream": True,
             "stream_options": {}, "logprobs": True, "metadata": {"api_base": "x"}, "temperature": 0}
    for key, value in extra.items():
        cases.append((dict(BASE, **{key: value}), "unknown_field", key))
    for key in ("api_base", "base_url", "api_key", "extra_headers", "extra_body", "user_config"):
        cases += [
            (dict(BASE, **{key: "http://127.0.0.1:1"}), "unknown_field", key),
            (dict(BASE, messages=[dict(msg, **{key: "x"})]), "unknown_field", "messages[0]." + key),
            (dict(BASE, messages=[dict(msg, content=[{"type": "text", "text": "x", key: "x"}])]), "unknown_field",
             "messages[0].content[0]." + key),
            (dict(BASE, messages=[dict(msg, tool_calls=[dict(call, **{key: 1})])]), "unknown_field",
             "messages[0].tool_calls[0]." + key),
            (dict(BASE, messages=[dict(msg, tool_calls=[dict(call, function=dict(call["function"], **{key: 1}))])]),
             "unknown_field", "messages[0].tool_calls[0].function." + key),
            (dict(BASE, tools=[dict(tool, **{key: 1})]), "unknown_field", "tools[0]." + key),
            (dict(BASE, tools=[{"type": "function", "function": {"name": "f", key: 1}}]), "unknown_field",
             "tools[0].function." + key),
        ]
    for body, code, field in cases:
        a = post(run.port, run.path("model"), run.token(), body)
        same((a.status, a.code), (400, code), "body %.80r" % (body,))
        if field:
            same(a.field, field, "field of %.80r" % (body,))
    same(run.shown()["used"], 0, "bad bodies spend nothing")
    same(len(model.requests()), before, "bad bodies contact nobody")


def test_order(rig, model):
    run = rig.run(5)
    big = b"{" + b" " * 300000
    chat = run.path("model")
    for what, a, status, code in [
        ("unknown path", get(run.port, "/internal/v1/nothing", None), 404, "not_found"),
        ("unknown path with a body", post(run.port, "/v1/runs", None, big), 404, "not_found"),
        ("method", get(run.port, chat, None), 405, "method_not_allowed"),
        ("token before type", post(run.port, chat, None, b"x", kind="text/plain"), 401, "invalid_run_token"),
        ("token before size", post(run.port, chat, None, big), 401, "invalid_run_token"),
        ("type before size", post(run.port, chat, run.token(), big, kind="text/plain"), 415, "json_required"),
        ("no type", post(run.port, chat, run.token(), b"{}", kind=None), 415, "json_required"),
        ("type with a charset", post(run.port, chat, run.token(), BASE, kind="application/json; charset=utf-8"), 200, None),
        ("size before JSON", post(run.port, chat, run.token(), big), 413, "request_too_large"),
        ("coding", post(run.port, chat, run.token(), BASE, ["Content-Encoding: gzip"]), 415, "unsupported_encoding"),
    ]:
        same((a.status, a.code), (status, code), what)
    a = get(run.port, chat, None)
    same(a.headers.get("allow"), "POST", "Allow")
    chunked = b"".join(b"4000\r\n" + b" " * 0x4000 + b"\r\n" for _ in range(20)) + b"0\r\n\r\n"
    a = raw_call(run.port, request("POST", chat, run.token(), headers=["Transfer-Encoding: chunked"], length=False) + chunked)
    same((a.status, a.code), (413, "request_too_large"), "size counted while read")
    text = json.dumps(BASE).encode()
    a = raw_call(run.port, request("POST", chat, run.token(), headers=["Transfer-Encoding: chunked"], length=False) +
                 b"%x\r\n%s\r\n0\r\n\r\n" % (len(text), text))
    same(a.status, 200, "a small chunked body")
    exact = json.dumps(dict(BASE, messages=[{"role": "user", "content": ""}]))
    pad = 256000 - len(exact)
    a = run.chat("y" * pad)
    same(a.status, 200, "a body of exactly 256,000 bytes")
    same(run.chat("y" * (pad + 1)).code, "request_too_large", "one byte more")
    same(run.shown()["used"], 3, "only good bodies spend")


def test_hostile_http(rig, model):
    run = rig.run(5)
    chat, token = run.path("model"), run.token()
    text = json.dumps(BASE).encode()
    for what, data in {
        "both lengths": request("POST", chat, token, text, ["Transfer-Encoding: chunked"]),
        "two lengths": request("POST", chat, token, text, ["Content-Length: 1"]),
        "negative length": request("POST", chat, token, text, ["Content-Length: -1"], length=False),
        "length 1e3": request("POST", chat, token, text, ["Content-Length: 1e3"], length=False),
        "length +5": request("POST", chat, token, text, ["Content-Length: +5"], length=False),
        "huge length": request("POST", chat, token, text, ["Content-Length: 99999999999999999999"], length=False),
        "two tokens": request("POST", chat, token, text, ["Authorization: Bearer " + token]),
        "two types": request("POST", chat, token, text, ["Content-Type: text/plain"]),
        "absolute form": request("POST", "http://127.0.0.1:9797" + chat, token, text),
        "other coding": request("POST", chat, token, text, ["Transfer-Encoding: gzip"], length=False),
        "connect": b"CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\nAuthorization: Bearer " + token.encode() + b"\r\n\r\n",
        "no http": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 600,
        "a body on GET": request("GET", "/internal/v1/models", token, b"x" * 10),
    }.items():
        a = raw_call(run.port, data)
        check(a.status in (0, 400, 411, 413, 501), "%s: %d %s" % (what, a.status, a.code))
    for path in ("/internal/v1/models/", "//internal/v1/models", "/internal/v1/./models", "/internal/v1/../v1/models",
                 "/internal/v1/model%73", "/INTERNAL/v1/models", "/internal/v1/models%00", "/" + "a" * 3000, "/", "/%2e%2e"):
        same(get(run.port, path, token).status, 404, "path %.40s" % path)
    same(run.shown()["used"], 0, "none of them spends")
    s = socket.create_connection(("127.0.0.1", run.port))
    first = raw_call(run.port, request("POST", chat, token, text), s)
    second = raw_call(run.port, request("POST", chat, token, text), s)
    s.close()
    same((first.status, second.status), (200, 200), "two calls on one connection")
    for _ in range(100):
        s = socket.create_connection(("127.0.0.1", run.port))
        s.sendall(request("POST", chat, token, text)[:-5])
        s.close()
    same(run.shown()["used"], 2, "aborted bodies spend nothing")


def test_lies(rig, model):
    for marker, (_, status, code) in LIES.items():
        run = rig.run(2)
        text = "%s. %s" % (marker, run.id)
        a = run.chat(text)
        same((a.status, a.code if code else None), (status, code), marker)
        same(asked(model, text), 1, marker + ": asked once")
        same(run.shown()["used"], 1, marker + ": one unit")
        check(set(a.headers) <= {"content-type", "cache-control", "x-content-type-options", "x-request-id",
                                 "content-length", "date", "connection"}, marker + ": headers %s" % sorted(a.headers))
        check(KEY.encode() not in a.raw, marker + ": the key comes back")
        called = [d for _, k, d in run.events() if k == "model.called"]
        same(len(called), 1, marker + ": one model.called")
        same(run.chat("after").status, 200, marker + ": the next call")
    check(REDIRECT_TRAP.untouched(), "a redirect was followed")


def test_dead_kept_connection(rig, model):
    """A kept connection that dies under a request: the request is not sent twice."""
    run = rig.run(6)
    same(run.chat("warm").status, 200, "warm")
    text = "LIE-close. kept " + run.id
    run.chat(text)
    same(asked(model, text), 1, "asked once")


def test_providers(rig, model):
    for profile, name, status, code in (("wrong-name", "m-wrong-name", 502, "model_unreachable"),
                                        ("no-ca", "m-no-ca", 502, "model_unreachable"),
                                        ("refused", "m-refused", 502, "model_unreachable"),
                                        ("no-host", "m-no-host", 502, "model_unreachable"),
                                        ("no-key", "m-no-key", 503, "provider_not_configured"),
                                        ("plain-far", "m-plain-far", 503, "provider_not_configured"),
                                        ("plain-denied", "m-plain-denied", 503, "provider_not_configured"),
                                        ("userinfo", "m-userinfo", 503, "provider_not_configured"),
                                        ("query", "m-query", 503, "provider_not_configured"),
                                        ("plain", "m-plain", 200, None)):
        run = rig.run(2, profile=profile, model=name)
        a = run.chat("provider " + profile)
        same((a.status, a.code), (status, code), "provider " + profile)
        if status == 503:
            same(run.shown()["used"], 0, profile + ": nothing spent")
    run = rig.run(2, profile="twin")  # the same model name at a second profile
    same(run.chat("twin").status, 200, "a second profile of one model")
    same(run.shown()["used"], 1, "its capability")
    same(sum(1 for r in model.requests() if "provider " in r["body"]), 0, "none of those reached the model")


def test_revoked(rig, model):
    run = rig.run(9)
    token = run.token()
    s = socket.create_connection(("127.0.0.1", run.port))
    body = json.dumps(BASE).encode()
    same(raw_call(0, request("POST", run.path("model"), token, body), s).status, 200, "before")
    rig.tell("revoke", run.tenant, run.id)
    a = raw_call(0, request("POST", run.path("model"), token, body), s)
    same((a.status, a.code), (401, "inactive_run_token"), "the very next call")
    s.close()
    same(get(run.port, "/internal/v1/models", token).code, "inactive_run_token", "models")
    same(run.send_events([run.line()]).code, "inactive_run_token", "events")
    a = get(run.port, run.path("approvals"), run.token("approvals"))
    same((a.status, a.code), (404, "approval_not_found"), "the poll")
    short = rig.run(9, life_ms=1)
    time.sleep(0.05)
    same(short.chat().code, "inactive_run_token", "an expired capability")


def test_events(rig, model):
    run = rig.run(2)
    a = run.send_events([run.line(sequence=5, data={"a": "b", "agent_sequence": 99}), run.line("run.completed", 6),
                         run.line("approval.resolved", 7), run.line("check.done", 8), run.line("model.called", 9),
                         run.line("events.x", 10), run.line("runner", 11)])
    same((a.status, a.json["accepted"]), (202, 7), "a batch")
    events = [e for e in run.events() if "agent_sequence" in e[2]]
    same([k for _, k, _ in events], ["tool.used", "agent.run.completed", "agent.approval.resolved", "agent.check.done",
                                    "agent.model.called", "agent.events.x", "runner"], "reserved types are renamed")
    same(events[0][2], {"agent_sequence": 5, "a": "b"}, "data and the agent's own number")
    same(a.json["lastSequence"], events[-1][0], "lastSequence")
    nasty = "a\x1b[31mred\x1b[0m\u202eb\x00c\u2028d"
    a = run.send_events([run.line(sequence=1, data={"t": nasty.replace("\x00", ""), "deep": {"x": ["\x1b]0;t\x07"]},
                                                    "\x1b[2J": 1, "long": "z" * 40000})])
    same(a.status, 202, "text that has to be cleaned")
    data = run.events()[-1][2]
    check("\x1b" not in json.dumps(data, ensure_ascii=False), "escape codes are gone")
    check("\u202e" not in data["t"], "no direction override")
    check(len(data["long"].encode()) <= 16000, "long text is cut")
    check(not any("\x1b" in k for k in data), "keys are clean")
    count = len(run.events())
    good = run.line()
    long_type = "a" * 65
    for what, lines in {
        "no lines": [], "too many": [good] * 129, "number": [1], "empty": [""], "one char": ["\n"], "no newline": [good[:-1]],
        "two newlines": [good + "\n"], "inner newline": [good + good], "not JSON": ["{]\n"], "array": ["[]\n"],
        "no type": [json.dumps({"run_id": "r", "task_id": run.id, "sequence": 1}) + "\n"],
        "empty type": [run.line("")], "upper type": [run.line("Tool")], "type with a dash": [run.line("a-b")],
        "long type": [run.line(long_type)], "number type": [run.line(5)], "empty run_id": [run.line(run_id="")],
        "number run_id": [run.line(run_id=1)], "other task": [run.line(task_id="other")], "number task": [run.line(task_id=1)],
        "negative": [run.line(sequence=-1)], "text sequence": [run.line(sequence="1")], "float": [run.line(sequence=1.0)],
        "huge": [run.line().replace("\"sequence\": 1", "\"sequence\": 1e400")], "data array": [run.line(data=[])],
        "data null": [run.line(data=None)], "bad second": [good, "x\n"], "nested": ["[" * 5000 + "\n"],
        "twice": [good.replace("{", "{\"sequence\":1,", 1)], "too long": [run.line(data={"x": "y" * 64000})],
        "nul": ["\0\0\n"], "nul inside": [good[:-2] + "\0}\n"],
    }.items():
        a = run.send_events(lines)
        same((a.status, a.code), (400, "invalid_event_append"), "events: " + what)
        if what == "bad second":
            same(a.field, "lines[1]", "the line at fault")
    same(post(run.port, run.path("events"), run.token("events"), {"lines": [good], "x": 1}).code, "unknown_field", "a key more")
    same(post(run.port, run.path("events"), run.token("events"), b"{").code, "invalid_json", "no JSON")
    same(post(run.port, run.path("events"), run.token("events"), b" " * 128001).code, "request_too_large", "128,001 bytes")
    same(len(run.events()), count, "a refused batch stores nothing")
    same(run.send_events([run.line(data={"\ud83d\ude00": "\U0001f600"}, extra=1)]).status, 202, "other planes, other keys")
    same(run.shown()["used"], 0, "events spend nothing")


def test_approvals(rig, model):
    run = rig.run(2)
    ask = {"request_id": "ask-1", "action_id": "a", "effect": "execute", "reason": "model_tool", "preview": "rm -rf /"}
    a = run.send_events([run.line("note"), run.line("approval.requested", 2, data=ask),
                         run.line("approval.requested", 3, data={"request_id": "../x"}), run.line("approval.requested", 4)])
    same((a.status, a.json.get("accepted")), (202, 2), "a question, and two that are none")
    a = get(run.port, run.path("approvals"), run.token("approvals"))
    check(a.status in (200, 202), "its poll: %d" % a.status)
    if a.status == 200 and a.json["status"] == "decided":
        check(a.json["decision"] in ("deny", "cancel", "allow_once", "allow_session"), "a decision")
        check(len(a.json["digest"]) == 64 and a.json["decidedAt"] > 0, "digest and time")
    for path in ("/internal/v1/runs/%s/approvals/.x" % run.id, "/internal/v1/runs/%s/approvals/a%%2fb" % run.id):
        same(get(run.port, path, run.token("approvals")).status, 404, "a bad request id")
    same(run.shown()["used"], 0, "approvals spend nothing")


def test_close(rig, model):
    run = rig.run(3)
    got = []
    t = threading.Thread(target=lambda: got.append(run.chat("LONG close " + run.id)))
    t.start()
    while asked(model, "LONG close " + run.id) == 0:
        time.sleep(0.01)
    rig.tell("close", run.id)
    t.join()
    check(got and got[0].status in (0, 502), "a call in flight ends with its box")
    deadline = time.time() + 20
    gone = False
    while time.time() < deadline and not gone:
        try:
            s = socket.create_connection(("127.0.0.1", run.port), timeout=1)
            s.settimeout(1)
            s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            gone = not s.recv(1)
            s.close()
        except OSError:
            gone = True
    check(gone, "a closed box is served no more")


def test_finished(rig, model):
    run = rig.run(3)
    token, events = run.token(), run.token("events")
    rig.tell("revoke", run.tenant, run.id)
    rig.tell("finish", run.tenant, run.id)
    same(run.chat(token=token).status, 401, "a model call after the end")
    check(run.send_events([run.line()], token=events).status in (401, 409), "events after the end")
    same(get(run.port, run.path("approvals"), run.token("approvals")).status, 404, "a poll after the end")


def test_flood(rig, model):
    """10,000 broken bodies, slow bodies, many connections: the same process goes on."""
    run = rig.run(2)
    pid = rig.pid
    status = lambda: [int(l.split()[1]) for l in open("/proc/%d/status" % pid) if l.startswith("VmRSS")][0]
    token = run.token()
    s = socket.create_connection(("127.0.0.1", run.port))
    def many(n):
        bad = 0
        for _ in range(n):
            bad += raw_call(0, request("POST", run.path("model"), token, b"{\"model\":[1,{\"a\":"), s).status != 400
        return bad
    bad = many(1000)
    before = status()
    bad += many(5000)
    same(bad, 0, "6,000 broken bodies")
    check(status() - before < 1000, "memory grew by %d kB" % (status() - before))
    held = [socket.create_connection(("127.0.0.1", run.port)) for _ in range(200)]
    other = rig.run(2)
    same(other.chat("flood").status, 200, "another box is served while one floods")
    [h.close() for h in held]
    s.close()
    same(run.chat("after the flood").status, 200, "and the first again")
    check(os.path.exists("/proc/%d" % pid), "the same process")


def test_no_trace(rig, model):
    check(PROXY_TRAP.untouched(), "a proxy of the environment or of a header was used")
    key = KEY.encode()
    check(not any(key in s for s in SEEN), "the key was sent to a box")
    for path in glob.glob(rig.folder + "/**", recursive=True):
        if os.path.isfile(path) and ".scenario." not in path:
            with open(path, "rb") as f:
                check(key not in f.read(), "the key is in " + os.path.basename(path))
    for name in ("cmdline", "environ"):
        with open("/proc/%d/%s" % (rig.pid, name), "rb") as f:
            check(key not in f.read(), "the key is in " + name)
    log = open(rig.folder + "/pinfold-gateway.log").read()
    check("Bearer" not in log and RUN_SECRET not in log, "the log holds a token")


def start_fails(folder, secrets):
    os.mkdir(folder)
    rig = Rig(folder)
    try:
        rig.tell("provider", "p", "https://127.0.0.1:1/v1", "-", "-", "0")
        rig.tell("profile", "main", "p", MODEL)
        for name, value in secrets:
            rig.tell("secret", name, value)
        try:
            rig.tell("start", folder, BUILD)
            return False
        except RuntimeError as e:
            return "no_hello" in str(e)
    finally:
        rig.stop()


def main():
    if os.geteuid() != 0:
        print("needs root: the store tells roles by uid")
        return 77
    top = folder()
    env = {}
    for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        env[name] = "http://127.0.0.1:%d" % PROXY_TRAP.port
    model = Model(top, "main", SCENARIO, "--expect-key-env", "EXPECTED_KEY")
    wrong = Model(top, "wrong", SCENARIO, "--cert-name", "wrong.invalid")
    plain = Model(top, "plain", SCENARIO, tls=False)
    closed = Trap()
    closed.s.close()
    rig = Rig(top, env)
    try:
        rig.tell("secret", "run-token", RUN_SECRET)
        rig.tell("secret", "run-token.next", NEXT_SECRET)
        rig.tell("secret", "key", KEY)
        rig.tell("timeout", 3000)
        for name, url, ca, secret, flag, model_name in (
                ("main", model.url, model.ca, "key", 0, MODEL), ("twin", model.url, model.ca, "key", 0, MODEL),
                ("wrong-name", wrong.url, wrong.ca, "key", 0, None), ("no-ca", model.url, "-", "key", 0, None),
                ("refused", "https://127.0.0.1:%d/v1" % closed.port, model.ca, "key", 0, None),
                ("no-host", "https://nothing.invalid/v1", model.ca, "key", 0, None),
                ("no-key", model.url, model.ca, "missing", 0, None), ("plain", plain.url, "-", "-", 1, None),
                ("plain-denied", plain.url, "-", "-", 0, None), ("plain-far", "http://192.0.2.1/v1", "-", "-", 1, None),
                ("userinfo", "https://a:b@127.0.0.1:1/v1", "-", "-", 0, None),
                ("query", "https://127.0.0.1:1/v1?a=b", "-", "-", 0, None)):
            rig.tell("provider", "p-" + name, url, ca, secret, flag)
            rig.tell("profile", name, "p-" + name, model_name or "m-" + name)
        rig.start()
        only = sys.argv[1:]
        for name, test in list(globals().items()):
            if name.startswith("test_") and name != "test_no_trace" and (not only or name in only):
                try:
                    test(rig, model)
                except Exception:
                    traceback.print_exc()
                    check(False, name + " broke off")
        test_no_trace(rig, model)
        check(start_fails(top + "/short", [("run-token", "x" * 31)]), "a secret of 31 bytes is refused")
        check(start_fails(top + "/none", [("key", KEY)]), "no run secret is refused")
        rig.stop()
        deadline = time.time() + 5
        while os.path.exists("/proc/%d" % rig.pid) and time.time() < deadline:
            time.sleep(0.01)
        check(not os.path.exists("/proc/%d" % rig.pid), "the gateway ends with its parent")
    finally:
        for m in (model, wrong, plain):
            m.stop()
        if failed:
            print("".join(open(top + "/pinfold-gateway.log").readlines()[-20:]))
        remove(top)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


sys.exit(main())
