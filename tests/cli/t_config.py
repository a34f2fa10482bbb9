#!/usr/bin/python3 -B
"""pinfold config check, show and example, held against spec/conf.tab: every setting's default and bounds are accepted, the examples
are what they say, each rule is told with file, line and remedy, and no file, however broken, makes the reader crash."""
import json, os, random, re, shutil, subprocess, sys, tempfile

TOP = os.environ.get("srcdir", ".")
CLI = os.path.abspath(os.environ.get("PINFOLD_CLI_UNDER_TEST", "cli/pinfold"))
SEED = int(os.environ.get("SEED", random.randrange(1 << 30)))
ROOT = tempfile.mkdtemp(prefix="pinfold-config.")
ETC = ""  # where setup makes it
ENV = {**os.environ, "PINFOLD_ROOT": ROOT, "CONFIG_KEY": "sk-key-of-the-test"}
good = bad = 0
NUMBERS = ("number", "seconds", "milliseconds", "days", "bytes", "megabytes")
LISTS = ("texts", "hosts", "argv", "command", "environment", "names")


def check(what, right, *more):
    global good, bad
    if right:
        good += 1
    else:
        bad += 1
        print("FAIL", what, *more, flush=True)


class Row:
    def __init__(self, line):
        (self.section, self.name, self.type, self.field, self.default, self.least, self.most, self.change, self.doc) = line
        self.kind = self.type.split(":")[0]
        self.default = "" if self.default == "-" else self.default
        self.value = self.default.split() if self.kind in LISTS else self.default


ROWS = [Row(l.rstrip("\n").split("\t")) for l in open(TOP + "/spec/conf.tab") if l[0] not in "#\n"]
NEEDED = {("provider", "base_url"): "https://api.openai.com/v1", ("model_profile", "model"): "gpt-4.1-mini",
          ("agent", "command"): ["/opt/pinfold/pinfold-agent"], ("check", "argv"): ["git", "diff", "--check"]}
USERS = {"stored": "1700000001:1700000001", "fcgi": "1700000002:1700000002", "gateway": "1700000003:1700000003",
         "steward": "1700000004:1700000004", "push": "1700000005:1700000005", "shared_group": "1700000000"}


def config(*args):
    p = subprocess.run([CLI, "config", *args], env=ENV, capture_output=True, text=True, errors="replace")
    return p.returncode, p.stdout, p.stderr


def read(name):
    return open(ETC + "/" + name).read()


def write(name, text):
    with open(ETC + "/" + name, "w") as f:
        f.write(text)


class Kept:
    """The configuration is as it was afterwards."""

    def __enter__(self):
        self.kept = tempfile.mkdtemp(prefix="kept.", dir=ROOT)
        shutil.copytree(ETC, self.kept + "/etc", symlinks=True)

    def __exit__(self, *_):
        shutil.rmtree(ETC)
        os.rename(self.kept + "/etc", ETC)
        os.rmdir(self.kept)


def whole():
    """Every setting of every section, from the examples."""
    def example(section):
        status, out, err = config("example", section)
        check(f"an example of {section}", status == 0 and err == "", err)
        return re.sub(r"^#(?! )", "", out, flags=re.M)

    for folder in ("providers.d", "profiles.d", "tenants.d"):
        for f in os.listdir(ETC + "/" + folder):
            os.unlink(f"{ETC}/{folder}/{f}")
    machine = example("machine")
    for name, ids in USERS.items():
        machine = re.sub(rf'^\t{name} = ".*"$', f'\t{name} = "{ids}"', machine, flags=re.M)
    write("pinfold.conf", machine)
    write("providers.d/a.conf", example("provider").replace('"example"', '"default"'))
    write("profiles.d/a.conf", example("model_profile").replace('"example"', '"default"') + example("agent").replace('"example"', '"builtin"'))
    write("tenants.d/a.conf", example("tenant"))


