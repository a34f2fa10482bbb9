#!/usr/bin/python3
"""Prepared misconfigurations, a row each: how it is made, and which check of pinfold doctor says so, with what in its detail
and what in its remedy. What needs no service is broken in a root of its own, what needs one for a moment in the instance, and web
servers are others in front of it. Every check that can be made to fail here has a row, so that one that is taken out is noticed;
and every remedy is a command, or a file and the line or directive in it."""
import contextlib, http.client, http.server, re, signal, socket, threading, urllib.parse
from doctoring import *
from front import Front
from processes import kill, pid_of, ready

RUN = INSTANCE + "/run/pinfold"
PUSH = 'push_contact = "mailto:ops@example.org"\n'

# --- without a service: of the root r. A path is put back afterwards, however it was changed --------------------------------------
# what is wrong | path that is changed | how | check, its status, of its detail, of its remedy
FILES = (
    # secrets
    ("a secret that others can read", "{secrets}/run-token", lambda p, r: os.chmod(p, 0o644), "secrets.modes", "error", "0644", "chmod 600"),
    ("a secret of another user", "{secrets}/run-token", lambda p, r: os.chown(p, r.UID, 0), "secrets.modes", "error", "root's", "root owns"),
    ("an open folder of secrets", "{secrets}", lambda p, r: os.chmod(p, 0o755), "secrets.folder", "error", "0755", "chmod 700"),
    ("a missing secret", "{secrets}/run-token", lambda p, r: os.unlink(p), "secrets.present", "error", "run-token is missing", "pinfold setup"),
    ("a missing key", "{secrets}/provider-default", lambda p, r: os.unlink(p), "secrets.present", "warn", "provider-default", "(0600)"),
    ("a short secret", "{secrets}/run-token", lambda p, r: write(p, "short"), "secrets.length", "error", "5 bytes, at least 32", "pinfold setup"),
    ("a key of two lines", "{secrets}/provider-default", lambda p, r: write(p, "sk-a\nsk-b\n"), "secrets.length", "error", "not one line", "as one line"),
    ("a rotation that nobody finished", "{secrets}", lambda p, r: waits(p + "/run-token.next", 3), "secrets.next", "warn", "beside run-token for 3 days",
     "pinfold secret promote run-token"),
    ("a NEXT secret that others can read", "{secrets}", lambda p, r: os.chmod(waits(p + "/run-token.next", 0), 0o644), "secrets.modes", "error", "run-token.next",
     "chmod 600"),
    # providers
    ("a provider over plain http", "{provider}", lambda p, r: edit(p, "https://", "http://"), "config.providers", "error", "not https",
     "default.conf:{line base_url}"),
    ("an address with a user", "{provider}", lambda p, r: edit(p, "https://", "https://me:pw@"), "config.providers", "error", "user name", "default.conf:"),
    ("an address with a query", "{provider}", lambda p, r: edit(p, '/v1"', '/v1?key=x"'), "config.providers", "error", "a query", "default.conf:"),
    ("an address with //", "{provider}", lambda p, r: edit(p, "/v1", "//v1"), "config.providers", "error", "not plain", "default.conf:"),
    ("a missing authority", "{provider}", lambda p, r: edit(p, "\tsecret", '\tca_file = "/no/such/file"\n\tsecret'),
     "config.providers", "error", "/no/such/file", "ca_file in"),
    ("an authority that is no PEM", "{provider}", lambda p, r: edit(p, "\tsecret", f'\tca_file = "{r.conf}"\n\tsecret'),
     "config.providers", "error", "no certificate in PEM", "openssl x509"),
    ("an authority that the gateway cannot read", "{provider}", lambda p, r: edit(p, "\tsecret", f'\tca_file = "{closed_pem(r)}"\n\tsecret'),
     "config.providers", "error", "cannot be read by the gateway", "chmod o+r"),
    ("canned answers", "{provider}", lambda p, r: edit(p, "\tsecret", "\tscripted = yes\n\tsecret"), "config.providers", "warn", "no AI", "default.conf:"),
    # what refers to nothing
    ("a profile of no provider", "{profile}", lambda p, r: add(p, 'model_profile "x" { provider = "nobody" model = "m" }'),
     "config.files", "error", 'default.conf:{line model_profile "x"}: model_profile x: there is no provider "nobody"', "config check"),
    ("no default profile", "{profile}", lambda p, r: edit(p, 'model_profile "default"', 'model_profile "first"'),
     "config.files", "error", 'tenant attack: there is no model_profile "default"', "config check"),
    ("a tenant's agent that is not there", "{tenant}", lambda p, r: add(p, 'tenant "x" {\n\tagent = "nobody"\n}'),
     "config.files", "error", 'default.conf:{line nobody}: tenant x: there is no agent "nobody"', "config check"),
    ("an agent without program", "{profile}", lambda p, r: edit(p, "/opt/pinfold/pinfold-agent", "/opt/pinfold/nothing"),
     "config.agents", "error", "box/nothing", "profiles.d/default.conf:{line pinfold/nothing}"),
    ("an agent behind a bridge without program", "{profile}",
     lambda p, r: edit(p, '"/opt/pinfold/pinfold-agent"', '"/opt/pinfold/pinfold-bridge", "codex", "--", "/usr/no/such-agent"'),
     "config.agents", "error", "/usr/no/such-agent", "profiles.d/default.conf:{line such-agent}"),
    ("signs of life that come too late", "{conf}", lambda p, r: add(p, "model_heartbeat_seconds = 60"), "config.files", "warn", "is not less than model_idle_seconds",
     "pinfold.conf:{line model_heartbeat_seconds}"),
    ("no configuration", "{conf}", lambda p, r: os.unlink(p), "config.files", "error", "pinfold.conf", "pinfold setup"),
    # what cannot be read
    ("a line that is no setting", "{conf}", lambda p, r: add(p, "nonsense = 1"), "config.files", "error", "pinfold.conf:{line nonsense}", "config check"),
    ("control bytes in a file", "{conf}", lambda p, r: add(p, "\x1b]0;x\x07\x1b[31m = 1"), "config.files", "error", "pinfold.conf:", "config check"),
    ("a number out of bounds", "{conf}", lambda p, r: add(p, "gateway_port = 80"), "config.files", "error", "gateway_port must be", "config check"),
    ("a user that is not there", "{conf}", lambda p, r: edit(p, f'"{r.BASE + 2}:{r.BASE + 2}"', '"no-such-user-here"'),
     "config.files", "error", "no user", "config check"),
    ("configuration that others may write", "{conf}", lambda p, r: os.chmod(p, 0o666), "config.modes", "error", "0666", "chmod go-w"),
    ("configuration that its parser cannot read", "{profile}", lambda p, r: os.chmod(p, 0o600), "config.modes", "error", "0600", "chmod o+r"),
    ("configuration of another user", "{conf}", lambda p, r: os.chown(p, r.UID, 0), "config.modes", "error", "not by root", "chown root"),
    # users
    ("two roles of one user", "{conf}", lambda p, r: edit(p, f'"{r.BASE + 2}:{r.BASE + 2}"', f'"{r.BASE + 3}:{r.BASE + 3}"'),
     "ids.roles", "error", "same user", "pinfold.conf:{line users}"),
    ("a role among the boxes", "{conf}", lambda p, r: edit(p, f'"{r.BASE + 2}:{r.BASE + 2}"', f'"{r.BASE + 101}:{r.BASE + 101}"'),
     "ids.roles", "error", "one of the boxes'", "user of its own"),
    ("a web_group that no web server is in", "{conf}", lambda p, r: edit(p, 'web_group = "www-data"', 'web_group = "games"'),
     "web.group", "warn", "(games), and no web server", "usermod -a -G games www-data"),
    # folders
    ("a wrong owner of the store", "{store}", lambda p, r: os.chown(p, 0, 0), "files.state", "error", "belongs to 0:0", "chown -R {uid}"),
    ("a store that a group may write to", "{store}", lambda p, r: os.chmod(p, 0o770), "files.state", "error", "0770", "chmod 0700"),
    ("a log folder that is open", "{log}", lambda p, r: os.chmod(p, 0o755), "files.log", "error", "0755", "chmod 0700"),
    ("a log that cannot be written", "{audit}", lambda p, r: os.chown(p, 0, 0), "log.writable", "error", "cannot write", "chown {uid}"),
    ("a log that others can read", "{audit}", lambda p, r: os.chmod(p, 0o644), "log.writable", "error", "0644", "chmod 600"),
    ("a broken chain", "{audit}", lambda p, r: edit(p, '"seq":2', '"seq":3'), "audit.chain", "error", "audit.log:2", "audit verify"),
    ("a clock in the past", "{audit}", lambda p, r: os.utime(p, (9e9, 9e9)), "clock.store", "error", "behind", "timedatectl set-ntp"),
    ("a runner that others may change", "{box}/pinfold-runner", lambda p, r: os.chmod(p, 0o777), "files.programs", "error", "pinfold-runner", "install"),
    ("a runner that cannot be run", "{box}/pinfold-runner", lambda p, r: os.chmod(p, 0o644), "files.programs", "error", "pinfold-runner", "install"),
    ("a missing runner", "{box}/pinfold-runner", lambda p, r: os.unlink(p), "files.programs", "error", "pinfold-runner", "install"),
    ("a folder on the way that anybody may change", "{root}/var", lambda p, r: os.chmod(p, 0o777), "files.ways", "error", "0777", "chmod go-w"),
    # push
    ("pushes that go to a test", "{conf}", lambda p, r: add(p, PUSH + "push_unsafe_loopback_port = 8443"), "push.sink", "warn", "127.0.0.1:8443",
     "pinfold.conf:{line push_unsafe_loopback_port}"),
    ("nobody to push to", "{conf}", lambda p, r: add(p, PUSH + "push_hosts = {}"), "push.sink", "warn", "push_hosts is empty",
     "pinfold.conf:{line push_hosts}"),
)
# The same two with push set up by pinfold.conf.
VAPID = (
    ("push without its secret", lambda p: os.unlink(p), "push.sink", "error", "no secret vapid", "pinfold setup"),
    ("and which file it is", lambda p: os.unlink(p), "secrets.present", "warn", "vapid", "pinfold setup"),
    ("push with a short secret", lambda p: write(p, "short"), "push.sink", "error", "5 bytes, not 43", "pinfold setup"),
)
# What only a file system, the kernel or the whole machine can be: in a mount namespace that ends with the command.
OWNER = "uid={uid},gid={uid},mode=700"
FAKE = "printf '{text}' >{root}/fake; mount --bind {root}/fake "
MOUNTED = (
    ("a user among the boxes' ids", FAKE.replace("{text}", "stranger:x:{in_range}:{in_range}::/:/bin/sh\\n") + "/etc/passwd",
     "ids.range", "error", "the user stranger", "box_uid_base"),
    ("a group among them", FAKE.replace("{text}", "www-data:x:33:\\nstrangers:x:{in_range}:\\n") + "/etc/group",
     "ids.range", "error", "the group strangers", "pinfold.conf:"),
    ("subordinate ids among them", "touch /etc/subuid; " + FAKE.replace("{text}", "somebody:{base}:65536\\n") + "/etc/subuid",
     "ids.range", "error", "somebody", "box_uid_base"),
    ("a disk that is nearly full", f"mount -t tmpfs -o size=8m,{OWNER} x {{store}}; head -c 6000000 /dev/zero >{{store}}/fill",
     "disk.space", "error", "below the floor", "pinfold store prune"),
    ("a store that a reboot empties", f"mount -t tmpfs -o size=8m,{OWNER} x {{store}}", "store.filesystem", "warn", "tmpfs", "/etc/fstab"),
    ("a disk without inodes", f"mount -t tmpfs -o size=8m,nr_inodes=20,{OWNER} x {{store}}", "disk.inodes", "error", "more files", "df -i"),
    ("a log on a read-only disk", "mount --bind {log} {log}; mount -o remount,ro,bind {log}", "log.writable", "error", "read-only", "chown"),
    ("no cgroup2 tree", "for m in $(awk '$3 == \"cgroup2\" {{ print $2 }}' /proc/self/mounts); do umount -l $m; done",
     "kernel.cgroups", "error", "no cgroup2 tree", "mount -t cgroup2"),
    ("a controller that is missing", "for m in $(awk '$3 == \"cgroup\" && $4 ~ /(^|,)memory(,|$)/ {{ print $2 }}' /proc/self/mounts); do umount -l $m; done; "
     "c=$(awk '$3 == \"cgroup2\" {{ print $2; exit }}' /proc/self/mounts)/cgroup.controllers; sed 's/memory//' $c >{root}/fake; mount --bind {root}/fake $c",
     "kernel.cgroups", "error", "the controller memory is missing", "cgroup_enable=memory"),
    ("no user namespaces", FAKE.replace("{text}", "0\\n") + "/proc/sys/user/max_user_namespaces", "kernel.namespaces", "error",
     "max_user_namespaces is 0", "sysctl user.max_user_namespaces=10000"),
    ("seccomp that cannot refuse", FAKE.replace("{text}", "kill_process allow\\n") + "/proc/sys/kernel/seccomp/actions_avail",
     "kernel.seccomp", "error", "errno", "CONFIG_SECCOMP_FILTER"),
    ("an old kernel", "set -- setarch --uname-2.6 \"$@\"", "kernel.version", "error", "Linux 2.6", "linux-image-amd64"),
    ("too few open files", "ulimit -n 600", "host.open-files", "error", "600", "LimitNOFILE=65536"),
)
# In the instance, whose configuration of tenants is another one in this mount namespace.
TENANTS = (
    ("a tenant without a token", "new", "tokens", "warn", "tenant nobodys has no valid token", "pinfold token create --tenant nobodys"),
    ("nobody has a device", "new", "devices", "warn", "no tenant has a paired device", "device pair --tenant nobodys"),
    ("no tenant", "none", "config.files", "error", "at least one", "config check"),
)
# Web servers in front of the instance: their example with something else.
FRONTS = (
    ("Apache without CGIPassAuth", ("apache", "--without", "CGIPassAuth"), "web.authorization", "error", "drops the Authorization", "CGIPassAuth On"),
    ("Apache with enablereuse", ("apache", "--keep"), "web.keep-alive", "warn", "keeps its connections", "enablereuse"),
    ("nginx that buffers", ("nginx", "--without", "fastcgi_buffering"), "web.buffering", "error", "held until", "fastcgi_buffering off"),
    ("lighttpd that buffers", ("lighttpd", "--without", "server.stream-response-body"), "web.buffering", "error", "held until", "stream-response-body"),
    ("lighttpd that buffers events", ("lighttpd", "--without", "server.stream-response-body"), "web.events", "error", "held until", "web.buffering"),
    ("a page that is not served", ("lighttpd", "--without", "server.document-root"), "web.page", "warn", "not served", "/etc/pinfold/web-servers"),
    ("a host of a tenant that there is not", ("nginx", "--tenant", "nobody-here"), "web.tenant", "error", "names no tenant", "PINFOLD_TENANT"),
)
# What a proxy does that decodes, cuts off, holds and is not ready: Bent.
BENT = (
    ("a target that is decoded", "web.target", "error", "arrives as /v1/front", "REQUEST_URI"),
    ("no DELETE", "web.methods", "error", "405", "LimitExcept"),
    ("bodies that are cut off", "web.body", "error", "768000", "client_max_body_size"),
    ("a page without its policy", "web.page", "warn", "without its Content-Security-Policy", "headers"),
    ("answers that are held", "web.buffering", "error", "held until", "flushpackets"),
    ("a service that is not ready", "web.ready", "error", "the gateway is away", "journalctl"),
)
# Checks without a row: what would have to be broken, and who breaks it.
ELSEWHERE = {
    "service.confined": "another build of the programs", "kernel.landlock": "another kernel", "clock.sync": "the machine's clock",
    "disk.ballast": "a disk that was full: tests/store/t_store_full.c", "store.checkpoint": "gigabytes of logs",
    "keys.literal": "t_keys.py", "keys.mode": "t_keys.py", "keys.proven": "t_keys.py", "keys.agent": "t_keys.py",
    "store.records": "t_doctor.py", "box.attack": "tests/check/walls.py", "box.end": "tests/check/walls.py", "box.walls": "tests/check/walls.py",
}
seen = set()


