#!/usr/bin/python3 -B
"""pinfold-push with a store made of a list and a scripted push service: what is sent can be opened by its browser alone, is
signed, and says nothing; what is answered is told; and nothing else than a push service is ever connected to."""
import json, os, random, shutil, socket, subprocess, tempfile, time
from service import *
from sender import *

passed = failed = 0


def check(what, ok, detail=""):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print(f"FAIL {what}: {detail}", flush=True)


MINE = "127." + ".".join(str(random.randint(2, 250)) for _ in range(3))  # another test may be doing the same
HOST, OTHER = "push.example.net", "other.example.net"
folder = tempfile.mkdtemp(prefix="pf-push-tls.")
os.chmod(folder, 0o755)
certificates(folder, HOST, OTHER)
KEY = b64(bytes(range(1, 33)))  # a canary as well: it must be nowhere
service = Service(folder)
browser = Browser(f"https://{HOST}/201/endpoint-CANARY")
elsewhere = Browser(f"https://{HOST}/201/elsewhere")


def sender(**o):
    return Sender(KEY, hosts=o.pop("hosts", (HOST, "*.example.net")), **{"ca_file": folder + "/ca.pem", "unsafe_loopback_port": service.port, **o})


def at(word, name="x"):
    b = Browser.__new__(Browser)
    b.__dict__.update(browser.__dict__, endpoint=f"https://{HOST}/{word}/{name}")
    return b


def posts(s, b, **more):
    """Puts one and is what is told of it."""
    return s.store.told(s.store.put(b, **more))


# --- what is sent ---------------------------------------------------------------------------------------------------------

def sending(s):
    kinds = [dict(kind="card"), dict(kind="clear"), dict(kind="summary", run="", request="", count=31, topic="c3VtbWFyeQ", ttl=60),
             dict(kind="card", run="r" * 128, request="q" * 128, topic="t" * 32), dict(kind="card", topic="", ttl=0)]
    for k in kinds:
        check(f"sent: {k}", posts(s, browser, **k) == ("sent", 0))
    got = service.at("/201/endpoint-CANARY")
    check("one request each", len(got) == len(kinds), len(got))
    texts = browser.opens(*[r.body for r in got])
    want = [{"kind": "card", "runId": "run-1", "requestId": "req-1", "tag": "dG9waWMtb2Y", "count": 1},
            {"kind": "clear", "runId": "run-1", "requestId": "req-1", "tag": "dG9waWMtb2Y", "count": 1},
            {"kind": "summary", "tag": "c3VtbWFyeQ", "count": 31},
            {"kind": "card", "runId": "r" * 128, "requestId": "q" * 128, "tag": "t" * 32, "count": 1},
            {"kind": "card", "runId": "run-1", "requestId": "req-1", "tag": "", "count": 1}]
    check("its browser opens it", [json.loads(t) if t else t for t in texts] == want, texts)
    check("no other does", elsewhere.opens(*[r.body for r in got]) == [None] * len(got))
    check("the length says nothing", {len(r.body) for r in got} == {1126}, {len(r.body) for r in got})
    check("no two are alike", len({r.body[:16] for r in got}) == len({r.body[21:86] for r in got}) == len(got))
    h = [r.headers for r in got]
    check("how long it may wait", [x["ttl"] for x in h] == ["21600", "21600", "60", "21600", "0"], [x["ttl"] for x in h])
    check("what it takes the place of", [x.get("topic") for x in h] == ["dG9waWMtb2Y", "dG9waWMtb2Y", "c3VtbWFyeQ", "t" * 32, None])
    check("urgent, and of the right form", all(x["urgency"] == "high" and x["content-encoding"] == "aes128gcm" and
                                               x["content-type"] == "application/octet-stream" for x in h))
    check("no header but these", all(set(x) <= {"host", "authorization", "ttl", "urgency", "topic", "content-encoding", "content-type",
                                                "user-agent", "content-length"} for x in h), h[0])
    claims, point = verified(h[0]["authorization"], "https://" + HOST, CONTACT)
    check("signed by the key that browsers are told", point == s.store.key and len(point) == 65)
    check("for half a day at most", claims["exp"] - time.time() <= 12 * 3600 + 60, claims)
    check("the same signature serves again", len({x["authorization"] for x in h}) == 1)
    b = at("201", "third")
    b.endpoint = b.endpoint.replace(HOST, OTHER)
    check("another service", posts(s, b) == ("sent", 0))
    claims, _ = verified(service.at("/201/third")[0].headers["authorization"], "https://" + OTHER, CONTACT)
    check("is signed for by itself", service.at("/201/third")[0].headers["host"] == OTHER and claims["aud"] == "https://" + OTHER)


# --- what is answered -----------------------------------------------------------------------------------------------------

