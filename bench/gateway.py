#!/usr/bin/env python3
"""Gateway call against the same call straight to the scripted model and through nginx with kept connections, at 1, 16 and
64 callers; ratios of one run.

Run as root in a build folder (or with PINFOLD_BUILD): bench/gateway.py [CALLS]
"""
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "gateway"))
from rig import *  # noqa: E402,F403


CONF = """worker_processes 2;
pid %(dir)s/nginx.pid;
error_log /dev/null;
events { worker_connections 512; }
http {
	access_log off;
	client_body_temp_path %(dir)s/nginx.body;
	proxy_temp_path %(dir)s/nginx.proxy;
	fastcgi_temp_path %(dir)s/nginx.fastcgi;
	uwsgi_temp_path %(dir)s/nginx.uwsgi;
	scgi_temp_path %(dir)s/nginx.scgi;
	keepalive_requests 1000000;
	upstream model { server 127.0.0.1:%(model)d; keepalive 64; keepalive_requests 1000000; }
	server {
		listen 127.0.0.1:%(port)d;
		location / {
			proxy_pass https://model;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_ssl_verify on;
			proxy_ssl_name localhost;
			proxy_ssl_trusted_certificate %(ca)s;
		}
	}
}
"""


def proxy(top, model):
    """Starts nginx before the model; its process and port, or (None, 0) where there is no nginx."""
    nginx = shutil.which("nginx", path="/usr/sbin:/usr/bin")
    if not nginx:
        return None, 0
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with open(top + "/nginx.conf", "w") as f:
        f.write(CONF % {"dir": top, "model": model.port, "port": port, "ca": model.ca})
    p = subprocess.Popen([nginx, "-c", top + "/nginx.conf", "-e", "/dev/null", "-g", "daemon off;"])
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return p, port
        except OSError:
            time.sleep(0.05)
    raise SystemExit("nginx did not start")


def main():
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    top = folder()
    model = Model(top, "main", {"model": MODEL, "rules": [{"answer": {"content": "ok"}}]})
    rig = Rig(top)
    nginx = None
    try:
        rig.tell("secret", "signing", RUN_SECRET)
        rig.tell("secret", "key", KEY)
        rig.tell("provider", "p-main", model.url, model.ca, "key", 0)
        rig.tell("profile", "main", "p-main", MODEL)
        rig.start()
        nginx, port = proxy(top, model)
        for callers in (1, 16, 64):
            run = rig.run(budget=calls + 100)
            subprocess.run([os.path.join(BUILD, "bench/gateway_call"), str(run.port), str(model.port), str(port), model.ca, MODEL,
                            str(calls), str(callers)], check=True, env=dict(os.environ, TOKEN=run.token()))
        with open("/proc/%d/status" % rig.pid) as f:
            print("".join(line for line in f if line.startswith(("VmRSS", "RssAnon", "Threads"))), end="")
    finally:
        if nginx:
            nginx.terminate()
            nginx.wait()
        rig.stop()
        model.stop()
        remove(top)


main()
