#!/usr/bin/python3 -B
"""pinfold agent test, with agents made up here: what it says of one that works, of those that do not, and that nothing of it is left,
also where it is broken off. Real agents: tests/agents."""
import signal
from processes import *

PROFILE = INSTANCE + "/etc/pinfold/profiles.d/made-up.conf"
# Asks for a stream, runs what it is told in pieces, says what came of it.
WORKS = """
import json, subprocess, urllib.request
def ask(messages):
    r = urllib.request.Request('http://127.0.0.1:9797/internal/v1/chat/completions', json.dumps({'model': 'scripted-1', 'messages': messages,
        'stream': True, 'tools': [{'type': 'function', 'function': {'name': 'bash', 'parameters': {'type': 'object'}}}]}).encode(),
        {'Content-Type': 'application/json'})
    text = ''
    with urllib.request.urlopen(r) as a:
        for l in a:
            l = l.decode().strip()
            if l.startswith('data: {'):
                for c in json.loads(l[6:])['choices']:
                    text += ''.join(t['function']['arguments'] for t in c['delta'].get('tool_calls', []))
    return text
said = [{'role': 'user', 'content': 'mend it'}]
call = ask(said)
subprocess.run(json.loads(call)['command'], shell=True, cwd='/workspace/source')
ask(said + [{'role': 'assistant', 'content': None, 'tool_calls': [{'id': 'c', 'type': 'function', 'function': {'name': 'bash', 'arguments': call}}]},
            {'role': 'tool', 'tool_call_id': 'c', 'content': 'done'}])
"""


def agent(name, program, *environment):
    env = ", ".join(json.dumps(e) for e in ("PATH=/usr/bin:/bin", "HOME=/tmp", *environment))
    return f'agent "{name}" {{\n\tcommand = {{"/usr/bin/python3", "/workspace/home/agent.py"}}\n\tfiles = {{{json.dumps("agent.py=" + program)}}}\n' \
           f'\tenvironment = {{{env}}}\n\tpolicy = "agent"\n\ttoken_delivery = "wire"\n\ttranscript = yes\n}}\n'


def below(folder):
    return {f"{d}/{f}": open(f"{d}/{f}", "rb").read() for d, _, files in os.walk(folder) for f in files}


def tested(*words):
    env = dict(os.environ, PINFOLD_ROOT=INSTANCE, PINFOLD_URL=URL)
    return subprocess.run([CLI, "agent", "test", *words], env=env, capture_output=True, text=True, timeout=4 * PATIENCE)


def seen(name):
    r = tested("--json", name)
    v = json.loads(r.stdout)
    check(f"{name}: status and words agree", (r.returncode == 0) == v["ok"] == all(s["ok"] for s in v["seen"]) and
          all((s["remedy"] is None) == s["ok"] for s in v["seen"]), (r.returncode, v))
    return {s["id"]: s["ok"] for s in v["seen"]}, v, r.stderr


def works():
    ok, v, _ = seen("made-up-works")
    check("one that works", v["ok"] and len(ok) == 8, v)
    check("its calls are streams", "2 of them streams" in next(s["detail"] for s in v["seen"] if s["id"] == "calls"), v)
    r = tested("made-up-works")
    check("in words", r.returncode == 0 and r.stdout.endswith("made-up-works: it works here\n") and r.stdout.count("ok  ") == 8, (r.stdout, r.stderr))


def fails():
    ok, v, said = seen("made-up-idle")
    check("one that never asks: it says so, and shows what was printed", not ok["run"] and not ok["calls"] and not ok["patch"] and ok["key nowhere"] and
          "it never asked" in json.dumps(v) and "I have no time" in said, (v, said))
    ok, v, _ = seen("made-up-leaks")
    check("one that has a key in its environment", not ok["key nowhere"] and not ok["patch"] and ok["tokens"] and ok["key shown"], v)
    ok, v, _ = seen("made-up-talks")
    check("one that does not do what it is told", ok["calls"] and ok["tokens"] and not ok["patch"] and not ok["check"], v)
    r = tested("nobody-knows-it")
    check("a profile that is not there", r.returncode == 1 and "profiles.d has those that there are" in r.stderr, r.stderr)
    r = tested("codex")
    check("one that is not installed", r.returncode == 1 and 'not installed; "pinfold agent install codex"' in r.stderr, r.stderr)


def broken_off():
    env = dict(os.environ, PINFOLD_ROOT=INSTANCE, PINFOLD_URL=URL)
    for end in (signal.SIGINT, signal.SIGKILL):
        p = subprocess.Popen([CLI, "agent", "test", "made-up-sleeps"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        there = wait_for(lambda: os.path.exists(INSTANCE + "/etc/pinfold/tenants.d/agent-test.conf"))
        r = tested("made-up-works")
        check("one at a time", r.returncode == 1 and "another one goes on" in r.stderr, r.stderr)
        p.send_signal(end)
        said = p.communicate(timeout=PATIENCE)[1]
        check(f"{end.name}: it ends", there and p.returncode in (1, -end), (p.returncode, said))
        left = os.path.exists(INSTANCE + "/etc/pinfold/tenants.d/agent-test.conf")
        check(f"{end.name}: what is left", left == (end == signal.SIGKILL), said)
    check("what was left is no hindrance", tested("made-up-works").returncode == 0)
    # Its run goes on to its end, which is too late for the tests behind this one.
    for p in in_boxes():
        try:
            os.kill(p, signal.SIGKILL)
        except ProcessLookupError:
            pass
    check("the run that was left has an end", wait_for(lambda: not in_boxes()))


def others():
    """What an administrator has by these names is theirs."""
    for path, text in ((INSTANCE + "/etc/pinfold/tenants.d/agent-test.conf", "# mine\n"), (INSTANCE + "/etc/pinfold/secrets/agent-test", "mine")):
        with open(path, "w", opener=lambda p, flags: os.open(p, flags, 0o600)) as f:
            f.write(text)
        r = tested("made-up-works")
        check("it says what stands in its way", r.returncode == 1 and path in r.stderr and "no file of a test" in r.stderr, r.stderr)
        check("and leaves it", os.path.exists(path) and open(path).read() == text)
        os.unlink(path)


before = below(INSTANCE + "/etc/pinfold")
with open(PROFILE, "w") as f:
    f.write(agent("made-up-works", WORKS) + agent("made-up-idle", "print('I have no time')") + agent("made-up-sleeps", "import time; time.sleep(200)") +
            agent("made-up-leaks", WORKS, "LEFT=sk-agent-test-" + "0123456789abcdef" * 2) +
            agent("made-up-talks", WORKS.replace("subprocess.run(", "str(").replace(", shell=True, cwd='/workspace/source'", "")))
try:
    for f in (works, fails, broken_off, others):
        case(f.__name__, f)
finally:
    os.unlink(PROFILE)
    operator("config", "reload")
check("nothing is left", below(INSTANCE + "/etc/pinfold") == before, sorted(set(below(INSTANCE + "/etc/pinfold")) ^ set(before)))
done()
