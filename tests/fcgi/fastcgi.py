"""Raw FastCGI, right and wrong, over a Unix socket."""
import fcntl, json, os, socket, struct, sys, termios

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from patience import PATIENCE, wait_for

BEGIN, ABORT, END, PARAMS, STDIN, STDOUT = 1, 2, 3, 4, 5, 6


def record(kind, body=b"", id=1, version=1, pad=0, length=None):
    return struct.pack(">BBHHBB", version, kind, id, len(body) if length is None else length, pad, 0) + body + b"\0" * pad


def begin(role=1, keep=False, id=1):
    return record(BEGIN, struct.pack(">HB5x", role, keep), id)


def size(n):
    return struct.pack(">B", n) if n < 128 else struct.pack(">I", n | 0x80000000)


def pair(name, value):
    name, value = (x.encode("latin-1") if isinstance(x, str) else x for x in (name, value))
    return size(len(name)) + size(len(value)) + name + value


def params(pairs, id=1):
    body = b"".join(pair(*p) for p in pairs)
    out = b"".join(record(PARAMS, body[i:i + 65000], id) for i in range(0, len(body), 65000))
    return out + record(PARAMS, b"", id)


def stdin(body=b"", id=1):
    return b"".join(record(STDIN, body[i:i + 65000], id) for i in range(0, len(body), 65000)) + record(STDIN, b"", id)


def environment(method, uri, token=None, body=None, more=()):
    out = [("REQUEST_METHOD", method), ("REQUEST_URI", uri), ("SCRIPT_NAME", ""), ("QUERY_STRING", "")]
    if token is not None:
        out.append(("HTTP_AUTHORIZATION", "Bearer " + token))
    if body is not None:
        out += [("CONTENT_LENGTH", str(len(body))), ("CONTENT_TYPE", "application/json")]
    names = {n for n, _ in more}
    return [p for p in out if p[0] not in names] + [p for p in more if p[1] is not None]


def request(method, uri, token=None, body=None, more=(), keep=False, id=1):
    return begin(keep=keep, id=id) + params(environment(method, uri, token, body, more), id) + stdin(body or b"", id)


class Answer:
    def __init__(self, raw, whole):
        head, _, self.body = raw.partition(b"\r\n\r\n")
        self.whole, self.headers = whole, {}
        for line in head.decode("latin-1").split("\r\n"):
            name, _, value = line.partition(": ")
            self.headers[name.lower()] = value
        self.status = int(self.headers.get("status", "0").split(" ")[0])
        try:
            self.json = json.loads(self.body)
        except ValueError:
            self.json = None

    error = property(lambda self: (self.json or {}).get("error") if isinstance(self.json, dict) else None)
    field = property(lambda self: (self.json or {}).get("field") if isinstance(self.json, dict) else None)

    def __repr__(self):
        return f"{self.status} {self.body[:200]!r}"


def connect(path, timeout=PATIENCE):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(timeout)
    s.connect(path)
    return s


def receive(s):
    """The answer up to END_REQUEST or the connection's end; None when there was nothing at all."""
    buf, out, whole = b"", b"", False
    def need(n):
        nonlocal buf
        while len(buf) < n:
            try:
                got = s.recv(65536)
            except (ConnectionResetError, BrokenPipeError):
                return False
            if not got:
                return False
            buf += got
        return True
    while need(8):
        _, kind, _, length, pad, _ = struct.unpack(">BBHHBB", buf[:8])
        if not need(8 + length + pad):
            break
        body, buf = buf[8:8 + length], buf[8 + length + pad:]
        if kind == STDOUT:
            out += body
        elif kind == END:
            whole = True
            break
    return Answer(out, whole) if out or whole else None


def send(s, data):
    try:
        s.sendall(data)
    except (BrokenPipeError, ConnectionResetError):
        pass


def ask(path, data):
    with connect(path) as s:
        send(s, data)
        return receive(s)


def taken(s):
    """Waits until all that was sent has been read: somebody is at work on it."""
    wait_for(lambda: struct.unpack("i", fcntl.ioctl(s, termios.TIOCOUTQ, bytes(4)))[0] == 0)


def silent_yet(s):
    """Nothing has come, and it was not ended."""
    s.setblocking(False)
    try:
        return s.recv(1) is None
    except BlockingIOError:
        return True
    finally:
        s.settimeout(PATIENCE)


def refused(a, status, code):
    return (a.status, a.error) == (status, code)
