#!/usr/bin/env python3
"""A provider behind a real server of HTTP/2 with TLS (nginx): calls share its connection, streams end as they end there, and a server that
says it goes away is followed to the next connection.

Run in a build folder, or with PINFOLD_BUILD naming one; needs root, nginx and openssl.
"""
import os
import shutil
import subprocess
import sys
import threading
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cases_common import check, counts, same  # noqa: E402
from rig import *  # noqa: E402,F403
from streaming import FORMATS, Stream, Upstream, begin  # noqa: E402

CONF = """
daemon off; master_process on; worker_processes 1; pid %(top)s/nginx.pid; error_log %(top)s/nginx.err warn; user root;
events { worker_connections 512; }
http {
	log_format calls '$connection $connection_requests $server_protocol $status $ssl_session_reused';
	access_log %(top)s/nginx.calls calls;
	client_body_temp_path %(top)s/body; proxy_temp_path %(top)s/proxy; fastcgi_temp_path %(top)s/f; uwsgi_temp_path %(top)s/u; scgi_temp_path %(top)s/s;
	keepalive_requests %(requests)d;
	ssl_session_cache shared:one:1m;
	server {
		listen 127.0.0.1:%(port)d ssl http2;
		ssl_certificate %(top)s/own.pem; ssl_certificate_key %(top)s/own.key; ssl_protocols TLSv1.2;
		location / { proxy_pass http://127.0.0.1:%(behind)d; proxy_http_version 1.1; proxy_buffering off; proxy_read_timeout 300s; client_max_body_size 20m; }
	}
}
"""


def free_port():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    port = s.getsockname()[1]
    s.close()
    return port


class Front:
    def __init__(self, top, behind):
        self.top, self.behind, self.port = top, behind, free_port()
        made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext",
                               "subjectAltName=IP:127.0.0.1", "-keyout", top + "/own.key", "-out", top + "/own.pem"], capture_output=True, text=True)
        if made.returncode:
            sys.exit("openssl: " + made.stderr)
        os.chmod(top + "/own.pem", 0o644)
        self.write(1000)
        self.process = subprocess.Popen(["nginx", "-p", top, "-e", top + "/nginx.err", "-c", top + "/nginx.conf"])
        if not wait_for(self.listens):
            sys.exit("nginx does not listen: " + open(top + "/nginx.err").read())

    def listens(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            return True
        except OSError:
            return False

    def write(self, requests):
        with open(self.top + "/nginx.conf", "w") as f:
            f.write(CONF % {"top": self.top, "port": self.port, "behind": self.behind, "requests": requests})

    def workers(self):
        return subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True).stdout.split()

    def reload(self, requests):
        """Its worker says GOAWAY, ends what it has begun, and another one takes what is new."""
        old = self.workers()
        self.write(requests)
        self.process.send_signal(1)
        check(wait_for(lambda: any(p not in old for p in self.workers()) and self.listens()), "nginx has another worker")

    def calls(self):
        """[(connection, number in it, protocol, status, TLS session reused)] that are over."""
        with open(self.top + "/nginx.calls") as f:
            return [tuple(line.split()) for line in f]

    def stop(self):
        self.process.terminate()
        self.process.wait()


def ask(run, what, got):
    body = {"model": run.model, "messages": [{"role": "user", "content": what}]}
    got.append(post(run.port, "/internal/v1/chat/completions", run.token_there, body).status)


def plain(rig, name="chat"):
    run = begin(rig, name, 200)
    run.token_there = run.token()
    return run


def at_once(run, what, n):
    got = []
    threads = [threading.Thread(target=ask, args=(run, "%s %d of %s" % (what, i, run.id), got)) for i in range(n)]
    [t.start() for t in threads]
    return threads, got


def test_one_connection(rig, tap, front):
    """One after the other, and 40 at the same time: all over one connection. A stream has its own."""
    before = len(front.calls())
    run, got = plain(rig), []
    for i in range(3):
        ask(run, "first", got)
    tap.gone.clear()
    threads, more = at_once(run, "HOLD", 40)
    check(wait_for(lambda: tap.asked("of " + run.id) >= 40), "40 at the provider at the same time")
    streams = [Stream(begin(rig, name), name, "WHOLE") for name in FORMATS if name != "gemini"]
    check(all(s.clean() for s in streams), "streams meanwhile")
    tap.release()
    [t.join() for t in threads]
    same(set(got + more), {200}, "all are answered")
    check(wait_for(lambda: len(front.calls()) >= before + 46), "the server has seen them")
    calls = front.calls()[before:]
    whole = [c for c in calls if c[2] == "HTTP/2.0"]
    same((len(whole), len({c[0] for c in whole})), (43, 1), "whole answers by HTTP/2, over one connection")
    same({c[2] for c in calls}, {"HTTP/2.0", "HTTP/1.1"}, "streams over their own")
    tap.gone.clear()


