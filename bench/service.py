#!/usr/bin/python3
"""An instance under light load: from SIGKILL of each process to service again, and runs accepted a second beside live runs.

"Again" is the first good answer to something that was asked after the kill: of fcgi and stored a GET of a run, of the
gateway a call from inside a box, of the steward and sandboxd the start of a run that was posted after the kill (said
beside it: the same without a kill). Each process is left alone for ten seconds before it is killed again, since one that
keeps dying is started after growing pauses.

Run as root on an idle machine, after a build (PINFOLD_BUILD, or build): bench/service.py [ROUNDS]. Needs wrk and nginx.
"""
import json, os, re, shutil, signal, statistics, subprocess, sys, tempfile, threading, time, urllib.request
sys.dont_write_bytecode = True

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 4
GOAL_MS, LIVE, SECONDS = 500, 100, 3
CONF = """
max_boxes = %d
agent "script" {
	command = {"/usr/bin/python3", "/workspace/source/agent.py"}
	environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "PINFOLD_MODEL_GATEWAY_URL={gateway_url}"}
	memory_mb = 128
	pids = 16
	workspace_mb = 16
	workspace_inodes = 1000
}
agent "sleeper" {
	command = {"/usr/bin/sleep", "200"}
	environment = {"PATH=/usr/bin:/bin"}
	memory_mb = 32
	pids = 8
	workspace_mb = 8
	workspace_inodes = 1000
}
tenant "bench" {
	agent = "script"
	model_profile = "default"
	max_concurrent_runs = 16
	max_queued_runs = 1000
	max_runs_hour = 0
	max_model_requests_day = 0
	max_model_calls_minute = 0
	max_stored_mb = 0
}
tenant "crowd" {
	agent = "sleeper"
	model_profile = "default"
	max_concurrent_runs = 512
	max_queued_runs = 1000
	max_runs_hour = 0
	max_model_requests_day = 0
	max_model_calls_minute = 0
	max_stored_mb = 0
}
"""
# Each turn of POST has tenants of its own, so that it begins with short queues.
TENANT = """tenant "post%d" {
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
TENANTS_A_TURN, TURNS = 4, 4
# Calls the gateway again and again and says when each good call began and ended, in ms since the first.
CALLER = """
import json, os, time, urllib.request
url, token = os.environ["PINFOLD_MODEL_GATEWAY_URL"], open("/workspace/.pinfold-run-token").read().strip()
began, calls = time.time(), []
while time.time() < began + %d:
    at = time.time()
    try:
        with urllib.request.urlopen(urllib.request.Request(url + "/models", headers={"Authorization": "Bearer " + token}), timeout=30) as a:
            calls.append((int((at - began) * 1000), int((time.time() - began) * 1000)))
    except OSError:
        pass
    time.sleep(0.01)
json.dump({"began": began, "calls": calls}, open("report.json", "w"))
"""
work = tempfile.mkdtemp(prefix="pinfold-bench.")
os.chmod(work, 0o711)


def say(what, took, beside=""):
    took = [1000 * t for t in took]
    print(f"SIGKILL of {what:17} to service again: median {statistics.median(took):4.0f} ms, longest {max(took):4.0f} ms of {len(took)} "
          f"(at most {GOAL_MS}: {'held' if max(took) <= GOAL_MS else 'MISSED'}){beside}", flush=True)


def post(url, token, body):
    """Accepted a second, at 16 callers."""
    script = work + "/wrk.lua"
    with open(script, "w") as f:
        f.write("wrk.method = 'POST'\nwrk.headers['Content-Type'] = 'application/json'\nwrk.body = [==[%s]==]\nlocal t, i = {%s}, 0\n"
                "function request()\ni = i %% #t + 1\nwrk.headers['Authorization'] = 'Bearer ' .. t[i]\nreturn wrk.format()\nend\n"
                % (body, ", ".join(f"'{t}'" for t in token)))
    out = subprocess.run(["wrk", "-t2", "-c16", f"-d{SECONDS}s", "--latency", "-s", script, url + "/v1/runs"], check=True,
                         capture_output=True, text=True).stdout
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    if bad:
        print(f"{bad[1]} requests were refused")
    return float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1])


def deaths(mine):
    from processes import CHILDREN, pid_of, program, ready, wait_for
    import client
    from client import artifact, call, start, until
    from front import Front
    checks = [["git", "diff", "--check"]]
    caller = start(mine, {"agent.py": CALLER % (11 * ROUNDS + 8), "report.json": "{}\n"}, allowed=["report.json"], checks=checks,
                   limits={"wallTimeSeconds": 200})
    until(mine, caller, lambda v: v.get("phase") == "executing")

    def good():
        try:
            return call("GET", "/v1/runs/" + caller, bearer=mine)[0] == 200
        except OSError:
            return False

    def started(since=None):
        """Seconds from then (now) until a run that is posted now has been started."""
        at, run = since or time.monotonic(), None
        while True:
            try:
                run = run or start(mine, {"agent.py": "pass\n"}, checks=checks)
                if json.loads(call("GET", "/v1/runs/" + run, bearer=mine)[2]).get("status", "queued") != "queued":
                    return time.monotonic() - at
            except (AssertionError, OSError, ValueError):
                pass
            time.sleep(0.002)

    def dies(name):
        """When it was killed; it and its children are gone when this returns: none of them answers any more."""
        pid, at = wait_for(lambda: pid_of(name)), time.monotonic()
        with_it = [pid] + ([pid_of(n) for n in CHILDREN] if name == "pinfold-sandboxd" else [])
        os.kill(pid, signal.SIGKILL)
        while any(program(p) for p in with_it if p):
            time.sleep(0.0005)
        return at

    def load():
        """Through lighttpd, all the time."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        question = urllib.request.Request(first + "/v1/runs/" + caller, headers={"Authorization": "Bearer " + mine})
        while not stop.is_set():
            try:
                opener.open(question, timeout=60).read()
            except OSError:
                pass
            time.sleep(0.02)
    first, stop = client.URL, threading.Event()
    thread = threading.Thread(target=load)
    thread.start()
    took, at = {"pinfold-fcgi": [], "pinfold-stored": [], "pinfold-gateway": []}, []
    for _ in range(ROUNDS):
        for name in took:
            time.sleep(3.6)
            at.append((name, time.time()))
            since = dies(name)
            while not good():
                time.sleep(0.002)
            if name != "pinfold-gateway":
                took[name].append(time.monotonic() - since)
            ready()
    v = until(mine, caller, seconds=240)
    lines = [l for l in artifact(mine, caller, "patch").splitlines() if l.startswith("+{")]
    if not lines:
        sys.exit(f"the agent that called the gateway did not report: {v}")
    report = json.loads(lines[0][1:])
    for name, when in at:
        ms = 1000 * (when - report["began"])
        if name == "pinfold-gateway":
            took[name].append((min(end for begin, end in report["calls"] if begin > ms) - ms) / 1000)
    for name in took:
        say(name, took[name])
    normal, steward, whole = [started() for _ in range(2 * ROUNDS)], [], []
    for _ in range(ROUNDS):
        time.sleep(10.5)
        steward.append(started(dies("pinfold-steward")))
        ready()
    beside = f"; without a kill such a run starts within {1000 * statistics.median(normal):.0f} ms"
    say("pinfold-steward", steward, beside)
    # Behind nginx: lighttpd looks at a dead backend again when one to two seconds are over, whatever its disable-time says.
    lighttpd = []
    with Front("nginx") as front:
        client.URL = front.url
        for _ in range(ROUNDS):
            time.sleep(10.5)
            since = dies("pinfold-sandboxd")
            whole.append(started(since))
            client.URL = first
            ready()
            lighttpd.append(1000 * (time.monotonic() - since))
            client.URL = front.url
        client.URL = first
    say("pinfold-sandboxd", whole, "; every other process with it, and quickstart up waits 100 ms before it starts it again; "
        f"through lighttpd, median {statistics.median(lighttpd):.0f} ms")
    stop.set()
    thread.join()


