#!/usr/bin/python3 -B
"""The page's files as each of the three web servers gives them with the installed configuration, at the root of a host and
below a prefix: types, headers, nothing else of the disk; and the API beside them, with the cookie of a paired page."""
import http.client, json, os, urllib.parse
from client import *
from front import Front

WEB = INSTANCE + "/usr/share/pinfold/web"
TYPES = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml",
         "png": "image/png", "webmanifest": "application/manifest+json"}
# What the browser must be told to enforce. A policy is compared word by word: whoever loosens it has to say so here.
POLICY = {"default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "img-src": "'self'", "connect-src": "'self'", "manifest-src": "'self'",
          "worker-src": "'self'", "base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'",
          "require-trusted-types-for": "'script'", "trusted-types": "pinfold"}
HEADERS = {"x-content-type-options": "nosniff", "referrer-policy": "no-referrer", "cross-origin-opener-policy": "same-origin",
           "cross-origin-resource-policy": "same-origin", "cache-control": "no-cache"}
tries = 0


def files():
    return sorted(os.path.relpath(os.path.join(d, n), WEB) for d, _, names in os.walk(WEB) for n in names)


class At:
    """A host, and where on it Pinfold is."""

    def __init__(self, url, prefix):
        self.netloc, self.prefix = urllib.parse.urlsplit(url).netloc, prefix

    def ask(self, method, path, headers=(), body=None, source=None, prefix=None):
        c = http.client.HTTPConnection(self.netloc, timeout=PATIENCE, source_address=source)
        c.putrequest(method, (self.prefix if prefix is None else prefix) + path, skip_host="host" in dict(headers), skip_accept_encoding=True)
        for k, v in headers:
            c.putheader(k, v)
        if body is not None:
            c.putheader("Content-Type", "application/json")
            c.putheader("Content-Length", str(len(body)))
        c.endheaders(body)
        r = c.getresponse()
        data = r.read()
        c.close()
        r.data = data
        try:
            r.json = json.loads(data)
        except ValueError:
            r.json = {}
        return r

    def error(self, *words, **more):
        r = self.ask(*words, **more)
        return r.status, r.json.get("error") if isinstance(r.json, dict) else None


def policy(text):
    return dict((d.split(None, 1) + [""])[:2] for d in map(str.strip, text.split(";")) if d)


def wrong(r):
    """What is not as it must be in the headers of a file."""
    bad = {k: r.headers.get_all(k) for k, v in HEADERS.items() if r.headers.get_all(k) != [v]}
    if len(r.headers.get_all("content-security-policy") or []) != 1 or policy(r.headers["content-security-policy"]) != POLICY:
        bad["content-security-policy"] = r.headers.get_all("content-security-policy")
    if r.headers["set-cookie"] or r.headers["access-control-allow-origin"]:
        bad["more"] = r.headers.items()
    return bad


def page(where, at):
    for name in files():
        path = "/" if name == "index.html" else "/" + name
        r = at.ask("GET", path)
        want = TYPES[name.rpartition(".")[2]]
        ok = r.status == 200 and r.data == open(f"{WEB}/{name}", "rb").read() and r.headers["content-type"].lower() == want and not wrong(r)
        check(f"{where} {path}", ok, (r.status, r.headers["content-type"], wrong(r), r.data[:80]))
        h = at.ask("HEAD", path)
        check(f"{where} HEAD {path}", h.status == 200 and h.data == b"" and not wrong(h), (h.status, wrong(h)))
        if r.headers["etag"] or r.headers["last-modified"]:
            again = [("If-None-Match", r.headers["etag"])] if r.headers["etag"] else [("If-Modified-Since", r.headers["last-modified"])]
            check(f"{where} {path} is not sent twice", at.ask("GET", path, again).status == 304)
        else:
            check(f"{where} {path} can be asked for again", False, r.headers.items())
        # No page takes anything.
        check(f"{where} POST {path}", at.ask("POST", path, body=b"{}").status in (401, 403, 404, 405), at.ask("POST", path, body=b"{}").status)


def nothing_else(where, at):
    deeper = "/page/" + next(n for n in files() if n.startswith("page/")).partition("/")[2]
    for path in ("/page", "/page/", "/page/.", "/page/nothing.js", "/page/../../../../etc/passwd", "/page/..%2f..%2fapi-token",
                 "/page/%2e%2e/%2e%2e/openapi.json", "/page/..%2findex.html", "/page//../../api-token", "/page/a/b.js", "/.git/config", "/index.php",
                 "/page/.hidden", "/web/index.html", "/usr/share/pinfold/web/index.html", "/PAGE/app.js", "/sw.js/", "/sw.js/x", deeper + "/", deeper + "/x",
                 deeper + "%00", deeper + "%00.html", deeper + "~", deeper + ".map", "/manifest.webmanifest.bak", "/api-token", "/device-token", "/web"):
        r = at.ask("GET", path)
        check(f"{where} {path} is nothing", r.status in (400, 403, 404) and b"root:" not in r.data and b"pf" + b"a_" not in r.data and b"<script" not in r.data and
              b"Index of" not in r.data, (r.status, r.data[:120]))
    for path in ("/page/..", "/page/../", "/x/../"):
        r = at.ask("GET", path)
        check(f"{where} {path} is nothing, or the page", r.status in (400, 403, 404) or r.data == open(WEB + "/index.html", "rb").read(), (r.status, r.data[:120]))
    r = at.ask("GET", "/page/nothing.js")
    check(f"{where} what is not there is told with no less care", not set(wrong(r)) - {"cache-control"} or r.json.get("error") == "not_found", (r.status, wrong(r)))