def row(what, rows, id, status, detail, remedy, ill=None, path=None):
    seen.add(id)

    def filled(text):
        text = re.sub(r"\{line ([^}]*)\}", lambda m: str(1 + next(i for i, l in enumerate(now) if m[1] in l and l.lstrip()[:1] != "#")) if (now := lines(path)) else "?", text)
        return text.replace("{uid}", str(ill.UID)) if ill else text
    named(what, rows, id, status, filled(detail), filled(remedy))


def lines(path):
    return open(path).read().split("\n")


def waits(path, days):
    """What is made here is gone before the next row: see without_a_service()."""
    write(path, "n" * 48)
    os.chmod(path, 0o600)
    os.utime(path, (time.time() - days * 86400, time.time() - days * 86400))
    return path


def closed_pem(r):
    path = r.root + "/authority.pem"
    write(path, "of our own\n-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----\n")
    os.chmod(path, 0o600)
    return path


def without_a_service():
    rows = doctor(R.root)[1]
    wrong = [c["id"] for c in rows.values() if c["status"] == "error"]
    check("a root in which only the service is missing", wrong == ["service.running"], wrong)
    row("no service runs", rows, "service.running", "error", "does not run", "systemctl start pinfold")
    os.makedirs(R.root + "/run/pinfold/public")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(R.root + "/run/pinfold/public/fcgi.sock")
    row("and what it left is no service", doctor(R.root)[1], "service.running", "error", "a socket is left", "systemctl start pinfold")
    shutil.rmtree(R.root + "/run")
    for what, path, breaks, *want in FILES:
        path = path.format(**vars(R))
        with Changed(path):
            breaks(path, R)
            row(what, doctor(R.root)[1], *want, ill=R, path=path)
        for left in [n for n in os.listdir(R.secrets) if n.endswith(".next")]:
            os.unlink(f"{R.secrets}/{left}")
    with Changed(R.conf):
        add(R.conf, PUSH)
        for what, breaks, *want in VAPID:
            with Changed(R.secrets + "/vapid"):
                breaks(R.secrets + "/vapid")
                row(what, doctor(R.root)[1], *want)
    rows = doctor(R.root)[1]
    check("all is as it was", [c["id"] for c in rows.values() if c["status"] == "error"] == ["service.running"], rows)


