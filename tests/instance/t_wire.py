#!/usr/bin/python3
"""token_delivery wire: no token is in the box, the connection is the run, and nobody else's connection is."""
from client import *

mine = token()
patient = operator("token", "create", "--tenant", "patient").strip()
GIT = [["git", "diff", "--check"]]

ASK = """
import json, os, re, urllib.request, urllib.error
run, other, said = os.environ["PINFOLD_RUN_ID"], open("other.txt").read().strip(), []
def ask(method, path, body=None, **headers):
    r = urllib.request.Request("http://127.0.0.1:9797" + path, data=body and json.dumps(body).encode(), method=method,
                               headers={"Content-Type": "application/json", **headers} if body else headers)
    try:
        with urllib.request.urlopen(r, timeout=60) as a:
            return a.status
    except urllib.error.HTTPError as e:
        return e.code
def event(of, **headers):
    line = json.dumps({"event_type": "wired", "run_id": of, "task_id": of, "sequence": 1, "data": {}}) + chr(10)
    return ask("POST", f"/internal/v1/runs/{of}/events", {"lines": [line]}, **headers)
chat = {"model": os.environ.get("PINFOLD_MODEL_ID", "x"), "messages": [{"role": "user", "content": "hello"}]}
said = [event(run), event(run, Authorization="Bearer not-needed"), event(other), ask("GET", "/internal/v1/models"),
        ask("POST", "/internal/v1/chat/completions", chat), ask("POST", "/internal/v1/chat/completions", dict(chat, model="another"))]
"""
FOUND = ASK + """
files = sorted(f for f in os.listdir("/workspace") if f not in ("source", "request.json"))
texts = [open("/proc/self/environ").read(), open("/workspace/request.json").read()]
for line in open("/proc/self/maps"):
    a, b = (int(x, 16) for x in line.split()[0].split("-"))
    if "r" in line.split()[1] and "[v" not in line:
        with open("/proc/self/mem", "rb") as m:
            m.seek(a)
            texts.append(m.read(b - a).decode("latin-1"))
# The form of every run token, which is more than this program is.
form = re.compile("ey[A-Za-z0-9_-]{100,}[.][A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])")
found = sum(bool(form.search(t)) for t in texts)
open("report.txt", "w").write(f"{files} {found} {said}\\n")
"""


def run(agent, program, other="00000000-0000-4000-8000-000000000000", bearer=mine):
    r = start(bearer, {"agent.py": program, "report.txt": "\n", "other.txt": other + "\n"}, agent=agent, allowed=["report.txt"], checks=GIT)
    v = until(bearer, r)
    patch = artifact(bearer, r, "patch")
    return r, v, next((l[1:] for l in patch.splitlines() if l.startswith("+") and not l.startswith("+++")), patch)


def wired():
    # A run of the same tenant that is alive meanwhile: the connection is not its.
    victim = start(mine, {"agent.py": "import time\ntime.sleep(600)\n", "a.py": "\n"}, agent="wire", allowed=["a.py"], checks=GIT)
    until(mine, victim, lambda v: v.get("phase") == "executing" or v["status"] in TERMINAL)
    r, v, said = run("wire", FOUND, victim)
    check("a wired run completes", v["status"] == "completed", v)
    check("no token file, none in environment, request or memory; its own events and model, no other's",
          said == "[] 0 [202, 202, 401, 200, 200, 400]", said)
    check("its events are its own", sum(e["event_type"] == "wired" for e in events(mine, r)) == 2)
    check("the other has none", not any(e["event_type"] == "wired" for e in events(mine, victim)))
    call("POST", f"/v1/runs/{victim}/cancel", b"", mine)
    v = until(mine, victim)
    check("a cancel ends it", v["status"] == "cancelled", v)


def filed():
    _, v, said = run("script", ASK + 'open("report.txt", "w").write(f"{said}\\n")\n')
    check("where tokens are files, a connection alone is nobody", said == "[401, 401, 401, 401, 401, 401]", (v, said))
    _, v, said = run("script", "held = open('/workspace/.pinfold-event-token').read()\n" + FOUND)
    check("what looks for a token finds one that is there", said.startswith("['.pinfold") and "] 0 [" not in said, said)


def builtin():
    r = start(mine, {"calc.py": "x = 1\n"}, agent="wired-builtin", checks=[["python3", "-m", "compileall", "-q", "."]])
    until(mine, r)
    seen = [e for e in events(mine, r) if e["event_type"] == "model.called"]
    check("the built-in agent asks its model without a token", seen and seen[0]["data"]["status"] == 200, events(mine, r))


def homely():
    """A profile's files, and its placeholders; what is put in is not looked through again."""
    said = "the words {model} --help \u00e9 'quoted'"
    program = """
import json, os, stat, sys
home = os.environ["HOME"]
with open("report.txt", "w") as f:
    json.dump({"words": sys.argv[1:], "settings": json.load(open(home + "/.demo/settings")), "empty": os.stat(home + "/empty").st_size,
               "mode": oct(os.stat(home + "/empty").st_mode), "writable": os.access(home, os.W_OK)}, f, sort_keys=True)
    f.write("\\n")
"""
    program += 'sys.stderr.write("first\\n")\nprint("x" * 3000)\nprint("last")\n'
    r = start(mine, {"agent.py": program, "report.txt": "\n"}, agent="homely", allowed=["report.txt"], checks=GIT, instruction=said)
    v = until(mine, r)
    patch = artifact(mine, r, "patch")
    line = next((l[1:] for l in patch.splitlines() if l.startswith("+{")), "{}")
    check("a profile's files and words", json.loads(line) == {
        "words": [said, "of " + v["model"] + " {unknown}"], "empty": 0, "mode": "0o100600", "writable": True,
        "settings": {"url": "http://127.0.0.1:9797/internal/v1", "root": "http://127.0.0.1:9797/internal"}}, (line, v))

    said = artifact(mine, r, "transcript")
    check("what it printed, its beginning and its end", said.startswith("first") and said.endswith("last\n") and "xxx" in said and
          len(said) <= 1000 and "transcript" in v["artifactKeys"], (said, v))
    r = start(mine, {"agent.py": "print('silent')\n", "report.txt": "\n"}, agent="wire", allowed=["report.txt"], checks=GIT)
    check("without the setting it is not kept", "transcript" not in until(mine, r)["artifactKeys"])


def times():
    body = {"instruction": "x", "files": [{"path": "a.py", "content": ""}], "allowedPaths": ["a.py"], "checks": GIT,
            "limits": {"wallTimeSeconds": 900}}
    status, _, b = call("POST", "/v1/runs", dict(body, agent="script"), patient)
    check("tokens of one life allow no longer run", status == 400 and json.loads(b)["error"] == "invalid_wall_time", b)
    status, _, b = call("POST", "/v1/runs", body, patient)
    check("the wire does", status == 202, b)
    call("POST", f"/v1/runs/{json.loads(b).get('runId')}/cancel", b"", patient)


for f in (wired, filed, builtin, homely, times):
    case(f.__name__, f)
done()
