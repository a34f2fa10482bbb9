#!/usr/bin/python3
"""Runs end to end: what completes, what fails and why, cancelling, tenants that must not notice each other."""
import subprocess, tempfile, os
from client import *

mine = token()
device = token("device-token")
other = operator("token", "create", "--tenant", "other").strip()
TEST = "import unittest, calc\nclass T(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(calc.add(2, 3), 5)\n"
BROKEN = "def add(a, b):\n    return a - b\n"
FIX = "open('calc.py', 'w').write('def add(a, b):\\n    return a + b\\n')\n"


def repaired():
    run = start(mine, {"calc.py": BROKEN, "test_calc.py": TEST, "agent.py": FIX}, agent="script", allowed=["calc.py"])
    v = until(mine, run)
    check("a repaired program is completed", v["status"] == "completed", v)
    check("the check ran and passed", v["verification"][0]["ok"] is True and v["verification"][0]["exitCode"] == 0, v)
    check("the changed file is named", [f if isinstance(f, str) else f["path"] for f in v["changedFiles"]] == ["calc.py"], v)
    check("a device may read it", get("/v1/runs/" + run, device)[0] == 200)
    patch = artifact(mine, run, "patch")
    with tempfile.TemporaryDirectory() as d:
        open(os.path.join(d, "calc.py"), "w").write(BROKEN)
        r = subprocess.run(["git", "apply", "-"], cwd=d, input=patch, text=True, capture_output=True)
        check("git applies the patch", r.returncode == 0 and "a + b" in open(os.path.join(d, "calc.py")).read(), r.stderr + patch)
    lines = events(mine, run)
    check("sequences are dense from 1", [e["sequence"] for e in lines] == list(range(1, len(lines) + 1)))
    check("the terminal event is the last", lines[-1]["event_type"] == "run.completed", lines[-1])
    check("one terminal event", sum(e["event_type"] in ("run.completed", "run.failed", "run.cancelled") for e in lines) == 1)
    status, a = get(f"/v1/runs/{run}/artifacts", mine)
    names = sorted(x["name"] if isinstance(x, dict) else x for x in a["artifacts"])
    check("six artifacts", names == sorted(["request", "events", "checkpoint", "patch", "test_log", "result"]), names)
    for n in names:
        status, h, b = call("GET", f"/v1/runs/{run}/artifacts/{n}", bearer=mine)
        check(f"artifact {n} is inert", status == 200 and h["content-type"] == "text/plain; charset=utf-8"
              and h["x-content-type-options"] == "nosniff" and "attachment" in h.get("content-disposition", ""), dict(h))
    status, e = get("/v1/runs/" + run, other)
    check("another tenant sees 404", (status, e["error"]) == (404, "run_not_found"), e)
    status, e = get(f"/v1/runs/{run}/artifacts/patch", other)
    check("another tenant gets no artifact", status == 404, e)
    status, _, b = call("POST", f"/v1/runs/{run}/cancel", b"", other)
    check("another tenant cannot cancel", status == 404, b)


def unrepaired():
    run = start(mine, {"calc.py": BROKEN, "test_calc.py": TEST, "agent.py": "pass\n"}, agent="script", allowed=["calc.py"])
    v = until(mine, run)
    check("a failing check fails the run", v["status"] == "failed" and v["error"] == "verification_failed", v)
    check("the failing check is recorded", v["verification"][0]["ok"] is False, v)


def agent_fails():
    v = until(mine, start(mine, {"agent.py": "raise SystemExit(3)\n", "test_x.py": TEST}, agent="script"))
    check("a failing agent fails the run", v["status"] == "failed" and v["execution"]["exitCode"] == 3, v)


def outside():
    v = until(mine, start(mine, {"calc.py": BROKEN, "agent.py": "open('stray.py','w').write('x')\n" + FIX, "test_calc.py": TEST},
                          agent="script", allowed=["calc.py"]))
    check("a file outside allowedPaths fails the run", v["status"] == "failed" and v["error"] == "sandbox_changed_files_mismatch", v)


def no_tests():
    v = until(mine, start(mine, {"calc.py": BROKEN, "agent.py": "pass\n"}, agent="script"))
    check("a check that ran no test is not passed", v["status"] == "failed" and v["verification"][0]["ok"] is False, v)


def cancel():
    run = start(mine, {"agent.py": "import time, signal\nsignal.signal(15, signal.SIG_IGN)\ntime.sleep(200)\n"}, agent="script",
                checks=[["git", "diff", "--check"]])
    until(mine, run, lambda v: v.get("phase") == "executing")
    status, v = call("GET", f"/v1/runs/{run}/artifacts/patch", bearer=mine)[0], None
    check("artifacts only at the end", status == 409)
    status, _, b = call("POST", f"/v1/runs/{run}/cancel", b"", device)
    check("cancel is accepted", status == 202, b)
    v = until(mine, run)
    check("cancelled in the end", v["status"] == "cancelled" and v["cancelRequested"] is True, v)
    status, _, b = call("POST", f"/v1/runs/{run}/cancel", b"", mine)
    check("cancel again is 200 with the status", status == 200 and json.loads(b)["status"] == "cancelled", b)
    check("run.cancelled is last", events(mine, run)[-1]["event_type"] == "run.cancelled")


def wall_time():
    run = start(mine, {"agent.py": "import time\ntime.sleep(200)\n"}, agent="script", checks=[["git", "diff", "--check"]],
                limits={"wallTimeSeconds": 1})
    v = until(mine, run)
    check("wall time ends a run", v["status"] == "failed" and v["error"] == "wall_time_exceeded", v)


def queue():
    sleeper = {"agent.py": "import time\ntime.sleep(100)\n"}
    runs = [start(other, sleeper, checks=[["git", "diff", "--check"]])]
    for r in range(1, 2):
        until(other, runs[0], lambda v: v["status"] == "running")
        runs.append(start(other, sleeper, checks=[["git", "diff", "--check"]]))
        until(other, runs[1], lambda v: v["status"] == "running")
    runs += [start(other, sleeper, checks=[["git", "diff", "--check"]]) for _ in range(3)]
    status, _, b = call("POST", "/v1/runs", {"instruction": "x", "files": [{"path": "agent.py", "content": "pass"}],
                        "allowedPaths": ["agent.py"], "checks": [["git", "diff", "--check"]]}, other)
    check("a full queue is 429", status == 429 and json.loads(b)["error"] == "run_queue_full", b)
    for r in reversed(runs):
        call("POST", f"/v1/runs/{r}/cancel", b"", other)
    states = [until(other, r)["status"] for r in runs]
    check("all cancelled", states == ["cancelled"] * 5, states)


def listing():
    status, v = get("/v1/runs?limit=2", mine)
    check("runs are listed, newest first", status == 200 and len(v["runs"]) == 2
          and v["runs"][0]["createdAt"] >= v["runs"][1]["createdAt"], v)
    status, w = get("/v1/runs?limit=2&after=" + (v.get("next") or ""), mine)
    check("the cursor goes on", status == 200 and not {r["runId"] for r in w["runs"]} & {r["runId"] for r in v["runs"]}, w)


for f in (repaired, unrepaired, agent_fails, outside, no_tests, cancel, wall_time, queue, listing):
    case(f.__name__, f)
done()
