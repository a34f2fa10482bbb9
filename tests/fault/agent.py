# Runs as the agent in a box. plan.json says what it does. It says once who it is, under a mark that no second
# execution could have, and of each event that was acknowledged in the next one.
import http.client, json, os, signal, sys, threading, time

plan = json.load(open("plan.json"))
run, mark = os.environ["PINFOLD_RUN_ID"], os.urandom(8).hex()


def token(name):
    return open("/workspace/.pinfold-%s-token" % name).read().strip()


def post(path, bearer, body):
    """Status and answer; 0 where there is none."""
    try:
        c = http.client.HTTPConnection("127.0.0.1", 9797, timeout=20)
        c.request("POST", "/internal/v1" + path, json.dumps(body),
                  {"Authorization": "Bearer " + bearer, "Content-Type": "application/json"})
        r = c.getresponse()
        return r.status, r.read()
    except (OSError, http.client.HTTPException):
        return 0, b""


acknowledged = {"n": 0, "at": 0}


def event(kind, **data):
    global number
    number += 1
    data.update(n=number, mark=mark, acknowledged=dict(acknowledged))
    line = json.dumps({"event_type": kind, "run_id": run, "task_id": run, "sequence": number, "data": data}) + "\n"
    for _ in range(3):
        status, answer = post("/runs/%s/events" % run, events, {"lines": [line]})
        if status == 202:
            acknowledged.update(n=number, at=json.loads(answer)["lastSequence"])
        if status not in (0, 503):
            return
        time.sleep(0.1)


def ask(first, step):
    for i in range(first, plan["calls"], step):
        what = plan["what"][i % len(plan["what"])]
        text = "chaos run=%s mark=%s call=%d what=%s" % (run, mark, i, what)
        post("/chat/completions", model, {"model": os.environ["PINFOLD_MODEL_ID"], "messages": [{"role": "user", "content": text}]})


number, model, events = 0, token("run"), token("event")
if plan["stubborn"]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(plan["tree"]):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(300)
        time.sleep(300)
        os._exit(0)
event("chaos.started", nonce=plan["nonce"])
threads = [threading.Thread(target=ask, args=(k, plan["parallel"])) for k in range(plan["parallel"])]
for t in threads:
    t.start()
for k in range(plan["events"]):
    event("chaos.note", k=k)
for t in threads:
    t.join()
time.sleep(plan["sleep"])
with open("out.txt", "w") as f:
    f.write(mark + "\n")
event("chaos.ending")
sys.stdout.flush()
os._exit(plan["exit"])
