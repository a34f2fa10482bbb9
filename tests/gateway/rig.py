"""What the gateway's tests and bench share: the harness program, the scripted model, raw HTTP."""
import base64
import hashlib
import hmac
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from patience import PATIENCE, wait_for

BUILD = os.environ.get("PINFOLD_BUILD", os.getcwd())
KEY = "sk-CANARY-" + hashlib.sha256(b"gateway test").hexdigest()
RUN_SECRET = "0123456789abcdef0123456789abcdef-run"
NEXT_SECRET = "fedcba9876543210fedcba9876543210-next"
MODEL = "scripted-1"


class Model:
    """A scripted model with its log."""

    def __init__(self, folder, name, scenario, *options, tls=True):
        self.folder = folder
        self.log = os.path.join(folder, name + ".model.log")
        self.ca = os.path.join(folder, name + ".tls", "ca.pem")
        argv = [os.path.join(BUILD, "pinfold-scripted-model"), "--listen", "127.0.0.1:0", "--log", self.log]
        if tls:
            argv += ["--self-signed", os.path.join(folder, name + ".tls")]
        if scenario is not None:
            path = os.path.join(folder, name + ".scenario.json")
            with open(path, "w") as f:
                json.dump(scenario, f)
            argv += ["--scenario", path]
        env = dict(os.environ, EXPECTED_KEY=KEY)
        self.process = subprocess.Popen(argv + list(options), stdout=subprocess.PIPE, text=True, env=env,
                                        stderr=open(os.path.join(folder, name + ".model.err"), "w"))
        line = self.process.stdout.readline().split()
        if line[:1] != ["listening"]:
            raise SystemExit("the scripted model did not start")
        self.port = int(line[1])
        self.url = "%s://127.0.0.1:%d/v1" % ("https" if tls else "http", self.port)

    def requests(self):
        if not os.path.exists(self.log):
            return []
        with open(self.log) as f:
            return [json.loads(line) for line in f.read().splitlines()]

    def stop(self):
        self.process.kill()
        self.process.wait()


class Rig:
    """stored, gateway and the harness that plays everybody else."""

    def __init__(self, folder, env=None):
        self.folder = folder
        os.chmod(folder, 0o711)
        self.runs = 0
        self.tokens = set()
        self.harness = subprocess.Popen([os.path.join(BUILD, "tests/gateway/harness")], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=dict(os.environ, **(env or {})))

    def tell(self, *words):
        """One command; its answer words after ok, or raises."""
        self.harness.stdin.write(" ".join(str(w) for w in words) + "\n")
        self.harness.stdin.flush()
        lines = []
        while True:
            line = self.harness.stdout.readline()
            if not line:
                raise RuntimeError("the harness ended: " + " ".join(map(str, words)))
            got = line.rstrip("\n")
            if got == "ok" or got.startswith("ok "):
                return lines if lines else got.split()[1:]
            if got.startswith("err "):
                raise RuntimeError(got + " after " + " ".join(map(str, words)))
            lines.append(got)

    def start(self):
        self.pid = int(self.tell("start", self.folder, BUILD)[0])
        for tenant in ("acme", "other", "narrow"):
            self.tell("tenant", tenant)

    def restart(self):
        self.pid = int(self.tell("restart")[0])

    def run(self, budget=20, tenant="acme", profile="main", model=MODEL, life_ms=300000, agent="built-in"):
        self.runs += 1
        r = Run()
        r.rig, r.tenant, r.model = self, tenant, model
        r.id = "run-%d" % self.runs
        self.tell("run", tenant, r.id, profile, budget, agent)
        self.tell("begin", tenant, r.id, life_ms)
        r.port = int(self.tell("open", tenant, r.id)[0])
        return r

    def stop(self):
        self.harness.stdin.close()
        self.harness.wait()


