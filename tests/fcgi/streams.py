#!/usr/bin/python3 -B
"""Event streams over raw FastCGI, against a store of dictionaries that wakes, forgets, dies and lies.

usage: streams.py pinfold-fcgi
"""
import json, os, random, socket, sys, threading, time
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import follow
from fastcgi import *
from fakestore import RUNNING, COMPLETED, Store
from rig import Rig

passed = failed = 0


def check(what, ok, got=""):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    print(("ok   " if ok else "FAIL ") + what + ("" if ok else f": {got!r}"), flush=True)


BODY = {"instruction": "Repair add.", "files": [{"path": "calc.py", "content": "x = 1\n"}], "allowedPaths": ["calc.py"],
        "checks": [["git", "diff", "--check"]]}
rig = Rig(sys.argv[1], tenant={"max_streams": 40}, settings={"max_streams": 60})


def Stream(run, query="?stream=1", token=None, **more):
    return follow.Stream(rig.path, run, token or rig.token, query, **more)


def run_of(token=None, tenant="main"):
    a = ask(rig.path, request("POST", "/v1/runs", token or rig.token, json.dumps(BODY).encode()))
    x = rig.store.runs[tenant, a.json["runId"]]
    x["state"] = RUNNING
    return a.json["runId"], x


def figures(name="pinfold_streams_open"):
    a = ask(rig.path, request("GET", "/metrics", METRICS))
    return next(int(l.split()[1]) for l in a.body.decode().splitlines() if l.startswith(name + " "))


METRICS = rig.store.token("main", rights=2)


def closed(*streams):
    for s in streams:
        s.close()
    return wait_for(lambda: figures() == 0)


def basics():
    run, x = run_of()
    rig.store.append(x, *[("agent.step", json.dumps({"n": i, "t": "\u00e4\u2028\\n" * 20}).encode()) for i in range(50)])
    s = Stream(run)
    check("all that is stored is replayed", s.until(lambda: len(s.ids()) == 51) and s.ids() == list(range(1, 52)), s.text[:300])
    h = s.head.headers
    check("its head", s.head.status == 200 and h["content-type"] == "text/event-stream" and h["x-accel-buffering"] == "no" and
          h["cache-control"] == "no-store" and "content-length" not in h and "x-request-id" in h, h)
    check("when to come back is said first", s.body.startswith(b"retry: 2000\n\n"), s.body[:50])
    lines = ask(rig.path, request("GET", f"/v1/runs/{run}/events", rig.token)).body.decode().splitlines()
    frames = [f for f in s.frames() if "id" in f]
    check("a frame is id, type and the line of NDJSON", [f["data"] for f in frames] == lines and
          all(list(f) == ["data", "id", "event"] and f["event"] == json.loads(f["data"])["event_type"] for f in frames), frames[:1])
    for i in range(20):
        rig.store.append(x, ("agent.step", b'{"late":1}'))
        if not s.until(lambda: len(s.ids()) == 52 + i):
            break
    check("each further one comes before the next is made", s.ids() == list(range(1, 72)), s.ids()[-3:])
    check("it is counted", figures() == 1)
    rig.store.append(x, ("run.completed", b"{}"), state=COMPLETED)
    check("it ends behind the last event", s.over() and s.ids()[-1] == 72 and s.raw == b"", (s.ended, s.ids()[-1:]))
    check("and so does the connection", s.gone or (not s.more(PATIENCE) or s.gone))
    check("and is counted no more", closed(s))
    s = Stream(run)
    check("of a run that has ended all is replayed, and that is it", s.over() and s.ids() == list(range(1, 73)))
    s.close()
    for name, value in (("HTTP_LAST_EVENT_ID", "72"), ("HTTP_LAST_EVENT_ID", "9999")):
        a = ask(rig.path, request("GET", f"/v1/runs/{run}/events?stream=true", rig.token, more=[(name, value)]))
        check("a reconnect from there is told not to come back", a.status == 204 and a.body == b"" and a.whole, a)
    a = ask(rig.path, request("GET", f"/v1/runs/{run}/events?stream=1&after=72", rig.token))
    check("so it is with after", a.status == 204, a)


