"""Cases about what agents by others may ask: the wire formats, the policies, and a client that is curl with a token."""
import json
import os
import threading

from cases_common import *  # noqa: F403
from rig import *  # noqa: F403

# name -> (path, model profile, model, what a plain body says, status of a refusal that ends a run)
FORMATS = {
    "chat_completions": ("/internal/v1/chat/completions", "main", MODEL, 403),
    "responses": ("/internal/v1/responses", "main", MODEL, 400),
    "messages": ("/internal/v1/messages", "anth", "m-anth", 403),
    "count_tokens": ("/internal/v1/messages/count_tokens", "anth", "m-anth", 403),
    "gemini": ("/internal/v1beta/models/m-gem:generateContent", "gem", "m-gem", 403),
    "gemini_count": ("/internal/v1beta/models/m-gem:countTokens", "gem", "m-gem", 403),
}
# What a format's clients take for the end of it.
OTHER_MODEL = {"chat_completions": 404, "responses": 400, "messages": 403, "count_tokens": 403, "gemini": 404, "gemini_count": 404}
KEY_HEADERS = {"main": "authorization", "anth": "x-api-key", "gem": "x-goog-api-key"}


def body_of(name, model, text, **more):
    if name.startswith("gemini"):
        return dict({"contents": [{"role": "user", "parts": [{"text": text}]}]}, **more)
    says = {"input": text} if name == "responses" else {"messages": [{"role": "user", "content": text}]}
    return dict({"model": model}, **says, **more)


def in_words_of(name, a, what):
    """An error in the format's own shape."""
    e = a.json.get("error") if isinstance(a.json, dict) else None
    if name.startswith("gemini"):
        check(isinstance(e, dict) and e.get("code") == a.status and isinstance(e.get("status"), str) and isinstance(e.get("message"), str), what + ": the error is Google's")
        delays = [d["retryDelay"] for d in (e or {}).get("details", []) if d["@type"].endswith("RetryInfo")]
        same(delays, [a.headers["retry-after"] + "s"] if "retry-after" in a.headers else [], what + ": when to ask again")
        same(set(a.json), {"error"}, what + ": shape")
        return
    check(isinstance(e, dict) and isinstance(e.get("type"), str) and isinstance(e.get("message"), str), what + ": the error is an object")
    same(a.json.get("type"), "error" if FORMATS[name][1] == "anth" else None, what + ": shape")
    check("param" in (e or {}) or FORMATS[name][1] == "anth", what + ": param")
    same(a.headers.get("content-type"), "application/json", what + ": type")


def ends(name, a, code, what):
    same((a.status, a.code), (FORMATS[name][3], code), what)
    same((a.headers.get("x-should-retry"), a.headers.get("retry-after")), ("false", None), what + ": headers")
    in_words_of(name, a, what)


def passes(name, a, status, seconds, what):
    same((a.status, a.headers.get("retry-after"), a.headers.get("x-should-retry")), (status, str(seconds), None), what)
    check(a.headers.get("retry-after", "").isdigit(), what + ": whole seconds")