def examples():
    with Kept():
        whole()
        status, out, err = config("check")
        check("every setting at its default, written out, is accepted", status == 0, err)
        status, out, err = config("show", "--json")
        shown = {(s["section"], s["name"]): s for s in json.loads(out)["settings"]}
        check("all that there is is shown", set(shown) == {(r.section, r.name) for r in ROWS}, set(shown) ^ {(r.section, r.name) for r in ROWS})
        for r in ROWS:
            s = shown[r.section, r.name]
            want = NEEDED.get((r.section, r.name), USERS.get(r.name, r.value) if r.section == "users" else r.value)
            check(f"{r.section}.{r.name} is what the table says", s["value"] == want and s["change"] == r.change, s, want)
            check(f"{r.section}.{r.name} is in the file", not s["default"] and os.path.isfile(s["file"]) and
                  (s["value"] == [] or re.match(rf"\s*(check {{ )?{r.name} = ", open(s["file"]).read().split("\n")[s["line"] - 1])), s)
        for bound in ("least", "most"):
            with Kept():
                for folder, section in (("pinfold.conf", "machine"), ("profiles.d/a.conf", "agent"), ("tenants.d/a.conf", "tenant")):
                    text = read(folder)
                    for r in ROWS:
                        if r.section == section and r.kind in NUMBERS:
                            text = re.sub(rf"^(\t?){r.name} = .*$", rf"\g<1>{r.name} = {getattr(r, bound)}", text, flags=re.M)
                    write(folder, text)
                status, out, err = config("check")
                check(f"every number at its {bound}", status == 0, err)
    for section in ("nothing", "check"):
        check(f"there is no example of {section}", config("example", section)[0] == 2)


# file, text that is appended, what must be said of the last line of it
RULES = [
    ("pinfold.conf", "max_boxs = 1", 'there is no setting "max_boxs" outside of sections; is "max_boxes" meant?'),
    ("pinfold.conf", "queue_secnods = 1", 'is "queue_seconds" meant?'),
    ("pinfold.conf", "zzzzzzzz = 1", 'there is no setting "zzzzzzzz" outside of sections'),
    ("pinfold.conf", 'base_url = "x"', 'it belongs into a section "provider"'),
    ("pinfold.conf", 'provder "x" { base_url = "https://x.example/v1" }', 'is "provider" meant?'),
    ("pinfold.conf", "nothing { a = {1, 2} }", 'there is no setting "nothing"'),
    ("pinfold.conf", "nothings = {1, 2}", 'there is no setting "nothings"'),
    ("pinfold.conf", "queue_seconds = 1\nqueue_seconds = 2", "queue_seconds stands here a second time, after line"),
    ("pinfold.conf", 'users {\nfcgi = "1:1"\n}', "users.fcgi stands here a second time, after line"),
    ("pinfold.conf", 'public_url = "https://${HOST}"', '"${" has no meaning here'),
    ("pinfold.conf", 'queue_seconds = "soon"', 'queue_seconds must be a number of seconds from 1 to 2592000, not "soon"'),
    ("pinfold.conf", "queue_seconds = 0x10", 'not "0x10"'),
    ("pinfold.conf", 'push_ca_file = "ca.pem"', 'push_ca_file must be an absolute path, not "ca.pem"'),
    ("pinfold.conf", 'push_hosts = {"a.example", "http://b"}', 'push_hosts: "http://b" is neither a host'),
    ("pinfold.conf", 'public_url = "https://' + "a" * 250 + '"', "public_url is longer than 200 bytes"),
    ("providers.d/default.conf", 'users { fcgi = "1:1" }', 'it belongs into pinfold.conf, outside of sections'),
    ("providers.d/default.conf", 'provider "p" { base_url = "https://x.example/v1" scripted = perhaps }', 'provider p: scripted must be yes or no, not "perhaps"'),
    ("providers.d/default.conf", 'provider "q" { base_url = "https://x.example/v1" secrt = "x" }', 'there is no setting "secrt" in provider; is "secret" meant?'),
    ("providers.d/default.conf", 'provider "default" { base_url = "https://x.example/v1" }', "found duplicate title 'default'"),
    ("tenants.d/default.conf", 'provider "default" { base_url = "https://x.example/v1" }', 'a second provider "default": the first is in'),
    ("profiles.d/default.conf", 'model_profile "m" { model = "m" provider = "dfault" }', 'model_profile m: there is no provider "dfault"; is "default" meant?'),
    ("profiles.d/default.conf", 'agent "x" { }', "agent x: command is missing"),
    ("profiles.d/default.conf", 'agent "x" { command = {"/x"} max_steps = 3 }', 'there is no setting "max_steps" in agent: it belongs into a section "tenant"'),
    ("profiles.d/default.conf", "agent = 'x", "a text in quotes that begins here has no end"),
    ("pinfold.conf", "/* never", "a comment that begins here has no end"),
    ("pinfold.conf", 'log_to = "file"', "log_path must be an absolute path, and be there"),
    ("tenants.d/default.conf", 'tenant "t" { agents = {"bulitin"} }', 'tenant t: there is no agent "bulitin"; is "builtin" meant?'),
    ("tenants.d/default.conf", 'tenant "t" { model_profiles = {"a b"} }', "is a name, which has only the characters"),
    ("tenants.d/default.conf", 'tenant "t" { check { argv = {"' + "a" * 129 + '"} } }', "is longer than 128 bytes"),
]


