#!/usr/bin/python3 -B
"""Every public route, alone against a store of dictionaries: what each answers, and to whom.

usage: routes.py pinfold-fcgi
"""
import hashlib, json, os, re, sys, threading, time
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import failing, full, people, pushing, sending
from fastcgi import *
from fakestore import RUNNING, COMPLETED, FAILED, CANCELLED, QUEUED
from rig import Rig
from wire import SPEC

passed = failed = 0


def check(what, ok, got=""):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    print(("ok   " if ok else "FAIL ") + what + ("" if ok else f": {got!r}"), flush=True)


BODY = {"instruction": "Repair \u00e4dd.", "files": [{"path": "calc.py", "content": "x = \u20ac\n"}, {"path": "t/a.py", "content": ""}],
        "allowedPaths": ["calc.py", "t/**"], "checks": [["git", "diff", "--check"]], "permissions": {"write_file": "ask"}}
rig = Rig(sys.argv[1], max_queued=40, settings={"push_hosts": ["fcm.googleapis.com", "*.push.example.com"]})


def get(path, token=None, more=()):
    return ask(rig.path, request("GET", path, token or rig.token, more=more))


def post(path, body=None, token=None):
    return ask(rig.path, request("POST", path, token or rig.token, json.dumps(body).encode() if body is not None else b""))


def create():
    a = post("/v1/runs", BODY)
    check("a run is taken", a.status == 202, a)
    run = a.json["runId"]
    x = rig.store.runs["main", run]
    s = json.loads(x["summary"])
    check("the summary is canonical", s["instruction"] == BODY["instruction"] and s["allowedPaths"] == BODY["allowedPaths"] and
          s["checks"] == BODY["checks"] and s["fileCount"] == 2 and s["permissions"] == {"write_file": "ask"} and
          s["limits"] == {"maxSteps": 12, "wallTimeSeconds": 180, "approvalWaitSeconds": 600} and
          s["files"][0] == {"path": "calc.py", "size": 8, "sha256": hashlib.sha256("x = \u20ac\n".encode()).hexdigest()}, s)
    check("the budget is steps and two", (x["steps"], x["most"]) == (12, 14), x)
    check("who made it is recorded without the secret", x["by"].startswith("api:") and rig.token[-43:] not in x["by"], x["by"])
    check("the upload holds the files", b"calc.py" in x["upload"] and "x = \u20ac\n".encode() in x["upload"])
    check("a device may not create", refused(ask(rig.path, request("POST", "/v1/runs", rig.device, json.dumps(BODY).encode())), 403, "forbidden"))
    n = len(rig.store.runs)
    check("an agent with real keys needs two words", refused(post("/v1/runs", dict(BODY, agent="keyed")), 403, "env_credentials_not_allowed"))
    post("/v1/runs", dict(BODY, checks=[]))
    check("a refused request reaches no store", len(rig.store.runs) == n)
    return run


def revoked(run):
    """Who was known is not believed any more from the moment on in which the store does not."""
    store, token = rig.store, rig.store.token("main")
    path, body = "/v1/runs/" + run, json.dumps(BODY).encode()

    def send(method, path, token, body=None):
        before = len(store.asked)
        return ask(rig.path, request(method, path, token, body)), store.asked[before:]
    a, said = send("GET", path, token)
    check("a token that is not known is asked about first", a.status == 200 and said[-2:] == [10, 22], said)
    a, said = send("GET", path, token)
    check("one that is, in the same question", a.status == 200 and said[-1:] == [22] and 10 not in said, said)
    a, said = send("POST", "/v1/runs", token, body)
    check("also where something is done", a.status == 202 and said[-1:] == [20] and 10 not in said, said)
    a, said = send("POST", "/v1/runs", token, b"{")
    check("a refusal is asked about before it is said", refused(a, 400, "invalid_json") and said[-1:] == [10], (a, said))
    a, said = send("DELETE", path, token)
    check("other routes ask first", said[-2:][0] == 10, said)
    a, _ = send("GET", path, store.token("other"))
    check("another tenant's run is none", refused(a, 404, "run_not_found"), a)
    a, _ = send("GET", path, token[:-43] + "A" * 43)
    check("another secret is another token", refused(a, 401, "unauthorized"), a)
    tag, runs = token[4:20], len(store.runs)
    for method, path, body, why in (("GET", path, None, "a look"), ("GET", "/v1/runs/none", None, "a look at nothing"),
                                    ("POST", "/v1/runs", body, "a creation"), ("POST", "/v1/runs", b"{", "a body that is none"),
                                    ("GET", path + "?x=1", None, "a query that is none"), ("GET", "/v1/runs/!", None, "an id that is none")):
        send("GET", "/v1/runs/" + run, token)
        gone = store.tokens.pop(tag)
        a, _ = send(method, path, token, body)
        check(f"revoked: {why} is refused", refused(a, 401, "unauthorized"), a)
        a, said = send(method, path, token, body)
        check(f"revoked: and it is forgotten ({why})", refused(a, 401, "unauthorized") and 10 in said and 20 not in said and 22 not in said, (a, said))
        store.tokens[tag] = gone
    check("nothing was done for it", len(store.runs) == runs, store.runs)