def cursors():
    run, x = run_of()
    rig.store.append(x, *[("agent.step", b"{}")] * 4)
    def first(query="?stream=1", *headers):
        s = Stream(run, query, more=[("HTTP_LAST_EVENT_ID", h) for h in headers])
        rig.store.append(x, ("agent.step", b"{}"))
        n = len(x["events"])
        ok = s.until(lambda: n in s.ids())
        s.close()
        ids = s.ids()
        return ids[0] if ok and ids == list(range(ids[0], n + 1)) else (s.head.status, ids)
    n = len(x["events"])
    check("Last-Event-ID", first("?stream=1", "3") == 4)
    check("Last-Event-ID 0 is all", first("?stream=1", "0") == 1)
    check("after", first("?stream=1&after=2") == 3)
    check("Last-Event-ID counts before after", first("?stream=1&after=2", "4") == 5)
    for bad in ("", "-1", " 5", "5 ", "5x", "0x10", "1e3", "05", "+5", "9" * 20, str(2 ** 63), "\x01", "5\x01", "5\n", "\xe4", "5, 5", "a" * 5000):
        check(f"Last-Event-ID {bad[:25]!r} replays all", first("?stream=1", bad) == 1)
    check("Last-Event-ID twice replays all", first("?stream=1", "3", "3") == 1)
    check("one that was not given yet replays all", first("?stream=1", str(10 ** 6)) == 1)
    for bad in ("-1", "5x", "", "05", "9" * 20):
        check(f"after={bad} replays all", first("?stream=1&after=" + bad) == 1)
    check("the last one only waits", first("?stream=1", str(len(x["events"]))) == len(x["events"]))
    check("all were given up", closed())


def asked_how():
    run, x = run_of()
    def kind(query="", **more):
        a = request("GET", f"/v1/runs/{run}/events{query}", rig.token, more=[(k, v) for k, v in more.items()])
        with connect(rig.path) as s:
            send(s, a)
            got = b""
            while b"\r\n\r\n" not in got:
                got += s.recv(65536)
        return got.partition(b"Content-Type: ")[2].partition(b"\r")[0].decode()
    sse, lines = "text/event-stream", "application/x-ndjson"
    for want, query, accept in ((sse, "?stream=1", None), (sse, "?stream=true", None), (lines, "?stream=0", None), (lines, "?stream=false", sse),
                                (lines, "", None), (sse, "", sse), (sse, "", "Text/Event-Stream"), (lines, "", "*/*"), (sse, "", f"text/html, {sse};q=0.9"),
                                (lines, "", f"{sse};q=0"), (lines, "", f"{sse}; q=0.00, */*"), (lines, "", "text/event-streams"), (lines, "", "text/*"),
                                (sse, "?stream=1", "application/json")):
        got = kind(query, **({"HTTP_ACCEPT": accept} if accept else {}))
        check(f"{query or 'no query'} and Accept {accept}: {want}", got == want, got)
    for q in ("stream=2", "stream=", "stream=True", "stream=1&stream=1"):
        check("events?" + q, refused(ask(rig.path, request("GET", f"/v1/runs/{run}/events?{q}", rig.token)), 400, "invalid_query"))
    for method in ("HEAD", "POST", "PUT", "DELETE", "OPTIONS"):
        a = ask(rig.path, request(method, f"/v1/runs/{run}/events?stream=1", rig.token))
        check(f"{method} is no way to follow", a.status == 405 and a.headers.get("allow") == "GET", a)
    u = f"/v1/runs/{run}/events?stream=1"
    check("another tenant's run", refused(ask(rig.path, request("GET", u, rig.other)), 404, "run_not_found"))
    check("no run", refused(ask(rig.path, request("GET", "/v1/runs/none/events?stream=1", rig.token)), 404, "run_not_found"))
    check("nobody", refused(ask(rig.path, request("GET", u)), 401, "unauthorized"))
    check("another tenant's host", refused(ask(rig.path, request("GET", u, rig.token, more=[("PINFOLD_TENANT", "other")])), 403, "tenant_mismatch"))
    s = Stream(run, token=rig.device)
    check("a device may", s.until(lambda: s.ids() == [1]))
    check("none of them is left", closed(s))


