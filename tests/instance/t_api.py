#!/usr/bin/python3
"""The rest of the API on a whole instance: idempotent creation, deletion, limits, profiles, figures, full event buffers."""
import glob, json, os, re, signal, subprocess, threading, time
from client import *

mine, device = token(), token("device-token")
other = operator("token", "create", "--tenant", "other").strip()
GIT = [["git", "diff", "--check"]]


def body(text="x", **more):
    return {"instruction": text, "files": [{"path": "agent.py", "content": "pass\n"}], "allowedPaths": ["agent.py"], "checks": GIT,
            "agent": "script", **more}


def create(what, key=None, bearer=mine):
    status, h, b = call("POST", "/v1/runs", what, bearer, [("Idempotency-Key", key)] if key else [])
    return status, h, json.loads(b)


def parallel(n, f):
    out = [None] * n
    def work(i):
        try:
            out[i] = f(i)
        except Exception as e:
            out[i] = (0, {}, {"error": repr(e)})
    threads = [threading.Thread(target=work, args=(i,)) for i in range(n)]
    for t in threads: t.start()
    return threads, out


def count(bearer, text):
    """How many runs of this instruction there are."""
    n, path = 0, "/v1/runs?limit=100"
    while True:
        status, page = get(path, bearer)
        n += sum(get("/v1/runs/" + r["runId"], bearer)[1]["request"]["instruction"] == text for r in page["runs"])
        if page["next"] is None:
            return n
        path = "/v1/runs?limit=100&after=" + page["next"]


def name(text):
    return text + "-" + os.urandom(4).hex()


def same_answer():
    key, what = name("key"), body(name("same"))
    threads, got = parallel(16, lambda i: create(what, key))
    for t in threads: t.join()
    runs = {o.get("runId") for s, h, o in got}
    check("16 duplicates at once: 202 for all", {s for s, _, _ in got} == {202}, got)
    check("one run id for all", len(runs) == 1, runs)
    check("one run", count(mine, what["instruction"]) == 1)
    turned = json.dumps(dict(reversed(list(what.items()))), indent=2).encode()
    s, h, o = create(turned, key)
    check("key order and white space do not matter", (s, o["runId"]) == (202, *runs), o)
    s, _, o = create(dict(what, instruction="y"), key)
    check("another body is a conflict", (s, o["error"]) == (409, "idempotency_conflict"), o)
    s, h, o = create(what, key, other)
    check("another tenant's key is another", s == 202 and o["runId"] not in runs, o)
    call("POST", f"/v1/runs/{o['runId']}/cancel", b"", other)
    run = runs.pop()
    until(mine, run)
    s, _, o = create(what, key)
    check("the same answer after its end", (s, o["runId"], o["status"]) == (202, run, "queued"), o)


def processes(what):
    """Processes of this instance with this name."""
    found = []
    for p in glob.glob("/proc/[0-9]*"):
        try:
            if os.readlink(p + "/exe").startswith(INSTANCE) and os.path.basename(os.readlink(p + "/exe")) == what:
                found.append(int(p[6:]))
        except OSError:
            pass
    return found


def killed_between():
    key, what = name("key"), body(name("killed"))
    ids = set()
    for round in range(4):
        threads, got = parallel(8, lambda i: create(what, key))
        time.sleep(0.002 * round)
        for pid in processes("pinfold-stored"):
            os.kill(pid, signal.SIGKILL)
        for t in threads: t.join()
        ids |= {o["runId"] for s, _, o in got if s == 202}
        bad = [g for g in got if g[0] not in (202, 502, 503)]
        check("the store killed: an answer or 'later'", not bad, bad)
        wait_for(lambda: call("GET", "/readyz")[0] == 200)
    s, _, o = create(what, key)
    ids.add(o.get("runId"))
    check("after it all: one id", s == 202 and len(ids) == 1, ids)
    check("and one run", count(mine, what["instruction"]) == 1)


