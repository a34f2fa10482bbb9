"""Wrong credentials, counted by where they come from: 429 behind a number a minute, and nobody else is shut out."""
import json
from fastcgi import *
from rig import Rig

MOST = 5
CODE = 151  # too_many_failures
WRONG = "pfa_" + "A" * 16 + "_" + "B" * 43


def cases(check, program):
    rig = Rig(program, settings={"auth_failures_per_minute": MOST})
    def send(token, source, path="/v1/runs", **more):
        return ask(rig.path, request("GET", path, token, more=[("REMOTE_ADDR", source)] if source else [], **more))
    def wrong(source, path="/v1/runs"):
        a = send(WRONG, source, path)
        return a.status, a.json["error"]
    def bursts():
        return [n for n in rig.store.notes if n["code"] == CODE]

    few, many = (401, "unauthorized"), (429, "too_many_failures")
    check("a few are told what is wrong", [wrong("192.0.2.1") for _ in range(MOST)] == [few] * MOST)
    check("one line of the audit log for none of them yet", bursts() == [])
    a = send(WRONG, "192.0.2.1")
    check("more are told to wait", refused(a, 429, "too_many_failures") and 1 <= int(a.headers["retry-after"]) <= 60, a)
    check("on every route", all(wrong("192.0.2.1", p) == many for p in ("/v1/runs/x", "/v1/limits", "/v1/inbox", "/v1/runs/x/events?stream=1", "/metrics")))
    check("a valid token of that address works", send(rig.token, "192.0.2.1").status == send(rig.device, "192.0.2.1").status == 200)
    check("and lets nothing be forgotten", wrong("192.0.2.1") == many)
    check("a burst is one line, which says from where", [n["subject"] for n in bursts()] == ["GET /v1/runs from 192.0.2.1"], rig.store.notes)
    check("nobody else is meant", wrong("192.0.2.2") == few and wrong("2001:db8::1") == few and wrong(None) == few)
    check("the same address in another spelling", wrong("::ffff:192.0.2.1") == many)

    check("who shows nothing is not counted", [(a.status, a.json["error"]) for a in [send(None, "192.0.2.3") for _ in range(3 * MOST)]] == [few] * 3 * MOST)
    def odd(value):
        return ask(rig.path, request("GET", "/v1/runs", more=[("REMOTE_ADDR", "192.0.2.4"), ("HTTP_AUTHORIZATION", value)])).status
    check("who shows anything else is", [odd(v) for v in ("Basic eDp5", "Bearer x", "Bearer ", "Bearer " + WRONG, "Bearer " + WRONG + "=", "bearer " + WRONG)] == [401] * MOST + [429])

    check("a network of its own is one", [wrong(f"2001:db8:0:7::{i}") for i in range(MOST + 1)] == [few] * MOST + [many])
    check("its neighbour is another", wrong("2001:db8:0:8::1") == few)
    check("its line says which", bursts()[-1]["subject"] == "GET /v1/runs from 2001:db8:0:7::/64", bursts())
    check("what is no address is one", [wrong(s) for s in ("unix:", "x" * 50, "1.2.3", "1.2.3.4.5", "::g")].count(many) >= 1)
    check("and a valid token works there, too", send(rig.token, "unix:").status == 200)

    # A token that this process remembers, and that is dead by now, is wrong like any other.
    run = json.loads(ask(rig.path, request("POST", "/v1/runs", rig.token, json.dumps(
        {"instruction": "x", "files": [{"path": "a.py", "content": "x\n"}], "allowedPaths": ["a.py"], "checks": [["git", "diff", "--check"]]}).encode())).body)["runId"]
    check("remembered", send(rig.token, "192.0.2.5", "/v1/runs/" + run).status == 200)
    rig.store.tokens.clear()
    a = [send(rig.token, "192.0.2.5", "/v1/runs/" + run).status for _ in range(MOST + 1)]
    check("forgotten, and counted", a == [401] * MOST + [429], a)
    a = [send(rig.device, "192.0.2.1").status, wrong("192.0.2.6")[0]]
    check("it stops, and was well until then", rig.alive() and a == [429, 401] and rig.stop() == 0, a)
