#!/usr/bin/python3 -B
"""What a tenant may use, of a whole instance: runs an hour, model requests and tokens a day, stored bytes, profiles and agents.
Each is told by GET /v1/limits, refused with its code and the time until there is room, and counted in the metrics."""
import re
from client import *

ONE = {"a.py": "x = 1\n"}
AGENT = """
import json, os, urllib.error, urllib.request
url, run = os.environ["PINFOLD_MODEL_GATEWAY_URL"], os.environ["PINFOLD_RUN_ID"]
model, events = (open("/workspace/.pinfold-%s-token" % n).read().strip() for n in ("run", "event"))
def send(path, token, body):
    r = urllib.request.Request(url + path, json.dumps(body).encode(), {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(r, timeout=100) as a:
            a.read()
            return [a.status, None, None]
    except urllib.error.HTTPError as e:
        return [e.code, json.load(e)["error"], e.headers["Retry-After"]]
said = [send("/chat/completions", model, {"model": os.environ["PINFOLD_MODEL_ID"], "messages": [{"role": "user", "content": "hello"}]})
        for _ in range(3)]
line = json.dumps({"event_type": "test.said", "run_id": run, "task_id": run, "sequence": 1, "data": {"said": json.dumps(said)}}) + "\\n"
send("/runs/%s/events" % run, events, {"lines": [line]})
"""


def token_of(tenant):
    return operator("token", "create", "--tenant", tenant, "--label", "quotas").strip()


def refused(what, bearer, code, least, most, **body):
    status, headers, b = call("POST", "/v1/runs", {"instruction": "x", "files": [{"path": "a.py", "content": body.get("content", "")}],
                                                   "allowedPaths": ["a.py"], "checks": [["git", "diff", "--check"]]}, bearer)
    check(what, (status, json.loads(b).get("error")) == (429, code) and least <= int(headers["Retry-After"]) <= most, (status, headers.items(), b[:300]))


def runs():
    hasty = token_of("hasty")
    check("told", get("/v1/limits", hasty)[1]["tenant"]["runsHour"] == 2)
    made = [start(hasty, ONE) for _ in range(2)]
    refused("the third run within an hour", hasty, "run_rate_exceeded", 3000, 3660)
    call("POST", f"/v1/runs/{made[0]}/cancel", bearer=hasty)
    until(hasty, made[0])
    call("DELETE", "/v1/runs/" + made[0], bearer=hasty)
    refused("a deletion gives nothing back", hasty, "run_rate_exceeded", 3000, 3660)


def asked(bearer, run):
    until(bearer, run)
    return [json.loads(e["data"]["said"]) for e in events(bearer, run) if e["event_type"] == "test.said"][0]


def requests():
    frugal = token_of("frugal")
    check("told", get("/v1/limits", frugal)[1]["tenant"]["modelRequestsDay"] == 2)
    run = start(frugal, {"agent.py": AGENT})
    said = asked(frugal, run)
    check("two requests are made, the third is refused", [s[0] == 429 for s in said] == [False, False, True] and
          said[2][1] == "tenant_request_quota_exhausted" and 80000 < int(said[2][2]) <= 88201, said)
    check("the run was charged for two", get("/v1/runs/" + run, frugal)[1]["usage"]["modelRequests"] == 2)
    refused("a run that could ask nothing", frugal, "tenant_request_quota_exhausted", 80000, 88201)


def tokens():
    silent = token_of("silent")
    check("told", get("/v1/limits", silent)[1]["tenant"]["tokensDay"] == 1)
    run = start(silent, {"agent.py": AGENT})
    said = asked(silent, run)
    check("a request that could use more is not made", [s[:2] for s in said] == [[429, "tenant_token_quota_exhausted"]] * 3, said)
    usage = get("/v1/runs/" + run, silent)[1]["usage"]
    check("and costs nothing", [usage[k] for k in ("modelRequests", "promptTokens", "completionTokens", "reservedTokens", "maxTokens")] == [0] * 5, usage)


def a_minute():
    steady = token_of("steady")
    check("told", get("/v1/limits", steady)[1]["tenant"]["modelCallsMinute"] == 2)
    run = start(steady, {"agent.py": AGENT})
    said = asked(steady, run)
    check("two requests within a minute, and no third", [s[0] for s in said] == [200, 200, 429] and
          said[2][1] == "model_call_rate_exceeded" and 1 <= int(said[2][2]) <= 65, said)
    usage = get("/v1/runs/" + run, steady)[1]["usage"]
    check("which spent nothing", (usage["modelRequests"], usage["reservedTokens"]) == (2, 0) and usage["promptTokens"] > 0, usage)


def storage():
    packed = token_of("packed")
    check("told", get("/v1/limits", packed)[1]["tenant"]["storedBytes"] == 1000000)
    made, large = [], {f"f{i}.py": "#" * 60000 + "\n" for i in range(8)}
    for _ in range(2):
        made.append(start(packed, large))
        call("POST", f"/v1/runs/{made[-1]}/cancel", bearer=packed)
        until(packed, made[-1])
    refused("there is no room for the third", packed, "tenant_storage_full", 1, 86400, content="#" * 60000)
    status, _, _ = call("DELETE", "/v1/runs/" + made[0], bearer=packed)
    check("a deletion makes room", status == 204 and start(packed, large))