def deletion():
    secret = name("only-here")
    large = " " * 17000 + "."  # so that its blobs are files
    what = body(secret + large)
    what["files"][0]["content"] = f"print({secret!r})  #{large}\n"
    run = create(what)[2]["runId"]
    status, _, b = call("DELETE", "/v1/runs/" + run, bearer=mine)
    check("a run that goes on is not deleted", status == 409 and json.loads(b)["error"] == "run_not_terminal", b)
    until(mine, run)
    check("a device may not delete", call("DELETE", "/v1/runs/" + run, bearer=device)[0] == 403)
    check("another tenant may not", call("DELETE", "/v1/runs/" + run, bearer=other)[0] == 404)
    store = os.path.join(INSTANCE, "var/lib/pinfold/store/blobs")
    def holds():
        return [p for p in glob.glob(store + "/*/*") if secret.encode() in open(p, "rb").read()]
    check("its bytes are stored", len(holds()) >= 2, holds())
    kept = len(glob.glob(store + "/*/*"))
    status, h, b = call("DELETE", "/v1/runs/" + run, bearer=mine)
    check("204 without a body", status == 204 and b == b"", (status, b))
    check("its bytes are gone", holds() == [] and len(glob.glob(store + "/*/*")) < kept, holds())
    for path in ("", "/events", "/artifacts", "/artifacts/patch"):
        check(f"404 at {path or 'the run'}", call("GET", f"/v1/runs/{run}{path}", bearer=mine)[0] == 404)
    check("not listed", run not in {r["runId"] for r in get("/v1/runs?limit=100", mine)[1]["runs"]})
    check("404 the second time", call("DELETE", "/v1/runs/" + run, bearer=mine)[0] == 404)
    line = [json.loads(l) for l in open(os.path.join(INSTANCE, "var/log/pinfold/audit.log")) if f'"{run}"' in l]
    check("the audit line has the request's id", [l["requestId"] for l in line if l["event"] == "run.delete"] == [h["x-request-id"]], line)
    run = create(body())[2]["runId"]
    until(mine, run)
    env = dict(os.environ, PINFOLD_TOKEN=mine)
    r = subprocess.run([CLI, "rm", run], env=env, capture_output=True, text=True)
    check("pinfold rm", r.returncode == 0 and call("GET", "/v1/runs/" + run, bearer=mine)[0] == 404, r.stderr)
    r = subprocess.run([CLI, "rm", run], env=env, capture_output=True, text=True)
    check("pinfold rm of nothing", r.returncode == 1 and "run_not_found" in r.stderr, r.stderr)


def etags():
    run = create({**body(), "files": [{"path": "agent.py", "content": "import time\ntime.sleep(100)\n"}]})[2]["runId"]
    seen, last, end = {}, None, time.monotonic() + PATIENCE
    cancelled = False
    while time.monotonic() < end:
        status, h, b = call("GET", "/v1/runs/" + run, bearer=mine)
        tag = h["etag"]
        if seen.setdefault(tag, b) != b:
            check("a tag stands for one snapshot", False, (tag, b, seen[tag]))
        v = json.loads(b)
        status, h, b = call("GET", "/v1/runs/" + run, bearer=mine, headers=[("If-None-Match", tag)])
        if status == 304:
            last = (h["etag"], b)
            check_tag = tag
        if not cancelled and v.get("phase") == "executing":
            call("POST", f"/v1/runs/{run}/cancel", b"", mine)
            cancelled = True
        if v["status"] in TERMINAL:
            break
    check("the tag is strong", re.fullmatch(r'"[0-9a-f]{32}"', tag) is not None, tag)
    check("a tag stands for one snapshot, and changed on the way", len(seen) == len(set(seen.values())) and len(seen) >= 3, len(seen))
    check("304 is empty and keeps the tag", last == (check_tag, b""), last)
    for v, want in (("*", 304), ('"0", ' + tag, 304), ("W/" + tag, 304), ('"0"', 200), (tag[:-1], 200)):
        status = call("GET", "/v1/runs/" + run, bearer=mine, headers=[("If-None-Match", v)])[0]
        check(f"If-None-Match: {v[:9]}", status == want, status)