class Run:
    def token(self, audience="model", ago=0):
        token = self.rig.tell("token", audience, self.tenant, self.id, self.model, ago)[0]
        self.rig.tokens.add(token)
        return token

    def shown(self):
        state, used, prompt, completion, last = self.rig.tell("show", self.tenant, self.id)
        return {"state": state, "used": int(used), "prompt": int(prompt), "completion": int(completion),
                "last": int(last)}

    def events(self):
        lines = self.rig.tell("events", self.tenant, self.id)
        return [(int(l.split(" ", 3)[1]), l.split(" ", 3)[2], json.loads(l.split(" ", 3)[3])) for l in lines
                if l.startswith("event ")]

    def path(self, audience):
        return {"model": "/internal/v1/chat/completions", "events": "/internal/v1/runs/%s/events" % self.id,
                "approvals": "/internal/v1/runs/%s/approvals/ask-1" % self.id}[audience]

    def chat(self, text="hello", token=None, headers=(), **more):
        body = dict({"model": self.model, "messages": [{"role": "user", "content": text}]}, **more)
        return post(self.port, "/internal/v1/chat/completions", token or self.token(), body, headers)

    def line(self, kind="tool.used", sequence=1, **more):
        event = {"event_type": kind, "run_id": "mine", "task_id": self.id, "sequence": sequence}
        event.update(more)
        return json.dumps(event) + "\n"

    def send_events(self, lines, token=None):
        return post(self.port, self.path("events"), token or self.token("events"), {"lines": lines})


class Answer:
    def __init__(self, raw):
        self.raw = raw
        head, _, self.body = raw.partition(b"\r\n\r\n")
        rows = head.decode("latin-1").split("\r\n")
        self.status = int(rows[0].split()[1]) if len(rows[0].split()) > 1 else 0
        self.headers = {k.strip().lower(): v.strip() for k, _, v in (r.partition(":") for r in rows[1:])}
        try:
            self.json = json.loads(self.body)
        except ValueError:
            self.json = None

    @property
    def code(self):
        code = self.json.get("error") if isinstance(self.json, dict) else None
        if isinstance(code, dict) and isinstance(code.get("details"), list):
            return code["details"][0].get("reason")
        return code.get("code") if isinstance(code, dict) else code  # in a wire format's own shape

    @property
    def field(self):
        return self.json.get("field") if isinstance(self.json, dict) else None


SEEN = []  # everything a box was ever sent


def raw_call(port, data, keep=None):
    """Sends bytes, reads one answer (or to the end)."""
    s = keep or socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    try:
        try:
            s.sendall(data)
        except OSError:
            pass
        got = b""
        while True:
            head, gap, body = got.partition(b"\r\n\r\n")
            if gap:
                length = [r.split(b":")[1] for r in head.lower().split(b"\r\n") if r.startswith(b"content-length:")]
                if length and len(body) >= int(length[0]):
                    break
            try:
                more = s.recv(65536)
            except OSError:
                break
            if not more:
                break
            got += more
    finally:
        if not keep:
            s.close()
    SEEN.append(got)
    return Answer(got)


def request(method, path, token=None, body=b"", headers=(), kind="application/json", length=True):
    rows = ["%s %s HTTP/1.1" % (method, path), "Host: 127.0.0.1:9797"]
    if token:
        rows.append("Authorization: Bearer " + token)
    if kind and (body or method == "POST"):
        rows.append("Content-Type: " + kind)
    if length and (body or method == "POST"):
        rows.append("Content-Length: %d" % len(body))
    rows += list(headers)
    return ("\r\n".join(rows) + "\r\n\r\n").encode("latin-1") + body


def post(port, path, token, body, headers=(), keep=None, **more):
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    return raw_call(port, request("POST", path, token, body, headers, **more), keep)


def get(port, path, token, headers=()):
    return raw_call(port, request("GET", path, token, headers=headers))


def b64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def sign(payload, secret=RUN_SECRET):
    """A token over any payload text, with a right MAC."""
    first = b64url(payload if isinstance(payload, bytes) else payload.encode())
    return first + "." + b64url(hmac.new(secret.encode(), first.encode(), hashlib.sha256).digest())


def claims_of(token):
    first = token.split(".")[0]
    return json.loads(base64.urlsafe_b64decode(first + "=" * (-len(first) % 4)))


def folder():
    return tempfile.mkdtemp(prefix="pinfold-gateway-test.")


def remove(path):
    shutil.rmtree(path, ignore_errors=True)
