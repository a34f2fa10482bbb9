#!/usr/bin/python3 -B
"""What passes is never called a bug, of the public side alone: each request is made again and again while the program, whose
calls can be made to fail (tests/fault/shim.c), has no memory at its first allocation, its second, and so on, until it
asked for none that failed; the same with descriptors, with what it sends the store, and with a disk that does not read.

usage: lack.py faulty-fcgi
"""
import errno, hashlib, itertools, json, os, re, sys, time
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "fault")]
from fastcgi import *
from fakestore import COMPLETED, RUNNING, question
from faults import ERRNO, FD, MEM, READ, RECV, SEND, WRITE, Control
from follow import Stream
from rig import Rig
from wire import SPEC

passed = failed = 0
MOST = 400
LARGE = {"instruction": "x" * 20000, "files": [{"path": "a.py", "content": "y" * 50000}], "allowedPaths": ["a.py"],
         "checks": [["git", "diff", "--check"]]}
POINT = "BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"  # the generator of P-256
SMALL = dict(LARGE, instruction="Repair it.", files=[{"path": "a.py", "content": "y"}])


def check(what, ok, got=""):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    print(("ok   " if ok else "FAIL ") + what + ("" if ok else f": {got!r}"), flush=True)


def start():
    """With two runs: one whose summary is large has ended, one goes on."""
    global rig
    rig = Rig(sys.argv[1], threads=1, threads_max=1)
    rig.scraper = rig.store.token("main", rights=2)
    ids = {}
    for name, body in (("done", LARGE), ("live", SMALL)):
        a = ask(rig.path, request("POST", "/v1/runs", rig.token, json.dumps(body).encode()))
        ids[name] = a.json["runId"]
    rig.store.runs["main", ids["done"]].update(state=COMPLETED, artifacts={"patch": b"p" * 70000, "result": b"r"},
                                             asked=[question(ids["done"], "q1", 1, 1), question(ids["done"], "q2", preview="p" * 9000)], open=["q2"])
    rig.store.runs["main", ids["live"]].update(state=RUNNING)
    return ids


def tried(data):
    try:
        return ask(rig.path, data)
    except OSError:
        return None  # it is dying


def ready():
    """Waits until it serves; one that has died is started again: True."""
    died = False
    for _ in range(1000):
        if not rig.alive():
            rig.again()
            died = True
        a = tried(request("GET", "/readyz"))
        if a is not None and a.status == 200:
            return died
        time.sleep(0.02)
    sys.exit("it does not serve again")


