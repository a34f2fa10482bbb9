"""Cases about HTTP itself: the order of checks, hostile requests, floods, closing."""
import json
import os
import socket
import threading
import time

from cases_common import *  # noqa: F403
from rig import *  # noqa: F403


def test_order(rig, model):
    run = rig.run(5)
    big = b"{" + b" " * 300000
    chat = run.path("model")
    for what, a, status, code in [
        ("unknown path", get(run.port, "/internal/v1/nothing", None), 404, "not_found"),
        ("unknown path with a body", post(run.port, "/v1/runs", None, big), 404, "not_found"),
        ("method", get(run.port, chat, None), 405, "method_not_allowed"),
        ("token before type", post(run.port, chat, None, b"x", kind="text/plain"), 401, "invalid_run_token"),
        ("token before size", post(run.port, chat, None, big), 401, "invalid_run_token"),
        ("type before size", post(run.port, chat, run.token(), big, kind="text/plain"), 415, "json_required"),
        ("no type", post(run.port, chat, run.token(), b"{}", kind=None), 415, "json_required"),
        ("type with a charset", post(run.port, chat, run.token(), BASE, kind="application/json; charset=utf-8"), 200, None),
        ("size before JSON", post(run.port, chat, run.token(), big), 413, "request_too_large"),
        ("coding", post(run.port, chat, run.token(), BASE, ["Content-Encoding: gzip"]), 415, "unsupported_encoding"),
    ]:
        same((a.status, a.code), (status, code), what)
    a = get(run.port, chat, None)
    same(a.headers.get("allow"), "POST", "Allow")
    chunked = b"".join(b"4000\r\n" + b" " * 0x4000 + b"\r\n" for _ in range(20)) + b"0\r\n\r\n"
    a = raw_call(run.port, request("POST", chat, run.token(), headers=["Transfer-Encoding: chunked"], length=False) + chunked)
    same((a.status, a.code), (413, "request_too_large"), "size counted while read")
    text = json.dumps(BASE).encode()
    a = raw_call(run.port, request("POST", chat, run.token(), headers=["Transfer-Encoding: chunked"], length=False) +
                 b"%x\r\n%s\r\n0\r\n\r\n" % (len(text), text))
    same(a.status, 200, "a small chunked body")
    heads = lambda n: run.chat(headers=["X-Sent-%d: %s" % (i, "h" * 900) for i in range(n)]).status
    same(heads(12), 200, "a head of 12 kB")
    check(heads(80) in (0, 413, 431), "a head of 80 kB")
    exact = json.dumps(dict(BASE, messages=[{"role": "user", "content": ""}]))
    pad = 256000 - len(exact)
    a = run.chat("y" * pad)
    same(a.status, 200, "a body of exactly 256,000 bytes")
    same(run.chat("y" * (pad + 1)).code, "request_too_large", "one byte more")
    same(run.shown()["used"], 4, "only good requests spend")


def test_hostile_http(rig, model):
    run = rig.run(5)
    chat, token = run.path("model"), run.token()
    text = json.dumps(BASE).encode()
    for what, data in {
        "both lengths": request("POST", chat, token, text, ["Transfer-Encoding: chunked"]),
        "two lengths": request("POST", chat, token, text, ["Content-Length: 1"]),
        "negative length": request("POST", chat, token, text, ["Content-Length: -1"], length=False),
        "length 1e3": request("POST", chat, token, text, ["Content-Length: 1e3"], length=False),
        "length +5": request("POST", chat, token, text, ["Content-Length: +5"], length=False),
        "huge length": request("POST", chat, token, text, ["Content-Length: 99999999999999999999"], length=False),
        "two tokens": request("POST", chat, token, text, ["Authorization: Bearer " + token]),
        "two types": request("POST", chat, token, text, ["Content-Type: text/plain"]),
        "absolute form": request("POST", "http://127.0.0.1:9797" + chat, token, text),
        "other coding": request("POST", chat, token, text, ["Transfer-Encoding: gzip"], length=False),
        "connect": b"CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: 127.0.0.1:1\r\nAuthorization: Bearer " + token.encode() + b"\r\n\r\n",
        "no http": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 600,
        "a body on GET": request("GET", "/internal/v1/models", token, b"x" * 10),
    }.items():
        a = raw_call(run.port, data)
        check(a.status in (0, 400, 411, 413, 501), "%s: %d %s" % (what, a.status, a.code))
    for path in ("/internal/v1/models/", "//internal/v1/models", "/internal/v1/./models", "/internal/v1/../v1/models",
                 "/internal/v1/model%73", "/INTERNAL/v1/models", "/internal/v1/models%00", "/" + "a" * 3000, "/", "/%2e%2e"):
        same(get(run.port, path, token).status, 404, "path %.40s" % path)
    same(run.shown()["used"], 0, "none of them spends")
    s = socket.create_connection(("127.0.0.1", run.port))
    first = raw_call(run.port, request("POST", chat, token, text), s)
    second = raw_call(run.port, request("POST", chat, token, text), s)
    s.close()
    same((first.status, second.status), (200, 200), "two calls on one connection")
    for _ in range(100):
        s = socket.create_connection(("127.0.0.1", run.port))
        s.sendall(request("POST", chat, token, text)[:-5])
        s.close()
    same(run.shown()["used"], 2, "aborted bodies spend nothing")


def test_close(rig, model):
    run = rig.run(3)
    got = []
    t = threading.Thread(target=lambda: got.append(run.chat("LONG close " + run.id)))
    t.start()
    wait_for(lambda: asked(model, "LONG close " + run.id) > 0)
    rig.tell("close", run.id)
    t.join()
    check(got and got[0].status in (0, 502), "a call in flight ends with its box")
    def gone():
        try:
            with socket.create_connection(("127.0.0.1", run.port), timeout=PATIENCE) as s:
                s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                return not s.recv(1)
        except OSError:
            return True
    check(wait_for(gone), "a closed box is served no more")


def test_flood(rig, model):
    """10,000 broken bodies, slow bodies, many connections: the same process goes on."""
    run = rig.run(2)
    pid = rig.pid
    status = lambda: [int(l.split()[1]) for l in open("/proc/%d/status" % pid) if l.startswith("VmRSS")][0]
    token = run.token()
    s = socket.create_connection(("127.0.0.1", run.port))
    def many(n):
        bad = 0
        for _ in range(n):
            bad += raw_call(0, request("POST", run.path("model"), token, b"{\"model\":[1,{\"a\":"), s).status != 400
        return bad
    bad = many(1000)
    before = status()
    bad += many(5000)
    same(bad, 0, "6,000 broken bodies")
    with open("/proc/%d/maps" % pid) as f:
        sanitized = "libasan" in f.read()  # keeps freed memory on purpose
    check(sanitized or status() - before < 1000, "memory grew by %d kB" % (status() - before))
    held = [socket.create_connection(("127.0.0.1", run.port)) for _ in range(200)]
    other = rig.run(2)
    same(other.chat("flood").status, 200, "another box is served while one floods")
    [h.close() for h in held]
    s.close()
    same(run.chat("after the flood").status, 200, "and the first again")
    check(os.path.exists("/proc/%d" % pid), "the same process")