def crowd(url, crowd_token, tokens):
    from client import call, start, until
    body = json.dumps({"instruction": "x", "files": [{"path": "calc.py", "content": "def add(a, b):\n    return a - b\n"}],
                       "allowedPaths": ["calc.py"], "checks": [["python3", "-m", "unittest", "discover"]]})
    turns = iter(range(0, len(tokens), TENANTS_A_TURN))

    def turn():
        k = next(turns)
        return post(url, tokens[k:k + TENANTS_A_TURN], body)

    def live():
        return len(json.loads(call("GET", "/v1/runs?status=running&limit=100", bearer=crowd_token)[2])["runs"])
    few = [turn()]
    runs = [start(crowd_token, {"x.py": "pass\n"}, limits={"wallTimeSeconds": 200}) for _ in range(LIVE)]
    since, n = time.monotonic(), -1
    while n < LIVE and time.monotonic() < since + 40 and n != live():
        n = live()
        time.sleep(4)
    many = [turn(), turn()]
    still = live()
    for run in runs:
        call("POST", f"/v1/runs/{run}/cancel", b"", crowd_token)
    for run in runs:
        until(crowd_token, run)
    few.append(turn())
    print(f"runs accepted a second, 16 callers: {statistics.mean(few):.0f} beside at most {TENANTS_A_TURN} live runs, "
          f"{statistics.mean(many):.0f} beside {still} ({LIVE} were asked for): x {statistics.mean(many) / statistics.mean(few):.2f}", flush=True)


def main():
    up = None
    try:
        with open(work + "/extra.conf", "w") as f:
            f.write(CONF % LIVE + "".join(TENANT % i for i in range(TENANTS_A_TURN * TURNS)))
        log = open(work + "/log", "w")
        up = subprocess.Popen([TOP + "/quickstart", "up", "--root", work + "/root", "--config", work + "/extra.conf"],
                              stdout=subprocess.PIPE, stderr=log, text=True)
        line = up.stdout.readline()
        if not line.startswith("ready "):
            sys.exit("the instance did not start:\n" + open(work + "/log").read()[-2000:])
        url = json.loads(line[6:])["url"]
        os.environ.update(PINFOLD_URL=url, PINFOLD_INSTANCE=work + "/root", PINFOLD_CLI=work + "/root/usr/bin/pinfold", PINFOLD_UP_PID=str(up.pid))
        sys.path.insert(0, TOP + "/tests/instance")
        from client import operator

        def token(tenant):
            return operator("token", "create", "--tenant", tenant).strip()
        deaths(token("bench"))
        crowd(url, token("crowd"), [token(f"post{i}") for i in range(TENANTS_A_TURN * TURNS)])
    finally:
        if up:
            up.send_signal(signal.SIGTERM)
            up.wait()
        shutil.rmtree(work, ignore_errors=True)


main()
