"""A reader of one event stream over raw FastCGI."""
import select, struct
from fastcgi import *


class Stream:
    """A stream's connection: what has come so far, by records and by frames."""

    def __init__(self, path, run, token, query="?stream=1", more=(), keep=False, id=1):
        self.s = connect(path)
        self.raw, self.text, self.ended, self.gone, self.id = b"", b"", False, False, id
        send(self.s, request("GET", f"/v1/runs/{run}/events{query}", token, more=more, keep=keep, id=id))

    def more(self, timeout=PATIENCE):
        """Takes what comes next. False: nothing came."""
        if not select.select([self.s], [], [], timeout)[0]:
            return False
        try:
            got = self.s.recv(65536)
        except ConnectionResetError:
            got = b""
        self.gone = self.gone or not got
        self.raw += got
        while len(self.raw) >= 8:
            version, kind, id, length, pad, _ = struct.unpack(">BBHHBB", self.raw[:8])
            assert version == 1 and id == self.id, (version, id)
            if len(self.raw) < 8 + length + pad:
                break
            body, self.raw = self.raw[8:8 + length], self.raw[8 + length + pad:]
            assert not self.ended or kind == END
            if kind == STDOUT:
                self.text += body
            elif kind == END:
                self.ended = True
        return True

    head = property(lambda self: Answer(self.text, True))
    body = property(lambda self: self.text.partition(b"\r\n\r\n")[2])

    def frames(self):
        """Those that are whole: dictionaries of their fields; comments are not counted."""
        out = []
        for block in self.body.decode().split("\n\n")[:-1]:
            fields = [line.partition(": ") for line in block.split("\n")]
            if not block.startswith(":"):
                out.append({"data": "\n".join(v for k, _, v in fields if k == "data")} | {k: v for k, _, v in fields if k != "data"})
        return out

    def ids(self):
        return [int(f["id"]) for f in self.frames() if "id" in f]

    def until(self, what):
        """Takes what comes until this holds, or the end has come."""
        while not what() and not self.gone:
            if not self.more():
                return False
            if self.ended and not what():
                self.gone = self.gone or not self.more(0.0) or self.gone
                return what()
        return what()

    def over(self):
        return self.until(lambda: self.ended)

    def close(self):
        self.s.close()
