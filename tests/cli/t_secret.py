#!/usr/bin/python3 -B
"""pinfold secret and config reload where somebody lies, is busy, or does the same at once: whoever else answers at the admin
socket has root signal nobody, and no value is lost or another's."""
import fcntl, os, pty, shutil, signal, subprocess, sys, tempfile, termios

TOP = os.environ.get("srcdir", ".")
sys.path[:0] = [TOP + "/tests", TOP + "/tests/fcgi"]
from fakestore import Fail, Store
from patience import wait_for
from wire import fields, filled

if os.geteuid() != 0:
    print("skipped: secrets are root's")
    sys.exit(77)
CLI = os.path.abspath(os.environ.get("PINFOLD_CLI_UNDER_TEST", "cli/pinfold"))
ROOT = tempfile.mkdtemp(prefix="pinfold-secret.")
ENV = {**os.environ, "PINFOLD_ROOT": ROOT, "CONFIG_KEY": "sk-key-of-the-test"}
good = bad = 0


def check(what, right, *more):
    global good, bad
    good, bad = good + bool(right), bad + (not right)
    if not right:
        print("FAIL", what, *more, flush=True)


def cli(*words, given=""):
    return subprocess.run([CLI, *words], env=ENV, input=given, capture_output=True, text=True)


def there(name):
    return os.path.exists(SECRETS + "/" + name)


class Liar(Store):
    """Says that another process is sandboxd; fails: answers nothing else."""
    sandboxd = fails = 0

    def answer(self, number, r, fds):
        if self.fails:
            raise Fail(self.fails)
        if number == 163:
            return 164, filled(fields("store.msg", "RELOAD_IS")[1], dict(sandboxd=self.sandboxd, number=1, applied=1, digest=b"d" * 32)), []
        if number == 85:
            return 86, filled(fields("store.msg", "STATS_ARE")[1], dict(open_runs=1, oldest_open=4000000000000)), []
        return super().answer(number, r, fds)


victim = subprocess.Popen(["sleep", "600"])
try:
    cli("setup", "--uid-base", "1700000000", "--provider-key-env", "CONFIG_KEY")
    ETC = next(d for d, _, files in os.walk(ROOT) if "pinfold.conf" in files)
    SECRETS = ETC + "/secrets"
    r = cli("config", "reload")
    check("nobody there", r.returncode == 1 and "admin.sock" in r.stderr, r)
    PLACE = r.stderr.split(" answer at ", 1)[1].split("/admin.sock", 1)[0]
    os.makedirs(PLACE, exist_ok=True)

    # --- without a service
    r = cli("secret", "rotate", "provider-default", given="second-key\n")
    check("without a service a key is for its start", r.returncode == 0 and "does not run" in r.stdout, r)
    check("and promoted", cli("secret", "promote", "provider-default").returncode == 0 and open(SECRETS + "/provider-default").read() == "second-key")
    check("and dropped", cli("secret", "drop", "provider-default").returncode == 0 and not there("provider-default.next"))
    with open(ETC + "/providers.d/more.conf", "w") as f:
        f.write("".join('provider "%s" { base_url = "https://x.example/v1"\n secret = "%s" }\n' % w for w in (("p", "provider-default.next"), ("q", ""))))
    with open(SECRETS + "/provider-default.next", "w") as f:
        f.write("of another provider")
    for verb in ("rotate", "promote", "drop"):
        r = cli("secret", verb, "provider-default", given="third-key\n")
        check(f"{verb}: what another provider uses is no next value", r.returncode == 1 and "names as its own" in r.stderr and
              open(SECRETS + "/provider-default.next").read() == "of another provider" and open(SECRETS + "/provider-default").read() == "second-key", r)
    with open(ETC + "/profiles.d/keyed.conf", "w") as f:
        f.write("".join('agent "%s" {\n command = {"/bin/true"}\n token_delivery = "wire"\n credential_mode = "env"\n credential_secret = {"K=%s"}\n}\n' % w
                        for w in (("a1", "of-agent"), ("a2", "other"), ("a3", "other.next"))))
    for name in ("of-agent", "other", "other.next"):
        with open(os.open(SECRETS + "/" + name, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write("key-" + name)
    r = cli("secret", "rotate", "of-agent", given="another-key\n")
    check("an agent's key is rotated", r.returncode == 0 and cli("secret", "promote", "of-agent").returncode == 0 and
          open(SECRETS + "/of-agent").read() == "another-key" and cli("secret", "drop", "of-agent").returncode == 0, r)
    r = cli("secret", "drop", "other")
    check("and what another agent has is no next value", r.returncode == 1 and there("other.next") and "names as its own" in r.stderr, r)
    os.unlink(ETC + "/profiles.d/keyed.conf")
    r = cli("secret", "rotate", "", given="x\n")
    check("no name is no secret", r.returncode == 1 and not there(".next"), r)
    os.unlink(ETC + "/providers.d/more.conf")
    for name in ("provider-default.next", ".next"):
        if there(name):
            os.unlink(SECRETS + "/" + name)
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        ours, terminal = pty.openpty()
        echo = lambda: bool(termios.tcgetattr(terminal)[3] & termios.ECHO)
        typing = subprocess.Popen([CLI, "secret", "rotate", "provider-default"], env=ENV, stdin=terminal, stderr=subprocess.PIPE, text=True)
        check("what is typed is not shown", wait_for(lambda: not echo()))
        typing.send_signal(sig)
        typing.communicate()
        check(f"{sig.name} while typing leaves a terminal that shows again", echo() and typing.returncode == -sig and not there("provider-default.next"))
        os.close(ours)
        os.close(terminal)
    before = sorted(os.listdir(SECRETS))
    held = os.open(SECRETS, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    r = cli("secret", "rotate", "provider-default", given="third-key\n")
    check("two at once", r.returncode == 1 and "at work" in r.stderr and sorted(os.listdir(SECRETS)) == before, r)
    os.close(held)

    # --- the socket is somebody's who names another process
    liar = Liar(PLACE + "/admin.sock")
    liar.sandboxd = victim.pid
    r = cli("config", "reload")
    check("nobody else gets the signal", r.returncode == 1 and "cannot be told" in r.stderr and victim.poll() is None, r, victim.poll())
    # --- it is there, and cannot answer
    liar.fails = 43
    r = cli("secret", "rotate", "run-token")
    check("one that is busy is not taken for none", r.returncode == 1 and "does not run" not in r.stdout and there("run-token.next"), r)
    r = cli("secret", "promote", "run-token")
    check("promoted, and perhaps not in force", r.returncode == 1, r)
    r = cli("secret", "drop", "run-token")
    check("runs that cannot be asked for are there", r.returncode == 1 and "--force" in r.stderr and there("run-token.next"), r)
    # --- a run that began later than the files were exchanged, and when they came into force nobody knows
    liar.fails = 0
    r = cli("secret", "drop", "run-token")
    check("nor after a promotion that was refused", r.returncode == 1 and "--force" in r.stderr and there("run-token.next"), r)
    cli("secret", "drop", "--force", "run-token")
    check("dropped by force", not there("run-token.next"))
    check("the victim lives", victim.poll() is None)
finally:
    victim.kill()
    victim.wait()
    shutil.rmtree(ROOT)
print(f"{good} passed, {bad} failed")
sys.exit(bad > 0)