def answers(s):
    soon = time.strftime("%a,_%d_%b_%Y_%H:%M:%S_GMT", time.gmtime(time.time() + 3000))
    for word, want in (("200", "sent"), ("202", "sent"), ("204", "sent"), ("404", "gone"), ("410", "gone"), ("413", "refused"),
                       ("400", "refused"), ("401", "refused"), ("403", "refused"), ("429", "too_many"), ("500", "failed"),
                       ("503", "failed"), ("301", "failed"), ("307", "failed"), ("308", "failed"), ("cut", "failed"), ("noise", "failed"),
                       ("endless", "sent"), ("endless+head", "failed"), ("endless+410", "gone")):
        outcome, after = posts(s, at(word))
        check(f"{word} is {want}", outcome == want and after == 0, (outcome, after))
    check("a redirect is not followed", not service.at("/201/followed"))
    for more, low, high in (("120", 120, 120), ("99999999", 86400, 86400), ("soon", 0, 0), ("-5", 0, 0), (soon, 2000, 3000)):
        for word, want in (("429", "too_many"), ("503", "failed")):
            outcome, after = posts(s, at(f"{word}+{more}"))
            check(f"{word} with Retry-After {more}", outcome == want and low <= after <= high, (outcome, after))
    check("each was told once", all(len(v) == 1 for v in s.store.done.values()), s.store.done)


def many(s):
    """More than may be on their way are sent all the same, whoever hangs."""
    ids = [s.store.put(at("201", f"many-{i}"), wake=i % 3 == 0) for i in range(40)]
    s.store.wake()
    check("forty", all(s.store.told(i) == ("sent", 0) for i in ids))
    check("each once", all(len(service.at(f"/201/many-{i}")) == 1 for i in range(40)))


# --- what is refused without a look, and what is never connected to ---------------------------------------------------------

def endpoints(s):
    before = service.connections
    for url in ("http://push.example.net/201/a", "https://user:pw@push.example.net/201/a", "https://push.example.net:22/201/a",
                f"https://push.example.net:{service.port}/201/a", "https://127.0.0.1/201/a", "https://2130706433/201/a",
                "https://0x7f.1/201/a", "https://[::1]/201/a", "https://[::ffff:127.0.0.1]/201/a", "https://localhost/201/a",
                "https://localhost./201/a", "https://push.example.net./201/a", "https://push.elsewhere.net/201/a", "https://example.net/201/a",
                "https://push.example.net", "https://push.example.net/a b", "https://push.example.net/a#b", "https://PUSH.example.net/201/a",
                "file:///etc/passwd", "gopher://push.example.net/201/a", "", "https://push.example.net/\r\nX-Header: 1", "https://evil.net\\@push.example.net/a"):
        b = at("201")
        b.endpoint = url
        check(f"refused: {url!r}", posts(s, b) == ("refused", 0), s.store.done)
    b = at("201")
    b.public = b"\4" + b"\1" * 64
    check("a point that is none", posts(s, b)[0] == "refused")
    b.public = browser.public[:64]
    check("half a point", posts(s, b)[0] == "refused")
    check("a topic with a line end", posts(s, at("201"), topic="a\r\nX: b")[0] == "refused")
    check("nobody was connected to", service.connections == before, service.connections - before)


def certificate():
    """Who has no certificate of the host's is sent nothing."""
    other = tempfile.mkdtemp(prefix="pf-push-tls.")
    certificates(other, "wrong.example.net")
    for what, ca, host in (("another name", other + "/ca.pem", HOST), ("another authority", folder + "/ca.pem", "wrong.example.net")):
        liar = Service(other)
        s = sender(ca_file=ca, unsafe_loopback_port=liar.port)
        b = at("201")
        b.endpoint = f"https://{host}/201/a"
        check(f"refused by its certificate: {what}", posts(s, b)[0] == "failed" and not liar.requests, liar.requests)
        s.stop()
        liar.close()
    shutil.rmtree(other)


def addresses():
    """Names that lead to this machine or its network, at port 443, where a service waits that must hear nothing."""
    if os.geteuid() != 0:
        print("skipped: /etc/hosts of its own needs root")
        return
    trap = Service(folder, port=443, host=MINE)
    names = {"trap": MINE, "loop": "127.0.0.1", "loop2": "127.8.9.10", "six": "::1", "mapped": "::ffff:127.0.0.1", "zero": "0.0.0.0", "zero6": "::",
             "ten": "10.0.0.1", "shared": "100.64.0.1", "link": "169.254.169.254", "link6": "fe80::1", "local6": "fd00::1", "home": "192.168.1.1",
             "many": "224.0.0.1", "nat64": "64:ff9b::7f00:1", "six4": "2002:7f00:1::"}
    text = "127.0.0.1 localhost\n" + "".join(f"{a} {n}.example.net\n" for n, a in names.items()) + f"{MINE} both.example.net\n::1 both.example.net\n"
    s = Sender(KEY, hosts=("*.example.net",), ca_file=folder + "/ca.pem", files={"/etc/hosts": text})
    for n in [*names, "both"]:
        b = at("201")
        b.endpoint = f"https://{n}.example.net/201/a"
        check(f"an address that is none of the public internet: {names.get(n, 'both')}", posts(s, b) == ("refused", 0), s.said()[-200:])
    check("nobody was connected to", trap.connections == 0, trap.connections)
    s.stop()
    trap.close()


