#!/usr/bin/env python3
"""Streams through the gateway: what ends cleanly upstream ends cleanly, and no other end does, as a raw socket sees it.

Arguments choose cases by name. Run in a build folder, or with PINFOLD_BUILD naming one; needs root.
"""
import json
import os
import select
import sys
import threading
import time
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import t_frames  # noqa: E402
from cases_common import check, counts, same  # noqa: E402
from rig import *  # noqa: E402,F403
from streaming import ANSWERS, CLIENTS, FORMATS, Stream, Upstream, asks, begin, chat  # noqa: E402


def test_whole(rig, tap):
    for name in FORMATS:
        for what in ("WHOLE", "ONCE"):
            run = begin(rig, name)
            s = Stream(run, name, what)
            a = s.answer
            check(s.clean(), "%s %s: it ends cleanly" % (name, what))
            same((a.status, a.headers.get("content-type")), (200, "text/event-stream"), name + ": its kind")
            check(set(a.headers) <= {"content-type", "cache-control", "x-content-type-options", "x-request-id", "transfer-encoding",
                                     "date", "connection"}, name + ": headers %s" % sorted(a.headers))
            events = [json.loads(l[6:]) if l != "data: [DONE]" else l for l in s.body().split("\n") if l.startswith("data: ")]
            want = [json.loads(l[6:]) if l != "data: [DONE]" else l for l in "".join(FORMATS[name][3:5]).split("\n") if l.startswith("data: ")]
            same(events, want, name + ": the same events")
            check("hello" not in s.body(), name + ": comments are left out")
            shown = run.shown()
            same((shown["used"], shown["prompt"], shown["completion"]), (1, 7, 3), name + ": what is counted")
            same(s.outcome(), ["ok"], name + ": what is told of it")
    asked = [t for t in tap.seen if "(chat)" in t]
    check(asked and all('"stream_options":{"include_usage":true}' in t.replace(" ", "") for t in asked), "a chat's usage is asked for")


def test_other_ends(rig, tap):
    for name in FORMATS:
        for what in ("CUT", "CLEAN", "ERROR", "BROKEN"):
            run = begin(rig, name)
            s = Stream(run, name, what)
            check(not s.clean() and not s.waits and s.answer.status == 200 and "PART" in s.body(), "%s %s: it breaks off: %r" % (name, what, s.raw[-60:]))
            last = {"chat": "[DONE]", "responses": "response.completed", "messages": "message_stop", "gemini": "finishReason"}[name]
            check(last not in s.body() and "overloaded" not in s.body(), "%s %s: no end" % (name, what))
            same(run.shown()["used"], 1, what + ": the unit is spent")
            check(s.outcome() in (["invalid_model_response"], ["model_unreachable"]), "%s %s: %s" % (name, what, s.outcome()))
        run = begin(rig, name)
        s = Stream(run, name, "PAGE")
        check(s.answer.status in (502, 503) and s.whole(), name + ": no stream at all")
        s = Stream(run, name, "REFUSED")
        same((s.answer.status, s.answer.headers.get("retry-after")), (429, "7"), name + ": refused before it began")
        same(Stream(run, name, "WHOLE").clean(), True, name + ": the next one")


def test_first_part_at_once(rig, tap):
    tap.gone.clear()
    for name in FORMATS:
        run = begin(rig, name)
        s = Stream(run, name, "HELD", read=False)
        check(s.until(b"PART"), name + ": the first part is there before the rest is")
        tap.release()
        check(s.all().clean(), name + ": and then the rest")
        tap.gone.clear()


def test_ended_early(rig, tap):
    other = Stream(begin(rig, "chat"), "chat", "HELD", read=False)
    for how in ("revoke", "cancel", "finish", "close"):
        for what in ("HANG", "DRIP"):
            run = begin(rig, "chat")
            s = Stream(run, "chat", what, read=False)
            check(s.until(b"PART"), "%s: it goes on" % what)
            rig.tell(*((how, run.id) if how == "close" else (how, run.tenant, run.id)))
            check(wait_for(lambda: tap.lost(s.text)), "%s under a stream that %ss: the provider is hung up on" % (how, what))
            check(not s.all().clean(), "%s under a stream that %ss: it breaks off" % (how, what))
            same(run.shown()["used"], 1, how + ": the unit stays spent")
    tap.release()
    check(other.all().clean(), "another run's stream goes on")
    tap.gone.clear()


