#!/usr/bin/python3 -B
"""Web Push from end to end: an agent asks, a scripted push service gets what the device's browser alone can open, the answer
retracts it; who is gone is forgotten; the key is in no file but its own."""
import shutil, subprocess, sys, tempfile
from processes import *

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../push"))
from service import Browser, Service, b64, certificates, unb64, verified

HOST, CONTACT, LINK = "push.example.net", "mailto:ops@example.org", "/v1/push/subscriptions"
CONF = INSTANCE + "/etc/pinfold/pinfold.conf"
ASKS = '''
import http.client, json, os, time
tok = {n: open("/workspace/.pinfold-%s-token" % n).read().strip() for n in ("event", "approval")}
run = os.environ["PINFOLD_RUN_ID"]
def call(method, path, token, body=None):
    c = http.client.HTTPConnection("127.0.0.1", 9797, timeout=60)
    c.request(method, path, body, {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    r = c.getresponse()
    return r.status, json.loads(r.read())
for n, id in enumerate(os.environ.get("IDS", "q1 q2").split()):
    line = json.dumps({"event_type": "approval.requested", "run_id": run, "task_id": run, "sequence": n + 1, "data": {
        "request_id": id, "action_id": "call", "effect": "execute", "reason": "CANARY-reason", "policy_reason": "CANARY-rule", "preview": "CANARY-preview"}}) + "\\n"
    call("POST", "/internal/v1/runs/%s/events" % run, tok["event"], json.dumps({"lines": [line]}))
    while call("GET", "/internal/v1/runs/%s/approvals/%s" % (run, id), tok["approval"])[0] == 202:
        time.sleep(0.1)
'''

folder = tempfile.mkdtemp(prefix="pf-push-tls.")
os.chmod(folder, 0o755)
certificates(folder, HOST)
service = Service(folder)
browser = Browser(f"https://{HOST}/201/endpoint-CANARY")
mine, phone = token(), token("device-token")
secret = open(INSTANCE + "/etc/pinfold/secrets/vapid").read().strip()


def restart():
    before = {n: pid_of(n) for n in (*CHILDREN, "pinfold-sandboxd")}
    os.kill(before["pinfold-sandboxd"], signal.SIGTERM)
    return wait_for(lambda: all(pid_of(n) not in (None, p) for n, p in before.items()) and answers() == 200)


def state():
    status, _, body = call("GET", LINK, bearer=phone)
    return status, json.loads(body)


def subscribe(b, **more):
    status, _, body = call("POST", LINK, {**b.subscription(), **more}, phone)
    return status, json.loads(body)


def heard(path, n):
    """What came to it, opened, when there are n of them."""
    wait_for(lambda: len(service.at(path)) >= n)
    return [json.loads(t) if t else t for t in browser.opens(*[r.body for r in service.at(path)])]


def decide(run, request):
    return call("POST", f"/v1/runs/{run}/approvals/{request}", {"decision": "allow_once"}, phone)[0]


check("without a contact there is no push", state()[0] == 503 and state()[1]["error"] == "push_not_ready", state())
was = open(CONF).read()
try:
    with open(CONF, "a") as f:
        f.write(f'push_contact = "{CONTACT}"\npush_hosts = {{"{HOST}"}}\npush_ca_file = "{folder}/ca.pem"\npush_unsafe_loopback_port = {service.port}\n')
    check("the service is up with push", restart())
    wait_for(lambda: state()[0] == 200)
    status, o = state()
    check("a key for browsers", status == 200 and len(unb64(o["publicKey"])) == 65 and o["subscribed"] is False, o)
    key = unb64(o["publicKey"])
    for what, url, error in (("a service that is not known", "https://push.elsewhere.net/a", "push_host_not_allowed"),
                             ("this machine", "https://127.0.0.1/a", "invalid_push_endpoint"),
                             ("another port", f"https://{HOST}:8443/a", "invalid_push_endpoint")):
        status, o = subscribe(browser, endpoint=url)
        check(f"refused: {what}", status == 400 and o["error"] == error, (status, o))
    check("subscribed", subscribe(browser)[0] == 201 and state()[1]["subscribed"] is True, state())

    run = start(mine, {"agent.py": ASKS}, agent="script", checks=GIT)
    texts = heard("/201/endpoint-CANARY", 1)
    check("the question is pushed, by its ids alone", texts[:1] == [{"kind": "card", "runId": run, "requestId": "q1", "tag": texts[0] and texts[0]["tag"], "count": 1}], texts)
    r = service.at("/201/endpoint-CANARY")[0]
    claims, point = verified(r.headers["authorization"], "https://" + HOST, CONTACT)
    check("signed by the key that the browser was given", point == key, claims)
    check("it may wait six hours, and is urgent", 0 < int(r.headers["ttl"]) <= 21600 and r.headers["urgency"] == "high", r.headers)
    topic = r.headers["topic"]
    check("under a topic that every service takes", len(topic) <= 32 and len(topic) % 4 != 1 and topic == texts[0]["tag"], topic)
    check("the answer", decide(run, "q1") == 200)
    texts = heard("/201/endpoint-CANARY", 3)
    check("retracts it, and the next is pushed", {(t["kind"], t["requestId"]) for t in texts[1:]} == {("clear", "q1"), ("card", "q2")}, texts)
    clear = next(t for t in texts if t["kind"] == "clear")
    check("under the same tag", clear["tag"] == topic and clear["runId"] == run, clear)
    check("every body has the same length", len({len(r.body) for r in service.requests}) == 1)

    # The sender dies, and another one takes its place.
    kill("pinfold-push")
    check("its key is there again", wait_for(lambda: state()[0] == 200) and unb64(state()[1]["publicKey"]) == key)
    service.script["/201/endpoint-CANARY"] = ["410"]
    check("the second answer", decide(run, "q2") == 200)
    texts = heard("/201/endpoint-CANARY", 4)
    check("is told after a restart", texts[3]["kind"] == "clear" and texts[3]["requestId"] == "q2", texts)
    check("who is gone is forgotten", wait_for(lambda: state()[1]["subscribed"] is False))
    until(mine, run)

    rows = json.loads(subprocess.run([CLI, "doctor", "--json", "--no-box"], env={**os.environ, "PINFOLD_ROOT": INSTANCE}, capture_output=True, text=True).stdout)["checks"]
    rows = {c["id"]: c for c in rows}
    check("doctor warns of the test's port", rows["push.sink"]["status"] == "warn" and str(service.port) in rows["push.sink"]["detail"], rows["push.sink"])
    check("and sees the process", rows["service.processes"]["status"] == "ok", rows["service.processes"])
    found = []
    for root in (INSTANCE + "/var", INSTANCE + "/run", INSTANCE + "/etc"):
        for at, _, names in os.walk(root):
            for name in names:
                path = os.path.join(at, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    data = open(path, "rb").read()
                    found += [(path, "key")] * (path != INSTANCE + "/etc/pinfold/secrets/vapid" and (secret.encode() in data or unb64(secret) in data))
                    found += [(path, "endpoint")] * (b"endpoint-CANARY" in data and "/store/" not in path)
    check("the key is in no file but its own, an endpoint in none but the store's", not found, found)
    for n in (*CHILDREN, "pinfold-sandboxd"):
        seen = b"".join(open(f"/proc/{pid_of(n)}/{f}", "rb").read() for f in ("cmdline", "environ"))
        check(f"nor in what {n} was started with", secret.encode() not in seen)
finally:
    with open(CONF, "w") as f:
        f.write(was)
    check("the service is up without push", restart())
check("and there is none", state()[0] == 503, state())
shutil.rmtree(folder)
done()