def ends():
    run, x = run_of()
    token, device = rig.store.token("main"), rig.store.token("main", 2)
    mine, theirs, stays = Stream(run, token=token), Stream(run, token=device), Stream(run)
    check("three readers", all(s.until(lambda: s.ids() == [1]) for s in (mine, theirs, stays)) and figures() == 3)
    del rig.store.tokens[token.split("_")[1]]
    check("a token that is revoked loses its stream", mine.over())
    del rig.store.tokens[device.split("_")[1]]
    check("so does a device", theirs.over())
    rig.store.append(x, ("agent.step", b"{}"))
    check("the third goes on", stays.until(lambda: stays.ids() == [1, 2]) and figures() == 1)
    del rig.store.runs["main", run]
    check("a run that is removed ends its streams", stays.over())
    check("and nothing is left", closed(mine, theirs, stays))
    run, x = run_of()
    streams = [Stream(run) for _ in range(20)]
    check("twenty at once", all(s.until(lambda: s.ids() == [1]) for s in streams) and figures() == 20)
    for s in streams[:10]:
        s.close()
    for s in streams[10:15]:
        s.s.shutdown(socket.SHUT_WR)
    check("those that vanish are noticed", wait_for(lambda: figures() == 5))
    for s in streams[15:]:
        send(s.s, record(ABORT))
    check("a wish to end is granted", all(s.over() for s in streams[15:]))
    check("all twenty are gone", closed(*streams[10:]))
    s = Stream(run)
    check("one more", s.until(lambda: s.ids() == [1]))
    send(s.s, record(STDIN, b"what nobody asked for"))
    check("who says anything else is cut", s.until(lambda: s.gone) and closed(s))
    s = Stream(run)
    s.until(lambda: s.ids() == [1])
    for part in (record(ABORT, pad=5)[:3], record(ABORT, pad=5)[3:9], record(ABORT, pad=5)[9:]):
        send(s.s, part)
        taken_or_not(s.s)
    check("a wish in pieces is one", s.over() and closed(s))


def taken_or_not(s):
    time.sleep(0.01)  # either is right: in one piece or in several


def kept():
    run, x = run_of()
    s = Stream(run, keep=True, id=77)
    check("on a connection that is kept", s.until(lambda: s.ids() == [1]))
    rig.store.append(x, ("run.completed", b"{}"), state=COMPLETED)
    check("it ends", s.over() and not s.gone, s.text[-100:])
    send(s.s, request("GET", "/healthz", keep=True, id=5))
    a = receive(s.s)
    check("and the connection serves again", a is not None and a.status == 200, a)
    send(s.s, request("GET", f"/v1/runs/{run}/events?stream=1", rig.token, keep=True, id=6))
    a = receive(s.s)
    check("and streams again", a is not None and a.whole and a.body.count(b"\nid: ") == 2, a)
    run, x = run_of()
    send(s.s, request("GET", f"/v1/runs/{run}/events?stream=1", rig.token, keep=True, id=9))
    check("is counted", wait_for(lambda: figures() == 1))
    send(s.s, record(ABORT, id=9))
    a = receive(s.s)
    check("a wish to end leaves the connection", a is not None and a.whole)
    send(s.s, request("GET", "/healthz", id=10))
    check("for a last request", receive(s.s).status == 200)
    check("nothing is left", closed(s))


def caps():
    run, x = run_of()
    streams = [Stream(run) for _ in range(40)]
    check("as many as a tenant may have", all(s.until(lambda: s.ids() == [1]) for s in streams) and figures() == 40)
    a = ask(rig.path, request("GET", f"/v1/runs/{run}/events?stream=1", rig.token))
    check("one more is refused", refused(a, 429, "too_many_streams") and int(a.headers["retry-after"]) > 0 and a.whole, a)
    check("and counted as refused", figures("pinfold_streams_refused_total") == 1)
    check("NDJSON is not", ask(rig.path, request("GET", f"/v1/runs/{run}/events", rig.token)).status == 200)
    theirs, y = run_of(rig.other, "other")
    others = [Stream(theirs, token=rig.other) for _ in range(20)]
    check("another tenant has its own", all(s.until(lambda: s.ids() == [1]) for s in others) and figures() == 60)
    a = ask(rig.path, request("GET", f"/v1/runs/{theirs}/events?stream=1", rig.other))
    check("until there are as many as there may be in all", refused(a, 429, "too_many_streams"), a)
    others.pop().close()
    check("one gone makes room for one", wait_for(lambda: figures() == 59))
    others.append(Stream(theirs, token=rig.other))
    check("which is taken", others[-1].until(lambda: others[-1].ids() == [1]))
    for i in range(300):
        victim = streams.pop(random.randrange(len(streams)))
        victim.close()
        wait_for(lambda: figures() == 59)
        streams.append(Stream(run))
        if not streams[-1].until(lambda: streams[-1].ids() == [1]):
            break
    check("300 times one goes and one comes", i == 299 and figures() == 60, i)
    check("and every place is free again", closed(*streams, *others))


