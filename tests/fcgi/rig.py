"""Starts pinfold-fcgi by itself as sandboxd would start it, with a store made of dictionaries or, as root, a real one."""
import base64, fcntl, hashlib, os, resource, shutil, signal, socket, struct, subprocess, tempfile, time
from wire import STORE, Writer, frame, message, unframe
from fakestore import Store
from fastcgi import PATIENCE

EXTENSIONS = [".py", ".toml", ".md", ".txt", ".json", ".yaml", ".yml", ".ini", ".cfg"]
CHECKS = [["git", "diff", "--check"], ["python3", "-m", "pytest", "-q"],
          ["python3", "-m", "compileall", "-q", "."], ["python3", "-m", "unittest", "discover"]]


def configuration(run_dir, **o):
    out = []
    def add(what, /, **values):
        out.append(message("conf.msg", what, **values))
    add("GLOBAL", run_dir=run_dir, state_dir=run_dir + "/state", log_dir=run_dir + "/state", libexec_dir=run_dir, gateway_port=9797,
        box_uid_base=100000, max_boxes=8, fcgi_threads=o.get("threads", 4), fcgi_threads_max=o.get("threads_max", 64),
        request_deadline_ms=o.get("deadline_ms", 3000), **{"auth_failures_per_minute": 1000000, **o.get("settings", {})})
    for i, name in enumerate(["stored", "fcgi", "gateway", "steward", "push"]):
        add("ROLE", name=name, uid=70001 + i, gid=70001 + i)
    add("SHARED_GID", gid=70000)
    for name, extensions in (("main", EXTENSIONS), ("other", ["*"])):
        add("TENANT", name=name, default_agent="builtin", default_profile="default", extensions=extensions, max_steps=20,
            max_wall_seconds=220, check_seconds=60, max_concurrent_runs=4, max_queued_runs=o.get("max_queued", 0), **o.get("tenant", {}))
        for argv in CHECKS:
            add("TENANT_CHECK", tenant=name, argv=argv)
    add("PROVIDER", name="scripted", protocol="openai", base_url="https://127.0.0.1:1/v1", scripted=True)
    add("PROFILE", name="default", provider="scripted", model="scripted-1")
    add("AGENT", name="builtin", argv=["/opt/pinfold/pinfold-agent"], policy="strict", model_token_file=".pinfold-run-token",
        event_token_file=".pinfold-event-token", approval_token_file=".pinfold-approval-token", memory_bytes=512 << 20,
        pids=256, workspace_bytes=256 << 20, workspace_inodes=65536, output_bytes=200000, extra_requests=2)
    # Real keys in its box, for which nobody here has given his word.
    for role in ("gateway", "agent/keyed"):
        add("SECRET", name="key", role=role)
    add("AGENT", name="keyed", argv=["/bin/true"], policy="strict", env_mode=True, credentials=["KEY=key"], token_wire=True,
        memory_bytes=512 << 20, pids=256, workspace_bytes=256 << 20, workspace_inodes=65536, output_bytes=200000, extra_requests=2)
    add("END")
    return b"".join(struct.pack(">I", len(f)) + f for f in out)


def spawn(program, give, log, uid=None, files=None):
    """give: descriptor numbers in the child, and what they are."""
    def place():
        high = {to: fcntl.fcntl(fd, fcntl.F_DUPFD, 50) for to, fd in give.items()}
        for to, fd in high.items():
            os.dup2(fd, to, inheritable=True)
            os.close(fd)
        if files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        if uid is not None:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
    return subprocess.Popen([program], stdin=subprocess.DEVNULL, stdout=log, stderr=log, close_fds=False, preexec_fn=place)


def listening(path, kind):
    s = socket.socket(socket.AF_UNIX, kind)
    s.bind(path)
    os.chmod(path, 0o666)
    s.listen(512)
    return s


def sealed(data):
    fd = os.memfd_create("conf", os.MFD_ALLOW_SEALING)
    os.write(fd, data)
    fcntl.fcntl(fd, 1033, 0xf)  # F_ADD_SEALS: all
    return fd


class RealStore:
    """pinfold-stored with its admin socket, by which tenants and tokens are made."""

    def __init__(self, program, directory, configuration, log):
        os.chmod(directory, 0o755)
        os.mkdir(directory + "/state", 0o700)
        os.chown(directory + "/state", 70001, 70001)
        store = listening(directory + "/store/store.sock", socket.SOCK_SEQPACKET)
        admin = listening(directory + "/admin.sock", socket.SOCK_SEQPACKET)
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        conf = sealed(configuration)
        null = os.open("/dev/null", os.O_RDONLY)
        self.p = spawn(program, {3: theirs.fileno(), 4: conf, 5: null, 6: store.fileno(), 7: admin.fileno()}, log, 70001)
        for s in (store, admin, theirs):
            s.close()
        os.close(conf)
        os.close(null)
        self.admin = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.admin.connect(directory + "/admin.sock")
        self.op = 0
        self.ask(1, Writer().u32(STORE).u64(0))
        for tenant in ("main", "other"):
            self.ask(80, Writer().str(tenant))

    def ask(self, number, body):
        self.op += 1
        self.admin.send(frame(number, body, op=self.op, version=STORE))
        answer, _, _, _ = unframe(self.admin.recv(65536))
        assert answer in (2, 3), answer

    def token(self, tenant, kind=1, label="test"):
        tag = os.urandom(8).hex()
        text = ("pfa_" if kind == 1 else "pfd_") + tag + "_" + base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")
        self.ask(81, Writer().str(tenant).u8(kind).str(tag).bytes(hashlib.sha256(text.encode()).digest()).str(label).u32(0).u64(0))
        return text

    def stop(self):
        self.p.terminate()
        self.p.wait(PATIENCE)


class Rig:
    def __init__(self, program, stored=None, **o):
        self.dir = tempfile.mkdtemp(prefix="pf-rig.")
        os.mkdir(self.dir + "/store")
        self.log = open(self.dir + "/log", "wb")
        data = configuration(self.dir, **o)
        self.store = RealStore(stored, self.dir, data, self.log) if stored else Store(self.dir + "/store/store.sock")
        self.token, self.device = self.store.token("main"), self.store.token("main", 2)
        self.other = self.store.token("other")
        self.path = self.dir + "/fcgi.sock"
        self.program, self.data, self.uid, self.files, self.deaths = program, data, 70002 if stored else None, o.get("files"), 0
        self.start()

    def start(self):
        listener = listening(self.path, socket.SOCK_STREAM)
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        conf = sealed(self.data)
        secrets, end = os.pipe()
        os.close(end)
        self.p = spawn(self.program, {3: theirs.fileno(), 4: conf, 5: secrets, 6: listener.fileno()}, self.log, self.uid, self.files)
        theirs.close()
        listener.close()
        self.serve(7)
        os.close(conf)
        os.close(secrets)

    def serve(self, who):
        """Says as sandboxd does who of the others serves: UP of spec/sandbox.msg."""
        self.control.send(message("sandbox.msg", "UP", who=who))

    def again(self):
        """It has died, and is started once more."""
        self.p.wait()
        os.unlink(self.path)
        self.control.close()
        self.deaths += 1
        self.start()

    def alive(self):
        return self.p.poll() is None

    def stop(self):
        self.p.send_signal(signal.SIGTERM)
        try:
            status = self.p.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.p.kill()
            status = None
        if isinstance(self.store, RealStore):
            self.store.stop()
        self.text = open(self.dir + "/log", errors="replace").read()
        shutil.rmtree(self.dir)
        return status
