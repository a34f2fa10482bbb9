"""A provider over plain HTTP on a loopback address that keeps count: what it was asked, and who left before the answer.

What it does is in the text of the request: HANG never answers; DRIP sends a byte now and then, without end; HOLD
waits for release(); SHUT hangs up without a byte, CUT in the middle of the answer; GZIP answers 768 MB in 1 MB; ENDLESS sends chunks for ever; anything else is answered at once.
"""
import json
import select
import socket
import threading
import zlib


def bomb():
    """48 gzip members of 16 MB of blanks each."""
    c = zlib.compressobj(9, zlib.DEFLATED, 31)
    return (c.compress(b" " * (16 << 20)) + c.flush()) * 48


class Tap:
    def __init__(self, delay=0):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(256)
        self.port = self.listener.getsockname()[1]
        self.url = "http://127.0.0.1:%d/v1" % self.port
        self.delay, self.gone = delay, threading.Event()
        self.seen, self.left = [], []  # request texts
        self.bomb = None
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            c, _ = self.listener.accept()
            threading.Thread(target=self.visit, args=(c,), daemon=True).start()

    def release(self):
        self.gone.set()

    def asked(self, text):
        return sum(text in s for s in self.seen)

    def lost(self, text):
        return sum(text in s for s in self.left)

    def request(self, c):
        """The next request's text, or None at the end."""
        got = b""
        while b"\r\n\r\n" not in got:
            more = c.recv(65536)
            if not more:
                return None
            got += more
        head, _, body = got.partition(b"\r\n\r\n")
        size = int([r.split(b":")[1] for r in head.lower().split(b"\r\n") if r.startswith(b"content-length:")][0])
        while len(body) < size:
            more = c.recv(65536)
            if not more:
                return None
            body += more
        # Whether a stream is meant is said by a path, or in the body.
        return body.decode() + (' "stream":true' if b":streamGenerateContent?alt=sse " in head else "")

    def stays(self, c, seconds):
        """False: the peer left meanwhile."""
        ready, _, _ = select.select([c], [], [], seconds)
        return not ready or bool(c.recv(1, socket.MSG_PEEK))

    def answer(self, c, text):
        """False: the connection is over."""
        fine = json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": "SECRET-ANSWER"}}],
                           "usage": {"prompt_tokens": 7, "completion_tokens": 3}}).encode()
        head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        if "HANG" in text:
            while self.stays(c, 60):
                pass
            return False
        if "SHUT" in text:
            return False
        if "CUT" in text:
            c.sendall((head + "Content-Length: %d\r\n\r\n" % len(fine)).encode() + fine[:-9])
            return False
        if "DRIP" in text:
            c.sendall((head + "Content-Length: 900000\r\n\r\n").encode())
            while self.stays(c, 0.02):
                c.sendall(b" ")
            return False
        if "ENDLESS" in text:
            c.sendall((head + "Transfer-Encoding: chunked\r\n\r\n").encode())
            while True:
                c.sendall(b"1000\r\n" + b" " * 4096 + b"\r\n")
        if "GZIP" in text:
            c.sendall((head + "Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(self.bomb)).encode() + self.bomb)
            return True
        while "HOLD" in text and not self.gone.is_set():
            if not self.stays(c, 0.02):
                return False
        if self.delay and not self.stays(c, self.delay):
            return False
        c.sendall((head + "Content-Length: %d\r\n\r\n" % len(fine)).encode() + fine)
        return True

    def visit(self, c):
        text = None
        try:
            while True:
                text = None
                text = self.request(c)
                if text is None:
                    break
                self.seen.append(text)
                if not self.answer(c, text):
                    self.left.append(text)
                    break
        except OSError:
            if text is not None:
                self.left.append(text)
        c.close()
