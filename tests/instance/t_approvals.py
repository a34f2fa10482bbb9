#!/usr/bin/python3 -B
"""Agents ask, a person decides: what was shown is what is allowed, once or for the rest of the run; nobody else answers."""
import signal
from asking import *
from processes import box_uids, in_boxes


def once():
    run = begin('ask("q1", "make test")\ntell(tokens=tok)\ntell(q1=wait("q1"))\nask("q2", "make test")\ntell(q2=wait("q2"))\n')
    v = waiting(run, "q1")
    q = v["pendingApprovals"][0]
    check("a question is in the snapshot", v["phase"] == "awaiting_approval" and {k: q[k] for k in q if k not in ("requestedAt", "expiresAt")} ==
          {"requestId": "q1", "actionId": "call-q1", "effect": "execute", "reason": "model_tool", "policyReason": "the rule",
           "preview": "make test", "digest": digest("make test"), "textShortened": False} and q["expiresAt"] - q["requestedAt"] == 600000, v)
    check("and in the list", get(f"/v1/runs/{run}/approvals", phone) == (200, {"pending": [q], "decisions": [], "grants": []}))
    link = f"/v1/runs/{run}/approvals"
    other = operator("token", "create", "--tenant", "other", "--approve").strip()
    check("another tenant's is none", call("GET", link, bearer=other)[0] == 404 and code(run, "q1", "deny", other) == (404, "run_not_found"))
    check("an API token does not decide", code(run, "q1", "allow_once", mine) == (403, "device_required"))
    run_tokens = hears(run, "tokens")
    check("no token of the run does", [code(run, "q1", "allow_once", t) for t in run_tokens.values()] == [(401, "unauthorized")] * 3)
    check("nor does nobody", code(run, "q1", "allow_once", None) == (401, "unauthorized"))
    forged = [("X-Forwarded-For", "127.0.0.1"), ("X-Pinfold-Device", "first device"), ("Cookie", "pinfold_device=" + phone)]
    status, _, body = call("POST", link + "/q1", {"decision": "allow_once"}, headers=forged)
    check("nor headers", status in (401, 403), body)
    check("another word", code(run, "q1", "yes") == (400, "invalid_approval_decision"))
    check("a key more", code(run, "q1", "deny", why="x") == (400, "unknown_field"))
    check("another question", code(run, "q9", "deny") == (404, "approval_not_found"))
    check("not what was shown", code(run, "q1", "allow_once", digest=digest("make all")) == (409, "digest_mismatch"))
    status, o = answer(run, "q1", "allow_once", digest=q["digest"])
    check("it is decided", status == 200 and (o["requestId"], o["decision"]) == ("q1", "allow_once"), o)
    check("the agent hears of it, with what it was for", hears(run, "q1") == [200, "decided", "allow_once", digest("make test"), None], told(run))
    tool = operator("token", "create", "--approve").strip()
    status, o = answer(run, "q1", "deny", tool)
    check("the first answer stays", status == 409 and (o["error"], o["decision"]) == ("already_decided", "allow_once") and o["decidedAt"] > 0, o)
    status, o = answer(run, "q1", "allow_session")
    check("also against a first tap", status == 409 and (o["error"], o["decision"]) == ("already_decided", "allow_once"), o)
    waiting(run, "q2")
    check("allowed once is asked again; a tool that may decides", answer(run, "q2", "deny", tool)[0] == 200)
    check("a refusal is heard", hears(run, "q2")[:3] == [200, "decided", "deny"])
    v = until(mine, run)
    check("decisions stay in the snapshot", [(d["requestId"], d["decision"], d["device"]) for d in v["approvalDecisions"]] ==
          [("q2", "deny", "created by the operator"), ("q1", "allow_once", "first device")], v["approvalDecisions"])
    check("after the end nothing is decided", code(run, "q7", "deny") == (409, "run_is_terminal"))
    kinds = [e["event_type"] for e in events(mine, run) if e["event_type"].startswith("approval.")]
    check("the events say it", kinds == ["approval.requested", "approval.resolved"] * 2, kinds)


