#!/usr/bin/python3
"""The agents that people use, as npm distributes them, in real boxes, through the real gateway, against a scripted provider:
each mends the sample project; none of them ever holds a key. For the long list: it fetches some 600 MB from the registry.

    tests/agents/run.py --build DIR [AGENT...]
"""
import argparse, json, os, shutil, signal, subprocess, sys, tempfile, time, urllib.error, urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.abspath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [HERE, os.path.join(TOP, "tests")]
from patience import PATIENCE
from upstream import Upstream

KEY = "sk-canary-of-the-real-agents-0123456789"
# Not by sed -i, which qwen takes for an edit and wants to have read the file before.
MEND = "python3 -c \"p = 'calc.py'; s = open(p).read(); open(p, 'w').write(s.replace('return a - b', 'return a + b'))\""
NAMES = ["codex", "opencode", "claude-code", "pi", "qwen", "copilot"]
good = bad = 0


def check(name, ok, seen=""):
    global good, bad
    good, bad = good + bool(ok), bad + (not ok)
    print("ok" if ok else "FAIL", name, "" if ok else seen, flush=True)


def config(work, port):
    """What a test instance has besides: a provider of each protocol, and the agents."""
    with open(work + "/agents.conf", "w") as f:
        f.write(f'''provider "canned" {{
	base_url = "http://127.0.0.1:{port}/v1"
	secret = "canned"
	allow_plain_loopback = yes
}}
model_profile "canned" {{
	provider = "canned"
	model = "canned-1"
}}
provider "canned-messages" {{
	protocol = "anthropic"
	base_url = "http://127.0.0.1:{port}/v1"
	secret = "canned"
	allow_plain_loopback = yes
}}
model_profile "canned-messages" {{
	provider = "canned-messages"
	model = "canned-1"
}}
''')
    return work + "/agents.conf"


def registry():
    said = subprocess.run(["npm", "config", "get", "registry"], capture_output=True, text=True, check=True).stdout.strip()
    return said


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", required=True)
    p.add_argument("agents", nargs="*")
    a = p.parse_args()
    names = a.agents or NAMES
    work = tempfile.mkdtemp(prefix="pinfold-agents.")
    os.chmod(work, 0o755)
    folder = tempfile.mkdtemp(prefix="pinfold-agents-test.", dir="/usr/local/lib")
    os.chmod(folder, 0o755)
    upstream = Upstream(MEND, KEY)
    root = work + "/root"
    env = {**os.environ, "PINFOLD_BUILD": os.path.abspath(a.build)}
    up = subprocess.Popen([TOP + "/quickstart", "up", "--root", root, "--config", config(work, upstream.port)], env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=open(work + "/up.err", "w"), text=True)
    try:
        ready = json.loads(next(l for l in up.stdout if l.startswith("ready ")).removeprefix("ready "))
        cli = root + "/usr/bin/pinfold"
        operator = {**os.environ, "PINFOLD_ROOT": root}
        with open(root + "/etc/pinfold/secrets/canned", "w") as f:
            os.chmod(f.fileno(), 0o600)
            f.write(KEY)
        for name in names:
            r = subprocess.run([cli, "agent", "install", "--registry", registry(), "--folder", folder, name], env=operator, capture_output=True, text=True)
            check(f"{name} is installed", r.returncode == 0, r.stderr)
        r = subprocess.run([cli, "config", "reload"], env=operator, capture_output=True, text=True, timeout=PATIENCE)
        check("the profiles are taken up", r.returncode == 0, r.stderr)
        user = {**os.environ, "PINFOLD_URL": ready["url"]}
        for name in names:
            one(cli, user, ready, upstream, name, work)
        api = Api(ready)
        if "opencode" in names:
            asked(api, upstream, "opencode-ask")
        for name in set(names) & {"codex", "pi"}:
            cut(api, upstream, name, clean=False)
            cut(api, upstream, name, clean=True)
        for name in set(names) & {"codex", "pi", "opencode"}:
            spent(api, upstream, name, root, operator, cli)
    finally:
        up.send_signal(signal.SIGTERM)
        up.wait(PATIENCE)
        with open(work + "/up.err") as f:
            if bad:
                print(f.read()[-3000:])
        shutil.rmtree(folder)
        shutil.rmtree(work)
    print(f"{good} passed, {bad} failed")
    return bad > 0


