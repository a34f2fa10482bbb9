#!/usr/bin/python3 -B
"""Runs the ingress matrix (ingress.jsonl) against a service.

usage: ingress.py URL TOKENFILE            over HTTP, such as http://127.0.0.1:8080
       ingress.py --program pinfold-fcgi [pinfold-stored]
                                           over FastCGI, with the real store (as root) or one of dictionaries

A case says what differs from the good request: method, path, type, token ("{token}" stands for the good one, null
for none), key (Idempotency-Key); body or hex or nest (the body itself); or, of the JSON: set and number (a value or a number's spelling at a
dotted place), drop, repeat ([text, times, end]), copy (from another place), files and each and last (how many, and how
large), allowed (how many paths), pad (white space up to so many bytes). And what is right: status, error, field,
limits and show (what the run's snapshot says afterwards).
"""
import copy, http.client, json, os, sys, urllib.parse
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "fcgi"))

GOOD = {"instruction": "Repair add.", "files": [{"path": "calc.py", "content": "def add(a, b):\n    return a - b\n"}],
        "allowedPaths": ["calc.py"], "checks": [["python3", "-m", "unittest", "discover"]],
        "limits": {"maxSteps": 1, "wallTimeSeconds": 5}}


class Web:
    def __init__(self, url, token):
        self.u, self.token = urllib.parse.urlsplit(url), token

    def call(self, method, path, body=None, type="application/json", token=None, key=None):
        c = http.client.HTTPConnection(self.u.hostname, self.u.port, timeout=120)
        headers = {}
        if token is not None:
            headers["Authorization"] = token
        if body is not None:
            headers["Content-Type"] = type
        if key is not None:
            headers["Idempotency-Key"] = key
        c.request(method, self.u.path.rstrip("/") + path, body, headers)
        r = c.getresponse()
        raw = r.read()
        h = {k.lower(): v for k, v in r.getheaders()}
        c.close()
        return r.status, h, raw


class Gate:
    def __init__(self, program, stored=None):
        from rig import Rig
        self.rig = Rig(program, stored)
        self.token = self.rig.token

    def call(self, method, path, body=None, type="application/json", token=None, key=None):
        import fastcgi
        more = [("HTTP_AUTHORIZATION", token)] if token is not None else []
        if body is not None:
            more.append(("CONTENT_TYPE", type))
        if key is not None:
            more.append(("HTTP_IDEMPOTENCY_KEY", key))
        a = fastcgi.ask(self.rig.path, fastcgi.request(method, path, None, body, more))
        return a.status, a.headers, a.body


def place(o, path, value):
    *way, last = path.split(".")
    for k in way:
        o = o[int(k)] if isinstance(o, list) else o.setdefault(k, {})
    if isinstance(o, list):
        last = int(last)
    o[last] = value


def find(o, path):
    for k in path.split("."):
        o = o[int(k)] if isinstance(o, list) else o[k]
    return o


def build(c, names):
    if "hex" in c:
        return bytes.fromhex(c["hex"])
    if "nest" in c:
        return b"[" * c["nest"] + b"]" * c["nest"]
    if "body" in c:
        return c["body"].encode()
    o = copy.deepcopy(GOOD)
    for k in c.get("drop", []):
        del o[k]
    if "files" in c:
        o["files"] = [{"path": f"f{i}.py", "content": "x" * c.get("each", 1)} for i in range(c["files"])]
        if "last" in c:
            o["files"][-1]["content"] = "x" * c["last"]
        o["allowedPaths"] = ["f0.py"]
    if "allowed" in c:
        o["allowedPaths"] = [f"f{i}.py" for i in range(c["allowed"])]
    for k, v in c.get("set", {}).items():
        if isinstance(v, str) and v in names:
            v = names[v]
        place(o, k, v)
    for k, v in c.get("repeat", {}).items():
        place(o, k, v[0] * v[1] + (v[2] if len(v) > 2 else ""))
    for k, v in c.get("copy", {}).items():
        place(o, k, find(o, v))
    marks = {}
    for i, (k, v) in enumerate(c.get("number", {}).items()):
        place(o, k, f"@number{i}@")
        marks[f'"@number{i}@"'] = v
    text = json.dumps(o)
    for k, v in marks.items():
        text = text.replace(k, v)
    body = text.encode()
    return body + b" " * (c.get("pad", 0) - len(body))


def judge(api, c, names):
    token = c.get("token", "Bearer {token}")
    token = token and token.replace("{token}", api.token)
    method = c.get("method", "POST")
    status, h, raw = api.call(method, c.get("path", "/v1/runs"), build(c, names), c.get("type", "application/json"), token, c.get("key"))
    try:
        o = json.loads(raw)
    except ValueError:
        return f"{status}, not JSON: {raw[:100]!r}"
    got = (status, o.get("error"), o.get("field"))
    if got != (c["status"], c.get("error"), c.get("field")):
        return f"{got}"
    if h.get("content-type") != "application/json" or h.get("cache-control") != "no-store" or \
       h.get("x-content-type-options") != "nosniff" or not h.get("x-request-id"):
        return f"headers {h}"
    if status != 202:
        if not o.get("message") or o.get("requestId") != h["x-request-id"]:
            return f"no message or requestId: {o}"
        return None
    run = o["runId"]
    if o["status"] != "queued" or set(o["links"]) != {"status", "events", "approvals", "cancel", "artifacts"} or \
       not h.get("location", "").endswith("/v1/runs/" + run):
        return f"{o} {h}"
    good = "Bearer " + api.token
    status, _, raw = api.call("GET", "/v1/runs/" + run, token=good)
    snapshot = json.loads(raw)
    if status != 200 or snapshot["runId"] != run:
        return f"snapshot {status} {raw[:200]!r}"
    if "limits" in c and [snapshot["limits"][k] for k in ("maxSteps", "wallTimeSeconds", "approvalWaitSeconds")] != c["limits"]:
        return f"limits {snapshot['limits']}"
    for k, v in c.get("show", {}).items():
        if snapshot["request"][k] != v:
            return f"request.{k} is {snapshot['request'][k]!r}"
    api.call("POST", f"/v1/runs/{run}/cancel", b"", token=good)
    return None


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    api = Gate(*sys.argv[2:]) if sys.argv[1] == "--program" else Web(sys.argv[1], open(sys.argv[2]).read().strip())
    good = "Bearer " + api.token
    status, _, raw = api.call("POST", "/v1/runs", json.dumps(GOOD).encode(), token=good)
    if status != 202:
        sys.exit(f"the good request is refused: {status} {raw!r}")
    run = json.loads(raw)["runId"]
    shown = json.loads(api.call("GET", "/v1/runs/" + run, token=good)[2])
    names = {"{model}": shown["model"], "{profile}": shown["modelProfile"], "{agent}": shown["agent"]}
    api.call("POST", f"/v1/runs/{run}/cancel", b"", token=good)
    passed = failed = 0
    for line in open(os.path.join(HERE, "ingress.jsonl"), encoding="utf-8"):
        if line.startswith("#"):
            continue
        c = json.loads(line)
        wrong = judge(api, c, names)
        passed, failed = passed + (wrong is None), failed + (wrong is not None)
        title = f"{c['rule']} {c['case']} -> {c['status']} {c.get('error', '')}"
        print(("ok   " if wrong is None else "FAIL ") + title + ("" if wrong is None else ": got " + wrong), flush=True)
    if hasattr(api, "rig"):
        api.rig.stop()
    print(f"{passed} passed, {failed} failed")
    return failed != 0


sys.exit(main())