def many():
    """Readers that begin anywhere, are cut at will and come back, while events are made."""
    run, x = run_of()
    wrong, done = [], threading.Event()
    def reader(seed):
        rng, seen = random.Random(seed), 0
        while True:
            s = Stream(run, more=[("HTTP_LAST_EVENT_ID", str(seen))] if seen else [])
            stop = seen + rng.randrange(1, 60)
            s.until(lambda: (s.ids() or [0])[-1] >= stop)
            ids = s.ids()
            s.close()
            if s.head.status == 204:
                break
            if s.head.status == 429:
                continue
            if ids != list(range(seen + 1, seen + 1 + len(ids))):
                wrong.append((seen, ids))
                return
            seen = ids[-1] if ids else seen
        if seen != len(x["events"]):
            wrong.append(("end", seen))
    readers = [threading.Thread(target=reader, args=(i,)) for i in range(8)]
    for t in readers: t.start()
    for i in range(1500):
        rig.store.append(x, ("agent.step", json.dumps({"n": i, "t": "z" * (i % 300)}).encode()))
    rig.store.append(x, ("run.completed", b"{}"), state=COMPLETED)
    for t in readers: t.join()
    check("eight readers, cut again and again, miss nothing and see nothing twice", not wrong, wrong[:2])
    check("and leave nothing", closed())