QUOTAS = {"runsHour": 2000, "storedBytes": 4000000000, "modelRequestsDay": 50000, "tokensDay": 0, "tokensRun": 0, "modelCalls": 256, "modelCallsRun": 64, "modelCallsMinute": 120, "openStreams": 200}


def limits():
    status, v = get("/v1/limits", device)
    check("limits of the tenant", v["tenant"] == {"concurrentRuns": 4, "queuedRuns": 100, **QUOTAS} and v["run"]["maxSteps"] == 20, v)
    status, w = get("/v1/limits", other)
    check("another tenant has its own", w["tenant"] == {"concurrentRuns": 2, "queuedRuns": 3, **QUOTAS} and w["sandbox"]["memoryBytes"] == 256000000, w)
    # Each number of the request is where it says: the last that is taken, and the first that is not.
    r = v["request"]
    for what, good, bad, error in (
            ("instruction", {"instruction": "x" * r["instructionCharacters"]}, {"instruction": "x" * (r["instructionCharacters"] + 1)}, "invalid_instruction"),
            ("steps", {"limits": {"maxSteps": v["run"]["maxSteps"]}}, {"limits": {"maxSteps": v["run"]["maxSteps"] + 1}}, "invalid_max_steps"),
            ("wall time", {"limits": {"wallTimeSeconds": v["run"]["maxWallTimeSeconds"]}},
             {"limits": {"wallTimeSeconds": v["run"]["maxWallTimeSeconds"] + 1}}, "invalid_wall_time"),
            ("permissions", {"permissions": {f"t{i}": "deny" for i in range(r["permissions"])}},
             {"permissions": {f"t{i}": "deny" for i in range(r["permissions"] + 1)}}, "invalid_permissions")):
        s, _, o = create(body(**{"text": "x", **good}) if "instruction" not in good else dict(body(), **good))
        check(f"the highest {what} is taken", s == 202, o)
        call("POST", f"/v1/runs/{o.get('runId')}/cancel", b"", mine)
        s, _, o = create(dict(body(), **bad))
        check(f"one more {what} is not", (s, o["error"]) == (400, error), o)
    s, o = get("/v1/runs?limit=%d" % v["list"]["maxRuns"], mine)
    check("the longest page", s == 200)
    s, o = get("/v1/runs?limit=%d" % (v["list"]["maxRuns"] + 1), mine)
    check("and no longer", s == 400)


def profiles():
    def seen():
        return {p["id"]: p for p in get("/v1/model-profiles", device)[1]["profiles"]}
    def ready_is(want):
        # The gateway says what it has every few seconds, and to a store that started anew.
        return wait_for(lambda: seen()["default"]["ready"] is want)
    check("the profile is ready", ready_is(True), seen())
    v = seen()
    check("profiles", all(set(p) == {"id", "provider", "protocol", "model", "ready"} for p in v.values()) and "keyless" in v, v)
    check("one whose key is missing is not ready", v["keyless"]["ready"] is False, v)
    # Stopped, so that its successor does not come; it is up until it is dead.
    sandboxd, gateway = processes("pinfold-sandboxd"), processes("pinfold-gateway")
    for pid in sandboxd:
        os.kill(pid, signal.SIGSTOP)
    for pid in gateway:
        os.kill(pid, signal.SIGKILL)
    check("without a gateway no profile is ready", ready_is(False), seen())
    for pid in sandboxd:
        os.kill(pid, signal.SIGCONT)
    check("with a new gateway it is ready again", ready_is(True), seen())
    status, h, b = call("GET", "/v1/model-profiles", bearer=device)
    conf = open(os.path.join(INSTANCE, "etc/pinfold/providers.d/default.conf")).read()
    secret = re.search(r'secret\s*=\s*"([^"]*)"', conf)
    url = re.search(r'base_url\s*=\s*"([^"]*)"', conf)
    check("neither address nor key's name is shown", url and url[1].encode() not in b and (secret is None or secret[1].encode() not in b
          or secret[1] in ("default", "openai")), (conf, b))


