#!/usr/bin/python3
"""Event streams: from an event's append to its frame at the client, with 1, 100 and 2,000 clients behind lighttpd and nginx,
beside a bare epoll server (bare_sse) behind the same; memory of an idle stream; from a person's decision to the agent that
hears of it. Ours appends durably, numbers, cleans and reads again from the store; the bare one only passes a line on. Both
take turns; a ratio is the median of the rounds' ratios.

Run as root on an idle machine, after a build (PINFOLD_BUILD, or build): bench/stream.py [ROUNDS [SERVER...]]
Needs nginx (Debian package).
"""
import json, os, shutil, signal, statistics, subprocess, sys, tempfile, time
sys.dont_write_bytecode = True

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("PINFOLD_BUILD", TOP + "/build")
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
SERVERS = sys.argv[2:] or ("lighttpd", "nginx")
# Clients, events, seconds between them.
LOADS = ((1, 200, 0.005), (100, 100, 0.02), (2000, 40, 0.15))
IDLE, WARM, QUESTIONS, GOAL_BYTES = 2000, 2000, 40, 2048
CONF = """
max_streams = 10000
agent "script" {
	command = {"/usr/bin/python3", "/workspace/source/agent.py"}
	environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8", "PINFOLD_RUN_ID={run_id}"}
	memory_mb = 128
	pids = 16
	workspace_mb = 16
	workspace_inodes = 1000
}
agent "sleeper" {
	command = {"/usr/bin/sleep", "1000"}
	environment = {"PATH=/usr/bin:/bin"}
	token_delivery = "wire"
	memory_mb = 32
	pids = 8
	workspace_mb = 8
	workspace_inodes = 1000
}
tenant "bench" {
	agent = "sleeper"
	model_profile = "default"
	max_wall_seconds = 1000
	max_streams = 10000
	max_runs_hour = 0
	max_stored_mb = 0
}
"""
# Asks again and again, and says when it heard of each answer.
ASKER = """
for i in range(%d):
    ask("q%%d" %% i, "make test")
    while poll("q%%d" %% i)[0] == 202:
        time.sleep(0.002)
    tell(**{"h%%d" %% i: time.time()})
"""
work = tempfile.mkdtemp(prefix="pinfold-bench.")
os.chmod(work, 0o711)


