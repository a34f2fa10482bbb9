#!/usr/bin/python3 -B
"""Devices on a whole instance: paired with the printed code, seen, revoked; the cookie through the web server; who decides nothing."""
import http.client, os, re, stat, urllib.parse
import sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fcgi"))
import fastcgi
from client import *

mine = token()
HOST = urllib.parse.urlsplit(URL).netloc
SOCKET = INSTANCE + "/run/pinfold/public/fcgi.sock"
CODE = "ABCDEFGHJKMNPQRSTWXYZ23456789"
seen, sources = [], 0  # every secret there was


def code(*words):
    c = json.loads(operator("--json", "device", "pair", *words))["code"]
    seen.append(c)
    return c


def post_pair(body, headers=(), source=None):
    """From an address of its own: only so many tries a minute are one address's, and other tests have theirs."""
    global sources
    sources += 1
    c = http.client.HTTPConnection(HOST, timeout=60, source_address=(source or f"127.0.1.{sources}", 0))
    c.request("POST", "/v1/pair", json.dumps(body), {"Content-Type": "application/json", **dict(headers)})
    r = c.getresponse()
    return r.status, r.headers, json.loads(r.read())


def pair(code, label, body={}, headers=()):
    status, headers, o = post_pair({"code": code, "label": label, **body}, headers)
    if "token" in o:
        seen.append(o["token"])
    return status, headers, o


def listed(bearer=mine):
    return {d["label"]: d for d in get("/v1/devices", bearer)[1]["devices"]}


def answer(method, path, bearer=None, headers=()):
    status, _, body = call(method, path, bearer=bearer, headers=headers)
    return status, json.loads(body).get("error") if body else None


