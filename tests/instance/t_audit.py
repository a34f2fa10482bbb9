#!/usr/bin/env python3
"""What is done over HTTP is in the audit log with the request id of the answer, and the log is whole."""
import os, re
from client import *

mine = token()


def log():
    return [json.loads(line) for line in operator("audit", "tail", "-n", "100000").splitlines()]


def lines(**want):
    return [x for x in log() if all(x.get(k) == v for k, v in want.items())]


def eventually(**want):
    return wait_for(lambda: lines(**want))


def runs():
    body = {"instruction": "x", "files": [{"path": "agent.py", "content": "import time\ntime.sleep(100)\n"}],
            "allowedPaths": ["agent.py"], "checks": [["git", "diff", "--check"]], "agent": "script"}
    status, h, b = call("POST", "/v1/runs", body, mine)
    run = json.loads(b)["runId"]
    made = lines(event="run.create", run=run)
    check("a creation has one line, with the answer's request id", len(made) == 1 and made[0]["requestId"] == h["x-request-id"], made)
    check("and says who", re.fullmatch("api:[A-Za-z0-9._-]+", made[0]["actor"]) is not None, made)
    until(mine, run, lambda v: v.get("phase") == "executing")
    check("the start has a line", len(lines(event="run.start", run=run)) == 1)
    check("the sandbox has a line", [x["box"] for x in eventually(event="sandbox.spawn", run=run)] == ["work"])
    status, h, b = call("POST", f"/v1/runs/{run}/cancel", b"", mine)
    made = lines(event="run.cancel", run=run)
    check("a cancel has one line, with the answer's request id", len(made) == 1 and made[0]["requestId"] == h["x-request-id"], made)
    call("POST", f"/v1/runs/{run}/cancel", b"", mine)
    check("asked again, none", len(lines(event="run.cancel", run=run)) == 1)
    until(mine, run)
    made = lines(event="run.finish", run=run)
    check("the end has one line", len(made) == 1 and made[0]["state"] == "cancelled", made)
    check("the sandbox was destroyed before", lines(event="sandbox.destroy", run=run)
          and lines(event="sandbox.destroy", run=run)[0]["seq"] < made[0]["seq"])
    status, h, b = call("DELETE", f"/v1/runs/{run}", bearer=mine)
    made = lines(event="run.delete", run=run)
    check("a deletion has one line, with the answer's request id", status == 204 and len(made) == 1
          and made[0]["requestId"] == h["x-request-id"], (status, made))


def tokens():
    text = operator("token", "create", "--label", "of the test").strip()
    public = text.split("_")[1]
    made = lines(event="token.issue", tokenId=public)
    check("a token has a line", len(made) == 1 and made[0]["label"] == "of the test" and made[0]["actor"] == "operator", made)
    check("a good token is no event", call("GET", "/v1/runs", bearer=text)[0] == 200 and not lines(event="auth.denied", actor="unproven api:" + public))
    operator("token", "revoke", public)
    check("its end has a line", len(lines(event="token.revoke", tokenId=public)) == 1)
    # Other tests may have used up what may be told at once.
    for _ in range(60):
        status, h, b = call("GET", "/v1/runs", bearer=text)
        made = lines(event="auth.denied", requestId=h["x-request-id"])
        if made:
            break
        time.sleep(1)
    check("a revoked token has a line", status == 401 and len(made) == 1 and made[0]["code"] == "unauthorized", made)
    check("that names it and what was asked", made[0]["actor"] == "unproven api:" + public and made[0]["subject"] == "GET /v1/runs", made)
    secret = text.split("_", 2)[2]
    check("no secret is in the log", secret not in json.dumps(log()))


PROBE = """import urllib.request, urllib.error, os
for token in ("", "Bearer nonsense", "Bearer " + "e30." * 9):
    r = urllib.request.Request(os.environ["PINFOLD_MODEL_GATEWAY_URL"] + "/models", headers={"Authorization": token})
    try: urllib.request.urlopen(r)
    except urllib.error.HTTPError as e: assert e.code == 401
for _ in range(200):
    try: urllib.request.urlopen(r)
    except urllib.error.HTTPError: pass
"""


def sandbox():
    run = start(mine, {"agent.py": PROBE}, agent="script", checks=[["git", "diff", "--check"]])
    until(mine, run)
    made = lines(event="auth.denied", run=run)
    check("an agent that tries tokens has lines, of its run", len(made) >= 3 and {x["actor"] for x in made} == {"sandbox"}
          and made[0]["subject"] == "GET /internal/v1/models" and made[0]["tenant"] == "default", made[:3])
    check("but not many", len(made) < 30, len(made))
    boxes = [(x["event"], x["box"]) for x in log() if x["run"] == run and x["event"].startswith("sandbox.")]
    check("both boxes were made and destroyed", boxes == [("sandbox.spawn", "work"), ("sandbox.destroy", "work"),
          ("sandbox.spawn", "check"), ("sandbox.destroy", "check")], boxes)
    check("its capability was revoked between", len(lines(event="capability.revoke", run=run)) == 1)


def flood():
    before = len(log())
    for _ in range(300):
        call("GET", "/v1/runs", bearer="nonsense")
    check("a flood of wrong tokens is bounded", len(log()) - before < 60, len(log()) - before)


def whole():
    out = operator("audit", "verify")
    check("the log is whole", out.startswith("the audit log is whole"), out)
    st = os.stat(os.path.join(INSTANCE, "var/log/pinfold/audit.log"))
    check("and nobody else's to read", st.st_mode & 0o777 == 0o600 and st.st_uid != 0, oct(st.st_mode))


for f in (runs, tokens, sandbox, flood, whole):
    case(f.__name__, f)
done()
