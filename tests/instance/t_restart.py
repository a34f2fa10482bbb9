#!/usr/bin/python3
"""Any child is killed; it alone comes back, its sockets never refuse, and nothing acknowledged is lost."""
import threading
from processes import *

mine = token()


def each_child():
    done_run = start(mine, {"agent.py": "pass\n"}, agent="script", checks=GIT)
    want = until(mine, done_run)
    others = {n: pid_of(n) for n in CHILDREN + ("pinfold-sandboxd",)}
    for name in ("pinfold-fcgi", "pinfold-gateway", "pinfold-stored"):
        run = executing(mine)
        check(f"{name} is restarted", kill(name))
        check(f"ready after the death of {name}", ready())
        others[name] = pid_of(name)
        v = until(mine, run, lambda v: True)
        check(f"a run goes on while {name} is restarted", v["status"] == "running", v)
        call("POST", f"/v1/runs/{run}/cancel", b"", mine)
        check(f"and can be cancelled after {name} is back", until(mine, run)["status"] == "cancelled")
        check("a finished run is what it was", until(mine, done_run) == want)
    now = {n: pid_of(n) for n in others}
    check("no other process was touched", now == others, (now, others))


def steward():
    run = executing(mine)
    check("the steward is restarted", kill("pinfold-steward") and ready())
    v = until(mine, run)
    check("a run whose steward died has failed as restarted", (v["status"], v["error"]) == ("failed", "controller_restarted"), v)
    check("its box is gone", wait_for(lambda: not in_boxes()))
    v = until(mine, start(mine, {"agent.py": "pass\n"}, agent="script", checks=GIT))
    check("a new run works after it", v["status"] == "completed", v)


def sockets_stay():
    """Whoever connects meanwhile waits. A request that the dying process held is lost, no other."""
    for name, path, kind in (("pinfold-fcgi", "public/fcgi.sock", socket.SOCK_STREAM),
                             ("pinfold-stored", "admin/admin.sock", socket.SOCK_SEQPACKET)):
        seen, bad, stop = set(), [], threading.Event()

        def knock():
            while not stop.is_set():
                seen.add(connects(path, kind))
                time.sleep(0.002)

        def look():
            while not stop.is_set():
                status = answers("/healthz")
                if status != 200:
                    bad.append(status)
        threads = [threading.Thread(target=f) for f in (knock, look)]
        for t in threads: t.start()
        for _ in range(3):
            kill(name)
            ready()
        stop.set()
        for t in threads: t.join()
        check(f"{path} never refuses while {name} is restarted", seen == {"ok"}, seen)
        check(f"at most one request a death of {name} is lost", len(bad) <= (3 if name == "pinfold-fcgi" else 0), bad)


CALLER = """
import json, os, time, urllib.request
url, token, event = os.environ["PINFOLD_MODEL_GATEWAY_URL"], *(open("/workspace/.pinfold-%s-token" % n).read().strip() for n in ("run", "event"))
line = json.dumps({"event_type": "calls.begin", "run_id": os.environ["PINFOLD_RUN_ID"], "task_id": os.environ["PINFOLD_RUN_ID"], "sequence": 1,
                   "data": {}}) + "\\n"
began, good, bad, last, gap = time.time(), 0, [], time.monotonic(), 0
while good < 400 and time.time() < began + 120:
    r = urllib.request.Request(url + "/models", headers={"Authorization": "Bearer " + token})
    if good == 1 and line:
        r = urllib.request.Request(url + "/runs/" + os.environ["PINFOLD_RUN_ID"] + "/events", json.dumps({"lines": [line]}).encode(),
                                   {"Authorization": "Bearer " + event, "Content-Type": "application/json"})
        line = ""
    try:
        with urllib.request.urlopen(r, timeout=100) as a:
            assert a.status in (200, 202)
        good, gap, last = good + 1, max(gap, time.monotonic() - last), time.monotonic()
    except Exception as e:
        bad.append(repr(e))
    time.sleep(0.01)
json.dump({"began": began, "ended": time.time(), "good": good, "bad": bad, "gap": gap}, open("report.json", "w"))
"""


def agent_goes_on():
    """The gateway gets its listeners again: to the agent, each death is at most the call that was under way."""
    run = executing(mine, {"agent.py": CALLER, "report.json": "{}\n"}, allowed=["report.json"], limits={"wallTimeSeconds": 200})
    until(mine, run, lambda v: any(e["event_type"] == "calls.begin" for e in events(mine, run)))
    at = []
    for _ in range(3):
        at.append(time.time())
        kill("pinfold-gateway")
        ready()
    v = until(mine, run)
    line = [l for l in artifact(mine, run, "patch").splitlines() if l.startswith("+{")]
    r = json.loads(line[0][1:])
    check("the run completes", v["status"] == "completed", v)
    check("its agent's calls go on after each death of the gateway", r["good"] == 400 and len(r["bad"]) <= 3, r)
    check("all deaths fell into its life", r["began"] < at[0] and at[-1] < r["ended"], (r, at))
    print(f"longest time between two answers: {r['gap']:.3f} s; calls lost: {r['bad']}")