def always():
    run = begin('''
ask("q1", "git status")
tell(q1=wait("q1"))
for i, p in enumerate(["git status", "git status; rm -rf x", "git status $(touch y)", " git status", "git status\\u200b", "/usr/bin/git status"]):
    ask("s%d" % i, p)
ask("other", "git status", effect="modify")
tell(s0=poll("s0"), rest=[poll("s%d" % i)[0] for i in range(1, 6)] + [poll("other")[0]])
tell(end=wait("s1"))
''')
    q = waiting(run, "q1")["pendingApprovals"][0]
    check("one tap is not enough", code(run, "q1", "allow_session", confirm="x" * 43) == (409, "confirm_invalid"))
    status, o = answer(run, "q1", "allow_session", digest=q["digest"])
    check("the first tap decides nothing", status == 202 and o["status"] == "confirm" and 0 < o["expiresAt"] - q["requestedAt"] and
          waiting(run, "q1")["pendingApprovals"][0]["requestId"] == "q1", o)
    tool = operator("token", "create", "--approve").strip()
    check("another's second tap", code(run, "q1", "allow_session", tool, confirm=o["confirm"]) == (409, "confirm_invalid"))
    check("a nonce is for allow_session alone", code(run, "q1", "allow_once", confirm=o["confirm"]) == (400, "invalid_request"))
    status, o = answer(run, "q1", "allow_session", digest=q["digest"], confirm=o["confirm"])
    check("the second tap decides", (status, o["decision"]) == (200, "allow_session"), o)
    check("the agent hears of it", hears(run, "q1")[:4] == [200, "decided", "allow_session", digest("git status")], told(run))
    s0 = hears(run, "s0")
    check("the identical action is not asked again", s0[0] == 200 and s0[1]["decision"] == "allow_session" and s0[1]["digest"] == digest("git status"), s0)
    check("nothing that only begins so, is written otherwise or does more", hears(run, "rest") == [202] * 6, told(run))
    v = waiting(run, "s1")
    hidden = [x for x in v["pendingApprovals"] if x["requestId"] == "s4"][0]
    check("what was hidden is marked", hidden["preview"] == "git status" and hidden["textShortened"] and hidden["digest"] != digest("git status"), hidden)
    check("and cannot be allowed for good", code(run, "s4", "allow_session") == (403, "decision_not_offered"))
    call("POST", f"/v1/runs/{run}/cancel", bearer=phone)
    v = until(mine, run)
    check("a cancel ends what waits", v["status"] == "cancelled" and not v["pendingApprovals"] and
          [d["decision"] for d in v["approvalDecisions"]].count("expired") == 6, v)


def shown():
    run = begin('''
big = "x" * 15990 + "; rm -rf ~" + "y" * 8000
ask("big", big)
ask("turned", "a\\u202eb")
ask("folder", "git status", cwd="/elsewhere")
ask("blank", "\\n\\u2800 ")
ask("effect", "git status", effect=["read"])
ask("why", "git status", reason={"then": "rm -rf ~"})
ask("cut", "git status", truncated={"then": "rm -rf ~"})
ask("secret", "deploy --token=" + "a1" * 8, reason="password: hunter22")
tell(big=wait("big"))
''')
    v = waiting(run, "big", "turned", "folder", "blank", "effect", "why", "cut", "secret")
    q = {x["requestId"]: x for x in v["pendingApprovals"]}
    whole = "x" * 15990 + "; rm -rf ~" + "y" * 8000
    check("a long one is marked, and its digest is of all of it", q["big"]["textShortened"] and len(q["big"]["preview"].encode()) <= 16000 and
          q["big"]["digest"] == digest(whole), (len(q["big"]["preview"]), q["big"]["digest"]))
    check("so is one that would turn the line", q["turned"]["textShortened"] and q["turned"]["preview"] == "ab")
    check("so is one of which the card has not all, or shows nothing", q["folder"]["textShortened"] and q["blank"]["textShortened"] and
          code(run, "folder", "allow_session") == code(run, "blank", "allow_session") == (403, "decision_not_offered"), {i: x["textShortened"] for i, x in q.items()})
    for i in ("effect", "why", "cut"):
        check("so is one that says something where the card has no word of it: " + i, q[i]["textShortened"] and
              code(run, i, "allow_session") == (403, "decision_not_offered"), q[i])
    check("a secret is masked, in the card and in the event, and the digest is of the whole",
          (q["secret"]["preview"], q["secret"]["reason"], q["secret"]["textShortened"], q["secret"]["digest"]) ==
          ("deploy --token=[masked]", "password: [masked]", True, digest("deploy --token=" + "a1" * 8)) and
          not any("a1a1" in json.dumps(e) or "hunter22" in json.dumps(e) for e in events(mine, run)) and
          code(run, "secret", "allow_session") == (403, "decision_not_offered"), q["secret"])
    check("it may be allowed once", answer(run, "big", "allow_once")[0] == 200)
    check("and what is allowed is the whole", hears(run, "big")[:4] == [200, "decided", "allow_once", digest(whole)])
    until(mine, run)


