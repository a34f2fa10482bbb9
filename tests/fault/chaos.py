#!/usr/bin/python3 -B
"""
Pulls plugs. Starts an instance whose daemons are fault builds, puts load on it, and in each round causes one fault and
waits until it serves again. A few rounds make a group; at its end the load rests, every run ends, and the checker
compares promises, store and machine. As root:

    chaos.py [--rounds N] [--seed N] [--group N] [--only TEXT] [--keep FOLDER]

PINFOLD_BUILD is the build folder, with the programs of tests/fault. Exit status 1: something was violated; then seed
and evidence are named.
"""
import argparse, collections, json, os, random, shutil, signal, socket, subprocess, sys, tempfile, threading, time
import urllib.request
from checker import *
from faults import *
from following import *
from load import *

BUILD = os.environ.get("PINFOLD_BUILD", os.path.join(TOP, "build-check"))
CLIENTS = (("red", 1), ("red", 2), ("blue", 3), ("blue", 4), ("green", 5))
PEOPLE = (("red", "p1"), ("red", "p2"), ("green", "p3"))  # nobody answers blue's agents
FOLLOWERS = (("red", "s1"), ("blue", "s2"), ("blue", "s3"), ("green", "s4"))
SERVES, SETTLES = 90, 180  # seconds, far beyond what either takes


class Failure(Exception):
    pass