def snapshot(run):
    a = get("/v1/runs/" + run)
    o = a.json
    check("snapshot of a queued run", (o["status"], o["phase"], o["cancelRequested"], o["artifactKeys"], o["pendingApprovals"],
          o["approvalDecisions"]) == ("queued", "waiting", False, [], [], []), o)
    check("what is not known is absent", not {"startedAt", "finishedAt", "execution", "summary", "error", "terminalReason",
          "changedFiles", "verification"} & set(o), o)
    check("the request in it", o["request"] == {"instruction": BODY["instruction"], "modelProfile": "default", "provider": "scripted",
          "model": "scripted-1", "allowedPaths": BODY["allowedPaths"], "checks": BODY["checks"], "fileCount": 2}, o["request"])
    check("its limits", o["limits"] == {"maxSteps": 12, "wallTimeSeconds": 180, "approvalWaitSeconds": 600, "maxModelRequests": 14}, o["limits"])
    tag = a.headers["etag"]
    b = get("/v1/runs/" + run, more=[("HTTP_IF_NONE_MATCH", tag)])
    check("304 for the same", b.status == 304 and b.body == b"" and b.headers["etag"] == tag, b)
    check("200 for another tag", get("/v1/runs/" + run, more=[("HTTP_IF_NONE_MATCH", '"0"')]).status == 200)
    check("a device may read", get("/v1/runs/" + run, rig.device).status == 200)
    for path in ("", "/events", "/artifacts", "/artifacts/patch"):
        check(f"another tenant sees 404 at {path or 'the run'}", refused(get("/v1/runs/" + run + path, rig.other), 404, "run_not_found"))
    check("and may not cancel", refused(post(f"/v1/runs/{run}/cancel", token=rig.other), 404, "run_not_found"))
    x = rig.store.runs["main", run]
    x.update(state=RUNNING, phase=2)
    check("a running run", get("/v1/runs/" + run).json["phase"] == "executing")


def cancel(run):
    a = post(f"/v1/runs/{run}/cancel")
    check("cancel of a running run", a.status == 202 and a.json == {"runId": run, "status": "running", "cancelRequested": True}, a)
    o = get("/v1/runs/" + run).json
    check("cancelling shows as running", (o["status"], o["cancelRequested"]) == ("running", True), o)
    a = post(f"/v1/runs/{run}/cancel")
    check("cancel again", a.status == 202 and a.json["status"] == "running", a)
    rig.store.runs["main", run]["state"] = CANCELLED
    a = post(f"/v1/runs/{run}/cancel")
    check("cancel after the end", a.status == 200 and a.json["status"] == "cancelled", a)
    queued = post("/v1/runs", BODY).json["runId"]
    a = post(f"/v1/runs/{queued}/cancel")
    check("cancel of a queued run ends it at once", a.status == 202 and a.json["status"] == "cancelled", a)
    check("GET on cancel", refused(get(f"/v1/runs/{queued}/cancel"), 405, "method_not_allowed"))


