#!/usr/bin/python3 -B
"""Who may do what: each row of spec/routes.tab, asked by each kind of caller, at each kind of host, about what is its tenant's own,
another tenant's and nobody's, of a whole instance. A row of the table that has no line in OWN below is a failure."""
import base64, hashlib, hmac, os, secrets, socket, string, sys, time
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fcgi"))
import fastcgi, wire
from client import *

SOCKET = INSTANCE + "/run/pinfold/public/fcgi.sock"
API, DEVICE, APPROVE, METRICS = 1, 2, 1, 2
MINE, OTHERS = "default", "other"
RUN = {"instruction": "x", "files": [{"path": "a.py", "content": ""}], "allowedPaths": ["a.py"], "checks": [["git", "diff", "--check"]]}


class Operator:
    """Tokens as no command makes them: expired ones."""

    def __init__(self):
        self.s, self.op = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET), 0
        self.s.connect(INSTANCE + "/run/pinfold/admin/admin.sock")
        self.tell("HELLO", version=wire.STORE)

    def tell(self, what, **values):
        number, has = wire.fields("store.msg", what)
        self.op += 1
        self.s.send(wire.frame(number, wire.filled(has, values), op=self.op, version=wire.STORE))
        number, _, _, r = wire.unframe(self.s.recv(200000))
        if number == 4:
            raise AssertionError(f"{what}: refused with {r.u16()}")

    def token(self, tenant, kind, rights=0, expired=False, revoked=False):
        tag = "".join(secrets.choice(string.ascii_letters) for _ in range(16))
        text = ("pfa_" if kind == API else "pfd_") + tag + "_" + base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")
        self.tell("TOKEN_CREATE", tenant=tenant, kind=kind, token_id=tag, hash=hashlib.sha256(text.encode()).digest(), label="m-" + tag,
                  rights=rights, expires_at=int(time.time() * 1000) - 60000 if expired else 0)
        if revoked:
            self.tell("TOKEN_REVOKE", tenant=tenant, token_id=tag)
        return text


def run_token(audience, run):
    """As the steward mints them: signed with this instance's own secret."""
    with open(INSTANCE + "/etc/pinfold/secrets/run-token", "rb") as f:
        secret = f.read().strip()
    kid = hashlib.sha256(b"pinfold run token kid\0" + secret).hexdigest()[:8]
    now = int(time.time())
    text = json.dumps({"v": 1, "aud": audience, "runId": run, "tenant": MINE, "model": "scripted-1", "iat": now, "exp": now + 300, "kid": kid},
                      separators=(",", ":"))
    first = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    return first + "." + base64.urlsafe_b64encode(hmac.new(secret, first.encode(), hashlib.sha256).digest()).decode().rstrip("=")


operator("token", "create", "--tenant", OTHERS, "--label", "matrix")
root = Operator()
sources = 0


def ask(method, path, token, vhost, body=None):
    global sources
    sources += 1 # an address of its own: only so many codes are guessed from one
    more = [("REMOTE_ADDR", f"198.51.{sources // 250}.{1 + sources % 250}")] + ([("PINFOLD_TENANT", vhost)] if vhost else [])
    a = fastcgi.ask(SOCKET, fastcgi.request(method, path, token, None if body is None else json.dumps(body).encode(), more))
    return (a.status, a.error if a.status >= 400 else None), a


makers = {MINE: root.token(MINE, API), OTHERS: root.token(OTHERS, API)}


def made(tenant):
    """A run that has ended, and left its request: one that is cancelled while its box is built leaves nothing."""
    return next(run for run in (ended(tenant) for _ in range(50)) if "request" in ask("GET", "/v1/runs/" + run, makers[tenant], None)[1].json["artifactKeys"])


