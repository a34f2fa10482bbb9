"""Readers of event streams, and a writer of events that stored takes for the gateway."""
import http.client, os, socket, sys, urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fcgi"))
from client import *
from processes import pid_of
from wire import STORE, Writer, frame, listed, struct_of, unframe


class Gateway:
    """Writes events into runs as the gateway does, as fast as stored takes them."""

    def __init__(self):
        ids = {}
        for line in open(f"/proc/{wait_for(lambda: pid_of('pinfold-gateway'))}/status"):
            name, _, rest = line.partition(":")
            ids[name] = [int(x) for x in rest.split()] if name in ("Uid", "Gid", "Groups") else rest
        mine = os.getgroups()
        self.s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.s.settimeout(PATIENCE)
        # Who connects is who it is.
        os.setgroups(ids["Groups"])
        os.setegid(ids["Gid"][1])
        os.seteuid(ids["Uid"][1])
        try:
            self.s.connect(INSTANCE + "/run/pinfold/store/store.sock")
        finally:
            os.seteuid(0)
            os.setegid(0)
            os.setgroups(mine)
        self.op = 0
        self.ask(1, Writer().u32(STORE).u64(0))

    def ask(self, number, w):
        self.op += 1
        self.s.send(frame(number, w, op=self.op, version=STORE))
        answer, _, _, r = unframe(self.s.recv(200000))
        if answer == 4:
            raise AssertionError(f"refused with {r.u16()}")
        return r

    def append(self, run, *data, tenant="default", kind="agent.note"):
        """The last sequence of the run behind these events."""
        r = self.ask(44, Writer().str(tenant).str(run).bytes(listed([struct_of("store.msg", "agent_event", type=kind, data=json.dumps(d).encode()) for d in data])))
        assert r.u32() == len(data)
        return r.u64()


class Reader:
    """A stream through a web server: r.frames grows by each whole frame, a dictionary of its fields."""

    def __init__(self, url, run, bearer, last=None, query="?stream=1", small=False, headers=()):
        at = urllib.parse.urlsplit(url)
        self.c = http.client.HTTPConnection(at.hostname, at.port, timeout=PATIENCE)
        if small:
            self.c.sock = socket.socket()
            self.c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            self.c.sock.connect((at.hostname, at.port))
        h = {"Authorization": "Bearer " + bearer, **({"Last-Event-ID": str(last)} if last is not None else {}), **dict(headers)}
        self.c.request("GET", f"{at.path}/v1/runs/{run}/events{query}", headers=h)
        self.r = self.c.getresponse()
        self.status, self.type, self.frames, self.comments, self.ended, self.part = self.r.status, self.r.getheader("Content-Type"), [], [], False, {}

    def step(self):
        """One more line. False: the stream has ended, well or not (self.whole)."""
        try:
            line = self.r.readline()
            self.whole = True
        except (http.client.HTTPException, OSError):
            line, self.whole = b"", False
        # A chunked answer that broke off ends readline in the same way as one that is whole: what follows tells.
        if not line:
            self.ended = True
            return False
        line = line.decode().rstrip("\n")
        if line.startswith(":"):
            self.comments.append(line)
        elif line:
            name, _, value = line.partition(": ")
            self.part[name] = value
        elif self.part:
            self.frames.append(self.part)
            self.part = {}
        return True

    def until(self, what):
        while not what():
            if not self.step():
                return what()
        return True

    ids = property(lambda self: [int(f["id"]) for f in self.frames if "id" in f])
    events = property(lambda self: [json.loads(f["data"]) for f in self.frames if "id" in f])

    def over(self):
        return self.until(lambda: self.ended)

    def close(self):
        self.r.close()
        self.c.close()


def open_streams(scrape):
    _, _, body = call("GET", "/metrics", bearer=scrape)
    return next(int(l.split()[1]) for l in body.decode().splitlines() if l.startswith("pinfold_streams_open "))
