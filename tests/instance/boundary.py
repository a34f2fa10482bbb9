"""What the tests with other people's data share: raw HTTP on one connection, published cases, who is alive."""
import json, os, socket, urllib.parse
import client
import npm as packages

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PROGRAMS = ("pinfold-sandboxd", "pinfold-stored", "pinfold-fcgi", "pinfold-gateway", "pinfold-steward", "pinfold-push")


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body
        try:
            self.json = json.loads(body)
        except ValueError:
            self.json = None

    error = property(lambda self: self.json.get("error") if isinstance(self.json, dict) else None)
    field = property(lambda self: self.json.get("field") if isinstance(self.json, dict) else None)

    def __repr__(self):
        return f"{self.status} {self.body[:160]!r}"


class Front:
    """Requests as bytes, as nobody's library would send them; the connection is used again where that is possible."""

    def __init__(self):
        u = urllib.parse.urlsplit(client.URL)
        self.at, self.s, self.rest = (u.hostname, u.port), None, b""

    def _more(self):
        got = self.s.recv(65536)
        if not got:
            raise EOFError
        self.rest += got

    def _read(self):
        while b"\r\n\r\n" not in self.rest:
            self._more()
        head, self.rest = self.rest.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        h = {k.strip().lower(): v.strip() for k, _, v in (x.partition(":") for x in lines[1:])}
        status, body = int(lines[0].split()[1]), b""
        if status not in (204, 304) and h.get("transfer-encoding", "") == "chunked":
            while True:
                while b"\r\n" not in self.rest:
                    self._more()
                n, self.rest = self.rest.split(b"\r\n", 1)
                n = int(n, 16)
                while len(self.rest) < n + 2:
                    self._more()
                body, self.rest = body + self.rest[:n], self.rest[n + 2:]
                if n == 0:
                    break
        elif status not in (204, 304) and "content-length" in h:
            while len(self.rest) < int(h["content-length"]):
                self._more()
            n = int(h["content-length"])
            body, self.rest = self.rest[:n], self.rest[n:]
        elif status not in (204, 304):
            try:
                while True:
                    self._more()
            except EOFError:
                body, self.rest, h["connection"] = self.rest, b"", "close"
        if h.get("connection", "").lower() == "close":
            self.close()
        return Answer(status, h, body)

    def close(self):
        if self.s is not None:
            self.s.close()
        self.s, self.rest = None, b""

    def raw(self, data):
        """The answer to these bytes; None where the web server closed without a word."""
        for fresh in (False, True):
            used = self.s is not None
            if not used:
                self.s = socket.create_connection(self.at, timeout=client.PATIENCE)
            try:
                self.s.sendall(data)
                return self._read()
            except (EOFError, ConnectionError):
                self.close()
                if fresh or not used:
                    return None

    def call(self, method, target, token=None, body=None, headers=()):
        """target and header values may be text or bytes."""
        b = lambda x: x if isinstance(x, bytes) else x.encode()
        rows = [b(method) + b" " + b(target) + b" HTTP/1.1", b"Host: " + self.at[0].encode()]
        if token is not None:
            rows.append(b"Authorization: Bearer " + b(token))
        if body is not None:
            if not any(k.lower() == "content-type" for k, _ in headers):
                rows.append(b"Content-Type: application/json")
            rows.append(b"Content-Length: %d" % len(body))
        rows += [b(k) + b": " + b(v) for k, v in headers]
        return self.raw(b"\r\n".join(rows) + b"\r\n\r\n" + (body or b""))


def doomed(**more):
    """A request that is refused at its last rule alone (check_argv_not_allowed): whatever else is wrong says so first."""
    body = {"instruction": "x", "files": [{"path": "a.py", "content": "x"}], "allowedPaths": ["a.py"],
            "checks": [["no-such-check"]]}
    body.update(more)
    return json.dumps(body).encode()


PASSED_ALL = (400, "check_argv_not_allowed")


def alive():
    """The instance's own processes: a crash or restart changes this."""
    out = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            exe = os.readlink(f"/proc/{pid}/exe")
            start = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[19]
        except OSError:
            continue
        if exe.startswith(os.path.realpath(client.INSTANCE).rstrip("/") + "/") and os.path.basename(exe) in PROGRAMS:
            out[int(pid)] = (os.path.basename(exe), start)
    return out


class Unharmed:
    """with Unharmed(): the same processes, and a good answer, before and after."""

    def __enter__(self):
        self.before = alive()

    def __exit__(self, *_):
        # A judge or a monitor is a fork of its program and comes and goes.
        after = alive()
        gone = {p: w for p, w in self.before.items() if after.get(p) != w}
        names = sorted(n for n, _ in after.values())
        client.check("no process ended", not gone and set(PROGRAMS) <= set(names), f"gone: {gone}, now: {names}")
        a = Front().call("GET", "/readyz")
        client.check("still ready", a is not None and a.status == 200, a)


def npm(name, version):
    """The folder of an npm package; says what is the matter and ends where there is none."""
    folder, wrong = packages.npm(name, version)
    if wrong is not None:
        client.check(wrong, False)
        client.done()
    return folder


def vectors(name):
    """Rows of tests/vectors/NAME."""
    with open(os.path.join(TOP, "tests", "vectors", name), encoding="ascii") as f:
        return [line.rstrip("\n").split("\t") for line in f if line.strip() and not line.startswith("#")]