def clients(url, path, token, n, events):
    """n clients that wait for so many events."""
    p = subprocess.Popen([BUILD + "/bench/sse_clients", url.rsplit(":", 1)[1], path, token, str(n), str(events)],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if p.stdout.readline() != "ready\n":
        raise AssertionError("the clients did not get their streams")
    return p


def figures(p, n, events):
    """Median and 99th percentile in ms."""
    got, half, most = (int(x) for x in p.stdout.readline().split())
    p.stdin.close()
    p.wait()
    assert got == n * events, got
    return half / 1000, most / 1000


def pss(pid):
    with open(f"/proc/{pid}/smaps_rollup") as f:
        return next(int(l.split()[1]) * 1024 for l in f if l.startswith("Pss:"))


def rss(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(l.split()[1]) * 1024 for l in f if l.startswith("VmRSS:"))


class Bare:
    def __init__(self):
        self.socket, fifo = work + "/bare.sock", work + "/bare.fifo"
        self.p = subprocess.Popen([BUILD + "/bench/bare_sse", self.socket, fifo])
        while not os.path.exists(fifo):
            time.sleep(0.01)
        self.fifo = os.open(fifo, os.O_WRONLY)

    def tell(self):
        os.write(self.fifo, b'{"t":%d}\n' % time.monotonic_ns())

    def stop(self):
        self.p.kill()
        self.p.wait()


def delays(gateway, run, token, bare):
    from front import Front
    for server in SERVERS:
        with Front(server, "--many") as ours, Front(server, "--many", socket_path=bare.socket) as theirs:
            for n, events, pause in LOADS:
                mine, other, appends = [], [], []
                for _ in range(ROUNDS):
                    last = gateway.append(run, {"at": 0}, tenant="bench")
                    p = clients(ours.url, f"/v1/runs/{run}/events?stream=1&after={last}", token, n, events)
                    for _ in range(events):
                        at = time.monotonic_ns()
                        gateway.append(run, {"t": at}, tenant="bench")
                        appends.append((time.monotonic_ns() - at) / 1e6)
                        time.sleep(pause)
                    mine.append(figures(p, n, events))
                    p = clients(theirs.url, "/v1/events", "none", n, events)
                    for _ in range(events):
                        bare.tell()
                        time.sleep(pause)
                    other.append(figures(p, n, events))
                m, o = ([statistics.median(x[k] for x in of) for k in (0, 1)] for of in (mine, other))
                ratio = [statistics.median(a[k] / b[k] for a, b in zip(mine, other)) for k in (0, 1)]
                print(f"{server:8} {n:4} clients: append to frame p50 {m[0]:6.2f} ms, p99 {m[1]:6.2f} ms; bare {o[0]:6.2f} and {o[1]:6.2f}: "
                      f"x {ratio[0]:.2f} and {ratio[1]:.2f}; of it the append itself, durably, {statistics.median(appends):.2f} ms", flush=True)


def memory(run, token, bare, fcgi):
    from front import Front
    from processes import wait_for
    with Front("nginx", "--many") as ours, Front("nginx", "--many", socket_path=bare.socket) as theirs:
        for name, pid, url, path in (("ours", fcgi, ours.url, f"/v1/runs/{run}/events?stream=1"), ("bare", bare.p.pid, theirs.url, "/v1/events")):
            p = clients(url, path, token, WARM, 10 ** 6)  # what is made once: the threads that answer heads, among it
            before = pss(pid), rss(pid)
            q = clients(url, path, token, IDLE, 10 ** 6)
            time.sleep(2)
            after = pss(pid), rss(pid)
            each = (after[0] - before[0]) / IDLE
            print(f"an idle stream ({name}): {each:.0f} bytes (PSS), {(after[1] - before[1]) / IDLE:.0f} (RSS); {IDLE} beside {WARM}, RSS {before[1] >> 10} KiB "
                  f"to {after[1] >> 10} KiB" + (f" (at most {GOAL_BYTES}: {'held' if each <= GOAL_BYTES else 'MISSED'})" if name == "ours" else ""), flush=True)
            for x in (p, q):
                x.kill()
                x.wait()


def decisions():
    from asking import AGENT, answer, until, waiting
    from client import call, events, start
    import asking
    run = start(asking.mine, {"agent.py": AGENT + ASKER % QUESTIONS}, agent="script", checks=[["git", "diff", "--check"]])
    sent, took, answers = [], [], []
    for i in range(QUESTIONS):
        waiting(run, f"q{i}")
        sent.append(time.time())
        assert answer(run, f"q{i}", "allow_once")[0] == 200
        answers.append(1000 * (time.time() - sent[-1]))
    until(asking.mine, run)
    heard = {k: v for e in events(asking.mine, run) if e["event_type"] == "told" for k, v in e["data"].items()}
    took = [1000 * (heard[f"h{i}"] - sent[i]) for i in range(QUESTIONS)]
    print(f"a decision's POST to the agent's poll answered: median {statistics.median(took):.1f} ms, longest {max(took):.1f} ms of {QUESTIONS} "
          f"(the agent asks every 2 ms); the POST itself {statistics.median(answers):.1f} ms", flush=True)


def main():
    up = bare = None
    try:
        with open(work + "/extra.conf", "w") as f:
            f.write(CONF)
        up = subprocess.Popen([TOP + "/quickstart", "up", "--root", work + "/root", "--config", work + "/extra.conf"],
                              stdout=subprocess.PIPE, stderr=open(work + "/log", "w"), text=True)
        line = up.stdout.readline()
        if not line.startswith("ready "):
            sys.exit("the instance did not start:\n" + open(work + "/log").read()[-2000:])
        os.environ.update(PINFOLD_URL=json.loads(line[6:])["url"], PINFOLD_INSTANCE=work + "/root", PINFOLD_CLI=work + "/root/usr/bin/pinfold")
        sys.path.insert(0, TOP + "/tests/instance")
        from client import operator, start, until
        from processes import pid_of
        from streams import Gateway
        token = operator("token", "create", "--tenant", "bench").strip()
        def running():
            run = start(token, {"a.py": "pass\n"}, checks=[["git", "diff", "--check"]], limits={"wallTimeSeconds": 1000})
            until(token, run, lambda v: v.get("phase") == "executing")
            return run
        bare, gateway = Bare(), Gateway()
        memory(running(), token, bare, pid_of("pinfold-fcgi"))
        decisions()
        delays(gateway, running(), token, bare)
    finally:
        if bare:
            bare.stop()
        if up:
            up.send_signal(signal.SIGTERM)
            up.wait()
        shutil.rmtree(work, ignore_errors=True)


main()
