#!/usr/bin/python3
"""pinfold doctor: a healthy instance has no error; each of many prepared misconfigurations, which breaks one thing, is named
by its id with a remedy. What can be broken without a service is broken in a root of its own, what needs one for a moment in
the instance, and web servers are others in front of it. No output ever holds a secret or a control byte."""
import http.client, http.server, os, shutil, signal, subprocess, sys, tempfile, threading, urllib.parse
from client import *
from front import Front
from processes import kill, ready

said = []


def doctor(root=INSTANCE, server=None, words=(), inside=None):
    """(status, {id: row}). inside: shell commands that come first, in a mount namespace of their own."""
    argv = [CLI, *(["--server", server] if server else []), "doctor", "--json", *words]
    if inside:
        argv = ["unshare", "-m", "sh", "-c", f"set -e; {inside}; exec \"$@\"", "sh", *argv]
    env = {k: v for k, v in os.environ.items() if k != "PINFOLD_URL"}
    done = subprocess.run(argv, env={**env, "PINFOLD_ROOT": root}, capture_output=True, timeout=300)
    said.append(done.stdout + done.stderr)
    try:
        v = json.loads(done.stdout)
    except ValueError:
        raise AssertionError(f"no JSON: {done.returncode} {done.stdout[-300:]} {done.stderr[-300:]}")
    rows = {c["id"]: c for c in v["checks"]}
    errors = [c for c in v["checks"] if c["status"] == "error"]
    if len(rows) != len(v["checks"]) or v["ok"] != (not errors) or done.returncode != (1 if errors else 0):
        raise AssertionError(f"status {done.returncode}, ok {v['ok']}, errors {errors}")
    for c in v["checks"]:
        if (c["remedy"] is None) != (c["status"] in ("ok", "skipped")) or c["detail"] == "" or c["remedy"] == "":
            raise AssertionError(f"what is to be done: {c}")
    return done.returncode, rows


def named(what, rows, id, status, detail, remedy):
    c = rows[id]
    check(what, c["status"] == status and detail in c["detail"] and remedy in (c["remedy"] or ""), c)


# --- an instance that is well ---------------------------------------------------------------------------------------------

def runs():
    return [r["runId"] for r in get("/v1/runs?limit=100", token())[1]["runs"]]


def healthy():
    before = runs()
    status, rows = doctor(server=URL)
    check("a healthy instance has no error", status == 0, [c for c in rows.values() if c["status"] == "error"])
    walls = {i: c for i, c in rows.items() if i.startswith("wall.")}
    listed = subprocess.run([CLI, "doctor", "--list"], capture_output=True, text=True).stdout.splitlines()
    check("every check that is listed is there", sorted(x.split()[0] for x in listed) == sorted(rows), listed)
    check("a real box was looked at", rows["box.start"]["status"] == "ok" and rows["box.end"]["status"] == "ok", rows["box.start"])
    unseen = {i for i, c in walls.items() if c["status"] != "ok"}
    check("its walls are seen to stand", len(walls) >= 27 and unseen <= {
        "wall.oom-group", "wall.landlock", "wall.landlock-truncate", "wall.landlock-ioctl", "wall.landlock-scopes",
        "wall.core-scheduling", "wall.death-signal"}, {i: walls[i] for i in unseen})
    check("nothing of the run is left", runs() == before)
    mine = [json.loads(x) for x in operator("--json", "token", "list").splitlines()]
    mine = [t for t in mine if t["label"] == "pinfold doctor"]
    check("its token is revoked", mine and all(t["state"] == "revoked" for t in mine), mine)
    text = subprocess.run([CLI, "doctor", "--no-box"], env={**os.environ, "PINFOLD_ROOT": INSTANCE}, capture_output=True)
    said.append(text.stdout + text.stderr)
    check("as a table", text.returncode == 0 and b"0 errors" in text.stdout and b"\nok       config.files " in text.stdout, text)
    check("wrong use", subprocess.run([CLI, "doctor", "--what"], capture_output=True).returncode == 2)


