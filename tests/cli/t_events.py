#!/usr/bin/python3 -B
"""pinfold events -f: every event once and in order, whatever is cut, repeated, left out or refused on the way."""
from fake import *

COUNT = 300
SOON = b"retry: 1\n\n"


def whole(api, last, eol="\n"):
    return b"".join(("id: %d%sevent: %s%sdata: %s%s%s" % (e["sequence"], eol, e["event_type"], eol, t, eol, eol)).encode() for e, t in api.frames(last))


def filled(stream, away=0):
    api = Api(stream)
    for i in range(COUNT - 1):
        api.event("tool.call", text="h\u00e9llo %d \u2028" % i, more="x" * (i % 50))
    api.end()
    api.away = away
    return api


def follows(what, stream, streamed=None, away=0, status=0):
    """The whole of it, and how it was had: by streams alone (True), asked for in the end (False)."""
    api = filled(stream, away)
    try:
        got, out, err = plain(api, "--json", "events", "-f", RUN)
        lines = [json.loads(x) for x in out.splitlines()]
        check(what, got == status and lines == api.events, (got, err, len(lines), api.connects[:9], api.polls))
        check(what + ": how", streamed is None or (api.polls == 0) == streamed, (api.connects[:9], api.polls))
    finally:
        api.stop()
    return api


def cut(seed, eol="\n", most=3000):
    """Whatever the connection, it ends somewhere in the middle."""
    dice = random.Random(seed)

    def stream(api, last):
        data = SOON + whole(api, last, eol)
        n = dice.randrange(60, most)
        return [data[i:i + 7] for i in range(0, min(n, len(data)), 7)] if n < 500 else [data[:n]]
    return stream


def once(bad):
    """This instead of a stream, the first time."""
    def stream(api, last):
        return bad(api, last) if len(api.connects) == 1 else steady(api, last)
    return stream


def missing(api, last):
    """The 100th is left out."""
    return [SOON + b"".join(f + b"\n\n" for f in whole(api, last).split(b"\n\n") if f and not f.startswith(b"id: 100\n"))]


def refuse(status, kind="application/json"):
    return lambda api, last: (status, b"{}", kind)


for seed in range(8):
    follows("cuts at any byte, %d" % seed, cut(seed, ("\n", "\r\n", "\r")[seed % 3]), True)
a = follows("steady", steady, True)
check("one connection is enough", a.connects == [0], a.connects)
a = follows("a stream that begins anew each time", lambda api, last: [SOON + whole(api, 0)[:40000 * len(api.connects)]], True)
check("it is asked behind the last one", a.connects == sorted(set(a.connects)) and a.connects[0] == 0 and len(a.connects) > 1, a.connects)
follows("a gap is asked for again", once(missing), True)
a = follows("a gap that stays is had the other way", missing, False)
check("behind what was taken", set(a.connects) == {0, 99}, a.connects)
follows("ids that are not the sequence", lambda api, last: [SOON + whole(api, last).replace(b"id: 5\n", b"id: 6\n")], False)
follows("no JSON", lambda api, last: [SOON + b"data: hello\n\n"], False)
follows("comments between", lambda api, last: [whole(api, last).replace(b"\n\n", b"\n\n: heartbeat\n\n")], True)
follows("a line without end", lambda api, last: [SOON, b"data: "] + [b"x" * 1000000] * 3, False)
follows("nothing at all, again and again", lambda api, last: [SOON], False)
for status in (204, 400, 401, 404, 405, 406, 413, 429, 500, 502, 503):
    follows("%d instead of a stream" % status, refuse(status), False)
follows("a page instead of a stream", refuse(200, "text/html"), False)
follows("a list instead of a stream", lambda api, last: (200, whole(api, last), "application/x-ndjson"), False)
follows("no stream, and away for a while afterwards", lambda api, last: [SOON + whole(api, last)[:5000]] if len(api.connects) == 1 else (503, b"{}"), False)


def slow(api, last):
    """Half of it by a stream, then the service goes, comes back without streams, and is away for five answers."""
    if last == 0:
        return [SOON + whole(api, 0)[:9000]]
    return 404, b"{}"


api = filled(slow)
real = api.get


def flaky(h):
    if "after=" in h.path and api.polls in (1, 2, 3):
        api.polls += 1
        return api.error(h, 503, "store_unavailable")
    real(h)


api.get = flaky
for _ in range(5):
    api.events.pop()
proc = subprocess.Popen([CLI, "--json", "events", "-f", RUN], env=environment(api), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
wait_for(lambda: api.polls >= 5, PATIENCE)
with api.lock:
    api.events = api.events[:COUNT - 5]
for i in range(4):
    api.event("late", n=i)
api.end()
out, err = proc.communicate(timeout=PATIENCE)
check("a service that is away for a moment", proc.returncode == 0 and [json.loads(x) for x in out.splitlines()] == api.events and err == b"", err)
api.stop()

# Who never was there is not waited for.
status, out, err = plain(api, "events", "-f", RUN)
check("no service", status == 4 and "cannot be reached" in err, err)
api = filled(None)
status, out, err = plain(api, "events", "-f", "run-2")
check("no such run", status == 1 and "run_not_found" in err, err)
status, out, err = plain(api, "events", RUN)
check("without -f what there is", status == 0 and len(out.splitlines()) == COUNT and api.connects == [], (err, api.connects))
api.stop()
done()
