#!/usr/bin/env python3
"""What passes is never called a bug, nor anybody's mistake, by the gateway: each request of a box is made again and again while
the gateway, whose calls can be made to fail (tests/fault/shim.c), has no memory at its first allocation, its second, and
so on; the same with descriptors. Ends with "N passed, N failed". Run in a build folder; needs root.
"""
import errno
import os
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "fault")]
from cases_common import *  # noqa: E402,F403
from faults import ERRNO, FD, MEM, RECV, Control  # noqa: E402
from rig import *  # noqa: E402,F403
import rig as rig_module  # noqa: E402
from patience import wait_for  # noqa: E402

MOST = 3000
rig_module.PATIENCE = 20  # a connection that is dropped is no failure here
PASSES = ("resources_exhausted", "store_unavailable", "storage_full")


def requests(run):
    tokens = {a: run.token(a) for a in ("model", "events", "approvals")}
    yield "events", lambda: run.send_events([run.line(), run.line(sequence=2)], tokens["events"]), (202,)
    yield "approvals", lambda: get(run.port, run.path("approvals"), tokens["approvals"]), (202, 404)
    yield "models", lambda: get(run.port, "/internal/v1/models", tokens["model"]), (200,)
    # libcurl says of some of its wants that nobody answered.
    yield "chat", lambda: run.chat(token=tokens["model"]), (200, 504)
    yield "a bad token", lambda: get(run.port, "/internal/v1/models", "x"), (401,)


def tried(make):
    """Status and code; status 0: no answer."""
    try:
        a = make()
        return a.status, a.code
    except (OSError, IndexError):
        return 0, None


def taken(run):
    """The gateway has the run's listener, which reaches it after whoever sent it was answered."""
    wait_for(lambda: tried(lambda: get(run.port, "/internal/v1/models", "x"))[0] == 401)


def sweep(rig, control, what, kind, why):
    run, told, deaths = rig.run(budget=100000), 0, 0
    taken(run)
    for name, make, right in requests(run):
        wrong, nth = None, 1
        # After a hundred not each: a call to the provider allocates a thousand times.
        while nth < MOST:
            control.arm("gateway", kind, ERRNO, why, countdown=nth)
            status, code = tried(make)
            met = control.fired("gateway")
            control.clear()
            if status == 0:
                for _ in range(50):  # it may be dying
                    if not os.path.exists("/proc/%d/fd/0" % rig.pid) or tried(make)[0] in right:
                        break
                    time.sleep(0.02)
                if not os.path.exists("/proc/%d/fd/0" % rig.pid):
                    rig.restart()
                    taken(run)
                    deaths += 1
            elif status not in right:
                told += 1
                if (status not in (503, 507) or code not in PASSES) and not wrong:
                    wrong = nth, status, code
            if not met:
                break
            nth += 1 if nth < 100 else 17
        check(not wrong and nth < MOST, "%s: %s: %r (of %d)" % (what, name, wrong, nth - 1))
        print("%s: %s: %d calls" % (what, name, nth - 1), flush=True)
    check(tried(run.chat)[0] == 200, "%s: it goes on" % what)
    check(deaths == 0, "%s: it died %d times of it" % (what, deaths))
    print("%s: %d refusals, %d deaths" % (what, told, deaths), flush=True)


def main(top, models):
    control = Control(top)
    model = Model(top, "plain", {"model": MODEL, "rules": [{"answer": {"content": "done"}}]}, tls=False)
    models.append(model)
    rig = Rig(top, {"PINFOLD_GATEWAY": "tests/fault/faulty-gateway", "PINFOLD_TEST_FAULT": "gateway:" + control.folder + "/control"})
    rig.tell("secret", "signing", RUN_SECRET)
    rig.tell("timeout", 3000)
    rig.tell("provider", "p-main", model.url, "-", "-", 1)
    rig.tell("profile", "main", "p-main", MODEL)
    rig.start()
    for what, kind, why in (("no memory", MEM, errno.ENOMEM), ("no descriptors", FD, errno.EMFILE), ("no descriptors to receive", RECV, errno.EMFILE)):
        sweep(rig, control, what, kind, why)
    rig.stop()


sys.exit(alone(main))