# --- without a service: a root of its own ------------------------------------------------------------------------------------

BASE = 1699000000
UID = BASE + 1
R = None
ETC = LOG = STORE = BOX = CONF = ""


def make_root():
    global R, ETC, LOG, STORE, BOX, CONF
    R = tempfile.mkdtemp(prefix="pinfold-ill.")
    os.chmod(R, 0o755)
    ETC, LOG, STORE, BOX = R + "/etc/pinfold", R + "/var/log/pinfold", R + "/var/lib/pinfold/store", R + "/usr/libexec/pinfold/box"
    CONF = ETC + "/pinfold.conf"
    shutil.copytree(INSTANCE + "/usr/libexec/pinfold", R + "/usr/libexec/pinfold", symlinks=True)
    env = {**os.environ, "PINFOLD_ROOT": R, "ILL_KEY": "sk-key-of-the-ill-root"}
    subprocess.run([CLI, "setup", "--uid-base", str(BASE), "--provider-key-env", "ILL_KEY", "--model", "m"], env=env, check=True,
                   capture_output=True)
    for d, mode, uid in ((R + "/var/lib/pinfold", 0o711, 0), (STORE, 0o700, UID), (LOG, 0o700, UID)):
        os.makedirs(d, exist_ok=True)
        os.chmod(d, mode)
        os.chown(d, uid, uid)
    log = INSTANCE + "/var/log/pinfold/audit.log"
    with open(log, "rb") as f, open(LOG + "/audit.log", "wb") as to:
        to.writelines(f.readlines()[:4])
    os.chmod(LOG + "/audit.log", 0o600)
    os.chown(LOG + "/audit.log", UID, UID)


class Changed:
    """Keeps files and folders as they were: mode, owner, times, contents."""

    def __init__(self, *paths):
        self.paths = paths

    def __enter__(self):
        self.was = [(p, os.stat(p), open(p, "rb").read() if os.path.isfile(p) else None) for p in self.paths]

    def __exit__(self, *_):
        for p, st, text in self.was:
            if text is not None:
                with open(p, "wb") as f:
                    f.write(text)
            os.chown(p, st.st_uid, st.st_gid)
            os.chmod(p, st.st_mode & 0o7777)
            os.utime(p, ns=(st.st_atime_ns, st.st_mtime_ns))


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def edit(path, old, new):
    text = open(path).read()
    assert old in text, (path, old)
    write(path, text.replace(old, new))


def add(path, text):
    with open(path, "a") as f:
        f.write(text + "\n")


