"""pinfold-bridge with a gateway that is a script, and with agents that are: what its tests have in common. This is the runner
for both (lib/bridged.h), but for their users: tests/runner/t_bridged.c has those."""
import hashlib, http.server, json, os, shutil, struct, subprocess, sys, tempfile, threading, time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "../fcgi")]
from patience import PATIENCE
import wire

BN = wire.version_of("bundle.msg")

BRIDGE = os.path.abspath("./pinfold-bridge")
RUN = "run-1"
good = bad = 0


def check(name, ok, seen=""):
    global good, bad
    good, bad = good + bool(ok), bad + (not ok)
    if not ok:
        print("FAIL", name, seen)


class Gateway(http.server.BaseHTTPRequestHandler):
    """Takes events, and answers questions as `answers` says: by a decision, None for "nobody in time", or "wait"."""
    protocol_version = "HTTP/1.1"
    events, questions, answers, refuse, shown = [], {}, [], False, set()

    def say(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        Gateway.shown.add(("POST", self.headers["Authorization"]))
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if Gateway.refuse:
            return self.say(403, {"error": "x"})
        for line in body["lines"]:
            e = json.loads(line)
            Gateway.events.append((e["event_type"], e["data"]))
            if e["event_type"] == "approval.requested":
                Gateway.questions[e["data"]["request_id"]] = e["data"]
        self.say(202, {"accepted": len(body["lines"])})

    def do_GET(self):
        Gateway.shown.add(("GET", self.headers["Authorization"]))
        q = Gateway.questions.get(self.path.rsplit("/", 1)[1])
        if q is None or Gateway.answers[:1] == ["wait"]:
            return self.say(202, {"status": "pending"})
        decision = Gateway.answers.pop(0)
        if decision is None:
            return self.say(200, {"status": "expired"})
        digest = hashlib.sha256(q["effect"].encode() + b"\0" + q["preview"].encode()).hexdigest()
        if decision.startswith("other "):
            digest, decision = "0" * 64, decision[6:]
        self.say(200, {"status": "decided", "decision": decision, "decidedAt": 1, "digest": digest})

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
threading.Thread(target=server.serve_forever, daemon=True).start()
PLACE = tempfile.mkdtemp(prefix="pinfold-bridge.")


class Course:
    """A bridge and its agent (a program in Python)."""

    def __init__(self, dialect, program, request):
        with open(PLACE + "/agent.py", "w") as f:
            f.write(program)
        self.claim = os.memfd_create("claim")
        upload = os.memfd_create("upload")
        # What else is in an upload is nothing to it.
        for f in (wire.frame(2, wire.Writer().u32(0), version=BN), wire.frame(5, wire.Writer().bytes(json.dumps(request).encode()), version=BN),
                  wire.frame(16, wire.Writer().strs(["pinfold-bridge", dialect]).bytes(b"for.events").bytes(b"for.approvals"), version=BN)):
            os.write(upload, struct.pack(">I", len(f)) + f)
        said, out, ready, ended, heard = (os.pipe() for _ in range(5))
        err = open(PLACE + "/err", "w+b")
        given = [said[0], out[1], err.fileno(), upload, self.claim, ready[1], ended[0], heard[1]]

        def place():
            aside = [os.dup2(fd, 100 + i, inheritable=False) for i, fd in enumerate(given)]
            for i, fd in enumerate(aside):
                os.dup2(fd, i)

        self.bridge = subprocess.Popen([BRIDGE, dialect], preexec_fn=place, close_fds=False)
        for fd in (said[0], out[1], upload, ready[1], ended[0], heard[1]):
            os.close(fd)
        self.out, self.err, self.agent = out[0], err, None
        self.text = b""
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        threading.Thread(target=self.have_agent, args=(ready[0], said[1], heard[0], ended[1]), daemon=True).start()

    def read(self):
        while True:
            got = os.read(self.out, 65536)
            self.text += got
            if not got:
                break

    def have_agent(self, ready, said, heard, ended):
        if os.read(ready, 1) in (b"t", b"q"):
            self.agent = subprocess.Popen(["/usr/bin/python3", PLACE + "/agent.py"], stdin=heard, stdout=said, stderr=self.err, start_new_session=True)
        for fd in (ready, said, heard):
            os.close(fd)
        if self.agent:
            status = self.agent.wait()
            try:
                os.write(ended, struct.pack("=i", status))
            except BrokenPipeError:
                pass
        os.close(ended)

    def end(self):
        """Exit status, claim (None: none), transcript, standard error. With the bridge its agent ends."""
        status = self.bridge.wait(timeout=PATIENCE)
        if self.agent and self.agent.poll() is None:
            self.agent.kill()
        self.reader.join(PATIENCE)
        os.close(self.out)
        claim = os.pread(self.claim, 100000, 0)
        os.close(self.claim)
        self.err.seek(0)
        err = self.err.read().decode(errors="replace")
        self.err.close()
        return status, json.loads(claim) if claim else None, self.text.decode(errors="replace"), err


def begin(dialect, program, permissions=None, instruction="Mend it: {\"é\"} 'now'"):
    """The bridge with this agent, started; what it had before is forgotten."""
    Gateway.events, Gateway.questions = [], {}
    return Course(dialect, program, {
        "task_id": RUN, "run_id": RUN, "instruction": instruction, "model": "m", "permissions": permissions or {},
        "gateway_url": f"http://127.0.0.1:{server.server_port}/internal/v1", "allowed_paths": ["a.py"],
        "verification": [{"name": "check-1", "argv": ["true"]}],
        "limits": {"max_steps": 3, "wall_time_seconds": 60, "max_tool_output_bytes": 1000, "max_patch_bytes": 1000}})


def run(dialect, program, **more):
    return begin(dialect, program, **more).end()


def seen(kind):
    return [d for t, d in Gateway.events if t == kind]


def agree(name, value, want):
    check(name, value == want, f"{value!r} is not {want!r}")


def wait_seen(kind):
    end = time.monotonic() + PATIENCE
    while not seen(kind) and time.monotonic() < end:
        time.sleep(0.02)


def finish(tests):
    """All of them; the exit status of the whole."""
    for f in tests:
        try:
            f()
        except Exception as e:
            check(f.__name__, False, repr(e))
    shutil.rmtree(PLACE)
    print(f"{good} passed, {bad} failed")
    return bad > 0