def requests(ids):
    """Name, what makes one, and the statuses that are right. Every public route but one, which only waits."""
    run, tries = "/v1/runs/" + ids["done"], itertools.count(1)
    def pair():
        n = next(tries)
        rig.store.codes[hashlib.sha256(b"ABCDEFGH").digest()] = "main"
        return request("POST", "/v1/pair", body=json.dumps({"code": "ABCDEFGH", "label": f"x{n}"}).encode(), more=[("REMOTE_ADDR", f"10.0.{n >> 8}.{n & 255}")])
    yield "POST /v1/pair", pair, (201,)
    gets = ("/healthz", "/readyz", "/openapi.json", "/v1/limits", "/v1/model-profiles", "/v1/runs", "/v1/runs?limit=1&status=running", run,
            "/v1/devices", "/v1/inbox", "/v1/receipts", run + "/approvals", run + "/events", run + "/artifacts", run + "/artifacts/patch", run + "/artifacts/events", run + "/artifacts/nothing")
    for path in gets:
        yield "GET " + path.replace(ids["done"], "RUN"), lambda: request("GET", path, rig.device if path in ("/v1/inbox", "/v1/receipts") else rig.token), (200, 404)
    yield "GET /metrics", lambda: request("GET", "/metrics", rig.scraper), (200,)
    for name, body in (("small", SMALL), ("large", LARGE)):
        yield f"POST /v1/runs ({name})", lambda: request("POST", "/v1/runs", rig.token, json.dumps(body).encode()), (202,)
    archive = b"\x28\xb5\x2f\xfd" + b"a" * 200000
    there = "/v1/sources/" + hashlib.sha256(archive).hexdigest()
    yield "POST /v1/sources", lambda: request("POST", "/v1/sources", rig.token, archive, [("CONTENT_TYPE", "application/zstd")]), (200, 201)
    yield "GET /v1/sources/SOURCE", lambda: request("GET", there, rig.token), (200,)
    yield "DELETE /v1/sources/SOURCE", lambda: request("DELETE", there, rig.token), (204, 404)
    yield "POST /v1/runs/RUN/cancel", lambda: request("POST", f"/v1/runs/{ids['live']}/cancel", rig.token, b""), (202,)
    yield "DELETE /v1/runs/RUN", lambda: request("DELETE", f"/v1/runs/{ids['live']}", rig.token), (409,)
    for decision in ("deny", "allow_session"):
        yield f"POST {run.replace(ids['done'], 'RUN')}/approvals/q2 ({decision})", lambda: request(
            "POST", run + "/approvals/q2", rig.device, json.dumps({"decision": decision, "digest": "64" * 32}).encode()), (200, 202)
    yield f"DELETE {run.replace(ids['done'], 'RUN')}/approvals/q2/grant", lambda: request("DELETE", run + "/approvals/q2/grant", rig.device), (404,)
    # The store of dictionaries says that push is not set up, and no host is allowed.
    yield "GET /v1/push/subscriptions", lambda: request("GET", "/v1/push/subscriptions", rig.device), (503,)
    yield "POST /v1/push/subscriptions", lambda: request("POST", "/v1/push/subscriptions", rig.device, json.dumps({
        "endpoint": "https://fcm.googleapis.com/x", "keys": {"p256dh": POINT, "auth": "A" * 22}}).encode()), (400,)
    yield "DELETE /v1/push/subscriptions", lambda: request("DELETE", "/v1/push/subscriptions", rig.device), (204,)
    yield "DELETE /v1/devices/x1", lambda: request("DELETE", "/v1/devices/x1", rig.token), (204, 404)


def sweep(what, kind, why):
    """The refusals that were heard: {status: how often}."""
    heard, first = {}, 1  # libfcgi dies of what it cannot allocate, before we see the request: once for all requests is enough
    for name, make, right in requests(ids):
        wrong, deadly = None, []
        for nth in range(max(first, 1), MOST):
            control.arm("fcgi", kind, ERRNO, why, countdown=nth)
            done = rig.store.done
            a = tried(make())
            met = control.fired("fcgi")
            control.clear()
            if a is None and ready():
                deadly.append(nth)
            if a is not None and a.status not in (0, *right):
                heard[a.status] = heard.get(a.status, 0) + 1
                # Told as not done, it was not done. Of the store's answer that is lost nobody can know.
                undone = a.error != "resources_exhausted" or rig.store.done == done
                if not undone or a.status not in (503, 507) or a.error not in ("resources_exhausted", "store_unavailable", "storage_full", "not_ready"):
                    wrong = wrong or (nth, a)
            if not met:
                break
        first = deadly[-1] - 1 if deadly else first
        check(f"{what}: {name}, {nth - 1} times", wrong is None and nth < MOST - 1, wrong)
    return heard


def every_route(ids):
    """A route that is added is swept, too."""
    swept = {name.split(" (")[0].split("?")[0] for name, _, _ in requests(ids)} | {"GET /v1/front"}
    for line in open(SPEC + "routes.tab"):
        w = line.split("\t")
        if w[0] == "public":
            shape = re.compile(re.escape(w[1] + " ") + re.sub(r"\\{\w+\\}", "[^/]+", re.escape(w[2])) + "$")
            check(f"{w[1]} {w[2]} is asked for here", any(shape.match(s) for s in swept))