def artifacts():
    run = post("/v1/runs", BODY).json["runId"]
    x = rig.store.runs["main", run]
    check("artifacts before the end", refused(get(f"/v1/runs/{run}/artifacts"), 409, "run_not_terminal"))
    check("one artifact before the end", refused(get(f"/v1/runs/{run}/artifacts/patch"), 409, "run_not_terminal"))
    big = os.urandom(3_000_000)
    x.update(state=COMPLETED, artifacts={"patch": b"--- a\n<script>\n", "result": big})
    o = get("/v1/runs/" + run).json
    check("a completed run", o["status"] == "completed" and "phase" not in o and o["execution"] == {"success": True, "exitCode": 0} and
          o["summary"] == "it is <done>" and o["changedFiles"] == ["calc.py"] and o["verification"][0]["ok"] is True, o)
    check("its artifact keys", sorted(o["artifactKeys"]) == ["events", "patch", "result"], o)
    a = get(f"/v1/runs/{run}/artifacts")
    rows = {r["name"]: r for r in a.json["artifacts"]}
    check("the list", a.json["runId"] == run and sorted(rows) == ["events", "patch", "result"] and rows["patch"]["size"] == 15 and
          rows["patch"]["sha256"] == hashlib.sha256(b"--- a\n<script>\n").hexdigest(), a)
    a = get(f"/v1/runs/{run}/artifacts/patch")
    h = a.headers
    check("an artifact is inert", a.status == 200 and a.body == b"--- a\n<script>\n" and h["content-type"] == "text/plain; charset=utf-8" and
          h["content-disposition"] == 'attachment; filename="patch.txt"' and h["x-content-type-options"] == "nosniff" and
          h["cache-control"] == "no-store", h)
    a = get(f"/v1/runs/{run}/artifacts/result")
    check("a large one arrives whole", a.whole and a.body == big and h["content-length"] == "15", len(a.body))
    a = get(f"/v1/runs/{run}/artifacts/events")
    lines = get(f"/v1/runs/{run}/events")
    check("events are composed where none are stored", a.status == 200 and a.body == lines.body and
          rows["events"]["sha256"] == hashlib.sha256(a.body).hexdigest(), a)
    for name in ("nothing", "checkpoint", "PATCH", "patch.txt", "patch%2e%2e", "..%2fpatch", "hop"):
        a = get(f"/v1/runs/{run}/artifacts/{name}")
        check("artifact " + name, refused(a, 404, "artifact_not_found") or refused(a, 400, "invalid_request"), a)


def events():
    run = post("/v1/runs", BODY).json["runId"]
    x = rig.store.runs["main", run]
    x["events"] += [(i, 1700000000000 + i, f"e-{i}", "agent.step", json.dumps({"n": i, "t": "y" * 900}).encode()) for i in range(2, 1001)]
    a = get(f"/v1/runs/{run}/events")
    lines = [json.loads(l) for l in a.body.decode().splitlines()]
    check("events page through", a.whole and a.headers["content-type"] == "application/x-ndjson" and
          [e["sequence"] for e in lines] == list(range(1, 1001)), (a.status, len(lines)))
    check("an event's fields", set(lines[0]) == {"event_type", "run_id", "task_id", "sequence", "created_at", "event_id", "data"} and
          lines[0]["run_id"] == lines[0]["task_id"] == run and lines[0]["event_type"] == "run.queued" and lines[5]["data"]["n"] == 6, lines[0])
    a = get(f"/v1/runs/{run}/events?after=998")
    check("after", [json.loads(l)["sequence"] for l in a.body.decode().splitlines()] == [999, 1000], a)
    a = get(f"/v1/runs/{run}/events?after=1000")
    check("after the last there is nothing", a.status == 200 and a.body == b"" and a.whole, a)
    check("stream=0 is NDJSON", get(f"/v1/runs/{run}/events?stream=0&after=999").status == 200)
    for q in ("after=-1", "after=+5", "after=5x", "after=0x10", "after=1e3", "after=", "after=" + "9" * 20, "after=9223372036854775808",
              "after=%01", "after=01", "x=1", "after=1&after=2", "stream=maybe"):
        check("events?" + q, refused(get(f"/v1/runs/{run}/events?{q}"), 400, "invalid_query"))
    check("events of no run", refused(get("/v1/runs/none/events"), 404, "run_not_found"))


def listing():
    want = [k[1] for k, x in sorted(rig.store.runs.items(), key=lambda i: (-i[1]["created"], i[1]["run"])) if k[0] == "main"]
    got, path = [], "/v1/runs?limit=2"
    for _ in range(100):
        o = get(path).json
        got += [r["runId"] for r in o["runs"]]
        if o["next"] is None:
            break
        path = "/v1/runs?limit=2&after=" + o["next"]
    check("pages join without gap or repeat", got == want, (got, want))
    for word, states in (("queued", [QUEUED]), ("completed", [COMPLETED]), ("cancelled", [CANCELLED]), ("failed", [FAILED])):
        n = sum(x["state"] in states for k, x in rig.store.runs.items() if k[0] == "main")
        o = get("/v1/runs?status=" + word).json
        check("status=" + word, len(o["runs"]) == n and all(r["status"] == word for r in o["runs"]), o)
    check("another tenant's list is its own", get("/v1/runs", rig.other).json == {"runs": [], "next": None})


def limits():
    a = None
    for _ in range(50):
        a = post("/v1/runs", BODY)
        if a.status != 202:
            break
    check("a full queue is 429 with Retry-After", refused(a, 429, "run_queue_full") and int(a.headers["retry-after"]) > 0, a)


