#!/usr/bin/python3
"""Budgets under fire, from inside a box: whatever is killed while 32 callers share 4 model requests, the provider sees no
fifth, no unit comes back, and what the provider counted is what the run says. And a call under way ends with its run.

Starts an instance of its own, whose provider is tests/gateway/tap.py. usage: t_budget.py [SEED]
"""
import json, os, random, subprocess, sys, tempfile, shutil, time

here = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(here, "..", "gateway"))
from tap import Tap

tap = Tap(delay=0.3)
top = tempfile.mkdtemp(prefix="pinfold-budget.")
os.chmod(top, 0o711)
log = open(top + "/err", "w+")
up = subprocess.Popen([os.path.join(here, "../../quickstart"), "up", "--root", top + "/root", "--config", here + "/extra.conf",
                       "--upstream", tap.url, "--model", "scripted-1"], stdout=subprocess.PIPE, stderr=log, text=True)
line = up.stdout.readline()
while line and not line.startswith("ready "):
    line = up.stdout.readline()
if line:
    os.environ.update(PINFOLD_URL=json.loads(line[6:])["url"], PINFOLD_INSTANCE=top + "/root",
                      PINFOLD_CLI=top + "/root/usr/bin/pinfold")
    from processes import *
    from asking import *
    from asking import begin as begin_asking

    mine = token()

COMMON = """
import json, os, subprocess, sys, threading, time, urllib.error, urllib.request
url, run = os.environ["PINFOLD_MODEL_GATEWAY_URL"], os.environ["PINFOLD_RUN_ID"]
model, events = (open("/workspace/.pinfold-%s-token" % n).read().strip() for n in ("run", "event"))
def call(text):
    body = {"model": os.environ["PINFOLD_MODEL_ID"], "messages": [{"role": "user", "content": text + " of " + run}]}
    r = urllib.request.Request(url + "/chat/completions", json.dumps(body).encode(),
                               {"Authorization": "Bearer " + model, "Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(r, timeout=100) as a:
            a.read()
            return "%d" % a.status
    except urllib.error.HTTPError as e:
        return "%d %s" % (e.code, json.load(e)["error"])
    except Exception:
        return "lost"
def tell(kind, data):
    line = json.dumps({"event_type": kind, "run_id": run, "task_id": run, "sequence": 1, "data": data}) + "\\n"
    urllib.request.urlopen(urllib.request.Request(url + "/runs/" + run + "/events", json.dumps({"lines": [line]}).encode(),
                           {"Authorization": "Bearer " + events, "Content-Type": "application/json"}))
"""
# 32 callers, each until it is told something: a call that was lost is made again, so that a unit that came back would be spent.
BURST = COMMON + """
got, lock = {}, threading.Lock()
def one(n):
    time.sleep(n * 0.01)
    said = "lost"
    while said in ("lost", "503 store_unavailable"):
        said = call("burst")
        with lock:
            got[said] = got.get(said, 0) + 1
threads = [threading.Thread(target=one, args=(n,)) for n in range(32)]
for t in threads: t.start()
for t in threads: t.join()
got["after"] = call("burst")
json.dump(got, open("report.json", "w"))
"""
OVER = "429 model_request_budget_exhausted"


def begin(agent):
    return executing(mine, {"agent.py": agent, "report.json": "{}\n"}, allowed=["report.json"],
                     limits={"maxSteps": 2, "wallTimeSeconds": 200})


def report(run):
    v = until(mine, run)
    line = [l for l in artifact(mine, run, "patch").splitlines() if l.startswith("+{")]
    return v, json.loads(line[0][1:]) if line else {}


def burst(names, after):
    """One burst; the named processes are killed one after the other, each so many seconds after the provider's first request."""
    run = begin(BURST)
    wait_for(lambda: tap.asked("burst of " + run))
    for name in names:
        time.sleep(after)
        kill(name)
    v, got = report(run)
    what = f"{'+'.join(names) or 'nobody'} killed after {after:.3f} s"
    seen, used = tap.asked("burst of " + run), v["usage"]["modelRequests"]
    check(f"{what}: the run completes", v["status"] == "completed", (v, got))
    check(f"{what}: all four units are spent, whatever became of the calls", used == 4 and got.get("after") == OVER, (used, got))
    lost = sum(n.endswith("gateway") for n in names) > 0
    check(f"{what}: the provider saw {seen}", seen <= 4 if lost else seen == 4, seen)
    check(f"{what}: what was answered was asked", got.get("200", 0) <= seen if lost else got.get("200") == 4, got)
    called = [e["data"] for e in events(mine, run) if e["event_type"] == "model.called"]
    check(f"{what}: the run's own lines agree", len(called) <= seen if lost else len(called) == 4, called)
    check(f"{what}: nothing else was said", set(got) <= {"200", OVER, "lost", "503 store_unavailable", "after"}, got)


