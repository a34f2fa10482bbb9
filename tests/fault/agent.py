# Runs as the agent in a box. plan.json says what it does. It says once who it is, under a mark that no second
# execution could have, and of each event that was acknowledged in the next one.
import hashlib, http.client, json, os, signal, sys, threading, time

plan = json.load(open("plan.json"))
run, mark = os.environ["PINFOLD_RUN_ID"], os.urandom(8).hex()


def token(name):
    return open("/workspace/.pinfold-%s-token" % name).read().strip()


def call(method, path, bearer, body=None):
    """Status and answer; 0 where there is none."""
    try:
        c = http.client.HTTPConnection("127.0.0.1", 9797, timeout=20)
        c.request(method, "/internal/v1" + path, body and json.dumps(body),
                  {"Authorization": "Bearer " + bearer, "Content-Type": "application/json"})
        r = c.getresponse()
        return r.status, r.read()
    except (OSError, http.client.HTTPException):
        return 0, b""


def post(path, bearer, body):
    return call("POST", path, bearer, body)


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


def person(k):
    """Asks a person, does as is said, and tells what that was. False: to stop altogether."""
    global number
    request, effect = "%s-%d" % (mark, k), "execute"
    preview = "act %s" % (mark if plan["same"] else request)
    number += 1
    data = {"request_id": request, "action_id": "a", "effect": effect, "reason": "model_tool", "policy_reason": "ask", "preview": preview}
    line = json.dumps({"event_type": "approval.requested", "run_id": run, "task_id": run, "sequence": number, "data": data}) + "\n"
    status, end = 0, time.monotonic() + 20
    while status in (0, 429, 503) and time.monotonic() < end:
        status, _ = post("/runs/%s/events" % run, events, {"lines": [line]})
        status in (0, 429, 503) and time.sleep(0.2)
    if status != 202:
        return True
    # However long it takes: somebody else decides when it is over.
    while True:
        status, answer = call("GET", "/runs/%s/approvals/%s" % (run, request), approvals)
        if status == 200:
            break
        if status not in (0, 202, 429, 500, 503):
            return True
        time.sleep(0.1)
    said = json.loads(answer)
    event("chaos.heard", request=request, said=said.get("decision", said["status"]), digest=said.get("digest"),
          want=hashlib.sha256(effect.encode() + b"\0" + preview.encode()).hexdigest())
    return said.get("decision") != "cancel"


number, model, events, approvals = 0, token("run"), token("event"), token("approval")
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
for k in range(plan["asks"]):
    if not person(k):
        break
time.sleep(plan["sleep"])
with open("out.txt", "w") as f:
    f.write(mark + "\n")
event("chaos.ending")
sys.stdout.flush()
os._exit(plan["exit"])
