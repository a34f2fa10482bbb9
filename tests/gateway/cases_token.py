"""Cases about who may call: audiences, boxes, tokens, revocation."""
import hashlib
import json
import os
import socket
import threading
import time

from cases_common import *  # noqa: F403
from rig import *  # noqa: F403


def test_audiences(rig, model):
    """Every inner route that is promised, with a token of each audience, and with none."""
    run = rig.run(9)
    bodies, spent = set(), 0
    vectors = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../vectors/promised.tab")
    routes = [line.split()[1:] for line in open(vectors) if line.startswith("inner ")]
    check(len(routes) >= 4, "inner routes are promised")
    for method, path, handler, _, who, *_ in routes:
        audience = who.removeprefix("run:")
        where = path.replace("{runId}", run.id).replace("{requestId}", "approval-1").replace("{model}", MODEL)
        check(who != audience, path + " is for run tokens")
        for held in ("model", "events", "approvals"):
            token = run.token(held)
            if handler == "chat":
                a = run.chat("matrix", token=token)
                spent += a.status == 200
            elif handler == "events":
                a = run.send_events([run.line()], token=token)
            elif method == "POST":  # a format that its agent does not speak
                a = post(run.port, where, token, BASE)
            else:
                a = get(run.port, where, token)
            if held == audience:
                check(a.status in (200, 202, 404) and a.code != "invalid_run_token", "%s token at %s: %d" % (held, path, a.status))
            else:
                same((a.status, a.code), (401, "invalid_run_token"), "%s token at %s" % (held, path))
                a.json.pop("requestId")
                bodies.add(json.dumps(a.json))
    same(len(bodies), 1, "every refusal says the same")
    same((run.shown()["used"], spent), (1, 1), "refusals spend nothing")


def test_other_run(rig, model):
    one, two = rig.run(5), rig.run(5)
    three = rig.run(5, tenant="other")
    for audience in ("model", "events", "approvals"):
        token = one.token(audience)
        for box in (two, three):
            if audience == "model":
                a = post(box.port, one.path(audience), token, BASE)
            elif audience == "events":
                a = post(box.port, one.path(audience), token, {"lines": [one.line()]})
            else:
                a = get(box.port, one.path(audience), token)
            same((a.status, a.code), (401, "invalid_run_token"), "%s token of one run in another's box" % audience)
    a = post(one.port, two.path("events"), one.token("events"), {"lines": [two.line()]})
    same((a.status, a.code), (401, "invalid_run_token"), "another run's id in the path")
    a = get(one.port, two.path("approvals"), one.token("approvals"))
    same((a.status, a.code), (401, "invalid_run_token"), "another run's id in the poll's path")
    for r in (one, two, three):
        same(r.shown()["used"], 0, "nothing spent")