def test_formats(rig, model):
    """A plain call in each, as its clients make it."""
    for name, (path, profile, served, _) in FORMATS.items():
        run = rig.run(9, profile=profile, model=served, agent="open")
        token, text = run.token(), "plain %s %s" % (name, run.id)
        noise = ["x-codex-turn-metadata: {}", "x-stainless-os: Linux", "session_id: 1", "originator: codex", "cookie: a=b",
                 "anthropic-version: 2024-02-02", "anthropic-beta: files-api-2025-04-14,effort-2025-11-24"]
        a = post(run.port, path + "?beta=true", token, body_of(name, served, text, max_tokens=50, n=1), noise)
        same(a.status, 200, name)
        check(set(a.headers) <= {"content-type", "cache-control", "x-content-type-options", "x-request-id", "content-length", "date",
                                 "connection"}, name + ": headers %s" % sorted(a.headers))
        sent = [r for r in model.requests() if text in r["body"]]
        same(len(sent), 1, name + ": asked once")
        sent = sent[0]
        same(sent["path"], path.replace("/internal", ""), name + ": where")
        anthropic = profile == "anth"
        check(sent["key_match"] and set(KEY_HEADERS.values()) & set(sent["headers"]) == {KEY_HEADERS[profile]},
              name + ": the key is where the provider wants it")
        same((sent.get("version"), sent.get("beta")), ("2024-02-02", "effort-2025-11-24") if anthropic else (None, None), name + ": versions")
        check(not [h for h in sent["headers"] if h.startswith("x-codex") or h.startswith("x-stainless") or h in ("session_id", "originator", "cookie")],
              name + ": headers of the client go nowhere: %s" % sent["headers"])
        same(run.shown()["used"], 1, name + ": one unit")
        if name not in ("count_tokens", "gemini_count"):
            same((run.shown()["prompt"], run.shown()["completion"]), (7, 3), name + ": usage")
        # The token as x-api-key, as both, and as two that differ.
        plain = json.dumps(body_of(name, served, "keys")).encode()
        keys = ["x-api-key: " + token, "x-goog-api-key: " + token]
        for key in keys:
            same(post(run.port, path, None, plain, [key]).status, 200, name + ": as " + key[:14])
        same(post(run.port, path, token, plain, keys).status, 200, name + ": as all")
        for who, more in ((token, [keys[0] + "x"]), (token, [keys[1] + "x"]), (None, [keys[0], keys[1] + "x"]), (None, [keys[0] + "x", keys[1]])):
            a = post(run.port, path, who, plain, more)
            same((a.status, a.code), (401, "invalid_run_token"), name + ": two that differ")
            in_words_of(name, a, name + ": two that differ")
        same(post(run.port, path, None, plain, ["x-api-key: nothing"]).status, 401, name + ": another key")
    run = rig.run(2, agent="open")
    a = get(run.port, "/internal/v1/models?client_version=1", None, ["x-api-key: " + run.token()])
    same((a.status, [m["id"] for m in a.json["data"]], a.json["has_more"]), (200, [MODEL], False), "models")
    same(raw_call(run.port, request("HEAD", "/", run.token())).status, 404, "HEAD /")
    run = rig.run(2, profile="gem", model="m-gem", agent="open")
    a = get(run.port, "/internal/v1beta/models?pageSize=1", None, ["x-goog-api-key: " + run.token()])
    same((a.status, [m["name"] for m in a.json["models"]]), (200, ["models/m-gem"]), "models, as Gemini lists them")
    a = get(run.port, "/internal/v1beta/models/m-gem", run.token())
    same((a.status, a.json["name"], a.json["outputTokenLimit"]), (200, "models/m-gem", 1000), "the one")
    for path, status in (("m-other", 404), ("m-gem:generateContent", 404), ("m-gem/x", 404), (":x", 404), ("m%2Dgem", 404)):
        same(get(run.port, "/internal/v1beta/models/" + path, run.token()).status, status, "no model: " + path)
    for path, status in (("m-gem:embedContent", 405), ("m-gem:batchGenerateContent", 405), (":generateContent", 405), ("a:b:generateContent", 404)):
        same(post(run.port, "/internal/v1beta/models/" + path, run.token(), body_of("gemini", "", "x")).status, status, "no verb: " + path)
    for query in ("", "?alt=json", "?alt=sse&alt=json", "?alt=sse&$alt=json", "?xalt=sse", "?alt=sse1", "?alt=sse&alt=sse", "?"):
        a = post(run.port, "/internal/v1beta/models/m-gem:streamGenerateContent" + query, run.token(), body_of("gemini", "", "x"))
        same((a.status, a.code), (400, "model_stream_not_sse"), "a stream that is none: " + query)
        in_words_of("gemini", a, query)
    same(run.shown()["used"], 0, "none of it spent anything")
    for path in ("/api/hello", "/v1/models", "/internal/v1/files", "/internal/v1/responses/resp_1", "/internal/v1/embeddings"):
        a = get(run.port, path, run.token())
        same((a.status, a.code), (404, "not_found"), path)


def test_served(rig, model):
    """A profile names one format; a provider speaks its own; policy strict has chats alone."""
    for agent, profile, served, name, status in (
            ("only-responses", "main", MODEL, "responses", 200), ("only-responses", "main", MODEL, "chat_completions", 404),
            ("open", "main", MODEL, "messages", 404), ("open", "anth", "m-anth", "responses", 404),
            ("built-in", "main", MODEL, "responses", 404), ("built-in", "main", MODEL, "chat_completions", 200),
            ("built-in", "anth", "m-anth", "chat_completions", 404), ("built-in", "gem", "m-gem", "chat_completions", 404)):
        run = rig.run(2, profile=profile, model=served, agent=agent)
        a = post(run.port, FORMATS[name][0], run.token(), body_of(name, served, "served"))
        same((a.status, a.code if status == 404 else None), (status, "model_format_not_served" if status == 404 else None),
             "%s asks %s in %s" % (agent, profile, name))
        same(run.shown()["used"], 1 if status == 200 else 0, "what it spends")


