#!/usr/bin/python3
"""A run's events as they come: through each web server, without gap or repeat, whoever is cut, dies, is slow or may no more."""
import random, threading
from client import *
from front import Front
from processes import kill
from streams import *

mine = token()
scrape = operator("token", "create", "--metrics").strip()
patient = operator("token", "create", "--tenant", "patient").strip()
SLEEP = {"agent.py": "import time\ntime.sleep(800)\n"}
GIT = [["git", "diff", "--check"]]
gateway = Gateway()


made = []


def running(bearer=patient, agent="wire"):
    run = start(bearer, SLEEP, agent=agent, checks=GIT, limits={"wallTimeSeconds": 900} if bearer == patient else {})
    made.append((run, bearer))
    until(bearer, run, lambda v: v.get("phase") == "executing" or v["status"] in TERMINAL)
    return run


def cancel(run, bearer=patient):
    call("POST", f"/v1/runs/{run}/cancel", b"", bearer)


def nobody():
    return wait_for(lambda: open_streams(scrape) == 0)


def at_once(server, *options):
    """Each event is seen before the next one is made: nothing on the way waits for more."""
    name = " ".join((server, *options))
    run = running()
    with Front(server, *options) as f:
        url = f.url + (options[1] if options[:1] == ("--prefix",) else "")
        r = Reader(url, run, patient)
        check(f"{name}: a stream", (r.status, r.type) == (200, "text/event-stream"), (r.status, r.type))
        seen = all(r.until(lambda n=gateway.append(run, {"agent_sequence": i}, tenant="patient"): n in r.ids) for i in range(8))
        check(f"{name}: each event comes before the next is made", seen and r.ids == list(range(1, len(r.ids) + 1)), r.ids)
        check(f"{name}: the first line says when to come back", r.frames[0] == {"retry": "2000"}, r.frames[:1])
        half = Reader(url, run, patient, last=r.ids[-3])
        check(f"{name}: Last-Event-ID arrives", half.until(lambda: len(half.ids) == 2) and half.ids == r.ids[-2:], half.ids)
        garbage = Reader(url, run, patient, last="1x")
        check(f"{name}: a malformed one replays all", garbage.until(lambda: garbage.ids == r.ids), garbage.ids)
        browser = Reader(url, run, patient, query="", headers={"Accept": "text/event-stream"})
        check(f"{name}: Accept alone asks for it", browser.until(lambda: browser.ids == r.ids), browser.ids)
        browser.close(), half.close(), garbage.close()
        # Apache notices only when it is to pass something on that it cannot: see silence().
        if server != "apache":
            check(f"{name}: who has vanished is noticed", wait_for(lambda: open_streams(scrape) == 1))
        cancel(run)
        check(f"{name}: it ends with the run", r.over() and r.whole and r.events[-1]["event_type"] == "run.cancelled", r.frames[-1:])
        check(f"{name}: the stream says what NDJSON says", r.events == events(patient, run))
        for last in (r.ids[-1], r.ids[-1] + 5):
            again = Reader(url, run, patient, last=last)
            check(f"{name}: a reconnect from there is 204", again.status == 204, again.status)
            again.close()
        whole = Reader(url, run, patient, last=0)
        check(f"{name}: a first look at a run that has ended is all of it, and its end", whole.over() and whole.events == r.events)
        whole.close(), r.close()
    check(f"{name}: nothing is left", nobody())


def silence():
    """Nothing happens: each server keeps the stream, passes heartbeats on, and by them at the latest notices who has gone."""
    run = running()
    with Front("lighttpd") as a, Front("apache") as b, Front("nginx") as c:
        stay = [Reader(f.url, run, patient) for f in (a, b, c)]
        go = [Reader(f.url, run, patient) for f in (a, b, c)]
        check("six readers", all(r.until(lambda r=r: r.ids[:1] == [1]) for r in (*stay, *go)) and open_streams(scrape) == 6)
        for r in go:
            r.close()
        check("heartbeats arrive", all(r.until(lambda r=r: r.comments == [": heartbeat"] * 2) for r in stay))
        check("who has gone is noticed by all three", wait_for(lambda: open_streams(scrape) == 3), open_streams(scrape))
        n = gateway_now().append(run, {"agent_sequence": 1}, tenant="patient")
        check("and the others go on", all(r.until(lambda r=r: n in r.ids) for r in stay))
        for r in stay:
            r.close()
    cancel(run)
    check("nothing is left", nobody())


