#!/usr/bin/python3 -B
"""pinfold events -f and pinfold run over the real stream, whose connections are cut at any byte, and whose service is killed:
each event once, in order, to the end."""
import random, select, socket, subprocess, threading, urllib.parse
from processes import *

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


case("follow", main)
done()