def test_matrix(rig, model):
    """Each row of spec/routes.tab for the inside, by each kind of token, about the run itself and about others."""
    here = os.path.dirname(os.path.abspath(__file__))
    rows = [line.split("\t") for line in open(os.path.join(here, "../../spec/routes.tab")) if line.startswith("internal")]
    reached = {"chat": (200, 502), "models": (200,), "events": (202,), "approval_poll": (200, 202), "responses": (404,),
               "messages": (404,), "count_tokens": (404,), "gemini": (404,), "gemini_stream": (404,), "gemini_count": (404,),
               "gemini_models": (404,), "gemini_model": (404,)}
    # A run that is over before its first call is refused in the words of what it calls.
    revoked = {"approval_poll": (404, "approval_not_found"), "responses": (400, "inactive_run_token"),
               "messages": (403, "inactive_run_token"), "count_tokens": (403, "inactive_run_token"),
               "gemini": (403, "inactive_run_token"), "gemini_count": (403, "inactive_run_token"), "gemini_stream": (403, "inactive_run_token")}
    same({r[8].strip() for r in rows}, set(reached), "each inner route has a line here")
    audiences = ("model", "events", "approvals")
    run, near, far, gone = rig.run(60), rig.run(5), rig.run(5, tenant="other"), rig.run(5)
    for r in (run, near, far):
        r.send_events([json.dumps({"event_type": "approval.requested", "run_id": r.id, "task_id": r.id, "sequence": 1, "data": {
            "request_id": "ask-1", "action_id": "a", "effect": "write", "reason": "r", "preview": "p"}}) + "\n"])
    late = {a: gone.token(a) for a in audiences}
    rig.tell("revoke", gone.tenant, gone.id)
    invalid, cells = (401, "invalid_run_token"), 0

    def ask(row, box, about, token):
        where = row[2].replace("{runId}", about.id).replace("{requestId}", "ask-1").replace("{model}", MODEL)
        if row[1] == "GET":
            return get(box.port, where, token)
        return post(box.port, where, token, {"lines": [box.line()]} if row[8].strip() == "events" else BASE)
    for row in rows:
        handler, wanted = row[8].strip(), row[4]
        callers = [("nothing", run, None, invalid), ("no token", run, "x.y", invalid),
                   ("an API token", run, "pfa_" + "A" * 16 + "_" + "A" * 43, invalid),
                   ("a device", run, "pfd_" + "A" * 16 + "_" + "A" * 43, invalid)]
        for a in audiences:
            right = a == wanted
            callers += [("its own for " + a, run, run.token(a), None if right else invalid),
                        ("another run's for " + a, run, near.token(a), invalid),
                        ("another tenant's for " + a, run, far.token(a), invalid),
                        ("an expired one for " + a, run, run.token(a, ago=301), (401, "expired_run_token") if right else invalid),
                        ("a revoked one for " + a, gone, late[a], revoked.get(handler, (401, "inactive_run_token")) if right else invalid)]
        for name, box, token, no in callers:
            for about in (box, near, far) if "{runId}" in row[2] else (box,):
                cells += 1
                # What has expired is told so wherever it is shown by its own run; about others nobody learns more.
                want = no if about is box or no == (401, "expired_run_token") else invalid
                a = ask(row, box, about, token)
                what = "%s %s of %s by %s" % (row[1], row[2], "itself" if about is box else about.id, name)
                if want is None:
                    check(a.status in reached[handler], "%s: %s %s" % (what, a.status, a.code))
                else:
                    same((a.status, a.code), want, what)
    same((near.shown()["used"], far.shown()["used"], gone.shown()["used"], run.shown()["used"]), (0, 0, 0, 1), "refusals spend nothing")
    check(cells > 100, "cells: %d" % cells)


def test_token_mutations(rig, model):
    run = rig.run(5)
    good = run.token()
    path = "/internal/v1/models"
    same(get(run.port, path, good).status, 200, "the token itself")
    bad = 0
    conn = None
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for i, c in enumerate(good):
        new = "A" if c == "." else alphabet[(alphabet.index(c) + 1) % 64]
        a = get(run.port, path, good[:i] + new + good[i + 1:])
        bad += (a.status, a.code) != (401, "invalid_run_token")
    same(bad, 0, "every one-character change is refused")
    first, mac = good.split(".")
    for name, t in {"padding": good + "=", "padding before": first + "=." + mac, "third part": good + ".x",
                    "empty third": good + ".", "no mac": first + ".", "no dot": first, "empty": ".", "blank": good + " x",
                    "standard alphabet": first + "." + mac.replace("-", "+").replace("_", "/") + "+",
                    "short mac": first + "." + b64url(b"\0" * 31), "long mac": first + "." + b64url(b"\0" * 33),
                    "long": good + "A" * 2000, "upper": good.upper()}.items():
        a = get(run.port, path, t)
        same((a.status, a.code), (401, "invalid_run_token"), "token: " + name)
    check(get(run.port, path, "A" * 1000000).status in (0, 400, 401, 413, 431), "a token of 1 MB")
    claims = claims_of(good)

    def changed(**more):
        c = dict(claims, **more)
        return json.dumps({k: v for k, v in c.items() if v is not None}, separators=(",", ":"))

    for name, text in {"v 2": changed(v=2), "v text": changed(v="1"), "extra claim": changed(admin=True),
                       "no kid": changed(kid=None), "aud suffix": changed(aud=claims["aud"] + "/"),
                       "aud case": changed(aud=claims["aud"].upper()), "aud array": changed(aud=[claims["aud"]]),
                       "exp text": changed(exp=str(claims["exp"])), "exp negative": changed(exp=-1),
                       "exp float": changed(exp=float(claims["exp"])),
                       "exp huge": changed().replace(str(claims["exp"]), "1e308"),
                       "run other": changed(runId="x"), "tenant other": changed(tenant="other"),
                       "twice": changed()[:-1] + ",\"v\":1}", "blank": changed().replace(",", ", "),
                       "not an object": "[1]", "order": json.dumps(dict(reversed(claims.items())), separators=(",", ":")),
                       "empty": "", "nested": "[" * 300}.items():
        a = get(run.port, path, sign(text))
        check(a.status == 401 and a.code in ("invalid_run_token", "expired_run_token"),
              "signed but wrong, %s: %s %s" % (name, a.status, a.code))
    for name, delta_iat, delta_exp in (("future", 60, 60), ("long life", 0, 1), ("short life", 0, -1)):
        a = get(run.port, path, sign(changed(iat=claims["iat"] + delta_iat, exp=claims["exp"] + delta_exp)))
        same((a.status, a.code), (401, "expired_run_token"), "token time: " + name)
    same(get(run.port, path, run.token(ago=301)).code, "expired_run_token", "an old token")
    same(get(run.port, path, sign(changed(), "x" * 40)).code, "invalid_run_token", "another secret")
    same(get(run.port, path, sign(changed())).status, 200, "our own signing is right")
    same(get(run.port, path, None).code, "invalid_run_token", "no token")
    same(run.shown()["used"], 0, "nothing spent")