def crowd():
    run = begin('''
for i in range(34):
    ask("q%02d" % i, "p%d" % i)
ask("bad/id", "x")
tell(first=poll("q00")[0], last=[poll("q32"), poll("q33")])
tell(end=wait("q00"))
''')
    last = hears(run, "last")
    check("the 33rd is refused, and pushes none out", told(run)["first"] == 202 and [(s, o["decision"]) for s, o in last] == [(200, "deny")] * 2, told(run))
    v = waiting(run, "q00")
    check("32 wait", len(v["pendingApprovals"]) == 32 and [q["requestId"] for q in v["pendingApprovals"]] == ["q%02d" % i for i in range(32)])
    rejected = [e["data"] for e in events(mine, run) if e["event_type"] == "approval.rejected"]
    check("which an event says", [d["requestId"] for d in rejected] == ["q32", "q33"], rejected)
    answer(run, "q00", "deny")
    until(mine, run)


def late():
    run = begin('ask("q1", "x")\ntell(q1=wait("q1"))\nask("q2", "x")\ntell(q2=wait("q2"))\n', limits={"approvalWaitSeconds": 1})
    check("nobody in time is no refusal", hears(run, "q1")[:3] == [200, "expired", None], told(run))
    check("and cannot be answered any more", code(run, "q1", "allow_once") in ((409, "approval_expired"), (409, "run_is_terminal")))
    v = until(mine, run)
    check("it is said so", [d["decision"] for d in v["approvalDecisions"]] == ["expired"] * 2 and "device" not in v["approvalDecisions"][0], v)


def builtin(decide, want):
    """The built-in agent with a person beside it who answers whatever it asks."""
    run = start(mine, {"calc.py": "def add(a, b):\n    return a - b\n", "test_calc.py":
                       "import unittest\nfrom calc import add\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(add(1, 2), 3)\n"},
                agent="builtin", allowed=["calc.py"], permissions={"write_file": "ask", "edit_file": "ask", "run_check": "ask"})
    asked, end = [], time.monotonic() + 120
    while time.monotonic() < end:
        v = get("/v1/runs/" + run, phone)[1]
        if v["status"] in TERMINAL:
            break
        for q in v["pendingApprovals"]:
            asked.append(q)
            decide(run, q)
        time.sleep(0.1)
    check(f"the built-in agent asked {len(asked)} times and is {want}", v["status"] == want and asked and
          all(q["digest"] == digest(q["preview"], q["effect"]) for q in asked), (v["status"], v.get("summary"), asked))
    return v, asked


def yes(run, q):
    answer(run, q["requestId"], "allow_once", digest=q["digest"])


def for_good(run, q):
    status, o = answer(run, q["requestId"], "allow_session", digest=q["digest"])
    if status == 202:
        answer(run, q["requestId"], "allow_session", digest=q["digest"], confirm=o["confirm"])


