#!/usr/bin/python3
"""credential_mode = env: a real key in a box, for its agent alone, by both ways of delivery. The key is a canary: afterwards
nothing outside the box holds it, in any spelling that is looked for. Without either word, or unproven, there is no run.

Starts an instance of its own, whose provider demands that very key.
"""
import base64, glob, http.server, json, os, shutil, signal, subprocess, sys, tempfile, threading, urllib.parse

here = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
KEY = "sk-CANARY-" + os.urandom(16).hex()
NEXT = "sk-CANARY-next-" + os.urandom(16).hex()
SPELT = [KEY.encode(), base64.b64encode(KEY.encode()).rstrip(b"="), base64.b64encode(b"k=" + KEY.encode())[4:-4],
         base64.b64encode(b"k" + KEY.encode())[4:-4], KEY.encode().hex().encode(), urllib.parse.quote(KEY).encode(),
         "".join("%%%02x" % c for c in KEY.encode()).encode(), "".join("\\u%04x" % c for c in KEY.encode()).encode()]
shown = []


class Provider(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        shown.append(self.headers.get("Authorization"))
        good = shown[-1] == "Bearer " + KEY
        body = {"id": "1", "object": "chat.completion", "choices": [{"index": 0, "finish_reason": "stop", "message":
                {"role": "assistant", "content": "well"}}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}} if good else {"error": "no"}
        data = json.dumps(body).encode()
        self.send_response(200 if good else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


provider = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
threading.Thread(target=provider.serve_forever, daemon=True).start()
top = tempfile.mkdtemp(prefix="pinfold-keys.")
os.chmod(top, 0o711)
secrets = top + "/root/etc/pinfold/secrets"
os.makedirs(secrets, 0o755)
os.chmod(secrets, 0o700)


def secret(name, value):
    with open(os.open(f"{secrets}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
        f.write(value + "\n")


secret("canary", KEY)
secret("quoted", 'a "quote" and more than sixteen')
# What an agent does with its configuration: references become what they stand for.
RESOLVE = ("import os,re,json;r=lambda v:json.dumps(v)[1:-1];print(re.sub(r'{file:([^}]+)}',lambda m:r(open(m[1]).read()),"
           "re.sub(r'{env:(\\\\w+)}',lambda m:r(os.environ.get(m[1],'')),os.environ['CONF'])))")
assert len(RESOLVE) < 256
AGENT = """
agent "%s" {
	command = {"/usr/bin/python3", "/workspace/source/agent.py"}
	environment = {"PATH=/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8", "PINFOLD_MODEL_ID={model}", "PINFOLD_RUN_ID={run_id}"}
	token_delivery = "wire"
	memory_mb = 256
	pids = 64
	credential_mode = "env"
	credential_secret = {"WORKER_KEY=%s"}
	inline_config_variable = "CONF"
	inline_config = '{"url": "{gateway_url}", "key": "{%s:WORKER_KEY}"}'
	self_test = {"/usr/bin/python3", "-c", "%s"}
	version_command = {"/usr/bin/python3", "--version"}
}
"""
with open(here + "/extra.conf") as f:
    extra = f.read()
extra += "allow_env_credentials = yes\n" + 'tenant "keyed" {\n\tagent = "by-env"\n\tenv_credentials = yes\n}\n'
extra += AGENT % ("by-env", "canary", "env", RESOLVE) + AGENT % ("by-file", "canary", "file", RESOLVE)
extra += AGENT % ("unread", "canary", "env", "import os;print(os.environ['CONF'])") + AGENT % ("gone", "no-such-key", "env", RESOLVE)
# Without a self_test nothing is known of how it takes a quote: then it is not given one.
extra += (AGENT % ("quoted", "quoted", "env", RESOLVE)).replace("self_test =", "# self_test =")
extra += (AGENT % ("lenient", "canary", "env", RESOLVE)).replace("memory_mb", 'policy = "agent"\n\tmemory_mb')
with open(top + "/extra.conf", "w") as f:
    f.write(extra)
log = open(top + "/err", "w+")
up = subprocess.Popen([os.path.join(here, "../../quickstart"), "up", "--root", top + "/root", "--config", top + "/extra.conf",
                       "--upstream", "http://127.0.0.1:%d/v1" % provider.server_port, "--model", "scripted-1"],
                      stdout=subprocess.PIPE, stderr=log, text=True)
line = up.stdout.readline()
while line and not line.startswith("ready "):
    line = up.stdout.readline()
if line:
    os.environ.update(PINFOLD_URL=json.loads(line[6:])["url"], PINFOLD_INSTANCE=top + "/root",
                      PINFOLD_CLI=top + "/root/usr/bin/pinfold")
    from processes import *

    mine, keyed = token(), operator("token", "create", "--tenant", "keyed").strip()

COMMON = """
import base64, json, os, re, subprocess, sys, time, urllib.request, urllib.error
run, conf = os.environ["PINFOLD_RUN_ID"], json.loads(os.environ["CONF"]) if "{file:" not in os.environ["CONF"] else None
if conf:
    conf["key"] = os.environ["WORKER_KEY"]
else:
    conf = json.loads(re.sub(r"{file:([^}]+)}", lambda m: open(m[1]).read(), os.environ["CONF"]))
key = conf["key"]
def ask(path, body, bearer=None):
    head = {"Content-Type": "application/json"}
    if bearer:
        head["Authorization"] = "Bearer " + bearer
    r = urllib.request.Request("http://127.0.0.1:9797/internal/v1" + path, json.dumps(body).encode(), head)
    try:
        with urllib.request.urlopen(r, timeout=100) as a:
            return a.status
    except urllib.error.HTTPError as e:
        return e.code
def tell(kind, data):
    line = json.dumps({"event_type": kind, "run_id": run, "task_id": run, "sequence": 1, "data": data}) + chr(10)
    return ask("/runs/" + run + "/events", {"lines": [line]})
chat = {"model": os.environ["PINFOLD_MODEL_ID"], "messages": [{"role": "user", "content": "hello"}]}
"""
# Asks its model with its key, another and none; then says the key wherever it can.
SAYS = COMMON + """
said = [ask("/chat/completions", chat, k) for k in (key, "sk-another-that-is-long-enough", None)]
b64 = base64.b64encode(("x" + key).encode()).decode()
forms = [key, b64, key.encode().hex(), "".join("%%%02x" % c for c in key.encode())]
told = [tell("say", {"text": "it is " + f + ".", f: 1, "deep": [{"a": f}]}) for f in forms]
told.append(tell("say", {"text": key[:9] + chr(0x200b) + key[9:]}))
told.append(tell("approval.requested", {"request_id": "one", "action_id": "x", "effect": "execute", "reason": key, "policy_reason": b64,
                                         "preview": "curl -H " + key}))
tell("approval.requested", {"request_id": key.replace("sk-", "id-"), "preview": "x"})
ask("/" + key, {})
print(key, b64)
json.dump({"status": "completed", "summary": "the key is " + key}, open("/workspace/response.json", "w"))
child = subprocess.run(["/usr/bin/env"], capture_output=True, text=True).stdout
parent = subprocess.run(["/bin/sh", "-c", "cat /proc/$PPID/environ"], capture_output=True, text=True).stdout
left = [f for f in os.listdir("/workspace") if f.startswith(".pinfold-key")]
args = any(key in open("/proc/%s/cmdline" % p).read() for p in os.listdir("/proc") if p.isdigit() and os.path.exists("/proc/%s/cmdline" % p))
open("report.txt", "w").write(f"{said} {sorted(set(told))} child={key in child} parent={key in parent} files={left} argv={args}\\n")
"""
# A key where a field's name belongs.
FIELDS = COMMON + """
said = [ask("/chat/completions", {**chat, f: 1}, key) for f in (key, key + "-" + key, "x" + key)]
open("report.txt", "w").write(f"{said}\\n")
"""
WRITES = COMMON + 'open("report.txt", "w").write("the key: %s\\n" % base64.b64encode(key.encode()).decode())\n'


def run(agent, program, bearer=None):
    r = start(bearer or keyed, {"agent.py": program, "report.txt": "\n"}, agent=agent, allowed=["report.txt"], checks=GIT)
    return r, until(bearer or keyed, r)


def said(r):
    patch = artifact(keyed, r, "patch")
    return next((l[1:] for l in patch.splitlines() if l.startswith("+") and not l.startswith("+++")), patch)


def proven():
    wait_for(lambda: "by-file: substitution proven" in doctor() and "unread: not proven" in doctor())
    text = doctor()
    check("doctor: by environment it is proven, for its version", "agent by-env: substitution proven for version Python 3" in text, text[-2000:])
    check("doctor: by file as well", "agent by-file: substitution proven for version Python 3" in text)
    check("doctor: an agent that prints the reference is not", "agent unread: not proven" in text, text[-2000:])
    check("and an agent without a self_test is said to have none", "quoted: not proven: it has no self_test" in text)
    check("doctor warns of a key in boxes", "agent by-env gives a real key" in text)


def doctor():
    env = dict(os.environ, PINFOLD_ROOT=INSTANCE)
    return subprocess.run([CLI, "doctor", "--no-box"], env=env, capture_output=True, text=True).stdout


def uses():
    for agent, sees in (("by-env", "child=True parent=True"), ("by-file", "child=False parent=False")):
        shown.clear()
        r, v = run(agent, SAYS)
        check(f"{agent}: it completes, and the record says which mode", v["status"] == "completed" and v["credentialMode"] == "env", v)
        check(f"{agent}: the provider was shown the key, twice by nobody else", shown == ["Bearer " + KEY], len(shown))
        # What the children of a main process can see: docs/security.md says the same.
        check(f"{agent}: its own key alone is taken, and its children see what is said", said(r) ==
              f"[200, 401, 401] [202] {sees} files=[] argv=False", said(r))
        texts = [json.dumps(e) for e in events(keyed, r)]
        check(f"{agent}: masked in what it said", sum("[masked]" in t for t in texts) >= 6, texts)
        check(f"{agent}: masked in its summary", "[masked]" in v.get("summary", ""), v.get("summary"))
        audit = open(INSTANCE + "/var/log/pinfold/audit.log").read()
        prefix = __import__("hashlib").sha256(KEY.encode()).hexdigest()[:16]
        check(f"{agent}: the audit log has the key's name and digest", any('"credential.given"' in l and r in l and f"canary sha256:{prefix}" in l
              for l in audit.splitlines()))


def fields():
    r, v = run("lenient", FIELDS)
    texts = [e["data"] for e in events(keyed, r) if e["event_type"] == "agent.fields_left_out"]
    check("a key in place of a field's name is masked in what is told of it", said(r) == "[200, 200, 200]" and texts and
          KEY[:20] not in json.dumps(texts) and "masked" in json.dumps(texts), (said(r), texts))


def refused():
    r, v = run("by-env", WRITES)
    check("a file that holds it: refused and not kept", (v["status"], v["terminalReason"]) == ("failed", "credential_in_result"), v)
    check("no patch with it", "report.txt" not in artifact(keyed, r, "patch"))
    status, _, body = call("POST", "/v1/runs", {"instruction": "x", "agent": "by-env", "files": [{"path": "a.py", "content": ""}],
                                                "allowedPaths": ["a.py"], "checks": GIT}, mine)
    check("without the tenant's word: 403", (status, json.loads(body)["error"]) == (403, "env_credentials_not_allowed"), body)
    for agent, error in (("unread", "agent_not_proven"), ("gone", "credential_unavailable"), ("quoted", "credential_unavailable")):
        _, v = run(agent, "")
        check(f"{agent}: its run fails with {error}", (v["status"], v.get("error")) == ("failed", error), v)
    _, v = run("script", "", mine)
    check("an ordinary run is of mode broker", v["credentialMode"] == "broker", v)


def nowhere():
    """The canary in files, command lines and environments of everything outside of boxes."""
    found = []
    for base in (INSTANCE, top + "/err", "/run/pinfold", "/var/log/pinfold", *glob.glob("/dev/shm/*")):
        for path, _, files in os.walk(base) if os.path.isdir(base) else [(os.path.dirname(base), [], [os.path.basename(base)])]:
            for f in files:
                full = os.path.join(path, f)
                if os.path.isfile(full) and not os.path.islink(full) and full != secrets + "/canary":
                    with open(full, "rb") as h:
                        data = h.read()
                    found += [(full, i) for i, s in enumerate(SPELT) if s in data]
    me = {os.getpid()}
    for p in pids():
        for what in ("cmdline", "environ"):
            try:
                data = open(f"/proc/{p}/{what}", "rb").read()
            except OSError:
                continue
            found += [(p, what)] if p not in me and any(s in data for s in SPELT) else []
    check("the key is in no file, argument or environment", not found, found)
    check("and in no answer of the service", not any(s in call("GET", path, bearer=keyed)[2] for s in SPELT
          for path in ["/v1/runs", "/v1/limits", "/v1/model-profiles", "/v1/inbox"]))


def without_the_operator():
    conf = INSTANCE + "/etc/pinfold/pinfold.conf"
    text = open(conf).read()
    with open(conf, "w") as f:
        f.write(text.replace("allow_env_credentials = yes", "allow_env_credentials = no"))
    kill("pinfold-sandboxd")
    ready()
    status, _, body = call("POST", "/v1/runs", {"instruction": "x", "agent": "by-env", "files": [{"path": "a.py", "content": ""}],
                                                "allowedPaths": ["a.py"], "checks": GIT}, keyed)
    check("without the operator's word: 403", (status, json.loads(body)["error"]) == (403, "env_credentials_not_allowed"), body)
    check("and doctor says so", "allow_env_credentials" in doctor())


def a_key_itself():
    conf = INSTANCE + "/etc/pinfold/pinfold.conf"
    with open(conf, "a") as f:
        f.write('agent "literal" {\n\tcommand = {"/bin/true"}\n\tenvironment = {"KEY=%s"}\n}\n' % KEY)
    env = dict(os.environ, PINFOLD_ROOT=INSTANCE)
    r = subprocess.run([CLI, "config", "check"], env=env, capture_output=True, text=True)
    check("a key itself in a profile is refused, and not told", r.returncode != 0 and "literal" in r.stderr and KEY not in r.stderr + r.stdout,
          (r.returncode, r.stderr[-500:]))


try:
    if line:
        for f in (proven, uses, fields, refused, nowhere, without_the_operator, a_key_itself):
            case(f.__name__, f)
finally:
    up.terminate()
    up.wait()
    log.seek(0)
    text = log.read()
    shutil.rmtree(top, ignore_errors=True)
    if not line:
        print("FAIL the instance does not start\n" + text[-3000:])
        sys.exit(1)
    if failed:
        print(text[-4000:])
done()
