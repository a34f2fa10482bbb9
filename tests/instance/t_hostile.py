#!/usr/bin/python3 -B
"""Text that strangers wrote, every vector of it, through events, cards, labels, paths and headers into everything that people
read in a shell: no byte of it does anything to a terminal, and none makes a second line of a log (L1, G1)."""
import http.client, re, subprocess, tempfile, unicodedata
from processes import *

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from fake import OURS, Terminal

mine, phone = token(), token("device-token")
HERE = os.path.dirname(os.path.abspath(__file__))
PROMPT = "[l] later: "
FORGED = "pinfold-stored: fatal: FORGED"


def vectors():
    """Each once, cut to what a terminal test needs; and what FAULTS of this kind were made of."""
    texts = ["a\x1b[2Jb", "\x1b]52;c;cm0gLXJm\x07", "\x1b]0;title\x1b\\", "x\r\n" + FORGED, "x\n" + FORGED, "x\r" + FORGED, "x\u2028" + FORGED, "x\x85" + FORGED,
             "\x9b2J", "\x90q\x9c", "\u202e" + FORGED[::-1], "a\x08\x08b", "\x0e\x0f", "a\tb", "\x7f", "\\x1b[2J", "%1b%5b2J", "\x1bc", "\x1b[6n", "\x1b[?1049h"]
    with open(os.path.join(HERE, "..", "vectors", "text.jsonl")) as f:
        for line in f:
            v = json.loads(line).get("in")
            if isinstance(v, list):
                v = "".join(p if isinstance(p, str) else p[0] * min(p[1], 40) for p in v)
            if v:
                texts.append(v[:300])
    return list(dict.fromkeys(texts))


TEXTS = vectors()
AGENT = '''
import http.client, json, os, time
tok = {n: open("/workspace/.pinfold-%s-token" % n).read().strip() for n in ("event", "approval")}
run = os.environ["PINFOLD_RUN_ID"]
texts = json.load(open("vectors.json"))
n = 0
def call(method, path, token, body=None):
    c = http.client.HTTPConnection("127.0.0.1", 9797, timeout=60)
    c.request(method, path, body, {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    r = c.getresponse()
    return r.status, json.loads(r.read())
def send(kind, each):
    global n
    lines = []
    for data in each:
        n += 1
        lines.append(json.dumps({"event_type": kind, "run_id": run, "task_id": run, "sequence": n, "data": data}) + "\\n")
    for i in range(0, len(lines), 50):
        status, got = call("POST", "/internal/v1/runs/%s/events" % run, tok["event"], json.dumps({"lines": lines[i:i + 50]}))
        assert status == 202, got
def card(id, t, u):
    return {"request_id": id, "action_id": u[:100], "effect": "execute", "reason": u, "policy_reason": u, "preview": t}
send("told", [{"text": t, "deep": {"x": [t]}, t[:40]: 1} for t in texts])
send("link", [{"url": "https://a.example/" + t} for t in texts[:40]])
send("message", [{"text": "\\n".join(texts)}])
waits = []
for i in range(0, len(texts), 20):
    waits.append("q%d" % i)
    send("approval.requested", [card(waits[-1], "\\n".join(texts[i:i + 20]), " ".join(texts[i:i + 20]))])
open("/workspace/response.json", "w").write(json.dumps({"status": "completed", "summary": "\\n".join(texts[:60])}))
for id in waits:
    while call("GET", "/internal/v1/runs/%s/approvals/%s" % (run, id), tok["approval"])[0] == 202:
        time.sleep(0.2)
'''
FILES = {"agent.py": AGENT, "vectors.json": json.dumps(TEXTS)}
CARDS = len(range(0, len(TEXTS), 20))
SHOWN = {0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6dd, 0x70f, 0x890, 0x891, 0x8e2, 0x110bd, 0x110cd}  # "format", and have a shape
SILENT = {0x34f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2065, 0x3164, 0xffa0} | set(range(0xfe00, 0xfe10)) | set(range(0xe0100, 0xe01f0)) | set(range(0x180b, 0x1810))


def acts(raw, ours=False):
    """What of it is no text, tab or end of a line."""
    raw = (OURS.sub(b"", raw) if ours else raw).replace(b"\r\n", b"\n")
    try:
        text = raw.decode()
    except UnicodeDecodeError as e:
        return [str(e)]
    return sorted({hex(ord(c)) for c in text if c not in "\n\t" and ord(c) not in SHOWN and (unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs") or ord(c) in SILENT or
                                                                  (ord(c) & 0xfffe) == 0xfffe or 0xfdd0 <= ord(c) <= 0xfdef)})


def environment(locale):
    return dict(os.environ, PINFOLD_ROOT=INSTANCE, PINFOLD_TOKEN=mine, PINFOLD_DEVICE_TOKEN=phone, TERM="xterm", NO_COLOR="1", LC_ALL=locale)


def shown(words, lines=None, status=0, answer=None):
    """A command at a terminal, of either kind: nothing that acts, and as many lines as there are entries."""
    for locale in ("C.UTF-8", "C"):
        t = Terminal([CLI, *words], environment(locale))
        for _ in range(CARDS if answer else 0):
            t.expect(PROMPT)
            t.type(answer)
        got = t.wait()
        bad = acts(t.raw)
        check(f"{' '.join(words)} in {locale}", got == status and bad == [] and (locale != "C" or not [b for b in t.raw if b > 126]), (got, bad, t.raw[-200:]))
        if lines is not None:
            check(f"{' '.join(words)} in {locale}: one line an entry", t.raw.count(b"\n") == lines, (t.raw.count(b"\n"), lines))
    return t.text()