class Names:
    """A name server that says what it likes: of each name first one address, then the other."""

    def __init__(self, at, *answers):
        self.socket, self.answers, self.asked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), answers, {}
        self.socket.bind(at)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                q, who = self.socket.recvfrom(600)
            except OSError:
                return
            end = q.index(b"\0", 12) + 5
            name, kind, answer = q[12:end - 4], q[end - 3], b""
            if kind == 1:  # an address of version 4
                n = self.asked[name] = self.asked.get(name, -1) + 1
                answer = b"\xc0\x0c\0\x01\0\x01\0\0\0\0\0\x04" + socket.inet_aton(self.answers[n % len(self.answers)])
            self.socket.sendto(q[:2] + b"\x81\x80\0\x01" + (b"\0\x01" if answer else b"\0\0") + b"\0\0\0\0" + q[12:end] + answer, who)


def names():
    """A name server that changes its mind between any two questions changes nothing: what counts is the socket's address."""
    if os.geteuid() != 0 or not os.path.exists("/etc/resolv.conf"):
        print("skipped: a name server of its own needs root")
        return
    trap, names = Service(folder, port=443, host=MINE), Names((MINE, 53), MINE, "10.0.0.1", "169.254.169.254")
    s = Sender(KEY, hosts=("*.example.net",), ca_file=folder + "/ca.pem", files={"/etc/resolv.conf": f"nameserver {MINE}\n", "/etc/hosts": "127.0.0.1 localhost\n",
                                                                              "/etc/nsswitch.conf": "hosts: files dns\n"})
    for i in range(9):
        b = at("201")
        b.endpoint = f"https://rebind{i % 3}.example.net/201/a"
        check("a name server that lies", posts(s, b) == ("refused", 0), s.said()[-300:])
    check("it was asked", len(names.asked) == 3, names.asked)
    check("nobody was connected to", trap.connections == 0, trap.connections)
    s.stop()
    trap.close()
    names.socket.close()


# --- when others are away, and at the end ------------------------------------------------------------------------------------

def store_away():
    """What was sent and could not be told is told later; who signs is said again to another store."""
    s = sender()
    check("it says its key", wait_for(lambda: s.store.key) is not None)
    key = s.store.key
    slow = s.store.put(at("201", "before"))
    check("sent", s.store.told(slow) == ("sent", 0))
    late = s.store.put(at("gate+201", "away"))
    wait_for(lambda: service.at("/gate+201/away"))
    s.store.close()
    service.gate.set()
    s.store.open()
    check("its key again", wait_for(lambda: s.store.key) == key)
    check("what came of one that was on its way", s.store.told(late) == ("sent", 0))
    check("and it goes on", posts(s, at("201", "after")) == ("sent", 0))
    s.again()
    check("one that was started again", wait_for(lambda: s.store.key) == key and posts(s, at("201", "again")) == ("sent", 0))
    check("it ends with sandboxd", s.stop() == 0)
    check("and says that it goes to no real service", "push_unsafe_loopback_port is set" in s.text, s.text)


def idle():
    """Without a contact or a key there is no push, and no way out."""
    for what, key, contact in (("no contact", KEY, ""), ("no key", None, CONTACT), ("an empty key", "", CONTACT),
                               ("no key of the curve", b64(b"\xff" * 32), CONTACT), ("something else", "x" * 43, CONTACT)):
        s = Sender(key, contact=contact, unsafe_loopback_port=service.port)
        check(f"{what}: it says so", wait_for(lambda: "there is no push" in s.said()), s.said())
        check(f"{what}: it asks nobody", s.store.asked == 0 and not s.store.peers and s.p.poll() is None)
        check(f"{what}: it ends with sandboxd", s.stop() == 0, s.text)
        check(f"{what}: the key is not said", not key or key not in s.text)


def canary(s):
    """The key, and whoever's endpoint it is, in no log, argument, environment or file."""
    pid = s.p.pid
    seen = s.said() + open(f"/proc/{pid}/cmdline").read() + (open(f"/proc/{pid}/environ").read() if os.access(f"/proc/{pid}/environ", os.R_OK) else "")
    check("the key is nowhere", KEY not in seen and not any(KEY in str(vars(r)) for r in service.requests))
    check("no endpoint is in the log", "CANARY" not in seen and HOST not in seen, seen[-500:])


s = sender(environ={"https_proxy": "http://127.0.0.1:1", "ALL_PROXY": "http://127.0.0.1:1", "SSL_CERT_FILE": "/nonexistent"})
hanging = s.store.put(at("hang"))  # it keeps nobody else waiting
sending(s)
answers(s)
many(s)
endpoints(s)
canary(s)
check("one that hangs is given up", s.store.told(hanging)[0] == "failed")
check("it still runs", s.p.poll() is None)
check("it ends with sandboxd", s.stop() == 0)
certificate()
addresses()
names()
store_away()
idle()
shutil.rmtree(folder)
print(f"{passed} passed, {failed} failed")
raise SystemExit(failed != 0)