def example(decision, want, says):
    """The agent of examples/asking, which docs/approvals.md shows how to write: it asks, and does as it is told."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/asking/agent.py")) as f:
        program = f.read()
    command = "echo second >>note.txt; ls -A .."
    run = start(mine, {"agent.py": program, "note.txt": "first\n"}, agent="script", allowed=["note.txt"], checks=[["git", "diff", "--check"]],
                instruction=command)
    q = until(mine, run, lambda v: v["pendingApprovals"] or v["status"] in TERMINAL)["pendingApprovals"]
    check("it asks what it would do", len(q) == 1 and q[0]["preview"] == command and q[0]["effect"] == "execute" and not q[0]["textShortened"], q)
    answer(run, q[0]["requestId"], decision, digest=q[0]["digest"])
    v = until(mine, run)
    check(f"the example obeys {decision}", (v["status"], v["changedFiles"], says in v["summary"]) == (want, ["note.txt"] if want == "completed" else [], True), v)
    out = [e["data"]["output"] for e in events(mine, run) if e["event_type"] == "tool.output"]
    check("and leaves no token to what it starts", out == (["request.json\nsource\n"] if want == "completed" else []), out)


def people():
    """What a device sees of all runs, what it takes back, and what is kept of what it did."""
    run = begin('''
ask("q1", "git status")
wait("q1")
for i in range(1000):
    ask("again%d" % i, "git status")
    if poll("again%d" % i)[0] == 202:
        break
    time.sleep(0.1)
tell(again=i)
tell(asked=wait("again%d" % i))
''', instruction="\n  \u202e\nTidy \x1b[31mup.\nAnd more.")
    waiting(run, "q1")

    def card(request):
        status, o = get("/v1/inbox?limit=100", phone)
        assert status == 200 and o["count"] >= len(o["pending"]) and o["pollSeconds"] == (2 if o["count"] else o["pollSeconds"]), o
        return next((c for c in o["pending"] if (c["runId"], c["requestId"]) == (run, request)), None)
    c = card("q1")
    check("the card is in the inbox, with what its run is", c is not None and c["title"] == "Tidy [31mup." and c["agent"] == "script" and
          {k: c[k] for k in waiting(run, "q1")["pendingApprovals"][0]} == waiting(run, "q1")["pendingApprovals"][0], c)
    status, h, _ = call("GET", "/v1/inbox?limit=100", bearer=phone)
    check("304 while nothing changes", call("GET", "/v1/inbox?limit=100", bearer=phone, headers=[("If-None-Match", h["ETag"])])[0] == 304)
    for_good(run, c)
    check("and no more when it is decided", card("q1") is None and call("GET", "/v1/inbox?limit=100", bearer=phone, headers=[("If-None-Match", h["ETag"])])[0] == 200)
    grants = get(f"/v1/runs/{run}/approvals", phone)[1]["grants"]
    check("what is allowed for the rest of the run is listed", [(g["requestId"], g["preview"], g["digest"]) for g in grants] ==
          [("q1", "git status", digest("git status"))] and grants == get("/v1/runs/" + run, mine)[1]["approvalGrants"], grants)
    grant = f"/v1/runs/{run}/approvals/q1/grant"
    check("no program takes it back", call("DELETE", grant, bearer=mine)[0] == 403 and call("DELETE", grant)[0] == 401)
    check("a device does", call("DELETE", grant, bearer=phone)[0] == 204 and call("DELETE", grant, bearer=phone)[0] == 404)
    n = hears(run, "again")
    c = wait_for(lambda: card(f"again{n}")) and card(f"again{n}")
    check("then the identical action is asked again", c["digest"] == digest("git status") and get(f"/v1/runs/{run}/approvals", phone)[1]["grants"] == [], c)
    answer(run, c["requestId"], "deny")
    check("and that answer counts", hears(run, "asked")[:3] == [200, "decided", "deny"], told(run))
    until(mine, run)
    check("a terminal run's card is nowhere", card("q1") is None and call("DELETE", f"/v1/runs/{run}", bearer=mine)[0] == 204)
    status, o = get("/v1/receipts", phone)
    kept = [(r["kind"], r["outcome"], r["requestId"], r["digest"]) for r in o["receipts"] if r["runId"] == run]
    check("receipts outlive the run", kept == [("answer", "deny", f"again{n}", digest("git status")), ("grant_revoke", "revoked", "q1", digest("git status")),
                                               ("answer", "allow_session", "q1", digest("git status"))], kept)
    check("with the device that it was", {r["device"] for r in o["receipts"] if r["runId"] == run} == {d["label"] for d in get("/v1/devices", phone)[1]["devices"] if d["current"]}, o)


case("once", once)
BRIDGED = """
import json, subprocess, sys
def read():
    return json.loads(sys.stdin.readline())
