#!/usr/bin/python3 -B
"""While a person is waited for, an agent is frozen and its wall time stands still; however it ends, nothing is left of it."""
from asking import *
from processes import *

HOLD = 'ask("q1", "make test")\ntell(q1=wait("q1"))\n'


def held(code=HOLD, **more):
    """A run whose agent waits and is frozen: its id, the agent's pid and its group."""
    run = begin(code, **more)
    waiting(run, "q1")
    pid = wait_for(lambda: agent_of(run))
    group = group_of(pid)
    check("its agent is frozen", wait_for(lambda: frozen(group)), (run, group))
    return run, pid, group


def runner_of(pid):
    return int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])


def longer_than_its_wall_time():
    run, pid, group = held("import time\n" + HOLD + "began = time.monotonic()\n" + 'tell(again=poll("q1")[0])\n', limits={"wallTimeSeconds": 5})
    check("its runner is not", frozen(group_of(runner_of(pid))) is False)
    before, used = time.monotonic(), open(f"/proc/{pid}/stat").read().split()[13:15]
    time.sleep(12)
    check("twelve seconds later still, and it has used no processor time", frozen(group) and open(f"/proc/{pid}/stat").read().split()[13:15] == used)
    v = get("/v1/runs/" + run, mine)[1]
    check("the run waits", (v["status"], v["phase"]) == ("running", "awaiting_approval"), v)
    answer(run, "q1", "allow_once")
    check("it goes on and hears of it", hears(run, "q1")[:3] == [200, "decided", "allow_once"])
    v = until(mine, run)
    check("a run of 5 s that waited 12 s completes", v["status"] == "completed" and v["finishedAt"] - v["startedAt"] > 12000, v)
    print(f"  {time.monotonic() - before:.1f} s waited; 5 s of wall time")


def wall_time_is_left():
    """What was not waited for still counts."""
    run, _, _ = held(HOLD + "time.sleep(600)\n", limits={"wallTimeSeconds": 5})
    answer(run, "q1", "allow_once")
    v = until(mine, run)
    check("its wall time ends it afterwards", v["terminalReason"] == "wall_time_exceeded", v)


def expired():
    run, _, group = held(limits={"approvalWaitSeconds": 4})
    check("nobody answers: it is thawed and hears of it", hears(run, "q1")[:2] == [200, "expired"], told(run))
    check("and the run goes on to its end", until(mine, run)["status"] == "completed")


def cancelled():
    """TERM reaches it, so it is not frozen then; what it leaves is kept."""
    code = ('import signal, sys\ndef term(*_):\n    open("/workspace/source/agent.py", "a").write("# asked to end\\n")\n    sys.exit(3)\n'
            'signal.signal(signal.SIGTERM, term)\n' + HOLD)
    run, pid, group = held(code)
    began = time.monotonic()
    call("POST", f"/v1/runs/{run}/cancel", b"", mine)
    v = until(mine, run)
    print(f"  cancelled while frozen: {time.monotonic() - began:.2f} s (at most 7)")
    check("a cancel ends it", v["status"] == "cancelled", v)
    check("the agent was asked first", "asked to end" in artifact(mine, run, "patch"))
    check("nothing is left", agent_of(run) is None and frozen(group) is None)


def killed(name):
    run, pid, group = held()
    check(f"{name} comes back", kill(name) and ready())
    v = until(mine, run)
    check(f"a run that waited when {name} died has failed as restarted", (v["status"], v["error"]) == ("failed", "controller_restarted"), v)
    check("its question is over, undecided", [d["decision"] for d in v["approvalDecisions"]] == ["expired"], v["approvalDecisions"])
    check("no process and no group of it is left", wait_for(lambda: agent_of(run) is None and frozen(group) is None))


def others_die(name):
    """Neither the decision nor the agent is lost when a process dies that need not be there while one waits."""
    run, pid, group = held()
    check(f"{name} comes back", kill(name) and ready())
    check("it is frozen still", frozen(group))
    answer(run, "q1", "allow_once")
    check(f"after the death of {name} the agent hears of its answer", hears(run, "q1")[:3] == [200, "decided", "allow_once"], told(run))
    check("and the run completes", until(mine, run)["status"] == "completed")


def working_on():
    """Another thread of the same agent asks, too; both hear."""
    code = '''
import threading
def other():
    ask("q2", "make install")
    tell(q2=wait("q2"))
t = threading.Thread(target=other)
t.start()
''' + HOLD + "t.join()\n"
    run, _, group = held(code)
    waiting(run, "q2")
    answer(run, "q2", "deny")
    check("while one waits it stays frozen", wait_for(lambda: frozen(group)))
    answer(run, "q1", "allow_once")
    check("then each hears its own", (hears(run, "q1")[2], hears(run, "q2")[2]) == ("allow_once", "deny"), told(run))
    check("and it completes", until(mine, run)["status"] == "completed")


case("longer than its wall time", longer_than_its_wall_time)
case("wall time", wall_time_is_left)
case("expired", expired)
case("cancelled", cancelled)
case("working on", working_on)
for name in ("pinfold-gateway", "pinfold-stored", "pinfold-fcgi"):
    case(name, lambda: others_die(name))
for name in ("pinfold-steward", "pinfold-sandboxd"):
    case(name, lambda: killed(name))
done()
