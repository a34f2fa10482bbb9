#!/usr/bin/python3
"""Attacks that once worked: each case is a kind of hole that was found and closed."""
from client import *
import re, os, pty, subprocess, time

mine = token()
GIT = [["git", "diff", "--check"]]


def checks_apart():
    """A check runs what the agent wrote, so it must not be able to prepare the tree, or /tmp, for the next check."""
    evil = """
import os, subprocess
subprocess.run(["git", "config", "core.whitespace", "-trailing-space"])
os.makedirs(os.path.expanduser("~/.local"), exist_ok=True)
x = 1  """ + "\n"
    files = {"agent.py": "open('calc.py', 'w').write(open('evil.txt').read())\n", "evil.txt": evil, "calc.py": "\n",
             "test_x.py": "import calc, os, unittest\nclass T(unittest.TestCase):\n    def test(self):\n        pass\n"}
    v = until(mine, start(mine, files, agent="script", allowed=["calc.py"],
                          checks=[["python3", "-m", "unittest", "discover"], ["git", "diff", "--check"]]))
    check("a check cannot make the next one pass", [c["ok"] for c in v.get("verification", [])] == [True, False], v)
    check("and the run fails", (v["status"], v["error"]) == ("failed", "verification_failed"), v)


def forged():
    """What the agent leaves beside its allowed changes does not flip a check, whether it is a change or a by-product."""
    test = "import unittest, calc\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(calc.add(2, 3), 5)\n"
    ends = "import os; os._exit(0)"
    compiled = """
import os, py_compile
open("/tmp/calc.py", "w").write("def add(a, b): return a + b")
os.makedirs("__pycache__", exist_ok=True)
py_compile.compile("/tmp/calc.py", cfile=f"__pycache__/calc.cpython-{'%d%d' % __import__('sys').version_info[:2]}.pyc",
                   invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
open("__pycache__/sitecustomize.py", "w").write("import os; os._exit(0)")
"""
    home = "import os, site\np = site.getusersitepackages()\nos.makedirs(p)\nopen(p + '/usercustomize.py', 'w').write('" + ends + "')\n"
    for what, agent, error in (("a compiled file that does not match", compiled, "verification_failed"), ("a user site", home, "verification_failed"),
                               ("sitecustomize", f"open('sitecustomize.py', 'w').write('{ends}')", "sandbox_changed_files_mismatch"),
                               ("settings of the test runner", "open('setup.cfg', 'w').write('[tool:pytest]')", "sandbox_changed_files_mismatch"),
                               ("a removed test", "__import__('os').unlink('test_calc.py')", "sandbox_changed_files_mismatch")):
        v = until(mine, start(mine, {"agent.py": agent, "calc.py": "def add(a, b): return a - b\n", "test_calc.py": test},
                              agent="script", allowed=["calc.py"]))
        check(f"{what} does not make a check pass", (v["status"], v.get("error")) == ("failed", error), v)


def protocols():
    """No protocol but TCP and UDP: others are more of the kernel, some in modules that are loaded when asked for."""
    ask = """
import socket
said = []
for family in (socket.AF_INET, socket.AF_INET6):
    for kind, protocol in ((1, 262), (1, 132), (2, 136), (5, 132), (6, 33), (6, 0), (2, 33), (4, 0)):
        try:
            socket.socket(family, kind, protocol)
            said.append(f"{kind}/{protocol}")
        except OSError:
            pass
for kind, level, option, value in ((1, 6, 31, b"tls"), (2, 17, 100, b"\\2\\0\\0\\0")):
    try:
        socket.socket(2, kind).setsockopt(level, option, value)
        said.append(f"option {option}")
    except OSError as e:
        said += [] if e.errno == 92 else [f"option {option}: {e}"]
for family, kind, protocol in ((1, 1, 0), (1, 1, 1), (1, 2, 0), (1, 5, 0), (2, 1, 0), (2, 1, 6), (2, 2, 0), (2, 2, 17), (10, 1, 6)):
    socket.socket(family, kind, protocol)
open("report.txt", "w").write(f"{said}\\n")
"""
    v = until(mine, start(mine, {"agent.py": ask, "report.txt": "\n"}, agent="script", allowed=["report.txt"], checks=GIT))
    check("only TCP, UDP and UNIX sockets", "+[]" in artifact(mine, v["runId"], "patch").splitlines(),
          (v, artifact(mine, v["runId"], "patch")))


def huge_pages():
    """A pool of the host's that the box's memory limit does not count. EINVAL also where the host has none."""
    ask = """
import ctypes, mmap, os
libc = ctypes.CDLL(None, use_errno=True)
said = []
try:
    mmap.mmap(-1, 2 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000)
except OSError as e:
    said.append(e.errno)
try:
    os.memfd_create("huge", 4)
except OSError as e:
    said.append(e.errno)
if libc.shmget(0, 2 << 20, 0o4600) == -1:
    said.append(ctypes.get_errno())
os.memfd_create("plain"), mmap.mmap(-1, 2 << 20), 1 / (libc.shmget(0, 4096, 0o600) != -1)
open("report.txt", "w").write(f"{said}\\n")
"""
    v = until(mine, start(mine, {"agent.py": ask, "report.txt": "\n"}, agent="script", allowed=["report.txt"], checks=GIT))
    said = artifact(mine, v["runId"], "patch")
    check("no huge pages in a box", "+[12, 22, 1]" in said.splitlines(), said)