def test_ends(rig, tap, front):
    """A stream that the server breaks off is broken off, and others go on."""
    other = Stream(begin(rig, "chat"), "chat", "HELD", read=False)
    check(other.until(b"PART"), "another stream")
    for name in FORMATS:
        if name == "gemini":
            continue
        for what in ("CUT", "CLEAN", "ERROR", "BROKEN"):
            run = begin(rig, name)
            s = Stream(run, name, what)
            check(not s.clean() and not s.waits and "PART" in s.body(), "%s %s: it breaks off: %r" % (name, what, s.raw[-60:]))
    # The other way: who leaves, and whose run ends, of streams and of whole answers.
    kept, answers = at_once(plain(rig), "HOLD", 3)
    for how in ("leave", "revoke"):
        for what in ("HANG", "HANG whole"):
            run = begin(rig, "chat")
            if what == "HANG":
                s = Stream(run, "chat", what, read=False)
                check(s.until(b"PART"), "it goes on")
            else:
                s = Stream(run, "chat", what, read=False, stream=False)
                check(wait_for(lambda: tap.asked(s.text)), "it is asked")
            if how == "leave":
                s.s.close()
            else:
                rig.tell("revoke", run.tenant, run.id)
            check(wait_for(lambda: tap.lost(s.text)), "%s, %s: the provider is hung up on" % (how, what))
    tap.release()
    check(other.all().clean(), "the other goes on to its end")
    [t.join() for t in kept]
    same(answers, [200] * 3, "and the others are answered")
    tap.gone.clear()


def test_goes_away(rig, tap, front):
    """GOAWAY while calls are under way: they end well, and what is new goes over another connection, once each."""
    run = plain(rig)
    s = Stream(begin(rig, "chat"), "chat", "HELD", read=False)
    check(s.until(b"PART"), "a stream")
    threads, got = at_once(run, "HOLD", 10)
    check(wait_for(lambda: tap.asked("of " + run.id) >= 10), "ten calls")
    front.reload(5)
    before, new = len(front.calls()), []
    for i in range(12):
        ask(run, "behind it %d" % i, new)
    same(set(new), {200}, "what is new is answered")
    tap.release()
    [t.join() for t in threads]
    same(got, [200] * 10, "what was under way is answered")
    check(s.all().clean(), "and the stream ends well")
    check(wait_for(lambda: len(front.calls()) >= before + 23), "the server has seen them")
    calls = front.calls()[before:]
    check(len(calls) == 23 and len({c[0] for c in calls}) >= 2, "several connections, each call once: %s" % calls)
    check(any(c[4] == "r" for c in front.calls()), "TLS sessions are used again: %s" % front.calls())
    same((tap.asked("behind it"), tap.asked("HOLD")), (12, 53), "asked once each")
    tap.gone.clear()


def main():
    if os.geteuid() != 0:
        print("needs root: the store tells roles by uid")
        return 77
    if not shutil.which("nginx") or not shutil.which("openssl"):
        print("needs nginx and openssl")
        return 77
    top = folder()
    os.chmod(top, 0o711)
    front, tap = None, Upstream()
    try:
        front = Front(top, tap.port)
        rig = Rig(top)
        rig.tell("secret", "signing", RUN_SECRET)
        rig.tell("secret", "key", KEY)
        rig.tell("timeout", 300000)
        for provider, protocol in (("p-main", "openai"), ("p-anth", "anthropic")):
            rig.tell("provider", provider, "https://127.0.0.1:%d/v1" % front.port, top + "/own.pem", "key", 0, protocol)
        rig.tell("profile", "main", "p-main", MODEL)
        rig.tell("profile", "anth", "p-anth", "m-anth")
        rig.tell("agent", "open", "agent", 0, 0, 1000, 3)
        rig.start()
        for test in (test_one_connection, test_ends, test_goes_away):
            try:
                test(rig, tap, front)
            except Exception:
                traceback.print_exc()
                check(False, test.__name__ + " broke off")
        rig.stop()
    finally:
        if front:
            front.stop()
        for log in ("pinfold-gateway.log", "nginx.err"):
            if (counts["failed"] or sys.exc_info()[0]) and os.path.exists(top + "/" + log):
                print("".join(open(top + "/" + log).readlines()[-20:]))
        remove(top)
    print("%d passed, %d failed" % (counts["passed"], counts["failed"]))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
