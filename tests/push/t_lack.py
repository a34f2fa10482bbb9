#!/usr/bin/python3 -B
"""What passes is nobody's fault: with the first allocation of pinfold-push failing, then its second, and so on, and the same
with descriptors and what is received, a push is sent or has failed, and is never told to be refused or gone; whatever arrives
can be opened; and it goes on."""
import errno, os, shutil, sys, tempfile
from service import *
from sender import *
sys.path.insert(0, os.path.join(HERE, "../fault"))
from faults import ERRNO, FD, MEM, RECV, SEND, Control

MOST, HOST = 6000, "push.example.net"
folder = tempfile.mkdtemp(prefix="pf-push-lack.")
os.chmod(folder, 0o755)
certificates(folder, HOST)
service, control = Service(folder, keep=False), Control(folder)
browser = Browser(f"https://{HOST}/201/x")
s = Sender(b64(bytes(range(1, 33))), hosts=(HOST,), ca_file=folder + "/ca.pem", unsafe_loopback_port=service.port,
           program="tests/fault/faulty-push", environ={"PINFOLD_TEST_FAULT": "push:" + control.folder + "/control"})
passed = failed = 0


def check(what, ok, detail=""):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print(f"FAIL {what}: {detail}", flush=True)


def dead():
    return s.p.poll() is not None


for what, kind, why in (("no memory", MEM, errno.ENOMEM), ("no descriptors", FD, errno.EMFILE), ("nothing is received", RECV, errno.EMFILE),
                        ("nothing is sent", SEND, errno.ENOBUFS)):
    nth, wrong, deaths, outcomes = 1, None, 0, {}
    check("it is ready", wait_for(lambda: s.store.key) and s.store.told(s.store.put(browser)) == ("sent", 0))
    while nth < MOST:
        control.arm("push", kind, ERRNO, why, countdown=nth)
        id = s.store.put(browser)
        wait_for(lambda: s.store.done.get(id) or dead())
        met = control.fired("push")
        control.clear()
        if dead():
            deaths += 1
            s.again()
            s.store.key = None
            wait_for(lambda: s.store.key)
        else:
            got = s.store.told(id)[0]
            outcomes[got] = outcomes.get(got, 0) + 1
            if got not in ("sent", "failed"):
                wrong = wrong or (nth, got)
        if not met:
            break
        nth += 1 if nth < 40 else 41
    check(f"{what}: nobody else's fault", not wrong, wrong)
    check(f"{what}: it lives", deaths == 0, f"{deaths} deaths: {s.said()[-300:]}")
    check(f"{what}: it goes on", s.store.told(s.store.put(browser)) == ("sent", 0))
    print(f"{what}: {nth} calls: {outcomes}", flush=True)
bodies = [r.body for r in service.requests if len(r.body) == 1126]
check("whatever arrived can be opened", bodies and all(browser.opens(*bodies)))
check("it ends with sandboxd", s.stop() == 0)
shutil.rmtree(folder)
print(f"{passed} passed, {failed} failed")
raise SystemExit(failed != 0)
