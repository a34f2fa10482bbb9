#!/usr/bin/python3
"""sandboxd is killed, and stopped: everything goes with it, and the next one starts as if it were the first."""
import random, re, select, shutil, socket, tempfile
from processes import *

mine, crowd = token(), operator("token", "create", "--tenant", "crowd").strip()
FORKS = {"agent.py": "import os, time\nfor _ in range(20):\n    if os.fork() == 0:\n        break\ntime.sleep(100)\n"}


def mounts():
    return sorted(open("/proc/self/mounts").read().splitlines())


def groups():
    """Control groups of this instance, as sandboxd names them."""
    h = 14695981039346656037
    for b in (INSTANCE + "/run/pinfold").encode():
        h = ((h ^ b) * 1099511628211) & 0xFFFFFFFFFFFFFFFF
    found = []
    for top in {l.split()[1] for l in mounts() if l.split()[2] in ("cgroup", "cgroup2")}:
        for d, names, _ in os.walk(top):
            if "pinfold-%016x" % h in d:
                found.append(d)
    return sorted(found)


def files():
    return sorted(os.path.join(d, n) for d, ds, ns in os.walk(INSTANCE + "/run") for n in ds + ns)


def ours():
    """Programs of the instance that run, without the harness's own."""
    return sorted(os.path.basename(program(p)) for p in pids() if program(p).startswith(INSTANCE + "/usr/") and
                  "model" not in program(p))


def quiet():
    """Ready, and no box there."""
    return wait_for(lambda: answers() == 200 and not in_boxes() and len(ours()) == 1 + len(CHILDREN))


def killed_often():
    check("quiet before", quiet())
    before = mounts(), groups(), files(), ours()
    runs, there, back = [], [], []
    for i in range(10):
        try:
            for bearer in (mine, crowd):
                runs.append((bearer, start(bearer, FORKS, agent="script", checks=GIT)))
        except (AssertionError, OSError):
            pass
        # Every other life is a longer one, with boxes at work; the short ones end while boxes are made.
        if i % 2 == 1 and runs:
            until(runs[-1][0], runs[-1][1], lambda v: v.get("phase") == "executing" or v["status"] in TERMINAL)
            time.sleep(2.5)
        time.sleep(random.random() / 2)
        old = [p for p in in_boxes()] + [p for p in pids() if program(p).startswith(INSTANCE + "/usr/libexec/pinfold/pinfold-")
                                         and "model" not in program(p)]
        before_it = pid_of("pinfold-sandboxd")
        began = time.monotonic()
        os.kill(before_it, signal.SIGKILL)
        # Its socket answers long before a web server that was refused in between asks again.
        wait_for(lambda: connects("public/fcgi.sock") != "ok", 5)
        check(f"its socket is there after death {i + 1}", wait_for(lambda: connects("public/fcgi.sock") == "ok"))
        there.append(time.monotonic() - began)
        if not ready():
            check(f"ready after death {i + 1}", False)
        back.append(time.monotonic() - began)
        if pid_of("pinfold-sandboxd") in (before_it, None):
            check(f"sandboxd comes back after death {i + 1}", False)
        alive = wait_for(lambda: not [p for p in old if p in pids()])
        if not alive:
            check(f"all its processes die with it (death {i + 1})", False, [(p, program(p)) for p in old if p in pids()])
    check("ten deaths survived", quiet())
    print("its socket is there after", *(f"{s:.2f}" for s in there), "s")
    print("back in service after", *(f"{s:.2f}" for s in back), "s")
    for bearer, run in runs:
        call("POST", f"/v1/runs/{run}/cancel", b"", bearer)
    states = {until(b, r)["status"] for b, r in runs}
    check("each run has ended", states <= set(TERMINAL), states)
    check("quiet afterwards", quiet())
    after = mounts(), groups(), files(), ours()
    for what, a, b in zip(("mounts", "control groups", "files in the run folder", "processes"), before, after):
        check(f"the same {what} as before", a == b, sorted(set(a) ^ set(b)))
    v = until(mine, start(mine, {"agent.py": "pass\n"}, agent="script", checks=GIT))
    check("a new run works", v["status"] == "completed", v)


def stopped_at_work():
    """SIGTERM with a box in every slot: a clean end within seconds, nothing left."""
    runs = [(b, start(b, FORKS, agent="script", checks=GIT)) for b in [mine] * 4 + [crowd] * 4]
    for b, r in runs:
        v = until(b, r, lambda v: v.get("phase") == "executing" or v["status"] in TERMINAL)
        check("one more box is at work", v["status"] == "running", v)
    check("agents have forked", wait_for(lambda: len(in_boxes()) > 8 * 20), len(in_boxes()))
    old = in_boxes() + [p for p in pids() if program(p).startswith(INSTANCE + "/usr/") and "model" not in program(p)]
    before, began = pid_of("pinfold-sandboxd"), time.monotonic()
    os.kill(before, signal.SIGTERM)
    check("it ends", wait_for(lambda: before not in pids()))
    print(f"stopped {len(old)} processes in {time.monotonic() - began:.2f} s")
    left = [(p, program(p)) for p in old if p in pids()]
    check("and nothing of it is there then", left == [], left)
    check("ready again", ready())
    for b, r in runs:
        v = until(b, r)
        check("a run that was stopped has failed as restarted", (v["status"], v["error"]) == ("failed", "controller_restarted"), v)


