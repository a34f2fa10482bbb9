"""What bench/gateway.py compares: the provider itself, and nginx, Pinfold's gateway and the npm gateway before it. Each is a
Side: how it is asked, and which processes it consists of."""
import base64
import glob
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "gateway"))
from rig import BUILD, KEY, MODEL, RUN_SECRET, Rig, wait_for  # noqa: E402

PAD = "x" * 1300
BOXES = 40  # that share the calls of which many are in flight: a box has 64 connections
LIFE_MS = 3600000
NGINX = """worker_processes 2;
pid %(dir)s/nginx.pid;
error_log /dev/null;
worker_rlimit_nofile 20000;
events { worker_connections 8192; }
http {
	access_log off;
	client_body_temp_path %(dir)s/nginx.body;
	proxy_temp_path %(dir)s/nginx.proxy;
	fastcgi_temp_path %(dir)s/nginx.fastcgi;
	uwsgi_temp_path %(dir)s/nginx.uwsgi;
	scgi_temp_path %(dir)s/nginx.scgi;
	keepalive_requests 100000000;
	upstream model { server 127.0.0.1:%(model)d; keepalive 64; keepalive_requests 100000000; }
	server {
		listen 127.0.0.1:%(port)d backlog=4096;
		location / {
			proxy_pass https://model;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_buffering off;
			proxy_ssl_verify on;
			proxy_ssl_name localhost;
			proxy_ssl_trusted_certificate %(ca)s;
		}
	}
}
"""
# It listens everywhere unless it is told better.
LOOPBACK = "data:text/javascript;base64," + base64.b64encode(
    b"import net from 'node:net';const f=net.Server.prototype.listen;"
    b"net.Server.prototype.listen=function(p,...a){return f.call(this,typeof p==='number'?{port:p,host:'127.0.0.1'}:p,"
    b"...a.filter(x=>typeof x==='function'))}").decode()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def open_port(port, p, what):
    def there():
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return True
        except OSError:
            if p.poll() is not None:
                raise SystemExit(what + " did not start")
    wait_for(there)


def body(stream, hold=False):
    said = [{"role": "user", "content": ("HOLD " if hold else "") + PAD}]
    return json.dumps(dict({"model": MODEL, "messages": said}, **({"stream": True} if stream else {})), separators=(",", ":")).encode()


def http(path, what, *headers):
    rows = ["POST %s HTTP/1.1" % path, "Host: 127.0.0.1", "Content-Type: application/json", "Content-Length: %d" % len(what), *headers]
    return ("\r\n".join(rows) + "\r\n\r\n").encode() + what


class Side:
    name = scheme = None

    def requests(self, what, spread=False):
        """[(port, bytes)]; spread: of many boxes, where there are any."""
        return [(self.port, http("/v1/chat/completions", what, "Authorization: Bearer " + KEY, *self.headers))]

    scheme, headers = "plain", ()

    def pids(self):
        return []

    def stop(self):
        pass


class Direct(Side):
    name, scheme = "direct", "tls"

    def __init__(self, top):
        self.top, self.folder = top, top + "/model.tls"
        os.mkdir(self.folder)
        self.ca = self.folder + "/ca.pem"
        self.p = subprocess.Popen([BUILD + "/bench/gateway_model", self.folder], stdout=subprocess.PIPE, text=True)
        line = self.p.stdout.readline().split()
        if line[:1] != ["listening"]:
            raise SystemExit("the provider did not start")
        self.port = int(line[1])

    def stop(self):
        self.p.kill()
        self.p.wait()


class Nginx(Side):
    name = "nginx"

    def __init__(self, model):
        self.port = free_port()
        with open(model.top + "/nginx.conf", "w") as f:
            f.write(NGINX % {"dir": model.top, "model": model.port, "port": self.port, "ca": model.ca})
        self.p = subprocess.Popen([shutil.which("nginx", path="/usr/sbin:/usr/bin"), "-c", model.top + "/nginx.conf", "-e", "/dev/null",
                                   "-g", "daemon off;"])
        open_port(self.port, self.p, "nginx")

    def pids(self):
        with open("/proc/%d/task/%d/children" % (self.p.pid, self.p.pid)) as f:
            return [self.p.pid] + [int(x) for x in f.read().split()]

    def stop(self):
        self.p.terminate()
        self.p.wait()


class Pinfold(Side):
    name = "pinfold"

    def __init__(self, model):
        self.rig = Rig(model.top)
        for words in (("secret", "signing", RUN_SECRET), ("secret", "key", KEY),
                      ("provider", "p-main", "https://127.0.0.1:%d/v1" % model.port, model.ca, "key", 0), ("profile", "main", "p-main", MODEL),
                      ("agent", "open", "agent", 0, 0, 1000, 3)):
            self.rig.tell(*words)
        self.rig.start()
        self.boxes = []

    def requests(self, what, spread=False):
        while len(self.boxes) < (BOXES if spread else 1):
            self.boxes.append(self.rig.run(budget=100000000, life_ms=LIFE_MS, agent="open"))
        return [(run.port, http("/internal/v1/chat/completions", what, "Authorization: Bearer " + run.token()))  # tokens are good for minutes
                for run in self.boxes[:BOXES if spread else 1]]

    def pids(self):
        return [int(x) for x in self.rig.tell("pids")]

    def stop(self):
        self.rig.stop()


class Portkey(Side):
    """@portkey-ai/gateway of the package-lock.json beside this, installed once a tree."""
    name = "portkey"

    def __init__(self, model):
        with open(HERE + "/portkey/package-lock.json", "rb") as f:
            store = os.path.join(HERE, "..", "build-npm", "portkey-" + hashlib.sha256(f.read()).hexdigest()[:16])
        if not os.path.isdir(store):
            made = store + ".new%d" % os.getpid()
            os.makedirs(made)
            for name in glob.glob(HERE + "/portkey/*.json"):
                shutil.copy(name, made)
            got = subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=made, stdin=subprocess.DEVNULL, timeout=180,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if got.returncode != 0:
                shutil.rmtree(made)
                raise SystemExit("the npm packages of bench/portkey cannot be installed: " + got.stdout[-300:])
            os.rename(made, store)
        self.port = free_port()
        self.headers = ("x-portkey-provider: openai", "x-portkey-custom-host: https://localhost:%d/v1" % model.port)
        self.log = open(model.top + "/portkey.log", "w")
        self.p = subprocess.Popen(["node", "--import", LOOPBACK, store + "/node_modules/@portkey-ai/gateway/build/start-server.js",
                                   "--port=%d" % self.port, "--headless"], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                  env={"PATH": os.environ["PATH"], "HOME": model.top, "NODE_ENV": "production", "NODE_EXTRA_CA_CERTS": model.ca})
        open_port(self.port, self.p, "@portkey-ai/gateway")

    def pids(self):
        return [self.p.pid]

    def stop(self):
        self.p.send_signal(signal.SIGKILL)
        self.p.wait()
        self.log.close()


def cpu(pids):
    """Seconds of the processor that these have had."""
    total = 0
    for path in (p for pid in pids for p in glob.glob("/proc/%d/task/*/schedstat" % pid)):
        try:
            with open(path) as f:
                total += int(f.read().split()[0])
        except OSError:
            pass
    return total / 1e9


def memory(pids):
    """RSS and PSS in KiB."""
    rss = pss = 0
    for pid in pids:
        with open("/proc/%d/smaps_rollup" % pid) as f:
            rows = dict((r.split(":")[0], r.split()[1]) for r in f if ":" in r)
        rss, pss = rss + int(rows["Rss"]), pss + int(rows["Pss"])
    return rss, pss