def whole(run):
    """A person at pinfold run, from the first event to the last card."""
    t = Terminal([CLI, "run", "--agent", "script", "-i", "\n".join(x for x in TEXTS if "\0" not in x)[:8000], run], environment("C.UTF-8"))
    for _ in range(CARDS):
        t.expect(PROMPT)
        t.type("d\n")
    got = t.wait()
    check("pinfold run at a terminal", got == 0 and acts(t.raw, True) == [], (got, acts(t.raw, True), t.raw[-300:]))
    id = re.search(r"^run (\S+)\r$", t.text(), re.M).group(1)
    # The live line goes before anything else is written.
    seen = [x for x in OURS.sub(b"", re.sub(rb"\r\x1b\[K[^\r\n]*(?=\r\x1b\[K)", b"", t.raw)).decode().splitlines() if re.match(r"\d\d:\d\d:\d\d  \S", x)]
    check("a line an event", len(seen) == len(events(mine, id)), (len(seen), len(events(mine, id))))
    check("no line of it is forged", not [x for x in t.text().splitlines() if x.startswith(FORGED)])
    return id


def labels():
    chosen = ["\x85" + FORGED, "\u202eabc\u2066x", "\u2028" + FORGED, "\u200b\u200d\ufeffx", "e\u0301\U000e0041\ufff9", "\x9b2J\x9d0;x\x9c", "\ufdd0\uffff\U0001fffe", "\u3164\u115f x"]
    for l in chosen:
        subprocess.run([CLI, "token", "create", "--device", "--label", l], env=environment("C.UTF-8"), check=True, capture_output=True)


def asked():
    """What may stand in a log: paths, headers, names."""
    host = URL.split("//")[1]
    for i, t in enumerate(TEXTS):
        c = http.client.HTTPConnection(host, timeout=PATIENCE)
        path = "/v1/runs/" + "".join("%%%02x" % b for b in t.encode()[:60]) if i % 2 else "/v1/runs"
        value = t.encode().replace(b"\r", b" ").replace(b"\n", b" ").replace(b"\0", b" ")[:100]
        c.putrequest("GET", path)
        c.putheader("Authorization", "Bearer " + (mine if i % 3 else "pfa_x"))
        for name in ("User-Agent", "X-Request-Id", "X-Forwarded-For", "Idempotency-Key", "Referer"):
            c.putheader(name, value)
        c.endheaders()
        c.getresponse().read()
        c.close()
    call("POST", "/v1/pair", {"code": "\x1b[2J", "label": TEXTS[0]})
    call("POST", "/v1/runs", {"instruction": "x", "files": [{"path": "a\x1b[2J\n" + FORGED, "content": ""}], "allowedPaths": [FORGED], "checks": []}, mine)


def logs():
    """What the daemons say, where this test can read it, and the audit file."""
    path = os.path.realpath("/proc/%d/fd/2" % pid_of("pinfold-sandboxd"))
    said = open(path, "rb").read() if os.path.isfile(path) else None
    audit = open(os.path.join(INSTANCE, "var/log/pinfold/audit.log"), "rb").read()
    for what, text in (("the daemons' log", said), ("the audit file", audit)):
        if text is None:
            print("ok", what, "is not to be had here", path)
            continue
        bad = sorted({b for b in text if b != 10 and not 32 <= b < 127})
        check(f"{what} is printable ASCII, a line an entry", bad == [] and not [l for l in text.splitlines() if l.startswith(FORGED.encode())], bad)
    check("each line of the audit file is one object", all(isinstance(json.loads(l), dict) for l in audit.splitlines()))
    check("and the chain holds", subprocess.run([CLI, "audit", "verify"], env=environment("C"), capture_output=True).returncode == 0)


def main():
    with tempfile.TemporaryDirectory(prefix="pinfold-hostile.") as folder:
        for name, text in FILES.items():
            with open(os.path.join(folder, name), "w") as f:
                f.write(text)
        ended = whole(folder)
    n = len(events(mine, ended))
    shown(["events", ended], n)
    shown(["events", "-f", ended], n)
    shown(["--json", "events", "-f", ended], n)
    shown(["show", ended], len(get("/v1/runs/" + ended, mine)[1]))
    shown(["--json", "show", ended], 1)
    for name in ("request", "events", "result", "test_log", "patch"):
        shown(["artifacts", ended, name])
    run = start(mine, FILES, agent="script", checks=[["git", "diff", "--check"]], instruction="".join(TEXTS)[:8000])
    v = until(mine, run, lambda v: len(v["pendingApprovals"]) == CARDS or v["status"] in TERMINAL)
    check("the cards wait", len(v["pendingApprovals"]) == CARDS, v)
    check("a row a card", len([x for x in shown(["approve"]).splitlines() if x.startswith(run)]) == CARDS)
    shown(["--json", "approve", run], 1)
    shown(["approve", run], answer="l\n")
    shown(["approve", run, "q0", "--deny", "--digest", "0" * 64], status=1)
    call("POST", f"/v1/runs/{run}/cancel", bearer=mine)
    until(mine, run)
    page = get("/v1/runs?limit=50", mine)[1]
    shown(["ps"], len(page["runs"]) + (2 if page.get("next") else 1))  # its head, and that there are more
    labels()
    shown(["device", "list"], len(get("/v1/devices", mine)[1]["devices"]) + 1)
    shown(["token", "list"])
    shown(["--json", "device", "list"])
    asked()
    shown(["audit", "tail", "-n", "3000"])
    logs()


case("hostile text", main)
done()
