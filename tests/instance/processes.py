"""The instance's processes, looked at from outside, for the tests that kill them."""
import signal, socket
from client import *

GIT = [["git", "diff", "--check"]]
SLEEP = {"agent.py": "import time\ntime.sleep(100)\n"}
V2 = next(l.split()[1] for l in open("/proc/mounts") if l.split()[2] == "cgroup2")
CHILDREN = ("pinfold-stored", "pinfold-gateway", "pinfold-fcgi", "pinfold-steward", "pinfold-push")


def program(pid):
    """The program's path; "" when it is gone. A box's runner shows its path inside the box."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


def pids():
    return [int(p) for p in os.listdir("/proc") if p.isdigit()]


def parent(pid):
    """0 when it is gone."""
    try:
        return int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def pid_of(name):
    """The process of this instance with that program, or None. A child of its own that still is that program, as one that becomes a
    box, is not it."""
    for p in pids():
        exe = program(p)
        if os.path.basename(exe.removesuffix(" (deleted)")) == name and exe.startswith(INSTANCE) and program(parent(p)) != exe:
            return p
    return None


def answers(path="/readyz"):
    """Status of a GET; 0 when there is no answer."""
    try:
        return call("GET", path)[0]
    except OSError:
        return 0


def ready():
    return wait_for(lambda: answers() == 200)


def kill(name, sig=signal.SIGKILL):
    """Kills it and waits for its successor's pid."""
    before = wait_for(lambda: pid_of(name))
    os.kill(before, sig)
    return wait_for(lambda: pid_of(name) not in (before, None))


def executing(bearer, files=SLEEP, **more):
    run = start(bearer, files, agent="script", checks=GIT, **more)
    until(bearer, run, lambda v: v.get("phase") == "executing" or v["status"] in TERMINAL)
    return run


def box_uids():
    """The range that boxes of this instance may have."""
    text = open(INSTANCE + "/etc/pinfold/pinfold.conf").read()
    base, boxes = (int(text.split(f"{name} = ")[1].split()[0]) for name in ("box_uid_base", "max_boxes"))
    return range(base, base + 3 * boxes)


def in_boxes():
    uids, found = box_uids(), []
    for p in pids():
        try:
            if os.stat(f"/proc/{p}").st_uid in uids:
                found.append(p)
        except OSError:
            pass
    return found


def agent_of(run):
    """The pid of this run's agent, or None."""
    want = f"PINFOLD_RUN_ID={run}".encode()
    for p in in_boxes():
        try:
            if want in open(f"/proc/{p}/environ", "rb").read().split(b"\0"):
                return p
        except OSError:
            pass
    return None


def group_of(pid):
    path = next(l[3:] for l in open(f"/proc/{pid}/cgroup").read().splitlines() if l.startswith("0::"))
    return V2 + path


def frozen(group):
    """What the kernel says of the agent's group; None: it is no more."""
    try:
        return "frozen 1" in open(group + "/cgroup.events").read()
    except OSError:
        return None


def connects(path, kind=socket.SOCK_STREAM):
    """What connecting to a socket below the run folder comes to."""
    s = socket.socket(socket.AF_UNIX, kind)
    try:
        s.connect(INSTANCE + "/run/pinfold/" + path)
        return "ok"
    except OSError as e:
        return e.strerror
    finally:
        s.close()
