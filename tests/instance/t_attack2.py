#!/usr/bin/python3
"""Attacks that once worked: each case is a kind of hole that was found and closed."""
from client import *

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


def tcp_memory():
    """What sockets hold counts as the box's: cgroups v1 count it apart, and only where there is a limit."""
    fill = """
import socket
total, held = 0, []
listener = socket.socket(); listener.bind(("127.0.0.1", 0)); listener.listen(500)
try:
    for i in range(300):
        a = socket.socket()
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            a.setsockopt(socket.SOL_SOCKET, option, 1 << 24)
        a.settimeout(2); a.connect(listener.getsockname()); b = listener.accept()[0]
        held += [a, b]; a.setblocking(False)
        try:
            while True: total += a.send(bytes(1 << 20))
        except BlockingIOError:
            pass
except OSError:
    pass
open("report.txt", "w").write(f"total={total}\\n")
"""
    v = until(mine, start(mine, {"agent.py": fill, "report.txt": "\n"}, agent="script", allowed=["report.txt"], checks=GIT))
    said = [l for l in artifact(mine, v["runId"], "patch").splitlines() if l.startswith("+total=")]
    check("sockets cannot hold more than the box may", v.get("error") == "memory_exceeded"
          or (len(said) == 1 and int(said[0][7:]) < 256 << 20), (v.get("error"), said))


for f in (checks_apart, tcp_memory):
    case(f.__name__, f)
done()
