#!/usr/bin/python3
"""What others feel while one run takes all it can get: latency of the API and of another tenant's whole run during each
storm, as a ratio to the same without one, in one run and in turns. Starts an instance of its own. usage: storms.py [ROUNDS]"""
import json, os, statistics, subprocess, sys, tempfile, shutil, time

here = os.path.dirname(os.path.abspath(__file__))
instance = os.path.join(here, "../tests/instance")
sys.dont_write_bytecode = True
sys.path.insert(0, instance)
rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
top = tempfile.mkdtemp(prefix="pinfold-storms.")
os.chmod(top, 0o711)
log = open(top + "/err", "w+")
up = subprocess.Popen([os.path.join(here, "../quickstart"), "up", "--root", top + "/root", "--config", instance + "/extra.conf"],
                      stdout=subprocess.PIPE, stderr=log, text=True)
SECONDS = 4


def main():
    line = up.stdout.readline()
    while line and not line.startswith("ready "):
        line = up.stdout.readline()
    if not line:
        sys.exit("the instance does not start; see " + top + "/err")
    os.environ.update(PINFOLD_URL=json.loads(line[6:])["url"], PINFOLD_INSTANCE=top + "/root", PINFOLD_CLI=top + "/root/usr/bin/pinfold")
    import client, storms

    mine, other = client.token(), client.operator("token", "create", "--tenant", "other").strip()
    small = {"agent.py": "open('a.py', 'w').write('x = 1\\n')\n", "a.py": "\n"}
    git = [["git", "diff", "--check"]]

    def around():
        """For a while: milliseconds of each GET, and of whole small runs."""
        gets, runs, end = [], [], time.monotonic() + SECONDS
        while time.monotonic() < end:
            begin = time.monotonic()
            run = client.start(other, small, agent="script", allowed=["a.py"], checks=git)
            while True:
                t = time.monotonic()
                _, v = client.get("/v1/runs/" + run, other)
                gets.append((time.monotonic() - t) * 1000)
                if v["status"] in client.TERMINAL:
                    break
                time.sleep(0.01)
            if v["status"] != "completed":
                sys.exit(f"a run beside a storm ended so: {v}")
            runs.append((time.monotonic() - begin) * 1000)
        return gets, runs

    def p(v, part):
        return sorted(v)[min(len(v) - 1, int(len(v) * part))]

    rows = (("fork storm", storms.FORKS, "script"), ("memory bomb", storms.MEMORY, "storm"), ("disk fill", storms.DISK, "storm"),
            ("inode fill", storms.FILES, "storm"), ("100 MB of output", storms.OUTPUT, "storm"), ("100 MB of events", storms.EVENTS, "script"),
            ("1,000 processes", storms.TREE_STAYS, "tree"), ("processor burner", storms.PROCESSOR, "script"))
    print(f"{'storm':<18} {'GET p50':>9} {'p99':>8} {'ratio':>6} {'ratio p99':>9} {'run p50':>9} {'ratio':>6}")
    for name, program, agent in rows:
        ratios, tails, whole, shown = [], [], [], None
        for _ in range(rounds):
            quiet_gets, quiet_runs = around()
            # One storm after the other, until the time is over.
            files = {"agent.py": program, "report.txt": "\n"}
            running = [client.start(mine, files, agent=agent, allowed=["report.txt"], checks=git, limits={"wallTimeSeconds": SECONDS * 2})
                       for _ in range(2)]
            client.until(mine, running[0], lambda v: v["status"] in client.TERMINAL or v.get("phase") == "executing")
            gets, runs = around()
            for r in running:
                client.call("POST", f"/v1/runs/{r}/cancel", b"", mine)
                client.until(mine, r)
            ratios.append(p(gets, .5) / p(quiet_gets, .5))
            tails.append(p(gets, .99) / p(quiet_gets, .99))
            whole.append(p(runs, .5) / p(quiet_runs, .5))
            shown = (p(gets, .5), p(gets, .99), p(runs, .5))
        m = statistics.median
        print(f"{name:<18} {shown[0]:>6.1f} ms {shown[1]:>5.1f} ms {m(ratios):>6.2f} {m(tails):>9.2f} {shown[2]:>6.0f} ms {m(whole):>6.2f}", flush=True)


try:
    main()
finally:
    up.terminate()
    up.wait()
    shutil.rmtree(top, ignore_errors=True)
