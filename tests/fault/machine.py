"""The machine as the kernel shows it: which processes, groups, mounts, descriptors and files an instance has."""
import os, signal, socket, time

DAEMONS = ("sandboxd", "stored", "gateway", "fcgi", "steward", "push")


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return b""


def children(pid):
    return [int(p) for p in read(f"/proc/{pid}/task/{pid}/children").split()]


def program(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
    except OSError:
        return ""


def alive(pid):
    """Neither gone nor a zombie."""
    stat = read(f"/proc/{pid}/stat")
    return stat != b"" and stat.rsplit(b")", 1)[-1].split()[0] != b"Z"


def send(pid, sig):
    try:
        os.kill(pid, sig)
        return True
    except ProcessLookupError:
        return False


class Machine:
    def __init__(self, root):
        self.root, self.up = root, None
        h = 14695981039346656037
        for b in (root + "/run/pinfold").encode():
            h = ((h ^ b) * 1099511628211) & 0xFFFFFFFFFFFFFFFF
        self.group = "pinfold-%016x" % h
        self.trees = sorted({l.split()[1] for l in open("/proc/self/mounts") if l.split()[2] in ("cgroup", "cgroup2")})

    def pid(self, name):
        """The daemon's process, or None."""
        up = children(self.up) if self.up else []
        box = [p for p in up if program(p) == f"{self.root}/usr/sbin/pinfold-sandboxd"]
        if name == "sandboxd" or not box:
            return box[0] if box and name == "sandboxd" else None
        for p in children(box[0]):
            if program(p) == f"{self.root}/usr/libexec/pinfold/pinfold-{name}":
                return p
        return None

    def groups(self):
        """Every control group of the instance's boxes: whole paths."""
        found = []
        for tree in self.trees:
            for top in self.tops(tree):
                for d, names, _ in os.walk(top):
                    if os.path.basename(d) not in DAEMONS and d != top:
                        found.append(d)
        return sorted(found)

    def tops(self, tree):
        """Where the instance's group is within a tree: at its top or in the group of whoever started it."""
        direct = os.path.join(tree, self.group)
        if os.path.isdir(direct):
            return [direct]
        return [os.path.join(d, self.group) for d, names, _ in os.walk(tree) if self.group in names]

    def members(self, part):
        """Processes of all boxes: of their runners ("r") or their agents and checks ("a")."""
        found = set()
        for g in self.groups():
            if os.path.basename(g) == part:
                found |= {int(p) for p in read(g + "/cgroup.procs").split() if p != b"0"}
        return sorted(found)

    def judges(self):
        steward = self.pid("steward")
        return children(steward) if steward else []

    def of_run(self, run):
        """Processes of a box in which that run's agent lives."""
        needle = b"PINFOLD_RUN_ID=" + run.encode() + b"\0"
        return [p for p in self.members("a") if needle in read(f"/proc/{p}/environ") and alive(p)]

    def base(self):
        text = open(self.root + "/etc/pinfold/pinfold.conf").read()
        return int(text.split("box_uid_base = ")[1].split()[0])

    def processes(self):
        """Of the instance's own users and boxes, and its sandboxd: {pid: what}."""
        box, found = self.base(), {}
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                uid = os.stat("/proc/" + name).st_uid
            except OSError:
                continue
            if box <= uid < box + 16 and alive(name):
                found[int(name)] = "in a box"
            elif uid == 0 or box - 100 <= uid < box:
                exe = program(name)
                if exe.startswith(self.root + "/usr/") and "model" not in exe and alive(name):
                    found[int(name)] = os.path.basename(exe)
        return found

    def files(self):
        return sorted(os.path.join(d, n) for d, ds, ns in os.walk(self.root + "/run") for n in ds + ns)

    def mounts(self):
        return sorted(l for l in open("/proc/self/mounts").read().splitlines() if self.root in l)

    def foreign(self, pid):
        """Sockets of the process that are of no namespace that we see: those of boxes."""
        ours = set()
        for kind, column in (("tcp", 9), ("tcp6", 9), ("udp", 9), ("udp6", 9), ("unix", 6), ("netlink", 9)):
            for line in read("/proc/net/" + kind).splitlines()[1:]:
                words = line.split()
                ours.add(words[column] if len(words) > column else b"")
        found = 0
        for n in os.listdir(f"/proc/{pid}/fd") if pid else []:
            try:
                link = os.readlink(f"/proc/{pid}/fd/{n}")
            except OSError:
                continue
            found += link.startswith("socket:[") and link[8:-1].encode() not in ours
        return found

    def descriptors(self, pid):
        try:
            return len(os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            return 0

    def look(self):
        """What must be as it was whenever no run is going on."""
        ours = self.processes()
        return {"processes": sorted(ours.values()), "groups": self.groups(), "files": self.files(), "mounts": self.mounts(),
                "judges": len(self.judges()), "sockets of boxes": sum(self.foreign(self.pid(d)) for d in ("sandboxd", "gateway"))}


def wait_for(what, seconds=60, pause=0.02):
    """The first true value of what(), or the last one after the time is up."""
    end = time.monotonic() + seconds
    while True:
        v = what()
        if v or time.monotonic() > end:
            return v
        time.sleep(pause)