def mounted():
    for what, how, *want in MOUNTED:
        how = how.format(**vars(R), uid=R.UID, base=R.BASE, in_range=R.BASE + 105)
        row(what, doctor(R.root, inside=how)[1], *want, ill=R)


def with_the_service():
    pid = pid_of("pinfold-gateway")
    os.kill(pid, signal.SIGSTOP)
    try:
        row("a process that is stopped", moment(), "service.processes", "error", "pinfold-gateway", "kill")
    finally:
        os.kill(pid, signal.SIGCONT)
    for path, mode, id in ((RUN + "/public", 0o755, "files.run"), (RUN + "/admin", 0o711, "files.run"),
                           (RUN + "/public/fcgi.sock", 0o666, "files.sockets"), (RUN + "/store/store.sock", 0o600, "files.sockets")):
        with Changed(path):
            was = os.stat(path).st_mode & 0o7777
            os.chmod(path, mode)
            row(f"{os.path.relpath(path, RUN)} with mode {mode:o}", moment(), id, "error", f"{mode:04o}", f"chmod {was:04o}")
    program = INSTANCE + "/usr/libexec/pinfold/pinfold-steward"
    os.link(program, program + ".was")
    shutil.copy2(program, program + ".new")
    os.rename(program + ".new", program)
    try:
        row("an upgrade without a restart", moment(), "service.version", "warn", "pinfold-steward", "systemctl restart")
    finally:
        os.rename(program + ".was", program)
    # What runs is a program without a name until it is started anew; later tests know the daemons by theirs.
    kill("pinfold-steward")
    check("the steward runs by its own name again", ready())
    conf = INSTANCE + "/etc/pinfold/pinfold.conf"
    with Changed(conf):
        os.utime(conf)
        named("a file that says the same again", moment(), "service.configuration", "ok", "", "")
        add(conf, "queue_seconds = 3599")
        row("configuration that is not in use yet", moment(), "service.configuration", "warn", "not what is in force", "systemctl reload")
    row("a provider that cannot be reached", moment("--online"), "provider.reachable", "error", "keyless", "firewall")
    rows = doctor(server=URL, words=("--agent", "nobody"))[1]
    row("no profile for the box", rows, "box.start", "warn", "nobody", "pinfold setup")
    row("a profile whose key is missing", rows, "provider.ready", "warn", "keyless", "key")
    # Nobody else reads these files while it goes on.
    for kind in ("new", "none"):
        fake = f"{R.root}/{kind}"
        shutil.copytree(INSTANCE + "/etc/pinfold", fake)
        for at, _, names in os.walk(fake):
            for path in (f"{at}/{n}" for n in names if n.endswith(".conf") and "web-servers" not in at):
                if at.endswith("tenants.d"):
                    os.unlink(path)
                elif re.search('^tenant "', open(path).read(), re.M):
                    # A tenant's section ends at the first brace that stands at the left.
                    write(path, re.sub(r'^tenant "[^"]*" \{.*?^\}$', "", open(path).read(), flags=re.M | re.S))
        if kind == "new":
            add(fake + "/pinfold.conf", 'tenant "nobodys" { model_profile = "default" agent = "script" }')
        rows = doctor(words=("--no-box",), inside=f"mount --bind {fake} {INSTANCE}/etc/pinfold")[1]
        for what, which, *want in TENANTS:
            if which == kind:
                row(what, rows, *want)