def rows():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors", "policy.jsonl")) as f:
        return [json.loads(line) for line in f]


def test_evil(rig, model):
    """Everything of tests/vectors/policy.jsonl by a client that has the token: what is refused there spends nothing and
    reaches nobody, what is not reaches the provider."""
    before, count = len(model.requests()), 0
    runs, refused, taken = {}, 0, 0
    for row in rows():
        if "rules" in row:
            continue
        if row["format"] not in FORMATS:
            continue
        path, profile, served, _ = FORMATS[row["format"]]
        agent = "open" if row["policy"] == "agent" else "passing"
        if (agent, profile) not in runs:
            runs[agent, profile] = rig.run(400, profile=profile, model=served, agent=agent)
            runs[agent, profile].asked = 0
        run = runs[agent, profile]
        body = dict(row["body"]) if isinstance(row["body"], dict) else row["body"]
        if isinstance(body, dict) and body.get("model") == "alias":
            body["model"] = served
        if isinstance(body, dict) and body.get("stream") is True:
            continue
        a = post(run.port, path, run.token(), body)
        count += 1
        if "error" in row:
            refused += 1
            same((a.status, a.code), (OTHER_MODEL[row["format"]] if row["error"] == "model_not_allowed" else 400, row["error"]), "%s: %s" % (row["name"], row["format"]))
            in_words_of(row["format"], a, row["name"])
        else:
            taken += 1
            run.asked += 1
            same(a.status, 200, "%s: %s %s" % (row["name"], row["format"], a.body[:200]))
    check(refused > 150 and taken > 30, "cases: %d refused, %d taken" % (refused, taken))
    for run in runs.values():
        same(run.shown()["used"], run.asked, "what is refused spends nothing")
    same(len(model.requests()) - before, taken, "what is refused reaches nobody")
    # What is wrong before anything is looked at.
    before = len(model.requests())
    for name, (path, profile, served, _) in FORMATS.items():
        run = rig.run(5, profile=profile, model=served, agent="open")
        plain = json.dumps(body_of(name, served, "x"))
        for what, data, status in (
                ("200 deep", plain[:-1] + ',"metadata":' + "[" * 200 + "]" * 200 + "}", 400),
                ("the same key twice", plain[:-1] + ',"model":"%s"}' % served, 400),
                ("the same key twice inside", plain.replace('"x"', '[{"type":"text","type":"text","text":"a"}]'), 400),
                ("half a surrogate", plain.replace('"x"', '"\\ud800"'), 400), ("NUL", plain.replace('"x"', '"\\u0000"'), 400),
                ("no JSON", "hello", 400), ("nothing", "", 400), ("a number", "1", 400),
                ("8 MB and one", plain[:-1] + " " * (8000001 - len(plain)) + "}", 413)):
            a = post(run.port, path, run.token(), data.encode())
            same(a.status, status, "%s: %s" % (name, what))
        a = post(run.port, path.replace("m-gem", "gpt-5.5"), run.token(), body_of(name, "gpt-5.5", "x"))
        same((a.status, a.code), (OTHER_MODEL[name], "model_not_allowed"), name + ": another model")
        same(run.shown()["used"], 0, name + ": nothing spent")
    same(len(model.requests()), before, "none of them reached the provider")
    run = rig.run(1, agent="open")
    a = run.chat("large", messages=[{"role": "user", "content": "a" * 7900000}])
    same(a.status, 200, "nearly 8 MB")


def test_ends(rig, model):
    """Refusals that end a run, each format in its own words (AGENTS.md has what they make clients do)."""
    for name, (path, profile, served, _) in FORMATS.items():
        body = body_of(name, served, "ends")
        run = rig.run(1, profile=profile, model=served, agent="open")
        token = run.token()
        same(post(run.port, path, token, body).status, 200, name + ": the last unit")
        ends(name, post(run.port, path, token, body), "model_request_budget_exhausted", name + ": exhausted")
        run = rig.run(5, profile=profile, model=served, agent="open")
        token, late = run.token(), run.token(ago=400)
        ends(name, post(run.port, path, late, body), "expired_run_token", name + ": expired")
        same(post(run.port, path, token, body).status, 200, name + ": alive")
        rig.tell("revoke", run.tenant, run.id)
        ends(name, post(run.port, path, token, body), "inactive_run_token", name + ": revoked")
        ends(name, post(run.port, path, late, body), "expired_run_token", name + ": expired and revoked")
        run = rig.run(5, profile=profile, model=served, agent="open")
        token = run.token()
        same(post(run.port, path, token, body).status, 200, name + ": before it is cancelled")
        rig.tell("cancel", run.tenant, run.id)
        rig.tell("finish", run.tenant, run.id)
        ends(name, post(run.port, path, token, body), "inactive_run_token", name + ": over")


