"""What the gateway's cases share: counting, traps, the lies of the scripted model."""
import json
import os
import socket
import sys

from rig import KEY, MODEL, folder, remove

counts = {"passed": 0, "failed": 0}


def check(ok, what):
    counts["passed" if ok else "failed"] += 1
    if not ok:
        print("FAIL " + what, flush=True)


def same(got, want, what):
    check(got == want, "%s: expected %r, got %r" % (what, want, got))


class Trap:
    """A listener that must never see a connection."""

    def __init__(self):
        self.s = socket.socket()
        self.s.bind(("127.0.0.1", 0))
        self.s.listen(16)
        self.s.setblocking(False)
        self.port = self.s.getsockname()[1]

    def untouched(self):
        try:
            self.s.accept()
            return False
        except BlockingIOError:
            return True


REDIRECT_TRAP, PROXY_TRAP = Trap(), Trap()
LIES = {  # marker -> (answer, status, error code or None)
    "LIE-cut": ({"cut": 40}, 502, "invalid_model_response"),
    "LIE-slow": ({"byte_ms": 200}, 504, "model_timeout"),
    "LIE-late": ({"delay_ms": 20000}, 504, "model_timeout"),
    "LIE-hang": ({"hang": True}, 504, "model_timeout"),
    "LIE-endless": ({"endless": True}, 502, "model_response_too_large"),
    "LIE-oversize": ({"body_size": 1000001}, 502, "model_response_too_large"),
    "LIE-oversize-chunked": ({"body_size": 5000000, "chunked": True}, 502, "model_response_too_large"),
    "LIE-declared": ({"length": 1000001}, 502, "model_response_too_large"),
    "LIE-short-length": ({"length": 10, "body_size": 5000000}, 502, "invalid_model_response"),
    "LIE-long-length": ({"length": 999999, "cut": 100}, 502, "invalid_model_response"),
    "LIE-type": ({"type": "text/html", "body": "{}"}, 502, "invalid_model_response"),
    "LIE-no-type": ({"type": "", "body": "{}"}, 502, "invalid_model_response"),
    "LIE-no-json": ({"body": "hello"}, 502, "invalid_model_response"),
    "LIE-half-json": ({"body": "{\"a\":1"}, 502, "invalid_model_response"),
    "LIE-twice": ({"body": "{\"a\":1,\"a\":2}"}, 502, "invalid_model_response"),
    "LIE-deep": ({"body": "[" * 200000 + "]" * 200000}, 502, "invalid_model_response"),
    "LIE-empty": ({"body": ""}, 502, None),
    "LIE-gzip": ({"gzip": True}, 502, "invalid_model_response"),
    "LIE-garbage": ({"garbage": 4096}, 502, "invalid_model_response"),
    "LIE-close": ({"close": True}, 502, "model_unreachable"),
    "LIE-key": ({"body": json.dumps({"you sent": KEY})}, 502, "invalid_model_response"),
    "LIE-key-escaped": ({"body": "{\"you sent\":\"%s\"}" % "".join("\\u%04x" % ord(c) for c in KEY)}, 502, "invalid_model_response"),
    "LIE-key-as-key": ({"body": "[[{\"%s\":1}]]" % KEY.replace("-", "\\u002d")}, 502, "invalid_model_response"),
    "LIE-401": ({"status": 401, "body": json.dumps({"error": {"message": "bad key " + KEY}})}, 401, None),
    "LIE-429": ({"status": 429, "body": "{\"error\":{\"message\":\"slow down\"}}"}, 429, None),
    "LIE-400": ({"status": 400, "body": "{\"error\":{\"message\":\"its own words\"}}"}, 400, None),
    "LIE-403": ({"status": 403, "body": "{}"}, 403, None),
    "LIE-429-after": ({"status": 429, "body": "{\"error\":{\"message\":\"slow down\"}}", "headers": {"Retry-After": "17"}}, 429, None),
    "LIE-502-html": ({"status": 502, "type": "text/html", "body": "<html><h1>Bad Gateway</h1></html>"}, 502, "invalid_model_response"),
    "LIE-503-after": ({"status": 503, "body": "{\"error\":{\"message\":\"busy\"}}", "headers": {"Retry-After": "9"}}, 503, None),
    "LIE-529": ({"status": 529, "body": "{\"type\":\"error\"}"}, 529, None),
    "LIE-500": ({"status": 500, "body": "{\"error\":{\"message\":\"oops\"}}"}, 500, None),
    "LIE-500-text": ({"status": 500, "type": "text/plain", "body": "oops"}, 502, "invalid_model_response"),
    "LIE-headers": ({"headers": {"x-secret": "1", "set-cookie": "a=b", "server": "evil"}}, 200, None),
    "LIE-max": ({"body_size": 999900}, 200, None),
    "LIE-chunked": ({"chunked": True}, 200, None),
}
for status in (301, 302, 303, 307, 308):
    LIES["LIE-%d" % status] = ({"status": status, "location": "http://127.0.0.1:%d/x" % REDIRECT_TRAP.port}, 502,
                               "model_redirect_refused")
for name, where in (("https", "https://127.0.0.1:%d/x"), ("host", "http://localhost:%d/v1/chat/completions"), ("scheme", "//127.0.0.1:%d/x"),
                    ("key", "http://user:pw@127.0.0.1:%d/x")):
    LIES["LIE-307-" + name] = ({"status": 307, "location": where % REDIRECT_TRAP.port}, 502, "model_redirect_refused")
# An answer in which each of tests/vectors/utf8.tab stands in a string: whole UTF-8 goes on, anything else ends there.
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors", "utf8.tab")) as f:
    for name, fine, code in [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]:
        code = code.replace(" ", "")
        fine = fine == "yes" and code >= "20"  # JSON wants a control byte escaped
        LIES["LIE-utf8-" + name] = ({"hex": b'{"x":"'.hex() + code + b'"}'.hex()}, 200 if fine else 502,
                                    None if fine else "invalid_model_response")
SCENARIO = {"model": MODEL,
            "rules": [{"when": {"marker": m + "."}, "answer": a} for m, (a, _, _) in LIES.items()] +
                     [{"when": {"marker": "WAIT"}, "answer": {"delay_ms": 300, "content": "ok"}},
                      {"when": {"marker": "LONG"}, "answer": {"delay_ms": 2000, "content": "ok"}},
                      {"answer": {"content": "hi", "usage": {"prompt": 7, "completion": 3}}}]}
BASE = {"model": MODEL, "messages": [{"role": "user", "content": "x"}]}


def asked(model, run_text):
    return sum(1 for r in model.requests() if run_text in r["body"])


def alone(body):
    """Runs body(folder, models) as root and tells what came of it; models that it adds are stopped. The exit status."""
    if os.geteuid() != 0:
        print("needs root: the store tells roles by uid")
        return 77
    top, models = folder(), []
    try:
        body(top, models)
    finally:
        for m in models:
            m.stop()
        log = top + "/pinfold-gateway.log"
        if (counts["failed"] or sys.exc_info()[0]) and os.path.exists(log):
            print("".join(open(log).readlines()[-20:]))
        remove(top)
    print("%d passed, %d failed" % (counts["passed"], counts["failed"]))
    return 1 if counts["failed"] else 0
