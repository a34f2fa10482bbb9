#!/usr/bin/python3 -B
"""pinfold provider list and test: what is wrong with a provider is told by its name, with a remedy and an exit status, and the
key is seen by the provider alone. No service runs. Needs root: the call is made under the gateway's uid."""
import http.server, json, os, re, shutil, socket, ssl, subprocess, sys, tempfile, threading, urllib.request

TOP = os.environ.get("srcdir", ".")
CLI = os.path.abspath("cli/pinfold" if os.path.exists("cli/pinfold") else "pinfold")
SET = dict(re.findall(r"^(prefix|exec_prefix|libexecdir) = (.*)$", open("Makefile").read(), flags=re.M))
LIBEXEC = SET["libexecdir"].replace("${exec_prefix}", SET["exec_prefix"]).replace("${prefix}", SET["prefix"]) + "/pinfold"
KEY = "sk-CANARY-of-the-provider-test"
good = bad = 0
seen = []


def check(what, right, *more):
    global good, bad
    if right:
        good += 1
    else:
        bad += 1
        print("FAIL", what, *more, flush=True)


class Fake(http.server.BaseHTTPRequestHandler):
    """A provider that does what the first part of its path says."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        seen.append((self.path, dict(self.headers), body))
        what = self.path.split("/")[1]
        status = int(what[:3]) if what[:3].isdigit() else 200
        kind, text = ("text/html", b"<html>") if what == "html" else ("application/json", b"{}")
        if what == "400key":  # as Gemini says it
            text = json.dumps({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "API key not valid.", "details": [
                {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]}}).encode()
        if what == "half":
            text = b'{"a":'
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if status == 302:
            self.send_header("Location", "https://elsewhere.invalid/")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class Mute:
    """Takes connections: says nothing, closes them, or says what is no HTTP."""

    def __init__(self, say):
        self.s = socket.socket()
        self.s.bind(("127.0.0.1", 0))
        self.s.listen(16)
        self.port, self.kept = self.s.getsockname()[1], []
        threading.Thread(target=self.serve, args=(say,), daemon=True).start()

    def serve(self, say):
        while True:
            c, _ = self.s.accept()
            if say is None:
                self.kept.append(c)
                continue
            c.recv(1)
            c.sendall(say)
            c.close()


def provider(*args):
    p = subprocess.run([CLI, *args], env=ENV, capture_output=True, text=True, errors="replace")
    check("the key is not told: " + " ".join(args), KEY not in p.stdout + p.stderr)
    return p


def model(folder, *options):
    p = subprocess.Popen([os.path.abspath("pinfold-scripted-model"), "--listen", "127.0.0.1:0", "--self-signed", folder, *options],
                         stdout=subprocess.PIPE, text=True)
    return p, int(p.stdout.readline().split()[1])


def main():
    etc = ROOT + "/etc/pinfold"
    made = subprocess.run([CLI, "setup", "--provider-key-env", "CONFIG_KEY"], env=ENV, capture_output=True, text=True)
    check("setup", made.returncode in (0, 1) and os.path.exists(etc + "/pinfold.conf"), made.stderr)
    text = open(etc + "/pinfold.conf").read()
    ids = {"stored": 1, "fcgi": 2, "gateway": 3, "steward": 4, "push": 5}
    users = "".join('\t%s = "%d:%d"\n' % (n, 1700000000 + i, 1700000000 + i) for n, i in ids.items()) + '\tshared_group = "1700000000"\n'
    text = re.sub(r"^users \{.*?^\}", "users {\n" + users + "}", text, flags=re.M | re.S)
    if "users {\n\tstored" not in text:
        text += "\nusers {\n" + users + "}\n"
    with open(etc + "/pinfold.conf", "w") as f:
        f.write(text)
    os.makedirs(ROOT + LIBEXEC, exist_ok=True)
    for program in ("pinfold-gateway",):
        shutil.copy(program, ROOT + LIBEXEC)
    for folder, _, _ in os.walk(ROOT + "/usr"):
        os.chmod(folder, 0o755)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Fake)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    plain = "http://127.0.0.1:%d" % server.server_port
    right, right_port = model(ROOT + "/right")
    other, other_port = model(ROOT + "/other", "--cert-name", "other.invalid")
    for name in ("right", "other"):
        os.chmod(ROOT + "/" + name, 0o755)
        os.chmod(ROOT + "/" + name + "/ca.pem", 0o644)
    closed = socket.socket()
    closed.bind(("127.0.0.1", 0))
    mute, cut, noise = Mute(None), Mute(b""), Mute(b"SSH-2.0-x\r\n")
    ca = ROOT + "/right/ca.pem"
    cases = [  # name, base_url, further settings, outcome, exit status, a word of the message
        ("good", plain + "/ok/v1", "", "ok", 0, "answers"),
        ("claude", plain + "/ok/v1", 'protocol = "anthropic"', "ok", 0, "answers"),
        ("google", plain + "/ok/v1beta", 'protocol = "gemini"', "ok", 0, "answers"),
        ("googlekey", plain + "/400key/v1beta", 'protocol = "gemini"', "key_refused", 1, "refuses the key"),
        ("googlepicky", plain + "/400/v1beta", 'protocol = "gemini"', "request_refused", 1, "refuses the request"),
        ("secure", "https://127.0.0.1:%d/v1" % right_port, 'ca_file = "%s"' % ca, "ok", 0, "answers"),
        ("nowhere", "https://nothing.invalid/v1", "", "name", 4, "does not resolve"),
        ("closed", "https://127.0.0.1:%d/v1" % closed.getsockname()[1], "", "refused", 4, "nobody takes connections"),
        ("stranger", "https://127.0.0.1:%d/v1" % right_port, "", "tls_authority", 4, "not trusted"),
        ("misnamed", "https://127.0.0.1:%d/v1" % other_port, 'ca_file = "%s/other/ca.pem"' % ROOT, "tls_host", 4, "another host"),
        ("noca", "https://127.0.0.1:%d/v1" % right_port, 'ca_file = "/nothing/ca.pem"', "ca_file", 1, "ca_file"),
        ("plainport", "https://127.0.0.1:%d/v1" % server.server_port, "", "tls", 4, "no TLS"),
        ("silent", "http://127.0.0.1:%d/v1" % mute.port, "", "timeout", 4, "in time"),
        ("cut", "http://127.0.0.1:%d/v1" % cut.port, "", "closed", 4, "cut off"),
        ("ssh", "http://127.0.0.1:%d/v1" % noise.port, "", "not_http", 1, "no HTTP"),
        ("badkey", plain + "/401/v1", "", "key_refused", 1, "refuses the key"),
        ("forbidden", plain + "/403/v1", "", "key_refused", 1, "refuses the key"),
        ("nomodel", plain + "/404/v1", "", "not_found", 1, "no such model"),
        ("slow", plain + "/429/v1", "", "busy", 1, "later"),
        ("broken", plain + "/500/v1", "", "provider_error", 1, "fault of its own"),
        ("picky", plain + "/400/v1", "", "request_refused", 1, "refuses the request"),
        ("moved", plain + "/302/v1", "", "redirect", 1, "redirects"),
        ("page", plain + "/html/v1", "", "not_json", 1, "no JSON"),
        ("half", plain + "/half/v1", "", "not_json", 1, "no JSON"),
        ("keyless", plain + "/ok/v1", 'secret = "no-such-file"', "key_missing", 1, "key is missing"),
        ("badurl", "https://me:pw@127.0.0.1/v1", "", "address", 1, "base_url"),
    ]
    with open(etc + "/providers.d/test.conf", "w") as f:
        for name, url, more, _, _, _ in cases:
            secret = "" if "secret" in more else '\tsecret = "provider-default"\n'
            f.write('provider "%s" {\n\tbase_url = "%s"\n\tallow_plain_loopback = yes\n%s\t%s\n}\n' % (name, url, secret, more))
        f.write('provider "unused" {\n\tbase_url = "https://127.0.0.1/v1"\n}\n')
    with open(etc + "/profiles.d/test.conf", "w") as f:
        f.write("".join('model_profile "p-%s" {\n\tprovider = "%s"\n\tmodel = "model-of-%s"\n}\n' % (c[0], c[0], c[0]) for c in cases))
    with open(etc + "/pinfold.conf", "a") as f:
        f.write("\nmodel_timeout_ms = 2000\n")
    p = provider("--json", "provider", "list")
    listed = {x["name"]: x for x in json.loads(p.stdout)} if p.returncode == 0 else {}
    check("all are listed", {c[0] for c in cases} <= set(listed), p.stderr)
    check("what is listed", listed.get("good", {}).get("key") == "there" and listed["keyless"]["key"] == "missing" and
          listed["good"]["models"] == ["model-of-good"] and "user name" in listed["badurl"]["fault"] and listed["claude"]["protocol"] == "anthropic",
          listed.get("good"), listed.get("badurl"))
    check("and for people", "badurl" in provider("provider", "list").stdout)
    for name, _, _, outcome, status, word in cases:
        p = provider("--json", "provider", "test", name)
        got = json.loads(p.stdout) if p.stdout.startswith("{") else {}
        check("%s is %s" % (name, outcome), (got.get("outcome"), p.returncode) == (outcome, status), got, p.stderr)
        check("%s has a remedy" % name, (got.get("remedy") == "") == (outcome == "ok") and word in got.get("message", ""), got)
    p = provider("provider", "test", "badkey")
    check("for people", p.returncode == 1 and "refuses the key (status 401" in p.stderr and "->" in p.stderr, p.stderr)
    for name, outcome, status in (("unused", "no_model", 1), ("absent", "no_provider", 2)):
        p = provider("--json", "provider", "test", name)
        check(name, p.returncode == status and json.loads(p.stdout)["outcome"] == outcome, p.stdout, p.stderr)
    chat = [s for s in seen if s[0] == "/ok/v1/chat/completions"]
    said = [s for s in seen if s[0] == "/ok/v1/messages"]
    google = [s for s in seen if s[0] == "/ok/v1beta/models/model-of-google:generateContent"]
    check("one call each", (len(chat), len(said), len(google)) == (1, 1, 1), len(chat), len(said), len(google))
    body = json.loads(google[0][2]) if google else {}
    check("a tiny call of Gemini's", google and google[0][1].get("x-goog-api-key") == KEY and not {"Authorization", "x-api-key"} & set(google[0][1]) and
          body["generationConfig"] == {"maxOutputTokens": 16} and set(body) == {"contents", "generationConfig"}, google)
    for calls, header, value in ((chat, "Authorization", "Bearer " + KEY), (said, "x-api-key", KEY)):
        body = json.loads(calls[0][2]) if calls else {}
        check("the key is where it belongs", calls and calls[0][1].get(header) == value, calls)
        check("a tiny call", body.get("max_tokens") == 16 and body.get("model", "").startswith("model-of-"), body)
    for wrong in (("provider",), ("provider", "test"), ("provider", "list", "x"), ("provider", "drop", "x")):
        check("a command line: " + " ".join(wrong), provider(*wrong).returncode == 2)
    # What repairs the sample program: by the built-in agent's tools, by another's command, or in words.
    asked = ssl.create_default_context(cafile=ROOT + "/right/ca.pem")
    for tools, results, called in ((["list_files"], 0, "list_files"), (["bash"], 0, "bash"), (["bash"], 1, None), (["look"], 0, None)):
        body = {"model": "m", "messages": [{"role": "user", "content": "mend it"}] + [{"role": "tool", "tool_call_id": "1", "content": ""}] * results,
                "tools": [{"type": "function", "function": {"name": n}} for n in tools]}
        request = urllib.request.Request("https://127.0.0.1:%d/v1/chat/completions" % right_port, json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        said = json.load(urllib.request.urlopen(request, context=asked))["choices"][0]["message"]
        check("the scripted model, asked with " + tools[0], [c["function"]["name"] for c in said.get("tool_calls", [])] == [called] * bool(called), said)
    right.kill()
    other.kill()
    right.wait()
    other.wait()


if os.geteuid() != 0:
    print("needs root: the call is made under the gateway's uid")
    sys.exit(77)
ROOT = tempfile.mkdtemp(prefix="pinfold-provider.")
os.chmod(ROOT, 0o711)
ENV = {**os.environ, "PINFOLD_ROOT": ROOT, "CONFIG_KEY": KEY}
try:
    main()
finally:
    shutil.rmtree(ROOT, ignore_errors=True)
print("%d passed, %d failed" % (good, bad))
sys.exit(1 if bad else 0)
