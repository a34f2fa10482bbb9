#!/usr/bin/python3
"""An agent that attacks gets nowhere, and the run says so."""
from client import *
import os, urllib.parse

mine = token()
here = os.path.dirname(os.path.abspath(__file__))
GIT = [["git", "diff", "--check"]]
# Run A lives on and publishes its own token; run B tries to use it.
LEAK = """
import json, os, time, urllib.request
token = open("/workspace/.pinfold-run-token").read()
events = open("/workspace/.pinfold-event-token").read()
run = os.environ["PINFOLD_RUN_ID"]
line = json.dumps({"event_type": "leak", "run_id": run, "task_id": run, "sequence": 1, "data": {"token": token}}) + "\\n"
req = urllib.request.Request(f"http://127.0.0.1:9797/internal/v1/runs/{run}/events", data=json.dumps({"lines": [line]}).encode(),
                             headers={"Authorization": "Bearer " + events, "Content-Type": "application/json"})
print(urllib.request.urlopen(req).read())
time.sleep(150)
"""


def attack():
    a = start(mine, {"agent.py": LEAK}, agent="script", checks=GIT)
    until(mine, a, lambda v: v["status"] in TERMINAL or any(e["event_type"] == "leak" for e in events(mine, a)), 60)
    foreign = next(e["data"]["token"] for e in events(mine, a) if e["event_type"] == "leak")
    config = {"url": URL, "port": urllib.parse.urlparse(URL).port, "instance": INSTANCE, "foreign": foreign}
    b = start(mine, {"agent.py": open(os.path.join(here, "attacker.py")).read(), "config.json": json.dumps(config),
                     "report.txt": "\n", "done.txt": "\n"}, agent="script", allowed=["report.txt", "done.txt"],
              checks=[["python3", "-m", "compileall", "-q", "."]])
    v = until(mine, b)
    report = dict(l[1:].split("=", 1) for l in artifact(mine, b, "patch").splitlines() if l.startswith("+") and "=" in l and not l.startswith("+++"))
    check("the attacker ran to its end", v["status"] == "completed" and "+done" in artifact(mine, b, "patch"), v)
    call("POST", f"/v1/runs/{a}/cancel", b"", mine)
    exact = {
        "uid": "True", "fds": "", "caps": "['0000000000000000', '0000000000000000', '0000000000000000']", "nnp": "['1', '2']",
        "env": "HOME,LANG,PATH,PINFOLD_MODEL_GATEWAY_URL,PINFOLD_MODEL_ID,PINFOLD_RUN_ID", "token_mode": "0o600",
        "own_token": "200", "foreign_token": "401 invalid_run_token", "garbage_token": "401 invalid_run_token",
    }
    for name, want in exact.items():
        check(f"attack {name}", report.get(name) == want, report.get(name))
    refused = """proc1_environ proc1_mem proc1_fd kill_pid1 term_pid1 shadow root_dir host_state host_run write_usr write_opt write_etc curl
        host_port metadata outside dns netlink vsock packet unshare_user unshare_mnt mount ptrace keyctl bpf io_uring userfaultfd perf setuid
        mknod tty cgroup""".split()
    for name in refused:
        check(f"attack {name} is refused", report.get(name, "").startswith("refused"), report.get(name))
    v = until(mine, a, seconds=30)
    check("the leaking run was cancelled", v["status"] == "cancelled", v)


def survivors():
    storm = """
import os, signal, sys, time
for _ in range(200):
    try:
        if os.fork() == 0:
            os.setsid(); signal.signal(signal.SIGTERM, signal.SIG_IGN)
            if os.fork() == 0:
                time.sleep(300)
            os._exit(0)
    except OSError:
        break
"""
    v = until(mine, start(mine, {"agent.py": storm}, agent="script", checks=GIT))
    check("a storm of processes ends with its run", v["status"] == "completed", v)


def memory():
    v = until(mine, start(mine, {"agent.py": "x = bytearray(900_000_000)\nfor i in range(0, len(x), 4096): x[i] = 1\n"}, agent="script", checks=GIT))
    check("too much memory fails the run", v["status"] == "failed" and v["error"] in ("memory_exceeded", "sandbox_agent_failed"), v)
    check("and names the limit", v["error"] == "memory_exceeded", v)


def disk():
    fill = "open('big.txt','w').write('x')\ntry:\n    f = open('/workspace/source/fill.bin','wb')\n    while True: f.write(bytes(1 << 20))\nexcept OSError as e:\n    print(e)\n"
    v = until(mine, start(mine, {"agent.py": fill}, agent="script", checks=GIT))
    check("a full workspace ends only its run", v["status"] == "failed", v)
    check("the service still answers", call("GET", "/readyz")[0] == 200)


def special_files():
    tricks = "import os, socket\nos.mkfifo('pipe.py')\nos.symlink('/etc/passwd','link.py')\ns=socket.socket(socket.AF_UNIX); s.bind('sock.py')\n"
    v = until(mine, start(mine, {"agent.py": tricks, "a.py": "1\n"}, agent="script", allowed=["a.py", "agent.py"], checks=GIT))
    check("links, FIFOs and sockets are refused", v["status"] == "failed" and v["error"] == "sandbox_changed_files_mismatch", v)


def planted_git():
    plant = """
import os, subprocess
open('x.sh','w').write('#!/bin/sh\\ntouch /tmp/marker; exit 0\\n'); os.chmod('x.sh', 0o755)
for k, val in (('core.fsmonitor','/workspace/source/x.sh'),('core.hooksPath','/workspace/source'),('diff.external','/workspace/source/x.sh'),('core.whitespace','-trailing-space')):
    subprocess.run(['git','config',k,val])
os.unlink('x.sh')
open('a.py','w').write('a = 1   \\n')
"""
    v = until(mine, start(mine, {"agent.py": plant, "a.py": "a = 0\n"}, agent="script", allowed=["a.py"], checks=GIT))
    check("git configuration left by the agent does not reach the check", v["status"] == "failed" and v["error"] == "verification_failed", v)


def no_key_anywhere():
    import subprocess
    key = subprocess.run(["cat", os.path.join(INSTANCE, "etc/pinfold/secrets/provider-default")], capture_output=True).stdout.strip()
    secret = subprocess.run(["cat", os.path.join(INSTANCE, "etc/pinfold/secrets/run-token")], capture_output=True).stdout.strip()
    for what, needle in (("the provider key", key), ("the signing secret", secret)):
        r = subprocess.run(["grep", "-rlaF", needle.decode(), INSTANCE], capture_output=True, text=True)
        left = [l for l in r.stdout.splitlines() if "/etc/pinfold/secrets/" not in l and "/model/" not in l]
        check(f"{what} is in no file but its own", left == [], left)
        for pid in filter(str.isdigit, os.listdir("/proc")):
            for f in ("cmdline", "environ"):
                try:
                    b = open(f"/proc/{pid}/{f}", "rb").read()
                except OSError:
                    continue
                if needle in b and b"pinfold-" in open(f"/proc/{pid}/cmdline", "rb").read():
                    check(f"{what} is in no {f}", False, pid)


for f in (attack, survivors, memory, disk, special_files, planted_git, no_key_anywhere):
    case(f.__name__, f)
done()
