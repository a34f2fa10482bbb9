#!/usr/bin/python3
"""What one web server makes of odd requests, and that all three end in one behaviour: tests/http/web.jsonl over a plain
socket, uploads that stall, break off or come slowly, a prefix, and what must never reach a process's environment."""
import hashlib, json, os, re, select, signal, socket, subprocess, sys, tempfile, threading, time, urllib.parse
from client import *
from front import Front, SERVER, TOP

AT = urllib.parse.urlsplit(URL)
TOKEN = token()
GOOD = json.dumps({"instruction": "x", "files": [{"path": "agent.py", "content": "pass\n"}], "allowedPaths": ["agent.py"],
                   "checks": [["git", "diff", "--check"]]})
SHOW = "--show" in sys.argv


class Answer:
    """One HTTP answer, or several: status 0 is the end of the connection instead."""

    def __init__(self, data, method):
        self.status, self.headers, self.body, self.rest, self.json = 0, [], b"", b"", None
        while b"\r\n\r\n" in data and self.status < 200:
            head, _, data = data.partition(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            m = re.match(r"HTTP/1\.[01] (\d{3})", lines[0])
            if not m:
                return
            self.status, self.headers = int(m[1]), [(k.lower(), v.strip()) for k, _, v in (x.partition(":") for x in lines[1:])]
        if self.status < 200:
            self.status = 0
            return
        if self.get("transfer-encoding") == "chunked" and method != "HEAD":
            while data:
                size, _, data = data.partition(b"\r\n")
                n = int(size.split(b";")[0] or b"0", 16)
                self.body, data = self.body + data[:n], data[n + 2:]
                if n == 0:
                    break
            self.rest = data
        elif self.get("content-length") is not None and method != "HEAD":
            n = int(self.get("content-length"))
            self.body, self.rest = data[:n], data[n:]
        else:
            self.body = data
        try:
            self.json = json.loads(self.body)
        except ValueError:
            pass

    def get(self, name, default=None):
        return next((v for k, v in self.headers if k == name), default)

    @property
    def error(self):
        return self.json.get("error") if isinstance(self.json, dict) else None


def fill(text, n=0):
    text = text.replace("{token}", "Bearer " + TOKEN).replace("{bearer}", TOKEN).replace("{good}", GOOD)
    text = re.sub(r"\{n([+-]\d+)?\}", lambda m: str(n + int(m[1] or 0)), text)
    return re.sub(r"\{(\d+)\}", lambda m: "a" * int(m[1]), text)


def request(c):
    if "raw" in c:
        return fill(c["raw"]).encode("latin-1")
    body = c.get("body")
    data = (fill(body) if body else "").ljust(c.get("size", 0)).encode("latin-1")
    lines = [c["request"], "Host: " + c.get("host", "x"), "Connection: close"]
    who = c.get("token", "{token}")
    if who:
        lines.append("Authorization: " + who)
    lines += c.get("headers", [])
    lines += [f"X-H{i}: {i}" for i in range(c.get("many", 0))]
    if "chunks" in c:
        lines.append("Transfer-Encoding: chunked")
        k, n = c["chunks"], len(data)
        data = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (data[i:i + k] for i in range(0, n, k))) + b"0\r\n\r\n"
    else:
        n = len(data)
        if body is not None and c.get("length", "{n}") is not None:
            lines.append("Content-Length: " + c.get("length", "{n}"))
    return fill("\r\n".join(lines), n).encode("latin-1") + b"\r\n\r\n" + data


def connect(at=AT):
    return socket.create_connection((at.hostname, at.port), 40)


def receive(s):
    data = b""
    try:
        while piece := s.recv(65536):
            data += piece
    except OSError:
        pass
    return data


