#!/usr/bin/python3
"""Web servers that keep their connections to Pinfold, which the examples do not: nginx "keepalive" and Apache
"enablereuse". No request fails, refused bodies included, and other web servers are answered while connections stay.

usage: t_keep.py [REQUESTS]   each server gets so many, 3,000 by itself
"""
import http.client, json, sys, threading, urllib.parse
from client import *
from front import Front

REQUESTS = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
CLIENTS = 64
TOKEN = token()
BIG = b"x" * 100000
KINDS = (("GET", "/healthz", None, None, 200), ("GET", "/v1/runs?limit=1", None, TOKEN, 200), ("POST", "/v1/runs", BIG, None, 401),
         ("GET", "/v1/runs/none", None, TOKEN, 404), ("POST", "/v1/runs/none/cancel", BIG, TOKEN, 413), ("GET", "/nothing", None, None, 404),
         ("POST", "/v1/runs", b"{}", TOKEN, 400), ("GET", "/healthz", b"", None, 200))


def kept():
    """Connections that Pinfold's public socket has just now."""
    with open("/proc/net/unix") as f:
        return sum(line.rstrip().endswith(INSTANCE + "/run/pinfold/public/fcgi.sock") and line.split()[5] == "03" for line in f)


def load(url, n):
    """n requests of all kinds by CLIENTS callers that keep their connections too; what was not as it should be."""
    at, wrong = urllib.parse.urlsplit(url), []

    def one(k):
        c = http.client.HTTPConnection(at.hostname, at.port, timeout=120)
        for i in range(k, n, CLIENTS):
            method, path, body, who, status = KINDS[(i + k) % len(KINDS)]
            headers = {"Content-Type": "application/json"}
            if who:
                headers["Authorization"] = "Bearer " + who
            for fresh in (c.sock is None, True):
                try:
                    c.request(method, path, body, headers)
                    r = c.getresponse()
                    r.read()
                    if r.status != status:
                        wrong.append((method, path, r.status))
                    break
                except OSError as e:
                    # A server may close a connection that waits, or after refusing a body; then one asks once more.
                    c.close()
                    if fresh and body != BIG:
                        wrong.append((method, path, repr(e)))
                        break
        c.close()
    threads = [threading.Thread(target=one, args=(k,)) for k in range(CLIENTS)]
    for t in threads: t.start()
    for t in threads: t.join()
    return wrong


def keeps(server):
    with Front(server, "--keep") as f:
        before = kept()
        wrong = load(f.url, REQUESTS)
        check(f"{REQUESTS} requests through {server} that keeps connections: no failure", not wrong, (len(wrong), wrong[:5]))
        idle = kept() - before
        check(f"{server} did keep connections", idle > 0, idle)
        other = [call("GET", "/healthz")[0] for _ in range(200)]
        check(f"200 requests through another server beside {idle} idle connections of {server}", set(other) == {200}, set(other))
        wrong = load(f.url, CLIENTS * 2)
        check(f"{server} goes on", not wrong, wrong[:5])


def main():
    for server in ("nginx", "apache"):
        case(server, lambda: keeps(server))
    wrong = load(URL, CLIENTS * 4)
    check("the instance's own web server goes on", not wrong, wrong[:5])
    done()


if __name__ == "__main__":
    main()
