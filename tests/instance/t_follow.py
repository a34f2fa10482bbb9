#!/usr/bin/python3 -B
"""pinfold events -f and pinfold run over the real stream, whose connections are cut at any byte, and whose service is killed:
each event once, in order, to the end."""
import random, re, select, shutil, socket, subprocess, tempfile, threading, urllib.parse
from processes import *

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
from fake import Terminal

mine = token()
AT = urllib.parse.urlsplit(URL)
AGENT = '''
import http.client, json, os, time
tok = open("/workspace/.pinfold-event-token").read().strip()
run = os.environ["PINFOLD_RUN_ID"]
for n in range(1, 301):
    line = json.dumps({"event_type": "told", "run_id": run, "task_id": run, "sequence": n, "data": {"n": n, "text": "x" * (n * 7 % 900)}}) + "\\n"
    while True:
        try:
            c = http.client.HTTPConnection("127.0.0.1", 9797, timeout=60)
            c.request("POST", "/internal/v1/runs/%s/events" % run, json.dumps({"lines": [line]}), {"Authorization": "Bearer " + tok, "Content-Type": "application/json"})
            if c.getresponse().status == 202:
                break
        except OSError:
            pass
        time.sleep(0.05)
    time.sleep(0.005)
'''


class Cuts:
    """Between program and service: what the service says in a stream ends after a few bytes or many, again and again."""

    def __init__(self, seed):
        self.dice, self.streams, self.last = random.Random(seed), 0, []
        self.s = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d%s" % (self.s.getsockname()[1], AT.path)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                c, _ = self.s.accept()
            except OSError:
                return
            threading.Thread(target=self.pass_on, args=(c,), daemon=True).start()

    def pass_on(self, c):
        left, to = None, None
        try:
            to = socket.create_connection((AT.hostname, AT.port), timeout=PATIENCE)
            while True:
                for r in select.select([c, to], [], [])[0]:
                    data = r.recv(65536)
                    if r is c and b"stream=1" in data.split(b"\r\n")[0]:
                        self.streams += 1
                        self.last += [int(l.split(b":")[1]) for l in data.split(b"\r\n") if l.lower().startswith(b"last-event-id:")]
                        left = self.dice.choice((600, 3000, 9000, 30000)) + self.dice.randrange(700)
                    if r is to and left is not None:
                        data, left = data[:left], left - len(data)
                    (to if r is c else c).sendall(data)
                    if not data or (left is not None and left <= 0):
                        return
        except OSError:
            pass
        finally:
            c.close()
            if to is not None:
                to.close()


def environment(url):
    return dict(os.environ, PINFOLD_TOKEN=mine, PINFOLD_URL=url, LC_ALL="C.UTF-8")