def exchange(data, shut=False, at=AT):
    """Sends all, reads all; a server that answers early and stops reading is heard all the same."""
    with connect(at) as s:
        got = b""
        try:
            s.setblocking(False)
            while data:
                r, w, _ = select.select([s], [s], [], 40)
                if r:
                    piece = s.recv(65536)
                    got += piece
                    if not piece:
                        return got
                if w:
                    data = data[s.send(data[:65536]):]
            s.setblocking(True)
            s.settimeout(PATIENCE)
            if shut:
                s.shutdown(socket.SHUT_WR)
        except OSError:
            s.setblocking(True)
            s.settimeout(5)
        return got + receive(s)


def newest():
    status, v = get("/v1/runs?limit=1", TOKEN)
    return v["runs"][0]["runId"] if status == 200 and v["runs"] else None


ONCE = ("content-type", "content-length", "cache-control", "x-content-type-options", "x-request-id", "allow", "location")


def judge(c, a):
    want = {**c, **c.get(SERVER, {})}
    statuses = want["status"] if isinstance(want["status"], list) else [want["status"]]
    if a.status not in statuses:
        return f"{a.status} {a.error}"
    if want.get("error") != a.error:
        return f"error {a.error}"
    if "then" in want:
        b = Answer(a.rest, "GET")
        if b.status != want["then"]:
            return f"then {b.status}"
    twice = [k for k in ONCE if sum(k == x for x, _ in a.headers) > 1]
    if twice:
        return f"answered twice: {twice}"
    if a.error and (a.get("cache-control") != "no-store" or a.json.get("requestId") != a.get("x-request-id")):
        return f"headers {a.headers}"
    if a.status == 405 and a.error and sorted(a.get("allow", "").split(", ")) != ["GET", "POST"]:
        return f"Allow {a.get('allow')}"
    return None


def table():
    before = newest()
    for line in open(os.path.join(TOP, "tests", "http", "web.jsonl"), encoding="utf-8"):
        if line.startswith("#") or not line.strip():
            continue
        c = json.loads(line)
        a = Answer(exchange(request(c), c.get("shut", False)), c.get("request", "GET").split(" ")[0])
        wrong = judge(c, a)
        if SHOW:
            print("show", SERVER, json.dumps(c["case"]), a.status, a.error, sep="\t")
        now = newest()
        if a.status == 202 and wrong is None:
            if now == before:
                wrong = "202, but no run"
            call("POST", f"/v1/runs/{a.json['runId']}/cancel", b"", TOKEN)
        elif now != before:
            wrong = f"a run came of it ({a.status} {a.error})"
        before = now
        check(f"{c['case']} -> {c.get(SERVER, c)['status']}", wrong is None, "got " + str(wrong))


def head(length, more=""):
    return (f"POST /v1/runs HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {length}\r\n{more}\r\n").encode()


def broken():
    """Uploads that end early make no run and hold nobody up."""
    before = newest()
    body = GOOD.encode()
    for what, data in (("headers", head(len(body))[:-20]), ("no body", head(len(body))), ("half a body", head(len(body)) + body[:40]),
                       ("all but a byte", head(len(body)) + body[:-1]), ("half of 700 KB", head(700000) + body + b" " * 300000)):
        for how in ("close", "reset"):
            with connect() as s:
                s.sendall(data)
                if how == "reset":
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        check(f"an upload broken off after {what}: the next request", call("GET", "/healthz")[0] == 200)
    check("no run came of broken uploads", newest() == before)


def slow():
    """In pieces over some seconds: taken. Standing still: over after 20 s, with no run. Both at once, beside others."""
    body = GOOD.encode()
    before = newest()
    still = connect()
    still.sendall(head(len(body)) + body[:40])
    drip = connect()
    drip.sendall(head(len(body)))
    for i in range(0, len(body), 20):
        drip.sendall(body[i:i + 20])
        check("others are answered", call("GET", "/healthz")[0] == 200) if i == 0 else None
        time.sleep(0.4)
    a = Answer(receive(drip), "POST")
    drip.close()
    check("a slow upload is taken", a.status == 202, (a.status, a.body[:200]))
    run = newest()
    check("it made the one run", run != before and a.json and run == a.json["runId"])
    call("POST", f"/v1/runs/{run}/cancel", b"", TOKEN)
    a = Answer(receive(still), "POST")
    still.close()
    check("an upload that stands still is ended", a.status in (0, 400, 408), (a.status, a.body[:200]))
    check("and no run came of it", newest() == run)