def large():
    run, x = run_of()
    rig.store.append(x, *[("agent.step", json.dumps({"t": "\u20ac" * (n // 3)}, ensure_ascii=False).encode()) for n in (60000, 63900, 10, 63900, 30000, 1)])
    s, one = Stream(run), Stream(run, "?stream=1&after=2")
    check("events of the largest size", s.until(lambda: s.ids() == [1, 2, 3, 4, 5, 6, 7]), s.ids())
    check("from their middle", one.until(lambda: one.ids() == [3, 4, 5, 6, 7]), one.ids())
    check("are whole", all(json.loads(f["data"])["sequence"] == int(f["id"]) for f in s.frames() if "id" in f))
    slow = Stream(run)
    rig.store.append(x, *[("agent.step", json.dumps({"t": "x" * 60000}).encode()) for _ in range(40)])
    check("who reads nothing holds up nobody", s.until(lambda: len(s.ids()) == 47), len(s.ids()))
    slow.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    check("who reads slowly has all in the end", slow.until(lambda: slow.ids() == list(range(1, 48))), slow.ids())
    rig.store.append(x, ("run.completed", b"{}"), state=COMPLETED)
    check("the end comes behind all of it", s.over() and slow.over() and s.ids()[-1] == slow.ids()[-1] == 48)
    check("they leave", closed(s, one, slow))
    # Nobody knows of it any more how far it goes.
    for after in (0, 1, 6, 40):
        late = Stream(run, f"?stream=1&after={after}")
        check(f"of a run that has ended long since, too, from {after}", late.over() and late.ids() == list(range(after + 1, 49)), late.ids())
        late.close()


def odd_texts():
    """What stored never gives: a line of text that would end a line of the stream."""
    run, x = run_of()
    rig.store.append(x, ("agent.step", b'{"a":1,\n\n"b":2,\r\rid: 999\n\ndata: x\r\n\r\n"c":3}'))
    s = Stream(run)
    check("a broken line begins no frame", s.until(lambda: len(s.ids()) >= 2) and s.ids() == [1, 2] and "999" not in s.frames()[-1]["id"], s.body)
    check("whatever ends a line", all(l.startswith("data: ") for l in s.body.decode().split("id: 2\n")[1].split("\n")[1:-2]), s.body)
    closed(s)


def store_gone():
    run, x = run_of()
    store = rig.store
    s, t = Stream(run), Stream(run, token=rig.device)
    check("two readers", s.until(lambda: s.ids() == [1]) and t.until(lambda: t.ids() == [1]))
    for i in range(3):
        store.close()
        os.unlink(rig.dir + "/store/store.sock")
        rig.store.append(x, ("agent.step", b"{}"))  # nobody is told
        new = Store(rig.dir + "/store/store.sock")
        new.tokens, new.runs, new.keys = store.tokens, store.runs, store.keys
        rig.store = store = new
        n = len(x["events"])
        check("what was made while nobody was told comes when the store is back",
              s.until(lambda: s.ids() == list(range(1, n + 1))) and t.until(lambda: t.ids() == list(range(1, n + 1))), s.ids())
        rig.store.append(x, ("agent.step", b"{}"))
        check("and what comes next", s.until(lambda: s.ids() == list(range(1, n + 2))), s.ids())
    rig.store.told.clear()
    rig.store.append(x, ("agent.step", b"{}"))
    n = len(x["events"])
    check("a wake-up that is lost is made good", s.until(lambda: s.ids() == list(range(1, n + 1))), s.ids())
    del x["events"][3:]
    n = s.ids()[-1]
    del x["events"][3:]
    check("a store that has less than it had, from a backup, ends the streams", s.over() and t.over())
    u = Stream(run, more=[("HTTP_LAST_EVENT_ID", str(n))])
    check("and who comes back is told all of it", u.until(lambda: len(u.ids()) >= 3) and u.ids() == [1, 2, 3], u.ids())
    check("nothing is left", closed(s, t, u))


def again():
    run, x = run_of()
    s = Stream(run)
    check("a reader", s.until(lambda: s.ids() == [1]))
    rig.p.kill()
    check("is cut when the process dies, and knows it was not the end", s.until(lambda: s.gone) is not None and s.gone and not s.ended)
    s.close()
    rig.again()
    s = Stream(run, more=[("HTTP_LAST_EVENT_ID", "1")])
    rig.store.append(x, ("agent.step", b"{}"))
    check("and goes on where it was", s.until(lambda: s.ids() == [2]), s.ids())
    closed(s)


def silence():
    """The only one that takes a while: nothing happens, and that is said; and somebody does not read."""
    run, x = run_of()
    other, y = run_of()
    s, stuck = Stream(run), Stream(other)
    rig.store.append(y, *[("agent.step", json.dumps({"t": "x" * 60000}).encode()) for _ in range(40)])
    check("on a silent stream", s.until(lambda: b": heartbeat\n\n" in s.body) and s.ids() == [1] and not s.ended, s.body)
    rig.store.append(x, ("agent.step", b"{}"))
    check("and it goes on", s.until(lambda: s.ids() == [1, 2]))
    check("who reads nothing for long is cut", wait_for(lambda: figures("pinfold_streams_slow_total") == 1 and figures() == 1))
    check("and is not told it was the end", stuck.until(lambda: stuck.gone) is not None and not stuck.ended)
    stuck.close()
    check("the other is not concerned", not s.ended and closed(s))


def few_files():
    """Streams never take the descriptors that requests need."""
    global rig
    first, rig = rig, Rig(sys.argv[1], files=80, threads=2, threads_max=4)
    run, x = run_of()
    streams = [Stream(run) for _ in range(60)]
    for s in streams:
        s.until(lambda s=s: s.ids() == [1] or s.ended)
    got = [s.head.status for s in streams]
    check("of few descriptors streams get a part", got.count(200) == 40 and got.count(429) == 20, got)
    check("and requests the others", all(ask(rig.path, request("GET", f"/v1/runs/{run}", rig.token)).status == 200 for _ in range(20)))
    rig.store.append(x, ("agent.step", b"{}"))
    check("while all of them go on", all(s.until(lambda s=s: s.ids() == [1, 2]) for s in streams if s.head.status == 200))
    for s in streams:
        s.close()
    rig.stop()
    rig = first


tests = [basics, cursors, asked_how, ends, kept, caps, many, large, odd_texts, store_gone, few_files, again, silence]
for test in tests:
    if len(sys.argv) < 3 or test.__name__ in sys.argv[2:]:
        test()
check("the process is alive", rig.alive())
status = rig.stop()
check("it ends with status 0 on SIGTERM", status == 0, status)
check("nothing secret is in its log", rig.token not in rig.text, rig.text[-300:])
if failed:
    print(rig.text[-3000:])
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
