"""What the tests of pinfold doctor share: calls of it, a root of its own that is ill without a service, and what is put back."""
import shutil, subprocess, tempfile
from client import *

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
    c = rows.get(id)
    check(what, c is not None and c["status"] == status and detail in c["detail"] and remedy in (c["remedy"] or ""), c)


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


class Changed:
    """Keeps files and folders as they were: mode, owner, times, contents; and makes those that are gone again."""

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


class Ill:
    """A root with configuration, secrets, programs, a log and an empty folder for a store, and no service."""
    BASE = 1699000000
    UID = BASE + 1

    def __enter__(self):
        r = self.root = tempfile.mkdtemp(prefix="pinfold-ill.")
        os.chmod(r, 0o755)
        self.etc, self.log, self.store = r + "/etc/pinfold", r + "/var/log/pinfold", r + "/var/lib/pinfold/store"
        self.box, self.conf, self.secrets = r + "/usr/libexec/pinfold/box", self.etc + "/pinfold.conf", self.etc + "/secrets"
        self.audit = self.log + "/audit.log"
        self.provider, self.profile, self.tenant = (f"{self.etc}/{d}.d/default.conf" for d in ("providers", "profiles", "tenants"))
        shutil.copytree(INSTANCE + "/usr/libexec/pinfold", r + "/usr/libexec/pinfold", symlinks=True)
        self.env = {**os.environ, "PINFOLD_ROOT": r, "ILL_KEY": "sk-key-of-the-ill-root"}
        subprocess.run([CLI, "setup", "--uid-base", str(self.BASE), "--provider-key-env", "ILL_KEY", "--model", "m"], env=self.env, check=True,
                       capture_output=True)
        for d, mode, uid in ((r + "/var/lib/pinfold", 0o711, 0), (self.store, 0o700, self.UID), (self.log, 0o700, self.UID)):
            os.makedirs(d, exist_ok=True)
            os.chmod(d, mode)
            os.chown(d, uid, uid)
        with open(INSTANCE + "/var/log/pinfold/audit.log", "rb") as f, open(self.audit, "wb") as to:
            to.writelines(f.readlines()[:4])
        os.chmod(self.audit, 0o600)
        os.chown(self.audit, self.UID, self.UID)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root, ignore_errors=True)


def no_secret_was_said(root):
    held = [open(f"{r}/etc/pinfold/secrets/{n}", "rb").read().strip() for r in (INSTANCE, root)
            for n in ("run-token", "provider-default")] + [token().encode(), token("device-token").encode(), b"sk-a", b"pfa_"]
    text = b"".join(said)
    check("no secret was ever printed", len(text) > 10000 and not any(s in text for s in held))
    check("nor a byte that moves a cursor", not [b for b in set(text) if b < 0x20 and b != 0x0a or b >= 0x7f])
