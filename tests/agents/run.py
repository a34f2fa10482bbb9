#!/usr/bin/python3
"""The agents that people use, as npm distributes them, in real boxes, through the real gateway, against a scripted provider:
each mends the sample project; none of them ever holds a key. For the long list: it fetches some 600 MB from the registry.

    tests/agents/run.py --build DIR [AGENT...]
"""
import argparse, json, os, shutil, signal, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.abspath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [HERE, os.path.join(TOP, "tests")]
from patience import PATIENCE
from upstream import Upstream

KEY = "sk-canary-of-the-real-agents-0123456789"
MEND = "sed -i 's/return a - b/return a + b/' calc.py"
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
