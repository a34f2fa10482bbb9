"""
The clients: each makes runs, looks at them, cancels, fetches and deletes them, and writes down what it asked before
it asks and what it was told as soon as it was told. Its journal is all that the checker knows of promises.
"""
import hashlib, http.client, json, os, random, threading, time

TERMINAL = ("completed", "failed", "cancelled")
OPEN_AT_MOST = 3
HERE = os.path.dirname(os.path.abspath(__file__))
AGENT = open(os.path.join(HERE, "agent.py")).read()


def plan(rng, nonce):
    """What an agent does: mostly little, sometimes what is hard to end."""
    hard = rng.random() < 0.25
    return {"nonce": nonce, "calls": rng.choice((0, 1, 2, 3, 6)), "parallel": rng.choice((1, 2, 4)), "events": rng.choice((0, 1, 3)),
            "what": rng.choice((["ok"], ["ok", "refuse"], ["close", "ok"], ["slow", "ok"])), "tree": rng.choice((2, 8)) if hard else 0,
            "asks": rng.choice((0, 0, 1, 2)), "same": rng.random() < 0.7, "wait": rng.choice((2, 4)),
            "stubborn": hard and rng.random() < 0.5, "sleep": rng.choice((0, 0, 0.3, 1.5)) if not hard else rng.choice((0.5, 2)),
            "exit": 1 if rng.random() < 0.1 else 0}


