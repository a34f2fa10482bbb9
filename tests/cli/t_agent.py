#!/usr/bin/python3
"""pinfold agent install: what the lock says and nothing else, whole or not at all; the registry is one of ours."""
import base64, hashlib, http.server, io, json, os, shutil, signal, subprocess, sys, tarfile, tempfile, threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import patience

CLI = os.environ.get("PINFOLD_CLI_UNDER_TEST", os.path.abspath("./cli/pinfold"))
if os.geteuid() != 0:
    print("skipped: only root may install")
    sys.exit(77)
ROOT = tempfile.mkdtemp(prefix="pinfold-agent.")
FOLDER = ROOT + "/installed"
good = bad = 0


def check(name, ok, seen=""):
    global good, bad
    good, bad = good + bool(ok), bad + (not ok)
    if not ok:
        print("FAIL", name, seen)


def archive(*members):
    """A gzipped tar of (name, text, mode or kind)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text, how in members:
            m = tarfile.TarInfo(name)
            m.size, m.mode, m.uid, m.gid = 0, 0o644, 1234, 1234
            if how in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
                m.type, m.linkname = how, text
                tar.addfile(m)
            else:
                m.mode, m.size = how, len(text)
                tar.addfile(m, io.BytesIO(text.encode()))
    return out.getvalue()


served, asked = {}, []


held = threading.Event()  # answers wait for it
held.set()


class Registry(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        asked.append(self.path)
        if not held.is_set():
            held.wait()
            return  # whoever asked is gone
        body = served.get(self.path)
        self.send_response(200 if body is not None else 404)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
threading.Thread(target=server.serve_forever, daemon=True).start()
URL = f"http://127.0.0.1:{server.server_port}/npm/"


def pinfold(*words, **more):
    env = {k: v for k, v in os.environ.items() if "npm_config" not in k.lower()}
    return subprocess.run([CLI, "agent", *words], env={**env, "PINFOLD_ROOT": ROOT, **more}, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)


def where():
    """Where this build looks for lock files and profiles, whatever its prefix."""
    said = pinfold("list").stderr
    data = said.split("pinfold: ", 1)[1].split(":", 1)[0]
    os.makedirs(data)
    r = pinfold("install", "no-such")
    check("no such agent", r.returncode == 1 and "agent list" in r.stderr, r)
    return data


def sri(body):
    return "sha512-" + base64.b64encode(hashlib.sha512(body).digest()).decode()


def lock(text, name="demo"):
    with open(f"{DATA}/{name}.lock", "w") as f:
        f.write(text)


def install(*more, **env):
    shutil.rmtree(FOLDER, ignore_errors=True)
    return pinfold("install", "--registry", URL, "--folder", FOLDER, "demo", *more, **env)


def listing():
    return sorted(os.path.relpath(os.path.join(d, f), FOLDER) for d, _, fs in os.walk(FOLDER) for f in fs)


DATA = where()
PROFILES = os.path.join(ROOT, "etc/pinfold/profiles.d")
one = archive(("package/bin/demo", "#!/bin/sh\necho hello\n", 0o755), ("package/lib/a.js", "a\n", 0o666), ("package/./x", "x\n", 0o4755))
two = archive(("other/bin/node", "#!/bin/sh\nexec \"$@\"\n", 0o644))
LOCK = f"""# a comment
agent demo 1.2.3 MIT
program node_modules/@a/demo/bin/demo
node node/bin/node
package node_modules/@a/demo @a/demo 1.2.3-linux {sri(one)}
package node node-bin 22.0.0 {sri(two)}
"""
lock(LOCK)
with open(f"{DATA}/demo.conf", "w") as f:
    f.write('agent "demo" { command = {"@node@", "@program@", "@folder@", "{instruction}"} }\n')
served["/npm/@a/demo/-/demo-1.2.3-linux.tgz"] = one
served["/npm/node-bin/-/node-bin-22.0.0.tgz"] = two

r = pinfold("install", "--folder", FOLDER, "demo")
check("without a registry", r.returncode == 1 and "--registry" in r.stderr and not asked, r)
r = install()
check("no folder of profiles", r.returncode == 1 and "profiles.d" in r.stderr, r)
os.makedirs(PROFILES)
asked.clear()
r = pinfold("install", "demo", "--folder", FOLDER)
check("what is there is not fetched again", r.returncode == 0 and not asked, r)
os.unlink(PROFILES + "/demo.conf")
r = install()
check("installed", r.returncode == 0 and "MIT" in r.stderr and "reload" in r.stderr, r)
AT = FOLDER + "/demo-1.2.3"
check("every file", listing() == sorted("demo-1.2.3/" + p for p in ("node_modules/@a/demo/bin/demo", "node_modules/@a/demo/lib/a.js",
                                                                      "node_modules/@a/demo/x", "node/bin/node")), listing())
modes = {p: oct(os.stat(FOLDER + "/" + p).st_mode & 0o7777) for p in listing()}
check("of root's, readable, no more", set(modes.values()) == {"0o755", "0o644"} and
      modes["demo-1.2.3/node/bin/node"] == "0o755" and all(os.stat(FOLDER + "/" + p).st_uid == 0 for p in modes), modes)
with open(PROFILES + "/demo.conf") as f:
    text = f.read()
check("its profile", f'"{AT}/node/bin/node", "{AT}/node_modules/@a/demo/bin/demo", "{AT}", "{{instruction}}"' in text, text)
check("nothing of npm's was asked but archives", set(asked) == set(served), asked)
with open(PROFILES + "/demo.conf", "w") as f:
    f.write("mine\n")
r = install(npm_config_registry="http://127.0.0.1:1/")
check("a profile of the administrator's stays", r.returncode == 0 and open(PROFILES + "/demo.conf").read() == "mine\n", r)
check("and that it names another folder is said", f"does not name {AT}" in r.stderr, r)
with open(PROFILES + "/demo.conf", "w") as f:
    f.write(f"mine, in {AT}/bin\n")
r = pinfold("install", "--folder", FOLDER, "demo")
check("of one that names it nothing is said", r.returncode == 0 and "does not name" not in r.stderr, r)
for words, said in ((("install", "demo", "other"), "one agent at a time"), (("install", "--folder", "relative", "demo"), "absolute path"),
                    (("install", "demo", "--registry"), "takes a value"), (("install", "--what", "demo"), "unknown option --what")):
    r = pinfold(*words)
    check("used wrongly: " + " ".join(words), r.returncode == 2 and said in r.stderr, r)
r = pinfold("install", "--registry", "registry.example", "--folder", FOLDER + "2", "demo")
check("a registry that is no address", r.returncode == 1 and "https://" in r.stderr and not os.path.exists(FOLDER + "2"), r)
r = pinfold("install", "--registry", "http://127.0.0.1:1/", "--folder", FOLDER + "2", "demo")
check("a registry that is away", r.returncode == 1 and "Nothing was installed" in r.stderr and not os.listdir(FOLDER + "2"), r)
r = pinfold("list", "--folder", FOLDER)
check("listed", "demo" in r.stdout and " yes" in r.stdout, r)
r = pinfold("remove", "--folder", FOLDER, "demo")
check("removed", r.returncode == 0 and not listing(), r)
check("twice", pinfold("remove", "--folder", FOLDER, "demo").returncode == 1)
r = pinfold("install", "demo", "--folder", FOLDER, npm_config_registry=URL)
check("npm's own variable", r.returncode == 0, r)


# Whatever root's own umask is, sandboxes can read it, and the parser its profile.
os.unlink(PROFILES + "/demo.conf")
shutil.rmtree(FOLDER)
was = os.umask(0o077)
r = install()
os.umask(was)
closed = [p for d, ds, fs in os.walk(FOLDER) for p in [d] + [os.path.join(d, f) for f in fs] if os.stat(p).st_mode & 0o004 == 0]
check("with a strict umask", r.returncode == 0 and not closed and os.stat(PROFILES + "/demo.conf").st_mode & 0o777 == 0o644, (r, closed))
# A disk that is full in the middle of the profile: none is left, which the next one would keep.
os.unlink(PROFILES + "/demo.conf")
FULL = "import resource, signal, subprocess, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); " \
       "resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20)); sys.exit(subprocess.run(sys.argv[1:], restore_signals=False).returncode)"
r = subprocess.run([sys.executable, "-c", FULL, CLI, "agent", "install", "--folder", FOLDER, "demo"], env={**os.environ, "PINFOLD_ROOT": ROOT},
                   capture_output=True, text=True)
check("a full disk leaves no half a profile", r.returncode == 1 and not os.listdir(PROFILES), (r, os.listdir(PROFILES)))
r = pinfold("install", "--folder", FOLDER, "demo")
check("and the next one makes it", r.returncode == 0 and "@" not in open(PROFILES + "/demo.conf").read().replace("@a", ""), r)
# Stopped in the middle it leaves nothing.
shutil.rmtree(FOLDER)
held.clear()
asked.clear()
p = subprocess.Popen([CLI, "agent", "install", "--registry", URL, "--folder", FOLDER, "demo"], env={**os.environ, "PINFOLD_ROOT": ROOT},
                     stderr=subprocess.PIPE, text=True)
patience.wait_for(lambda: asked)
p.send_signal(signal.SIGINT)
said = p.communicate()[1]
held.set()
check("stopped", p.returncode == 1 and "stopped" in said and not os.listdir(FOLDER), (p.returncode, said, os.listdir(FOLDER)))
# A password in the registry's address is shown to nobody.
shutil.rmtree(FOLDER)
for address in ("http://me:s3cret@127.0.0.1:1/npm", URL.replace("//", "//me:s3cret@")):
    lock(LOCK.replace("1.2.3-linux", "9.9.9"))
    r = pinfold("install", "--registry", address, "--folder", FOLDER, "demo")
    check("the registry's password is not shown", r.returncode == 1 and "127.0.0.1" in r.stderr and "s3cret" not in r.stderr + r.stdout, r)
lock(LOCK)
for mode, uid in ((0o777, 0), (0o755, 65534)):
    os.makedirs(FOLDER, exist_ok=True)
    os.chmod(FOLDER, mode)
    os.chown(FOLDER, uid, -1)
    r = pinfold("install", "--registry", URL, "--folder", FOLDER, "demo")
    check("a folder that others can change", r.returncode == 1 and "nobody else" in r.stderr and not listing(), r)
lock("broken\n", "aaa")
r = subprocess.run([CLI, "agent", "list", "--json"], env={**os.environ, "PINFOLD_ROOT": ROOT}, capture_output=True, text=True)
check("a list with a broken lock is JSON", [a["name"] for a in json.loads(r.stdout)["agents"]] == ["demo"], r)
os.unlink(DATA + "/aaa.lock")


def refused(name, words, body=None, text=None):
    """Nothing of it is left, and the words say why."""
    served["/npm/@a/demo/-/demo-1.2.3-linux.tgz"] = body if body is not None else one
    lock(text if text is not None else LOCK if body is None else LOCK.replace(sri(one), sri(body)))
    r = install()
    check(name, r.returncode == 1 and words in r.stderr and not listing() and
          not (os.path.isdir(FOLDER) and os.listdir(FOLDER)), (r, listing()))


for name, member in (("a link", ("package/l", "/etc/passwd", tarfile.SYMTYPE)), ("a hard link", ("package/l", "package/bin/demo", tarfile.LNKTYPE)),
                     ("a pipe", ("package/l", "", tarfile.FIFOTYPE)), ("a device", ("package/l", "", tarfile.CHRTYPE)),
                     ("a name that leads up", ("package/../../l", "x", 0o644)), ("a name from the root", ("/package/l", "x", 0o644)),
                     ("a name without a folder", ("l", "x", 0o644))):
    refused(name, "something else than plain files", archive(("package/bin/demo", "x", 0o755), member))
served["/npm/@a/demo/-/demo-1.2.3-linux.tgz"] = one + b"\0"
lock(LOCK)
r = install()
check("another file than the locked one", r.returncode == 1 and "another file" in r.stderr and not listing(), r)
served["/npm/@a/demo/-/demo-1.2.3-linux.tgz"] = one
for path, body in list(served.items()):
    # One bit of any of them, wherever it stands, and nothing of it all is there.
    served[path] = body[:len(body) // 2] + bytes([body[len(body) // 2] ^ 1]) + body[len(body) // 2 + 1:]
    r = install()
    check("a changed " + path, r.returncode == 1 and "another file" in r.stderr and not listing(), r)
    served[path] = body
refused("no archive", "no archive", b"hello")
refused("cut", "no archive", one[:-40])
del served["/npm/@a/demo/-/demo-1.2.3-linux.tgz"]
lock(LOCK)
r = install()
check("the registry has it not", r.returncode == 1 and "404" in r.stderr and not listing(), r)
for line in ("package ../up a 1.0.0 " + sri(one), "package a/../b a 1.0.0 " + sri(one), "package /a a 1.0.0 " + sri(one), "package a a 1/0 " + sri(one),
             "package a a 1.0.0 sha1-abc", "package a a 1.0.0 " + sri(one)[:-2], "package a a 1.0.0", "program ../x", "surprise"):
    refused("a lock with " + line[:30], "no line of a lock file", text=LOCK + line + "\n")
refused("a lock of another agent", "another agent", text=LOCK.replace("agent demo", "agent other"))
refused("an empty lock", "does not say", text="")
check("names that lead elsewhere", pinfold("install", "../demo").returncode == 1)
r = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", CLI, "agent", "install", "demo"], env={**os.environ, "PINFOLD_ROOT": ROOT}, capture_output=True, text=True)
check("by another than root", r.returncode != 0, r)
shutil.rmtree(ROOT)
print(f"{good} passed, {bad} failed")
sys.exit(bad > 0)
