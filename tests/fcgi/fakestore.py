"""A store of a few dictionaries that answers the public side's questions, so that it can be tested alone."""
import array, hashlib, os, socket, struct, threading, time
from wire import STORE, Writer, Reader, asked_by, blank, fields, filled, frame, unframe, listed

QUEUED, RUNNING, CANCELLING, COMPLETED, FAILED, CANCELLED = range(6)
UNAUTHORIZED, RUN_NOT_FOUND, ARTIFACT_NOT_FOUND, NOT_TERMINAL, QUEUE_FULL, STORAGE_FULL, CONFLICT = 29, 31, 32, 36, 48, 49, 52
BAD_CODE, NO_DEVICE, NO_QUESTION, NO_GRANT = 131, 134, 76, 146
NO_PUSH, PUSH_CROWD = 160, 164
NO_SOURCE, SOURCE_LARGE = 181, 184
SPEC = os.path.join(os.environ.get("srcdir", os.path.dirname(os.path.abspath(__file__)) + "/../.."), "spec/metrics.tab")
METRICS = [l.rstrip("\n").split("\t") for l in open(SPEC) if l.strip() and not l.startswith("#")]
ARTIFACTS = ["request", "events", "checkpoint", "patch", "test_log", "result"]


def memfd(data):
    fd = os.memfd_create("blob")
    os.write(fd, data)
    return fd


def question(run, request, status=0, decision=0, preview="make test", granted=0, at=1, agent="", title=""):
    """A row of APPROVALS_ARE and INBOX_IS."""
    w = Writer().str(run).str(request).u8(status).u8(decision).u64(at).u64(2).u64(3).bytes(b"d" * 32)
    w.str("call").str("execute").str("why").str("rule").str(preview).u8(0).str("phone" if status else "")
    return w.u8(granted).str(agent).str(title).b


def receipt(n, kind, decision=0, request="q1", run="run-1"):
    """A row of RECEIPTS_ARE."""
    w = Writer().str(f"receipt-{n}").u64(n).str("phone").str(run).str(request).u8(kind).u8(decision)
    return w.bytes(b"d" * 32 if request else b"").b


class Fail(Exception):
    pass


def empty(number):
    """The answer that the table names, with nothing in it: what a message that is not spelled out here gets."""
    reply = asked_by("store.msg", number)
    if reply is None:
        raise Fail(43)
    answer, fds = blank("store.msg", reply)
    return *answer, [memfd(b"") for _ in range(fds)]


