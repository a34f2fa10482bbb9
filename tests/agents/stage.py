"""Where the agents are tried: an instance of the service with them installed, and what asks it."""
import json, os, shutil, signal, subprocess, tempfile, threading, time, urllib.error, urllib.request

from patience import PATIENCE
from upstream import Upstream

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
ENDED = ("completed", "failed", "cancelled")
# Not by sed -i, which qwen takes for an edit and wants to have read the file before.
MEND = "python3 -c \"p = 'calc.py'; s = open(p).read(); open(p, 'w').write(s.replace('return a - b', 'return a + b'))\""


def key_of(agent):
    """Made up, and each agent's provider has another."""
    return f"sk-canary-of-{agent}-0123456789"


def program_of(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


class Score:
    def __init__(self):
        self.good = self.bad = 0
        self.lock = threading.Lock()

    def check(self, name, ok, seen=""):
        with self.lock:
            self.good, self.bad = self.good + bool(ok), self.bad + (not ok)
            print("ok" if ok else "FAIL", name, "" if ok else seen, flush=True)


class Stage:
    """An instance with these agents, and a provider for each. kept: a folder below /usr in which they are, and stay, installed."""

    def __init__(self, build, agents, score, kept=None):
        self.agents, self.check, self.kept = agents, score.check, kept
        self.score = score
        self.lock, self.going = threading.Lock(), {}
        self.work = tempfile.mkdtemp(prefix="pinfold-agents.")
        os.chmod(self.work, 0o755)
        self.folder = kept or tempfile.mkdtemp(prefix="pinfold-agents-test.", dir="/usr/local/lib")
        os.makedirs(self.folder, exist_ok=True)
        os.chmod(self.folder, 0o755)
        shutil.copy(TOP + "/tests/agents/tap.py", self.folder + "/tap.py")
        self.upstream = Upstream(MEND)
        self.root = self.work + "/root"
        self.cli = self.root + "/usr/bin/pinfold"
        self.operator = {**os.environ, "PINFOLD_ROOT": self.root}
        config = self.work + "/agents.conf"
        with open(config, "w") as f:
            f.write("model_heartbeat_seconds = 1\n")
            f.writelines(self.provider(name, a) for name, a in agents.items())
        self.up = subprocess.Popen([TOP + "/quickstart", "up", "--root", self.root, "--config", config], env={**os.environ, "PINFOLD_BUILD": os.path.abspath(build)},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=open(self.work + "/up.err", "w"), text=True)
        try:
            ready = json.loads(next(l for l in self.up.stdout if l.startswith("ready ")).removeprefix("ready "))
            self.url = ready["url"]
            for name in agents:
                with open(f"{self.root}/etc/pinfold/secrets/canned-{name}", "w") as f:
                    os.chmod(f.fileno(), 0o600)
                    f.write(key_of(name))
            self.reload()
            self.tokens = {name: self.operate("token", "create", "--tenant", name, "--label", "agents").strip() for name in agents}
            self.phones = {name: self.operate("token", "create", "--device", "--tenant", name, "--label", "phone").strip() for name in agents}
        except BaseException:
            self.close()
            raise

    def provider(self, name, agent):
        seat = self.upstream.seat(name)
        seat.key = key_of(name)
        return f'''provider "canned-{name}" {{
	protocol = "{agent.protocol}"
	base_url = "http://127.0.0.1:{self.upstream.port}/{name}/v1"
	secret = "canned-{name}"
	allow_plain_loopback = yes
}}
model_profile "canned-{name}" {{
	provider = "canned-{name}"
	model = "canned-1"
}}
tenant "{name}" {{
	model_profile = "canned-{name}"
	extensions = {{".py", ".txt", ".json", ".toml", ".rules"}}
}}
'''

    def close(self):
        self.up.send_signal(signal.SIGTERM)
        self.up.wait(PATIENCE)
        if self.score.bad:
            print(open(self.work + "/up.err").read()[-3000:])
        if not self.kept:
            shutil.rmtree(self.folder)
        shutil.rmtree(self.work)

    # What an operator does.
    def command(self, *words):
        return subprocess.run([self.cli, *words], env={**self.operator, "PINFOLD_URL": self.url}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10 * PATIENCE)

    def operate(self, *words):
        r = self.command(*words)
        if r.returncode != 0:
            raise AssertionError(f"pinfold {' '.join(words)}: {r.stdout}{r.stderr}")
        return r.stdout

    def reload(self):
        with self.lock:  # one at a time
            self.operate("config", "reload")

    def install(self):
        """Those that are there then: the others have failed, and are not tried."""
        there = []
        asked = subprocess.run(["npm", "config", "get", "registry"], capture_output=True, text=True, check=True).stdout.strip()
        for name in self.agents:
            r = self.command("agent", "install", "--registry", asked, "--folder", self.folder, name)
            self.check(f"{name} is installed", r.returncode == 0, r.stderr)
            there += [name] if r.returncode == 0 else []
        return there

    def profiles(self, agent, variants):
        """Profiles like the installed ones, but for some settings: {name: (like, {setting or placeholder: its text})}; taken up by reload().
        Their agents ask through tap.py."""
        with open(f"{self.root}/etc/pinfold/profiles.d/{agent}.conf") as f:
            text = f.read()
        blocks = []
        for name, (like, changes) in variants.items():
            block = text[text.index(f'agent "{like}" {{'):]
            block = block[:block.index("\n}\n") + 3].replace(f'agent "{like}"', f'agent "{name}"')
            block = block.replace("{gateway_url}", "http://127.0.0.1:9798/internal/v1").replace("{gateway_root}", "http://127.0.0.1:9798/internal")
            block = block.replace('"--", ', f'"--", "/usr/bin/python3", "{self.folder}/tap.py", ', 1)
            for setting, value in changes.items():
                if setting.startswith("{"):
                    block = block.replace(setting, value)
                    continue
                lines = [l for l in block.splitlines(True) if not l.startswith(f"\t{setting} = ")]
                block = "".join(lines[:-1]) + f"\t{setting} = {value}\n" + lines[-1]
            blocks.append(block)
        with open(f"{self.root}/etc/pinfold/profiles.d/{agent}-variants.conf", "w") as f:
            f.writelines(blocks)

    def revoke(self, tenant, run):
        """Takes a run's capability, as the steward does when it settles; the run goes on."""
        pid = next(p for p in os.listdir("/proc") if p.isdigit() and program_of(p) == self.root + "/usr/libexec/pinfold/pinfold-steward")
        ids = {l.split(":")[0]: l.split(":")[1].split() for l in open(f"/proc/{pid}/status")}
        program = """
import socket, sys
sys.path.insert(0, sys.argv[1])
import wire
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[2])
for op, (what, values) in enumerate([("HELLO", {"version": wire.STORE}), ("CAP_REVOKE", {"tenant": sys.argv[3], "run": sys.argv[4]})]):
    number, has = wire.fields("store.msg", what)
    s.send(wire.frame(number, wire.filled(has, values), op=op + 1, version=wire.STORE))
    number = wire.unframe(s.recv(200000))[0]
    assert number != 4, what
"""
        subprocess.run(["python3", "-B", "-c", program, TOP + "/tests/fcgi", self.root + "/run/pinfold/store/store.sock", tenant, run], check=True,
                       user=int(ids["Uid"][0]), group=int(ids["Gid"][0]), extra_groups=[int(g) for g in ids["Groups"]])

    # What a user does.
    def user(self, agent, *words):
        return subprocess.run([self.cli, *words], env={**os.environ, "PINFOLD_URL": self.url, "PINFOLD_TOKEN": self.tokens[agent]}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=10 * PATIENCE)

    def call(self, agent, method, path, body=None, bearer=None):
        r = urllib.request.Request(self.url + path, method=method, data=None if body is None else json.dumps(body).encode(),
                                   headers={"Authorization": "Bearer " + (bearer or self.tokens[agent]), "Content-Type": "application/json"})
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(r, timeout=PATIENCE) as a:
                return a.read().decode()
        except urllib.error.HTTPError as e:
            raise AssertionError(f"{method} {path}: {e.code} {e.read()[:300]}") from None

    def start(self, agent, profile=None, more_files={}, **more):
        """A run of the sample project for the tenant so called."""
        files = [{"path": n, "content": open(f"{TOP}/examples/calc/{n}").read()} for n in ("calc.py", "test_calc.py")] + [
            {"path": n, "content": "\n"} for n in ("half.txt", "whole.txt")] + [{"path": n, "content": c} for n, c in more_files.items()]
        body = {"instruction": "Mend the sum in calc.py.", "agent": profile or agent, "files": files, "allowedPaths": ["calc.py"],
                "checks": [["python3", "-m", "unittest", "discover"]], **more}
        run = json.loads(self.call(agent, "POST", "/v1/runs", body))["runId"]
        self.going[agent] = run
        return run

    def end(self, agent):
        """A run that a case began and did not wait for."""
        if agent in self.going:
            self.call(agent, "POST", f"/v1/runs/{self.going[agent]}/cancel", {})
            self.until(agent, self.going.pop(agent))

    def until(self, agent, run, there=lambda v: False):
        end = time.monotonic() + 3 * PATIENCE
        while time.monotonic() < end:
            v = json.loads(self.call(agent, "GET", "/v1/runs/" + run))
            if v["status"] in ENDED or there(v):
                return v
            time.sleep(0.1)
        raise AssertionError(f"{run} does not come to it: {v}")

    def transcript(self, agent, run):
        try:
            return self.call(agent, "GET", f"/v1/runs/{run}/artifacts/transcript")
        except AssertionError as e:
            return str(e)

    def tapped(self, agent, run):
        """The calls that its agent made at the gateway, as tap.py saw them."""
        lines = [l for l in self.transcript(agent, run).splitlines() if l.startswith('{"type": "tap"')]
        return json.loads(lines[-1])["calls"] if lines else None