def test_upstream_errors(rig, model):
    """What providers answer, and what of it an agent sees."""
    for name, (path, profile, served, stop) in FORMATS.items():
        for marker, status, seconds in (("LIE-429", 429, 5), ("LIE-429-after", 429, 17), ("LIE-500", 503, 5), ("LIE-503-after", 503, 9),
                                        ("LIE-500-text", 503, 5), ("LIE-502-html", 503, 5), ("LIE-close", 503, 5), ("LIE-no-json", 503, 5),
                                        ("LIE-529", 503, 5)):
            run = rig.run(2, profile=profile, model=served, agent="open")
            a = post(run.port, path, run.token(), body_of(name, served, "%s. %s" % (marker, run.id)))
            passes(name, a, status, seconds, "%s: %s" % (name, marker))
            check(b"<html" not in a.raw.lower() and b"oops" not in a.raw, "%s: %s: its page" % (name, marker))
            if marker != "LIE-429" and marker != "LIE-429-after":
                in_words_of(name, a, "%s: %s" % (name, marker))
            same(asked(model, "%s. %s" % (marker, run.id)), 1, marker + ": asked once")
        for marker, code in (("LIE-401", "provider_key_refused"), ("LIE-403", "provider_key_refused"), ("LIE-302", "model_redirect_refused"),
                             ("LIE-oversize", "model_response_too_large")):
            run = rig.run(2, profile=profile, model=served, agent="open")
            a = post(run.port, path, run.token(), body_of(name, served, "%s. %s" % (marker, run.id)))
            ends(name, a, code, "%s: %s" % (name, marker))
            check(KEY.encode() not in a.raw, marker + ": the key comes back")
        run = rig.run(2, profile=profile, model=served, agent="open")
        a = post(run.port, path, run.token(), body_of(name, served, "LIE-400. " + run.id))
        same((a.status, a.json), (400, {"error": {"message": "its own words"}}), name + ": what is wrong with the request")


def test_drift(rig, model):
    """Fields that are not known are left out, and told of once."""
    run = rig.run(5, agent="open")
    for more in ({"access_programs": [], "x\u0007\u00e4": 1}, {"access_programs": []}, {"another": 1, "access_programs": 2}, {}):
        same(run.chat("drift", **more).status, 200, "left out")
    told = [d["fields"] for _, k, d in run.events() if k == "agent.fields_left_out"]
    same(told, [["access_programs", "x???"], ["another"]], "told once")
    # What is cut could be a part of a key, which nobody would find in it.
    run = rig.run(5, agent="open")
    same(run.chat("drift", **{"a" * 100: 1, "b" * 60: 1, "c" * 40: 1}).status, 200, "left out")
    told = [set(d["fields"]) for _, k, d in run.events() if k == "agent.fields_left_out"]
    same(told, [{"?", "c" * 40}], "names that are cut")
    run = rig.run(5, agent="passing")
    same(run.chat("drift passes " + run.id, access_programs=[1]).status, 200, "passed on")
    check([r for r in model.requests() if "drift passes " + run.id in r["body"] and json.loads(r["body"])["access_programs"] == [1]], "it goes on")
    same([k for _, k, _ in run.events() if k == "agent.fields_left_out"], [], "nothing to tell")


def test_streams_refused(rig, model):
    for name in ("chat_completions", "responses", "messages", "gemini"):
        path, profile, served, _ = FORMATS[name]
        path = path.replace(":generateContent", ":streamGenerateContent?alt=sse")
        run = rig.run(2, profile=profile, model=served, agent="no-streams")
        a = post(run.port, path, run.token(), body_of(name, served, "x", **({} if name == "gemini" else {"stream": True})))
        same((a.status, a.code), (400, "model_stream_not_served"), name + ": a stream")
        in_words_of(name, a, name + ": a stream")
        same(run.shown()["used"], 0, "nothing spent")
