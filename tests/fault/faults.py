"""
The faults: each is a function that causes one and returns when it has been caused (True) or could not be (False).
Deaths and stops are signals; everything else is written into the control file that tests/fault/shim.c reads.
"""
import errno, mmap, os, signal, struct, time
from machine import *

MAGIC, PROGRAMS, SLOTS = 0x50464C54, DAEMONS, 6
HEAD, SLOT = struct.Struct("=IIq"), struct.Struct("=IIIIiiII")
WRITE, SYNC, FD, MEM, SEND, RECV, WAKE, READ = range(1, 9)
ERRNO, KILL, KILL_AFTER, DELAY, HALF, DROP = range(6)
NOTE, WORD = struct.Struct("=IIQQQII"), struct.pack("=I", MAGIC)


class Control:
    """The mapped control file."""

    def __init__(self, root):
        self.folder = root + "/fault"
        os.makedirs(self.folder, mode=0o755, exist_ok=True)
        size = HEAD.size + SLOT.size * SLOTS * len(PROGRAMS)
        with open(self.folder + "/control", "wb") as f:
            f.write(HEAD.pack(MAGIC, 1, 0) + bytes(size - HEAD.size))
            os.fchmod(f.fileno(), 0o666)
        with open(self.folder + "/undo", "wb") as f:
            os.fchmod(f.fileno(), 0o666)
        self.file = open(self.folder + "/control", "r+b")
        self.map = mmap.mmap(self.file.fileno(), size)

    def at(self, program, slot):
        return HEAD.size + SLOT.size * (PROGRAMS.index(program) * SLOTS + slot)

    def arm(self, program, kind, action, err=0, countdown=1, times=1, delay=0, slot=0):
        at = self.at(program, slot)
        self.map[at:at + 4] = bytes(4)
        self.map[at + 4:at + SLOT.size] = SLOT.pack(kind, action, err, delay, countdown, times, 0, 0)[4:]
        self.map[at:at + 4] = struct.pack("=I", kind)

    def slot(self, program, slot=0):
        at = self.at(program, slot)
        return SLOT.unpack(self.map[at:at + SLOT.size])

    def fired(self, program, slot=0):
        return self.slot(program, slot)[6]

    def inside(self, program, slot=0):
        return self.slot(program, slot)[7]

    def clear(self):
        for p in PROGRAMS:
            for s in range(SLOTS):
                self.map[self.at(p, s):self.at(p, s) + SLOT.size] = bytes(SLOT.size)

    def clock(self, ms):
        self.map[8:16] = struct.pack("=q", ms)


def cut_power(folder, rng):
    """Takes back what had not been made durable: of each file the last writes, some or all of them."""
    path, pending = folder + "/undo", {}
    notes = read(path)
    at = 0
    while at + NOTE.size <= len(notes):
        magic, synced, inode, offset, size, np, no = NOTE.unpack_from(notes, at)
        end = at + NOTE.size + np + no
        if magic != MAGIC or notes[end:end + 4] != WORD:
            at = notes.find(WORD, at + 1)  # cut short by a death; the next begins somewhere behind it
            if at < 0:
                break
            continue
        at += NOTE.size
        name, old = notes[at:at + np - 1].decode(), notes[at + np:end]
        at = end + 4
        if synced:
            pending.pop(inode, None)
        else:
            pending.setdefault(inode, []).append((name, offset, size, old))
    taken = 0
    for inode, writes in pending.items():
        lost = len(writes) if rng.random() < 0.7 else rng.randint(0, len(writes))
        for name, offset, size, old in reversed(writes[len(writes) - lost:]):
            # It may have been renamed since.
            name = name if same(name, inode) else find(os.path.dirname(name), inode)
            if name is None:
                continue
            fd = os.open(name, os.O_WRONLY)
            os.pwrite(fd, old, offset)
            os.ftruncate(fd, size)
            os.close(fd)
            taken += 1
    os.truncate(path, 0)
    return taken


def same(path, inode):
    try:
        return os.stat(path).st_ino == inode
    except OSError:
        return False


def find(folder, inode):
    for d, _, names in os.walk(folder):
        for n in names:
            if same(os.path.join(d, n), inode):
                return os.path.join(d, n)
    return None