def send(**m):
    print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
for result in ({"protocolVersion": 1}, {"sessionId": "s"}):
    send(id=read()["id"], result=result)
prompt = read()
for i in range(2):
    send(id="q%d" % i, method="session/request_permission", params={"sessionId": "s", "toolCall": {
        "toolCallId": "c%d" % i, "title": "nothing to see", "kind": "execute", "rawInput": {"command": "echo > done.py"}}, "options": [
        {"optionId": "all", "kind": "allow_always"}, {"optionId": "one", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}]})
    said = read()["result"]["outcome"]
    if said != {"outcome": "selected", "optionId": "one"}:
        send(id=prompt["id"], result={"stopReason": "refusal"})
        sys.exit()
    subprocess.run(["sh", "-c", "echo > done.py"])
send(method="session/update", params={"sessionId": "s", "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Done."}}})
send(id=prompt["id"], result={"stopReason": "end_turn"})
sys.stdin.read()
"""


def bridged(decision, status):
    """An agent of others, by the Agent Client Protocol: a person's answer, for this time or for the rest of the run."""
    run = start(mine, {"agent.py": BRIDGED, "done.py": "1\n"}, agent="bridged", allowed=["done.py"], checks=[["git", "diff", "--check"]])
    card = until(mine, run, lambda v: v["pendingApprovals"] or v["status"] in TERMINAL)["pendingApprovals"][0]
    check("its command is shown, not its title", card["preview"] == "echo > done.py\n" and card["effect"] == "execute" and card["reason"] == "nothing to see", card)
    if decision == "allow_session":
        _, o = answer(run, card["requestId"], decision, digest=card["digest"])
        check("allowed for the rest", answer(run, card["requestId"], decision, digest=card["digest"], confirm=o["confirm"])[0] == 200)
    else:
        check(decision, answer(run, card["requestId"], decision, digest=card["digest"])[0] == 200)
    v = until(mine, run)
    decisions = [d["decision"] for d in v["approvalDecisions"]]
    check(f"{decision}: {status}", v["status"] == status and len(decisions) == (2 if decision == "allow_session" else 1), v)
    if status == "completed":
        check("what it said, as event and claim", v["summary"] == "Done." and "Done." in [e["data"].get("text") for e in events(mine, run)], v)
        check("what it did is the patch", v["changedFiles"] == ["done.py"] and '"session/prompt"' in artifact(mine, run, "transcript"), v)