class Broken:
    """Within it, the program ends whenever it is started."""

    def __init__(self, name):
        self.name, self.path = name, INSTANCE + "/usr/libexec/pinfold/" + name

    def __enter__(self):
        pid = wait_for(lambda: pid_of(self.name))
        os.rename(self.path, self.path + ".good")
        with open(self.path, "w") as f:
            f.write("#!/bin/sh\nexit 1\n")
        os.chmod(self.path, 0o755)
        os.kill(pid, signal.SIGKILL)

    def __exit__(self, *_):
        os.rename(self.path + ".good", self.path)


REFUSED = """
import json, os, time, urllib.error, urllib.request
token, began, seen = open("/workspace/.pinfold-run-token").read().strip(), time.time(), []
while time.time() < began + 150 and (not seen or seen[-1]["status"] != 200):
    r = urllib.request.Request(os.environ["PINFOLD_MODEL_GATEWAY_URL"] + "/models", headers={"Authorization": "Bearer " + token})
    try:
        with urllib.request.urlopen(r, timeout=60) as a:
            if seen:
                seen.append({"status": a.status})
    except urllib.error.HTTPError as e:
        seen.append({"status": e.code, "retry": e.headers["Retry-After"], "error": json.load(e)["error"]})
    time.sleep(0.05)
json.dump(seen, open("report.json", "w"))
"""


def store_away():
    """A store that does not come back: 503 with Retry-After after the patience, on both sides, and then all is well."""
    run = executing(mine, {"agent.py": REFUSED, "report.json": "[]\n"}, allowed=["report.json"], limits={"wallTimeSeconds": 200})
    with Broken("pinfold-stored"):
        status, headers, body = call("GET", "/v1/runs", bearer=mine)
        check("503 with Retry-After while the store is away", status == 503 and json.loads(body)["error"] == "store_unavailable" and
              int(headers["retry-after"]) > 0, (status, body))
        check("not ready", wait_for(lambda: answers() == 503))
        reasons = json.loads(call("GET", "/readyz")[2]).get("reasons")
        check("and says why", reasons == ["the store does not answer"], reasons)
        call("GET", "/v1/runs", bearer=mine)  # as long again: by its end the agent has had its answer too
    check("ready once it can be started", ready())
    v = until(mine, run)
    line = [l for l in artifact(mine, run, "patch").splitlines() if l.startswith("+[")]
    seen = json.loads(line[0][1:]) if line else v
    check("the agent was told the same, and then served", line and seen[-1] == {"status": 200} and
          all(s["error"] == "store_unavailable" and s["retry"] for s in seen[:-1]), seen)


def crash_loop():
    """A gateway that ends at once: readyz says so, nobody else minds, and it serves as soon as it can."""
    others = {n: pid_of(n) for n in CHILDREN + ("pinfold-sandboxd",) if n != "pinfold-gateway"}
    with Broken("pinfold-gateway"):
        check("not ready", wait_for(lambda: answers() == 503))
        status, _, body = call("GET", "/readyz")
        check("and says why", json.loads(body).get("reasons") == ["the gateway does not serve"], body)
        check("the rest of the API works", get("/v1/runs", mine)[0] == 200)
        now = {n: pid_of(n) for n in others}
        check("no other process was touched", now == others, (now, others))
    check("ready once it can be started", ready())
    v = until(mine, start(mine, {"agent.py": "pass\n"}, agent="script", checks=GIT))
    check("and runs work", v["status"] == "completed", v)


def under_load():
    """Runs created while stored is killed: each answered 202 exists afterwards."""
    made, refused, stop = [], [], threading.Event()

    def create():
        while not stop.is_set():
            try:
                made.append(start(mine, {"agent.py": "pass\n"}, agent="script", checks=GIT))
            except (AssertionError, OSError) as e:
                if "run_queue_full" not in str(e):
                    refused.append(str(e))
            time.sleep(0.05)

    t = threading.Thread(target=create)
    t.start()
    for i in range(3):
        wait_for(lambda: len(made) > 4 * i)
        kill("pinfold-stored")
        ready()
    stop.set()
    t.join()
    check("every creation was answered, if late", refused == [], refused)
    states = {until(mine, r)["status"] for r in made}
    acknowledged.extend(made)
    check(f"{len(made)} acknowledged runs all exist and end", len(made) > 3 and states <= {"completed", "failed"}, states)


def audited():
    """After all those deaths: each acknowledged run has one line of its creation and one of its end."""
    out = operator("audit", "verify")
    check("the audit log is whole", out.startswith("the audit log is whole"), out)
    log = [json.loads(line) for line in operator("audit", "tail", "-n", "100000").splitlines()]
    undone = {x["of"] for x in log if x["event"] == "audit.undone"}
    for event in ("run.create", "run.finish"):
        have = [x["run"] for x in log if x["event"] == event and x["seq"] not in undone]
        wrong = {r: have.count(r) for r in acknowledged if have.count(r) != 1}
        check(f"one line {event} for each acknowledged run", not wrong, wrong)


acknowledged = []
for f in (each_child, steward, sockets_stay, agent_goes_on, crash_loop, store_away, under_load, audited):
    case(f.__name__, f)
done()
