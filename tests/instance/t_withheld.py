#!/usr/bin/python3 -B
"""No secret is found where it does not belong. Those of this instance, and tokens made here, are used in runs that complete, fail and
are cancelled, in requests that are refused in every way, in deaths, in doctor, metrics, backups and every command that lists
something; then each of them, whole, in part, in base64 and in hex, is looked for in every file but its own, in logs, store, audit and
backup, in each answer and each output, and all the time in the arguments and environment of every process. First what is looked for is
laid out on purpose, and must be found. Comes near the end, so that what the tests before it left is looked at, too."""
import base64, http.client, signal, subprocess, tempfile, threading, urllib.parse
from processes import *

SECRETS = INSTANCE + "/etc/pinfold/secrets"
# The harness's own files, which stand for what the administrator did with a token that was printed.
KEPT = {SECRETS + "/" + n for n in os.listdir(SECRETS)} | {INSTANCE + "/api-token", INSTANCE + "/device-token"}
PART = 24
held = {}  # name: the secret itself; of a token what stands behind its public id
seen = []  # (where, bytes): every answer and output


def holds(name, text):
    """Remembers it, and gives it back."""
    text = text.strip()
    held[name] = text[21:] if text.startswith(("pfa_", "pfd_")) else text
    return text


def forms(text):
    """Text by which it would be recognised: its beginning and its end, as they are, in hexadecimal, in base64 of whatever came before; of
    what is base64url itself also its bytes."""
    b = text.encode()
    parts = [b[:PART], b[-PART:]]
    try:
        raw = base64.urlsafe_b64decode(b + b"=" * (-len(b) % 4)) if len(b) == 43 else b""
    except ValueError:
        raw = b""
    found = set(parts)
    for p in parts + ([raw[:16], raw[-16:]] if raw else []):
        found |= {p.hex().encode(), p.hex().upper().encode()}
        for before in range(3):
            coded = base64.b64encode(b"\0" * before + p)
            # Without the ends, which depend on what stands beside it.
            coded = coded[(before * 8 + 5) // 6:len(coded) // 4 * 4 - 4]
            found |= {coded, coded.replace(b"+", b"-").replace(b"/", b"_")}
    return {f for f in found if len(f) >= 16}


def where_in(what, data):
    return [(what, name) for name, text in held.items() if any(f in data for f in forms(text))]


def in_files(*folders):
    """Files that hold one, with its name; the patterns go by a pipe, not by an argument."""
    patterns = {f: name for name, text in held.items() for f in forms(text)}
    r = subprocess.run(["grep", "-raoFf", "-", "--", *folders], input=b"\n".join(patterns) + b"\n", capture_output=True, env={"LC_ALL": "C", "PATH": os.environ["PATH"]})
    if r.returncode > 1 and b"No such" not in r.stderr:
        raise AssertionError(f"grep: {r.returncode} {r.stderr[:300]}")
    hits = {tuple(line.split(b":", 1)) for line in r.stdout.split(b"\n") if b":" in line}
    return sorted({(path.decode(), patterns.get(text, "?")) for path, text in hits if path.decode() not in KEPT})


class Watch(threading.Thread):
    """Looks at the arguments and the environment of every process, all the time; but for the environment of this test's own children,
    by which a token is given to the command as its manual says."""

    def __init__(self):
        super().__init__(daemon=True)
        self.stop, self.found, self.looked = False, set(), 0

    def run(self):
        wanted, names = {}, 0
        while not self.stop:
            if names != len(held):
                wanted, names = {f: n for n, text in list(held.items()) for f in forms(text)}, len(held)
            time.sleep(0.01)
            for pid in pids():
                # Other instances of this machine have other files and, of what the harness makes up, the same values.
                elsewhere = False
                for name in ("environ", "cmdline"):
                    try:
                        with open(f"/proc/{pid}/{name}", "rb") as f:
                            data = f.read()
                        elsewhere = elsewhere or b"PINFOLD_ROOT=" in data and b"PINFOLD_ROOT=" + INSTANCE.encode() + b"\0" not in data
                        if elsewhere:
                            continue
                        if name == "environ" and os.getsid(pid) == os.getsid(0) and b"WITHHELD=" in data:
                            continue
                    except OSError:
                        continue
                    self.looked += 1
                    self.found |= {(name, data[:60], n) for f, n in wanted.items() if f in data}


def ask(method, path, body=None, bearer=None, headers=()):
    status, h, answer = call(method, path, body, bearer, headers)
    seen.append((f"{method} {path}", str(h).encode() + answer))
    return status, answer


def cli(*words, token=None, device=None, fails=False):
    env = {**os.environ, "PINFOLD_ROOT": INSTANCE, "WITHHELD": "1"}
    for name, value in (("PINFOLD_TOKEN", token), ("PINFOLD_DEVICE_TOKEN", device)):
        env.pop(name, None)
        if value:
            env[name] = value
    r = subprocess.run([CLI, *words], env=env, capture_output=True, timeout=300, stdin=subprocess.DEVNULL)
    seen.append((" ".join(words), r.stdout + r.stderr))
    if r.returncode and not fails:
        raise AssertionError(f"{words}: {r.returncode} {r.stderr[-300:]}")
    return r.stdout.decode()


def minted(name, *words):
    """A command that prints a new token, this once: the only output that may."""
    return holds(name, operator(*words))


def planted():
    """What is put where it does not belong is found there."""
    name, text = next(iter(held.items()))
    with tempfile.TemporaryDirectory(prefix="pinfold-planted.") as d:
        for i, f in enumerate(sorted(forms(text))):
            with open(f"{d}/{i}", "wb") as to:
                to.write(b"\0binary " + f + b" and more")
        check("each form of a secret is found in a file", len({p for p, _ in in_files(d)}) == len(forms(text)) > 8, in_files(d))
        with open(d + "/b", "wb") as to:
            to.write(base64.b64encode(b'{"authorization":"Bearer ' + text.encode() + b'"}'))
        check("also in the middle of what is encoded", (d + "/b", name) in in_files(d), in_files(d))
        check("and in an answer", where_in("x", b"..." + text.encode()[-PART:] + b"...") == [("x", name)])
    w = Watch()
    p = subprocess.Popen(["sh", "-c", "sleep 100 # $0", text])
    q = subprocess.Popen(["sleep", "100"], env={"PATH": os.environ["PATH"], "KEY": text})
    w.start()
    found = wait_for(lambda: {f for f, _, n in list(w.found) if n == name} == {"cmdline", "environ"})
    w.stop = True
    for x in (p, q):
        x.kill()
        x.wait()
    w.join()
    check("and in arguments and environments", found, w.found)


def used():
    api, device = holds("API token", token()), holds("device token", token("device-token"))
    spare = minted("token of a program", "token", "create", "--label", "withheld")
    scrape = minted("scrape token", "token", "create", "--metrics", "--label", "withheld scrape")
    nxt = minted("NEXT token", "token", "rotate", spare[4:20])
    for t in (spare, nxt):
        check("a token and its NEXT one are taken", ask("GET", "/v1/limits", bearer=t)[0] == 200)
    check("the scrape token reads figures", ask("GET", "/metrics", bearer=scrape)[0] == 200)
    cli("token", "promote", spare[4:20])
    check("the replaced one is refused", ask("GET", "/v1/limits", bearer=spare)[0] == 401)
    code = json.loads(operator("--json", "device", "pair"))["code"]
    at = urllib.parse.urlsplit(URL)
    c = http.client.HTTPConnection(at.hostname, at.port, timeout=PATIENCE)
    c.request("POST", "/v1/pair", json.dumps({"code": code, "label": "withheld"}), {"Content-Type": "application/json"})
    paired = holds("paired device", json.loads(c.getresponse().read())["token"])
    check("a device is paired", ask("GET", "/v1/inbox", bearer=paired)[0] == 200)
    # Runs: one that completes by the model, one that fails, one that is cancelled in its work, one whose gateway dies.
    with tempfile.TemporaryDirectory(prefix="pinfold-withheld.") as d:
        with open(d + "/calc.py", "w") as f:
            f.write("def add(a, b):\n    return a - b\n")
        with open(d + "/test_calc.py", "w") as f:
            f.write("import unittest\nfrom calc import add\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(add(1, 2), 3)\n")
        cli("--server", URL, "run", "-i", "Make the test pass", "--check", "python3 -m unittest discover", "--patch", d, token=api, device=device)
    bad = start(api, {"agent.py": "import os, sys\nsys.exit(len(os.environ))\n"}, agent="script", checks=GIT)
    until(api, bad)
    run = executing(api)
    kill("pinfold-gateway", signal.SIGABRT)
    check("the gateway is back", ready())
    ask("POST", f"/v1/runs/{run}/cancel", {}, paired)
    until(api, run)
    # Each is refused for something else, with a secret in it.
    for method, path, body, bearer, headers in (
            ("POST", "/v1/runs", b"{", api, ()), ("POST", "/v1/runs", {"instruction": 1}, api, ()), ("POST", "/v1/runs", b" " * 800000, api, ()),
            ("GET", "/v1/runs/no-such-run", None, api, ()), ("GET", "/v1/nothing", None, api, ()), ("PUT", "/v1/runs", None, api, ()),
            ("GET", "/v1/inbox", None, api, ()), ("GET", "/metrics", None, api, ()), ("GET", "/v1/limits", None, api + "x", ()),
            ("GET", "/v1/limits", None, None, [("Authorization", "Basic " + api)]), ("GET", "/v1/limits", None, None, [("X-Api-Key", api)]),
            ("GET", "/v1/limits", None, None, [("Cookie", "pinfold=" + paired)]), ("GET", "/v1/front", None, api, ()),
            ("POST", f"/v1/runs/{run}/approvals/x", {"decision": "deny"}, api, ()), ("DELETE", f"/v1/runs/{run}", None, paired, ()),
            ("POST", "/v1/pair", {"code": "ABCDEFGH", "label": "x"}, None, ()), ("POST", "/v1/runs", {"instruction": "x"}, api, [("Idempotency-Key", "x y")])):
        ask(method, path, body, bearer, headers)
    for path in ("/v1/limits", "/v1/model-profiles", "/v1/runs", f"/v1/runs/{run}", f"/v1/runs/{bad}", f"/v1/runs/{bad}/events", f"/v1/runs/{bad}/events?stream=1",
                 "/v1/devices", f"/v1/runs/{bad}/approvals", "/readyz", "/healthz", "/openapi.json", "/v1/runs/" + bad + "/artifacts"):
        ask("GET", path, None, api)
    for name in ("request", "events", "checkpoint", "patch", "test_log", "result"):
        ask("GET", f"/v1/runs/{bad}/artifacts/{name}", None, api)
    for words in (("doctor", "--no-box"), ("doctor", "--json", "--no-box", "--online"), ("metrics",), ("token", "list"), ("--json", "token", "list"), ("device", "list"),
                  ("config", "check"), ("store", "stat"), ("store", "check"), ("audit", "verify"), ("audit", "tail", "-n", "500"), ("ps",), ("show", bad),
                  ("events", bad), ("--json", "show", run), ("completion", "bash"), ("setup",)):
        cli("--server", URL, *words, token=api, fails=words[0] == "doctor")
    for words in (("show", "no-such-run"), ("cancel", "../x"), ("doctor", "--what")):
        cli("--server", URL, *words, token=api, fails=True)
    cli("--server", "http://127.0.0.1:1", "ps", token=api, fails=True)
    operator("token", "revoke", spare[4:20])
    ask("GET", "/v1/limits", bearer=nxt)
    ask("DELETE", "/v1/devices/withheld", bearer=api)


def swept():
    with tempfile.TemporaryDirectory(prefix="pinfold-withheld.") as d:
        cli("store", "backup", d + "/backup")
        log = os.path.realpath(f"/proc/{pid_of('pinfold-sandboxd')}/fd/2")
        cores = open("/proc/sys/kernel/core_pattern").read().strip()
        folders = [*([INSTANCE] if INSTANCE else ["/etc", "/run", "/usr/share/pinfold", "/var/lib/pinfold", "/var/log"]), d, *([log] if os.path.isfile(log) else []), *([os.path.dirname(cores)] if cores.startswith("/") else [])]
        if not os.path.isfile(log):  # the journal's
            seen.append(("journal", subprocess.run(["journalctl", "-b", "-o", "cat", "--no-pager", "-u", "pinfold"], capture_output=True).stdout))
        check("there is a log to look at", b"ready: " in (open(log, "rb").read() if os.path.isfile(log) else seen[-1][1]), log)
        found = in_files(*folders)
        check("no file holds a secret but its own", not found, found)
    size = sum(len(b) for _, b in seen)
    check("many answers and outputs were looked at", len(seen) > 60 and size > 100000, (len(seen), size))
    found = [x for what, data in seen for x in where_in(what, data)]
    check("no answer and no output holds one", not found, found)


for name in os.listdir(SECRETS):
    holds(name, open(SECRETS + "/" + name).read())
check("there are secrets to look for", {"run-token", "vapid", "provider-default"} <= set(held) and all(len(t) >= PART for t in held.values()), list(held))
case("planted", planted)
watch = Watch()
watch.start()
case("used", used)
case("swept", swept)
watch.stop = True
watch.join()
check("every process was looked at", watch.looked > 1000, watch.looked)
check("no argument and no environment holds a secret", not watch.found, watch.found)
done()