def storm():
    """Three listeners, one that is cut two hundred times and comes back, one that reads a byte a second, and NDJSON beside them."""
    run, wrong, cuts = running(), [], []
    stop = threading.Event()

    def listener():
        r = Reader(URL, run, patient)
        r.over()
        if not r.whole or r.events != events(patient, run):
            wrong.append(("listener", len(r.ids), r.ids[-3:]))
        r.close()

    def cut():
        rng, last, seen = random.Random(5), None, []
        while True:
            r = Reader(URL, run, patient, last=last)
            if r.status == 204:
                break
            more = rng.randrange(1, 16) if len(cuts) < 200 else 1 << 30
            r.until(lambda: len(r.ids) >= more)
            # What was read is what counts, as with a browser: a frame that is not whole is none.
            seen += r.ids
            last = r.ids[-1] if r.ids else last
            cuts.append(1)
            r.close()
        if seen != list(range(1, len(events(patient, run)) + 1)):
            wrong.append(("cut", len(seen), len(set(seen))))

    def drops():
        r = Reader(URL, run, patient, small=True)
        while not stop.wait(1) and r.r.read(1):
            pass
        r.close()

    threads = [threading.Thread(target=f, daemon=True) for f in (listener, listener, listener, cut)]
    slow = threading.Thread(target=drops, daemon=True)
    for t in (*threads, slow):
        t.start()
    writer = gateway_now()
    for i in range(0, 2400, 8):
        writer.append(run, *({"agent_sequence": i + k, "s": "\u00e4\u2028\n" * (k % 3)} for k in range(8)), tenant="patient")
        if i % 800 == 0:
            lines = [e["sequence"] for e in events(patient, run)]
            check("NDJSON beside it has no gap", lines == list(range(1, len(lines) + 1)) and len(lines) > i)
    wait_for(lambda: len(cuts) >= 200)
    cancel(run)
    for t in threads:
        t.join()
    v = until(patient, run)
    check("a slow reader does not hold up the run", v["status"] == "cancelled", v["status"])
    stop.set()
    slow.join()
    check("200 cuts, three listeners: each event once, in order", not wrong and len(cuts) >= 200, (len(cuts), wrong))
    check("and nothing is left", nobody())


def deaths():
    """stored dies and is back: the stream goes on. fcgi dies: the client comes back."""
    run = running()
    r = Reader(URL, run, patient)
    n = gateway.append(run, {"agent_sequence": 1}, tenant="patient")
    check("a reader", r.until(lambda: n in r.ids))
    for i in range(3):
        kill("pinfold-stored")
        again = wait_for(lambda: reconnect())
        n = again.append(run, {"agent_sequence": 2 + i}, tenant="patient")
        check("goes on where the store is a new one", r.until(lambda: n in r.ids) and r.ids == list(range(1, n + 1)), r.ids)
    kill("pinfold-fcgi")
    check("is cut where the process is a new one", r.over())
    n = again.append(run, {"agent_sequence": 9}, tenant="patient")
    wait_for(lambda: call("GET", "/healthz")[0] == 200)
    back = Reader(URL, run, patient, last=r.ids[-1])
    check("and comes back without a gap", back.until(lambda: n in back.ids) and back.ids == list(range(r.ids[-1] + 1, n + 1)), back.ids)
    r.close(), back.close()
    cancel(run)
    check("nothing is left", nobody())


def reconnect():
    try:
        return Gateway()
    except (OSError, AssertionError):
        return None


def rights():
    gone = operator("token", "create", "--tenant", "patient", "--label", "gone soon").strip()
    device = operator("token", "create", "--tenant", "patient", "--device", "--label", "a phone").strip()
    run = running()
    readers = [Reader(URL, run, t) for t in (gone, device, patient)]
    check("three may read", all(r.until(lambda: r.ids[:1] == [1]) for r in readers))
    call("DELETE", "/v1/devices/a%20phone", bearer=patient)
    check("a device that is revoked reads no more", readers[1].over())
    check("nor comes back", Reader(URL, run, device).status == 401)
    operator("token", "revoke", "--tenant", "patient", gone.split("_")[1])
    check("nor does a token", readers[0].over() and Reader(URL, run, gone).status == 401)
    n = gateway_now().append(run, {"agent_sequence": 1}, tenant="patient")
    check("the third goes on", readers[2].until(lambda: n in readers[2].ids))
    check("another tenant sees no run", Reader(URL, run, mine).status == 404)
    for method in ("HEAD", "POST", "PUT"):
        status, h, _ = call(method, f"/v1/runs/{run}/events?stream=1", bearer=patient)
        check(f"{method} is refused", status in (405, 501), status)
    for r in readers:
        r.close()
    cancel(run)
    until(patient, run)
    check("nothing is left", nobody())


def gateway_now():
    return wait_for(reconnect)


def cap():
    """Tenant brief may have three."""
    brief = operator("token", "create", "--tenant", "brief").strip()
    run = running(brief, "script")
    readers = [Reader(URL, run, brief) for _ in range(3)]
    check("three of three", all(r.until(lambda: r.ids[:1] == [1]) for r in readers))
    status, h, body = call("GET", f"/v1/runs/{run}/events?stream=1", bearer=brief)
    check("the fourth is too many", (status, json.loads(body)["error"]) == (429, "too_many_streams") and int(h["Retry-After"]) > 0, (status, body))
    check("the limit is told", get("/v1/limits", brief)[1]["tenant"]["openStreams"] == 3)
    other = running()
    theirs = Reader(URL, other, patient)
    check("another tenant is not concerned", theirs.until(lambda: theirs.ids[:1] == [1]))
    theirs.close()
    cancel(other)
    readers.pop().close()
    check("one gone is room for one", wait_for(lambda: open_streams(scrape) == 2))
    readers.append(Reader(URL, run, brief))
    check("which is taken", readers[-1].status == 200)
    for r in readers:
        r.close()
    cancel(run, brief)
    check("nothing is left", nobody())


def servers():
    for server in ("lighttpd", "apache", "nginx"):
        at_once(server)
        at_once(server, "--prefix", "/api")
    at_once("nginx", "--keep")


for test in (servers, silence, storm, deaths, rights, cap):
    if len(sys.argv) < 2 or test.__name__ in sys.argv[1:]:
        case(test.__name__, test)
        for run, bearer in made:
            cancel(run, bearer)
done()