def listener():
    """Where it cannot be watched, or what it has not be taken, nobody waits for the next connection until the main thread has it
    watched again. Each of these would wait for ever."""
    for what, kind, why in (("descriptors", FD, errno.EMFILE), ("descriptors of the machine", FD, errno.ENFILE), ("memory", FD, errno.ENOMEM)):
        control.arm("fcgi", kind, ERRNO, why, countdown=1, times=3)
        a = tried(request("GET", "/healthz"))
        check(f"three accepts without {what}, and the connection is taken", a is not None and a.status == 200 and control.fired("fcgi") == 3,
              (a, control.fired("fcgi")))
        control.clear()
    # Of one that says nothing two things are asked: to be woken by it, and by the next one.
    for times in (2, 4):
        control.arm("fcgi", MEM, ERRNO, errno.ENOMEM, countdown=1, times=times)
        with connect(rig.path):
            for _ in range(1000):
                if control.fired("fcgi") == times:
                    break
                time.sleep(0.01)
        check(f"the listener could not be watched {times - 1} times", control.fired("fcgi") == times, control.fired("fcgi"))
        control.clear()
        a = tried(request("GET", "/healthz"))
        check("and the next connection is taken", a is not None and a.status == 200, a)


def streams(ids):
    """One that follows a run, and comes back where it is cut, misses nothing; and whatever failed, no place stays taken."""
    run, x = ids["live"], rig.store.runs["main", ids["live"]]
    def follow(last, want):
        for _ in range(1000):
            try:
                s = Stream(rig.path, run, rig.token, more=[("HTTP_LAST_EVENT_ID", str(last))])
                s.until(lambda: want in s.ids())
                s.close()
            except OSError:
                s = None
            ids = s.ids() if s else []
            if ids and ids != list(range(last + 1, ids[-1] + 1)):
                return ids
            last = ids[-1] if ids else last
            if last == want:
                return last
            if ready():
                rig.store.told.clear()
            time.sleep(0.01)
    for what, kind, why in (("memory", MEM, errno.ENOMEM), ("descriptors", FD, errno.EMFILE), ("room in a socket", SEND, errno.ENOBUFS),
                            ("what stored says", RECV, errno.ECONNRESET)):
        for nth in range(1, MOST):
            last = len(x["events"])
            control.arm("fcgi", kind, ERRNO, why, countdown=nth)
            rig.store.append(x, ("agent.step", b"{}"), ("agent.step", b"{}"))
            got = follow(last, last + 2)
            met = control.fired("fcgi")
            control.clear()
            if not met or got != last + 2:
                break
        check(f"a stream without {what}, {nth - 1} times", got == last + 2 and nth < MOST - 1, (nth, last, got))
    def left():
        a = tried(request("GET", "/metrics", rig.scraper))
        return a is not None and b"pinfold_streams_open 0\n" in a.body
    check("no place stays taken", wait_for(left))


control = Control(os.path.join(os.environ.get("TMPDIR", "/tmp"), f"pinfold-lack.{os.getpid()}"))
os.environ["PINFOLD_TEST_FAULT"] = "fcgi:" + control.folder + "/control"
ids = start()
try:
    every_route(ids)
    listener()
    streams(ids)
    for what, kind, why in (("no memory", MEM, errno.ENOMEM), ("no descriptors", FD, errno.EMFILE), ("no descriptors to receive", RECV, errno.EMFILE),
                            ("no room", WRITE, errno.ENOSPC), ("a disk that does not read", READ, errno.EIO)):
        heard = sweep(what, kind, why)
        check(f"{what} is met, and told: {heard}; it died {rig.deaths} times so far", heard or kind in (RECV,), heard)
    a = ask(rig.path, request("GET", "/v1/runs", rig.token))
    check("it goes on", a.status == 200, a)
finally:
    rig.stop()
    for name in ("control", "undo"):
        os.unlink(control.folder + "/" + name)
    os.rmdir(control.folder)
    os.rmdir(os.path.dirname(control.folder))
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