def archives():
    """Larger than any other body may be, announced and in chunks; refused by Pinfold itself, and before it is read."""
    path, zstd, bytes_ = "/v1/sources", b"\x28\xb5\x2f\xfd", os.urandom(3000000)

    def send(body, chunks=0, type="application/zstd", length=None):
        lines = [f"POST {path} HTTP/1.1", "Host: x", "Connection: close", "Authorization: Bearer " + TOKEN, "Content-Type: " + type]
        lines.append("Transfer-Encoding: chunked" if chunks else f"Content-Length: {len(body) if length is None else length}")
        if chunks:
            body = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (body[i:i + chunks] for i in range(0, len(body), chunks))) + b"0\r\n\r\n"
        return Answer(exchange("\r\n".join(lines).encode() + b"\r\n\r\n" + body), "POST")
    a = send(zstd + bytes_)
    id = hashlib.sha256(zstd + bytes_).hexdigest()
    check("an archive of 3,000,004 bytes", a.status == 201 and (a.json["sourceId"], a.json["bytes"]) == (id, 3000004) and
          a.get("location", "").endswith("/v1/sources/" + id), (a.status, a.body[:300]))
    a = send(zstd + bytes_, 50000)
    check("the same in chunks is the same", a.status == 200 and a.json["sourceId"] == id, (a.status, a.body[:300]))
    check("and it is there", get("/v1/sources/" + id, TOKEN)[1]["bytes"] == 3000004)
    check("no archive", (a := send(b"no archive")).status == 400 and a.error == "invalid_archive", a.body)
    check("one of another kind", (a := send(zstd + bytes_, type="application/gzip")).status == 400 and a.error == "invalid_archive", a.body[:300])
    check("one of no kind", (a := send(zstd, type="application/octet-stream")).status == 415 and a.error == "archive_required", a.body[:300])
    a = send(zstd + bytes(64000000))
    check("too large an archive", a.status == 413 and a.error == "source_archive_too_large", (a.status, a.body[:300]))
    with connect() as s:
        s.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/zstd\r\n"
                  "Content-Length: 3000\r\n\r\n".encode() + zstd + b"broken off")
    check("what was sent is taken away", call("DELETE", "/v1/sources/" + id, bearer=TOKEN)[0] == 204 and
          call("GET", "/v1/sources/" + id, bearer=TOKEN)[0] == 404)
    incoming = INSTANCE + "/var/lib/pinfold/store/blobs/in"
    check("nothing of it stays", wait_for(lambda: os.listdir(incoming) == []), os.listdir(incoming))


