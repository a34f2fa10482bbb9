# An agent that does what a test tells it. Orders are files /tmp/do/N.json, which the test lays into the box, answers
# /tmp/did/N.json. It ends when told to, or when nobody has told it anything for a long time.
import http.client, json, os, time

run, n = os.environ["PINFOLD_RUN_ID"], 0
tok = {k: open("/workspace/.pinfold-%s-token" % k).read().strip() for k in ("run", "event", "approval")}


def call(method, path, token, body=None):
    c = http.client.HTTPConnection("127.0.0.1", 9797, timeout=60)
    c.request(method, "/internal/v1/runs/%s%s" % (run, path), body and json.dumps(body),
              {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    r = c.getresponse()
    text = r.read()
    try:
        return r.status, json.loads(text)
    except ValueError:
        return r.status, {}


def events(rows):
    global n
    lines = []
    for kind, data in rows:
        n += 1
        lines.append(json.dumps({"event_type": kind, "run_id": run, "task_id": run, "sequence": n, "data": data}) + "\n")
    return call("POST", "/events", tok["event"], {"lines": lines})


def do_event(o):
    return events([(o["kind"], o["data"])])


def do_many(o):
    """count events of this kind, so many a call."""
    left, i = o["count"], 0
    while left > 0:
        k = min(left, o.get("at_once", 50))
        status, a = events([(o["kind"], {"i": i + j, "text": o.get("text", "")}) for j in range(k)])
        if status != 202 or a["accepted"] != k:
            return status, a
        left, i = left - k, i + k
        time.sleep(o.get("pause", 0))
    return 202, a


def do_ask(o):
    return events([("approval.requested", {"effect": "execute", "reason": "model_tool", **q}) for q in o["questions"]])


def do_poll(o):
    return call("GET", "/approvals/" + o["id"], tok["approval"])


def do_wait(o):
    while True:
        status, a = do_poll(o)
        if status != 202:
            return status, a
        time.sleep(0.1)


def do_write(o):
    path = "/workspace/source/" + o["path"]
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(o["content"])
    return 200, {}


os.makedirs("/tmp/did")
os.makedirs("/tmp/do")
order, last = 1, time.monotonic()
while time.monotonic() - last < 200:
    try:
        with open("/tmp/do/%d.json" % order) as f:
            o = json.load(f)
    except FileNotFoundError:
        time.sleep(0.02)
        continue
    if o["do"] == "end":
        raise SystemExit(o.get("code", 0))
    status, a = globals()["do_" + o["do"]](o)
    with open("/tmp/did/new", "w") as f:
        json.dump({**a, "http": status}, f)
    os.rename("/tmp/did/new", "/tmp/did/%d.json" % order)
    order, last = order + 1, time.monotonic()
