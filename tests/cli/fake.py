"""An API of one run that does as it is told, and a terminal for a program: what the tests of pinfold(1) share."""
import errno, fcntl, hashlib, http.server, json, os, pty, random, re, select, signal, struct, subprocess, sys, termios, threading, time, urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from patience import PATIENCE, wait_for

CLI = os.path.abspath(os.environ.get("PINFOLD_CLI_UNDER_TEST", "./cli/pinfold"))
RUN = "run-1"
DEVICE, API = "pfd_device", "pfa_api"
passed = failed = 0


def check(what, ok, detail=""):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print("FAIL", what, detail)


def case(what, f, *args):
    try:
        f(*args)
    except Exception as e:
        check(what, False, f"{type(e).__name__}: {e}")


def done():
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


def digest(effect, preview):
    return hashlib.sha256(effect.encode() + b"\0" + preview.encode()).hexdigest()


class Api:
    """stream(api, last): yields bytes of a stream, or is a status and a body; None: 404 as by a service that has none."""

    def __init__(self, stream=None):
        self.lock = threading.Lock()
        self.events, self.cards, self.decisions, self.posts, self.connects = [], {}, [], [], []
        self.stream, self.status, self.cancelled, self.created = stream, "running", 0, []
        self.inbox, self.away, self.polls, self.nonces, self.refuse = True, 0, 0, {}, None
        self.sources = []  # (type, archive)
        self.answers, self.heads = {}, []  # "GET /path": (status, body, headers) that is answered instead of what would be
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"

            def log_message(self, *a):
                pass

            def do_GET(self):
                api.get(self)

            def do_POST(self):
                api.post(self)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True, args=(0.05,)).start()
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    # --- what goes on in the run
    def event(self, kind, **data):
        with self.lock:
            n = len(self.events) + 1
            self.events.append({"event_type": kind, "run_id": RUN, "task_id": RUN, "sequence": n, "created_at": 1700000000000 + n,
                                "event_id": "e%d" % n, "data": data})

    def ask(self, request, preview, shortened=False, effect="execute", **more):
        card = {"requestId": request, "actionId": "call-" + request, "effect": effect, "reason": "model_tool", "policyReason": "the rule",
                "preview": preview, "digest": digest(effect, preview), "textShortened": shortened, "requestedAt": 1700000000000,
                "expiresAt": 1700000600000, **more}
        with self.lock:
            self.cards[request] = card
        self.event("approval.requested", request_id=request)

    def decide(self, request, decision, device):
        with self.lock:
            self.cards.pop(request, None)
            self.decisions.insert(0, {"requestId": request, "decision": decision, "decidedAt": 1700000001000, "device": device})
        self.event("approval.expired" if decision == "expired" else "approval.resolved", request_id=request)

    def end(self, status="completed"):
        self.status = status
        self.event("run." + status)

    def frames(self, after):
        with self.lock:
            return [(e, json.dumps(e)) for e in self.events if e["sequence"] > after]

    # --- HTTP
    def answer(self, h, status, body, kind="application/json", headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        h.send_response(status)
        for name, value in headers:
            h.send_header(name, value)
        h.send_header("Content-Type", kind)
        h.send_header("Content-Length", str(len(data)))
        h.end_headers()
        h.wfile.write(data)

    def error(self, h, status, code, **more):
        self.answer(h, status, {"error": code, "message": "A sentence.", "requestId": "x", **more})

    def told(self, h):
        got = self.answers.get(f"{h.command} {h.path}")
        if got is not None:
            self.answer(h, got[0], got[1], headers=got[2:])
        return got is not None

    def get(self, h):
        url = urllib.parse.urlsplit(h.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        bearer = h.headers.get("Authorization", "")[7:]
        try:
            if self.told(h):
                return
            if bearer not in (DEVICE, API):
                return self.error(h, 401, "unauthorized")
            if url.path == "/v1/inbox":
                if not self.inbox:
                    return self.error(h, 404, "not_found")
                if bearer != DEVICE:
                    return self.error(h, 403, "forbidden")
                return self.pages(h, query)
            if url.path == "/v1/runs":
                phase = "awaiting_approval" if self.cards else "executing"
                return self.answer(h, 200, {"runs": [{"runId": RUN, "status": "running", "phase": phase}], "next": None})
            if url.path == f"/v1/runs/{RUN}":
                return self.answer(h, 200, {"runId": RUN, "status": self.status})
            if url.path == f"/v1/runs/{RUN}/approvals":
                with self.lock:
                    return self.answer(h, 200, {"pending": list(self.cards.values()), "decisions": self.decisions})
            if url.path == f"/v1/runs/{RUN}/events" and query.get("stream"):
                return self.send_stream(h)
            if url.path == f"/v1/runs/{RUN}/events":
                self.polls += 1
                if self.away > 0:
                    self.away -= 1
                    return self.error(h, 503, "store_unavailable")
                return self.answer(h, 200, "".join(t + "\n" for _, t in self.frames(int(query.get("after", 0)))).encode(), "application/x-ndjson")
            self.error(h, 404, "run_not_found")
        except OSError:
            pass

    def pages(self, h, query):
        """One card a page."""
        with self.lock:
            cards = [dict(c, runId=RUN) for c in self.cards.values()]
        at = int(query.get("after", 0))
        self.answer(h, 200, {"pending": cards[at:at + 1], "count": len(cards), "pollSeconds": 2,
                             "next": str(at + 1) if at + 1 < len(cards) else None})

    def send_stream(self, h):
        last = int(h.headers.get("Last-Event-ID") or 0)
        self.connects.append(last)
        if self.stream is None:
            return self.error(h, 404, "not_found")
        got = self.stream(self, last)
        if isinstance(got, tuple):
            return self.answer(h, *got)
        h.send_response(200)
        h.send_header("Content-Type", "text/event-stream")
        h.end_headers()
        for piece in got:
            h.wfile.write(piece)
            h.wfile.flush()

    def post(self, h):
        body = h.rfile.read(int(h.headers.get("Content-Length") or 0))
        bearer = h.headers.get("Authorization", "")[7:]
        self.heads.append(dict(h.headers))
        try:
            if self.told(h):
                return
            if h.path == "/v1/runs":
                self.created.append((json.loads(body), bearer))
                return self.answer(h, 202, {"runId": RUN, "status": "queued"})
            if h.path == "/v1/sources":
                self.sources.append((h.headers["Content-Type"], body))
                return self.answer(h, 201, {"sourceId": hashlib.sha256(body).hexdigest(), "bytes": len(body), "expiresAt": 1})
            if h.path == f"/v1/runs/{RUN}/cancel":
                self.cancelled += 1
                return self.answer(h, 202, {"runId": RUN, "status": "running"})
            self.answer_card(h, h.path.rsplit("/", 1)[1], json.loads(body), bearer)
        except OSError:
            pass

    def answer_card(self, h, request, body, bearer):
        self.posts.append((request, body, bearer))
        if self.refuse:
            status, code = self.refuse
            return self.error(h, status, code)
        if bearer != DEVICE:
            return self.error(h, 403, "device_required")
        card = self.cards.get(request)
        was = [d for d in self.decisions if d["requestId"] == request]
        if was:
            return self.error(h, 409, "already_decided", decision=was[0]["decision"], decidedAt=was[0]["decidedAt"])
        if card is None:
            return self.error(h, 404, "approval_not_found")
        if body.get("digest") != card["digest"]:
            return self.error(h, 409, "digest_mismatch")
        if body["decision"] == "allow_session" and card["textShortened"]:
            return self.error(h, 403, "decision_not_offered")
        if body["decision"] == "allow_session" and "confirm" not in body:
            self.nonces[request] = "n" * 43
            return self.answer(h, 202, {"status": "confirm", "confirm": self.nonces[request], "expiresAt": 1700000060000})
        if body["decision"] == "allow_session" and self.nonces.get(request) != body["confirm"]:
            return self.error(h, 409, "confirm_invalid")
        self.decide(request, body["decision"], "my device")
        self.answer(h, 200, {"requestId": request, "decision": body["decision"], "decidedAt": 1700000001000})


def steady(api, last):
    """A stream as it should be."""
    def pieces():
        yield b"retry: 20\n\n"
        at = last
        while True:
            for e, text in api.frames(at):
                at = e["sequence"]
                yield ("id: %d\nevent: %s\ndata: %s\n\n" % (at, e["event_type"], text)).encode()
                if e["event_type"] in ("run.completed", "run.failed", "run.cancelled"):
                    return
            time.sleep(0.01)
    return pieces()


def environment(api, device=True, token=True, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PINFOLD_")}
    env.update(PINFOLD_URL=api.url if api else "http://127.0.0.1:1", TERM="xterm", NO_COLOR="1", LC_ALL="C.UTF-8")
    env.update(more)
    if token:
        env["PINFOLD_TOKEN"] = API
    if device:
        env["PINFOLD_DEVICE_TOKEN"] = DEVICE
    return env


def plain(api, *words, **more):
    """(status, output, errors) without a terminal."""
    p = subprocess.run([CLI, *words], env=environment(api, **more), stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)
    return p.returncode, p.stdout.decode(), p.stderr.decode()


class Terminal:
    """A program with a terminal as its input and output, and a person before it who reads and types."""

    def __init__(self, words, env, rows=40, columns=200):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
                os.execve(words[0], words, env)
            finally:
                os._exit(127)
        self.raw, self.read_to, self.status = b"", 0, None

    def more(self, seconds):
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return True
        try:
            got = os.read(self.fd, 65536)
        except OSError as e:
            if e.errno != errno.EIO:
                raise
            got = b""
        self.raw += got
        return got != b""

    def expect(self, text):
        """Reads on until text was written; returns what stood before it."""
        want, end = text.encode(), time.monotonic() + PATIENCE
        while want not in self.raw[self.read_to:]:
            if time.monotonic() > end or not self.more(0.5):
                raise AssertionError(f"no {text!r} in {self.raw[self.read_to:].decode(errors='replace')!r}")
        at = self.raw.index(want, self.read_to)
        before, self.read_to = self.raw[self.read_to:at].decode(errors="replace"), at + len(want)
        return before

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait(self):
        """The exit status; what was written is in raw."""
        end = time.monotonic() + PATIENCE
        while self.more(0.5):
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
                raise AssertionError(f"it does not end: {self.raw[self.read_to:]!r}")
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)

    def text(self):
        return self.raw.decode(errors="replace")


OURS = re.compile(rb"\r\x1b\[K")  # the live line is written anew


def bad_bytes(raw):
    """What a terminal got that is neither text, a tab, the end of a line nor the one sequence of ours."""
    rest = OURS.sub(b"", raw).replace(b"\r\n", b"\n")
    return sorted({b for b in rest if (b < 32 and b not in (9, 10)) or b == 127})