class Store:
    def __init__(self, path):
        self.tokens, self.runs, self.keys, self.requests, self.lock, self.asked = {}, {}, {}, [], threading.Lock(), []
        self.peers, self.full, self.done = [], False, 0  # done: what changes something
        self.figures = []
        self.codes, self.device_end, self.told = {}, 0, []
        self.notes = []  # for the audit log
        self.waiting, self.busy, self.receipts, self.page = [], False, [], 200  # of the inbox: (asked, run, request, row), in order; (at, id, row)
        self.push_key, self.subscriptions, self.crowded = b"", {}, False
        self.sources, self.uploads, self.parts, self.no_uploads = {}, {}, [], None  # by (tenant, SHA-256); by tenant
        self.over = None  # a quota that a run does not fit into: code, field, seconds
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(path)
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def token(self, tenant, kind=1, label="test", rights=0):
        tag = os.urandom(8).hex()
        import base64
        secret = base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")
        text = ("pfa_" if kind == 1 else "pfd_") + tag + "_" + secret
        self.tokens[tag] = (hashlib.sha256(text.encode()).digest(), tenant, kind, label, rights)
        return text

    def accept(self):
        while True:
            try:
                c, _ = self.listener.accept()
            except OSError:
                return
            self.peers.append(c)
            threading.Thread(target=self.serve, args=(c,), daemon=True).start()

    def close(self):
        """Gone, with every connection."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for c in self.peers:
            c.shutdown(socket.SHUT_RDWR)

    def serve(self, c):
        while True:
            try:
                data, fds, flags, _ = socket.recv_fds(c, 200001, 4)
            except ConnectionResetError:
                return  # it left with something unread
            if not data:
                return
            number, _, op, r = unframe(data)
            try:
                with self.lock:
                    self.asked.append(number)
                    out, w, give = self.answer(number, r, fds)
                    self.done += number in (13, 17, 20, 26, 29, 36, 38, 130, 187, 192)
                    if number == 32:
                        self.told.append(c)
            except Fail as e:
                out, w, give = 4, Writer().u16(e.args[0]).str(e.args[1] if len(e.args) > 1 else "").str("").u32(e.args[2] if len(e.args) > 2 else 0), []
            for fd in fds:
                os.close(fd)
            try:
                socket.send_fds(c, [frame(out, w, len(give), op, STORE)], give)
            except BrokenPipeError:
                pass  # it has left; what it held is closed all the same
            for fd in give:
                os.close(fd)

    def append(self, x, *events, state=None):
        """Events (type, data) of a run, and who subscribed is told."""
        with self.lock:
            for kind, data in events:
                n = len(x["events"]) + 1
                x["events"].append((n, 1700000000000 + n, f"e-{n}", kind, data))
            x["state"] = state if state is not None else x["state"]
            woken = frame(33, filled(fields("store.msg", "WOKEN")[1], dict(tenant=x["tenant"], run=x["run"], state=x["state"],
                                                                          last_sequence=len(x["events"]))), version=STORE)
            for c in list(self.told):
                try:
                    c.send(woken)
                except OSError:
                    self.told.remove(c)

    def run(self, r):
        key = (r.str(), r.str())
        if key not in self.runs:
            raise Fail(RUN_NOT_FOUND)
        return self.runs[key]

    def vouch(self, tag, digest, tenant):
        t = self.tokens.get(tag)
        if tag and (t is None or t[:2] != (digest, tenant)):
            raise Fail(UNAUTHORIZED)

    def answer(self, number, r, fds):
        if number == 5 and self.full:
            raise Fail(STORAGE_FULL)
        now = int(time.time() * 1000)
        if number == 1:
            return 2, Writer().u32(STORE), []
        if number == 5:
            return 3, Writer(), []
        if number == 10:
            tag, digest = r.str(), r.bytes()
            t = self.tokens.get(tag)
            if t is None or t[0] != digest:
                raise Fail(UNAUTHORIZED)
            return 11, Writer().str(t[1]).u8(t[2]).u32(t[4]).str(t[3]), []
        if number == 107:
            rest, told = r.bytes(), []
            while rest:
                n = int.from_bytes(rest[:4], "big")
                item, rest = Reader(rest[4:4 + n]), rest[4 + n:]
                row, labels, values = METRICS[item.u8()], item.str(), item.bytes()
                words = [f'{k}="{v}"' for k, v in zip(row[3].split(","), labels.split())]
                told.append(f"{row[0]}{'{' + ','.join(words) + '}' if words else ''} {int.from_bytes(values, 'big')}")
            self.figures = told
            return 3, Writer(), []
        if number == 12:
            note = {"event": r.u8()}
            note.update((k, r.str()) for k in ("tenant", "run", "actor", "request", "subject"))
            self.notes.append({**note, "code": r.u16()})
            return 3, Writer(), []
        if number == 13:
            code, tenant, label, tag, digest = r.bytes(), r.str(), r.str(), r.str(), r.bytes()
            if code not in self.codes or tenant not in ("", self.codes[code]):
                raise Fail(BAD_CODE)
            self.tokens[tag] = (digest, self.codes.pop(code), 2, label, 0)
            return 14, Writer().str(self.tokens[tag][1]).u64(self.device_end), []
        if number == 15:
            tenant, after, limit = r.str(), r.str(), r.u16()
            rows = sorted((t[3], tag) for tag, t in self.tokens.items() if t[1] == tenant and t[2] == 2 and t[3] > after)
            return 16, Writer().u8(len(rows) > limit).bytes(listed([Writer().str(tag).str(label).u64(1).u64(0).u64(2).b
                                                                    for label, tag in rows[:limit]])), []
        if number == 17:
            tenant, label = r.str(), r.str()
            tag = next((k for k, t in self.tokens.items() if t[1:4] == (tenant, 2, label)), None)
            if tag is None:
                raise Fail(NO_DEVICE)
            del self.tokens[tag]
            return 3, Writer(), []
        if number == 20:
            tenant, run, agent, profile, provider, model = (r.str() for _ in range(6))
            print_ = r.bytes()
            steps, wall, wait, most, queued = (r.u32() for _ in range(5))
            have = sum(x["state"] == QUEUED for k, x in self.runs.items() if k[0] == tenant)
            if queued and have >= queued:
                raise Fail(QUEUE_FULL)
            if self.over:
                raise Fail(*self.over)
            by, request, key = r.str(), r.str(), r.str()
            blobs = [r.bytes() or os.pread(fd, 10 << 20, 0) for fd in fds]
            self.vouch(r.str(), r.bytes(), tenant)
            title, env_mode, source = r.str(), r.u8(), r.bytes()
            if source and (tenant, source) not in self.sources and not (key and (tenant, key) in self.keys):
                raise Fail(NO_SOURCE)
            body = hashlib.sha256(blobs[0]).digest()
            if key and (tenant, key) in self.keys:
                known, was = self.keys[tenant, key]
                if was != body:
                    raise Fail(CONFLICT)
                return 21, Writer().u8(QUEUED).u8(0).u8(0).str(known), []
            if key:
                self.keys[tenant, key] = run, body
            self.requests.append(request)
            self.runs[tenant, run] = dict(
                tenant=tenant, run=run, agent=agent, profile=profile, provider=provider, model=model, steps=steps,
                wall=wall, wait=wait, most=most, state=QUEUED, phase=0, cancel=0, created=now, updated=now,
                summary=blobs[0], upload=blobs[1], artifacts={}, by=by, print=print_, title=title, env_mode=env_mode, source=source,
                events=[(1, now, "e-1", "run.queued", b"{}")])
            return 21, Writer().u8(QUEUED).u8(0).u8(1).str(run), []
        if number == 22:
            tenant, run = r.str(), r.str()
            self.vouch(r.str(), r.bytes(), tenant)
            x = self.run(Reader(Writer().str(tenant).str(run).b))
            ended = x["state"] >= COMPLETED
            w = Writer().str(x["run"]).u8(x["state"]).u8(x["phase"]).u8(x["cancel"])
            w.str(x["agent"]).str(x["profile"]).str(x["provider"]).str(x["model"])
            w.u64(x["created"]).u64(x["updated"]).u64(0).u64(x["updated"] if ended else 0)
            w.u32(x["steps"]).u32(x["wall"]).u32(x["wait"]).u32(x["most"]).u32(0).u64(0).u64(0).u64(0).u64(0)
            w.u8(ended).u8(ended and x["state"] == COMPLETED).u8(ended).i32(0)
            w.str("done" if ended else "").str("")
            w.bytes(b'"it is \\u003cdone\\u003e"' if ended else b"").bytes(b'["calc.py"]' if ended else b"")
            w.bytes(b'[{"name":"check-1","argv":["git","diff","--check"],"ok":true,"exitCode":0,"durationSeconds":1}]' if ended else b"")
            w.u32(sum(1 << ARTIFACTS.index(n) for n in x["artifacts"])).u64(len(x["events"]))
            small = len(x["summary"]) <= 16000
            return 23, w.bytes(x["summary"] if small else b"").u32(len(x.get("asked", []))).u8(x["env_mode"]), [memfd(b"" if small else x["summary"])]
        if number == 24:
            tenant, states, before, before_run, limit = r.str(), r.u32(), r.u64(), r.str(), r.u16()
            all_ = sorted((x for k, x in self.runs.items() if k[0] == tenant and (not states or states >> x["state"] & 1)),
                          key=lambda x: (-x["created"], x["run"]))
            if before:
                all_ = [x for x in all_ if (-x["created"], x["run"]) > (-before, before_run)]
            page = all_[:limit]
            items = []
            for x in page:
                w = Writer().str(x["tenant"]).str(x["run"]).u8(x["state"]).u8(x["phase"]).u8(x["cancel"])
                w.str(x["agent"]).str(x["profile"]).u64(x["created"]).u64(x["updated"]).u64(0).str("").str("").str(x["title"])
                items.append(w.b)
            more = len(all_) > len(page)
            last = page[-1] if more else None
            w = Writer().u8(more).bytes(listed(items))
            return 25, w.u64(last["created"] if last else 0).str(last["run"] if last else ""), []
        if number == 26:
            x = self.run(r)
            changed = x["state"] < COMPLETED and not x["cancel"]
            if x["state"] == QUEUED:
                x["state"] = CANCELLED
            elif x["state"] == RUNNING:
                x["state"] = CANCELLING
            x["cancel"] = 1
            return 21, Writer().u8(x["state"]).u8(x["phase"]).u8(changed).str(""), []
        if number == 27:
            x = self.run(r)
            name = ARTIFACTS[r.u8()]
            if name not in x["artifacts"]:
                raise Fail(ARTIFACT_NOT_FOUND)
            b = x["artifacts"][name]
            return 28, Writer().u64(len(b)).bytes(hashlib.sha256(b).digest()), [memfd(b)]
        if number == 29:
            x = self.run(r)
            if x["state"] < COMPLETED:
                raise Fail(NOT_TERMINAL)
            del self.runs[x["tenant"], x["run"]]
            return 3, Writer(), []
        if number == 34:
            x = self.run(r)
            return 35, Writer().u8(0).bytes(listed(x.get("asked", []))), []
        if number in (36, 38):
            x = self.run(r)
            if r.str() not in x.get("open", ()):
                raise Fail(NO_QUESTION)
            if number == 36:
                return 37, Writer().str("nonce").u64(5), []
            return 39, Writer().u8(1).u8(r.u8()).u64(now), []
        if number == 130:
            x = self.run(r)
            request = r.str()
            if request not in x.get("granted", ()):
                raise Fail(NO_GRANT)
            x["granted"].remove(request)
            return 3, Writer(), []
        if number == 131:
            tenant, behind, limit = r.str(), (r.u64(), r.str(), r.str()), r.u16()
            rows = [x for x in self.waiting if x[:3] > behind] if tenant == "main" else []
            page = rows[:min(limit, self.page)]
            return 132, Writer().u8(len(rows) > len(page)).u8(self.busy).u32(len(self.waiting) if tenant == "main" else 0).bytes(
                listed([x[3] for x in page])), []
        if number == 133:
            tenant, before, limit = r.str(), (r.u64(), r.str()), r.u16()
            rows = [x for x in self.receipts if not before[0] or (-x[0], x[1]) > (-before[0], before[1])] if tenant == "main" else []
            return 134, Writer().u8(len(rows) > limit).bytes(listed([x[2] for x in rows[:limit]])), []
        if number == 144:
            tenant, tag, endpoint, point, auth, by = r.str(), r.str(), r.str(), r.bytes(), r.bytes(), r.str()
            if not self.push_key:
                raise Fail(NO_PUSH)
            if self.crowded:
                raise Fail(PUSH_CROWD)
            self.subscriptions[tenant, tag] = endpoint, point, auth, by
            return 3, Writer(), []
        if number == 145:
            self.subscriptions.pop((r.str(), r.str()), None)
            return 3, Writer(), []
        if number == 146:
            return 147, Writer().bytes(self.push_key).u8((r.str(), r.str()) in self.subscriptions), []
        if number == 50:
            return 51, Writer().bytes(b"".join({x["print"] for x in self.runs.values()})), []
        if number == 87:
            return 88, Writer().bytes(b"pinfold_runs 1\n" + "".join(f + "\n" for f in self.figures).encode()), []
        if number == 30:
            x = self.run(r)
            after, most = r.u64(), r.u32() or 170000
            part, last, size = [], after, 0
            rest = [e for e in x["events"] if e[0] > after]
            for e in rest:
                w = Writer().u64(e[0]).u64(e[1]).str(e[2]).str(e[3]).bytes(e[4])
                if part and size + len(w.b) > most:
                    break
                part.append(w.b)
                size += len(w.b) + 4
                last = e[0]
            more = bool(rest) and last < rest[-1][0]
            return 31, Writer().u8(more).u8(x["state"] >= COMPLETED).u64(last).bytes(listed(part)), []
        if number == 110:
            rest, parts = Reader(r.bytes()), []
            while rest.b:
                item = Reader(rest.bytes())
                tenant, run, tag, digest = item.str(), item.str(), item.str(), item.bytes()
                x, t = self.runs.get((tenant, run)), self.tokens.get(tag)
                refused = UNAUTHORIZED if t is None or t[:2] != (digest, tenant) else RUN_NOT_FOUND if x is None else 0
                ended, last = (x["state"] >= COMPLETED, len(x["events"])) if not refused else (False, 0)
                parts.append(Writer().u16(refused).u8(ended).u64(last).b)
            return 111, Writer().bytes(listed(parts)), []
        if number in range(185, 193):
            return self.source(number, r, now)
        return empty(number)

    def source(self, number, r, now):
        """Archives; each tenant sends one at a time."""
        tenant = r.str()
        if number == 185:
            announced, most = r.u64(), r.u64()
            if announced > most:
                raise Fail(SOURCE_LARGE)
            if self.no_uploads:
                raise Fail(*self.no_uploads)
            self.uploads[tenant] = b""
        elif number == 186:
            offset, data = r.u64(), r.bytes()
            self.parts.append((offset, len(data)))
            if self.uploads.get(tenant) is None or offset != len(self.uploads[tenant]):
                raise Fail(46)
            self.uploads[tenant] += data
        elif number == 187:
            data = self.uploads.pop(tenant, None)
            if data is None or len(data) != r.u64():
                raise Fail(46)
            sha = hashlib.sha256(data).digest()
            made = (tenant, sha) not in self.sources
            self.sources[tenant, sha] = data
            return 188, Writer().bytes(sha).u64(now + 86400000).u8(made), []
        elif number == 189:
            self.uploads.pop(tenant, None)
        else:
            key = tenant, r.bytes()
            if key not in self.sources:
                raise Fail(NO_SOURCE)
            if number == 190:
                return 191, Writer().u64(len(self.sources[key])).u64(now).u64(now + 86400000), []
            del self.sources[key]
        return 3, Writer(), []
