# Runs as an agent inside a box and tries what it must not be able to do. One line each into report.txt.
import ctypes, json, os, signal, socket, subprocess, sys, time, urllib.error, urllib.request

out = open("report.txt", "w")
libc = ctypes.CDLL(None, use_errno=True)


def say(name, value):
    out.write(f"{name}={value}\n")
    out.flush()


def attempt(name, f):
    try:
        say(name, f"GOT {f()!r}"[:160].replace("\n", " "))
    except BaseException as e:
        say(name, f"refused {type(e).__name__} {getattr(e, 'errno', '')}")


def connect(family, address):
    s = socket.socket(family, socket.SOCK_STREAM)
    s.settimeout(3)
    s.connect(address)
    return "connected"


def syscall(number, *args):
    if libc.syscall(number, *args) == -1:
        raise OSError(ctypes.get_errno(), "")
    return "allowed"


def spend(token):
    req = urllib.request.Request("http://127.0.0.1:9797/internal/v1/models", headers={"Authorization": "Bearer " + token})
    try:
        with urllib.request.urlopen(req, timeout=5) as r:
            return r.status
    except urllib.error.HTTPError as e:
        return f"{e.code} {json.load(e)['error']}"


config = json.load(open("config.json"))
say("uid", os.getuid() != 0)
say("fds", ",".join(sorted(f for f in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + f) and f not in ("0", "1", "2", str(out.fileno())))))
say("env", ",".join(sorted(os.environ)))
say("caps", [l.split()[1] for l in open("/proc/self/status") if l.startswith(("CapEff", "CapPrm", "CapBnd"))])
say("nnp", [l.split()[1] for l in open("/proc/self/status") if l.startswith(("NoNewPrivs", "Seccomp:"))])
attempt("proc1_environ", lambda: open("/proc/1/environ", "rb").read())
attempt("proc1_mem", lambda: open("/proc/1/mem", "rb").read(1))
attempt("proc1_fd", lambda: os.listdir("/proc/1/fd"))
attempt("kill_pid1", lambda: os.kill(1, signal.SIGKILL))
attempt("term_pid1", lambda: os.kill(1, signal.SIGTERM))
attempt("shadow", lambda: open("/etc/shadow").read())
attempt("root_dir", lambda: os.listdir("/root"))
attempt("host_state", lambda: os.listdir(config["instance"]))
attempt("host_run", lambda: os.listdir("/run/pinfold"))
attempt("write_usr", lambda: open("/usr/x", "w"))
attempt("write_opt", lambda: open("/opt/pinfold/x", "w"))
attempt("write_etc", lambda: open("/etc/x", "w"))
attempt("curl", lambda: subprocess.run(["curl", "-sS", "-m", "5", config["url"] + "/healthz"], check=True, capture_output=True).stdout)
attempt("host_port", lambda: connect(socket.AF_INET, ("127.0.0.1", config["port"])))
attempt("metadata", lambda: connect(socket.AF_INET, ("169.254.169.254", 80)))
attempt("outside", lambda: connect(socket.AF_INET, ("192.0.2.1", 80)))
attempt("dns", lambda: socket.getaddrinfo("example.com", 80))
attempt("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM))
attempt("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
attempt("unshare_user", lambda: syscall(272, 0x10000000))
attempt("unshare_mnt", lambda: syscall(272, 0x00020000))
attempt("mount", lambda: syscall(165, b"none", b"/tmp", b"tmpfs", 0, 0))
attempt("ptrace", lambda: syscall(101, 16, 1, 0, 0))
attempt("keyctl", lambda: syscall(250, 0, -3, 0))
attempt("bpf", lambda: syscall(321, 0, 0, 0))
attempt("io_uring", lambda: syscall(425, 8, 0))
attempt("userfaultfd", lambda: syscall(323, 0))
attempt("perf", lambda: syscall(298, 0, 0, -1, -1, 0))
attempt("setuid", lambda: os.setuid(0))
attempt("mknod", lambda: os.mknod("/tmp/sda", 0o60644, os.makedev(8, 0)))
attempt("tty", lambda: open("/dev/tty"))
attempt("cgroup", lambda: open("/sys/fs/cgroup/cgroup.procs").read())
token = open("/workspace/.pinfold-run-token").read()
say("token_mode", oct(os.stat("/workspace/.pinfold-run-token").st_mode & 0o7777))
say("own_token", spend(token))
say("foreign_token", spend(config["foreign"]))
say("garbage_token", spend(token[:-1] + ("A" if token[-1] != "A" else "B")))
with open("done.txt", "w") as f:
    f.write("done\n")
