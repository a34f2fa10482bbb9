#!/usr/bin/python3
"""Any one process is killed; the service comes back by itself and nothing acknowledged is lost."""
from client import *
import signal, threading

mine = token()
GIT = [["git", "diff", "--check"]]
SLEEP = {"agent.py": "import time\ntime.sleep(100)\n"}


def pid_of(name):
    """The process of this instance with that program."""
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.path.basename(os.readlink(f"/proc/{p}/exe")) == name and os.readlink(f"/proc/{p}/exe").startswith(INSTANCE):
                return int(p)
        except OSError:
            pass
    return None


def ready(seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if call("GET", "/readyz")[0] == 200:
                return True
        except OSError:
            pass
        time.sleep(0.1)
    return False


def killed(name):
    before = pid_of(name)
    os.kill(before, signal.SIGKILL)
    end = time.monotonic() + 20
    while time.monotonic() < end and pid_of(name) in (before, None):
        time.sleep(0.05)
    check(f"{name} is restarted", pid_of(name) not in (before, None))
    check(f"ready after the death of {name}", ready())


def each_child():
    done_run = start(mine, {"agent.py": "pass\n"}, agent="script", checks=GIT)
    want = until(mine, done_run)
    for name in ("pinfold-fcgi", "pinfold-gateway", "pinfold-stored"):
        run = start(mine, SLEEP, agent="script", checks=GIT)
        until(mine, run, lambda v: v.get("phase") == "executing")
        killed(name)
        v = until(mine, run, lambda v: True, 30)
        check(f"a run goes on while {name} is restarted", v["status"] == "running", v)
        call("POST", f"/v1/runs/{run}/cancel", b"", mine)
        check(f"and can be cancelled after {name} is back", until(mine, run)["status"] == "cancelled")
        check("a finished run is what it was", {k: v for k, v in until(mine, done_run).items()} == want)


def steward():
    run = start(mine, SLEEP, agent="script", checks=GIT)
    until(mine, run, lambda v: v.get("phase") == "executing")
    killed("pinfold-steward")
    v = until(mine, run)
    check("a run whose steward died has failed as restarted", (v["status"], v["error"]) == ("failed", "controller_restarted"), v)
    v = until(mine, start(mine, {"agent.py": "pass\n"}, agent="script", checks=GIT))
    check("a new run works after it", v["status"] == "completed", v)


def sandboxd():
    running = start(mine, SLEEP, agent="script", checks=GIT)
    until(mine, running, lambda v: v.get("phase") == "executing")
    before = pid_of("pinfold-sandboxd")
    os.kill(before, signal.SIGKILL)
    end = time.monotonic() + 30
    while time.monotonic() < end and pid_of("pinfold-sandboxd") in (before, None):
        time.sleep(0.05)
    check("sandboxd is started again", pid_of("pinfold-sandboxd") not in (before, None))
    check("ready after the death of sandboxd", ready())
    v = until(mine, running)
    check("its run has failed as restarted", (v["status"], v["error"]) == ("failed", "controller_restarted"), v)
    left = [p for p in filter(str.isdigit, os.listdir("/proc")) if b"agent.py" in cmdline(p)]
    check("no process of the run is left", left == [], left)
    v = until(mine, start(mine, {"agent.py": "pass\n"}, agent="script", checks=GIT))
    check("a new run works after it", v["status"] == "completed", v)


def cmdline(p):
    try:
        return open(f"/proc/{p}/cmdline", "rb").read()
    except OSError:
        return b""


def under_load():
    """Runs created while stored is killed: each answered 202 exists afterwards."""
    made, stop = [], threading.Event()

    def create():
        while not stop.is_set():
            try:
                made.append(start(mine, {"agent.py": "pass\n"}, agent="script", checks=GIT))
            except (AssertionError, OSError):
                pass
            time.sleep(0.05)

    t = threading.Thread(target=create)
    t.start()
    for _ in range(3):
        time.sleep(1)
        os.kill(pid_of("pinfold-stored"), signal.SIGKILL)
        ready()
    stop.set()
    t.join()
    states = {until(mine, r, seconds=120)["status"] for r in made}
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
for f in (each_child, steward, sandboxd, under_load, audited):
    case(f.__name__, f)
done()