def unreadable_numbers():
    """A number that some parsers fail at would take the events of the run away from their readers."""
    send = """
import json, os, urllib.request, urllib.error
run, token = os.environ["PINFOLD_RUN_ID"], open("/workspace/.pinfold-event-token").read()
said = []
for n in ("1", "1.5e300", "9" * 5000, "1e400"):
    line = json.dumps({"event_type": "number", "run_id": run, "task_id": run, "sequence": 1, "data": {"n": 0}})
    line = line.replace('"n": 0', '"n": ' + n) + chr(10)
    call = urllib.request.Request(f"http://127.0.0.1:9797/internal/v1/runs/{run}/events", data=json.dumps({"lines": [line]}).encode(),
                                  headers={"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    try:
        said.append(urllib.request.urlopen(call).status)
    except urllib.error.HTTPError as e:
        said.append(e.code)
open("report.txt", "w").write(f"{said}\\n")
"""
    v = until(mine, start(mine, {"agent.py": send, "report.txt": "\n"}, agent="script", allowed=["report.txt"], checks=GIT))
    said = artifact(mine, v["runId"], "patch")
    check("numbers out of reach are refused", "+[202, 202, 400, 400]" in said.splitlines(), said)
    check("the events can be read", [e["data"]["n"] for e in events(mine, v["runId"]) if e["event_type"] == "number"] == [1, 1.5e300])


def terminal():
    """What an agent or its program wrote must not reach a terminal as it is; a pipe gets the bytes."""
    loud = "import unittest\nprint('\\x1b[2J\\x1b]52;c;QQ==\\x07\\x9b31m')\nclass T(unittest.TestCase):\n    def test(self):\n        pass\n"
    run = start(mine, {"agent.py": "open('a.py', 'w').write('# \\x1b[31m\\n')\n", "a.py": "\n", "test_a.py": loud}, agent="script", allowed=["a.py"])
    until(mine, run)
    env = dict(os.environ, PINFOLD_TOKEN=mine)
    for words in (["show", run], ["events", run], ["artifacts", run, "test_log"], ["artifacts", run, "patch"], ["--json", "artifacts", run]):
        ours, theirs = pty.openpty()
        p = subprocess.Popen([CLI, *words], env=env, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:
            pass  # how a terminal says that its other side is closed
        os.close(ours)
        bad = [c for c in shown.decode("utf-8", "replace") if c not in "\r\n\t" and (c < " " or "\x7f" <= c <= "\x9f")]
        check(f"pinfold {words[0]} {words[-1][:8]} shows no control bytes", p.wait() == 0 and len(shown) > 0 and not bad, shown)
    piped = subprocess.run([CLI, "artifacts", run, "patch"], env=env, capture_output=True).stdout
    check("a pipe gets the bytes", b"\x1b[31m" in piped, piped)


def same_user():
    """A process of the same user cannot look into our programs, not even before they make themselves undumpable."""
    folder = os.path.join(INSTANCE, "usr/libexec/pinfold")
    with open(folder + "/pinfold-conf", "rb") as f:
        if re.search(rb"__(asan|tsan|ubsan)_", f.read()):
            print("programs with sanitizers must read themselves, and stay readable")
            return
    readable = [n for n in os.listdir(folder) if os.path.isfile(os.path.join(folder, n)) and os.stat(os.path.join(folder, n)).st_mode & 0o044]
    check("programs cannot be read by those who run them", [n for n in readable if "scripted" not in n] == [], readable)
    nobody = 65534
    out, blocked = os.pipe()
    os.set_blocking(blocked, False)
    try:
        while os.write(blocked, bytes(4096)):
            pass
    except BlockingIOError:
        os.set_blocking(blocked, True)
    def become():
        os.setgroups([]); os.setresgid(nobody, nobody, nobody); os.setresuid(nobody, nobody, nobody)
    # It waits with its complaint that there is no such folder, because the pipe is full.
    p = subprocess.Popen([folder + "/pinfold-conf"], env={"PINFOLD_ROOT": "/nonexistent"}, preexec_fn=become, stderr=blocked)
    wait_for(lambda: p.poll() is not None or open(f"/proc/{p.pid}/comm").read().strip() == "pinfold-conf")
    peek = f"open('/proc/{p.pid}/mem', 'rb'); print('GOT')"
    r = subprocess.run(["/usr/bin/python3", "-c", peek], user=nobody, group=nobody, extra_groups=[], capture_output=True, text=True)
    alive = p.poll() is None
    p.kill(); p.wait(); os.close(out); os.close(blocked)
    check("nobody cannot attach to the parser of the configuration", alive and "PermissionError" in r.stderr, (alive, r.stdout, r.stderr[-200:]))


for f in (checks_apart, forged, protocols, huge_pages, unreadable_numbers, terminal, same_user):
    case(f.__name__, f)
done()