def quotas():
    """What a tenant used up is said with the moment at which there is room, as the store says it."""
    for number, code in ((170, "run_rate_exceeded"), (171, "tenant_storage_full"), (172, "tenant_request_quota_exhausted"), (173, "tenant_token_quota_exhausted")):
        rig.store.over = number, "", 4000 + number
        a = post("/v1/runs", BODY)
        check(f"{code} with Retry-After", refused(a, 429, code) and a.headers["retry-after"] == str(4000 + number), a)
    rig.store.over = None


def idempotency():
    body, keyed = json.dumps(BODY).encode(), [("HTTP_IDEMPOTENCY_KEY", "retry-1")]
    turned = json.dumps(dict(reversed(BODY.items())), indent=3).encode()
    def create(body, token=None, more=keyed):
        return ask(rig.path, request("POST", "/v1/runs", token or rig.token, body, more))
    a, b = create(body), create(turned)
    check("the same key gives the same answer", (a.status, b.status) == (202, 202) and a.json == b.json and
          a.headers["location"] == b.headers["location"], (a, b))
    run = a.json["runId"]
    check("and made one run", sum(k[1] == run for k in rig.store.runs) == 1)
    many = dict(BODY, permissions={"write_file": "ask", "run_check": "allow"})
    turned = dict(BODY, permissions={"run_check": "allow", "write_file": "ask"})
    other = [("HTTP_IDEMPOTENCY_KEY", "retry-2")]
    a, b = create(json.dumps(many).encode(), more=other), create(json.dumps(turned).encode(), more=other)
    check("the order of permissions does not matter", (a.status, b.status) == (202, 202) and a.json == b.json, (a, b))
    for name, value in (("instruction", "Repair it."), ("allowedPaths", ["calc.py"]), ("permissions", {"write_file": "deny"}),
                        ("files", [{"path": "calc.py", "content": "x = 1\n"}, BODY["files"][1]]), ("limits", {"maxSteps": 3})):
        a = create(json.dumps(dict(BODY, **{name: value})).encode())
        check(f"another {name} is a conflict", refused(a, 409, "idempotency_conflict"), a)
    x = [r["runId"] for r in get("/v1/runs").json["runs"]]
    check("no conflict made a run", len(x) == sum(k[0] == "main" for k in rig.store.runs), x)
    a = create(body, more=[("HTTP_IDEMPOTENCY_KEY", "a b")])
    check("a bad key", refused(a, 400, "invalid_idempotency_key") and a.json["field"] == "Idempotency-Key", a)
    a = create(body, more=[("HTTP_IDEMPOTENCY_KEY", "a"), ("HTTP_IDEMPOTENCY_KEY", "a")])
    check("a key twice", refused(a, 400, "invalid_request"), a)


def request_ids():
    own = get("/healthz", more=[("HTTP_X_REQUEST_ID", "mine"), ("HTTP_PINFOLD_REQUEST_ID", "mine")]).headers["x-request-id"]
    check("a client does not choose the request id", own != "mine" and len(own) == 36, own)
    a = get("/v1/runs/none", more=[("PINFOLD_REQUEST_ID", "from-the-server.1")])
    check("the web server may", a.headers["x-request-id"] == a.json["requestId"] == "from-the-server.1", a)
    for bad in ("", "a b", "x" * 65, "a/b"):
        a = get("/healthz", more=[("PINFOLD_REQUEST_ID", bad)])
        check(f"but not {bad[:10]!r}", a.status == 200 and len(a.headers["x-request-id"]) == 36, a)
    ask(rig.path, request("POST", "/v1/runs", rig.token, json.dumps(BODY).encode(), [("PINFOLD_REQUEST_ID", "to-the-store")]))
    check("the store is told", rig.store.requests[-1] == "to-the-store", rig.store.requests)


def deletion():
    def delete(run, token=None):
        return ask(rig.path, request("DELETE", "/v1/runs/" + run, token or rig.token))
    run = post("/v1/runs", BODY).json["runId"]
    check("a run that goes on stays", refused(delete(run), 409, "run_not_terminal"))
    rig.store.runs["main", run]["state"] = COMPLETED
    check("a device may not delete", refused(delete(run, rig.device), 403, "forbidden"))
    check("nor another tenant", refused(delete(run, rig.other), 404, "run_not_found"))
    a = delete(run)
    check("a run that has ended goes", a.status == 204 and a.body == b"" and "content-type" not in a.headers, a)
    check("and is gone", refused(delete(run), 404, "run_not_found") and refused(get("/v1/runs/" + run), 404, "run_not_found"))
    check("no query", refused(delete(run + "?force=1"), 400, "invalid_query"))


