#!/usr/bin/python3
"""Requests a second and 99th percentile behind each web server, against a trivial libfcgi responder and against one
without libfcgi (raw), each behind a server of the same kind with the same configuration; and beside idle kept
connections. The three take turns; a ratio is the median of the ratios of each round. "us" is the processor time of all
processes for one request, the load generator's among it: on a machine with other work it is what can still be compared.

Run as root on an idle machine, after a build (PINFOLD_BUILD, or build): bench/web.py [SECONDS a turn [ROUNDS [SERVER...]]]
Below TMPDIR is the store: with a tmpfs there, a POST is without the disk's share.
Needs wrk, apache2-bin and nginx (Debian packages).
"""
import json, os, re, resource, shutil, signal, statistics, subprocess, sys, tempfile, time
sys.dont_write_bytecode = True

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("PINFOLD_BUILD", TOP + "/build")
SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 2
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
CONF = """
agent "sleeper" {
	command = {"/usr/bin/sleep", "200"}
	environment = {"PATH=/usr/bin:/bin"}
	memory_mb = 64
	pids = 8
	workspace_mb = 8
	workspace_inodes = 1000
}
"""
TENANT = """tenant "bench%d" {
	agent = "sleeper"
	model_profile = "default"
	max_concurrent_runs = 1
	max_queued_runs = 100000
	max_runs_hour = 0
	max_model_requests_day = 0
	max_model_calls_minute = 0
	max_stored_mb = 0
}
"""
# Each turn of POST has tenants of its own, so that it begins with queues as short as a user's.
TENANTS_A_TURN, SERVERS = 6, sys.argv[3:] or ("lighttpd", "apache", "nginx")
# The least that a trivial GET of ours reaches of the raw one's rate, and a POST of the libfcgi one's.
FLOOR, GOAL = {"lighttpd": 0.80, "apache": 0.70, "nginx": 0.55}, 0.5
IDLE = 64
BODY = {"instruction": "x", "files": [{"path": "calc.py", "content": "def add(a, b):\n    return a - b\n"}],
        "allowedPaths": ["calc.py"], "checks": [["python3", "-m", "unittest", "discover"]]}
UNITS = {"us": 1e-3, "ms": 1, "s": 1e3, "m": 6e4}
work = tempfile.mkdtemp(prefix="pinfold-bench.")
os.chmod(work, 0o711)


def spent():
    """Processor time in ns, of all that this program has started."""
    parents, at, mine = {}, 0, {os.getpid()}
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{p}/stat") as f:
                parents[int(p)] = int(f.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            pass
    while at < len(mine):
        at = len(mine)
        mine |= {p for p, parent in parents.items() if parent in mine}
    ns = 0
    for p in mine:
        try:
            for t in os.listdir(f"/proc/{p}/task"):
                with open(f"/proc/{p}/task/{t}/schedstat") as f:
                    ns += int(f.read().split()[0])
        except OSError:
            pass
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ns + 1e9 * (ended.ru_utime + ended.ru_stime)


def wrk(url, tokens=(), body=None, callers=16, seconds=SECONDS):
    """(requests a second, p99 in ms, us of processor time a request, failures)"""
    args = ["wrk", f"-t{min(2, callers)}", f"-c{callers}", f"-d{seconds}s", "--latency"]
    if tokens:
        script = work + "/wrk.lua"
        with open(script, "w") as f:
            f.write("wrk.headers['Authorization'] = 'Bearer %s'\n" % tokens[0])
            if body:
                f.write("wrk.method = 'POST'\nwrk.headers['Content-Type'] = 'application/json'\nwrk.body = [==[%s]==]\n" % body)
            if len(tokens) > 1:
                f.write("local t, i = {%s}, 0\nfunction request()\ni = i %% #t + 1\n"
                        "wrk.headers['Authorization'] = 'Bearer ' .. t[i]\nreturn wrk.format()\nend\n" % ", ".join(f"'{t}'" for t in tokens))
        args += ["-s", script]
    before = spent()
    out = subprocess.run(args + [url], check=True, capture_output=True, text=True).stdout
    number, unit = re.search(r"99%\s+([\d.]+)(us|ms|s|m)", out).groups()
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", out)
    return (float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1]), float(number) * UNITS[unit],
            (spent() - before) / 1e3 / max(1, int(re.search(r"(\d+) requests in", out)[1])),
            int(bad[1] if bad else 0) + sum(int(x) for x in (errors.groups() if errors else ())))


def disk():
    """Appends of 200 bytes with fdatasync, a second: what a durable answer waits for at least once."""
    took = []
    with open(work + "/append", "ab", 0) as f:
        for _ in range(200):
            f.write(b"x" * 200)
            begun = time.monotonic()
            os.fdatasync(f.fileno())
            took.append(time.monotonic() - begun)
    print(f"one flush of the disk: {statistics.median(took) * 1e6:.0f} us, p99 {sorted(took)[197] * 1e6:.0f} us", flush=True)