def beside(where, at):
    check(f"{where} /healthz is the service's", at.ask("GET", "/healthz").json.get("service") == "pinfold")
    check(f"{where} /openapi.json too", "openapi" in at.ask("GET", "/openapi.json").json)
    check(f"{where} /v1 is the API", at.error("GET", "/v1/runs") == (401, "unauthorized"))
    for path in ("/v1", "/v1/", "/v1/sw.js", "/v1/page/app.js", "/unknown", "/v1/runs/page/app.js", "/page.js"):
        check(f"{where} {path} is the API's to refuse", at.error("GET", path)[1] in ("not_found", "unauthorized", "run_not_found"), at.error("GET", path))
    if at.prefix:
        for path in ("/", "/sw.js", "/page/app.js", "/v1/runs", "/deep/", "/deep/apiary/sw.js"):
            r = at.ask("GET", path, prefix="")
            check(f"{where} nothing above it: {path}", r.status in (403, 404), (r.status, r.data[:80]))


def cookie(where, at):
    global tries
    tries += 1
    own = [("Origin", "http://" + at.netloc), ("Sec-Fetch-Site", "same-origin")]

    def pair(code, headers):
        return at.ask("POST", "/v1/pair", headers, json.dumps({"code": code, "label": f"static {os.getpid()} {tries}", "cookie": True}).encode(), (f"127.0.5.{tries}", 0))
    code = json.loads(operator("--json", "device", "pair"))["code"]
    for what, headers in (("a stranger's page", [("Origin", "https://evil.example"), ("Sec-Fetch-Site", "cross-site")]), ("no page", []),
                          ("another port", [("Origin", "http://127.0.0.1:1"), ("Sec-Fetch-Site", "same-site")]),
                          ("another name", [*own, ("host", "pinfold.example")])):
        r = pair(code, headers)
        check(f"{where} {what} gets no cookie", r.status in (400, 403) and r.json.get("error") in ("cross_origin_refused", None) and not r.headers["set-cookie"],
              (r.status, r.data, r.headers.items()))
    r = pair(code, own)
    said = (r.headers["set-cookie"] or "").split("; ")
    check(f"{where} the page gets a cookie that no script reads", r.status == 201 and "token" not in r.json and said[0].startswith("pinfold_device=pfd_") and
          {"HttpOnly", "Secure", "SameSite=Strict", "Path=" + (at.prefix or "/")} <= set(said[1:]) and not any(x.lower().startswith("domain") for x in said), (r.status, said, r.data))
    mine = [("Cookie", said[0])]
    check(f"{where} it counts here", at.ask("GET", "/v1/runs", [*mine, ("Sec-Fetch-Site", "same-origin")]).status == 200)
    for what, method, path, headers in (
            ("under another name", "GET", "/v1/runs", [*mine, ("host", "pinfold.example")]),
            ("in another site's picture", "GET", "/v1/runs", [*mine, ("Sec-Fetch-Site", "cross-site")]),
            ("from another port of this host", "GET", "/v1/runs", [*mine, ("Sec-Fetch-Site", "same-site"), ("Origin", "http://127.0.0.1:1")]),
            ("in a form of another page", "POST", "/v1/runs/x/cancel", [*mine, ("Origin", "https://evil.example")]),
            ("in one that says nothing of itself", "POST", "/v1/runs/x/cancel", mine),
            ("in a sandboxed frame", "POST", "/v1/runs/x/cancel", [*mine, ("Origin", "null")])):
        r = at.ask(method, path, headers, None if method == "GET" else b"{}")
        check(f"{where} it counts not {what}", (r.status, r.json.get("error")) == (403, "cross_origin_refused") or r.status == 400 and not r.json, (r.status, r.data))
    check(f"{where} the page may act", at.error("POST", "/v1/runs/00000000-0000-4000-8000-000000000000/cancel", [*mine, *own], b"") == (404, "run_not_found"))


check("there is a page", {"index.html", "sw.js", "manifest.webmanifest"} <= set(files()), files())
check("each of its files is of a known type", all(n.rpartition(".")[2] in TYPES for n in files()), files())


def behind(server, prefix):
    with Front(server, *(["--prefix", prefix] if prefix else [])) as f:
        for what in (page, nothing_else, beside, cookie):
            case(f"{what.__name__} {server} {prefix}", lambda: what(f"{server}{prefix}:", At(f.url, prefix)))


for server in ("lighttpd", "apache", "nginx"):
    for prefix in ("", "/deep/api"):
        case(f"{server} {prefix}", lambda: behind(server, prefix))
done()