def test_client_leaves(rig, tap):
    for what in ("HANG", "DRIP"):
        run = begin(rig, "chat")
        s = Stream(run, "chat", what, read=False)
        check(s.until(b"PART"), "it goes on")
        s.s.close()
        check(wait_for(lambda: tap.lost(s.text)), what + ": the provider is hung up on")
        same(s.outcome(), ["client_left"], what + ": what is told of it")
        same(Stream(run, "chat", "WHOLE").clean(), True, "the next one")


def test_buffered(rig, tap):
    """model_stream = buffered: what was asked for as a stream comes as one, and the provider was asked for the whole."""
    for name in FORMATS:
        run = begin(rig, name, agent="calm")
        for usage in (False, True):
            s = Stream(run, name, "GOOD", **({"stream_options": {"include_usage": usage}} if name in ("chat", "responses") else {}))
            a = s.answer
            same((s.clean(), a.status, a.headers.get("content-type")), (True, 200, "text/event-stream"), name + ": it ends cleanly")
            want = dict(ANSWERS[name])
            if name == "chat" and not usage:
                del want["usage"]
            same(CLIENTS[name](t_frames.events_of(s.body()), usage), want, name + ": what a client puts together")
        asked = [json.loads(t) for t in tap.seen if s.text in t]
        same([(b.get("stream"), "stream_options" in b) for b in asked], [(None if name == "gemini" else False, False)] * 2, name + ": what the provider was asked")
        shown = run.shown()
        same((shown["used"], shown["prompt"], shown["completion"]), (2, 14, 6), name + ": what is counted")
        same(s.outcome(), ["ok", "ok"], name + ": what is told of it")
        s = Stream(run, name, "HALF")
        check(s.whole() and s.answer.status in (502, 503) and "PART" not in s.raw.decode(), "%s: half an answer is none: %r" % (name, s.raw[-200:]))
        s = Stream(run, name, "REFUSED")
        same((s.whole(), s.answer.status, s.answer.headers.get("retry-after")), (True, 429, "7"), name + ": refused")
        s = Stream(run, name, "CUT")
        check(s.whole() and s.answer.status in (502, 503), name + ": broken off by the provider")
        a = post(run.port, FORMATS[name][0].replace(":streamGenerateContent?alt=sse", ":generateContent"), run.token(),
                 dict(asks(name, "GOOD (%s)" % name), **({} if name == "gemini" else {"model": FORMATS[name][2]})))
        same((a.status, a.json), (200, ANSWERS[name]), name + ": not asked for as a stream")
        for how in ("revoke", "cancel", "close", "leave"):
            run = begin(rig, name, agent="calm")
            s = Stream(run, name, "HANG", read=False)
            check(wait_for(lambda: tap.asked(s.text)), "the provider is asked")
            if how == "leave":
                s.s.close()
            else:
                rig.tell(*((how, run.id) if how == "close" else (how, run.tenant, run.id)))
            check(wait_for(lambda: tap.lost(s.text)), "%s, %s: the provider is hung up on" % (name, how))
            check(how == "leave" or b"PART" not in s.all().raw, "%s, %s: no answer" % (name, how))


