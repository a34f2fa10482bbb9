"""Cases about the model route: budget, bodies, providers that lie."""
import json
import os
import socket
import threading
import time

from cases_common import *  # noqa: F403
from rig import *  # noqa: F403


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
    wait_for(lambda: asked(model, text) > 0)
    rig.restart()
    [t.join() for t in threads]
    for _ in range(6):
        run.chat(text, token=token)
    same(run.chat(text).code, "model_request_budget_exhausted", "a killed gateway gives nothing back")
    check(asked(model, text) <= 4, "the model saw at most 4")
    same(run.shown()["used"], 4, "the counter after a kill")


def test_client_leaves(rig, model):
    run = rig.run(3)
    # Whoever leaves before it is known what his run may ask is asked for nothing: from here on it is known.
    same(get(run.port, "/internal/v1/models", run.token()).status, 200, "the box is served")
    text = "WAIT leaves " + run.id
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": text}]}).encode()
    for _ in range(10):
        s = socket.create_connection(("127.0.0.1", run.port))
        s.sendall(request("POST", run.path("model"), run.token(), body))
        s.close()
    wait_for(lambda: run.shown()["used"] >= 3)
    same(run.chat(text).code, "model_request_budget_exhausted", "leaving early is no refund")
    wait_for(lambda: sum(1 for _, k, _ in run.events() if k == "model.called") >= 3)
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
    for value in (4096, 4096.0, -1, "4096"):
        cases.append((dict(BASE, max_tokens=value), "unknown_field", "max_tokens"))
    cases.append((json.dumps(dict(BASE, max_tokens=0)).replace(": 0}", ": 1e400}").encode(), "unknown_field", "max_tokens"))
    for kind in ("web_search", "web_search_preview", "code_interpreter", "mcp"):
        cases.append((dict(BASE, tools=[{"type": kind}]), "invalid_tools", "tools[0].type"))
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