def quarantined():
    """A box whose group cannot be removed: its run has failed and can be read, others go on, the next life sweeps it."""
    check("quiet before the quarantine", quiet())
    before = groups()
    run = executing(mine, {"agent.py": "import time\ntime.sleep(3)\nopen('made.txt', 'w').write('by the agent\\n')\n",
                           "made.txt": "\n"}, allowed=["made.txt"])
    stuck = [g for g in groups() if re.search(r"/s[0-9]+/r$", g) and os.path.exists(g + "/cgroup.kill")]
    for g in stuck:
        os.mkdir(g + "/stuck")
    check("one box is there", len(stuck) == 1, stuck)
    v = until(mine, run)
    check("its run has failed, since its box is not gone", (v["status"], v["error"], v["terminalReason"]) ==
          ("failed", "sandbox_cleanup_failed", "sandbox_cleanup_failed"), v)
    check("its patch can be read", "+by the agent" in artifact(mine, run, "patch"))
    check("and its result", json.loads(artifact(mine, run, "result"))["error"] == "sandbox_cleanup_failed")
    states = [until(mine, r)["status"] for r in [start(mine, {"agent.py": "pass\n"}, agent="script", checks=GIT) for _ in range(2)]]
    check("others go on", states == ["completed"] * 2, states)
    check("the slot is not used again", all(os.path.exists(g + "/stuck") for g in stuck))
    check("sandboxd comes back", kill("pinfold-sandboxd") and quiet())
    check("and has swept it", groups() == before, sorted(set(groups()) ^ set(before)))


def killed_by_command():
    """--kill-service: a box dies with sandboxd, also when its process 1 cannot act; both commands try it, and go on afterwards."""
    check("quiet before the commands", quiet())
    env = dict(os.environ, PINFOLD_ROOT=INSTANCE)
    for words, ids, id, good in ((["attack", "--json", "--kill-service", "use-outlive"], "attacks", "use-outlive", ("outcome", "held")),
                                 (["doctor", "--json", "--kill-service"], "checks", "wall.death-signal", ("status", "ok"))):
        before = pid_of("pinfold-sandboxd")
        r = subprocess.run([CLI, *words], env=env, capture_output=True, text=True)
        rows = {c["id"]: c for c in json.loads(r.stdout)[ids]}
        check(f"{words[0]} sees the box die", rows[id][good[0]] == good[1], (rows[id], r.stderr[-500:]))
        check(f"{words[0]} did kill it", wait_for(lambda: pid_of("pinfold-sandboxd") not in (before, None)))
        check(f"quiet after {words[0]}", quiet())
    check("the run of doctor ended with it", "controller_restarted" in rows["box.end"]["detail"] and rows["box.end"]["status"] == "ok", rows["box.end"])


def again():
    """The service with what its files say now."""
    before = pid_of("pinfold-sandboxd")
    os.kill(before, signal.SIGTERM)
    return wait_for(lambda: pid_of("pinfold-sandboxd") not in (before, None) and answers() == 200)


def log():
    """log_to: a file that whoever rotates it copies and empties, and syslog's socket, each for every process."""
    conf, place = INSTANCE + "/etc/pinfold/pinfold.conf", tempfile.mkdtemp(prefix="pf-log.")
    file, was = place + "/service.log", open(conf).read()
    socket_ = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    socket_.bind(place + "/log")
    os.chmod(place, 0o755)
    os.chmod(place + "/log", 0o666)
    got = []

    def line(run):
        while select.select([socket_], [], [], 0)[0]:
            got.append(socket_.recv(65536).decode())
        return [l for l in open(file).read().splitlines() + got if f"run {run} of" in l]

    try:
        open(conf, "a").write(f'log_to = "file"\nlog_path = "{file}"\n')
        check("up with a file", again())
        check("its mode", oct(os.stat(file).st_mode & 0o7777) == "0o640", oct(os.stat(file).st_mode))
        text = open(file).read()
        check("sandboxd and those it starts are in it", all(f"\n{n}: info: ready" in "\n" + text for n in
              ("pinfold-sandboxd", "pinfold-stored", "pinfold-steward")), text)
        run = start(mine, {"agent.py": "pass\n"}, agent="script", checks=GIT)
        until(mine, run)
        check("a run's lines", wait_for(lambda: len(line(run)) > 1), open(file).read()[-500:])
        os.truncate(file, 0)
        run = start(mine, {"agent.py": "pass\n"}, agent="script", checks=GIT)
        until(mine, run)
        check("it is emptied, and goes on from its beginning", wait_for(lambda: len(line(run)) > 1) and not open(file).read().startswith("\0"))
        open(conf, "w").write(was + f'log_to = "syslog"\nlog_path = "{place}/log"\n')
        check("up with syslog", again())
        run = start(mine, {"agent.py": "pass\n"}, agent="script", checks=GIT)
        until(mine, run)
        check("what the confined processes say comes there", wait_for(lambda: len(line(run)) > 1) and
              all(re.match(r"<30>pinfold-steward\[\d+\]: info: run ", l) for l in line(run)), got[-5:])
        check("of stored, too", any(re.match(r"<30>pinfold-stored\[\d+\]: info: ready$", l) for l in got), got)
    finally:
        open(conf, "w").write(was)
        check("as before", again())
        socket_.close()
        shutil.rmtree(place)


for f in (killed_often, stopped_at_work, quarantined, killed_by_command, log):
    case(f.__name__, f)
done()