def test_key_in_pieces(rig, tap):
    """A provider that says its key by and by is cut off before it has; the audit log has it."""
    with open(rig.folder + "/state/audit.log") as f:
        before = f.read().count('"key.withheld"')
    runs = {name: begin(rig, name, 40) for name in FORMATS}
    for name, run in runs.items():
        for at in (1, 7, 8, 9, len(KEY) // 2, len(KEY) - 1):
            s = Stream(run, name, "LEAK %d" % at)
            check(not s.clean() and not s.waits and "PART" in s.body(), "%s, at %d: it breaks off" % (name, at))
            check(KEY[:9] not in s.body() and KEY[-9:] not in s.body(), "%s, at %d: no key" % (name, at))
        same(set(s.outcome()), {"invalid_model_response"}, name + ": what is told of it")
        same(Stream(run, name, "WHOLE").clean(), True, name + ": the next one")

    def told():
        with open(rig.folder + "/state/audit.log") as f:
            return f.read()
    check(wait_for(lambda: told().count('"key.withheld"') == before + 6 * len(FORMATS)), "the audit log tells each: %d" % (told().count('"key.withheld"') - before))
    check(KEY[:9] not in told(), "and not the key")


def test_spent(rig, tap):
    """Who says more than was reserved, whatever it was asked for, is cut off; what it said is paid for."""
    for name in FORMATS:
        run = begin(rig, name, 40)
        s = Stream(run, name, "SPENDER")
        check(not s.clean() and not s.waits and "more" in s.body(), "%s: one that goes on and on breaks off" % name)
        check(wait_for(lambda: tap.lost(s.text)), name + ": the provider is hung up on")
        same(s.outcome(), ["model_output_exceeded"], name + ": what is told of it")
        said = run.shown()["completion"]
        check(1000 < said < 3000, "%s: what is counted: %d" % (name, said))
        s = Stream(run, name, "BILL")
        check(not s.clean() and not s.waits, "%s: one that says at last what it cost breaks off" % name)
        same(run.shown()["completion"], said + 300000, name + ": all of that is counted")
        same(Stream(run, name, "WHOLE").clean(), True, name + ": the next one")


def watched(rig):
    """How to ask for the gateway's memory in kB, and whether it is built so that it keeps what it freed."""
    gateway = int(rig.tell("pids")[0])

    def resident():
        return [int(l.split()[1]) for l in open("/proc/%d/status" % gateway) if l.startswith("VmRSS")][0]

    with open("/proc/%d/maps" % gateway) as f:
        maps = f.read()
    return resident, "libasan" in maps or "libtsan" in maps


def test_memory_is_given_back(rig, tap):
    """What many streams at a time needed is the system's again when they are gone."""
    resident, sanitized = watched(rig)
    streams = []
    for _ in range(3):
        run = begin(rig, "chat", 60)
        token = run.token()
        streams += [Stream(run, "chat", "HANG", read=False, token=token) for _ in range(50)]
    check(all(s.until(b"PART") for s in streams), "150 streams")
    most = resident()
    for s in streams:
        s.s.close()
    check(sanitized or wait_for(lambda: resident() < most - 3000), "%d kB, and %d without them" % (most, resident()))


def test_slow_reader(rig, tap):
    """3 MB for a client that reads nothing for a while: the provider waits, and nothing is lost."""
    resident, sanitized = watched(rig)
    run = begin(rig, "chat", agent="vast")
    same(Stream(run, "chat", "MUCH", max_tokens=10**6).clean(), True, "3 MB at once")
    before = resident()
    slow = [Stream(run, "chat", "MUCH", read=False, buffer=4096, max_tokens=10**6) for _ in range(8)]
    for s in slow:
        check(s.until(b"xxx"), "it has begun")
    time.sleep(1)
    grown = resident() - before
    check(sanitized or grown < 12000, "eight streams of 3 MB that nobody reads: %d kB" % grown)
    for s in slow:
        s.all()
        check(s.clean() and s.body().count("x" * 1000) == 3000, "and then all of it")


def test_store_dies(rig, tap):
    """Its end is not told before the store has said that it may be; a store that is killed comes back."""
    run = begin(rig, "chat")
    s = Stream(run, "chat", "HELD", read=False)
    check(s.until(b"PART"), "it goes on")
    rig.tell("restart_store")
    tap.release()
    check(s.all().clean(), "a store that died under a stream and is back")
    same(s.outcome(), ["ok"], "what is told of it")
    tap.gone.clear()


def test_many(rig, tap):
    runs = [begin(rig, "chat", 60) for _ in range(4)]
    got = []
    threads = [threading.Thread(target=lambda r=r, n=n, t=r.token(): got.append(Stream(r, n, "WHOLE", token=t).clean()))
               for r in runs for n in ("chat", "responses") for _ in range(20)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    same((len(got), all(got)), (160, True), "160 streams at once")


def silence(rig):
    """With limits of 2.5 s for the first byte and 1 s of silence behind it."""
    for name in FORMATS:
        run = begin(rig, name)
        s = Stream(run, name, "MUTE")
        check(s.whole() and s.answer.status >= 500, "%s: a head and no word is an error: %r" % (name, s.raw[:80]))
        s = Stream(run, name, "HANG")
        check(not s.clean() and not s.waits and "PART" in s.body(), "%s: silence in the middle breaks off: %r" % (name, s.raw[-60:]))
        same(Stream(run, name, "DRIP", read=False).until(b"PART"), True, name + ": who speaks goes on")
        same(run.shown()["used"], 3, name + ": each was a call")


BEATS = {"chat": ": still there\n\n", "responses": ": still there\n\n", "messages": 'event: ping\ndata: {"type":"ping"}\n\n'}


def beats(rig, tap):
    """With a sign of life every second; all at once, as each waits."""
    tap.gone.clear()
    good = [(n, a, w) for n in BEATS for a, w in (("open", "LATE WHOLE"), ("open", "HELD"), ("calm", "LATE GOOD"))]
    bad = [(n, a, w) for n in BEATS for a, w in (("open", "LATE REFUSED"), ("calm", "LATE REFUSED"), ("open", "LATE KEYLESS"), ("calm", "LATE KEYLESS"), ("calm", "LATE OWN WAY"),
                                                   ("open", "LATE CLEAN SHUT"), ("calm", "LATE HALF"))]
    ended = [(n, "calm", "HANG " + how) for n in BEATS for how in ("revoke", "close", "leave")]
    open_now = {k: Stream(begin(rig, k[0], agent=k[1]), k[0], k[2], read=False) for k in good + bad + ended}
    # One of a format that has none waits as long, and hears nothing.
    silent = [Stream(begin(rig, "gemini", agent=agent), "gemini", what, read=False) for agent, what in (("open", "LATE WHOLE"), ("open", "HELD"), ("calm", "LATE GOOD"))]
    for (name, agent, what), s in open_now.items():
        beat = BEATS[name].encode()
        if what == "HELD":
            check(s.until(b"PART"), "%s %s: it speaks first" % (name, what))
        while s.raw.count(beat) < 2:
            s.raw += s.s.recv(65536) or sys.exit("%s %s: it ended" % (name, what))
        same((s.answer.status, s.answer.headers.get("content-type")), (200, "text/event-stream"), "%s %s: a sign of life, and again" % (name, what))
    for name, agent, what in ended:
        s, how = open_now[name, agent, what], what.split()[1]
        if how == "leave":
            s.s.close()
        else:
            rig.tell(*((how, s.run.id) if how == "close" else (how, s.run.tenant, s.run.id)))
        check(wait_for(lambda: tap.lost(s.text)), "%s, %s: the provider is hung up on" % (name, how))
        check(how == "leave" or not s.all().clean(), "%s, %s: it breaks off" % (name, how))
    tap.release()
    for s in silent:
        check(s.all().clean() and len(t_frames.events_of(s.body())) == s.body().count("data: {") and "\n:" not in s.body(), "gemini: no sign of life")
    for name, agent, what in good:
        s = open_now[name, agent, what].all()
        check(s.clean(), "%s %s: and then all of it" % (name, what))
        got, want = s.body().replace(BEATS[name], ""), "".join(FORMATS[name][3:5])
        if agent == "open":
            same([json.loads(l[6:]) for l in got.split("\n") if l.startswith("data: {")], [json.loads(l[6:]) for l in want.split("\n") if l.startswith("data: {")],
                 "%s %s: the same events" % (name, what))
        else:
            same(CLIENTS[name](t_frames.events_of(got), False), {k: v for k, v in ANSWERS[name].items() if name != "chat" or k != "usage"}, name + ": the answer")
        same(s.run.shown()["used"], 1, name + ": one call")
    # Its status is settled: an error is the format's event, and a clean end only where that is one of its ends, by which codex stops.
    for name, agent, what in bad:
        s, stop = open_now[name, agent, what].all(), "KEYLESS" in what or "OWN WAY" in what
        check(s.clean() == (name == "responses" and "SHUT" not in what) and not s.waits, "%s %s: it breaks off, or has failed" % (name, what))
        if "SHUT" in what:
            check("PART" in s.body() and "error" not in s.body(), "%s: of a stream that had begun there is what came of it" % name)
            continue
        (kind, e), = t_frames.events_of(s.body().replace(BEATS[name], ""))
        if name == "responses":
            same((kind, e["response"]["status"], e["response"]["error"]["code"] == "invalid_prompt"), ("response.failed", "failed", stop), what + ": %s" % e)
            check("REFUSED" not in what or "try again in 7s" in e["response"]["error"]["message"], what + ": when to ask again: %s" % e)
        else:
            same((kind, isinstance(e["error"]["message"], str), e.get("type")), (None, True, None) if name == "chat" else ("error", True, "error"), what)
            check("KEYLESS" not in what or e["error"].get("code") == "provider_key_refused", what + ": %s" % e)
    tap.gone.clear()


def memory_of_requests(rig, tap):
    """12 MB for requests, three times for one of 1 MB that is read, and once while it is at the provider."""
    pad = "x" * 990000

    def opens(run):
        """So many calls until one is refused."""
        held = []
        while True:
            s = Stream(run, "chat", "HANG %d" % len(held), read=False, pad=pad)
            if not wait_for(lambda: tap.asked(s.text) or select.select([s.s], [], [], 0)[0]) or not tap.asked(s.text):
                return held, s.all()
            if len(held) > 9:
                sys.exit("there is no end of room")
            held.append(s)

    runs = [begin(rig, "chat", 40, agent="calm") for _ in range(5)]
    held = []
    for run, n in zip(runs, (5, 3, 1, 1, 0)):
        mine, last = opens(run)
        held.append(mine)
        same(len(mine), n, "calls of run %s that there is room for" % run.id)
        same((last.answer.status, last.answer.code, last.answer.headers.get("retry-after")), (503, "resources_exhausted", "1"), "and one more: %r" % last.raw[:300])
        same(run.shown()["used"], n, "which spends nothing")
    # Before its body is sent; what has none is not concerned.
    body = json.dumps({"model": MODEL, "messages": [], "x": pad}).encode()
    a = raw_call(runs[4].port, request("POST", FORMATS["chat"][0], runs[4].token(), body)[:-len(body)])
    same((a.status, a.code), (503, "resources_exhausted"), "refused by its head")
    same(get(runs[0].port, "/internal/v1/models", runs[0].token()).status, 200, "a request without a body")
    same(Stream(runs[4], "chat", "GOOD").clean(), True, "a small one")
    same(Stream(runs[0], "chat", "GOOD", pad=pad).answer.status, 503, "a large one of who has most")
    for s in held[0]:
        s.s.close()
    check(wait_for(lambda: Stream(runs[0], "chat", "GOOD", pad=pad).clean()), "once they are gone there is room again")
    for s in held[1] + held[2] + held[3]:
        s.s.close()
    # Whatever arrives at once, there is never more than that.
    resident, sanitized = watched(rig)
    before, pad = resident(), "x" * 1900000
    rush = [begin(rig, "chat", 40, agent="calm") for _ in range(8)]
    got = []

    def ask(run, token, i):
        got.append(Stream(run, "chat", "GOOD HELD %d" % i, token=token, pad=pad).answer.status)
    tap.gone.clear()
    threads = [threading.Thread(target=ask, args=(r, r.token(), i)) for r in rush for i in range(8)]
    [t.start() for t in threads]
    check(wait_for(lambda: len(got) >= 58), "64 of 2 MB: most are refused, %s" % got)
    grown = resident() - before
    check(sanitized or grown < 40000, "64 requests of 2 MB where there are 12 MB for them: %d kB" % grown)
    tap.release()
    [t.join() for t in threads]
    check(0 < got.count(200) <= 6 and set(got) <= {200, 503, 0}, "those that were let in are answered: %s" % got)
    tap.gone.clear()


def whole_limits(rig, tap):
    """A whole stream has at most 4 s and 150,000 bytes here."""
    run = begin(rig, "chat")
    s = Stream(run, "chat", "DRIP")
    check(not s.clean() and not s.waits and "PART" in s.body(), "one that never ends is broken off: %r" % s.raw[-60:])
    check(wait_for(lambda: tap.lost(s.text)), "and the provider is hung up on")
    same(s.outcome(), ["model_timeout"], "what is told of it")
    run = begin(rig, "chat", agent="vast")
    s = Stream(run, "chat", "MUCH", max_tokens=10**6)
    check(not s.clean() and not s.waits and 10 < s.body().count("x" * 1000) < 150, "one that is too long is broken off: %d events" % s.body().count("x" * 1000))
    same(s.outcome(), ["model_response_too_large"], "what is told of that")
    same(Stream(run, "chat", "WHOLE").clean(), True, "the next one")


def rig_of(top, tap, *limits):
    rig = Rig(top)
    rig.tell("secret", "signing", RUN_SECRET)
    rig.tell("secret", "key", KEY)
    for words in limits:
        rig.tell(*words)
    rig.tell("provider", "p-main", tap.url, "-", "key", 1)
    rig.tell("provider", "p-anth", tap.url, "-", "key", 1, "anthropic")
    rig.tell("provider", "p-gem", tap.url, "-", "key", 1, "gemini")
    rig.tell("profile", "gem", "p-gem", "m-gem")
    rig.tell("profile", "main", "p-main", MODEL)
    rig.tell("profile", "anth", "p-anth", "m-anth")
    rig.tell("agent", "open", "agent", 0, 0, 1000, 3)
    rig.tell("agent", "calm", "agent", 0, 1, 1000, 3)
    rig.tell("agent", "vast", "agent", 0, 0, 1000000, 3)
    rig.start()
    return rig


def main():
    if os.geteuid() != 0:
        print("needs root: the store tells roles by uid")
        return 77
    top = folder()
    try:
        tap = Upstream()
        rig = rig_of(top, tap, ("timeout", 300000))
        for name, test in list(globals().items()):
            if name.startswith("test_") and (not sys.argv[1:] or name in sys.argv[1:]):
                try:
                    test(rig, tap)
                except Exception:
                    traceback.print_exc()
                    check(False, name + " broke off")
        rig.stop()
        if not sys.argv[1:] or "silence" in sys.argv[1:]:
            remove(top)
            top = folder()
            rig = rig_of(top, tap, ("timeout", 2500), ("idle", 1), ("whole", 4, 150000))
            silence(rig)
            whole_limits(rig, tap)
            rig.stop()
        if not sys.argv[1:] or "beats" in sys.argv[1:]:
            remove(top)
            top = folder()
            rig = rig_of(top, tap, ("timeout", 300000), ("idle", 300), ("beat", 1))
            beats(rig, tap)
            rig.stop()
        if not sys.argv[1:] or "memory_of_requests" in sys.argv[1:]:
            remove(top)
            top = folder()
            rig = rig_of(top, tap, ("timeout", 300000), ("memory", 12000000))
            memory_of_requests(rig, tap)
            rig.stop()
    finally:
        log = top + "/pinfold-gateway.log"
        if (counts["failed"] or sys.exc_info()[0]) and os.path.exists(log):
            print("".join(open(log).readlines()[-20:]))
        remove(top)
    print("%d passed, %d failed" % (counts["passed"], counts["failed"]))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