def moment(*words):
    return doctor(words=("--no-box", *words))[1]


class Bent(http.server.BaseHTTPRequestHandler):
    """A proxy that does what a web server in front must not."""
    protocol_version = "HTTP/1.0"

    def serve(self):
        n = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(n) if n else None
        if self.path == "/readyz":
            self.send_response(503)
            self.end_headers()
            self.wfile.write(b'{"ok":false,"reasons":["the gateway is away"]}')
            return
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


def at(url):
    return doctor(server=url, words=("--no-box",))[1]


def fronts():
    row("nobody at the address", at("http://127.0.0.1:1"), "web.server", "error", "", "/etc/pinfold/web-servers")
    row("another address", at(URL + "/none"), "web.server", "error", "is not Pinfold", "correct the address")
    row("tokens over plain http", at("http://pinfold.invalid"), "web.tls", "warn", "plain http", "https")
    rows_of = {}
    for what, front, *want in FRONTS:
        if front not in rows_of:
            with Front(*front) as f:
                rows_of[front] = at(f.url)
        row(what, rows_of[front], *want)
    # What streams say of themselves is enough for nginx.
    named("nginx that buffers, of events", rows_of[FRONTS[2][1]], "web.events", "ok", "ms between", "")
    with Front("nginx", "--tenant", "other") as f:
        rows = at(f.url)
        named("a host of one tenant", rows, "web.tenant", "ok", "the tenant other's alone", "")
        named("whose other checks go on with its token", rows, "web.body", "ok", "", "")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Bent) as s:
        threading.Thread(target=s.serve_forever, daemon=True).start()
        rows = at(f"http://127.0.0.1:{s.server_port}")
        for what, *want in BENT:
            row(what, rows, *want)
        s.shutdown()