class Api:
    def __init__(self, ready):
        self.url = ready["url"]
        self.token, self.phone = (open(ready[k]).read().strip() for k in ("apiTokenFile", "deviceTokenFile"))

    def call(self, method, path, body=None, bearer=None):
        r = urllib.request.Request(self.url + path, method=method, data=None if body is None else json.dumps(body).encode(),
                                   headers={"Authorization": "Bearer " + (bearer or self.token), "Content-Type": "application/json"})
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(r, timeout=PATIENCE) as a:
                return a.read().decode()
        except urllib.error.HTTPError as e:
            raise AssertionError(f"{method} {path}: {e.code} {e.read()[:300]}") from None

    def start(self, agent, **more):
        files = [{"path": n, "content": open(f"{TOP}/examples/calc/{n}").read()} for n in ("calc.py", "test_calc.py")] + [
            {"path": n, "content": "\n"} for n in ("half.txt", "whole.txt")]
        body = {"instruction": "Mend the sum in calc.py.", "agent": agent, "modelProfile": "canned", "files": files, "allowedPaths": ["calc.py"],
                "checks": [["python3", "-m", "unittest", "discover"]], **more}
        return json.loads(self.call("POST", "/v1/runs", body))["runId"]

    def until(self, run, there=lambda v: False):
        end = time.monotonic() + 2 * PATIENCE
        while time.monotonic() < end:
            v = json.loads(self.call("GET", "/v1/runs/" + run))
            if v["status"] in ("completed", "failed", "cancelled") or there(v):
                return v
            time.sleep(0.1)
        raise AssertionError(f"{run} does not come to it: {v}")


def asked(api, upstream, name):
    """A question of the agent's own, answered from a paired device."""
    upstream.asked.clear()
    run = api.start(name)
    seen = []
    while True:
        v = api.until(run, lambda v: v["pendingApprovals"])
        if v["status"] in ("completed", "failed", "cancelled"):
            break
        card = v["pendingApprovals"][0]
        seen.append(card["preview"])
        api.call("POST", f"/v1/runs/{run}/approvals/{card['requestId']}", {"decision": "allow_once", "digest": card["digest"]}, api.phone)
    check(f"{name} asks, is allowed, and mends the sample", v["status"] == "completed" and v["changedFiles"] == ["calc.py"], (v, api.call("GET", f"/v1/runs/{run}/artifacts/transcript")[-1500:]))
    check(f"{name}: what was asked is the command", seen and any(MEND in s for s in seen), seen)
    run = api.start(name)
    card = api.until(run, lambda v: v["pendingApprovals"])["pendingApprovals"][0]
    api.call("POST", f"/v1/runs/{run}/approvals/{card['requestId']}", {"decision": "deny", "digest": card["digest"]}, api.phone)
    v = api.until(run)
    check(f"{name}: what was refused is not done", v.get("changedFiles") == [], v)


def cut(api, upstream, name, clean):
    """The stream breaks off in the middle of a command: what is there of it is never run."""
    command, upstream.command = upstream.command, "echo 1 > half.txt && echo 1 > whole.txt && " + MEND
    left = [2]

    def spoil(h, kind, frames, send):
        """The first two end in the middle of the arguments."""
        if left[0] == 0 or not any("half.txt" in f for f in frames):
            return False
        left[0] -= 1
        # Of a chat behind the first half of the arguments, of the others in the middle of the event that has them.
        at = next(i for i, f in enumerate(frames) if "half.txt" in f)
        for f in frames[:at]:
            send(f)
        send(frames[at] if kind == "chat/completions" else frames[at][:frames[at].index("whole.txt")])
        if clean:
            h.wfile.write(b"0\r\n\r\n")
        h.close_connection = True
        return True

    upstream.asked.clear()
    upstream.spoil = spoil
    run = api.start(name, allowedPaths=["calc.py", "half.txt", "whole.txt"])
    v = api.until(run)
    upstream.spoil, upstream.command = None, command
    changed = v.get("changedFiles") or []
    check(f"{name}: half a command is never run, {'clean' if clean else 'cut'}", ("half.txt" in changed) == ("whole.txt" in changed) or v["status"] == "failed" and not changed,
          (v, [q["path"] for q in upstream.asked]))