def ended(tenant):
    got, a = ask("POST", "/v1/runs", makers[tenant], None, RUN)
    if got[0] != 202:
        raise AssertionError((got, a))
    run = a.json["runId"]
    ask("POST", f"/v1/runs/{run}/cancel", makers[tenant], None)
    if not wait_for(lambda: ask("GET", "/v1/runs/" + run, makers[tenant], None)[1].json["status"] == "cancelled"):
        raise AssertionError("a cancelled run does not end")
    return run


def device_of(tenant):
    return "m-" + root.token(tenant, DEVICE).split("_")[1]


def source_of(tenant):
    a = fastcgi.ask(SOCKET, fastcgi.request("POST", "/v1/sources", makers[tenant], b"\x28\xb5\x2f\xfd" + os.urandom(20), [("CONTENT_TYPE", "application/zstd")]))
    if a.status != 201:
        raise AssertionError(a)
    return a.json["sourceId"]


RUNS = {MINE: made(MINE), OTHERS: made(OTHERS)}
LABELS = {t: device_of(t) for t in RUNS}
SOURCES = {t: source_of(t) for t in RUNS}

# Who asks: name, token, tenant, kind, rights. A tenant of None: nobody that is known, refused with this code where one must be known.
CALLERS = [("nobody", None, None, 0, "unauthorized"), ("no token of ours", "x" * 60, None, 0, "unauthorized"),
           ("an unknown token", "pfa_" + "A" * 16 + "_" + "A" * 43, None, 0, "unauthorized"),
           ("a revoked API token", root.token(MINE, API, 3, revoked=True), None, 0, "unauthorized"),
           ("an expired API token", root.token(MINE, API, 3, expired=True), None, 0, "unauthorized"),
           ("a revoked device", root.token(MINE, DEVICE, revoked=True), None, 0, "unauthorized"),
           ("an expired device", root.token(MINE, DEVICE, expired=True), None, 0, "device_expired")]
CALLERS += [(f"a run token for {a}", run_token(a, RUNS[MINE]), None, 0, "unauthorized")
            for a in ("pinfold-model", "pinfold-events", "pinfold-approvals")]
for tenant in (MINE, OTHERS):
    for rights in range(4):
        CALLERS.append((f"{tenant}'s API token of rights {rights}", root.token(tenant, API, rights), tenant, API, rights))
    CALLERS.append((f"{tenant}'s device", root.token(tenant, DEVICE), tenant, DEVICE, 0))

# By handler: the body, what is answered about one's own, and what about all others' and nobody's (None: the path names nothing).
OWN = {"healthz": (None, [(200, None)], None), "readyz": (None, [(200, None)], None), "metrics": (None, [(200, None)], None),
       "openapi": (None, [(200, None)], None), "limits": (None, [(200, None)], None), "model_profiles": (None, [(200, None)], None),
       "front": (None, [(200, None)], None), "run_create": ({}, [(400, "invalid_instruction")], None), "run_list": (None, [(200, None)], None),
       "run_show": (None, [(200, None)], "run_not_found"), "run_delete": (None, [(204, None)], "run_not_found"),
       "run_events": (None, [(200, None)], "run_not_found"), "run_cancel": (None, [(200, None)], "run_not_found"),
       "artifact_list": (None, [(200, None)], "run_not_found"), "artifact_get": (None, [(200, None)], "run_not_found"),
       "approval_list": (None, [(200, None)], "run_not_found"),
       "approval_decide": ({"decision": "deny"}, [(409, "run_is_terminal"), (404, "approval_not_found")], "run_not_found"),
       "grant_revoke": (None, [(409, "run_is_terminal"), (404, "grant_not_found")], "run_not_found"),
       "source_create": ({}, [(415, "archive_required")], None), "source_show": (None, [(200, None)], "source_not_found"),
       "source_delete": (None, [(204, None)], "source_not_found"),
       "inbox": (None, [(200, None)], None), "receipts": (None, [(200, None)], None),
       "pair": ({"code": "ABCDEFGH", "label": "x"}, [(401, "invalid_pairing_code")], None),
       "device_list": (None, [(200, None)], None), "device_revoke": (None, [(204, None)], "device_not_found"),
       "push_show": (None, [(200, None), (503, "push_not_ready")], None),
       "push_subscribe": ({}, [(400, "invalid_push_endpoint")], None), "push_unsubscribe": (None, [(204, None)], None)}


