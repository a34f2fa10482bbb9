#!/usr/bin/python3 -B
"""The big list of naughty strings, wherever a caller or an agent can put text. What goes in comes out as it was where it is the
caller's own (instruction, files), cleaned where it is an agent's (C-61, C-62, C-63), and never changes what an answer is."""
import hashlib, pty, re
from boundary import *
from client import *

with open(os.path.join(npm("blns", "2.0.4"), "resources", "blns.json"), encoding="utf-8") as f:
    STRINGS = json.load(f)
mine, front = token(), Front()
check("485 strings", len(STRINGS) == 485, len(STRINGS))
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")
PATH = re.compile(r"(?i:(?!-)(?!\.{1,2}(?:/|$))(?!\.git\.*(?:/|$))[A-Za-z0-9._-]+(?:/(?!-)(?!\.{1,2}(?:/|$))(?!\.git\.*(?:/|$))[A-Za-z0-9._-]+)*)\Z")
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069\u200b-\u200d\u2060\ufeff\U000e0000-\U000e007f]")
BLANK = " \t\n\x0b\x0c\r"
RUN = []
AGENT = '''
import hashlib, http.client, json, os
run = os.environ["PINFOLD_RUN_ID"]
token = open("/workspace/.pinfold-event-token").read().strip()
strings = json.load(open("strings.json", encoding="utf-8"))
asked = json.load(open("/workspace/request.json", encoding="utf-8"))
c = http.client.HTTPConnection("127.0.0.1", 9797, timeout=120)
def send(events):
    lines = [json.dumps(dict(e, run_id=run, task_id=run)) + "\\n" for e in events]
    c.request("POST", "/internal/v1/runs/%s/events" % run, json.dumps({"lines": lines}),
              {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    r = c.getresponse()
    return r.status, r.read()
def sha(s):
    return hashlib.sha256(s.encode()).hexdigest()
def naughty(i, s):
    return {"event_type": "naughty", "sequence": i, "data": {"i": i, "s": s, "in": [{"deep": s}], "keys": {s: 1}, "twice": s * 2}}
status = [send([naughty(i, s) for i, s in enumerate(strings)][k:k + 60])[0] for k in range(0, len(strings), 60)]
types = []
for s in strings:
    got = send([{"event_type": s, "sequence": 0, "data": {}}])
    types.append([s, got[0], json.loads(got[1]).get("error")])
open("out.txt", "w", encoding="utf-8").write("\\n".join(strings) + "\\n")
r = send([{"event_type": "done", "sequence": 1, "data": {"status": status, "instruction": sha(asked["instruction"]),
     "strings": sha(json.dumps(strings)), "types": [t for t in types if t[1:] != [400, "invalid_event_append"]]}}])
'''


def each():
    for s in STRINGS:
        want = PASSED_ALL if s.strip(BLANK) else (400, "invalid_instruction")
        a = front.call("POST", "/v1/runs", mine, doomed(instruction=s))
        check(f"instruction {s[:30]!r}", a is not None and (a.status, a.error) == want, a)
        a = front.call("POST", "/v1/runs", mine, doomed(files=[{"path": "a.py", "content": s}]))
        check(f"content {s[:30]!r}", a is not None and (a.status, a.error) == PASSED_ALL, a)
        a = front.call("POST", "/v1/runs", mine, doomed(files=[{"path": s, "content": ""}]))
        want = {"unsupported_source_type"} if PATH.match(s) and len(s) <= 160 else {"invalid_source_path"}
        check(f"path {s[:30]!r}", a is not None and a.status == 400 and a.error in want, f"{a}, not {want}")
        for key in ("agent", "modelProfile", "model"):
            a = front.call("POST", "/v1/runs", mine, doomed(**{key: s}))
            code = {"agent": "agent_not_allowed", "modelProfile": "model_profile_not_allowed", "model": "model_not_allowed"}[key]
            check(f"{key} {s[:30]!r}", a is not None and a.error == code and a.status in (400, 403), a)
        a = front.call("POST", "/v1/runs", mine, json.dumps({s: 1}).encode())
        check(f"key {s[:30]!r}", a is not None and (a.status, a.error) == (400, "unknown_field"), a)
        a = front.call("POST", "/v1/runs", mine, s.encode())
        check(f"body {s[:30]!r}", a is not None and a.status == 400 and a.error in ("invalid_json", "invalid_json_object"), a)
        a = front.call("POST", "/v1/runs", mine, doomed(checks=[[s]] if s else [["x", s]]))
        check(f"check {s[:30]!r}", a is not None and (a.status, a.error) == (400, "check_argv_not_allowed"), a)