def printed():
    text = operator("device", "pair")
    first, _, qr = text.partition("\n\n")
    said = re.search(r": ([%s]{4})-([%s]{4}) " % (CODE, CODE), first)
    check("the printed code has no look-alikes", said is not None, first)
    lines = qr.rstrip("\n").split("\n")
    check("with the page's address", f"for a browser: {URL}/#pair={''.join(said.groups())}" in first, first)
    check("and a QR code beside it, as wide as it is high", len(lines) > 10 and len({len(l) for l in lines}) == 1 and
          set("".join(lines)) <= set(" \u2588\u2584\u2580") and abs(len(lines[0]) - 2 * len(lines)) <= 1, lines[:3])
    # The finder patterns: 1:1:3:1:1 through their middle, dark is what is not drawn.
    def dark(x, y):
        c = lines[y // 2][x]
        return c == " " or c == ("\u2584" if y % 2 == 0 else "\u2580")
    row = [dark(x, 2 + 3) for x in range(len(lines[0]))]
    check("which is one", row[2:9] == [True, False, True, True, True, False, True] and row[-9:-2] == row[2:9], row)
    seen.append("".join(said.groups()))
    status, _, o = pair("-".join(said.groups()).lower(), "typed by hand")
    check("the printed code pairs", status == 201 and o["token"].startswith("pfd_"), o)
    status, _, o = pair("".join(said.groups()), "again")
    check("once", (status, o["error"]) == (401, "invalid_pairing_code"), o)
    bare = {k: v for k, v in os.environ.items() if k != "PINFOLD_URL"}
    for more, want in (([], None), (["--server", "https://host/api/"], "https://host/api/#pair="), (["--server", "x\x1b[2J"], None), (["--server", "x?"], None)):
        o = json.loads(subprocess.run([CLI, *more, "--json", "device", "pair"], env={**bare, "PINFOLD_ROOT": INSTANCE}, check=True, capture_output=True, text=True).stdout)
        seen.append(o["code"])
        check(f"the page's address with {more}", o.get("page") == (want and want + o["code"]), o)


def life():
    label = "Zo\u00eb's phone"
    status, _, o = pair(code("--days", "30"), label)
    phone = o["token"]
    check("paired, for 30 days", status == 201 and 29 * 86400000 < o["expiresAt"] - time.time() * 1000 < 31 * 86400000, o)
    check("it reads", answer("GET", "/v1/runs", phone)[0] == 200)
    check("it starts nothing", answer("POST", "/v1/runs", phone) == (403, "forbidden"))
    d = listed(phone)[label]
    check("it is listed, and seen", d["current"] and abs(d["lastSeenAt"] - time.time() * 1000) < 120000, d)
    check("for the operator, too", label in operator("device", "list") and "token set" in operator("device", "list"))
    status, _, o = pair(code(), label)
    check("its label is its own", (status, o["error"], o["field"]) == (409, "device_exists", "label"), o)
    path = "/v1/devices/" + urllib.parse.quote(label)
    other = operator("token", "create", "--tenant", "other").strip()
    for words in (("token", "create"), ("device", "pair")):
        for tenant, warned in (("other", False), ("misspelt", True)):
            p = subprocess.run([CLI, *words, "--tenant", tenant], env=dict(os.environ, PINFOLD_ROOT=INSTANCE), capture_output=True, text=True)
            check(f"{words} of {tenant}: a tenant that is not configured is told of", p.returncode == 0 and ("names no tenant misspelt" in p.stderr) == warned, p.stderr)
            if words[0] == "token":
                status, o = get("/v1/runs", p.stdout.strip())
                check("its token is refused, with the reason", (status, "not in the configuration" in o.get("message", "")) == ((403, True) if warned else (200, False)), o)
    check("another tenant does not see it", label not in listed(other) and answer("DELETE", path, other) == (404, "device_not_found"))
    check("revoked by its label", answer("DELETE", path, mine)[0] == 204)
    check("from the next request on", answer("GET", "/v1/runs", phone) == (401, "unauthorized"))
    check("and gone", label not in listed())
    _, _, o = pair(code(), label)
    check("the label is free again", listed()[label] is not None)
    operator("device", "revoke", label)
    check("the operator revokes, too", answer("GET", "/v1/runs", o["token"]) == (401, "unauthorized"))


def guess(code, label="guesser", source="127.0.0.9"):
    status, headers, o = post_pair({"code": code, "label": label}, source=source)
    return status, o.get("error"), headers["Retry-After"]


def guesses():
    good = code()
    check("wrong codes are refused", [guess("WRNGCODE")[:2] for _ in range(5)] == [(401, "invalid_pairing_code")] * 5)
    check("five of them destroy the code", guess(good, "late")[:2] == (401, "invalid_pairing_code"))
    for _ in range(4):
        guess("WRNGCODE")
    a = guess("WRNGCODE")
    check("the eleventh within a minute is told to wait", a == (429, "too_many_attempts", "60"), a)
    check("nobody else", guess(code(), "neighbour", "127.0.0.10")[0] == 201)


def cookie():
    page = [("Origin", "http://" + HOST), ("Sec-Fetch-Site", "same-origin")]
    status, headers, o = pair(code(), "browser", body={"cookie": True}, headers=page)
    value = (headers["Set-Cookie"] or "").split(";")[0]
    check("a page gets a cookie and no token", status == 201 and value.startswith("pinfold_device=pfd_") and "token" not in o and
          {"HttpOnly", "Secure", "SameSite=Strict", "Path=/"} <= set(headers["Set-Cookie"].split("; ")), dict(headers))
    seen.append(value.partition("=")[2])
    with_it = [("Cookie", value)]
    check("it counts at this address", answer("GET", "/v1/runs", headers=with_it)[0] == 200)
    check("and at no other", answer("GET", "/v1/runs", headers=[*with_it, ("Host", "pinfold.example")])[1] in ("cross_origin_refused", None))
    check("nor for another page", answer("GET", "/v1/runs", headers=[*with_it, ("Sec-Fetch-Site", "cross-site")]) == (403, "cross_origin_refused"))
    check("which can change nothing", answer("DELETE", "/v1/devices/browser", headers=[*with_it, ("Origin", "https://evil.example")]) ==
          (403, "cross_origin_refused"))
    check("its own page can", answer("DELETE", "/v1/devices/browser", headers=[*with_it, *page])[0] == 204)
    check("and then it is over", answer("GET", "/v1/runs", headers=with_it) == (401, "unauthorized"))


def in_a_box():
    """A process with the uid of a sandbox, and everything else it could wish for: the web server's group, a device's credential."""
    conf = open(INSTANCE + "/etc/pinfold/pinfold.conf").read()
    base = int(re.search(r"^\s*box_uid_base\s*=\s*(\d+)", conf, re.M).group(1))
    group = os.stat(SOCKET).st_gid
    phone = pair(code(), "lost")[2]["token"]
    r, w = os.pipe()
    for uid in (base, base + 1, base + 2):
        if os.fork() == 0:
            os.setgroups([])
            os.setgid(group)
            os.setuid(uid)
            for rq in (fastcgi.request("GET", "/v1/devices", phone), fastcgi.request("DELETE", "/v1/devices/lost", phone),
                       fastcgi.request("POST", "/v1/pair", body=json.dumps({"code": "ABCDEFGH", "label": "x"}).encode())):
                a = fastcgi.ask(SOCKET, rq)
                os.write(w, f"{a.status} {a.error}\n".encode())
            os._exit(0)
        os.wait()
    os.close(w)
    said = os.fdopen(r).read().split("\n")[:-1]
    check("a caller that may be a sandbox decides nothing", said == ["200 None", "403 caller_refused", "403 caller_refused"] * 3, said)
    check("the device is still there", "lost" in listed())


def kept():
    """Nothing keeps a code or a credential: store, logs, audit."""
    found = []
    secrets = [s.split("_", 2)[2].encode() if s.startswith("pfd_") else s.encode() for s in seen]
    for root in (INSTANCE + "/var", INSTANCE + "/run"):
        for folder, _, names in os.walk(root):
            for name in names:
                path = os.path.join(folder, name)
                if stat.S_ISREG(os.lstat(path).st_mode):
                    data = open(path, "rb").read()
                    found += [(path, s) for s in secrets if s in data]
    check(f"none of {len(secrets)} secrets is kept anywhere", len(secrets) > 8 and not found, found[:3])
    lines = [json.loads(l) for l in open(INSTANCE + "/var/log/pinfold/audit.log")]
    told = {e["event"] for e in lines}
    check("the audit log knows", {"device.code", "device.pair", "device.revoke", "decision.refused"} <= told, told)
    by = [e["actor"] for e in lines if e["event"] == "device.revoke"]
    check("and by whom", "operator" in by and any(a.startswith("api:") for a in by) and any(a.startswith("device:") for a in by), by)


case("printed", printed)
case("life", life)
case("cookie", cookie)
case("in a box", in_a_box)
case("guesses", guesses)
case("kept", kept)
done()