def rules():
    for file, text, want in RULES:
        with Kept():
            write(file, read(file).rstrip("\n") + "\n" + text + "\n")
            line = read(file).count("\n") - (1 if text.endswith("\n}") else 0)
            status, out, err = config("check")
            check(f"refused: {text[:60]}", status == 1 and any(l.startswith(f"{ETC}/{file}:{line}: ") and want in l for l in err.split("\n")), err)
    with Kept():
        for file, text, _ in RULES[:3] + RULES[15:18] + RULES[20:22]:
            write(file, read(file).rstrip("\n") + "\n" + text + "\n")
        status, out, err = config("check")
        check("all at once", status == 1 and all(want in err for _, _, want in RULES[:3] + RULES[15:18] + RULES[20:22]), err)
        status, out, err = config("check", "--json")
        o = json.loads(out)
        check("as JSON, too", status == 1 and not o["ok"] and len(o["errors"]) >= 8 and all(set(e) == {"file", "line", "message"} and e["line"] > 0
              for e in o["errors"]) and err == "", o)
    for text in ("tenant \"t\" {\n", 'agent "x" { command = {"/x"', "= 3\n", "}\n", 'public_url = "https://a\n', "/* no end\n", "a|b = 1\n", "provider|base_url = 1\n"):
        with Kept():
            write("tenants.d/default.conf", read("tenants.d/default.conf") + text)
            status, out, err = config("check")
            check(f"broken: {text!r}", status == 1 and "tenants.d/default.conf" in err, err)


def outside():
    """What is not in the text: modes, secrets, authorities, ids."""
    def told(what, error, *words):
        status, out, err = config("check")
        check(what, (status == 1) == error and all(w in err for w in words), status, err)

    with Kept():
        os.chmod(ETC + "/pinfold.conf", 0o666)
        told("a file that others may write", True, "pinfold.conf may be written by others (mode 0666)", "chmod go-w")
    with Kept():
        os.chmod(ETC + "/tenants.d", 0o777)
        told("a folder that others may write to", True, "tenants.d may be written by others", "chmod go-w")
    with Kept():
        os.chown(ETC + "/tenants.d/default.conf", 12345, 0)
        told("a file of another user", True, "is owned by uid 12345", "chown root")
    with Kept():
        os.chmod(ETC + "/secrets/run-token", 0o644)
        told("a secret that others can read", True, "run-token can be read by others (mode 0644)", "chmod 600")
    with Kept():
        os.unlink(ETC + "/secrets/run-token")
        told("a secret that is not there", True, "secrets/run-token is missing", "pinfold setup")
    with Kept():
        write("secrets/run-token", "short")
        told("a short one", True, "run-token has 5 bytes, at least 32 are needed")
    with Kept():
        write("secrets/provider-default", "sk-one\nsk-two\n")
        told("a key of two lines", True, "not one line")
        check("and no byte of it is said", "sk-one" not in config("check")[2] + config("show")[1])
    with Kept():
        os.unlink(ETC + "/secrets/provider-default")
        told("a key that is still to come", False, "warning", "provider-default is missing")
    with Kept():
        write("providers.d/default.conf", re.sub(r"^#\tca_file = .*$", '\tca_file = "/no/such/file"', read("providers.d/default.conf"), flags=re.M))
        told("an authority's file that is not there", True, "/no/such/file")
        write("ca.pem", "no certificate\n")
        write("providers.d/default.conf", read("providers.d/default.conf").replace("/no/such/file", ETC + "/ca.pem"))
        told("one that is none", True, ETC + "/ca.pem")
    with Kept():
        write("providers.d/default.conf", read("providers.d/default.conf").replace("https://api.openai.com/v1", "http://api.openai.com/v1"))
        told("a provider over plain http", True, "not https")
    with Kept():
        write("providers.d/default.conf", read("providers.d/default.conf").replace("https://api.openai.com/v1", "https://api.openai.com"))
        told("a provider without a path", False, "warning", "has no path", "providers.d/default.conf:")
    with Kept():
        for name in ("acme", "acme.cfg", "acme.conf.off", "acme.conf~", "README", ".acme"):
            write("tenants.d/" + name, "tenant {\n")
        told("files that are not read", False, "tenants.d/acme: warning: is not read", "tenants.d/acme.cfg: warning: is not read", ".conf")
        check("and no more of them", config("check")[2].count("is not read") == 2, config("check")[2])
    with Kept():
        write("tenants.d/acme.conf", 'tenant "Acme Inc" {\n}\n')
        told("a name that is none", True, 'tenant "Acme Inc": a name has 1 to 128')
        check("is told once", config("check")[2].count("Acme Inc") == 1, config("check")[2])
    with Kept():
        log = ROOT + "/logs"
        write("pinfold.conf", read("pinfold.conf") + f'log_to = "file"\nlog_path = "{log}/p.log"\n')
        told("a log's folder that is not there", True, "log_path", log, "install -d")
        os.mkdir(log, 0o755)
        told("one that is", False)
        os.chmod(log, 0o777)
        told("one of everybody's", True, "log_path", "nobody else may write")
    with Kept():
        write("pinfold.conf", read("pinfold.conf").replace("1700000002:1700000002", "1700000101:1700000101"))
        told("a role among the boxes", True, "ids.roles", "one of the boxes'")
    with Kept():
        write("pinfold.conf", read("pinfold.conf").replace("1700000002:1700000002", "1700000003:1700000003"))
        told("two roles of one user", True, "ids.roles", "same user")
    with Kept():
        write("pinfold.conf", re.sub(r"^box_uid_base = .*$", "box_uid_base = 65520", read("pinfold.conf"), flags=re.M))
        told("boxes' ids too low", True, "box_uid_base must be a number from 65536")
    status, out, err = config("check", "--json")
    o = json.loads(out)
    check("as JSON", status == 0 and o["ok"] and o["errors"] == [] and isinstance(o["warnings"], list), o)