def prefix():
    with Front(SERVER, "--prefix", "/deep/api") as f:
        at = urllib.parse.urlsplit(f.url)

        def ask(method, path, body=b"", more=""):
            return Answer(exchange((f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\n"
                                    f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n{more}\r\n").encode() + body, at=at), method)
        for path, status in (("/deep/api/healthz", 200), ("/deep/api/v1/runs", 200), ("/deep/apiary/healthz", 404), ("/healthz", 404),
                             ("/deep/healthz", 404), ("/deep/api/../api/healthz", 400), ("/deep/api//healthz", 400), ("/deep/api", 301 if SERVER == "nginx" else 404),
                             ("/deep/api/v1%2fruns", 400), ("/deep/api/deep/api/healthz", 404), ("/error.log", 404),
                             ("http://x/deep/api/healthz", 200)):
            a = ask("GET", path)
            check(f"below a prefix: {path}", a.status == status, (a.status, a.body[:200]))
        a = ask("POST", "/deep/api/v1/runs", GOOD.encode())
        ok = a.status == 202 and a.get("location") == "/deep/api/v1/runs/" + a.json["runId"] and \
            all(v.startswith("/deep/api/v1/runs/") for v in a.json["links"].values())
        check("below a prefix: links and Location carry it", ok, (a.status, a.headers, a.body[:300]))
        if a.status == 202:
            check("below a prefix: the link works", ask("GET", a.json["links"]["status"]).status == 200)
            ask("POST", a.json["links"]["cancel"])


def one_tenant():
    """A host of one tenant: nobody else's token works there, and no header of the caller changes that."""
    other = operator("token", "create", "--tenant", "other").strip()
    with Front(SERVER, "--tenant", "other") as f:
        for who, more, status in ((other, "", 200), (TOKEN, "", 403), (TOKEN, "PINFOLD_TENANT: default\r\nPinfold-Tenant: default\r\n", 403)):
            a = Answer(exchange(f"GET /v1/runs HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {who}\r\n{more}\r\n".encode(),
                                at=urllib.parse.urlsplit(f.url)), "GET")
            check(f"a host of one tenant: {status}", a.status == status and (status == 200 or a.error == "tenant_mismatch"), (a.status, a.body[:200]))


def no_proxy():
    """httpoxy: a header must not become the proxy of anything that asks for us."""
    with socket.create_server(("127.0.0.1", 0)) as trap:
        proxy = f"http://127.0.0.1:{trap.getsockname()[1]}"
        body = {"instruction": "Repair calc.", "files": [{"path": "calc.py", "content": "x = 1\n"}], "allowedPaths": ["calc.py"],
                "checks": [["git", "diff", "--check"]], "limits": {"maxSteps": 2}}
        status, _, b = call("POST", "/v1/runs", body, TOKEN, [("Proxy", proxy), ("Http-Proxy", proxy), ("All-Proxy", proxy)])
        check("a request with Proxy: is taken", status == 202, b)
        run = json.loads(b)["runId"]
        v = until(TOKEN, run)
        check("its run asked the model", any(e["event_type"] == "model.called" for e in events(TOKEN, run)), v)
        trap.setblocking(False)
        try:
            trap.accept()
            check("the proxy of a request's header hears nothing", False)
        except BlockingIOError:
            check("the proxy of a request's header hears nothing", True)
    wrong = []
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            exe = os.readlink(f"/proc/{p}/exe")
            env = open(f"/proc/{p}/environ", "rb").read()
        except OSError:
            continue
        if exe.startswith(INSTANCE + "/") and "pinfold-" in exe and re.search(rb"(?i)(^|\0)[a-z_]*proxy=", env):
            wrong.append(exe)
    check("no process of ours has a proxy in its environment", not wrong, wrong)


def no_pass_auth():
    """Apache's own default: the answer says what is missing."""
    with Front("apache", "--without", "CGIPassAuth") as f:
        a = Answer(exchange((f"GET /v1/runs HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\n\r\n").encode(),
                            at=urllib.parse.urlsplit(f.url)), "GET")
    check("Apache without CGIPassAuth: 401 that names it", a.status == 401 and "CGIPassAuth" in a.json["message"], a.body)


def back():
    """The web server asks again as soon as there is somebody to ask."""
    def children(pid):
        return [int(p) for p in open(f"/proc/{pid}/task/{pid}/children").read().split()]
    daemon = [p for p in children(os.environ["PINFOLD_UP_PID"]) if os.readlink(f"/proc/{p}/exe").endswith("/pinfold-sandboxd")]
    check("there is one sandboxd", len(daemon) == 1, daemon)
    os.kill(daemon[0], signal.SIGKILL)
    seen = []

    def again():
        status = call("GET", "/healthz")[0]
        seen.extend([status] if seen[-1:] != [status] else [])
        return len(seen) > 1 and seen[-1] == 200
    wait_for(again)
    check("served again after Pinfold was away", seen[-1] == 200 and len(seen) > 1, seen)
    call("GET", "/readyz")


cases = [table, archives, broken, prefix, one_tenant, no_proxy, slow]
if SERVER == "apache":
    cases.append(no_pass_auth)
cases.append(back)
for f in cases:
    case(f.__name__, f)
done()