class Faults:
    def __init__(self, machine, control, restart, rng):
        self.m, self.c, self.restart, self.rng = machine, control, restart, rng
        self.power_writes = 0

    # --- whom a signal can hit ---

    def targets(self, who):
        """Processes of one kind; of runners, agents and judges there may be none at the moment."""
        if who == "runner":
            return self.m.members("r")
        if who == "agent":
            return self.m.members("a")
        if who == "judge":
            return self.m.judges()
        p = self.m.pid(who)
        return [p] if p else []

    def one(self, who, seconds=15):
        found = wait_for(lambda: self.targets(who), seconds, 0.002 if who == "judge" else 0.01)
        return self.rng.choice(found) if found else None

    def kill(self, who):
        p = self.one(who)
        return p is not None and send(p, signal.SIGKILL)

    def kill_again(self, who):
        """Twice: the successor dies while it comes back."""
        first = self.one(who)
        if first is None or not send(first, signal.SIGKILL):
            return False
        second = wait_for(lambda: self.m.pid(who) not in (None, first) and self.m.pid(who), 15, 0.001)
        time.sleep(self.rng.choice((0, 0.01, 0.05, 0.2)) * self.rng.random())
        return bool(second) and send(second, signal.SIGKILL)

    def stop(self, who):
        """Stopped for seconds, then going on."""
        p = self.one(who)
        if p is None or not send(p, signal.SIGSTOP):
            return False
        time.sleep(self.rng.choice((self.rng.uniform(0.2, 0.8), self.rng.uniform(0.2, 0.8), self.rng.uniform(1, 2.5))))
        send(p, signal.SIGCONT)
        return True

    def kill_all(self):
        found = [p for d in DAEMONS for p in [self.m.pid(d)] if p]
        for p in found:
            send(p, signal.SIGSTOP)
        return all([send(p, signal.SIGKILL) for p in found]) and len(found) > 0

    def kill_instance(self):
        """Everything, the harness that holds the instance included; then it is started as after a boot."""
        self.restart()
        return True

    def power(self):
        """A death of everything at which what was not flushed is lost; half of the time in the middle of a slow flush."""
        if self.rng.random() < 0.7:
            self.c.arm("stored", SYNC, DELAY, delay=400, times=50)
            wait_for(lambda: self.c.inside("stored"), 5, 0.005)
            time.sleep(self.rng.uniform(0.05, 0.3))
        return self.cut()

    def cut(self):
        open(self.c.folder + "/hold", "w").close()
        found = list(self.m.processes())
        stored = self.m.pid("stored")
        self.kill_all()
        gone = wait_for(lambda: stored is None or not alive(stored), 30)
        self.c.clear()
        if gone:
            self.power_writes += cut_power(self.c.folder, self.rng)
        os.unlink(self.c.folder + "/hold")
        return bool(gone and found)

    def power_after_death(self):
        """What a life that was killed had written but not flushed is the next one's business: it must not build on it."""
        if not self.kill("stored"):
            return False
        wait_for(lambda: self.m.pid("stored"), 15)
        time.sleep(self.rng.uniform(0.2, 1.5))
        return self.power()

    def power_in_recovery(self):
        """It dies before a flush; the next life recovers from what was never flushed, slowly; then the power goes."""
        self.c.arm("stored", SYNC, KILL, countdown=self.rng.randint(1, 4))
        if not wait_for(lambda: self.c.fired("stored"), 6, 0.002):
            return False
        self.c.arm("stored", SYNC, DELAY, delay=150, times=200)
        wait_for(lambda: self.c.inside("stored"), 15, 0.002)
        time.sleep(self.rng.uniform(0, 1.2))
        return self.cut()

    # --- what a call can be told ---

    def armed(self, program, kind, action, err=0, most=40, times=1, delay=0, seconds=6):
        """One of the next calls of the kind."""
        self.c.arm(program, kind, action, err, self.rng.randint(1, most), times, delay)
        ok = wait_for(lambda: self.c.fired(program), seconds, 0.01)
        if ok and times > 1:
            time.sleep(self.rng.uniform(0.1, 0.6))
        self.c.clear()
        return bool(ok)

    def at_a_call(self, program):
        """Dies at the n-th call of some kind, before or after it: points that no timer hits."""
        kinds = {"stored": (WRITE, SYNC, SEND, FD), "sandboxd": (FD, SEND, WRITE), "steward": (SEND, FD, WRITE)}
        kind = self.rng.choice(kinds.get(program, (SEND, FD)))
        return self.armed(program, kind, self.rng.choice((KILL, KILL_AFTER)), most=60)

    def full_disk(self):
        return self.armed("stored", WRITE, ERRNO, errno.ENOSPC, most=10, times=self.rng.randint(1, 60))

    def broken_disk(self):
        return self.armed("stored", self.rng.choice((WRITE, SYNC, READ)), ERRNO, errno.EIO, most=20)

    def slow_disk(self):
        return self.armed("stored", SYNC, DELAY, most=3, times=self.rng.randint(2, 8), delay=self.rng.randint(50, 400))

    def no_descriptors(self, program):
        return self.armed(program, self.rng.choice((FD, FD, RECV)), ERRNO, errno.EMFILE, times=self.rng.randint(1, 6))

    def no_memory(self, program):
        return self.armed(program, MEM, ERRNO, errno.ENOMEM, most=20 if program == "sandboxd" else 400, times=self.rng.randint(1, 3))

    def half_frame(self, program):
        return self.armed(program, SEND, HALF)

    def lost_wake(self):
        return self.armed("stored", WAKE, DROP, most=6, times=self.rng.randint(1, 12))

    def clock(self, ms):
        """A step, and after a while the step back."""
        self.c.clock(ms)
        time.sleep(self.rng.uniform(0.2, 0.8))
        self.c.clock(0)
        return True

    def all(self):
        """{name: function}: every fault there is."""
        f, hour = {}, 3600000
        for who in DAEMONS + ("runner", "agent", "judge"):
            f["kill " + who] = lambda who=who: self.kill(who)
            f["stop " + who] = lambda who=who: self.stop(who)
        f["kill all"], f["kill instance"] = self.kill_all, self.kill_instance
        f["power cut"], f["power cut after a death"], f["power cut in recovery"] = self.power, self.power_after_death, self.power_in_recovery
        for p in DAEMONS:
            f["kill again " + p] = lambda p=p: self.kill_again(p)
        for p in (d for d in DAEMONS if d != "push"):  # it has little to do here; tests/push/t_lack.py has each of its calls
            f["death at a call " + p] = lambda p=p: self.at_a_call(p)
            f["EMFILE " + p] = lambda p=p: self.no_descriptors(p)
            f["ENOMEM " + p] = lambda p=p: self.no_memory(p)
            f["half frame " + p] = lambda p=p: self.half_frame(p)
        f["ENOSPC stored"], f["EIO stored"], f["slow disk"], f["lost wake-up"] = self.full_disk, self.broken_disk, self.slow_disk, self.lost_wake
        f["clock +1 h"], f["clock -1 h"] = lambda: self.clock(hour), lambda: self.clock(-hour)
        return f