def targets():
    """The web server itself may refuse control bytes and dot segments, in its own words."""
    for s in STRINGS:
        enc = urllib.parse.quote(s, safe="")
        refused = ("invalid_request", None) if re.search(r"[\x00-\x1f\x7f]|\.\./", s) else ("invalid_request",)
        a = front.call("GET", "/v1/runs/" + enc, mine)
        want = (404, "run_not_found") if ID.match(s) else None
        ok = a is not None and ((a.status, a.error) == want if want else a.status in (400, 404) and a.error in refused + ("not_found", "run_not_found"))
        check(f"run id {s[:30]!r}", ok, a)
        a = front.call("GET", "/v1/runs?after=" + enc, mine)
        check(f"query value {s[:30]!r}", a is not None and (a.status == 400 and a.error in refused + ("invalid_query",) or s == "" and a.status == 200), a)
        a = front.call("GET", "/v1/runs?" + enc + "=1", mine)
        check(f"query name {s[:30]!r}", a is not None and a.status == 400 and a.error in refused + ("invalid_query",), a)


def headers():
    """Text with a line's end in it would be another header; it is not sent."""
    for s in STRINGS:
        if re.search(r"[\r\n\x00]", s):
            continue
        # Headers that decide nothing here: the answer is the same, or the web server refuses the bytes.
        for name in ("User-Agent", "X-Request-Id", "Cookie", "X-Forwarded-For", "Accept", "If-None-Match", "Accept-Language", "Origin", "Referer"):
            a = front.call("GET", "/v1/runs?limit=1", mine, headers=[(name, s)])
            check(f"{name} {s[:30]!r}", a is None or a.status == 200 or a.status == 400, a)
        a = front.call("GET", "/v1/runs?limit=1", s)
        check(f"bearer {s[:30]!r}", a is None or a.status in (400, 401), a)
        a = front.call("POST", "/v1/runs", mine, doomed(), headers=[("Content-Type", s)])
        check(f"content type {s[:30]!r}", a is None or a.status in (400, 415), a)
        a = front.call("POST", "/v1/runs", mine, doomed(), headers=[("Idempotency-Key", s)])
        check(f"idempotency key {s[:30]!r}", a is None or a.status == 400, a)


def clean(s):
    s = HIDDEN.sub("", s)
    if len(s.encode()) <= 16000:
        return s
    return s.encode()[:16000 - 3].decode("utf-8", "ignore") + "\u2026"


def strict(line):
    """Strict JSON: no constants of Python's own, no lone surrogates, no key twice."""
    def no(x):
        raise ValueError(x)

    def pairs(p):
        if len({k for k, _ in p}) != len(p):
            no("the same key twice")
        return dict(p)
    v = json.loads(line, parse_constant=no, object_pairs_hook=pairs)
    json.dumps(v, ensure_ascii=False).encode()
    return v