def bursts():
    chance = random.Random(seed)
    burst([], 0)
    for names in (["pinfold-gateway"], ["pinfold-stored"], ["pinfold-stored"], ["pinfold-gateway", "pinfold-stored"],
                  ["pinfold-stored", "pinfold-gateway", "pinfold-stored"]):
        burst(names, chance.uniform(0, 0.35))
        ready()


def steward_killed():
    run = begin(BURST)
    wait_for(lambda: tap.asked("burst of " + run))
    kill("pinfold-steward")
    v = until(mine, run)
    check("a steward that dies fails the run", (v["status"], v["error"]) == ("failed", "controller_restarted"), v)
    wait_for(lambda: not in_boxes())
    seen = tap.asked("burst of " + run)
    v = until(mine, run)
    check("and what was spent stays", seen <= v["usage"]["modelRequests"] <= 4, (seen, v))
    ready()


def cancelled_under_way():
    for kind in ("HANG", "DRIP"):
        run = begin(COMMON + f"call('{kind}')\n")
        text = f"{kind} of {run}"
        check(f"a call that {kind}s is under way", wait_for(lambda: tap.asked(text)))
        other = tap.lost(text)
        call("POST", f"/v1/runs/{run}/cancel", b"", mine)
        check("nobody hung up before", other == 0)
        check("cancelling hangs up on the provider", wait_for(lambda: tap.lost(text)))
        v = until(mine, run)
        check("the run is cancelled and its unit stays spent", (v["status"], v["usage"]["modelRequests"]) == ("cancelled", 1), v)
        said = [e["data"]["outcome"] for e in events(mine, run) if e["event_type"] == "model.called"]
        check("and it says what became of the call", set(said) <= {"inactive_run_token", "client_left"}, said)


# Its child calls by itself, with the token that can be read only once; it dies when its call has long been sent.
CHILD = COMMON + """
def child():
    print("calls", flush=True)
    call("HANG")
r, w = os.pipe()
pid = os.fork()
if pid == 0:
    os.dup2(w, 1)
    child()
    os._exit(0)
os.read(r, 1)
time.sleep(3)
os.kill(pid, 9)
os.waitpid(pid, 0)
json.dump({"after": call("plain")}, open("report.json", "w"))
"""


def client_dies():
    """A process in the box dies with its call; the run goes on."""
    run = begin(CHILD)
    check("a call of a process that is killed is hung up on", wait_for(lambda: tap.lost("HANG of " + run)))
    v, got = report(run)
    check("its unit stays spent and the run goes on", (v["usage"]["modelRequests"], got) == (2, {"after": "200"}), (v, got))


LEAK = COMMON + """
approval = open("/workspace/.pinfold-approval-token").read().strip()
tell("leak", {"model": model, "events": events, "approvals": approval})
call("HANG")
"""


def tokens_outside():
    """A run's tokens are none outside of its box: one answer everywhere."""
    run = begin(LEAK)
    leak = lambda: [e["data"] for e in events(mine, run) if e["event_type"] == "leak"]
    tokens = wait_for(leak)[0]
    routes = [("GET", "/v1/runs", None), ("GET", f"/v1/runs/{run}", None), ("GET", f"/v1/runs/{run}/events", None),
              ("POST", f"/v1/runs/{run}/cancel", b""), ("POST", f"/v1/runs/{run}/approvals/a", {"decision": "deny"}),
              ("GET", f"/v1/runs/{run}/approvals", None), ("GET", f"/v1/runs/{run}/artifacts", None),
              ("GET", f"/v1/runs/{run}/artifacts/patch", None), ("DELETE", f"/v1/runs/{run}", None), ("POST", "/v1/runs", {})]
    bodies = set()
    for audience in ("model", "events", "approvals"):
        for method, path, body in routes:
            status, _, text = call(method, path, body, tokens[audience])
            said = json.loads(text)
            said.pop("requestId", None)
            bodies.add((status, json.dumps(said)) if status != 404 or "approvals" not in path else "no such route yet")
    bodies.discard("no such route yet")
    check("each of a run's tokens is 401 at each public route, in the same words", len(bodies) == 1 and min(bodies)[0] == 401, bodies)
    for path in ("/internal/v1/models", "/internal/v1/chat/completions", f"/internal/v1/runs/{run}/events"):
        check(f"{path} is nothing outside of a box", call("GET", path, None, tokens["model"])[0] == 404)
    call("POST", f"/v1/runs/{run}/cancel", b"", mine)
    until(mine, run)