def elsewhere():
    draft = ROOT + "/draft.conf"
    with open(draft, "w") as f:
        f.write(read("pinfold.conf") + "max_streams = 0\n")
    status, out, err = config("check", draft)
    check("a file that is not installed", status == 1 and f"{draft}:{open(draft).read().count(chr(10))}: max_streams must be" in err, err)
    with open(draft, "w") as f:
        f.write(read("pinfold.conf") + "max_streams = 7\n")
    status, out, err = config("check", draft)
    check("that is well", status == 0 and "configuration ok: 3 tenants" in out, out, err)
    status, out, err = config("show", draft)
    check("what would be in force, and where it stands", status == 0 and re.search(rf"max_streams = 7 +# {draft}:\d+$", out, re.M) and
          re.search(r"queue_seconds = 3600 +# default$", out, re.M), out)
    check("one that is not there", config("check", ROOT + "/none.conf")[0] == 1)
    for args in (("check", "a", "b"), ("check", "--all"), ("look",), (), ("show", "--no")):
        check(f"not known: {args}", config(*args)[0] == 2)


def mutated():
    """A hundred broken files: each is taken, or refused with words."""
    r = random.Random(SEED)
    files = ["pinfold.conf", "providers.d/default.conf", "profiles.d/default.conf", "tenants.d/default.conf"]
    pieces = [b"{", b"}", b"=", b"+=", b",", b'"', b"'", b"\\", b"(", b")", b"#", b"/*", b"*/", b"${A}", b"\x00", b"\xff", b"a|b", b"tenant", b"check {",
              b"agents += {", b"\\x41", b"\\777", b"end_of_file", b"include(", b"\n", b"provider 'x' {", b"9" * 40, b"-1"]
    for i in range(100):
        with Kept():
            name = r.choice(files)
            text = bytearray(re.sub(rb"^# .*\n", b"", re.sub(rb"^\t# .*\n", b"", read(name).encode(), flags=re.M), flags=re.M))
            for _ in range(r.randrange(1, 6)):
                at = r.randrange(len(text) + 1)
                if r.random() < 0.5:
                    text[at:at] = r.choice(pieces)
                elif r.random() < 0.5:
                    del text[at:at + r.randrange(1, 40)]
                else:
                    text[at:at + 1] = bytes([r.randrange(256)])
            with open(ETC + "/" + name, "wb") as f:
                f.write(text)
            status, out, err = config("check")
            check(f"file {i} of seed {SEED}", status in (0, 1) and "Sanitizer" not in err and (status == 0 or len(err) > 10), status, err[:2000])


if os.geteuid() != 0:
    print("needs root")
    sys.exit(77)
os.chmod(ROOT, 0o755)
try:
    subprocess.run([CLI, "setup", "--uid-base", "1700000000", "--provider-key-env", "CONFIG_KEY"], env=ENV, check=True, capture_output=True)
    ETC = next(d for d, _, files in os.walk(ROOT) if "pinfold.conf" in files)
    for f in (examples, rules, outside, elsewhere, mutated):
        f()
finally:
    shutil.rmtree(ROOT)
print(f"{good} passed, {bad} failed")
sys.exit(bad > 0)