class Chaos:
    def __init__(self, args):
        self.args = args
        self.work = tempfile.mkdtemp(prefix="pinfold-chaos.", dir="/tmp")
        os.chmod(self.work, 0o711)
        self.root, self.rng = self.work + "/root", random.Random(args.seed)
        self.look = self.work + "/look"
        os.makedirs(self.look + "/journals")
        os.makedirs(self.root, mode=0o711)
        self.port = self.free_port()
        self.up, self.tokens, self.clients, self.followers = None, {}, [], []
        self.machine, self.control = Machine(self.root), Control(self.root)
        self.checker = Checker(self.look)
        self.caused, self.back, self.missed = collections.Counter(), collections.defaultdict(list), collections.Counter()
        self.violations, self.rounds, self.before, self.most = [], 0, None, {}
        self.faults = Faults(self.machine, self.control, self.boot_again, self.rng)
        self.lock, self.hashes = threading.Lock(), {}

    @staticmethod
    def free_port():
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            return s.getsockname()[1]

    # --- the instance ---

    def boot(self):
        self.log = open(self.work + "/log", "ab")
        out = open(self.work + "/out", "wb")
        self.up = subprocess.Popen([os.path.join(HERE, "up.sh"), self.root, str(self.port)], stdout=out, stderr=self.log,
                                   env=dict(os.environ, PINFOLD_BUILD=BUILD), start_new_session=True)
        self.machine.up = self.up.pid
        ok = wait_for(lambda: self.up.poll() is not None or open(self.work + "/out").read().startswith("ready"), 120)
        if not ok or self.up.poll() is not None:
            raise Failure("the instance did not start")

    def boot_again(self):
        """The whole instance dies, up.sh and web server included, and is started again where it was."""
        self.up.send_signal(signal.SIGSTOP)
        found = children(self.up.pid) + list(self.machine.processes())
        for p in set(found):
            send(p, signal.SIGKILL)
        self.up.kill()
        self.up.wait()
        wait_for(lambda: not [p for p in found if alive(p)], 30)
        self.boot()

    def operator(self, *words):
        env = dict(os.environ, PINFOLD_ROOT=self.root)
        return subprocess.run([self.root + "/usr/bin/pinfold", *words], env=env, check=True, capture_output=True, text=True).stdout

    def get(self, path, bearer=None):
        """Status (0: no answer) and value."""
        r = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers={"Authorization": "Bearer " + bearer} if bearer else {})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(r, timeout=30) as a:
                return a.status, json.loads(a.read())
        except urllib.error.HTTPError as e:
            return e.code, None
        except (OSError, ValueError, http.client.HTTPException):
            return 0, None

    def serves(self):
        return self.get("/readyz")[0] == 200

    def start(self):
        self.boot()
        for tenant, _ in CLIENTS:
            if tenant not in self.tokens:
                self.tokens[tenant] = self.operator("token", "create", "--tenant", tenant).strip()
        devices = [(t, n, self.operator("token", "create", "--tenant", t, "--device", "--label", n).strip()) for t, n in PEOPLE]
        self.before = self.machine.look()
        self.most = {d: self.machine.descriptors(self.machine.pid(d)) + (3 if d == "sandboxd" else 60) for d in DAEMONS}
        self.clients = [Client(self.port, self.tokens[t], t, self.look + "/journals", f"{n}", self.warden) for t, n in CLIENTS]
        self.clients += [Person(self.port, bearer, t, self.look + "/journals", n, self.warden) for t, n, bearer in devices]
        self.followers = [Follower(self.port, self.tokens[t], t, self.look + "/journals", n, self.warden) for t, n in FOLLOWERS]
        self.clients += self.followers
        for c in self.clients:
            c.start()

    def stop(self):
        for c in self.clients:
            c.end = True
            c.go.set()
        if self.up is not None and self.up.poll() is None:
            self.up.terminate()
            try:
                self.up.wait(30)
            except subprocess.TimeoutExpired:
                self.up.kill()

    # --- load and rest ---

    def warden(self, tenant, run, shown):
        """A client has just seen the run's end: by then nothing of its box may live."""
        left = self.machine.of_run(run)
        if left and shown.get("error") != "sandbox_cleanup_failed":
            with self.lock:
                self.violations.append((LEFT, f"run {run} was shown as {shown['status']} ({shown.get('terminalReason')}) while its processes {left} lived"))

    def load(self, on):
        for c in self.clients:
            (c.go.set if on else c.go.clear)()
        if not on and not wait_for(lambda: all(c.idle.is_set() for c in self.clients if c not in self.followers), SERVES):
            raise Failure("a client's request was not answered")

    def open_runs(self):
        """Runs that have not ended, or None where the service does not say."""
        n = 0
        for tenant, bearer in self.tokens.items():
            for state in ("queued", "running"):
                status, v = self.get(f"/v1/runs?limit=100&status={state}", bearer)
                if status != 200:
                    return None
                n += len(v["runs"])
        return n

    def settled(self):
        if self.open_runs() != 0 or self.machine.members("r") or self.machine.members("a") or not self.serves():
            return False
        return self.machine.look() == self.before

    # --- evidence ---

    def snapshot(self):
        """The store's folder as a crash at this instant would leave it, and all the rest, into the folder of evidence."""
        copy = self.work + "/copy"
        shutil.rmtree(copy, ignore_errors=True)
        os.makedirs(copy)
        source, stored = self.root + "/var/lib/pinfold/store", self.machine.pid("stored")
        if stored is None or not send(stored, signal.SIGSTOP):
            raise Failure("stored is not there")
        try:
            blobs = {}
            for d, _, names in os.walk(source + "/blobs"):
                for n in names:
                    st = os.stat(os.path.join(d, n))
                    if self.hashes.get(n, (0,))[0] != st.st_mtime:
                        self.hashes[n] = st.st_mtime, hashlib.sha256(read(os.path.join(d, n))).hexdigest()
                    blobs[n] = (st.st_size, st.st_mtime, self.hashes[n][1])
            for n in os.listdir(source):
                if n == "pinfold.db" or n.startswith("log."):
                    shutil.copy(os.path.join(source, n), copy)
            shutil.rmtree(self.look + "/audit", ignore_errors=True)
            shutil.copytree(self.root + "/var/log/pinfold", self.look + "/audit")
            started = os.stat(f"/proc/{stored}").st_mtime
        finally:
            send(stored, signal.SIGCONT)
        with open(self.look + "/dump.txt", "w") as f:
            if subprocess.run([BUILD + "/tests/fault/dump", copy], stdout=f, stderr=self.log).returncode != 0:
                raise Failure("a copy of the store cannot be recovered, or is broken")
        shown = []
        for tenant, bearer in self.tokens.items():
            for r in (self.get("/v1/runs?limit=10", bearer)[1] or {"runs": []})["runs"]:
                status, v = self.get("/v1/runs/" + r["runId"], bearer)
                if status == 200:
                    shown.append((tenant, r["runId"], v["usage"]["modelRequests"], v["usage"]["maxModelRequests"]))
        json.dump(shown, open(self.look + "/shown.json", "w"))
        json.dump({"blobs": blobs, "started": started}, open(self.look + "/files.json", "w"))
        json.dump({"before": self.before, "now": self.machine.look(), "most": self.most,
                   "descriptors": {d: self.machine.descriptors(self.machine.pid(d)) for d in DAEMONS}}, open(self.look + "/machine.json", "w"))
        link = self.look + "/model.log"
        if not os.path.lexists(link):
            os.link(self.root + "/model/log", link)

    def examine(self):
        began = time.monotonic()
        self.load(False)
        self.control.clear()
        if not wait_for(self.settled, SETTLES, 0.1):
            self.violations.append((LEFT, f"the instance does not come to rest: {self.open_runs()} runs are open; {self.machine.look()} is not {self.before}"))
        elif not wait_for(lambda: all(c.idle.is_set() for c in self.followers), SERVES):
            self.violations.append((UNTRUE, "every run has ended, and a stream has not"))
        rested = time.monotonic() - began
        self.snapshot()
        self.violations += self.checker.look()
        return rested, time.monotonic() - began - rested

    def last_look(self):
        """What is asked once, at the end: the product's own check of its audit log, and the size of the store's log."""
        env = dict(os.environ, PINFOLD_ROOT=self.root)
        r = subprocess.run([self.root + "/usr/bin/pinfold", "audit", "verify"], env=env, capture_output=True, text=True)
        if r.returncode != 0:
            self.violations.append((UNTRUE, f"pinfold audit verify: {r.stdout}{r.stderr}"))
        logs = [n for n in os.listdir(self.root + "/var/lib/pinfold/store") if n.startswith("log.")]
        print(f"audit: {r.stdout.strip()}; the store has {len(logs)} files of log", flush=True)
        if len(logs) > 16:
            self.violations.append((LEFT, f"{len(logs)} files of log, which nobody removes"))

    # --- rounds ---

    def deck(self):
        """Every fault once, in an order of this seed's; and again, for ever."""
        faults = self.faults.all()
        names = [n for n in faults if not self.args.only or any(w in n for w in self.args.only.split(","))]
        while True:
            order = list(names)
            self.rng.shuffle(order)
            for n in order:
                yield n, faults[n]

    def round(self, name, fault):
        time.sleep(self.rng.uniform(0, 0.3))
        began = time.monotonic()
        done = fault()
        self.control.clear()
        caused = time.monotonic()
        if not wait_for(self.serves, SERVES, 0.05):
            raise Failure(f"it does not serve again after: {name}")
        if done:
            self.caused[name] += 1
            self.back[name].append(time.monotonic() - caused)
        else:
            self.missed[name] += 1
        return f"{name}{'' if done else ' (not caused)'}: {caused - began:.2f} s, serving {time.monotonic() - caused:.2f} s later"

    def run(self):
        deck = self.deck()
        self.start()
        print(f"seed {self.args.seed}; instance {self.root}, port {self.port}", flush=True)
        while self.rounds < self.args.rounds and not self.violations:
            self.load(True)
            for _ in range(min(self.args.group, self.args.rounds - self.rounds)):
                self.rounds += 1
                print(f"round {self.rounds}/{self.args.rounds} {self.round(*next(deck))}", flush=True)
            rested, looked = self.examine()
            runs = sum(t.created for t in self.checker.told.values())
            print(f"  at rest after {rested:.1f} s, looked at in {looked:.1f} s: {runs} runs acknowledged, {sum(self.checker.upstream.values())} model "
                  f"calls, {len(self.checker.decided)} decisions acknowledged, {self.checker.heard} heard, "
                  f"{self.checker.followed['runs']} followed over {self.checker.followed['breaks']} breaks, {len(self.violations)} violations", flush=True)
        self.last_look()

    def report(self, why):
        every = [n for n in self.faults.all() if not self.args.only or any(w in n for w in self.args.only.split(","))]
        print(f"\n{'fault':24} {'caused':>7} {'not':>5}   seconds until it served again: median, most")
        for n in every:
            b = sorted(self.back[n]) or [0]
            print(f"{n:24} {self.caused[n]:7} {self.missed[n]:5}   {b[len(b) // 2]:.2f} {b[-1]:.2f}")
        answers = collections.Counter()
        for c in self.clients:
            answers.update(c.answers)
        print("answers to clients (0: none):", ", ".join(f"{s}: {n}" for s, n in sorted(answers.items())))
        print(f"writes taken back at power cuts: {self.faults.power_writes}")
        ends = collections.Counter(t.ended[:2] for t in self.checker.told.values() if t.ended)
        print("runs as shown:", ", ".join(f"{s} ({r}): {n}" for (s, r), n in ends.most_common()))
        never = [n for n in every if not self.caused[n]]
        kinds = collections.Counter(k for k, _ in self.violations)
        for kind, text in self.violations[:40]:
            print(f"VIOLATION {kind}: {text}")
        if why:
            print("FAIL", why)
        if never and self.rounds >= 2 * len(every):
            print("FAIL never caused:", ", ".join(never))
        print(f"{self.rounds} rounds: " + ", ".join(f"{kinds[k]} {k}" for k in KINDS))
        return not (self.violations or why or (never and self.rounds >= 2 * len(every)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=200)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--group", type=int, default=10)
    p.add_argument("--only", default="", help="only faults whose name holds one of these words (comma)")
    p.add_argument("--keep", default="", help="where evidence goes on failure")
    args = p.parse_args()
    if os.geteuid() != 0:
        sys.exit("chaos.py: must be run by root")
    args.seed = args.seed or int.from_bytes(os.urandom(4), "big")
    why, chaos = "", Chaos(args)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    good = False
    try:
        chaos.run()
    except Failure as e:
        why = str(e)
    finally:
        try:
            good = chaos.report(why)
        finally:
            chaos.stop()
            if good:
                shutil.rmtree(chaos.work)
                print("1 passed, 0 failed")
            else:
                keep = args.keep or chaos.work
                if keep != chaos.work:
                    shutil.move(chaos.work, keep)
                print(f"0 passed, 1 failed; seed {args.seed}; everything is kept in {keep}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