def offline():
    status, rows = doctor(R)
    wrong = [c for c in rows.values() if c["status"] == "error"]
    check("without a service only that is wrong", [c["id"] for c in wrong] == ["service.running"], wrong)
    named("no service runs", rows, "service.running", "error", "does not run", "systemctl start pinfold")
    check("the rest is skipped, with a word", all(rows[i]["status"] == "skipped" for i in (
        "service.processes", "web.server", "box.start", "tokens", "files.run")), rows)
    token_file, provider = ETC + "/secrets/run-token", ETC + "/providers.d/default.conf"
    profile, key = ETC + "/profiles.d/default.conf", ETC + "/secrets/provider-default"
    runner = BOX + "/pinfold-runner"
    vapid, push = ETC + "/secrets/vapid", 'push_contact = "mailto:ops@example.org"\n'
    # what is broken, what is put back, how, the id, its status, of its detail, of its remedy
    cases = [
        ("a secret that others can read", token_file, lambda p: os.chmod(p, 0o644), "secrets.modes", "error", "0644", "chmod 600"),
        ("a secret of another user", token_file, lambda p: os.chown(p, UID, 0), "secrets.modes", "error", "root's", "root owns"),
        ("a folder of secrets that is open", ETC + "/secrets", lambda p: os.chmod(p, 0o755), "secrets.folder", "error", "0755", "chmod 700"),
        ("a short secret", token_file, lambda p: write(p, "short"), "secrets.length", "error", "5 bytes, at least 32", "run pinfold setup"),
        ("a key of two lines", key, lambda p: write(p, "sk-a\nsk-b\n"), "secrets.length", "error", "not one line", "as one line"),
        ("a wrong owner of the store", STORE, lambda p: os.chown(p, 0, 0), "files.state", "error", "belongs to 0:0", f"chown -R {UID}"),
        ("a store that a group may write to", STORE, lambda p: os.chmod(p, 0o770), "files.state", "error", "0770", "chmod 0700"),
        ("a state folder that a group may write to", R + "/var/lib/pinfold", lambda p: os.chmod(p, 0o775), "files.state", "error", "0775", "chmod 0711"),
        ("a log folder that is open", LOG, lambda p: os.chmod(p, 0o755), "files.log", "error", "0755", "chmod 0700"),
        ("a log that cannot be written", LOG + "/audit.log", lambda p: os.chown(p, 0, 0), "log.writable", "error", "cannot write", f"chown {UID}"),
        ("a log that others can read", LOG + "/audit.log", lambda p: os.chmod(p, 0o644), "log.writable", "error", "0644", "chmod 600"),
        ("a broken chain", LOG + "/audit.log", lambda p: edit(p, '"seq":2', '"seq":3'), "audit.chain", "error", "audit.log:2", "audit verify"),
        ("a clock in the past", LOG + "/audit.log", lambda p: os.utime(p, (9e9, 9e9)), "clock.store", "error", "behind", "set the clock"),
        ("a profile of no provider", profile, lambda p: add(p, 'model_profile "x" { provider = "nobody" model = "m" }'),
         "config.files", "error", 'no provider "nobody"', "config check"),
        ("a line that is no setting", CONF, lambda p: add(p, "nonsense = 1"), "config.files", "error", "pinfold.conf:", "config check"),
        ("control bytes in a file", CONF, lambda p: add(p, "\x1b]0;x\x07\x1b[31m = 1"), "config.files", "error", "pinfold.conf:", "config check"),
        ("a number out of bounds", CONF, lambda p: add(p, "gateway_port = 80"), "config.files", "error", "gateway_port must be", "config check"),
        ("a user that is not there", CONF, lambda p: edit(p, f'"{BASE + 2}:{BASE + 2}"', '"no-such-user-here"'),
         "config.files", "error", "no user", "config check"),
        ("a provider over plain http", provider, lambda p: edit(p, "https://", "http://"), "config.providers", "error", "not https", "base_url"),
        ("a missing authority", provider, lambda p: edit(p, "\tsecret", '\tca_file = "/no/such/file"\n\tsecret'),
         "config.providers", "error", "/no/such/file", "ca_file"),
        ("configuration that others may write", CONF, lambda p: os.chmod(p, 0o666), "config.modes", "error", "0666", "chmod go-w"),
        ("configuration that its parser cannot read", profile, lambda p: os.chmod(p, 0o600), "config.modes", "error", "0600", "chmod o+r"),
        ("configuration of another user", CONF, lambda p: os.chown(p, UID, 0), "config.modes", "error", "not by root", "chown root"),
        ("two roles of one user", CONF, lambda p: edit(p, f'"{BASE + 2}:{BASE + 2}"', f'"{BASE + 3}:{BASE + 3}"'),
         "ids.roles", "error", "same user", "user of its own"),
        ("a role among the boxes", CONF, lambda p: edit(p, f'"{BASE + 2}:{BASE + 2}"', f'"{BASE + 101}:{BASE + 101}"'),
         "ids.roles", "error", "one of the boxes'", "user of its own"),
        ("an agent without program", profile, lambda p: edit(p, "/opt/pinfold/pinfold-agent", "/opt/pinfold/nothing"),
         "config.agents", "error", "box/nothing", "command"),
        ("pushes that go to a test", CONF, lambda p: add(p, push + "push_unsafe_loopback_port = 8443"), "push.sink", "warn", "127.0.0.1:8443",
         "remove push_unsafe_loopback_port"),
        ("nobody to push to", CONF, lambda p: add(p, push + "push_hosts = {}"), "push.sink", "warn", "push_hosts is empty", "name the push services"),
        ("a runner that others may change", runner, lambda p: os.chmod(p, 0o777), "files.programs", "error", "pinfold-runner", "install"),
        ("a runner that cannot be run", runner, lambda p: os.chmod(p, 0o644), "files.programs", "error", "pinfold-runner", "install"),
        ("a folder on the way that anybody may change", R + "/var", lambda p: os.chmod(p, 0o777), "files.ways", "error", "0777", "chmod go-w"),
    ]
    for what, path, breaks, id, status, detail, remedy in cases:
        with Changed(path):
            breaks(path)
            named(what, doctor(R)[1], id, status, detail, remedy)
    for what, path, id, status, remedy in (("a missing secret", token_file, "secrets.present", "error", "pinfold setup"),
                                           ("a missing key", key, "secrets.present", "warn", "0600"),
                                           ("a missing runner", runner, "files.programs", "error", "install")):
        os.rename(path, path + "-away")
        named(what, doctor(R)[1], id, status, os.path.basename(path), remedy)
        os.rename(path + "-away", path)
    check("push is off", rows["push.sink"]["status"] == "ok" and "off" in rows["push.sink"]["detail"], rows["push.sink"])
    with Changed(CONF, vapid):
        add(CONF, push)
        c = doctor(R)[1]["push.sink"]
        check("push is set up", c["status"] == "ok" and "43 bytes" in c["detail"] and "5 push services" in c["detail"], c)
        write(vapid, "short")
        named("no key for push", doctor(R)[1], "push.sink", "error", "5 bytes, not 43", "pinfold setup")
        os.unlink(vapid)
        rows = doctor(R)[1]
        named("a missing key for push", rows, "push.sink", "error", "no secret vapid", "pinfold setup")
        named("and which file it is", rows, "secrets.present", "warn", "vapid", "pinfold setup")
        write(vapid, "")