def figures():
    check("no figures for just any token", refused(get("/metrics"), 403, "forbidden"))
    check("nor for a device", refused(get("/metrics", rig.store.token("main", 2, rights=2)), 403, "forbidden"))
    check("nor without", refused(ask(rig.path, request("GET", "/metrics")), 401, "unauthorized"))
    a = get("/metrics", rig.store.token("main", rights=2))
    check("figures with the right", a.status == 200 and a.body.startswith(b"pinfold_runs 1\n") and b"\npinfold_streams_open 0\n" in a.body and
          b'\npinfold_http_requests_total{method="GET",route="/metrics",status="4xx"} 3\n' in a.body and
          b'\npinfold_auth_failures_total{code="forbidden"} ' in a.body and a.headers["content-type"] == "text/plain; version=0.0.4", a)
    a = get("/v1/model-profiles", rig.device)
    check("profiles", a.json == {"profiles": [{"id": "default", "provider": "scripted", "protocol": "openai", "model": "scripted-1",
          "ready": True}]} and b"127.0.0.1" not in a.body, a)
    a = get("/v1/front", rig.device)
    check("what the web server made of it", a.status == 200 and a.json == {"requestTarget": "/v1/front", "backendKept": False,
          "pauseMs": 700, "last": True} and "content-length" not in a.headers, a)
    check("and nobody else is told", refused(ask(rig.path, request("GET", "/v1/front")), 401, "unauthorized"))
    many = [connect(rig.path, 60) for _ in range(8)]
    for s in many:
        send(s, request("GET", "/v1/front", token=rig.device))
    pauses = [receive(s).json["pauseMs"] for s in many]
    check("only a few hold a thread for it", 0 in pauses and 700 in pauses, pauses)
    check("and later others may again", get("/v1/front").json["pauseMs"] == 700)
    runs, rig.store.runs = rig.store.runs, {}
    check("a profile of which the gateway says nothing is not ready", get("/v1/model-profiles").json["profiles"][0]["ready"] is False)
    rig.store.runs = runs
    a = get("/v1/limits", rig.device)
    check("limits", (a.json["request"]["files"], a.json["request"]["treeBytes"], a.json["run"]["maxSteps"], a.json["tenant"]["concurrentRuns"],
          a.json["events"]["bytes"], a.json["extensions"][0], a.json["checks"][0]) ==
          (32, 512000, 20, 4, 1000000, ".py", ["git", "diff", "--check"]), a)
    check("another tenant's limits are its own", get("/v1/limits", rig.other).json["extensions"] == ["*"])
    a = ask(rig.path, request("GET", "/openapi.json"))
    check("the description is for anyone", a.status == 200 and a.json["openapi"] == "3.1.0" and a.headers["content-type"] == "application/json", a)


def as_uid(uid, data):
    """The answer that a process of this uid gets."""
    r, w = os.pipe()
    os.chmod(rig.dir, 0o711)
    if os.fork() == 0:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        a = ask(rig.path, data)
        os.write(w, f"{a.status} {a.error}".encode())
        os._exit(0)
    os.close(w)
    os.wait()
    try:
        return os.read(r, 100).decode()
    finally:
        os.close(r)


def pair(body, more=(), source="192.0.2.1"):
    return ask(rig.path, request("POST", "/v1/pair", body=json.dumps(body).encode(), more=[("REMOTE_ADDR", source), *more]))


def code(text="ABCDEFGH", tenant="main"):
    rig.store.codes[hashlib.sha256(text.encode()).digest()] = tenant