ROWS = {r[0]: r for r in (l.rstrip("\n").split("\t") for l in open(os.path.dirname(os.path.abspath(__file__)) + "/../../spec/metrics.tab")) if len(r) == 5 and r[0][0] != "#"}


def figures_named(values):
    return {re.sub("_(bucket|sum|count)$", "", n) if re.sub("_(bucket|sum|count)$", "", n) in ROWS else n for n in (k.split("{")[0] for k in values)}


def prometheus(text):
    """The figures of a text that keeps to the format and to spec/metrics.tab, strictly."""
    values, at, seen, buckets, bad = {}, None, set(), {}, []
    for line in text.split("\n")[:-1]:
        m = re.fullmatch(r"# (HELP|TYPE) (\w+) (.+)", line)
        if m and m[1] == "HELP":
            bad += [] if m[2] in ROWS and m[2] not in seen and m[3] == ROWS[m[2]][4] else [line]
            at = m[2]
            seen.add(at)
            continue
        if m:
            bad += [] if m[2] == at and m[3] == ROWS[at][1] else [line]
            continue
        m = re.fullmatch(r'(\w+)(?:\{((?:[a-z]+="[A-Za-z0-9_./{}+-]+",?)+)\})? (\d+(?:\.\d+)?)', line)
        if m is None or at is None:
            bad.append(line)
            continue
        labels, name = re.findall(r'(\w+)="([^"]*)"', m[2] or ""), m[1]
        wanted = [] if ROWS[at][3] == "-" else ROWS[at][3].split(",")
        ends = ("_bucket", "_sum", "_count") if ROWS[at][1] == "histogram" else ("",)
        if name not in [at + e for e in ends] or [k for k, _ in labels] != wanted + (["le"] if name.endswith("_bucket") else []) or line.split(" ")[0] in values:
            bad.append(line)
        value = float(m[3])
        if name.endswith("_bucket"):
            row = buckets.setdefault((at, str(labels[:-1])), [])
            bad += [] if (not row or row[-1] <= value) else [line]
            row.append(value)
        elif name.endswith("_count") and ROWS[at][1] == "histogram":
            bad += [] if buckets[at, str(labels)][-1] == value else [line]
        values[line.split(" ")[0]] = value
    check("every line is a figure of the table", not bad and text.endswith("\n"), bad)
    return values


def figure(name, part):
    return next((v for k, v in prometheus(operator("metrics")).items() if k.startswith(name) and part in k), None)


def figures():
    scrape = operator("token", "create", "--metrics").strip()
    check("figures need the right", call("GET", "/metrics", bearer=mine)[0] == 403)
    # The gateway looks every few seconds, and the store was killed a moment ago.
    wait_for(lambda: b'{process="gateway"} 0' not in call("GET", "/metrics", bearer=scrape)[2])
    status, h, text = call("GET", "/metrics", bearer=scrape)
    check("Prometheus text", status == 200 and h["content-type"] == "text/plain; version=0.0.4", h)
    names = prometheus(text.decode())
    check("figures", all(names.get(f'pinfold_process_up{{process="{p}"}}') == 1 for p in ("stored", "fcgi", "gateway", "steward")) and
          names["pinfold_runs_created_total"] >= 0, names)
    check("none of a process that has nothing to do", 'pinfold_process_up{process="push"}' not in names, names)
    check("no tenant, run or token is named", not any(w in text.decode() for w in ("default", "other", mine[:20])), text)
    made = names["pinfold_runs_created_total"]
    run = create(body())[2]["runId"]
    until(mine, run)
    now = prometheus(operator("metrics"))
    check("the operator sees the same", now["pinfold_runs_created_total"] == made + 1, now)
    # What the others count is told to the store within a second or so.
    wait_for(lambda: (figure("pinfold_http_requests_total", 'route="/v1/runs",status="2xx"') or 0) > 0)
    now = prometheus(operator("metrics"))
    check("and what fcgi and the steward count", "pinfold_streams_open" in now and now['pinfold_spawn_seconds_count{box="agent"}'] > 0, now)
    for phase in ("waiting", "staging", "executing", "collecting", "verifying", "cleaning"):
        check(f"phases that were {phase}", now[f'pinfold_run_phase_seconds_count{{phase="{phase}"}}'] > 0, now)
    check("flushes were timed", now["pinfold_store_flush_seconds_count"] == now["pinfold_store_flushes_total"], now)
    was = now.get('pinfold_auth_failures_total{code="unauthorized"}', 0)
    call("GET", "/v1/runs", bearer=mine[:-1] + "x")
    call("GET", "/v1/no-such-path-as-" + mine[-8:], bearer=mine)
    after = prometheus(call("GET", "/metrics", bearer=scrape)[2].decode())
    check("who is refused is counted", after['pinfold_auth_failures_total{code="unauthorized"}'] > was, after)
    check("a made-up path has no row of its own", after['pinfold_http_requests_total{method="any",route="none",status="4xx"}'] > 0 and
          not any("no-such" in k for k in after), after)
    check("both name the same figures", {k.split("{")[0] for k in now} == {k.split("{")[0] for k in after}, set(now) ^ set(after))
    check("and all that the table has", {k for k in ROWS} == {k for k in figures_named(after)}, set(ROWS) ^ figures_named(after))


