"""What people see of all runs: the inbox, receipts, what is allowed for the rest of a run, and devices page by page."""
import json
from fastcgi import *
from fakestore import RUNNING, question, receipt


def cases(check, rig, BODY, as_uid):
    def get(path, token=None, more=()):
        return ask(rig.path, request("GET", path, token or rig.token, more=more))

    def post(path, body):
        return ask(rig.path, request("POST", path, rig.token, json.dumps(body).encode()))

    def pages(path, member, limit):
        """All rows of a list, page by page, and how many pages there were."""
        rows, n, after = [], 0, ""
        while after is not None:
            o = get(f"{path}?limit={limit}{after and '&after=' + after}", rig.device).json
            rows, n, after = rows + o[member], n + 1, o["next"]
        return rows, n

    def inbox():
        store = rig.store
        a = get("/v1/inbox", rig.device)
        check("an inbox without anything", a.status == 200 and a.json == {"pending": [], "count": 0, "pollSeconds": 10, "next": None}, a)
        store.busy = True
        b = get("/v1/inbox", rig.device, [("HTTP_IF_NONE_MATCH", a.headers["etag"])])
        check("a run goes on: ask again sooner, which is another answer", b.status == 200 and b.json["pollSeconds"] == 2, b)
        store.busy = False
        store.waiting = [(n, f"run-{n}", f"q{n}", question(f"run-{n}", f"q{n}", at=n, agent="builtin", title="Repair it" if n > 1 else "")) for n in range(1, 8)]
        a = get("/v1/inbox", rig.device)
        card = {"agent": "builtin", "requestId": "q1", "actionId": "call", "effect": "execute", "reason": "why", "policyReason": "rule", "preview": "make test",
                "digest": "64" * 32, "textShortened": False, "requestedAt": 1, "expiresAt": 3}
        check("a card", a.json["pending"][0] == dict(card, runId="run-1") and a.json["pending"][1]["title"] == "Repair it", a)
        check("all of them, and how many", [c["runId"] for c in a.json["pending"]] == [f"run-{n}" for n in range(1, 8)] and
              (a.json["count"], a.json["pollSeconds"], a.json["next"]) == (7, 2, None), a)
        tag = a.headers["etag"]
        b = get("/v1/inbox", rig.device, [("HTTP_IF_NONE_MATCH", tag)])
        check("304 for the same", b.status == 304 and b.body == b"" and b.headers["etag"] == tag and not tag.startswith("W/"), b)
        store.page = 2
        for limit in (1, 3, 100):
            rows, n = pages("/v1/inbox", "pending", limit)
            check(f"pages of {limit} join", [c["requestId"] for c in rows] == [f"q{n}" for n in range(1, 8)] and n == -(-7 // limit), (rows, n))
        del store.waiting[3]
        b = get("/v1/inbox", rig.device, [("HTTP_IF_NONE_MATCH", tag)])
        check("one less is another answer", b.status == 200 and b.json["count"] == 6 and b.headers["etag"] != tag, b)
        check("another tenant's is its own", get("/v1/inbox", store.token("other", 2, label="5")).json["count"] == 0)
        store.waiting, store.page = [], 200

        store.receipts = [(9, "receipt-9", receipt(9, 2)), (8, "receipt-8", receipt(8, 1, request=""))] + [
            (n, f"receipt-{n}", receipt(n, 0, n % 4 + 1)) for n in range(7, 0, -1)]
        rows, n = pages("/v1/receipts", "receipts", 4)
        words = ["allow_once", "allow_session", "deny", "cancel"]
        check("receipts, newest first", n == 3 and [(r["time"], r["kind"], r["outcome"]) for r in rows] == [(9, "grant_revoke", "revoked"), (8, "cancel", "requested")] +
              [(n, "answer", words[n % 4]) for n in range(7, 0, -1)], (rows, n))
        check("one of them", rows[0] == {"time": 9, "device": "phone", "runId": "run-1", "requestId": "q1", "kind": "grant_revoke", "outcome": "revoked",
                                         "digest": "64" * 32} and set(rows[1]) == {"time", "device", "runId", "kind", "outcome"}, rows[:2])
        check("another tenant's are its own", get("/v1/receipts", store.token("other", 2, label="6")).json == {"receipts": [], "next": None})
        store.receipts = []

        for n in range(5):
            store.token("other", 2, label=f"{n}: \u00e4 x")
        third = store.token("other", 2, label="0: the first")
        rows, after, seen = [], "", 0
        while after is not None:
            o = get(f"/v1/devices?limit=2{after and '&after=' + after}", third).json
            rows, after, seen = rows + o["devices"], o["next"], seen + 1
        check("pages of devices join, in the order of their labels", [d["label"] for d in rows] == sorted(d["label"] for d in rows) and len(rows) == 8 and seen == 4, rows)
        for path in ("/v1/inbox", "/v1/receipts", "/v1/devices"):
            for q in ("limit=0", "limit=101", "limit=x", "limit=", "after=", "after=!", "after=AAAA", "after=" + "QUFB" * 54, "limit=1&limit=1", "x=1",
                  *(() if path == "/v1/devices" else ("after=Og", "after=MQ", "after=MTo", "after=MTphOmI6Yw"))):
                check(f"{path}?{q}", refused(get(f"{path}?{q}", rig.device), 400, "invalid_query"), get(f"{path}?{q}", rig.device))

    def grants():
        run = post("/v1/runs", dict(BODY, instruction="\n \u202e\nRepair \x1b[2Jit.\nAnd more.")).json["runId"]
        x = rig.store.runs["main", run]
        check("a run is known by how its instruction begins", x["title"] == "Repair [2Jit.", x["title"])
        row = next(r for r in get("/v1/runs").json["runs"] if r["runId"] == run)
        check("also in the list", row["title"] == "Repair [2Jit.", row)
        x.update(asked=[question(run, "q1", 1, 2, granted=1), question(run, "q2", 1, 2), question(run, "q3")], granted=["q1"], state=RUNNING)
        a = get(f"/v1/runs/{run}/approvals", rig.device)
        want = [{"requestId": "q1", "effect": "execute", "preview": "make test", "digest": "64" * 32, "decidedAt": 2, "device": "phone"}]
        check("what is allowed for the rest of the run", a.json["grants"] == want and len(a.json["decisions"]) == 2 and len(a.json["pending"]) == 1, a)
        check("also in the snapshot", get("/v1/runs/" + run).json["approvalGrants"] == want)

        def take(request_, token):
            return ask(rig.path, request("DELETE", f"/v1/runs/{run}/approvals/{request_}/grant", token))
        check("none was given by this", refused(take("q2", rig.device), 404, "grant_not_found") and refused(take("!", rig.device), 404, "grant_not_found"))
        check("an API token alone may not", refused(take("q1", rig.token), 403, "device_required"))
        check("nor a process of a sandbox", as_uid(100003, request("DELETE", f"/v1/runs/{run}/approvals/q1/grant", rig.device)) == "403 caller_refused")
        check("no query", refused(ask(rig.path, request("DELETE", f"/v1/runs/{run}/approvals/q1/grant?x=1", rig.device)), 400, "invalid_query"))
        a = take("q1", rig.device)
        check("it is taken back", a.status == 204 and a.body == b"" and x["granted"] == [], a)
        check("once", refused(take("q1", rig.device), 404, "grant_not_found"))
        x["granted"] = ["q1"]
        check("an API token with the right may", take("q1", rig.store.token("main", rights=1)).status == 204)

    inbox()
    grants()
