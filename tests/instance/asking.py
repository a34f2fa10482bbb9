"""Agents that ask, and the person who answers: what the tests of approvals share."""
import hashlib
from client import *

mine, phone = token(), token("device-token")
AGENT = '''
import http.client, json, os, time
W = "/workspace/"
tok = {n: open(W + ".pinfold-%s-token" % n).read().strip() for n in ("run", "event", "approval")}
run = os.environ["PINFOLD_RUN_ID"]
n = 0
def call(method, path, token, body=None):
    c = http.client.HTTPConnection("127.0.0.1", 9797, timeout=60)
    c.request(method, path, body, {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    r = c.getresponse()
    return r.status, json.loads(r.read())
def event(kind, data):
    global n
    n += 1
    line = json.dumps({"event_type": kind, "run_id": run, "task_id": run, "sequence": n, "data": data}) + "\\n"
    return call("POST", "/internal/v1/runs/%s/events" % run, tok["event"], json.dumps({"lines": [line]}))
def ask(id, preview, **more):
    return event("approval.requested", dict({"request_id": id, "action_id": "call-" + id, "effect": "execute", "reason": "model_tool",
                                             "policy_reason": "the rule", "preview": preview}, **more))
def poll(id):
    return call("GET", "/internal/v1/runs/%s/approvals/%s" % (run, id), tok["approval"])
def wait(id):
    while True:
        status, got = poll(id)
        if status != 202:
            return [status, got.get("status"), got.get("decision"), got.get("digest"), got.get("error")]
        time.sleep(0.1)
def tell(**what):
    event("told", what)
'''


def begin(code, **more):
    return start(mine, {"agent.py": AGENT + code}, agent="script", checks=[["git", "diff", "--check"]], **more)


def told(run):
    out = {}
    for e in events(mine, run):
        if e["event_type"] == "told":
            out.update(e["data"])
    return out


def hears(run, key):
    end = time.monotonic() + 120
    while key not in told(run):
        if time.monotonic() > end:
            raise AssertionError(f"the agent told {told(run)} and not {key}: {events(mine, run)[-3:]}")
        time.sleep(0.05)
    return told(run)[key]


def waiting(run, *ids):
    """The snapshot in which these wait."""
    return until(mine, run, lambda v: {q["requestId"] for q in v["pendingApprovals"]} >= set(ids) or v["status"] in TERMINAL)


def answer(run, request, decision, bearer=phone, **more):
    status, _, body = call("POST", f"/v1/runs/{run}/approvals/{request}", {"decision": decision, **more}, bearer)
    return status, json.loads(body)


def code(run, request, decision, bearer=phone, **more):
    status, o = answer(run, request, decision, bearer, **more)
    return status, o.get("error")


def digest(preview, effect="execute"):
    return hashlib.sha256(effect.encode() + b"\0" + preview.encode()).hexdigest()