def allowed():
    frugal, mine = token_of("frugal"), token()
    body = {"instruction": "x", "files": [{"path": "a.py", "content": ""}], "allowedPaths": ["a.py"], "checks": [["git", "diff", "--check"]]}
    names = lambda bearer: {p["id"] for p in get("/v1/model-profiles", bearer)[1]["profiles"]}
    check("only what it may name is listed", names(frugal) == {"default"} and {"default", "keyless"} <= names(mine), (names(frugal), names(mine)))
    for field, value, code in (("modelProfile", "keyless", "model_profile_not_allowed"), ("modelProfile", "no-such", "model_profile_not_allowed"),
                               ("agent", "builtin", "agent_not_allowed"), ("agent", "no-such", "agent_not_allowed")):
        status, _, b = call("POST", "/v1/runs", {**body, field: value}, frugal)
        check(f"{field} {value}", (status, json.loads(b)["error"], json.loads(b)["field"]) == (400, code, field), b)
    for field, value in (("modelProfile", "default"), ("agent", "script"), ("agent", "wire")):
        status, _, b = call("POST", "/v1/runs", {**body, field: value}, frugal)
        check(f"{field} {value} may be named", status in (202, 429), b)


def waits():
    frugal = token_of("frugal")
    limits = get("/v1/limits", frugal)[1]
    check("told", (limits["run"]["maxApprovalWaitSeconds"], limits["tenant"]["modelCalls"], limits["tenant"]["modelCallsRun"]) == (30, 5, 3), limits)
    body = {"instruction": "x", "files": [{"path": "a.py", "content": ""}], "allowedPaths": ["a.py"], "checks": [["git", "diff", "--check"]]}
    status, _, b = call("POST", "/v1/runs", {**body, "limits": {"approvalWaitSeconds": 31}}, frugal)
    check("a longer wait is refused", (status, json.loads(b)["error"], json.loads(b).get("field")) == (400, "invalid_approval_wait", "limits.approvalWaitSeconds"), b)
    for limits, got in (({"approvalWaitSeconds": 30}, 30), ({}, 30)):
        status, _, b = call("POST", "/v1/runs", {**body, "limits": limits}, frugal)
        check(f"{limits} may be asked for", status == 202 and get("/v1/runs/" + json.loads(b)["runId"], frugal)[1]["limits"]["approvalWaitSeconds"] == got, b)
    check("another tenant waits as long as it wants", get("/v1/limits", token())[1]["run"]["maxApprovalWaitSeconds"] == 86400)


def told():
    """What the operator is told of it."""
    frugal = token_of("frugal")
    o = json.loads(operator("tenant", "show", "frugal", "--json"))
    check("a tenant whole", o["tenant"] == "frugal" and o["known"] and o["agent"] == "script" and set(o["agents"]) == {"script", "wire"} and o["tokens"] >= 1 and
          o["quotas"]["modelRequestsDay"] == {"most": 2, "used": 2} and o["quotas"]["modelCallsRun"] == {"most": 3} and o["quotas"]["maxApprovalWaitSeconds"] ==
          {"most": 30} and sum(o["runs"].values()) >= 2, o)
    packed = json.loads(operator("tenant", "show", "packed", "--json"))
    check("what it stores", 400000 < packed["quotas"]["storedBytes"]["used"] <= packed["quotas"]["storedBytes"]["most"] == 1000000, packed)
    listed = [json.loads(l) for l in operator("tenant", "list", "--json").splitlines()]
    check("all tenants", {"default", "frugal", "packed", "other"} <= {t["tenant"] for t in listed}, listed)
    check("as a table", re.search(r"^hasty +0/4 +", operator("tenant", "list"), re.M) and "max_model_requests_day     2 of 2" in operator("tenant", "show", "frugal"))
    check("megabytes are megabytes", re.search(r"^max_stored_mb +[01]\.\d of 1 MB$", operator("tenant", "show", "packed"), re.M), operator("tenant", "show", "packed"))
    check("and no secret", frugal not in operator("tenant", "list") + operator("tenant", "show", "frugal") + operator("tenant", "show", "frugal", "--json"))
    p = subprocess.run([CLI, "tenant", "show", "nobody"], env=dict(os.environ, PINFOLD_ROOT=INSTANCE), capture_output=True, text=True)
    check("one that there is not", p.returncode == 1 and "no such tenant" in p.stderr, p)


def figures():
    metrics = operator("token", "create", "--metrics", "--label", "quotas").strip()
    status, _, text = call("GET", "/metrics", bearer=metrics)
    for code in ("run_rate_exceeded", "tenant_request_quota_exhausted", "tenant_token_quota_exhausted", "tenant_storage_full", "model_call_rate_exceeded"):
        check(code + " is counted", f'pinfold_store_refusals_total{{code="{code}"}}'.encode() in text, text[:300])
    check("and tokens", status == 200 and b"\npinfold_model_tokens_total " in text)


for f in (runs, allowed, waits, requests, tokens, a_minute, storage, told, figures):
    case(f.__name__, f)
done()