def devices():
    code()
    for wrong in ({}, {"code": "ABCDEFGH"}, {"label": "x"}, {"code": 1, "label": "x"}, {"code": "ABCDEFGH", "label": "x", "cookie": 1},
                  {"code": "", "label": "x"}, {"code": "A" * 65, "label": "x"}):
        check(f"no pairing with {wrong}", pair(wrong).status == 400)
    for label in ("a\u202eb", "\u00ad", "\u2800", "a\nb", "a/b", "..", "x" * 49):
        a = pair({"code": "ABCDEFGH", "label": label})
        check(f"no device is called {label!r}", refused(a, 400, "invalid_device_label") and a.field == "label", a)
    check("an unknown key", refused(pair({"code": "ABCDEFGH", "label": "x", "more": 1}), 400, "unknown_field"))
    a = pair({"code": "BCDEFGHJ", "label": "phone"})
    check("a wrong code", refused(a, 401, "invalid_pairing_code") and "set-cookie" not in a.headers, a)
    a = pair({"code": "abcd-efgh", "label": "phone"})
    token = a.json["token"]
    check("a code as it was typed", a.status == 201 and a.json == {"label": "phone", "token": token} and token.startswith("pfd_") and
          "set-cookie" not in a.headers, a)
    check("the store has no secret", all(token.split("_", 2)[2].encode() not in repr(t).encode() for t in rig.store.tokens.values()))
    check("the credential counts", get("/v1/runs", token).status == 200)
    a = get("/v1/devices", token)
    mine = [d for d in a.json["devices"] if d["label"] == "phone"]
    check("the list", a.status == 200 and mine == [{"label": "phone", "createdAt": 1, "lastSeenAt": 2, "current": True}] and
          [d["label"] for d in a.json["devices"]] == sorted(d["label"] for d in a.json["devices"]) and token not in a.body.decode(), a)
    check("to an API token none is current", not any(d["current"] for d in get("/v1/devices").json["devices"]))
    check("other tenants have others", "phone" not in [d["label"] for d in get("/v1/devices", rig.other).json["devices"]])

    # The cookie.
    code()
    rig.store.device_end = int(time.time() * 1000) + 5000000
    page = [("HTTP_HOST", "127.0.0.1:8080"), ("HTTP_ORIGIN", "http://127.0.0.1:8080"), ("HTTP_SEC_FETCH_SITE", "same-origin")]
    body = {"code": "ABCDEFGH", "label": "page", "cookie": True}
    check("no cookie for another page", refused(pair(body, [*page[:1], ("HTTP_ORIGIN", "https://evil.example")]), 403, "cross_origin_refused"))
    check("nor for nobody's", refused(pair(body, page[:1]), 403, "cross_origin_refused"))
    a = pair(body, page)
    rig.store.device_end = 0
    value, _, rest = a.headers.get("set-cookie", "").partition("; ")
    rest = rest.split("; ")
    age = int(dict(x.partition("=")[::2] for x in rest)["Max-Age"])
    check("a cookie that no script reads and no other page sends", a.status == 201 and set(rest) == {"Path=/", "HttpOnly", "Secure", "SameSite=Strict",
          f"Max-Age={age}"} and 4900 < age <= 5000 and "token" not in a.json and value.split("=")[1] not in a.body.decode(), a.headers)
    def browser(method="GET", path="/v1/runs", cookie=value, host="127.0.0.1:8080", origin=None, site="same-origin", body=None, more=()):
        return ask(rig.path, request(method, path, body=body, more=[("HTTP_COOKIE", cookie), ("HTTP_HOST", host), ("HTTP_ORIGIN", origin),
                                                                    ("HTTP_SEC_FETCH_SITE", site), *more]))
    check("it counts", browser().status == 200)
    check("among others", browser(cookie=f"a=b; {value}; c=d").status == 200)
    check("a browser that does not say", browser(site=None).status == 200)
    check("an address that was typed", browser(site="none").status == 200)
    for host in ("localhost", "LOCALHOST:1", "[::1]:8080", "127.0.0.1"):
        check("the machine itself is " + host, browser(host=host).status == 200)
    for name, o in {"no host": dict(host=None), "another host": dict(host="evil.example"), "one that begins so": dict(host="127.0.0.1.evil.example"),
                    "one that ends so": dict(host="evil-localhost"), "no port": dict(host="localhost:"), "a port that is none": dict(host="localhost:80x"),
                    "another origin": dict(origin="http://evil.example"), "no origin": dict(origin="null"), "another port": dict(origin="http://127.0.0.1:8081"),
                    "another site": dict(site="cross-site"), "a sister": dict(site="same-site")}.items():
        check("no cookie at " + name, refused(browser(**o), 403, "cross_origin_refused"), browser(**o))
    run = post("/v1/runs", BODY).json["runId"]
    act = dict(method="POST", path=f"/v1/runs/{run}/cancel", body=b"")
    check("what changes something says where it comes from", refused(browser(**act), 403, "cross_origin_refused"))
    check("nor is it typed", refused(browser(origin="http://127.0.0.1:8080", site="none", **act), 403, "cross_origin_refused"))
    check("and then it is done", browser(origin="http://127.0.0.1:8080", **act).status == 202)
    for name, cookie in {"twice": f"{value}; {value}", "cut": value[:-1], "longer": value + "x", "an API token": "pinfold_device=" + rig.token,
                         "of another name": "x" + value, "not clean": value + "; x=\x01", "empty": "pinfold_device="}.items():
        check("a cookie " + name, refused(browser(cookie=cookie), 401, "unauthorized"))
    a = ask(rig.path, request("GET", "/v1/runs", more=[("HTTP_COOKIE", value), ("HTTP_COOKIE", "x=y"), ("HTTP_HOST", "localhost")]))
    check("two lines of cookies are none", refused(a, 401, "unauthorized"), a)
    check("a cookie of others does no harm", get("/v1/runs", more=[("HTTP_COOKIE", "x=\xe4\x01")]).status == 200)
    check("a bearer token goes first", refused(ask(rig.path, request("GET", "/v1/runs", "x", more=[("HTTP_COOKIE", value)])), 401, "unauthorized"))

    # An address that has a name.
    named = Rig(sys.argv[1], settings={"public_url": "https://pinfold.example:8443"})
    named.store.tokens = rig.store.tokens
    def at(host, origin=None):
        return ask(named.path, request("GET", "/v1/runs", more=[("HTTP_COOKIE", value), ("HTTP_HOST", host), ("HTTP_ORIGIN", origin)])).status
    check("at its own name", at("pinfold.example:8443") == 200 and at("PINFOLD.example:8443", "https://pinfold.example:8443") == 200)
    check("and no other", [at("127.0.0.1"), at("pinfold.example"), at("pinfold.example:8443", "http://pinfold.example:8443"),
                           at("pinfold.example:8443", "https://pinfold.example")] == [403] * 4)
    check("it stops", named.stop() == 0)

    # Too often.
    for i in range(10):
        pair({"code": "x", "label": "x"}, source="192.0.2.9")
    code()
    a = pair({"code": "ABCDEFGH", "label": "x"}, source="192.0.2.9")
    check("the eleventh of an address", refused(a, 429, "too_many_attempts") and a.headers["retry-after"] == "60", a)
    for i in range(10):
        pair({"code": "x", "label": "x"}, source=f"2001:db8::{i}")
    check("a network of its own is one", pair({"code": "x", "label": "x"}, source="2001:db8::ffff:1").status == 429)
    check("its neighbour another", pair({"code": "x", "label": "x"}, source="2001:db8:0:1::1").status == 401)
    a = pair({"code": "ABCDEFGH", "label": "Lukas' \u00e4rmel"}, source="192.0.2.10")
    check("another address may", a.status == 201, a)

    # A vhost of a tenant.
    code(tenant="other")
    check("a code of another tenant", refused(pair({"code": "ABCDEFGH", "label": "x"}, [("PINFOLD_TENANT", "main")], "192.0.2.11"), 401, "invalid_pairing_code"))
    check("a vhost whose tenant came out empty is nobody's", refused(pair({"code": "ABCDEFGH", "label": "x"}, [("PINFOLD_TENANT", "")], "192.0.2.11"), 401, "invalid_pairing_code"))

    # Revoked, by a label that is any text.
    def revoke(label, token=None):
        return ask(rig.path, request("DELETE", "/v1/devices/" + label, token or rig.token))
    check("no such device", refused(revoke("nothing"), 404, "device_not_found"))
    check("another tenant's", refused(revoke("phone", rig.other), 404, "device_not_found"))
    for label in ("a%0ab", "..", "a%2Fb"):
        check("no path: " + label, refused(revoke(label), 400, "invalid_request"))
    check("a label that none has", refused(revoke("%E2%80%AEx"), 404, "device_not_found"))
    check("a text elsewhere is no path", refused(get("/v1/runs/a%20b", "x"), 404, "not_found") and refused(get("/v1/devices/a%20b/c", "x"), 404, "not_found"))
    check("one that is any text", revoke("Lukas'%20%c3%a4rmel").status == 204)
    check("its method", refused(get("/v1/devices/a%20b"), 405, "method_not_allowed"))
    check("by itself", revoke("phone", token).status == 204)
    check("from the next request on", refused(get("/v1/runs", token), 401, "unauthorized"))

    # A process of a sandbox, whatever it holds.
    code()
    body = json.dumps({"code": "ABCDEFGH", "label": "thief"}).encode()
    for uid in (100000, 100023):
        check(f"uid {uid} of a sandbox pairs nothing", as_uid(uid, request("POST", "/v1/pair", body=body)) == "403 caller_refused")
        check(f"uid {uid} of a sandbox revokes nothing", as_uid(uid, request("DELETE", "/v1/devices/page", rig.device)) == "403 caller_refused")
    check("and the code is still there", as_uid(100024, request("POST", "/v1/pair", body=body)) == "201 None")