def refusal(principals, rights, caller, vhost):
    """What a caller hears who gets no further; None: it does."""
    _, _, tenant, kind, has = caller
    if "none" in principals:
        return None
    if tenant is None:
        return 401, has
    if vhost is not None and vhost != tenant:
        return 403, "tenant_mismatch"
    if kind == DEVICE:
        return None if "device" in principals else (403, "forbidden")
    if principals == ["device"] or ("approve" in rights and not has & APPROVE):
        return 403, "device_required"
    if "api" not in principals or ("metrics" in rights and not has & METRICS):
        return 403, "forbidden"
    return None


def named(path, whose, tenant):
    """The path, about what is one's own, another's or nobody's."""
    tenant = tenant or MINE
    other = OTHERS if tenant != OTHERS else MINE
    run = {"own": RUNS[tenant], "another's": RUNS[other], "nobody's": "none"}[whose]
    label = {"own": LABELS[tenant], "another's": LABELS[other], "nobody's": "none"}[whose]
    source = {"own": SOURCES[tenant], "another's": SOURCES[other], "nobody's": "0" * 64}[whose]
    return path.replace("{sourceId}", source).replace("{runId}", run).replace("{label}", label).replace("{name}", "request").replace("{requestId}", "none")


def cell(row, caller, vhost, whose):
    method, path, handler, principals, rights = row
    body, own, foreign = OWN[handler]
    tenant = caller[2]
    no = refusal(principals, rights, caller, vhost)
    where = named(path, whose, tenant)
    if no is None and whose == "own" and handler == "run_delete":
        where = "/v1/runs/" + made(tenant)  # the others are needed
    if no is None and whose == "own" and handler == "source_delete":
        where = "/v1/sources/" + source_of(tenant)
    if no is None and whose == "own" and handler == "device_revoke":
        where = "/v1/devices/" + device_of(tenant)
    got, _ = ask(method, where, caller[1], vhost, body)
    want = [no] if no is not None else own if whose == "own" or foreign is None else [(404, foreign)]
    return got in want, f"{method} {path}, {whose}, by {caller[0]} at {vhost or 'any host'}: {got}, not {want}"


def matrix():
    rows, cells, wrong = [], 0, []
    for line in open(wire.SPEC + "routes.tab"):
        if line.startswith("public"):
            _, method, path, principals, _, _, _, rights, handler = line.rstrip("\n").split("\t")
            rows.append((method, path, handler, principals.split(","), rights.split(",")))
    check("each public route has a line here, and no line is of none", {r[2] for r in rows} == set(OWN),
          {r[2] for r in rows} ^ set(OWN))
    for row in rows:
        before = len(wrong)
        for caller in CALLERS:
            for vhost in (None, MINE, OTHERS):
                for whose in ("own", "another's", "nobody's") if "{" in row[1] else ("own",):
                    ok, what = cell(row, caller, vhost, whose) if row[2] in OWN else (False, row[2])
                    cells += 1
                    wrong += [] if ok else [what]
        check(f"{row[0]} {row[1]}", len(wrong) == before, "; ".join(wrong[before:before + 3]))
    check(f"{cells} cells, each as it must be", not wrong and cells > 1500, (cells, len(wrong)))
    check("what refused callers named is there", all(ask("GET", "/v1/runs/" + RUNS[t], makers[t], None)[0][0] == 200 and
          LABELS[t] in str(ask("GET", "/v1/devices", makers[t], None)[1].json) for t in RUNS))


case("the matrix", matrix)
done()
