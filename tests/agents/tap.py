#!/usr/bin/python3
"""Within a box, between an agent and the gateway: hands on what passes, byte for byte, and says at the end, in one line of JSON on
standard output, what was asked and what the gateway answered. Refused calls are seen nowhere else.

    tap.py PROGRAM ARG...     as {gateway_url} the program has port 9798 in the place of 9797
"""
import json, os, signal, socket, subprocess, sys, threading

calls, lock = [], threading.Lock()


def lines_of(seen, row, name):
    """The first line of a message, and the headers that say whether to come again."""
    head = seen.split(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    with lock:
        row[name] = head[0]
        for l in head[1:]:
            if name == "answer" and l.lower().split(":")[0] in ("retry-after", "x-should-retry"):
                row[l.lower().split(":")[0]] = l.split(":", 1)[1].strip()


def length_of(head):
    for l in head.split(b"\r\n")[1:]:
        if l.lower().startswith(b"content-length:"):
            return int(l.split(b":")[1])
    return 0


def serve(near):
    far = socket.create_connection(("127.0.0.1", 9797))
    row = [None]

    def back():
        fresh = None
        try:
            while data := far.recv(65536):
                if row[0] is not fresh:
                    fresh = row[0]
                    lines_of(data, fresh, "answer")
                near.sendall(data)
        except OSError:
            pass
        for s in (near, far):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    threading.Thread(target=back, daemon=True).start()
    seen = b""
    try:
        while True:
            # A request: its head, then as much as it says.
            while b"\r\n\r\n" not in seen:
                data = near.recv(65536)
                if not data:
                    return far.shutdown(socket.SHUT_WR)
                seen += data
            head, rest = seen.split(b"\r\n\r\n", 1)
            row[0] = {}
            with lock:
                calls.append(row[0])
            lines_of(seen, row[0], "asked")
            size = length_of(head)
            far.sendall(head + b"\r\n\r\n" + rest[:size])
            size, seen = size - len(rest[:size]), rest[size:]
            while size > 0:
                data = near.recv(min(size, 65536))
                if not data:
                    return far.shutdown(socket.SHUT_WR)
                far.sendall(data)
                size -= len(data)
    except OSError:
        pass


def accept(door):
    while True:
        threading.Thread(target=serve, args=(door.accept()[0],), daemon=True).start()


door = socket.create_server(("127.0.0.1", 9798), backlog=64)
threading.Thread(target=accept, args=(door,), daemon=True).start()
child = subprocess.Popen(sys.argv[1:])
signal.signal(signal.SIGTERM, lambda *_: child.terminate())
status = child.wait()
with lock:
    print("\n" + json.dumps({"type": "tap", "status": status, "calls": calls}), flush=True)
os._exit(status if status >= 0 else 128 - status)
