#!/usr/bin/python3
"""What an agent leaves to hurt whoever collects it: the run ends for the right reason, its box goes, nothing foreign is in what is
shown, and the service notices nothing."""
from client import *
import re

mine = token()
DIFF = [["git", "diff", "--check"]]
OUTSIDE = ("failed", "sandbox_changed_files_mismatch", "changed_files_outside_allowed_paths")
LARGE = ("failed", "sandbox_output_too_large", "sandbox_output_too_large")
FINE = ("completed", None, "completed")
# As large as the limit of a file's size lets it be; the hole costs nothing.
HUGE = "size = 1 << 40\nwhile True:\n    try:\n        os.truncate(os.open({0!r}, os.O_CREAT | os.O_RDWR), size); break\n    except OSError: size //= 2\n"
# name: the agent, the right end, the path at fault (a prefix; None: not looked at). Changes are allowed in d/.
CASES = {
    # types
    "a link to a secret": ("os.symlink('/etc/passwd', 'd/l.py')", OUTSIDE, "d/l.py"),
    "a link that was a file": ("os.unlink('d/a.py'); os.symlink('/etc/passwd', 'd/a.py')", OUTSIDE, "d/a.py"),
    "a folder that is a link": ("os.unlink('d/a.py'); os.rmdir('d'); os.symlink('/etc', 'd')", OUTSIDE, "d"),
    "a link to /proc/self": ("os.symlink('/proc/self', 'd/hop')", OUTSIDE, "d/hop"),
    "a loop of links": ("os.symlink('m', 'd/l'); os.symlink('l', 'd/m')", OUTSIDE, "d/l"),
    "a dangling link": ("os.symlink('nowhere', 'd/l.py')", OUTSIDE, "d/l.py"),
    "a hard link": ("open('/workspace/o', 'w').write('x'); os.link('/workspace/o', 'd/h.py')", OUTSIDE, "d/h.py"),
    "two names of one file": ("os.link('d/a.py', 'd/b.py')", OUTSIDE, "d/a.py"),
    "a FIFO": ("os.mkfifo('d/p.py')", OUTSIDE, "d/p.py"),
    "a FIFO among by-products": ("os.mkdir('__pycache__'); os.mkfifo('__pycache__/a.pyc')", OUTSIDE, "__pycache__/a.pyc"),
    "a socket": ("import socket; socket.socket(socket.AF_UNIX).bind('d/s.py')", OUTSIDE, "d/s.py"),
    "a FIFO for each file of ours": (
        "import glob\nfor f in glob.glob('/workspace/.pinfold*') + ['/workspace/request.json', '/workspace/response.json']:\n"
        "    if os.path.exists(f): os.unlink(f)\n    os.mkfifo(f)", FINE, None),
    "a folder for each": (
        "for f in ('.pinfold-run-token', 'request.json', 'response.json'):\n    f = '/workspace/' + f\n"
        "    if os.path.exists(f): os.unlink(f)\n    os.mkdir(f)", FINE, None),
    "a tree that is a FIFO": ("os.chdir('/workspace'); os.rename('source', 'x'); os.mkfifo('source')", LARGE, None),
    "a tree that is a link": ("os.chdir('/workspace'); os.rename('source', 'x'); os.symlink('/usr', 'source')", LARGE, None),
    # sizes
    "a huge hole": (HUGE.format("d/big.py"), LARGE, "d/big.py"),
    "one beside what is allowed": (HUGE.format("big.py"), OUTSIDE, "big.py"),
    "one byte too many": ("open('d/a.py', 'wb').write(b'#' * 1000001)", LARGE, "d/a.py"),
    "more bytes than all may have": ("for i in range(20): open(f'd/{i}.py', 'wb').write(b'#' * 900000)", LARGE, None),
    "a huge claim": (HUGE.format("/workspace/response.json"), FINE, None),
    # numbers and depth
    "a hundred thousand files": ("for i in range(100000): os.close(os.open(f'd/{i}.py', os.O_CREAT | os.O_WRONLY))", LARGE, None),
    "as many among by-products": ("os.mkdir('__pycache__')\nfor i in range(100000): os.close(os.open(f'__pycache__/{i}.pyc', os.O_CREAT | os.O_WRONLY))", LARGE, None),
    "as many folders": ("for i in range(100000): os.mkdir(f'd/{i}')", LARGE, None),
    "as many in the repository": ("for i in range(100000): os.close(os.open(f'.git/{i}', os.O_CREAT | os.O_WRONLY))", FINE, None),
    "a file too many": ("for i in range(33): open(f'd/{i:03}.py', 'w').write('x')", OUTSIDE, "d/032.py"),
    "five thousand levels": ("n = 'n' * 255\nfor i in range(5000):\n    os.mkdir(n); os.chdir(n)\nopen('leaf', 'w')", OUTSIDE, "nnn"),
    "five thousand short ones": ("for i in range(5000):\n    os.mkdir('k'); os.chdir('k')\nopen('leaf', 'w')", LARGE, None),
    # modes
    "sealed folders": ("os.makedirs('d/x/y'); open('d/x/y/f.py', 'w').write('x = 1\\n')\nfor p in ('d/x/y/f.py', 'd/x/y', 'd/x', 'd', '.', '/workspace'): os.chmod(p, 0)", FINE, None),
    "folders that cannot be emptied": ("os.makedirs('e/f'); os.chmod('e/f', 0o500); os.chmod('e', 0o500)", FINE, None),
    "bits of every kind": ("os.chmod('d/a.py', 0o6777)", FINE, None),
    # names
    "a name with a newline": ("open('d/a\\nContent-Type: x.py', 'w')", OUTSIDE, "d/a"),
    "a name that is no UTF-8": ("open(b'd/\\xff\\xfe.py', 'w')", OUTSIDE, "d/"),
    "a name that turns the line": ("open('d/e\\u202egpj.py', 'w')", OUTSIDE, "d/"),
    "a name that looks like an option": ("open('d/-rf.py', 'w')", OUTSIDE, "d/-rf.py"),
    "a name with quotes": ("open('d/\"; x=\\'y.py', 'w')", OUTSIDE, "d/"),
    "a name of escapes": ("open('d/\\x1b[2J.py', 'w')", OUTSIDE, "d/"),
    "a name of dots": ("open('d/....py', 'w').write('x = 1\\n')", FINE, None),
    # who is still there
    "pipes that are held": (
        "import subprocess, signal\nfor i in range(10):\n"
        "    subprocess.Popen(['/usr/bin/python3', '-c', 'import signal, time\\nfor s in range(1, 32):\\n try: signal.signal(s, signal.SIG_IGN)\\n"
        " except OSError: pass\\ntime.sleep(1000)'], start_new_session=True)", FINE, None),
    "processes that go on changing": (
        "if os.fork() == 0:\n    os.setsid()\n    while True:\n        try:\n            os.symlink('/etc', 'd/x'); os.unlink('d/x'); os.mkdir('d/x'); open('d/x/passwd', 'w').write('x'); "
        "os.unlink('d/x/passwd'); os.rmdir('d/x')\n        except OSError: pass\nimport time; time.sleep(0.5)", None, None),
    "a file that grows until the end": (
        "if os.fork() == 0:\n    os.setsid()\n    f = open('d/g.py', 'ab')\n    while f.tell() < 20000000: f.write(b'#' * 1000); f.flush()\n    __import__('time').sleep(1000)\n"
        "import time; time.sleep(0.3)", None, None),
}
WHITE = "os.mknod('d/dev.py', 0o20666, 0)"  # the one device that Linux lets anyone make, where system calls do


