#!/usr/bin/python3 -B
"""Every principal's token is rotated while it is used: no request is refused, no stream that has the new one is cut, and the
old one is dead in every thread at its next use."""
import http.client, threading, urllib.parse
from concurrent.futures import ThreadPoolExecutor
from streams import *

AT = urllib.parse.urlsplit(URL)
TENANT, AT_ONCE, ROUNDS = "crowd", 48, 2
secrets = []


def made(*words):
    t = operator("token", "create", "--tenant", TENANT, *words).strip()
    secrets.append(t)
    return t


def act(what, t, *words):
    return operator("token", what, "--tenant", TENANT, *words, t[4:20])


def rows():
    return {r["id"]: r for r in (json.loads(l) for l in operator("--json", "token", "list", "--tenant", TENANT).splitlines())}


class Principal(threading.Thread):
    """Asks all the time, with the token that it has at the moment."""

    def __init__(self, kind, run, *words):
        super().__init__(daemon=True)
        self.kind, self.run_id, self.token = kind, run, made("--label", f"{kind} {len(secrets)}", *words)
        self.first, self.asked, self.bad, self.stop = self.token, {}, [], False
        self.paths = ["/v1/runs/" + run, "/v1/runs", f"/v1/runs/{run}/events", "/v1/limits"] + (["/v1/inbox"] if kind == "device" else [])
        if "--metrics" in words:
            self.paths.append("/metrics")

    def run(self):
        n = 0
        while not self.stop:
            t, path = self.token, self.paths[n % len(self.paths)]
            try:
                status = call("GET", path, bearer=t)[0]
            except Exception as e:
                status = repr(e)
            if status != 200:
                self.bad.append((status, path))
            self.asked[t], n = self.asked.get(t, 0) + 1, n + 1

    def uses(self, t):
        """t has been used for a whole request, so no other one is under way."""
        return wait_for(lambda: self.asked.get(t, 0) > 1 or not self.is_alive())


