#!/usr/bin/python3
"""A run's course in a whole instance: cancels that are resisted, each process killed with runs in every phase, events read meanwhile."""
import random, threading
from processes import *

mine = token()
other = operator("token", "create", "--tenant", "other").strip()  # two runs at once
STUBBORN = "import os, signal, time\nfor s in (1, 2, 15):\n    signal.signal(s, signal.SIG_IGN)\n"
TESTS = "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        pass\n"
UNITTEST = [["python3", "-m", "unittest", "discover"]]


def phase(bearer, run, name):
    v = until(bearer, run, lambda v: v.get("phase") == name or v["status"] in TERMINAL)
    if v.get("phase") != name:
        raise AssertionError(f"run {run} was never {name}: {v}")


def cancel(bearer, run):
    status, _, b = call("POST", f"/v1/runs/{run}/cancel", b"", bearer)
    check("a cancel is taken", status == 202, b)


def one_end(bearer, run):
    """Dense events, one of them terminal, the last."""
    lines = events(bearer, run)
    kinds = [e["event_type"] for e in lines]
    ends = [k for k in kinds if k in ("run.completed", "run.failed", "run.cancelled")]
    return [e["sequence"] for e in lines] == list(range(1, len(lines) + 1)) and len(ends) == 1 and kinds[-1] == ends[0]


def resisted():
    """Nothing that a program in a box does keeps a run from being cancelled in its time, which is said here."""
    children = STUBBORN + "for _ in range(10):\n    if os.fork() == 0:\n        break\ntime.sleep(200)\n"
    deaf_test = {"test_x.py": STUBBORN + "time.sleep(200)\n", "agent.py": "pass\n"}
    for what, files, checks, at in (("its agent and ten children ignore every signal", {"agent.py": children}, GIT, "executing"),
                                    ("its check ignores every signal", deaf_test, UNITTEST, "verifying"),
                                    ("nobody resists", SLEEP, GIT, "executing"), ("its box is being made", SLEEP, GIT, None)):
        run = start(mine, files, agent="script", checks=checks)
        if at is None:
            until(mine, run, lambda v: v["status"] == "running")
        else:
            phase(mine, run, at)
        cancel(mine, run)
        call("POST", f"/v1/runs/{run}/cancel", b"", mine)
        v = until(mine, run)
        check(f"cancelled: {what}", (v["status"], v["terminalReason"], v["error"]) == ("cancelled",) + 2 * ("cancelled_by_request",), v)
        check("one terminal event, the last", one_end(mine, run))
        when = {e["event_type"]: e["created_at"] for e in events(mine, run)}
        print(f"from the request to the end: {when['run.cancelled'] - when['run.cancel_requested']} ms ({what})")
    check("no process of a box is left", wait_for(lambda: not in_boxes()), in_boxes())


def raced():
    """Cancels at any moment of short runs: each run has one end, which stays, and who lost is in the audit log alone."""
    rng, runs = random.Random(1), []
    for _ in range(24):
        run = start(mine, {"agent.py": "pass\n"}, agent="script", checks=GIT)
        time.sleep(rng.random() * 0.5)
        status, _, b = call("POST", f"/v1/runs/{run}/cancel", b"", mine)
        runs.append((run, status, json.loads(b)["status"]))
    ends = {run: until(mine, run) for run, _, _ in runs}
    print("ended as", {s: [v["status"] for v in ends.values()].count(s) for s in TERMINAL})
    for run, status, said in runs:
        v = ends[run]
        if (status, said) == (200, "completed") and v["status"] == "completed":
            continue
        if not (status in (200, 202) and v["status"] == "cancelled" and v["terminalReason"] == "cancelled_by_request"):
            check("a cancel that was taken is the end", False, (status, said, v))
    check("each has one terminal event, the last", all(one_end(mine, run) for run in ends))
    log = [json.loads(line) for line in operator("audit", "tail", "-n", "100000").splitlines()]
    lost = {run for run, v in ends.items() if v["status"] == "completed"}
    lines = {x["run"] for x in log if x["event"] == "run.overruled" and x["reason"] == "cancelled_by_request"}
    check("each cancel that came too late has its line", lost <= lines and not {r for r in ends if r not in lost} & lines, (lost, lines))