FILL = """import json, os, urllib.request
token = open('/workspace/.pinfold-event-token').read().strip()
url = os.environ['PINFOLD_MODEL_GATEWAY_URL'].split('/internal/')[0] + '/internal/v1/runs/' + os.environ['PINFOLD_RUN_ID'] + '/events'
n = 0
while n < 40:
    line = json.dumps({'event_type': 'agent.noise', 'run_id': os.environ['PINFOLD_RUN_ID'], 'task_id': os.environ['PINFOLD_RUN_ID'],
                       'sequence': n + 1, 'data': {'n': n, 'text': 'y' * 15000}}) + chr(10)
    rq = urllib.request.Request(url, json.dumps({'lines': [line] * 4}).encode(), {'Authorization': 'Bearer ' + token, 'Content-Type': 'application/json'})
    try:
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(rq).read()
    except urllib.error.HTTPError as e:
        print(e.code, e.read())
    n += 1
"""


def full_buffer():
    what = body()
    what["files"][0]["content"] = FILL
    run = create(what)[2]["runId"]
    v = until(mine, run)
    lines = events(mine, run)
    kinds = [e["event_type"] for e in lines]
    status, _, raw = call("GET", f"/v1/runs/{run}/events", bearer=mine)
    agent = sum(len(json.dumps(e)) for e in lines if e["event_type"] == "agent.noise")
    limit = get("/v1/limits", mine)[1]["events"]
    check("the agent's part is full and no fuller", limit["bytes"] - limit["reservedBytes"] - 40000 < agent and
          len(raw) <= limit["bytes"], (agent, len(raw), kinds[-8:]))
    check("events.truncated once", kinds.count("events.truncated") == 1, kinds[-8:])
    check("nothing of the agent behind it", "agent.noise" not in kinds[kinds.index("events.truncated"):] if "events.truncated" in kinds else False)
    check("the control plane still tells", any(k.startswith("check.") for k in kinds[kinds.index("events.truncated"):]) and
          kinds[-1] == "run." + v["status"] if "events.truncated" in kinds else False, kinds[-8:])
    check("dense all the same", [e["sequence"] for e in lines] == list(range(1, len(lines) + 1)))


def request_ids():
    mine_id = "chosen-by-the-client"
    status, h, b = call("GET", "/v1/runs/none", bearer=mine, headers=[("X-Request-Id", mine_id), ("Pinfold-Request-Id", mine_id)])
    own, said = h["x-request-id"], json.loads(b)["requestId"]
    check("the request id is the service's or the web server's", own == said and own != mine_id and re.fullmatch("[0-9a-f]{32}|[0-9a-f-]{36}", own), (own, said))
    if h["server"].startswith("nginx"):
        check("nginx names the request", "-" not in own, own)


for f in (request_ids, same_answer, killed_between, deletion, etags, limits, profiles, figures, full_buffer):
    case(f.__name__, f)
done()
