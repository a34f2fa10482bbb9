#!/usr/bin/env python3
"""A model call straight to a provider, through nginx, through Pinfold's gateway (with its store: token, durable budget, checks,
record) and through the npm gateway @portkey-ai/gateway, in one run and in turns: 1, 16 and 64 callers, streamed and not; the
most calls a second of which 99 in 100 take at most 10 ms; memory with 2,000 streams in flight. Figures are medians of the rounds.

Run as root in a build folder (or with PINFOLD_BUILD): bench/gateway.py [--seconds S] [--rounds N] [--only PART,...] [--sides A,...]
PARTS: latency, rate, memory. Needs nginx and npm.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gateway_sides import BUILD, Direct, Nginx, Pinfold, Portkey, body, cpu, memory  # noqa: E402
from rig import remove  # noqa: E402

CALLERS, MANY, LIMIT_US, STEPS = (1, 16, 64), 2000, 10000, 7


def client(side, what, callers, seconds, rate=0, spread=False):
    with tempfile.NamedTemporaryFile(dir=side.top) as f:
        for port, data in side.requests(what, spread):
            f.write(b"%d %d\n" % (port, len(data)) + data)
        f.flush()
        p = subprocess.Popen([BUILD + "/bench/gateway_call", f.name, str(callers), str(seconds), str(rate), side.scheme],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = p.stdout.readline()  # the file was read
    if not line:
        raise SystemExit("%s: the calls failed" % side.name)
    return p, line


def measure(side, what, callers, seconds, rate=0):
    pids = side.pids()
    side.requests(what)  # whatever is to be made for them is there
    before = cpu(pids)
    p, line = client(side, what, callers, seconds, rate)
    p.stdin.close()
    p.wait()
    got = json.loads(line)
    got["cpu"] = (cpu(pids) - before) / got["total"] * 1e6
    return got


def medians(rounds):
    return {k: statistics.median(r[k] for r in rounds) for k in rounds[0]}


def goal(what, value, held, bound):
    print("%s: %.2f (%s: %s)" % (what, value, bound, "held" if held else "MISSED"), flush=True)


def goals(m, got):
    """Of m[streamed, callers][side]."""
    if not all(name in m[False, 1] for name in ("nginx", "pinfold", "portkey")):
        return

    def added(stream, name, key):
        return m[stream, 1][name][key] - m[stream, 1]["direct"][key]

    def of(other):
        return statistics.median(a["rate"] / b["rate"] for a, b in zip(got[False, 16]["pinfold"], got[False, 16][other]))
    x = added(False, "pinfold", "p50") / added(False, "portkey", "p50")
    goal("added at one caller, of what portkey adds", x, x <= 0.25, "at most 0.25")
    x = added(True, "pinfold", "first_p50") / 1e3
    goal("added to a stream's first event at one caller, ms", x, x <= 1, "at most 1")
    for other, least in (("nginx", 0.30), ("portkey", 8)):
        goal("calls a second at 16 callers, of %s" % other, of(other), of(other) >= least, "at least %g" % least)
    x = m[False, 16]["pinfold"]["cpu"] / m[False, 16]["nginx"]["cpu"]
    print("processor time of a call at 16 callers, of nginx: %.1f; portkey's %.1f" % (
        x, m[False, 16]["portkey"]["cpu"] / m[False, 16]["nginx"]["cpu"]), flush=True)


def latency(sides, args):
    all_m, all_got = {}, {}
    print("p50 and p99 of a call, and to its first event, in ms; processor time of it in us, in all processes of the side\n"
          "                    side        p50      p99   added p50     p99  first p50     p99  calls/s  of nginx  of portkey    cpu")
    for stream in (False, True):
        for callers in CALLERS:
            got = {s.name: [] for s in sides}
            for _ in range(args.rounds):
                for s in sides:
                    got[s.name].append(measure(s, body(stream), callers, args.seconds))
            m = {name: medians(r) for name, r in got.items()}
            all_m[stream, callers], all_got[stream, callers] = m, got
            for s in sides:
                one, base = m[s.name], m["direct"]
                of = [("%9.2f" % statistics.median(a["rate"] / b["rate"] for a, b in zip(got[s.name], got[other])))
                      if other in got and s.name != "direct" else " " * 9 for other in ("nginx", "portkey")]
                first = "%9.2f %7.2f" % (one["first_p50"] / 1e3, one["first_p99"] / 1e3) if stream else " " * 17
                added = "%9.2f %7.2f" % ((one["p50"] - base["p50"]) / 1e3, (one["p99"] - base["p99"]) / 1e3) if s.name != "direct" else " " * 17
                print("%s %2d callers %-9s %7.2f  %7.2f   %s  %s %8.0f %s   %s %6s" % (
                    "streamed" if stream else "whole   ", callers, s.name, one["p50"] / 1e3, one["p99"] / 1e3, added, first, one["rate"], *of,
                    "%.0f" % one["cpu"] if s.pids() else ""), flush=True)
    goals(all_m, all_got)


def held(got):
    return got["p99"] <= LIMIT_US and not got["late"]


def rate(sides, args):
    """By halves between none and somewhat more than callers in turns come to; each side's step before anybody's next."""
    for stream in (False, True):
        low, high = {s.name: 0 for s in sides}, {}
        for s in sides:
            high[s.name] = 1.2 * measure(s, body(stream), 16, args.seconds)["rate"]
        for _ in range(STEPS):
            for s in sides:
                try_at = (low[s.name] + high[s.name]) / 2
                # Twice, before it counts as too many: what else the machine did was perhaps in the way.
                if any(held(measure(s, body(stream), 64, args.seconds * 2, try_at)) for _ in range(2)):
                    low[s.name] = try_at
                else:
                    high[s.name] = try_at
        print("%s calls a second at p99 <= %d ms, due at times of their own: %s" % (
            "streamed" if stream else "whole   ", LIMIT_US / 1000, ", ".join("%s %.0f" % (s.name, low[s.name]) for s in sides))
            + "".join("; %s of %s %.2f" % ("pinfold", o, low["pinfold"] / low[o]) for o in ("nginx", "portkey") if low.get(o) and "pinfold" in low),
            flush=True)


def in_flight(sides, args):
    for s in sides:
        if not s.pids():
            continue
        measure(s, body(True), 16, 0.5)
        part = s.pids()[:1] if s.name == "pinfold" else s.pids()
        before = memory(part)
        p, line = client(s, body(True, hold=True), MANY, 0, spread=True)
        assert line == "ready\n", line
        after = memory(part)
        store = " (its store is another %d MiB)" % (memory(s.pids()[1:])[1] >> 10) if s.name == "pinfold" else ""
        p.stdin.close()
        p.wait()
        print("%d streams in flight: %-8s RSS %6.1f MiB, PSS %6.1f MiB; before %6.1f MiB PSS: %5.1f KiB a stream%s" % (
            MANY, s.name, after[0] / 1024, after[1] / 1024, before[1] / 1024, (after[1] - before[1]) / MANY, store), flush=True)


def main():
    parts = {"latency": latency, "rate": rate, "memory": in_flight}
    a = argparse.ArgumentParser()
    a.add_argument("--seconds", type=float, default=0.8)
    a.add_argument("--rounds", type=int, default=5)
    a.add_argument("--only", default=",".join(parts))
    a.add_argument("--sides", default="direct,nginx,pinfold,portkey")
    args = a.parse_args()
    top = tempfile.mkdtemp(prefix="pinfold-bench.")
    os.chmod(top, 0o711)
    sides = []
    try:
        sides.append(Direct(top))
        for kind in (Nginx, Pinfold, Portkey):
            if kind.name in args.sides.split(","):
                sides.append(kind(sides[0]))
        for s in sides:
            s.top = top
        for s in sides:
            for stream in (False, True):
                measure(s, body(stream), 16, 1)  # none is measured cold
        for name in args.only.split(","):
            parts[name](sides, args)
    finally:
        for s in reversed(sides):
            s.stop()
        remove(top)


main()