def killed_everywhere():
    """For each process: one run executing, one verifying, one queued, one ended; then it is killed."""
    slow = "import time\ntime.sleep(2.5)\n"
    alone = ("pinfold-fcgi", "pinfold-gateway", "pinfold-stored", "pinfold-push")
    ended = start(other, {"agent.py": "pass\n"}, agent="script", checks=GIT)
    want, want_events = until(other, ended), events(other, ended)
    for names in [(n,) for n in CHILDREN] + [("pinfold-sandboxd",), ("pinfold-fcgi", "pinfold-sandboxd"),
                                             ("pinfold-stored", "pinfold-steward"), CHILDREN + ("pinfold-sandboxd",)]:
        what = " and ".join(n.removeprefix("pinfold-") for n in names)
        verifying = start(other, {"agent.py": "pass\n", "test_x.py": slow + TESTS}, agent="script", checks=UNITTEST)
        phase(other, verifying, "verifying")
        executing_ = start(other, {"agent.py": slow, "test_x.py": TESTS}, agent="script", checks=UNITTEST)
        phase(other, executing_, "executing")
        queued = start(other, {"agent.py": "pass\n", "test_x.py": TESTS}, agent="script", checks=UNITTEST)
        status = get("/v1/runs/" + queued, other)[1]["status"]
        before = {n: pid_of(n) for n in names}
        for n in names:
            if before[n]:
                try:
                    os.kill(before[n], signal.SIGKILL)
                except ProcessLookupError:
                    pass  # it went with another
        check(f"{what} come back", wait_for(lambda: all(pid_of(n) not in (None, before[n]) for n in names)) and ready())
        going_on = set(names) <= set(alone)
        for where, run in (("executing", executing_), ("verifying", verifying)):
            v = until(other, run)
            right = ("completed", None) if going_on else ("failed", "controller_restarted")
            check(f"{what} killed: the run that was {where} is {right[0]}", (v["status"], v.get("error")) == right and
                  v["terminalReason"] == (right[1] or right[0]), v)
            check("one terminal event, the last", one_end(other, run), events(other, run))
        v = until(other, queued)
        kinds = [e["event_type"] for e in events(other, queued)]
        check(f"{what} killed: the queued run stayed queued and ran, once", status == "queued" and v["status"] == "completed" and
              kinds.count("run.started") == 1 and one_end(other, queued), (status, v, kinds))
        check("what had ended is what it was", (until(other, ended), events(other, ended)) == (want, want_events))
        check("no process of a box is left", wait_for(lambda: not in_boxes()), in_boxes())


NOISE = """import json, os, urllib.request
token, run = open('/workspace/.pinfold-event-token').read().strip(), os.environ['PINFOLD_RUN_ID']
url = os.environ['PINFOLD_MODEL_GATEWAY_URL'].split('/internal/')[0] + '/internal/v1/runs/' + run + '/events'
for k in range(38):
    lines = [json.dumps({'event_type': 'noise.made', 'run_id': run, 'task_id': run, 'sequence': k * 100 + i, 'data': {}}) + chr(10)
             for i in range(100)]
    rq = urllib.request.Request(url, json.dumps({'lines': lines}).encode(), {'Authorization': 'Bearer ' + token, 'Content-Type': 'application/json'})
    urllib.request.build_opener(urllib.request.ProxyHandler({})).open(rq).read()
"""


def listeners():
    """Three that ask for what is new while thousands come, and one that reads a byte at a time: each has all, once, in order."""
    run = start(mine, {"agent.py": NOISE}, agent="script", checks=GIT)
    seen, rounds = [[], [], []], [0, 0, 0]

    def listen(i):
        while not (seen[i] and seen[i][-1]["event_type"] in ("run.completed", "run.failed", "run.cancelled")):
            after = seen[i][-1]["sequence"] if seen[i] else 0
            status, _, b = call("GET", f"/v1/runs/{run}/events?after={after}", bearer=mine)
            if status != 200:
                raise AssertionError((status, b[:200]))
            seen[i] += [json.loads(line) for line in b.splitlines()]
            rounds[i] += 1

    threads = [threading.Thread(target=listen, args=(i,)) for i in range(3)]
    for t in threads: t.start()
    wait_for(lambda: len(seen[0]) > 500)
    host, port = URL.split("//")[1].rstrip("/").split(":")
    slow = socket.create_connection((host, int(port.split("/")[0])))
    slow.sendall(f"GET /v1/runs/{run}/events HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {mine}\r\n\r\n".encode())
    dribble = b""
    while any(t.is_alive() for t in threads):
        dribble += slow.recv(1)
        time.sleep(0.1)
    for t in threads: t.join()
    slow.close()
    v = until(mine, run)
    check("the run is not disturbed", v["status"] == "completed", v)
    check("the slow reader got a beginning", dribble != b"" and b"HTTP/1.".startswith(dribble[:7]), dribble[:20])
    all_events = events(mine, run)
    check(f"each of three listeners has all events once, in {rounds} rounds", all(s == all_events for s in seen) and
          len(all_events) > 3000 and [e["sequence"] for e in all_events] == list(range(1, len(all_events) + 1)), [len(s) for s in seen])
    last = len(all_events)
    for cursor, want in (("-1", 400), ("%205", 400), ("5x", 400), ("0x10", 400), ("1e3", 400), ("05", 400), ("", 400), ("9" * 20, 400),
                         (str(2 ** 63), 400), ("+5", 400), (str(last - 1), 1), (str(last), 0), (str(last + 1), 0)):
        status, _, b = call("GET", f"/v1/runs/{run}/events?after={cursor}", bearer=mine)
        got = len(b.splitlines()) if status == 200 else status
        check(f"after={cursor[:24]}: {want}", got == want and (status == 200 or json.loads(b)["field"] == "after"), (status, b[:200]))


for f in (resisted, raced, killed_everywhere, listeners):
    case(f.__name__, f)
done()
