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


def refusal(url):
    """One that has its line in the audit log: those of a minute may be held back, and other tests cause some as well."""
    status, id, body = ask(url, "GET", "/v1/runs", mine[:-1] + ("x" if mine[-1] != "x" else "y"))
    return (status, id, body) if wait_for(lambda: audited(id), seconds=3) else None


def web(server):
    with Front(server, "--log") as f:
        status, id, body = ask(f.url, "GET", "/v1/runs/none", mine)
        check(f"{server}: the answer and its error have one id", status == 404 and json.loads(body)["requestId"] == id != "chosen-by-client", (id, body))
        status, refused, body = wait_for(lambda: refusal(f.url), pause=2) or (None, None, "{}")
        check(f"{server}: so has a refusal", status == 401 and json.loads(body).get("requestId") == refused != id, (refused, body))
        check(f"{server}: and its line in the audit log", [l["event"] for l in audited(refused)] == ["auth.denied"], audited(refused))
        ask(f.url, "GET", "/healthz", mine)  # lighttpd may keep a line back for a moment
        def line(path, id):
            return [l for l in open(f.dir + "/access.log").read().splitlines() if f"GET {path} HTTP" in l and l.split()[-1].strip('"') == id]
        check(f"{server}: its log names them", wait_for(lambda: line("/v1/runs/none", id) and line("/v1/runs", refused)), open(f.dir + "/access.log").read())
        check(f"{server}: and no token", mine not in open(f.dir + "/access.log").read())


for server in ("nginx", "apache", "lighttpd"):
    case(server, lambda: web(server))
done()
