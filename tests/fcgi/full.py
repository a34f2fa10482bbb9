"""A public side that is full: out of descriptors, of threads, of rows in its table."""
import json, threading, time
from fastcgi import *
from rig import Rig


def cases(check, BODY, program):
    def out_of_files():
        few = Rig(program, files=60, deadline_ms=60000, threads=1, threads_max=1)
        ask(few.path, request("GET", "/v1/runs", few.token))  # now the thread has its connection to the store
        held = [connect(few.path) for _ in range(100)]
        for s in held:
            send(s, begin())
        large = json.dumps(dict(BODY, files=BODY["files"] + [{"path": "large.py", "content": "x" * 60000}])).encode()
        a = ask(few.path, request("POST", "/v1/runs", few.token, large))
        check("out of descriptors, what needs one is told to come again", a is not None and refused(a, 503, "resources_exhausted") and
              "retry-after" in a.headers, a)
        a = ask(few.path, request("GET", "/healthz"))
        check("out of descriptors, a request is answered all the same", a is not None and a.status == 200, a)
        for s in held:
            s.close()
        a = ask(few.path, request("GET", "/v1/runs", few.token))
        check("and so is the next that needs the store", a is not None and a.status == 200, a)
        check("no thread was lost and it stops", few.stop() == 0)

    def upload(token, keep=False):
        """A request whose body stops half way, and the rest of it."""
        body = json.dumps(BODY).encode()
        head = begin(keep=keep) + params(environment("POST", "/v1/runs", token, body))
        return head + record(STDIN, body[:20]), record(STDIN, body[20:]) + record(STDIN, b"")

    def no_idle_to_end():
        """Out of descriptors while all are at work: new ones wait, and are let in when there is room."""
        few = Rig(program, files=40, deadline_ms=700)
        half, _ = upload(few.token)
        held = [connect(few.path) for _ in range(60)]
        for s in held:
            send(s, half)
        a = ask(few.path, request("GET", "/healthz"))
        check("descriptors run out while all are at work: a request is answered in the end", a is not None and a.status == 200, a)
        for s in held:
            s.close()
        check("and it stops", few.stop() == 0)

    def growth():
        small = Rig(program, threads=2, threads_max=8, deadline_ms=60000)
        half, rest = upload(small.token)
        held = [connect(small.path, 60) for _ in range(7)]
        for s in held:
            send(s, half)
            taken(s)
        a = ask(small.path, request("GET", "/healthz"))
        check("as many uploads as may be stand still: a thread was added for the next request",
              a is not None and a.status == 200 and all(silent_yet(s) for s in held), a)
        for s in held:
            send(s, rest)
        check("the uploads go on", all(receive(s).status == 202 for s in held))
        check("and it stops", small.stop() == 0)

    def full_table():
        """All rows taken by kept connections: the one that waits longest makes room, but none whose request is there."""
        rows, small = 2 + 256, Rig(program, threads=2, threads_max=2, deadline_ms=60000)
        health = request("GET", "/healthz", keep=True)
        half, rest = upload(small.token, keep=True)
        idle = [connect(small.path, 60) for _ in range(rows - 2)]
        for s in idle:
            send(s, health)
            receive(s)
        held = [connect(small.path, 60) for _ in range(2)]
        for s in held:
            send(s, half)
            taken(s)
        late = connect(small.path, 60)
        send(late, request("GET", "/healthz"))
        send(idle[0], health)  # behind it: both threads are at work
        check("no thread is free", all(silent_yet(s) for s in (late, idle[0])))
        send(held[0], rest)
        check("the upload is answered", receive(held[0]).status == 202)
        a = receive(late)
        check("no row is free: a new connection is served", a is not None and a.status == 200, a)
        a = receive(idle[0])
        check("a kept connection whose request had come is served", a is not None and a.status == 200, a)
        check("the one that waited longest was ended", idle[1].recv(1) == b"")
        check("and no other", all(silent_yet(s) for s in idle[2:]))
        send(held[1], rest)
        check("the other upload is answered", receive(held[1]).status == 202)
        for s in idle + held:
            s.close()
        check("and it stops", small.stop() == 0)

    out_of_files()
    no_idle_to_end()
    growth()
    full_table()
