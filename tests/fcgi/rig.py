"""Starts pinfold-fcgi by itself, with a store made of dictionaries, as sandboxd would start it."""
import os, shutil, signal, socket, struct, subprocess, tempfile, time
from wire import Writer, frame
from fakestore import Store

EXTENSIONS = [".py", ".toml", ".md", ".txt", ".json", ".yaml", ".yml", ".ini", ".cfg"]
CHECKS = [["git", "diff", "--check"], ["python3", "-m", "pytest", "-q"],
          ["python3", "-m", "compileall", "-q", "."], ["python3", "-m", "unittest", "discover"]]


def configuration(run_dir, **o):
    out = [frame(1, Writer().str(run_dir).str(run_dir).str(run_dir).str(run_dir).u32(0).u16(9797).u32(100000).u32(8)
                 .u32(o.get("threads", 4)).u32(o.get("threads_max", 64)).u32(o.get("deadline_ms", 3000)).u32(0))]
    for i, name in enumerate(["stored", "fcgi", "gateway", "steward"]):
        out.append(frame(2, Writer().str(name).u32(70001 + i).u32(70001 + i)))
    out.append(frame(3, Writer().u32(70000)))
    for name, extensions in (("main", EXTENSIONS), ("other", ["*"])):
        out.append(frame(5, Writer().str(name).str("builtin").str("default").strs(extensions)
                         .u32(20).u32(220).u32(60).u32(4).u32(o.get("max_queued", 0))))
        for argv in CHECKS:
            out.append(frame(6, Writer().str(name).strs(argv)))
    out.append(frame(7, Writer().str("scripted").str("openai").str("https://127.0.0.1:1/v1").str("").str("").u8(0).u8(1)))
    out.append(frame(8, Writer().str("default").str("scripted").str("scripted-1")))
    out.append(frame(9, Writer().str("builtin").strs(["/opt/pinfold/pinfold-agent"]).strs([]).str("strict")
                     .str(".pinfold-run-token").str(".pinfold-event-token").str(".pinfold-approval-token")
                     .u64(512 << 20).u32(256).u64(256 << 20).u32(65536).u32(200000).u32(2)))
    out.append(frame(10))
    return b"".join(struct.pack(">I", len(f)) + f for f in out)


class Rig:
    def __init__(self, program, **o):
        self.dir = tempfile.mkdtemp(prefix="pf-rig.")
        os.mkdir(self.dir + "/store")
        self.store = Store(self.dir + "/store/store.sock")
        self.token, self.device = self.store.token("main"), self.store.token("main", 2)
        self.other = self.store.token("other")
        self.path = self.dir + "/fcgi.sock"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.path)
        listener.listen(512)
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        conf = os.memfd_create("conf", os.MFD_ALLOW_SEALING)
        os.write(conf, configuration(self.dir, **o))
        import fcntl
        fcntl.fcntl(conf, 1033, 0xf)  # F_ADD_SEALS: all
        secrets, end = os.pipe()
        os.close(end)
        give = {3: theirs.fileno(), 4: conf, 5: secrets, 6: listener.fileno()}

        def place():
            high = {to: fcntl.fcntl(fd, fcntl.F_DUPFD, 50) for to, fd in give.items()}
            for to, fd in high.items():
                os.dup2(fd, to, inheritable=True)
                os.close(fd)
        self.log = open(self.dir + "/log", "wb")
        self.p = subprocess.Popen([program], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                  close_fds=False, preexec_fn=place)
        theirs.close()
        listener.close()
        os.close(conf)
        os.close(secrets)

    def alive(self):
        return self.p.poll() is None

    def stop(self):
        self.p.send_signal(signal.SIGTERM)
        try:
            status = self.p.wait(5)
        except subprocess.TimeoutExpired:
            self.p.kill()
            status = None
        self.text = open(self.dir + "/log", errors="replace").read()
        shutil.rmtree(self.dir)
        return status