class Client(threading.Thread):
    def __init__(self, port, bearer, tenant, folder, seed, warden):
        super().__init__(daemon=True)
        self.port, self.bearer, self.tenant, self.warden = port, bearer, tenant, warden
        self.rng, self.name = random.Random(seed), f"{tenant}-{seed}"
        self.fd = os.open(os.path.join(folder, f"{self.name}.journal"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.go, self.idle, self.end = threading.Event(), threading.Event(), False
        self.open, self.ended, self.keys, self.n = [], [], [], 0
        self.connection, self.answers = None, {}

    def note(self, **what):
        os.write(self.fd, (json.dumps(what) + "\n").encode())

    def call(self, method, path, body=None, headers=()):
        """Status (0: no answer) and bytes."""
        data = b"" if method == "POST" and body is None else None if body is None else json.dumps(body).encode()
        h = {"Authorization": "Bearer " + self.bearer, **dict(headers)}
        if body is not None:
            h["Content-Type"] = "application/json"
        try:
            if self.connection is None:
                self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
            self.connection.request(method, path, data, h)
            r = self.connection.getresponse()
            status, answer = r.status, r.read()
        except (OSError, http.client.HTTPException):
            self.connection and self.connection.close()
            self.connection = None
            status, answer = 0, b""
        # lighttpd's own page: whoever was to answer died or closed the connection.
        what = f"{status} of the web server" if status >= 500 and answer[:1] != b"{" else str(status)
        self.answers[what] = self.answers.get(what, 0) + 1
        if what == "500":
            self.note(internal=answer.decode("utf-8", "replace"), path=f"{method} {path}", t=time.time())
        return status, answer

    def ask(self, what, method, path, body=None, headers=(), **about):
        """A call with its two lines in the journal; told(answer) adds to the second."""
        self.n += 1
        self.note(n=self.n, t=time.time(), ask=what, **about)
        status, answer = self.call(method, path, body, headers)
        try:
            told = json.loads(answer) if answer[:1] in (b"{", b"[") else None
        except ValueError:
            told = None
        return status, answer, told

    def tell(self, status, **about):
        self.note(n=self.n, t=time.time(), status=status, **about)

    # --- what a client does ---

    def create(self, again=None):
        nonce = again["nonce"] if again else f"{self.name}-{self.n}-{os.urandom(6).hex()}"
        p = again["plan"] if again else plan(self.rng, nonce)
        key = again["key"] if again else nonce if self.rng.random() < 0.6 else None
        steps = again["steps"] if again else self.rng.choice((1, 2, 4))
        body = {"instruction": nonce, "files": [{"path": "agent.py", "content": AGENT}, {"path": "plan.json", "content": json.dumps(p)},
                {"path": "out.txt", "content": "nobody\n"}], "allowedPaths": ["out.txt"], "checks": [["git", "diff", "--check"]],
                "agent": "script", "limits": {"maxSteps": steps, "wallTimeSeconds": 30, "approvalWaitSeconds": p["wait"]}}
        status, _, told = self.ask("create", "POST", "/v1/runs", body, [("Idempotency-Key", key)] if key else [],
                                   nonce=nonce, key=key, most=steps + 2)
        run = told.get("runId") if status == 202 and told else None
        self.tell(status, run=run, nonce=nonce, key=key, most=steps + 2)
        if run and run not in self.open and run not in self.ended:
            self.open.append(run)
        if key and not again:
            self.keys.append({"nonce": nonce, "plan": p, "key": key, "steps": steps})
            del self.keys[:-6]

    def repeat(self):
        """The same creation under the same key: because its answer was lost, or just so."""
        if self.keys:
            self.create(self.rng.choice(self.keys))

    def show(self):
        if not self.open:
            return
        run = self.rng.choice(self.open)
        status, _, v = self.ask("show", "GET", f"/v1/runs/{run}", run=run)
        if status != 200 or not v:
            if status == 404:
                self.open.remove(run)
            return self.tell(status, run=run)
        ended = v["status"] in TERMINAL
        self.tell(status, run=run, state=v["status"], reason=v.get("terminalReason"), finished=v.get("finishedAt"),
                  error=v.get("error"), used=v["usage"]["modelRequests"])
        if ended:
            self.warden(self.tenant, run, v)
            self.open.remove(run)
            self.ended.append(run)

    def cancel(self):
        runs = self.open if self.open and self.rng.random() < 0.9 else self.ended
        if not runs:
            return
        run = self.rng.choice(runs)
        status, _, v = self.ask("cancel", "POST", f"/v1/runs/{run}/cancel", run=run)
        self.tell(status, run=run, state=v.get("status") if v else None)

    def events(self):
        runs = self.open + self.ended[-3:]
        if not runs:
            return
        run = self.rng.choice(runs)
        status, answer, _ = self.ask("events", "GET", f"/v1/runs/{run}/events", run=run)
        seen = []
        try:
            if status == 200:
                seen = [json.loads(line) for line in answer.decode().split("\n")[:-1]]
        except ValueError:
            status = -1
        self.tell(status, run=run, seen=[[e["sequence"], e["event_id"]] for e in seen])

    def artifacts(self):
        if not self.ended:
            return
        run = self.rng.choice(self.ended[-5:])
        status, _, v = self.ask("artifacts", "GET", f"/v1/runs/{run}/artifacts", run=run)
        names = [a["name"] for a in v["artifacts"]] if status == 200 and v else []
        self.tell(status, run=run, names=names)
        if names:
            name = self.rng.choice(names)
            status, answer, _ = self.ask("artifact", "GET", f"/v1/runs/{run}/artifacts/{name}", run=run, name=name)
            self.tell(status, run=run, name=name, sha=hashlib.sha256(answer).hexdigest())

    def delete(self):
        if len(self.ended) < 3:
            return
        run = self.ended[0] if self.rng.random() < 0.9 or not self.open else self.open[0]
        status, _, _ = self.ask("delete", "DELETE", f"/v1/runs/{run}", run=run)
        self.tell(status, run=run)
        for runs in (self.ended, self.open):
            if run in runs and status in (204, 404):
                runs.remove(run)

    def list(self):
        self.ask("list", "GET", "/v1/runs?limit=100")
        after, found, status = "", [], 0
        for _ in range(10000):  # a list must end, however many runs a long night leaves
            status, answer = self.call("GET", "/v1/runs?limit=100" + after)
            if status != 200:
                break
            v = json.loads(answer)
            found += [r["runId"] for r in v["runs"]]
            if not v.get("next"):
                break
            after = "&after=" + v["next"]
        self.tell(status, found=found)

    def ways(self):
        return [(self.create, 30), (self.repeat, 10), (self.show, 35), (self.cancel, 8), (self.events, 8), (self.artifacts, 5),
                (self.delete, 6), (self.list, 2)]

    def run(self):
        ways = self.ways()
        names, weights = [w[0] for w in ways], [w[1] for w in ways]
        while not self.end:
            if not self.go.is_set():
                self.idle.set()
                self.go.wait(0.2)
                continue
            self.idle.clear()
            way = self.rng.choices(names, weights)[0]
            if way == self.create and len(self.open) >= OPEN_AT_MOST:
                way = self.show
            try:
                way()
            except Exception as e:  # an answer that makes no sense: written down, judged by the checker
                self.note(n=self.n, t=time.time(), status=-2, trouble=f"{way.__name__}: {type(e).__name__}: {e}")
            time.sleep(self.rng.uniform(0.01, 0.08))


class Person(Client):
    """Somebody with a paired device, who answers what agents of the tenant ask, without much thought; others do, too."""

    def answer(self):
        status, body = self.call("GET", "/v1/runs?status=running&limit=20")
        runs = json.loads(body)["runs"] if status == 200 else []
        waiting = [r["runId"] for r in runs if r.get("phase") == "awaiting_approval"]
        if not waiting:
            return
        run = self.rng.choice(waiting)
        status, body = self.call("GET", f"/v1/runs/{run}/approvals")
        for q in json.loads(body)["pending"] if status == 200 else []:
            if self.rng.random() < 0.8:
                self.decide(run, q, self.rng.choices(("allow_once", "allow_session", "deny", "cancel"), (4, 4, 2, 1))[0])

    def decide(self, run, q, decision):
        body = {"decision": decision, "digest": q["digest"]}
        for _ in range(2):  # allow_session takes two taps
            status, _, told = self.ask("decide", "POST", f"/v1/runs/{run}/approvals/{q['requestId']}", body, run=run,
                                       request=q["requestId"], decision=decision)
            told = told or {}
            self.tell(status, run=run, decision=told.get("decision"), at=told.get("decidedAt"))
            if status != 202:
                return
            body["confirm"] = told["confirm"]

    def ways(self):
        return [(self.answer, 1)]