def agent():
    instruction = "start\n" + "\n".join(STRINGS) + "\nend"
    run = start(mine, {"agent.py": AGENT, "strings.json": json.dumps(STRINGS, ensure_ascii=False), "out.txt": "x\n"}, agent="script",
                allowed=["out.txt"], checks=[["git", "diff", "--check"]], instruction=instruction)
    RUN.append(run)
    v = until(mine, run)
    check("the caller's instruction comes back as it was", v["request"]["instruction"] == instruction)
    status, h, raw = call("GET", f"/v1/runs/{run}/events", bearer=mine)
    lines = [strict(x) for x in raw.decode("utf-8").split("\n")[:-1]]
    check("lines are split by line feeds alone", [e["sequence"] for e in lines] == list(range(1, len(lines) + 1)), raw[:200])
    told = [e["data"] for e in lines if e["event_type"] == "done"]
    check("the agent came to its end", len(told) == 1, v)
    if not told:
        return
    check("every batch was taken", set(told[0]["status"]) == {202}, told)
    check("the agent read the instruction as it was", told[0]["instruction"] == hashlib.sha256(instruction.encode()).hexdigest())
    check("the agent read the file as it was", told[0]["strings"] == hashlib.sha256(json.dumps(STRINGS).encode()).hexdigest())
    check("no string is an event type but those that are written like one",
          all(re.match(r"[a-z][a-z0-9_.]{0,63}\Z", t[0]) for t in told[0]["types"]), told[0]["types"])
    got = {e["data"]["i"]: e["data"] for e in lines if e["event_type"] == "naughty"}
    check("every event arrived", sorted(got) == list(range(len(STRINGS))), len(got))
    for i, s in enumerate(STRINGS):
        d = got.get(i, {})
        check(f"event text {s[:30]!r}", (d.get("s"), d.get("in"), d.get("twice")) == (clean(s), [{"deep": clean(s)}], clean(s * 2)), d)
        keys = d.get("keys", {})
        kept = not re.search("[\n\t]", s) and not HIDDEN.search(s) and len(s.encode()) <= 128
        check(f"event key {s[:30]!r}", list(keys) in ([s], []) and (kept or not keys) and (keys or not s.isascii() or not kept), keys)
    status, h, raw = call("GET", f"/v1/runs/{run}/events?stream=1", bearer=mine)
    frames = [f for f in raw.decode("utf-8").split("\n\n") if "data: " in f]
    check("the stream says the same", status == 200 and [strict(x.split("data: ", 1)[1]) for x in frames] == lines, raw[:300])
    patch = artifact(mine, run, "patch")
    check("a patch with all of them is text", "diff --git" in patch and "+" + STRINGS[5] in patch, patch[:200])


def at_terminal(*words, charset):
    """What a command writes to a terminal; the terminal's own \\r before each line end is gone."""
    here, there = pty.openpty()
    p = subprocess.Popen([CLI, *words], stdin=subprocess.DEVNULL, stdout=there, stderr=there,
                         env=dict(os.environ, PINFOLD_TOKEN=mine, LC_ALL=charset))
    os.close(there)
    out = b""
    while True:
        try:
            more = os.read(here, 65536)
        except OSError:
            break
        if not more:
            break
        out += more
    os.close(here)
    return p.wait(), out.replace(b"\r\n", b"\n")


def terminal():
    """Nothing that an agent or a caller wrote moves the cursor, hides, or makes other JSON of JSON (L1)."""
    run = RUN[0]
    ways = [("show", run), ("events", run), ("artifacts", run, "patch"), ("artifacts", run, "events"), ("artifacts", run), ("ps",)]
    for charset in ("C.UTF-8", "C"):
        for words in ways + [("--json",) + w for w in ways]:
            what = f"{' '.join(w for w in words if w != run)} at a terminal, {charset}"
            status, out = at_terminal(*words, charset=charset)
            text = out.decode("utf-8", "backslashreplace")
            check(what, status == 0 and len(text) > 20, text[:200])
            bad = HIDDEN.search(text) or re.search("[\udc80-\udcff\u2028\u2029\ufff9-\ufffb\ufffe\uffff]", text)
            check(f"{what}: only what shows", not bad and (charset != "C" or text.isascii()), bad)
            if words[0] == "--json" and len(words) < 4:
                plain = subprocess.run([CLI, *words], capture_output=True, env=dict(os.environ, PINFOLD_TOKEN=mine), text=True, encoding="utf-8").stdout
                check(f"{what}: the same JSON", [strict(x) for x in text.split("\n")[:-1]] == [strict(x) for x in plain.split("\n")[:-1]], text[:300])
            elif charset == "C.UTF-8" and words[0] == "artifacts" and words[-1] == "patch":
                check("letters of other scripts stay readable", "\u7530\u4e2d\u3055\u3093" in text, text[:300])


with Unharmed():
    for f in (each, targets, headers, agent, terminal):
        case(f.__name__, f)
done()