def follow(what, run, seed, meanwhile=None):
    cuts = Cuts(seed)
    p = subprocess.Popen([CLI, "--json", "events", "-f", run], env=environment(cuts.url), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if meanwhile is not None:
        meanwhile(cuts)
    out, err = p.communicate(timeout=2 * PATIENCE)
    got = [json.loads(x) for x in out.splitlines()]
    check(f"{what}: each once, in order, to the end", p.returncode == 0 and got == events(mine, run) and
          [e["data"]["n"] for e in got if e["event_type"] == "told"] == list(range(1, 301)), (p.returncode, err[-300:], [e["sequence"] for e in got][-5:]))
    check(f"{what}: by streams, each begun behind the last event", cuts.streams > 3 and cuts.last == sorted(cuts.last), (cuts.streams, cuts.last))
    cuts.s.close()
    return cuts


def main():
    run = start(mine, {"agent.py": AGENT}, agent="script", checks=GIT)
    follow("live, cut", run, 1)
    for seed in range(2, 4):
        follow(f"ended, cut, {seed}", run, seed)

    def deaths(cuts):
        for _ in range(3):
            before = cuts.streams
            wait_for(lambda: cuts.streams > before)
            kill("pinfold-fcgi")

    run = start(mine, {"agent.py": AGENT}, agent="script", checks=GIT)
    follow("live, cut, and the service killed", run, 9, deaths)


def day():
    """A tenant's ordinary day, by the command line alone: upload, follow, answer, look, take the patch, ask again, tidy up."""
    device = token("device-token")
    env = dict(environment(URL), TERM="xterm", NO_COLOR="1")
    home = tempfile.mkdtemp(prefix="pf-day.")
    tree = shutil.copytree(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/calc"), home + "/calc")

    def pinfold(*words, **more):
        p = subprocess.run([CLI, *words], env=dict(env, **more), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=2 * PATIENCE)
        return p.returncode, p.stdout, p.stderr

    try:
        words = ["run", "-i", "Make the test pass", "--allow", "calc.py", "--check", "python3 -m unittest discover", "--ask", "edit_file"]
        t = Terminal([CLI, *words, tree], dict(env, PINFOLD_DEVICE_TOKEN=device))
        run = re.search(r"run ([0-9a-f-]{36})", t.expect("run.queued")).group(1)
        t.expect("model request")  # the line that says how it goes on
        card = t.expect("[l] later: ")
        check("the agent asks at the terminal", "question " in card and "calc.py" in card, card)
        t.type("o\n")
        status = t.wait()
        check("it is followed to its end", status == 0 and f"run {run}: completed" in t.text() and "passed" in t.text(), t.text()[-800:])
        # The same unattended, twice with one key; another device answers.
        key = ["--idempotency-key", "day-" + run]
        first, again = pinfold(*words, *key, "--detach", tree), pinfold(*words, *key, "--detach", tree)
        check("once more with the same key is the same run", first[:2] == again[:2] and first[0] == 0 and first[1].strip() != run, (first, again))
        other = first[1].strip()
        check("another request under it is refused", pinfold("run", "-i", "y", *key, "--detach", tree)[0] == 1)
        check("it waits for somebody", wait_for(lambda: other in pinfold("approve")[1]), pinfold("approve"))
        request = next(l.split()[1] for l in pinfold("approve")[1].splitlines() if l.startswith(other))
        check("who may not answer is told so", pinfold("approve", other, request, "--deny")[0] == 1)
        got = pinfold("approve", other, request, "--deny", PINFOLD_DEVICE_TOKEN=device)
        check("denied", got[0] == 0, got)
        got = pinfold("events", "-f", other)
        check("followed from another place", got[0] == 0 and "approval.resolved" in got[1], got)
        # What there is: lists, one run, what it left, the patch.
        got = pinfold("ps", "--limit", "2", "--json")
        check("the newest", got[0] == 0 and [r["runId"] for r in json.loads(got[1])["runs"]] == [other, run], got)
        got = pinfold("ps", "--all", "--status", "completed")
        check("all that completed", got[0] == 0 and run in got[1], got[2])
        got = pinfold("show", run)
        check("one of them", got[0] == 0 and "completed" in got[1], got)
        got = pinfold("artifacts", run, "-o", home + "/left")
        check("what it left", got[0] == 0 and {"patch", "result", "events"} <= set(os.listdir(home + "/left")), got)
        check("and its patch is that which is printed", pinfold("artifacts", run, "patch")[1] == open(home + "/left/patch").read())
        test = lambda: subprocess.run(["python3", "-B", "-m", "unittest", "discover"], cwd=tree, capture_output=True).returncode
        check("the test fails", test() != 0)
        got = pinfold("artifacts", run, "--apply", tree)
        check("and passes with the patch", got[0] == 0 and test() == 0, got)
        got = pinfold("rm", run, other)
        check("tidied up", got[0] == 0 and pinfold("show", run)[0] == 1 and "run_not_found" in pinfold("show", run)[2], got)
        # Ctrl-C asks for the end, which is told.
        t = Terminal([CLI, *words, tree], env)
        t.expect("The agent waits for a person")
        t.type("\x03")
        t.expect("The run's end is asked for")
        check("cancelled", t.wait() == 3)
        check("nothing of a token was ever said", mine not in t.text() and device not in t.text())
    finally:
        shutil.rmtree(home)


case("follow", main)
case("day", day)
done()
