"""pinfold-push alone, as sandboxd would start it, with a store that is made of a list."""
import os, shutil, signal, socket, struct, subprocess, sys, tempfile, threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../fcgi"), os.path.join(HERE, "..")]
from patience import PATIENCE, wait_for
from wire import STORE, Writer, fields, filled, frame, message, unframe
from rig import sealed, spawn

BUILD = os.environ.get("PINFOLD_BUILD", os.getcwd())
CONTACT = "mailto:ops@example.org"
KINDS = ("card", "clear", "summary")
OUTCOMES = ("sent", "gone", "refused", "failed", "too_many")
HELLO, OK, SUBSCRIBE, READY, NEXT, DONE = 1, 3, 32, 140, 141, 143


class Store:
    """Lends what was put into it, and keeps what it is told."""

    def __init__(self, path):
        self.path, self.waiting, self.done, self.lock, self.n = path, [], {}, threading.Lock(), 100
        self.listener, self.peers, self.subscribers, self.key, self.asked = None, [], [], None, 0
        self.open()

    def open(self):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.path)
        self.listener.listen(8)
        os.chmod(self.path, 0o666)
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def close(self):
        """Gone, with every connection."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        os.unlink(self.path)
        with self.lock:
            peers, self.peers, self.subscribers, self.key = self.peers, [], [], None
        for c in peers:
            c.shutdown(socket.SHUT_RDWR)

    def accept(self, listener):
        while True:
            try:
                c, _ = listener.accept()
            except OSError:
                return
            with self.lock:
                self.peers.append(c)
            threading.Thread(target=self.serve, args=(c,), daemon=True).start()

    def serve(self, c):
        try:
            while data := c.recv(200001):
                number, _, op, r = unframe(data)
                with self.lock:
                    out, w = self.answer(number, r, c)
                c.send(frame(out, w, 0, op, STORE))
        except OSError:
            pass

    def answer(self, number, r, c):
        if number == HELLO:
            return 2, Writer().u32(STORE)
        if number == SUBSCRIBE:
            self.subscribers.append(c)
        elif number == READY:
            self.key = r.bytes()
        elif number == NEXT:
            self.asked += 1
            ready = self.key is not None and self.waiting
            what = self.waiting.pop(0) if ready else {}
            n, has = fields("store.msg", "PUSH_IS")
            return n, filled(has, dict(what))
        elif number == DONE:
            tenant, id, outcome, after = r.str(), r.u64(), r.u8(), r.u32()
            self.done.setdefault(id, []).append((tenant, OUTCOMES[outcome], after))
        return OK, Writer()

    def put(self, browser, kind="card", wake=True, **more):
        """Its id."""
        with self.lock:
            self.n += 1
            what = dict(id=self.n, tenant="main", label="phone", endpoint=browser.endpoint, p256dh=browser.public, auth=browser.auth,
                        kind=KINDS.index(kind), run="run-1", request="req-1", count=1, topic="dG9waWMtb2Y", ttl=21600, expires_at=1 << 50)
            what.update(more)
            self.waiting.append(what)
            if wake:
                self.wake()
            return what["id"]

    def wake(self):
        for c in self.subscribers:
            try:
                c.send(message_of("WOKEN", tenant="main", run="run-1", last_sequence=1))
            except OSError:
                pass

    def told(self, id):
        """(outcome, seconds) of it."""
        got = wait_for(lambda: self.done.get(id))
        assert got, f"nothing was told of {id}"
        return got[-1][1:]


def message_of(what, **values):
    number, has = fields("store.msg", what)
    return frame(number, filled(has, values), version=STORE)


def configuration(folder, hosts, **push):
    out = [message("conf.msg", "GLOBAL", run_dir=folder, state_dir=folder, log_dir=folder, libexec_dir=folder, gateway_port=9797,
                   box_uid_base=100000, max_boxes=8, push_hosts=hosts)]
    out += [message("conf.msg", "ROLE", name=name, uid=70001 + i, gid=70001 + i)
            for i, name in enumerate(["stored", "fcgi", "gateway", "steward", "push"])]
    out += [message("conf.msg", "SHARED_GID", gid=70000), message("conf.msg", "PUSH", **push), message("conf.msg", "END")]
    return b"".join(struct.pack(">I", len(f)) + f for f in out)


class Sender:
    """key: text of the secret, None for none. files: {path: text} of what it sees there, in a mount namespace (root only)."""

    def __init__(self, key, hosts=("push.example.net",), contact=CONTACT, files=None, environ=None, program="pinfold-push", **push):
        self.dir = tempfile.mkdtemp(prefix="pf-push.")
        os.chmod(self.dir, 0o755)
        os.mkdir(self.dir + "/store")
        self.store = Store(self.dir + "/store/store.sock")
        self.program, self.secret = os.path.join(BUILD, program), key
        self.data = configuration(self.dir, list(hosts), contact=contact, **push)
        self.environ = environ or {}
        if files is not None:
            for i, text in enumerate(files.values()):
                with open(f"{self.dir}/file{i}", "w") as f:
                    f.write(text)
            mounts = " && ".join(f"mount --bind {self.dir}/file{i} {path}" for i, path in enumerate(files))
            with open(self.dir + "/start", "w") as f:
                f.write(f"#!/bin/sh\nexec unshare -m sh -c '{mounts} && exec {self.program}'\n")
            os.chmod(self.dir + "/start", 0o755)
            self.program = self.dir + "/start"
        self.log = open(self.dir + "/log", "wb")
        self.start()

    def start(self):
        self.control, theirs = socket.socketpair()
        conf = sealed(self.data)
        secrets, end = os.pipe()
        if self.secret is not None:
            name, value = b"vapid", self.secret.encode()
            os.write(end, bytes([len(name)]) + name + struct.pack(">H", len(value)) + value)
        os.close(end)
        before = dict(os.environ)
        os.environ.update(self.environ)
        try:
            self.p = spawn(self.program, {3: theirs.fileno(), 4: conf, 5: secrets}, self.log)
        finally:
            os.environ.clear()
            os.environ.update(before)
        theirs.close()
        os.close(conf)
        os.close(secrets)

    def said(self):
        with open(self.dir + "/log", errors="replace") as f:
            return f.read()

    def again(self):
        """Killed, and started once more."""
        self.p.kill()
        self.p.wait()
        self.start()

    def stop(self):
        """The status of its end, when sandboxd has gone."""
        self.control.close()
        try:
            status = self.p.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.p.kill()
            status = None
        self.store.close()
        self.text = self.said()
        shutil.rmtree(self.dir)
        return status