ASKS = """
def model(text):
    body = {"model": os.environ["PINFOLD_MODEL_ID"], "messages": [{"role": "user", "content": text + " of " + run}]}
    return call("POST", "/internal/v1/chat/completions", tok["run"], json.dumps(body))[0]
import threading
answers = []
t = threading.Thread(target=lambda: answers.append(model("HOLD")))
t.start()
ask("q1", "make test")
tell(q1=wait("q1"))
t.join()
tell(model=answers)
"""


def asks_beside_a_call():
    """No agent is frozen beside a model call of its own; when that has ended, it is."""
    run = begin_asking(ASKS)
    text = f"HOLD of {run}"
    check("a call that is held is under way", wait_for(lambda: tap.asked(text)))
    waiting(run, "q1")
    group = group_of(wait_for(lambda: agent_of(run)))
    seen = []
    for _ in range(30):
        time.sleep(0.1)
        seen.append(frozen(group))
    check("it is not frozen beside it", not any(seen) and not tap.lost(text), seen)
    tap.release()
    check("it is when the call has ended", wait_for(lambda: frozen(group)))
    answer(run, "q1", "allow_once")
    check("and goes on with both answers", (hears(run, "q1")[2], hears(run, "model")) == ("allow_once", [200]), told(run))
    check("to its end", until(mine, run)["status"] == "completed")


# One call after the other until there are no tokens left, or one whose cost nobody will ever know.
COUNTS = COMMON + """
got = [call("SHUT")]
while got[-1][:3] in ("200", "502", "503"):
    got.append(call("plain"))
json.dump({"got": got}, open("report.json", "w"))
"""
UNKNOWN = COMMON + """
got = [call("KIND")]
while got[-1][:3] != "429":
    try:
        got.append(call("plain"))
    except OSError:
        time.sleep(0.1)
json.dump({"got": got}, open("report.json", "w"))
"""
LIMIT, ADDED = 5300, 4096 + 1000  # of tenant "counted"; to the bytes of a body


def tokens_are_counted():
    """To the token what the provider's own log says, and never more than the limit with what a call could cost."""
    counted = operator("token", "create", "--tenant", "counted", "--label", "budget").strip()
    check("told", get("/v1/limits", counted)[1]["tenant"]["tokensRun"] == LIMIT)

    def goes(agent, kill_at=None):
        run = executing(counted, {"agent.py": agent, "report.json": "{}\n"}, allowed=["report.json"],
                        limits={"maxSteps": 20, "wallTimeSeconds": 200})
        if kill_at:
            wait_for(lambda: tap.asked(kill_at + run))
            kill("pinfold-gateway")
        v = until(counted, run)
        lines = [l for l in artifact(counted, run, "patch").splitlines() if l.startswith("+{")]
        u = v["usage"]
        seen = [len(t) for t in tap.seen if " of " + run in t]
        return json.loads(lines[0][1:])["got"], seen, [u[k] for k in ("modelRequests", "promptTokens", "completionTokens", "reservedTokens", "maxTokens")]

    got, seen, usage = goes(COUNTS)
    plain = len(seen) - 1
    check("as many calls as fit, and the failed one costs its unit alone", got[1:] == ["200"] * plain + ["429 model_token_budget_exhausted"] and
          plain == (LIMIT - seen[1] - ADDED) // 10 + 1 and plain > 1, (got, seen))
    check("the run says what the provider counted", usage == [plain + 1, 7 * plain, 3 * plain, 0, LIMIT], (usage, seen))
    got, seen, usage = goes(UNKNOWN.replace("KIND", "CUT"))
    check("an answer that was cut off costs all that it could", usage == [1, 0, 0, seen[0] + ADDED, LIMIT] and len(seen) == 1 and
          got[1] == "429 model_token_budget_exhausted", (got, seen, usage))
    got, seen, usage = goes(UNKNOWN.replace("KIND", "HANG"), "HANG of ")
    check("so does one whose gateway died", usage == [1, 0, 0, seen[0] + ADDED, LIMIT] and len(seen) == 1 and
          got[-1] == "429 too_many_model_calls", (got, seen, usage))
    ready()


seed = int(sys.argv[1]) if len(sys.argv) > 1 else random.randrange(1 << 32)
try:
    if not line:
        log.seek(0)
        print("the instance did not start\n" + log.read()[-3000:])
        sys.exit(1)
    print(f"seed {seed}")
    for f in (bursts, steward_killed, cancelled_under_way, client_dies, tokens_outside, asks_beside_a_call, tokens_are_counted):
        case(f.__name__, f)
    done()
finally:
    up.terminate()
    up.wait()
    shutil.rmtree(top, ignore_errors=True)
