#!/usr/bin/python3 -B
"""Changed tokens: the public API's from outside, a run's own from inside its box. Each change is refused in the same words."""
import base64
from boundary import *
from client import *

mine, front = token(), Front()
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def changed(t):
    """Every place another character, dropped, doubled, swapped; then the ends, cases and other spellings of the bytes."""
    for i, c in enumerate(t):
        yield t[:i] + ALPHABET[(ALPHABET.find(c) + 1) % 64] + t[i + 1:]
        yield t[:i] + ALPHABET[(ALPHABET.find(c) + 32) % 64] + t[i + 1:]
        yield t[:i] + t[i + 1:]
        yield t[:i] + c + t[i:]
        if i and t[i - 1] != c:
            yield t[:i - 1] + c + t[i - 1] + t[i + 1:]
        for other in "=+/.,%~\x7f\xe9 ":
            yield t[:i] + other + t[i + 1:]
    for k in (0, 1, 4, 20, 21, 32):
        yield t[:k]
        yield t[k + 1:]
    yield from (t.upper(), t.lower(), t[::-1], t + "=", t + "A", t + "." + t, t + t, "pfa_", "pfa__", "pfd_" + t[4:], t.replace("pfa", "pfA"),
                "pfa_" + "A" * 60, "pfa_" + "_" * 60, "A" * 8000)


RUN_TOKENS = '''
import http.client, json, os
A = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
W = "/workspace/"
tok = {n: open(W + ".pinfold-%s-token" % n).read().strip() for n in ("run", "event", "approval")}
run = os.environ["PINFOLD_RUN_ID"]
c = http.client.HTTPConnection("127.0.0.1", 9797, timeout=120)
def ask(method, path, token, body=None):
    c.request(method, path, body, {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    r = c.getresponse()
    got = json.loads(r.read())
    return "%d %s" % (r.status, got.get("error"))
def event(kind, data, seq):
    line = json.dumps({"event_type": kind, "run_id": run, "task_id": run, "sequence": seq, "data": data}) + "\\n"
    return ask("POST", "/internal/v1/runs/%s/events" % run, tok["event"], json.dumps({"lines": [line]}))
PATHS = {"run": ("GET", "/internal/v1/models"), "event": ("POST", "/internal/v1/runs/%s/events" % run),
         "approval": ("GET", "/internal/v1/runs/%s/approvals/x" % run)}
seen, n = {}, 0
for name, t in tok.items():
    method, path = PATHS[name]
    dot = t.index(".")
    changes = [t[:i] + A[(A.find(x) + k) % 64] + t[i + 1:] for i, x in enumerate(t) for k in (1, 2, 16, 32) if x != "."]
    changes += [t[:i] + t[i + 1:] for i in range(len(t))] + [t[:i] + x + t[i:] for i, x in enumerate(t)]
    changes += [t[:k] for k in range(0, len(t), 7)] + [t + x for x in ("=", "A", ".", ".x")] + [t[:dot + 1], t[dot:], "." + t, "A." + t[dot + 1:]]
    # The last character holds spare bits: the same bytes, spelt otherwise.
    changes += [t[:-1] + A[(A.find(t[-1]) & ~3) + k] for k in range(4) if A[(A.find(t[-1]) & ~3) + k] != t[-1]]
    for x in sorted(set(changes) - {t}):
        n += 1
        a = ask(method, path, x, b'{"lines":["x"]}' if method == "POST" else None)
        seen.setdefault(a, []).append(x[:20])
for name in tok:
    for other in tok:
        if name != other:
            n += 1
            method, path = PATHS[other]
            a = ask(method, path, tok[name], b'{"lines":["x"]}' if method == "POST" else None)
            seen.setdefault(a, []).append(name + " at " + other)
good = ask("GET", "/internal/v1/models", tok["run"])
print(event("tokens", {"tried": n, "seen": {k: [len(v), v[0]] for k, v in seen.items()}, "good": good}, 1))
'''


def public():
    tried, wrong = 0, []
    for t in dict.fromkeys(changed(mine)):
        if t == mine or "\n" in t:
            continue
        a = front.call("GET", "/v1/runs?limit=1", t.encode("latin-1"))
        tried += 1
        # A blank behind the value is no part of a header; the web server drops it.
        if t.strip() != mine and (a is None or (a.status, a.error) not in ((401, "unauthorized"), (400, "invalid_request")) and a.status != 431
                                  and not (a.error is None and a.status == 400)):
            wrong.append((t, a))
    check(f"{tried} changed API tokens are refused", not wrong and tried > 800, wrong[:3])
    for value in ("bearer " + mine, "BEARER " + mine, "Bearer  " + mine, "Bearer\t" + mine, "Bearer" + mine, mine, "Basic " + mine, "Token " + mine,
                  f"Bearer {mine}, Bearer {mine}", f"Bearer {mine} {mine}", "Bearer " + mine + "\x0b", "Bearer \"" + mine + "\"",
                  "Basic " + base64.b64encode(("x:" + mine).encode()).decode(), "Bearer ", "", "Bearer"):
        a = front.call("GET", "/v1/runs?limit=1", headers=[("Authorization", value)])
        check(f"Authorization: {value.replace(mine, 'TOKEN')!r}", a is None or a.status in (400, 401), a)
    a = front.call("GET", "/v1/runs?limit=1", mine, headers=[("Authorization", "Bearer " + mine)])
    check("the header twice", a is not None and a.status in (400, 401), a)
    a = front.call("GET", "/v1/runs?limit=1", mine)
    check("the token itself", a is not None and a.status == 200, a)


def inside():
    run = start(mine, {"agent.py": RUN_TOKENS}, agent="script", checks=[["git", "diff", "--check"]])
    until(mine, run)
    told = [e["data"] for e in events(mine, run) if e["event_type"] == "tokens"]
    check("the box told", len(told) == 1, events(mine, run)[-3:])
    if told:
        t = told[0]
        check("thousands were tried", t["tried"] > 3000, t["tried"])
        check("each changed run token is refused in the same words", list(t["seen"]) == ["401 invalid_run_token"], t["seen"])
        check("the token itself", t["good"] == "200 None", t["good"])


with Unharmed():
    case("public", public)
    case("inside", inside)
done()