def at_once(bearer, path):
    """What each of many threads answers to it at the same moment."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda _: call("GET", path, bearer=bearer)[0], range(AT_ONCE)))


def follow(run, bearer):
    r = Reader(URL, run, bearer)
    r.until(lambda: r.frames)
    t = threading.Thread(target=r.over, daemon=True)
    t.start()
    return r


def rotate_all(principals, run, streams):
    for p in principals:
        old, path = p.token, "/v1/runs/" + run
        new = act("rotate", old).strip()
        secrets.append(new)
        check(f"{p.kind}: NEXT is of the same principal", new != old and new[:20] == old[:20] and len(new) == len(old))
        check(f"{p.kind}: both are good", at_once(old, path) + at_once(new, path) == [200] * 2 * AT_ONCE)
        row = rows()[old[4:20]]
        check(f"{p.kind}: both are listed", row["state"] == "active" and row["next"]["secretAt"] >= row["secretAt"], row)
        streams.append((follow(run, old), follow(run, new)))
        p.token = new
        check(f"{p.kind}: it uses the new one", p.uses(new))
        act("promote", old)
        check(f"{p.kind}: the old one is dead everywhere at once", at_once(old, path) == [401] * AT_ONCE)
        check(f"{p.kind}: the new one is not", at_once(new, path) == [200] * AT_ONCE)


def under_load():
    keeper = made("--label", "keeper")
    run = start(keeper, {"agent.py": "import time\ntime.sleep(100000)\n"}, agent="script", checks=[["git", "diff", "--check"]], limits={"wallTimeSeconds": 220})
    until(keeper, run, lambda v: v["status"] == "running")
    principals = [Principal("api", run), Principal("api", run, "--approve"), Principal("scrape", run, "--metrics"), Principal("device", run, "--device"), Principal("device", run, "--device", "--days", "30")]
    for p in principals:
        p.start()
    streams = []
    for _ in range(ROUNDS):
        rotate_all(principals, run, streams)
    asked = sum(sum(p.asked.values()) for p in principals)
    for p in principals:
        p.stop = True
    for p in principals:
        p.join(PATIENCE)
    bad = [b for p in principals for b in p.bad]
    check(f"of {asked} requests none was refused", not bad and asked > 50, bad[:5])
    print(f"   {asked} requests of {len(principals)} principals, {ROUNDS * len(principals)} rotations, {len(bad)} refused")

    # Whoever is looked at after this one's end has been looked at since the last rotation.
    late = made("--label", "late")
    reader = follow(run, late)
    act("revoke", late)
    check("a revoked one's stream is cut", wait_for(lambda: reader.ended))
    last = {p.token for p in principals}
    check("so is that of a secret that was replaced", wait_for(lambda: all(old.ended for old, _ in streams)), [old.ended for old, _ in streams])
    final = [new for _, new in streams[-len(principals):]]
    sequence = Gateway().append(run, {"n": 1}, tenant=TENANT)
    check("the others go on", wait_for(lambda: all(sequence in r.ids for r in final)) and not any(r.ended for r in final), [(r.ended, r.ids) for r in final])
    check("a token that is revoked is so with both", revoked_with_next(run))
    call("POST", f"/v1/runs/{run}/cancel", bearer=keeper)
    until(keeper, run)
    return last


def revoked_with_next(run):
    t = made("--label", "gone")
    new = act("rotate", t, "--days", "3").strip()
    secrets.append(new)
    row = rows()[t[4:20]]
    good = "expiresAt" not in row and 2 * 86400000 < row["next"]["expiresAt"] - time.time() * 1000 < 4 * 86400000
    act("revoke", t)
    return good and [call("GET", "/v1/runs/" + run, bearer=x)[0] for x in (t, new)] == [401, 401]


def refused(*words):
    p = subprocess.run([CLI, *words], env=dict(os.environ, PINFOLD_ROOT=INSTANCE), capture_output=True, text=True)
    return p.returncode, p.stderr, p.stdout


def orders():
    t = made("--label", "orders")
    id = t[4:20]
    word = lambda what, *more: refused("token", what, "--tenant", TENANT, *more, id)
    check("nothing to promote", word("promote")[0] == 1 and "token_next_missing" in word("promote")[1])
    check("nothing to drop", word("drop")[0] == 1 and "token_next_missing" in word("drop")[1])
    new = act("rotate", t).strip()
    secrets.append(new)
    again = word("rotate")
    check("one NEXT at a time, and it is not told again", again[0] == 1 and "token_next_exists" in again[1] and again[2] == "", again)
    text = next(l for l in operator("token", "list", "--tenant", TENANT).splitlines() if l.startswith(id))
    check("the list has both, and neither", text.count("(token set)") == 2 and t not in text and new not in text, text)
    act("drop", t)
    check("dropped", [call("GET", "/v1/runs", bearer=x)[0] for x in (t, new)] == [200, 401])
    check("another tenant's id is none", refused("token", "rotate", "--tenant", "other", id)[:1] == (1,) and "token_not_found" in refused("token", "rotate", "--tenant", "other", id)[1])
    check("nor is what is no id", "token_not_found" in refused("token", "rotate", "--tenant", TENANT, "x" * 16)[1] and "token_not_found" in refused("token", "rotate", "--tenant", TENANT, "../x")[1])
    for bad in (["token", "rotate"], ["token", "promote", "--days", "3", id], ["token", "rotate", "--days", "0", id], ["token", "rotate", id, id], ["token", "create", "--days", "x"]):
        check(f"usage: {' '.join(bad[1:])}", refused(*bad)[0] == 2)


def told():
    lines = [json.loads(l) for l in open(INSTANCE + "/var/log/pinfold/audit.log")]
    mine = [l for l in lines if l["tenant"] == TENANT and l["event"].startswith("token.")]
    check("the audit log knows", {"token.issue", "token.rotate", "token.promote", "token.drop", "token.revoke"} <= {l["event"] for l in mine} and
          {l["actor"] for l in mine} == {"operator"})
    found = []
    for root in ("/var", "/run", "/etc"):
        for folder, _, names in os.walk(INSTANCE + root):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path):
                    data = open(path, "rb").read()
                    found += [path for s in secrets if s[21:].encode() in data]
    check(f"none of {len(secrets)} secrets is kept anywhere", len(secrets) > 10 and not found, found[:3])


case("under load", under_load)
case("orders", orders)
case("told", told)
done()