def stored():
    """A store that is whole, and then not: that of the instance, restored here, without its logs."""
    env = {**os.environ, "PINFOLD_ROOT": R}
    operator("store", "backup", R + "/backup")
    shutil.rmtree(STORE)
    subprocess.run([CLI, "store", "restore", R + "/backup"], env=env, check=True, capture_output=True)
    os.chmod(STORE, 0o700)
    os.chown(STORE, UID, UID)
    rows = doctor(R)[1]
    check("a store without its service is looked at", rows["store.records"]["status"] == "ok", rows["store.records"])
    check("and its folder is right", rows["files.state"]["status"] == "ok", rows["files.state"])
    for name in os.listdir(STORE):
        if name.startswith("log."):
            os.remove(f"{STORE}/{name}")
    named("a store without its logs", doctor(R)[1], "store.records", "error", "", "restore the last backup")


def mounted():
    """What only a file system or a file of the system can be, in a mount namespace that ends with the command."""
    fake = R + "/fake-etc"
    os.mkdir(fake)
    write(fake + "/passwd", f"root:x:0:0::/:/bin/sh\nstranger:x:{BASE + 105}:{BASE + 105}::/:/bin/sh\n")
    write(fake + "/group", f"root:x:0:\nwww-data:x:33:\nstrangers:x:{BASE + 106}:\n")
    write(fake + "/subuid", f"somebody:{BASE}:65536\n")
    owner = f"uid={UID},gid={UID},mode=700"
    rows = doctor(R, inside=f"mount --bind {fake} /etc")[1]
    named("a user among the boxes' ids", rows, "ids.range", "error", "the user stranger", "box_uid_base")
    named("a group among them", rows, "ids.range", "error", "the group strangers", "box_uid_base")
    named("subordinate ids among them", rows, "ids.range", "error", "somebody", "box_uid_base")
    rows = doctor(R, inside=f"mount -t tmpfs -o size=8m,{owner} x {STORE}; head -c 6000000 /dev/zero >{STORE}/fill")[1]
    named("a disk that is nearly full", rows, "disk.space", "error", "below the floor", "make room")
    named("a store that a reboot empties", rows, "store.filesystem", "warn", "tmpfs", "move")
    rows = doctor(R, inside=f"mount -t tmpfs -o size=8m,nr_inodes=20,{owner} x {STORE}")[1]
    named("a disk without inodes", rows, "disk.inodes", "error", "more files", "inodes")
    rows = doctor(R, inside=f"mount --bind {LOG} {LOG}; mount -o remount,ro,bind {LOG}")[1]
    named("a log on a read-only disk", rows, "log.writable", "error", "read-only", "chown")
    rows = doctor(R, inside="for m in $(awk '$3 == \"cgroup2\" { print $2 }' /proc/self/mounts); do umount -l $m; done")[1]
    named("no cgroup2 tree", rows, "kernel.cgroups", "error", "no cgroup2 tree", "mount -t cgroup2")