def one(what, agent, end, path):
    run = start(mine, {"agent.py": "import os\n" + agent + "\n", "d/a.py": "a = 1\n"}, agent="roomy", allowed=["d/**"], checks=DIFF)
    v = until(mine, run)
    said = (v["status"], v.get("error"), v["terminalReason"])
    check(f"{what}: {end[2] if end else 'ends'}", said == end if end else said in (OUTSIDE, LARGE, FINE), v)
    result = artifact(mine, run, "result")
    fault = json.loads(result)["judged"].get("path", "")
    check(f"{what}: the path at fault", path is None or fault.startswith(path), fault)
    shown = result + artifact(mine, run, "patch") + artifact(mine, run, "checkpoint") + json.dumps(v)
    check(f"{what}: nothing foreign, nothing raw", "root:" not in shown and not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", shown), shown[:500])
    for e in events(mine, run):
        if e["event_type"] == "run.changes_judged":
            check(f"{what}: the event is whole", isinstance(e["data"]["accepted"], bool), e)
    return v


def device():
    v = until(mine, start(mine, {"agent.py": f"import os\ntry:\n    {WHITE}\nexcept OSError: pass\n", "d/a.py": "a = 1\n"}, agent="roomy", allowed=["d/**"], checks=DIFF))
    check("a device is not made, or refused", (v["status"], v.get("error"), v["terminalReason"]) in (FINE, OUTSIDE), v)


for what, (agent, end, path) in CASES.items():
    case(what, lambda: one(what, agent, end, path))
case("device", device)
v = until(mine, start(mine, {"agent.py": "open('d/a.py', 'w').write('a = 2\\n')\n", "d/a.py": "a = 1\n"}, agent="roomy", allowed=["d/**"], checks=DIFF))
check("the next run is none the worse", v["status"] == "completed" and v["changedFiles"] == ["d/a.py"], v)
check("the service is ready", call("GET", "/readyz")[0] == 200)
done()
