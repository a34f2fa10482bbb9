#!/usr/bin/python3 -B
"""Each living process of an instance, looked at from outside: no privileges, a filter, nothing to be looked at by its own user."""
import subprocess, tempfile
from processes import *

ROOT_OWN = 0  # /proc/PID/maps of a process that cannot be dumped belongs to root


def status(pid):
    with open(f"/proc/{pid}/status") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f)


def limit(pid, name):
    with open(f"/proc/{pid}/limits") as f:
        return next(line[len(name):].split()[0] for line in f if line.startswith(name))


def sanitized():
    with open(f"/proc/{pid_of('pinfold-stored')}/maps") as f:
        return any(word in f.read() for word in ("libasan", "libtsan", "libubsan"))


LESS = sanitized()
check("the service is ready", ready())
mine = token()
run = executing(mine)  # so that a box is there, too
for name in CHILDREN:
    pid = pid_of(name)
    s = status(pid)
    for kind in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        check(f"{name} has no capability ({kind})", int(s[kind], 16) == 0, s[kind])
    check(f"{name} can gain none", s["NoNewPrivs"] == "1", s["NoNewPrivs"])
    check(f"{name} has a filter of system calls", LESS or s["Seccomp"] == "2", s["Seccomp"])
    check(f"{name} is not root, nor in a group of root's", "0" not in s["Uid"].split() + s["Gid"].split() + s["Groups"].split())
    check(f"{name} cannot be dumped or attached to", os.stat(f"/proc/{pid}/maps").st_uid == ROOT_OWN)
    check(f"{name} leaves no core", limit(pid, "Max core file size") in ("0", "1"))
    check(f"{name} has no real-time priority", limit(pid, "Max realtime priority") == "0")
    check(f"every thread of {name} is held", all(
        "NoNewPrivs:\t1" in (text := open(f"/proc/{pid}/task/{t}/status").read()) and (LESS or "Seccomp:\t2" in text)
        for t in os.listdir(f"/proc/{pid}/task")))
    # Nothing is open but what lib/place.h lists, its own files, and what it made itself.
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            to = os.readlink(f"/proc/{pid}/fd/{fd}")
        except OSError:
            continue
        own = to.startswith(("socket:", "pipe:", "anon_inode:", "/memfd:", "/dev/null")) or int(fd) <= 2 or \
            (name == "pinfold-stored" and to.startswith((INSTANCE + "/var/lib/pinfold/store", INSTANCE + "/var/log/pinfold")))
        check(f"{name} holds no foreign file", own, f"{fd} -> {to}")
users = [status(pid_of(n))["Uid"] for n in CHILDREN]
check("each has a user of its own", len(set(users)) == len(users), users)


def offline():
    """What is done by hand on a store is confined like the daemon: it is looked at where it waits to say its last line."""
    user = status(pid_of("pinfold-stored"))["Uid"].split()[0]
    with tempfile.TemporaryDirectory(prefix="pinfold-offline.") as d:
        os.chown(d, int(user), int(user))
        out, said = os.pipe()
        os.set_blocking(said, False)
        try:
            while os.write(said, b" "):
                pass
        except BlockingIOError:
            os.set_blocking(said, True)
        p = subprocess.Popen([INSTANCE + "/usr/libexec/pinfold/pinfold-stored", "--check", d], user=int(user), group=int(user), extra_groups=[],
                             stdout=said, stderr=subprocess.DEVNULL)
        os.close(said)
        wait_for(lambda: p.poll() is not None or status(p.pid)["NoNewPrivs"] == "1" and (LESS or status(p.pid)["Seccomp"] == "2"), 60)
        s = status(p.pid) if p.poll() is None else {}
        check("a check by hand is confined", s.get("NoNewPrivs") == "1" and (LESS or s.get("Seccomp") == "2") and int(s["CapPrm"], 16) == 0, s)
        while os.read(out, 65536):
            pass
        os.close(out)
        check("and does its work", p.wait() == 0, p.returncode)


offline()
call("POST", f"/v1/runs/{run}/cancel", {}, mine)
until(mine, run, lambda v: v["status"] in TERMINAL)
done()