def compare(what, ours, libfcgi, raw, floors):
    """Turn by turn, each time in another order. floors: what a ratio must not be below, by the name of the other."""
    who = {"ours": ours, "libfcgi": libfcgi, "raw": raw}
    got = {name: [] for name in who}
    for i in range(ROUNDS):
        for name in (list(who) * 2)[i % 3:][:3]:
            got[name].append(who[name]())
    line = f"{what:26}"
    for name, turns in got.items():
        rate, p99, cost = (statistics.median(t[i] for t in turns) for i in range(3))
        line += f" | {name} {rate:6.0f}/s p99 {p99:5.1f} ms {cost:3.0f} us"
        if name != "ours":
            ratio = statistics.median(mine[0] / other[0] for mine, other in zip(got["ours"], turns))
            line += f" x {ratio:.2f}, by us {statistics.median(other[2] / mine[2] for mine, other in zip(got['ours'], turns)):.2f}"
            if name in floors:
                line += f" (at least {floors[name]:.2f}: {'held' if ratio >= floors[name] else 'MISSED'})"
    failed = sum(t[3] for turns in got.values() for t in turns)
    print(line + (f" | {failed} FAILED" if failed else ""), flush=True)


def idle_connections(front, kept):
    """Until the web server keeps this many; how many it does."""
    for _ in range(20):
        wrk(front.url + "/healthz", callers=4 * IDLE, seconds=1)
        if kept() >= IDLE:
            break
    return kept()


def main():
    up, others = None, []
    try:
        with open(work + "/extra.conf", "w") as f:
            f.write(CONF + "".join(TENANT % i for i in range(TENANTS_A_TURN * ROUNDS * len(SERVERS))))
        log = open(work + "/log", "w")
        up = subprocess.Popen([TOP + "/quickstart", "up", "--root", work + "/root", "--config", work + "/extra.conf"],
                              stdout=subprocess.PIPE, stderr=log, text=True)
        line = up.stdout.readline()
        if not line.startswith("ready "):
            sys.exit("the instance did not start:\n" + open(work + "/log").read()[-2000:])
        ready = json.loads(line[6:])
        os.environ.update(PINFOLD_URL=ready["url"], PINFOLD_INSTANCE=work + "/root", PINFOLD_CLI=work + "/root/usr/bin/pinfold",
                          PINFOLD_UP_PID=str(up.pid))
        sys.path.insert(0, TOP + "/tests/instance")
        from client import call, operator, until
        from front import Front
        for name in ("trivial", "raw"):
            others.append(subprocess.Popen([f"{BUILD}/bench/{name}_fcgi", f"{work}/{name}.sock"]))
        tokens = [operator("token", "create", "--tenant", f"bench{i}").strip() for i in range(TENANTS_A_TURN * ROUNDS * len(SERVERS))]
        token, turns = tokens[0], iter(range(0, len(tokens), TENANTS_A_TURN))

        def fresh():
            k = next(turns)
            return tokens[k:k + TENANTS_A_TURN]
        body = json.dumps(BODY)
        run = json.loads(call("POST", "/v1/runs", body.encode(), token)[2])["runId"]
        until(token, run, lambda v: v["status"] == "running")
        for server in SERVERS:
            with Front(server) as mine, Front(server, socket_path=work + "/trivial.sock") as plain, \
                    Front(server, socket_path=work + "/raw.sock") as raw:
                def row(name, path, tokens, body, floors, own=None):
                    compare(f"{server}: {name}", lambda: wrk(mine.url + path, own() if own else tokens, body), lambda: wrk(plain.url + path, tokens, body),
                            lambda: wrk(raw.url + path, tokens, body), floors)
                row("GET /healthz", "/healthz", (), None, {"raw": FLOOR[server]})
                row("GET /v1/runs/ID", "/v1/runs/" + run, [token], None, {})
                disk()
                row("POST /v1/runs", "/v1/runs", [token], body, {"libfcgi": GOAL}, fresh)
        for server in ("nginx", "apache"):
            with Front(server, "--keep") as f:
                from t_keep import kept
                idle = idle_connections(f, kept)
                for callers in (1, 16):
                    _, p99, _, failed = wrk(ready["url"] + "/healthz", callers=callers)
                    print(f"beside {idle} idle connections of {server}: another server's GET /healthz, {callers} callers: p99 {p99:.2f} ms "
                          f"(under 50: {'held' if p99 < 50 else 'MISSED'}), {failed} failed", flush=True)
        if not sys.argv[3:]:
            subprocess.run([TOP + "/tests/instance/t_keep.py", "50000"])
    finally:
        for p in others + [up]:
            if p:
                p.send_signal(signal.SIGTERM)
                p.wait()
        shutil.rmtree(work, ignore_errors=True)


main()