def promised(word):
    """The lines of tests/vectors/promised.tab that begin with this word, split."""
    return [line.split()[1:] for line in open(SPEC + "../tests/vectors/promised.tab") if line.startswith(word + " ")]


def rows():
    """What is promised of a route by itself, for every one: who is refused, which methods there are, no query unnamed, and that what
    belongs to another tenant is answered as what is not there."""
    # method, path, handler, for, principals, body, type, bytes, rights, right
    table = [(r[0], r[1], r[4].split(","), r[6], r[9]) for r in promised("route")]
    check("routes are promised", len(table) > 10, table)
    held = {"api": rig.token, "device": rig.device}
    able = rig.store.token("main", rights=3)
    mine = {"api": able, "device": rig.device}
    theirs = {"api": rig.store.token("other", rights=3), "device": rig.store.token("other", 2)}
    run = post("/v1/runs", BODY).json["runId"]
    for method, path, principals, kind, rights in table:
        def answer(token, verb=method, query="", run="none"):
            return ask(rig.path, request(verb, re.sub(r"{[^}]*}", "patch", path.replace("{runId}", run).replace("{sourceId}", "0" * 64)) + query, token,
                                         b"" if kind == "none" else b'{"decision":"deny"}' if path.endswith("{requestId}") else b"{}"))
        title = f"{method} {path}: "
        if principals != ["anyone"]:
            check(title + "nobody without a token", refused(answer(None), 401, "unauthorized"))
            for name, token in held.items():
                if name not in principals or (rights != "none" and name == "api"):
                    person = name == "api" and (rights == "approve" or principals == ["device"])
                    check(title + f"not for {name}", refused(answer(token), 403, "device_required" if person else "forbidden"))
        for name in principals if "{runId}" in path else ():
            a, b = answer(theirs[name], run=run), answer(mine[name])
            check(title + f"another tenant's run is as unknown to {name} as none", refused(a, 404, "run_not_found") and refused(b, 404, "run_not_found") and
                  {k: v for k, v in a.json.items() if k != "requestId"} == {k: v for k, v in b.json.items() if k != "requestId"}, (a, b))
        if method == "GET" and "{" not in path:
            check(title + "no unknown query", refused(answer(able if "device" != principals[0] else rig.device, query="?nonsense=1"), 400, "invalid_query"))
        methods = {r[0] for r in table if r[1] == path}
        for verb in {"GET", "POST", "PUT", "DELETE"} - methods:
            a = answer(able, verb)
            check(title + f"no {verb}", refused(a, 405, "method_not_allowed") and set(a.headers["allow"].split(", ")) == methods, a)
    check("and it is still there", get("/v1/runs/" + run).status == 200)


