"""pinfold-bridge with a gateway that is a script, and with agents that are: what its tests have in common."""
import hashlib, http.server, json, os, shutil, subprocess, sys, tempfile, threading, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from patience import PATIENCE

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
    events, questions, answers, refuse = [], {}, [], False

    def say(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
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


def begin(dialect, program, permissions=None, instruction="Mend it: {\"é\"} 'now'"):
    """The bridge with this agent (Python), started; what it had before is forgotten."""
    Gateway.events, Gateway.questions = [], {}
    shutil.rmtree(PLACE)
    os.makedirs(PLACE + "/source")
    with open(PLACE + "/request.json", "w") as f:
        json.dump({"task_id": RUN, "run_id": RUN, "instruction": instruction, "model": "m", "permissions": permissions or {},
                   "gateway_url": f"http://127.0.0.1:{server.server_port}/internal/v1", "allowed_paths": ["a.py"],
                   "verification": [{"name": "check-1", "argv": ["true"]}],
                   "limits": {"max_steps": 3, "wall_time_seconds": 60, "max_tool_output_bytes": 1000, "max_patch_bytes": 1000}}, f)
    with open(PLACE + "/agent.py", "w") as f:
        f.write(program)
    return subprocess.Popen([BRIDGE, "--workspace", PLACE, dialect, "--", "/usr/bin/python3", PLACE + "/agent.py"], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(dialect, program, **more):
    """Its exit status, claim, transcript, standard error."""
    p = begin(dialect, program, **more)
    out, err = p.communicate(timeout=PATIENCE)
    with open(PLACE + "/response.json") as f:
        return p.returncode, json.load(f), out, err


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