def spent(api, upstream, name, root, operator, cli):
    """A budget that is used up stops the agent."""
    with open(f"{root}/etc/pinfold/profiles.d/{name}.conf") as f:
        text = f.read()
    block = text[text.index(f'agent "{name}"'):]
    block = block[:block.index("\n}\n") + 3].replace(f'agent "{name}"', f'agent "{name}-poor"').replace("extra_requests = 60", "extra_requests = 2")
    with open(f"{root}/etc/pinfold/profiles.d/{name}-poor.conf", "w") as f:
        f.write(block)
    r = subprocess.run([cli, "config", "reload"], env=operator, capture_output=True, text=True, timeout=PATIENCE)
    check(f"{name}-poor is taken up", r.returncode == 0, r.stderr)
    upstream.asked.clear()
    upstream.endless = True
    run = api.start(name + "-poor", limits={"maxSteps": 2})
    v = api.until(run)
    upstream.endless = False
    check(f"{name}: never more than its budget", len(upstream.asked) == 4 == v["usage"]["modelRequests"], (len(upstream.asked), v))
    tokens = [sum(q["tokens"][i] for q in upstream.asked) for i in (0, 1)]
    check(f"{name}: to the token", [v["usage"]["promptTokens"], v["usage"]["completionTokens"]] == tokens, (v["usage"], tokens))


def one(cli, env, ready, upstream, name, work):
    tree = f"{work}/{name}"
    shutil.copytree(TOP + "/examples/calc", tree)
    upstream.asked.clear()
    profile = "canned-messages" if name == "claude-code" else "canned"
    pinfold = lambda *words: subprocess.run([cli, "--token-file", ready["apiTokenFile"], "--json", *words], env=env, capture_output=True, text=True)
    r = pinfold("run", "-i", "Mend the sum in calc.py.", "--agent", name, "--model-profile", profile, "--check", "python3 -m unittest discover", "--detach", tree)
    run = r.stdout.strip() if r.returncode == 0 else None
    if run is None:
        return check(f"{name}: a run", False, r.stderr)
    pinfold("events", "-f", run)
    v = json.loads(pinfold("show", run).stdout)
    transcript = pinfold("artifacts", run, "transcript").stdout
    check(f"{name} mends the sample", v["status"] == "completed" and v["changedFiles"] == ["calc.py"],
          (v["status"], v.get("error"), v.get("summary"), [(q["path"], q["key"]) for q in upstream.asked], transcript[-1500:]))
    check(f"{name}: the provider saw its key, and nothing else that opens anything", upstream.asked and
          all(q["key"] for q in upstream.asked) and "not-needed" not in json.dumps([q["headers"] for q in upstream.asked]), [q["headers"] for q in upstream.asked])
    tokens = [sum(q["tokens"][i] for q in upstream.asked) for i in (0, 1)]
    check(f"{name}: what it used is what the provider counted", [v["usage"]["promptTokens"], v["usage"]["completionTokens"]] == tokens and
          v["usage"]["modelRequests"] == len(upstream.asked), (v["usage"], tokens, len(upstream.asked)))
    kinds = [json.loads(l)["event_type"] for l in pinfold("events", run).stdout.splitlines()]
    check(f"{name}: people see what it does", "tool.call" in kinds and "message.text" in kinds, kinds)
    said = transcript + pinfold("events", run).stdout + json.dumps(v)
    check(f"{name}: no key is anywhere", KEY not in said)


sys.exit(main())