def until_ready(status):
    wait_for(lambda: get("/readyz").status == status)
    return get("/readyz")


def readiness():
    a = get("/readyz")
    check("ready", a.status == 200 and a.json == {"ok": True, "service": "pinfold"}, a)
    rig.serve(5)
    a = until_ready(503)
    check("not ready without the gateway", refused(a, 503, "not_ready") and a.json["reasons"] == ["the gateway does not serve"] and
          "retry-after" in a.headers, a)
    rig.serve(3)
    rig.serve(7)
    check("ready when all serve again", until_ready(200).status == 200)
    rig.store.full = True
    a = until_ready(503)
    check("not ready when a run would be refused", refused(a, 503, "not_ready") and a.json["reasons"] == ["the server's disk is full"], a)
    rig.store.full = False
    check("ready when there is room again", until_ready(200).status == 200)
    rig.store.close()
    # Each worker waits out its patience; healthz needs no store.
    results = []
    def probe():
        results.append(get("/readyz"))
    threads = [threading.Thread(target=probe) for _ in range(8)]
    for t in threads: t.start()
    check("healthz does not wait for the store", get("/healthz").status == 200)
    for t in threads: t.join()
    check("not ready without a store", all(refused(a, 503, "not_ready") and "the store does not answer" in a.json["reasons"] and
          "retry-after" in a.headers for a in results), results)
    a = get("/v1/runs")
    check("and 503 for what needs it", refused(a, 503, "store_unavailable") and "retry-after" in a.headers, a)


try:
    full.cases(check, BODY, sys.argv[1])
    run = create()
    revoked(run); snapshot(run); cancel(run); artifacts(); events(); listing(); idempotency(); sending.cases(check, sys.argv[1], rig, BODY); request_ids(); deletion(); figures(); devices(); people.cases(check, rig, BODY, as_uid); pushing.cases(check, rig, as_uid); failing.cases(check, sys.argv[1]); rows(); quotas(); limits(); readiness()
    check("the process lives", rig.alive())
finally:
    status = rig.stop()
check("it ends with status 0", status == 0, status)
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