# An agent that would rather not be asked about: every number that could be its bridge's, every way to the gateway but the model's.
REACHES = BRIDGED.split("for i in range")[0] + """
import os, urllib.request
def no(what, f):
    try:
        print(what, "OPEN", f(), file=sys.stderr)
    except OSError as e:
        print(what, getattr(e, "code", None) or e.strerror, file=sys.stderr)
rq = json.load(open("/workspace/request.json"))
def ask(path, data=None, **headers):
    return urllib.request.urlopen(urllib.request.Request(rq["gateway_url"] + path, json.dumps(data).encode() if data else None, {"Content-Type": "application/json", **headers})).status
line = json.dumps({"event_type": "approval.requested", "run_id": rq["run_id"], "task_id": rq["task_id"], "sequence": 900, "data": {"request_id": "forged"}}) + "\\n"
print("models", ask("/models"), file=sys.stderr)
for more in ({}, {"Authorization": "Bearer not-needed"}):
    no("events", lambda: ask("/runs/%s/events" % rq["run_id"], {"lines": [line]}, **more))
    no("approvals", lambda: ask("/runs/%s/approvals/q" % rq["run_id"], **more))
print("seen", sorted(int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()), file=sys.stderr)
hit = []
for p in range(1, 2000):
    for sig in (9, 19):
        try:
            if p != os.getpid(): os.kill(p, sig); hit.append(p)
        except PermissionError: hit.append(-p)
        except OSError: pass
print("signalled", sum(p > 0 for p in hit), "refused", len({p for p in hit if p < 0}), file=sys.stderr)
print("files", sorted(os.listdir("/workspace")), file=sys.stderr)
open("/workspace/response.json", "w").write(json.dumps({"status": "completed", "summary": "Believe me."}))
open("done.py", "w").write("2\\n")
send(method="session/update", params={"sessionId": "s", "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Tried."}}})
send(id=prompt["id"], result={"stopReason": "end_turn"})
sys.stdin.read()
"""


def reaches():
    run = start(mine, {"agent.py": REACHES, "done.py": "1\n"}, agent="bridged", allowed=["done.py"], checks=[["git", "diff", "--check"]])
    v = until(mine, run)
    said = artifact(mine, run, "transcript")
    check("its bridge outlives what it tries", v["status"] == "completed" and v["summary"] == "Tried." and "signalled 0 refused 2" in said, (v, said))
    check("it sees nobody but itself", "seen []" in said, said)
    check("its connection is enough for the model and for nothing else", "models 200" in said and said.count("events 401") == 2 and
          said.count("approvals 401") == 2 and not [e for e in events(mine, run) if "forged" in json.dumps(e)], said)
    check("its tokens lie nowhere", "files ['home', 'request.json', 'source']" in said or "files ['request.json', 'source']" in said, said)


def without():
    """With its bridge the agent goes, and the run fails."""
    run = start(mine, {"agent.py": "import time\nprint('{}', flush=True)\ntime.sleep(600)\n", "done.py": "1\n"}, agent="bridged", allowed=["done.py"])
    uids = box_uids()

    def both():
        """Those of the box that are a bridge, and that are an agent, by the ids of the machine; they come and go."""
        found = {1: [], 2: []}
        for p in in_boxes():
            try:
                kind = (os.stat(f"/proc/{p}").st_uid - uids.start) % 3
                found.get(kind, []).append((p, open(f"/proc/{p}/cmdline", "rb").read()))
            except OSError:
                pass
        return [p for p, line in found[2] if b"pinfold-bridge" in line], [p for p, line in found[1] if b"agent.py" in line]

    check("both are there", wait_for(lambda: [len(p) for p in both()] == [1, 1]), both())
    os.kill(both()[0][0], signal.SIGKILL)
    v = until(mine, run)
    check("the run fails", (v["status"], v.get("error")) == ("failed", "sandbox_agent_failed") and both() == ([], []), v)


case("its bridge is out of reach", reaches)
case("without its bridge", without)
case("people", people)
case("bridged, for the rest of the run", lambda: bridged("allow_session", "completed"))
case("bridged, refused", lambda: bridged("deny", "failed"))
case("bridged, called off", lambda: bridged("cancel", "failed"))
case("always", always)
case("shown", shown)
case("crowd", crowd)
case("late", late)
case("allowed", lambda: builtin(yes, "completed"))
case("allowed for good", lambda: builtin(for_good, "completed"))
case("the example, allowed", lambda: example("allow_once", "completed", "ended with 0"))
case("the example, refused", lambda: example("deny", "failed", "not allowed to: deny"))
v, asked = builtin(lambda run, q: answer(run, q["requestId"], "cancel"), "failed")
check("called off after one question", len(asked) == 1 and "called_off" in v.get("summary", ""), v)
done()
