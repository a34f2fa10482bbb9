#!/usr/bin/python3
"""Storms: whoever takes all there is ends himself alone, and everybody can see what he ran into."""
from client import *
from boundary import Unharmed
import storms

mine = token()
other = operator("token", "create", "--tenant", "other").strip()
GIT = [["git", "diff", "--check"]]
NEIGHBOUR = {"agent.py": "open('a.py', 'w').write('x = 1\\n')\n", "a.py": "\n"}


def storm(what, program, status, reason, reached, agent="storm", seconds=220, report=None):
    """Runs the program beside a run of another tenant. reached: the limits that the run's events must name."""
    files = {"agent.py": program, "report.txt": "\n"}
    with Unharmed():
        run = start(mine, files, agent=agent, allowed=["report.txt"], checks=GIT, limits={"wallTimeSeconds": seconds})
        until(mine, run, lambda v: v["status"] in TERMINAL or v.get("phase") not in (None, "waiting", "staging"))
        beside = start(other, NEIGHBOUR, agent="script", allowed=["a.py"], checks=GIT)
        n = until(other, beside)
        v = until(mine, run)
    check(f"{what}: the neighbour completes", n["status"] == "completed", n)
    check(f"{what}: it is {status}, {reason}", (v["status"], v["terminalReason"]) == (status, reason), v)
    all_events = events(mine, run)
    told = [e["data"] for e in all_events if e["event_type"] == "limit.reached"]
    check(f"{what}: its events name {reached}", set(reached) <= {d["limit"] for d in told if d["box"] == "work"}
          and all(d["most"] > 0 for d in told), told)
    check(f"{what}: the end is told last", all_events[-1]["event_type"] in ("run.completed", "run.failed"), all_events[-1])
    if report:
        patch = artifact(mine, run, "patch")
        check(f"{what}: {report}", any(l.startswith("+" + report) for l in patch.splitlines()), patch)


def processes():
    storm("a fork storm that goes on", storms.FORKS, "failed", "wall_time_exceeded", ["wallTimeSeconds", "processes"], agent="script", seconds=5)
    storm("a fork storm that gives up", storms.FORKS_ONCE, "failed", "processes_exceeded", ["processes"])
    storm("a tree of a thousand processes", storms.TREE, "completed", "completed", [], agent="tree", report="1000")


def memory():
    storm("a memory bomb", storms.MEMORY, "failed", "memory_exceeded", ["memoryBytes"])


def workspace():
    storm("a full workspace", storms.DISK, "failed", "workspace_full", ["workspaceBytes"])
    storm("a full /tmp", storms.TMP, "failed", "workspace_full", ["workspaceBytes"])
    storm("two million files", storms.FILES, "failed", "workspace_files_exceeded", ["workspaceFiles"])
    storm("one large file", storms.ONE_FILE, "failed", "file_size_exceeded", ["fileBytes"])


def floods():
    storm("100 MB of output", storms.OUTPUT, "completed", "completed", ["outputBytes"])
    storm("a flood of events", storms.EVENTS, "completed", "completed", [], agent="script", report="202=")


def runner():
    """Process 1 of the box is neither stopped, traced, read, starved nor told anything by what the agent does."""
    program = """
import ctypes, os, signal, struct, sys
libc, said = ctypes.CDLL(None, use_errno=True), []
def tried(what, f):
    try:
        f()
        said.append(what)
    except OSError:
        pass
for s in range(0, 65):
    tried(f"signal {s}", lambda: os.kill(1, s))
if libc.ptrace(16, 1, 0, 0) == 0 or libc.ptrace(0x4206, 1, 0, 0) == 0:
    said.append("ptrace")
for name in ("mem", "environ", "fd", "maps", "root", "cwd", "oom_score_adj"):
    tried("/proc/1/" + name, lambda: os.listdir("/proc/1/fd") if name == "fd" else os.open("/proc/1/" + name, os.O_RDONLY) and None)
# Frames as the runner writes them, into whatever is open and to the output: nobody may take them for its own.
frame = struct.pack(">I", 26) + struct.pack(">HQ", 20, 0) + bytes(16)
for fd in range(3, 1024):
    tried(f"descriptor {fd}", lambda: os.write(fd, frame))
os.write(1, frame * 100)
tried("priority", lambda: os.setpriority(os.PRIO_PROCESS, 1, 19))
tried("limit", lambda: __import__("resource").prlimit(1, 7, (4, 4)))
open("report.txt", "w").write(f"{said}\\n")
# At its end: the place is full, the processes are all there may be, and stopped ones do not answer.
for n in range(64):
    try:
        if os.fork() == 0:
            os.setsid()
            os.kill(os.getpid(), signal.SIGSTOP)
    except OSError:
        break
try:
    for n in range(100):
        open(f"/workspace/fill-{n}", "wb").write(bytes(1 << 20))
except OSError:
    pass
"""
    storm("against the runner", program, "completed", "completed", ["processes", "workspaceBytes"], report="[]")


def time():
    storm("a processor burner", storms.PROCESSOR, "failed", "cpu_time_exceeded", ["cpuSeconds"], agent="burner")


def descriptors():
    storm("open files", storms.OPEN_FILES, "completed", "completed", [], report="EMFILE True")


for f in (processes, memory, workspace, floods, runner, time, descriptors):
    case(f.__name__, f)
done()
