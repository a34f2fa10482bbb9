#!/usr/bin/python3 -B
"""Configuration and secrets change while everything goes on: nothing is dropped, nothing is half changed.

usage: t_reload.py [ROUNDS]
"""
import glob, http.server, re, threading
from processes import *
from asking import begin as begin_asking, waiting, answer, phone

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 12
ETC = glob.glob(INSTANCE + "/etc/pinfold")[0] if glob.glob(INSTANCE + "/etc/pinfold") else INSTANCE + "/usr/etc/pinfold"
SECRETS = ETC + "/secrets"
MAIN = ETC + "/pinfold.conf"
mine = token()
keys = []


class Upstream(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        keys.append(self.headers.get("authorization"))
        body = json.dumps({"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
threading.Thread(target=server.serve_forever, daemon=True).start()


def cli(*words, given=None):
    """(status, output, errors)"""
    r = subprocess.run([CLI, *words], env=dict(os.environ, PINFOLD_ROOT=INSTANCE, A_KEY="third-key"), input=given, capture_output=True, text=True)
    return r.returncode, r.stdout, r.stderr


def write(path, text, mode=0o644):
    with open(path + ".part", "w") as f:
        f.write(text)
    os.chmod(path + ".part", mode)
    os.rename(path + ".part", path)


def settings(text):
    write(MAIN, as_it_was + text)


def reload():
    return cli("config", "reload")


MINE = """
provider "fresh" {{
	base_url = "http://127.0.0.1:{port}/v1"
	secret = "reload-key"
	allow_plain_loopback = yes
}}
model_profile "fresh" {{
	provider = "fresh"
	model = "fresh-1"
}}
tenant "{tenant}" {{
	agent = "script"
	model_profile = "fresh"
	max_concurrent_runs = 4
	max_steps = 1000
}}
"""

# Asks its model until a minute is over or it is told to end; a refusal is its failure.
AGENT = """
import json, os, sys, time, urllib.request
url = os.environ["PINFOLD_MODEL_GATEWAY_URL"]
model = open("/workspace/.pinfold-run-token").read().strip()
for i in range(%d):
    body = {"model": os.environ["PINFOLD_MODEL_ID"], "messages": [{"role": "user", "content": "go on"}]}
    r = urllib.request.Request(url + "/chat/completions", json.dumps(body).encode(),
                               {"Authorization": "Bearer " + model, "Content-Type": "application/json"})
    try:
        urllib.request.urlopen(r, timeout=100).read()
    except Exception as e:
        print(e, getattr(e, "read", lambda: b"")(), file=sys.stderr)
        sys.exit(1)
    time.sleep(0.1)
open("/workspace/source/done.py", "w").write("print(1)\\n")
"""


def run_under(t, calls):
    return start(t, {"agent.py": AGENT % calls, "done.py": ""}, agent="script", allowed=["done.py"],
                 checks=[["git", "diff", "--check"]], limits={"maxSteps": calls + 10, "wallTimeSeconds": 120})


def tokens_of(tenant):
    return operator("token", "create", "--tenant", tenant).strip()


class Load(threading.Thread):
    """Requests and a stream, all the time."""

    def __init__(self, t, run):
        super().__init__(daemon=True)
        self.t, self.run_id, self.bad, self.n, self.stop = t, run, [], 0, False

    def run(self):
        while not self.stop:
            for path in ("/v1/runs/" + self.run_id, "/v1/limits", "/v1/model-profiles", f"/v1/runs/{self.run_id}/events"):
                try:
                    status = call("GET", path, bearer=self.t)[0]
                except Exception as e:
                    status = repr(e)
                if status != 200:
                    self.bad.append((status, path))
                self.n += 1


def pid_list():
    return {n: pid_of(n) for n in CHILDREN}


with open(MAIN) as f:
    as_it_was = f.read()
write(SECRETS + "/reload-key", "first-key\n", 0o600)
try:
    # --- one more tenant, profile and provider, in force without a restart
    before = pid_list()
    settings(MINE.format(port=server.server_address[1], tenant="fresh"))
    status, out, err = reload()
    check("a provider, a profile and a tenant more are in force", status == 0 and "in force" in out, (out, err))
    fresh = tokens_of("fresh")
    check("the tenant's token works", get("/v1/limits", fresh)[0] == 200)
    profiles = lambda: {p["id"]: p["ready"] for p in get("/v1/model-profiles", fresh)[1]["profiles"]}
    check("its profile is ready", wait_for(lambda: profiles().get("fresh") is True), profiles())

    # --- everything changes under load
    run = run_under(fresh, 60)
    loads = [Load(fresh, run), Load(fresh, run)]
    for l in loads:
        l.start()
    wait_for(lambda: len(keys) > 3)
    status, out, err = cli("secret", "rotate", "reload-key", given="second-key\n")
    check("a provider's key is rotated from standard input", status == 0 and "second" not in out + err, (out, err))
    check("the one in use stays", set(keys[-2:]) == {"Bearer first-key"}, keys[-2:])
    check("a second rotation is refused", cli("secret", "rotate", "reload-key", given="x\n")[0] == 1)
    check("promoted", cli("secret", "promote", "reload-key")[0] == 0)
    n = len(keys)
    wait_for(lambda: len(keys) > n + 2)
    check("the new key is used from the next call on", set(keys[n + 1:]) == {"Bearer second-key"}, keys[n:])
    check("dropped", cli("secret", "drop", "reload-key")[0] == 0 and not os.path.exists(SECRETS + "/reload-key.next"))
    status, out, err = cli("secret", "rotate", "run-token")
    check("run tokens get a next secret", status == 0 and os.stat(SECRETS + "/run-token.next").st_mode & 0o777 == 0o600, err)
    check("and it signs", cli("secret", "promote", "run-token")[0] == 0)
    check("the old one is not dropped while a run holds its tokens", cli("secret", "drop", "run-token")[0] == 1)
    second = run_under(fresh, 30)
    refused = []
    for i in range(ROUNDS):
        settings(MINE.format(port=server.server_address[1], tenant="fresh") + f'tenant "n{i}" {{ agent = "script"\n model_profile = "fresh" }}\n')
        status, out, err = reload()
        if status != 0:
            refused.append((i, err))
    check(f"{ROUNDS} reloads under load", not refused, refused)
    for r in (run, second):
        v = until(fresh, r)
        check("a run goes on through all of it", v["status"] == "completed", v)
    check("the old secret of run tokens is dropped", cli("secret", "drop", "run-token")[0] == 0)
    third = until(fresh, run_under(fresh, 2))
    check("a run after that", third["status"] == "completed", third)
    for l in loads:
        l.stop = True
        l.join()
    check("no request was refused or lost", not any(l.bad for l in loads) and all(l.n > 20 for l in loads), [l.bad[:3] for l in loads])
    check("no process was started anew", pid_list() == before, (before, pid_list()))

    # --- what is wrong changes nothing anywhere
    settings(MINE.format(port=server.server_address[1], tenant="fresh") + "\nqueue_seconds = much\n")
    status, out, err = reload()
    check("a file with an error is refused, with its name and line", status == 1 and "pinfold.conf:" in err and "queue_seconds" in err, err)
    write(MAIN, re.sub("(?m)^max_boxes.*$", "max_boxes = 3", as_it_was))
    status, out, err = reload()
    check("what needs a restart is named", status == 1 and "max_boxes needs a restart" in err, err)
    settings(MINE.format(port=server.server_address[1], tenant="fresh"))
    os.chmod(SECRETS + "/reload-key", 0o644)
    check("a secret that others may read is narrowed", reload()[0] == 0 and os.stat(SECRETS + "/reload-key").st_mode & 0o777 == 0o600)
    write(SECRETS + "/reload-key", "", 0o600)
    status, out, err = reload()
    check("an empty secret is refused", status == 1 and "reload-key" in err and "empty" in err, err)
    write(SECRETS + "/run-token.next", "short", 0o600)
    write(SECRETS + "/reload-key", "fourth-key", 0o600)
    status, out, err = reload()
    check("so is a next one that is too short", status == 1 and "run-token.next" in err, err)
    os.unlink(SECRETS + "/run-token.next")
    check("a next one that is not there cannot be promoted", "rotate" in cli("secret", "promote", "run-token")[2])
    check("a value is no argument", cli("secret", "rotate", "reload-key", "value")[0] == 2)
    check("a value from the environment", cli("secret", "rotate", "--from-env", "A_KEY", "reload-key")[0] == 0 and
          open(SECRETS + "/reload-key.next").read() == "third-key")
    status, out, err = cli("secret", "list")
    check("the list says how long they are and nothing more", "reload-key.next" in out and "(set, 9 bytes)" in out and "third" not in out, out)
    check("drop", cli("secret", "drop", "reload-key")[0] == 0)

    # --- a run that waits for a person, and its tenant goes
    asked = begin_asking('ask("a1", "ls"); tell(said=wait("a1"))')
    wait_for(lambda: waiting(asked, "a1"))
    gone = run_under(fresh, 15)
    wait_for(lambda: get("/v1/runs/" + gone, fresh)[1]["status"] == "running")
    n = len(keys)
    wait_for(lambda: len(keys) > n + 1)
    settings("")
    check("the tenant and its profile go", reload()[0] == 0)
    check("its token is refused from then on", call("GET", "/v1/limits", bearer=fresh)[0] in (401, 403, 404))
    n = len(keys)
    answer(asked, "a1", "allow_once")
    check("the run that waited goes on", until(mine, asked)["status"] in TERMINAL)
    check("the run of the tenant that went has its model to the end", wait_for(lambda: len(keys) >= n + 3))
    settings(MINE.format(port=server.server_address[1], tenant="fresh"))
    check("it is back", reload()[0] == 0)
    check("and its run has ended well", until(fresh, gone)["status"] == "completed")

    # --- whoever dies meanwhile has what all others have
    for name in CHILDREN:
        settings(MINE.format(port=server.server_address[1], tenant="fresh") + f'tenant "k-{name}" {{ agent = "script"\n model_profile = "fresh" }}\n')
        done_by = []
        t = threading.Thread(target=lambda: done_by.append(reload()[0]))
        t.start()
        kill(name)
        t.join()
        ready()
        known = call("GET", "/v1/limits", bearer=tokens_of(f"k-{name}"))[0] == 200
        check(f"{name} killed meanwhile: all or nothing", known == (done_by == [0]), (known, done_by))

    # --- what the attacks say where others of their address were wrong too often
    write(MAIN, re.sub(r"^auth_failures_per_minute = .*$", "auth_failures_per_minute = 1", as_it_was, flags=re.M))
    check("one wrong credential a minute", reload()[0] == 0)
    check("is counted", wait_for(lambda: call("GET", "/v1/limits", bearer="pfa_wrong")[0] == 429))
    status, out, err = cli("attack", "api-run-token")
    check("a refused run token is no hole", status == 0 and out.startswith("held "), (status, out, err))
    log = open(glob.glob(INSTANCE + "/var/log/pinfold/audit.log")[0]).read()
    for event in ("config.reload", "config.change", "secret.rotate", "secret.promote", "secret.drop"):
        check(f"the audit log says {event}", event in log)
finally:
    write(MAIN, as_it_was)
    for name in ("reload-key", "reload-key.next"):
        if os.path.exists(SECRETS + "/" + name):
            os.unlink(SECRETS + "/" + name)
    check("all is as it was", reload()[0] == 0)
done()