# A command, or a file and what in it, or a web server's directive.
REMEDY = re.compile(r"\b(chmod|chown|mv|rm|kill|usermod|mount|systemctl|journalctl|timedatectl|sysctl|apt-get|make install|openssl|df|du|curl"
                    r"|pinfold (--server URL )?(setup|config|store|token|device|audit|attack|rm|secret|tenant|provider)\b)"
                    r"|(/etc/|\.d/|docs/|-> |[a-z]+\.conf|\"users\" in )|(Apache|nginx|lighttpd): |fastcgi_param|web\.buffering")


def complete():
    listed = [json.loads(x) for x in subprocess.run([CLI, "doctor", "--list", "--json"], capture_output=True, text=True, check=True).stdout.splitlines()]
    checks = {c["id"] for c in listed if not c["id"].startswith("wall.")}
    missing = checks - seen - set(ELSEWHERE)
    check("every check has a row, or a word about why not", not missing and len(seen) > 30, missing)
    check("and no row is about what there is no more", not (seen | set(ELSEWHERE)) - checks, (seen | set(ELSEWHERE)) - checks)
    vague = [c for c in listed if not REMEDY.search(c["remedy"])]
    check("every remedy is a command, or a file", len(listed) > 80 and not vague, vague)
    met = [c["remedy"] for text in said for c in json.loads(text)["checks"] if c["remedy"]]
    vague = {r for r in met if not REMEDY.search(r)}
    check("also those that were found on the way", len(met) > 100 and not vague, vague)


with Ill() as R:
    for f in (without_a_service, mounted, with_the_service, fronts, complete):
        case(f.__name__, f)
    case("secrets", lambda: no_secret_was_said(R.root))
done()
