#!/usr/bin/python3
"""Requests a second and 99th percentile behind each web server, as ratios to a trivial libfcgi responder behind a
server of the same kind with the same configuration, in turns of one run; and what kept connections do.

Run as root on an idle machine, after a build (PINFOLD_BUILD, or build): bench/web.py [SECONDS a turn]
Needs wrk, apache2-bin and nginx (Debian packages).
"""
import json, os, re, shutil, signal, statistics, subprocess, sys, tempfile, time
sys.dont_write_bytecode = True

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("PINFOLD_BUILD", TOP + "/build")
SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 3
ROUNDS = 3
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
}
"""
# Each turn of POST has tenants of its own, so that it begins with queues as short as a user's.
TENANTS_A_TURN, SERVERS = 6, ("lighttpd", "apache", "nginx")
BODY = {"instruction": "x", "files": [{"path": "calc.py", "content": "def add(a, b):\n    return a - b\n"}],
        "allowedPaths": ["calc.py"], "checks": [["python3", "-m", "unittest", "discover"]]}
UNITS = {"us": 1e-3, "ms": 1, "s": 1e3, "m": 6e4}
work = tempfile.mkdtemp(prefix="pinfold-bench.")
os.chmod(work, 0o711)


def wrk(url, tokens=(), body=None, callers=16, seconds=SECONDS):
    """(requests a second, p99 in ms, failures)"""
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
    out = subprocess.run(args + [url], check=True, capture_output=True, text=True).stdout
    number, unit = re.search(r"99%\s+([\d.]+)(us|ms|s|m)", out).groups()
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", out)
    return (float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1]), float(number) * UNITS[unit],
            int(bad[1] if bad else 0) + sum(int(x) for x in (errors.groups() if errors else ())))


def compare(what, ours, theirs):
    """Turn by turn; medians."""
    a, b = [], []
    for _ in range(ROUNDS):
        b.append(theirs())
        a.append(ours())
    rate, p99 = (statistics.median(x[i] for x in a) for i in (0, 1))
    rate0, p990 = (statistics.median(x[i] for x in b) for i in (0, 1))
    failed = sum(x[2] for x in a + b)
    print(f"{what:34} {rate:7.0f}/s p99 {p99:6.1f} ms | trivial {rate0:7.0f}/s p99 {p990:6.1f} ms | rate x {rate / rate0:.2f}, "
          f"p99 x {p99 / p990:.2f}{f', {failed} FAILED' if failed else ''}", flush=True)


def main():
    up = trivial = None
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
        sock = work + "/trivial.sock"
        trivial = subprocess.Popen([BUILD + "/bench/trivial_fcgi", sock])
        tokens = [operator("token", "create", "--tenant", f"bench{i}").strip() for i in range(TENANTS_A_TURN * ROUNDS * len(SERVERS))]
        token, turns = tokens[0], iter(range(0, len(tokens), TENANTS_A_TURN))

        def fresh():
            k = next(turns)
            return tokens[k:k + TENANTS_A_TURN]
        body = json.dumps(BODY)
        run = json.loads(call("POST", "/v1/runs", body.encode(), token)[2])["runId"]
        until(token, run, lambda v: v["status"] == "running")
        for server in SERVERS:
            with Front(server) as mine, Front(server, socket_path=sock) as plain:
                compare(f"{server}: GET /healthz, 16 callers", lambda: wrk(mine.url + "/healthz"), lambda: wrk(plain.url + "/healthz"))
                compare(f"{server}: GET /v1/runs/ID, 16 callers", lambda: wrk(mine.url + "/v1/runs/" + run, [token]),
                        lambda: wrk(plain.url + "/v1/runs/" + run, [token]))
                compare(f"{server}: POST /v1/runs, 16 callers", lambda: wrk(mine.url + "/v1/runs", fresh(), body),
                        lambda: wrk(plain.url + "/v1/runs", [token], body))
        for server in ("nginx", "apache"):
            with Front(server, "--keep") as f:
                wrk(f.url + "/healthz", callers=64)
                from t_keep import kept
                idle = kept()
                rate, p99, failed = wrk(ready["url"] + "/healthz", callers=1)
                print(f"beside {idle} idle connections of {server}: another server's GET /healthz p99 {p99:.2f} ms (floor: under 50), "
                      f"{failed} failed", flush=True)
        subprocess.run([TOP + "/tests/instance/t_keep.py", "50000"])
    finally:
        for p in (trivial, up):
            if p:
                p.send_signal(signal.SIGTERM)
                p.wait()
        shutil.rmtree(work, ignore_errors=True)


main()
