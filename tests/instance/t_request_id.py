#!/usr/bin/python3
"""One id names a request in the web server's log, in the answer, in its error and in the audit log, behind each web server
with the form of a log line that its example proposes."""
import json
import urllib.error, urllib.request
from client import *
from front import Front

mine = token()


def ask(url, method, path, bearer):
    r = urllib.request.Request(url + path, method=method, headers={"Authorization": "Bearer " + bearer, "X-Request-Id": "chosen-by-client",
                                                                   "Pinfold-Request-Id": "chosen-by-client"})
    try:
        with urllib.request.urlopen(r, timeout=PATIENCE) as a:
            return a.status, a.headers["x-request-id"], a.read()
    except urllib.error.HTTPError as e:
        return e.code, e.headers["x-request-id"], e.read()


def audited(id):
    return [l for l in map(json.loads, operator("audit", "tail", "-n", "100000").splitlines()) if l["requestId"] == id]


def web(server):
    with Front(server, "--log") as f:
        status, id, body = ask(f.url, "GET", "/v1/runs/none", mine)
        check(f"{server}: the answer and its error have one id", status == 404 and json.loads(body)["requestId"] == id != "chosen-by-client", (id, body))
        # Another path than any before, so that the line in the audit log is not held back.
        status, refused, body = ask(f.url, "GET", "/v1/runs", mine[:-1] + ("x" if mine[-1] != "x" else "y"))
        check(f"{server}: so has a refusal", status == 401 and json.loads(body)["requestId"] == refused != id, (refused, body))
        check(f"{server}: and its line in the audit log", wait_for(lambda: [l["event"] for l in audited(refused)] == ["auth.denied"]), audited(refused))
        ask(f.url, "GET", "/healthz", mine)  # lighttpd may keep a line back for a moment
        def line(path, id):
            return [l for l in open(f.dir + "/access.log").read().splitlines() if f"GET {path} HTTP" in l and l.split()[-1].strip('"') == id]
        check(f"{server}: its log names them", wait_for(lambda: line("/v1/runs/none", id) and line("/v1/runs", refused)), open(f.dir + "/access.log").read())
        check(f"{server}: and no token", mine not in open(f.dir + "/access.log").read())


for server in ("nginx", "apache", "lighttpd"):
    case(server, lambda: web(server))
done()