# --- with the service: for a moment each ---------------------------------------------------------------------------------------

def child(name):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/exe") == f"{INSTANCE}/usr/libexec/pinfold/{name}":
                return int(pid)
        except OSError:
            pass
    raise AssertionError("no " + name)


def moment(what, id, status, detail, remedy, words=("--no-box",)):
    named(what, doctor(words=words)[1], id, status, detail, remedy)


def online():
    run = INSTANCE + "/run/pinfold"
    pid = child("pinfold-gateway")
    os.kill(pid, signal.SIGSTOP)
    try:
        moment("a process that is stopped", "service.processes", "error", "pinfold-gateway", "kill")
    finally:
        os.kill(pid, signal.SIGCONT)
    for path, mode, id in ((run + "/public", 0o755, "files.run"), (run + "/admin", 0o711, "files.run"),
                           (run + "/public/fcgi.sock", 0o666, "files.sockets"), (run + "/store/store.sock", 0o600, "files.sockets")):
        was = os.stat(path).st_mode & 0o7777
        os.chmod(path, mode)
        try:
            moment(f"{os.path.relpath(path, run)} with mode {mode:o}", id, "error", f"{mode:04o}", f"chmod {was:04o}")
        finally:
            os.chmod(path, was)
    program = INSTANCE + "/usr/libexec/pinfold/pinfold-steward"
    os.link(program, program + ".was")
    shutil.copy2(program, program + ".new")
    os.rename(program + ".new", program)
    try:
        moment("a program that is older than the installed one", "service.version", "warn", "pinfold-steward", "restart")
    finally:
        os.rename(program + ".was", program)
    # What runs is a program without a name until it is started anew; later tests know the daemons by theirs.
    kill("pinfold-steward")
    check("the steward runs by its own name again", ready())
    conf = INSTANCE + "/etc/pinfold/pinfold.conf"
    with Changed(conf):
        os.utime(conf)
        moment("configuration that is not in use yet", "service.configuration", "warn", "pinfold.conf", "restart")
    moment("a provider that cannot be reached", "provider.reachable", "error", "keyless", "firewall", ("--no-box", "--online"))
    moment("a tenant without a token", "tokens", "warn", "crowd has no valid token", "token create")
    rows = doctor(server=URL, words=("--agent", "nobody"))[1]
    named("no profile for the box", rows, "box.start", "warn", "nobody", "pinfold setup")
    named("a profile whose key is missing", rows, "provider.ready", "warn", "keyless", "key")


# --- web servers ----------------------------------------------------------------------------------------------------------------