def test_next_secret(rig, model):
    run = rig.run(5)
    claims = claims_of(run.token())
    claims["kid"] = hashlib.sha256(b"pinfold run token kid\0" + NEXT_SECRET.encode()).hexdigest()[:8]
    text = json.dumps(claims, separators=(",", ":"))
    same(get(run.port, "/internal/v1/models", sign(text, NEXT_SECRET)).status, 200, "a token of the next secret")
    same(get(run.port, "/internal/v1/models", sign(text)).status, 401, "the next secret's name with the first secret")


def test_revoked(rig, model):
    run = rig.run(9)
    token = run.token()
    s = socket.create_connection(("127.0.0.1", run.port))
    body = json.dumps(BASE).encode()
    same(raw_call(0, request("POST", run.path("model"), token, body), s).status, 200, "before")
    rig.tell("revoke", run.tenant, run.id)
    a = raw_call(0, request("POST", run.path("model"), token, body), s)
    same((a.status, a.code), (401, "inactive_run_token"), "the very next call")
    s.close()
    same(get(run.port, "/internal/v1/models", token).code, "inactive_run_token", "models")
    same(run.send_events([run.line()]).code, "inactive_run_token", "events")
    a = get(run.port, run.path("approvals"), run.token("approvals"))
    same((a.status, a.code), (404, "approval_not_found"), "the poll")
    short = rig.run(9, life_ms=1500)
    wait_for(lambda: get(short.port, "/internal/v1/models", short.token()).status == 401)
    a = short.chat()
    same((a.status, a.code), (401, "inactive_run_token"), "an expired capability")


def test_renewed(rig, model):
    """A run that waited for a person is older than its tokens; they are good for as long as its capability is renewed."""
    run, other = rig.run(9), rig.run(9)
    old = {a: run.token(a, ago=301) for a in ("model", "events", "approvals")}
    models = "/internal/v1/models"

    def codes():
        return [get(run.port, models, old["model"]).status, post(run.port, run.path("model"), old["model"], BASE).status,
                post(run.port, run.path("events"), old["events"], {"lines": [run.line()]}).status,
                get(run.port, run.path("approvals"), old["approvals"]).status]
    same(codes(), [401] * 4, "older than their life")
    rig.tell("renew", other.tenant, other.id, 300000)
    same(codes(), [401] * 4, "another's further life is not theirs")
    rig.tell("renew", run.tenant, run.id, 300000)
    same(codes(), [200, 200, 202, 202], "its run was given a further life")
    same(get(other.port, models, old["model"]).code, "invalid_run_token", "in another box")
    same(get(run.port, models, old["events"]).code, "invalid_run_token", "of another audience")
    same(get(run.port, models, old["model"][:-1]).code, "invalid_run_token", "wrongly signed")
    same(get(run.port, models, run.token(ago=-60)).code, "expired_run_token", "from the future")
    rig.tell("revoke", run.tenant, run.id)
    same(codes(), [401] * 4, "revoked, nothing of it is left")
    short = rig.run(9, life_ms=1500)
    wait_for(lambda: get(short.port, models, short.token()).status == 401)
    same(get(short.port, models, short.token(ago=301)).code, "expired_run_token", "what has expired is not renewed")


def test_finished(rig, model):
    run = rig.run(3)
    token, events = run.token(), run.token("events")
    rig.tell("revoke", run.tenant, run.id)
    rig.tell("finish", run.tenant, run.id)
    same(run.chat(token=token).status, 401, "a model call after the end")
    check(run.send_events([run.line()], token=events).status in (401, 409), "events after the end")
    same(get(run.port, run.path("approvals"), run.token("approvals")).status, 404, "a poll after the end")