class Bent(http.server.BaseHTTPRequestHandler):
    """A proxy that does what a web server in front must not."""
    protocol_version = "HTTP/1.0"

    def serve(self):
        n = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(n) if n else None
        if self.command == "DELETE" or n > 500000:
            self.send_response(405 if not n else 413)
            self.end_headers()
            self.wfile.write(b"<html>no</html>")
            return
        at = urllib.parse.urlsplit(URL)
        c = http.client.HTTPConnection(at.hostname, at.port)
        c.request(self.command, urllib.parse.unquote(self.path), body, {k: v for k, v in self.headers.items() if k.lower() != "host"})
        a = c.getresponse()
        text = a.read()
        self.send_response(a.status)
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_DELETE = serve

    def log_message(self, *_):
        pass


def front(what, url, id, status, detail, remedy):
    named(what, doctor(server=url, words=("--no-box",))[1], id, status, detail, remedy)


def fronts():
    front("nobody at the address", "http://127.0.0.1:1", "web.server", "error", "", "web_group")
    with Front("apache", "--without", "CGIPassAuth") as f:
        front("Apache without CGIPassAuth", f.url, "web.authorization", "error", "drops the Authorization", "CGIPassAuth On")
    with Front("apache", "--keep") as f:
        front("Apache with enablereuse", f.url, "web.keep-alive", "warn", "keeps its connections", "enablereuse")
    with Front("nginx", "--without", "fastcgi_buffering") as f:
        front("nginx that buffers", f.url, "web.buffering", "error", "held until", "fastcgi_buffering off")
        # What streams say of themselves is enough for nginx.
        front("nginx that buffers, of events", f.url, "web.events", "ok", "ms between", "")
    with Front("lighttpd", "--without", "server.stream-response-body") as f:
        front("lighttpd that buffers", f.url, "web.buffering", "error", "held until", "stream-response-body")
        front("lighttpd that buffers, of events", f.url, "web.events", "error", "held until", "web.buffering")
    with Front("lighttpd", "--without", "server.document-root") as f:
        front("a page that is not served", f.url, "web.page", "warn", "not served", "example")
    for name in ("apache", "nginx", "lighttpd"):
        with Front(name) as f:
            status, rows = doctor(server=f.url, words=("--no-box",))
            wrong = [c for c in rows.values() if c["id"].startswith("web.") and c["status"] not in ("ok", "skipped")]
            check(f"nothing is wrong with {name} by its example", status == 0 and not wrong, wrong)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bent) as s:
        threading.Thread(target=s.serve_forever, daemon=True).start()
        rows = doctor(server=f"http://127.0.0.1:{s.server_port}", words=("--no-box",))[1]
        named("a target that is decoded", rows, "web.target", "error", "arrives as /v1/front", "REQUEST_URI")
        named("no DELETE", rows, "web.methods", "error", "405", "DELETE")
        named("bodies that are cut off", rows, "web.body", "error", "768000", "client_max_body_size")
        named("a page without its policy", rows, "web.page", "warn", "without its Content-Security-Policy", "headers")
        named("answers that are held", rows, "web.buffering", "error", "held until", "flushpackets")
        s.shutdown()
    rows = doctor(server="http://pinfold.invalid", words=("--no-box",))[1]
    named("tokens over plain http", rows, "web.tls", "warn", "plain http", "https")


def secrets():
    held = [open(f"{r}/etc/pinfold/secrets/{n}", "rb").read().strip() for r in (INSTANCE, R)
            for n in ("run-token", "provider-default")] + [token().encode(), token("device-token").encode(), b"sk-a", b"pfa_"]
    text = b"".join(said)
    check("no secret was ever printed", len(text) > 10000 and not any(s in text for s in held))
    check("nor a byte that moves a cursor", not [b for b in set(text) if b < 0x20 and b != 0x0a or b >= 0x7f])


make_root()
try:
    for f in (healthy, offline, stored, mounted, online, fronts, secrets):
        case(f.__name__, f)
finally:
    shutil.rmtree(R, ignore_errors=True)
done()
