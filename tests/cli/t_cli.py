#!/usr/bin/python3 -B
"""pinfold: what it says when something is wrong, in which form, and what it does with output that nobody takes; pages, files,
patches, keys, colours; and that every option that it takes is in its help and in its manual."""
import io, resource, shutil, ssl, tarfile, tempfile
from fake import *

TOP = os.path.abspath(os.environ.get("srcdir", os.path.join(os.path.dirname(__file__), "../..")))
ERROR = {"error": "some_code", "message": "A sentence.", "requestId": "x"}
FORM = re.compile(r"pinfold: [^()]+ \([^()]+\): \S.*[.?]\n")
dir_ = tempfile.mkdtemp(prefix="pf-cli.")


def with_api(f):
    api = Api(steady)
    try:
        f(api)
    finally:
        api.stop()


def refused(api):
    """Each refusal has one form, and says what to do."""
    for status, headers, want in ((400, (), "the server refuses (400 some_code at files[3].path): A sentence."),
                                  (401, (), "(401 some_code at files[3].path): A sentence. The token is that of PINFOLD_TOKEN; who made it"),
                                  (403, (), "(403 some_code"), (404, (), "(404 some_code"), (409, (), "(409 some_code"),
                                  (429, (("Retry-After", "37"),), "A sentence. Try again in 37 seconds."),
                                  (429, (("rETRY-aFTER", " 1 "),), "A sentence. Try again in 1 second."),
                                  (429, (("Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT"),), "A sentence."),
                                  (500, (), "the server failed (500 some_code"),
                                  (503, (("Retry-After", "5"),), "the server is not ready (503 some_code at files[3].path): A sentence. Try again in 5 seconds."),
                                  (503, (), "Try again in a moment; if it stays, \"pinfold doctor\" on the server")):
        api.answers = {"GET /v1/runs/run-1": (status, {**ERROR, "field": "files[3].path"}, *headers)}
        got, out, err = plain(api, "show", RUN)
        check(f"{status} {headers}", got == (4 if status >= 500 else 1) and want in err and FORM.fullmatch(err) and out == "", (got, out, err))
    for code, want in (("run_not_found", '"pinfold ps --all" does so here.\n'), ("artifact_not_found", '"pinfold artifacts RUN" shows those there are.\n')):
        api.answers = {"GET /v1/runs/run-1": (404, {**ERROR, "error": code})}
        check(f"which command helps: {code}", plain(api, "show", RUN)[2].endswith(want))
    for status, body, want in ((404, b"<html>", "is not Pinfold (404): is that the address?"), (502, b"", "is not Pinfold (502): does the service run"),
                               (401, b'{"hello":1}', "is not Pinfold (401)")):
        api.answers = {"GET /v1/runs/run-1": (status, body)}
        got, out, err = plain(api, "show", RUN)
        check(f"another server's {status}", want in err and got == (4 if status >= 500 else 1) and out == "", (got, err))
    api.answers = {}
    for words, want in ((["--token-env", "NONE_SUCH"], "no token: set NONE_SUCH"), (["--token-file", dir_ + "/none"], "No such file"),
                        (["--server", "gopher://x"], "the address is as https://host/")):
        got, out, err = plain(api, *words, "ps")
        check(f"{words[0]}", got in (2, 4) and want in err and err.startswith("pinfold: ") and err.count("\n") == 1, (got, err))
    with open(dir_ + "/open", "w") as f:
        f.write(API)
    os.chmod(dir_ + "/open", 0o644)
    got, out, err = plain(api, "--token-file", dir_ + "/open", "ps")
    check("a token that others may read", got == 2 and "chmod 600" in err, err)
    os.chmod(dir_ + "/open", 0o600)
    check("and one that they may not", plain(api, "--token-file", dir_ + "/open", "ps")[0] == 0)


def unreachable():
    got, out, err = plain(None, "ps")
    check("nobody there", got == 4 and "http://127.0.0.1:1 cannot be reached (" in err and FORM.fullmatch(err), err)
    got, out, err = plain(None, "ps", PINFOLD_URL="")
    check("an empty address is none", got == 2 and "no server: set PINFOLD_URL" in err, (got, err))
    got, out, err = plain(None, "--server", "http://none.invalid", "ps")
    check("no such name", got == 4 and "check the name in --server" in err and FORM.fullmatch(err + "") is None, err)
    tls = socketserver("127.0.0.1")
    for words, want in ((["--server", tls["url"]], "has a certificate that is not trusted ("), (["--server", tls["url"].replace("https", "http")], "does that port speak http"),
                        (["--server", tls["url"], "--ca-file", dir_ + "/open"], "must hold certificates in PEM form")):
        got, out, err = plain(None, *words, "ps")
        check(f"TLS: {want}", got == 4 and want in err and out == "", (got, err))
    got, out, err = plain(None, "--server", tls["url"], "--ca-file", tls["ca"], "ps")
    check("an authority of one's own", got == 0 and "RUN " in out, (got, err))
    got, out, err = plain(None, "--server", tls["url"], "ps", PINFOLD_CA_FILE=tls["ca"])
    check("by a variable", got == 0, (got, err))
    with_plain = Api(steady)
    got, out, err = plain(None, "--server", with_plain.url.replace("http:", "https:"), "ps")
    with_plain.stop()
    check("TLS where there is none", got == 4 and "does that port speak https?" in err, err)


def socketserver(host):
    """An API behind TLS, with a certificate that nobody knows."""
    key, cert = dir_ + "/key.pem", dir_ + "/ca.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", cert, "-days", "2",
                    "-subj", "/CN=test", "-addext", f"subjectAltName=IP:{host}"], check=True, capture_output=True)
    api = Api(steady)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    api.server.socket = context.wrap_socket(api.server.socket, server_side=True)
    return {"url": api.url.replace("http:", "https:"), "ca": cert}


def secret(api):
    """No token on the command line: nothing is asked."""
    token = "pfa_" + "x" * 60
    for words in (["--token", token, "ps"], ["--token=" + token, "ps"], ["ps", token], ["--server", "http://127.0.0.1:1", "--token-env", token, "ps"],
                  ["run", "-i", "pfd_" + "y" * 60], ["--token-file=" + token, "ps"]):
        got, out, err = plain(api, *words)
        check(f"refused: {words}", got == 2 and "does not belong on the command line" in err and token not in err and out == "", (got, err))
    check("and nothing was sent", api.posts == [] and api.created == [])


def pages(api):
    runs = [{"runId": f"r{i}", "status": "completed", "createdAt": 1700000000000 + i} for i in range(250)]

    def get(h, real=api.get):
        q = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(h.path).query))
        if not h.path.startswith("/v1/runs?"):
            return real(h)
        at, n = int(q.get("after", 0)), int(q["limit"])
        assert n <= 100, n
        api.answer(h, 200, {"runs": runs[at:at + n], **({"next": str(at + n)} if at + n < len(runs) else {"next": None})})

    api.get = get
    for words, n, more in (([], 50, True), (["--limit", "7"], 7, False), (["--limit", "120"], 120, False), (["--all"], 250, False)):
        got, out, err = plain(api, "ps", *words)
        check(f"ps {words}", got == 0 and [l.split()[0] for l in out.splitlines()[1:]] == [r["runId"] for r in runs[:n]] and ("there are more" in err) == more, (got, len(out.splitlines()), err))
    for words in (["--json", "ps", "--all"], ["ps", "--all", "--json"], ["ps", "--json", "--all"]):
        got, out, err = plain(api, *words)
        check(f"{words}", got == 0 and [r["runId"] for l in out.splitlines() for r in json.loads(l)["runs"]] == [r["runId"] for r in runs], (got, err))
    got, out, err = plain(api, "--json", "ps")
    check("ps --json says by next that there are more", got == 0 and json.loads(out)["next"] and err == "", (out[-60:], err))
    for words in (["--limit", "0"], ["--limit", "x"], ["--all", "--limit", "3"], ["more"]):
        check(f"wrong use: ps {words}", plain(api, "ps", *words)[0] == 2)


def output(api):
    """What nobody takes is not done."""
    api.event("told")
    for words in (["ps"], ["show", RUN], ["events", RUN], ["--json", "ps"], ["completion", "bash"]):
        with open("/dev/full", "wb") as full:
            p = subprocess.run([CLI, *words], env=environment(api), stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE)
        check(f"a full disk: {words}", p.returncode == 1 and b"could not be written (No space left on device)" in p.stderr, (p.returncode, p.stderr))
        a, b = os.pipe()
        os.close(a)
        p = subprocess.run([CLI, *words], env=environment(api), stdin=subprocess.DEVNULL, stdout=b, stderr=subprocess.PIPE, timeout=PATIENCE)
        os.close(b)
        check(f"a closed pipe: {words}", p.returncode != 0, p.returncode)


PATCH = b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"


def files(api):
    base = f"GET /v1/runs/{RUN}/artifacts"
    big = bytes(range(256)) * 1000
    api.answers = {base: (200, {"artifacts": [{"name": "patch", "size": len(PATCH)}, {"name": "result", "size": len(big)}]}),
                   base + "/patch": (200, PATCH), base + "/result": (200, big)}
    to = dir_ + "/out"
    got, out, err = plain(api, "artifacts", RUN, "-o", to)
    check("all of them", got == 0 and {n: open(f"{to}/{n}", "rb").read() for n in os.listdir(to)} == {"patch": PATCH, "result": big}, (got, out, err))
    open(to + "/result", "w").write("mine")
    got, out, err = plain(api, "artifacts", RUN, "-o", to, "result")
    check("what is there stays", got == 1 and "is there already" in err and open(to + "/result").read() == "mine" and sorted(os.listdir(to)) == ["patch", "result"], (got, err))
    api.answers[base] = (200, {"artifacts": [{"name": "../evil", "size": 1}, {"name": "/etc/x", "size": 1}, {"name": ".hidden", "size": 1}]})
    got, out, err = plain(api, "artifacts", RUN, "-o", dir_ + "/out2")
    check("a name is no path", os.listdir(dir_ + "/out2") == [] and not os.path.exists(dir_ + "/evil"))
    # A patch: all of it or nothing, also in a folder of a repository that begins above.
    subprocess.run(["git", "init", "-q", dir_ + "/repo"], check=True)
    for where in ("plain", "repo/below", "repo"):
        tree = f"{dir_}/{where}"
        os.makedirs(tree, exist_ok=True)
        open(tree + "/a.py", "w").write("x = 1\n")
        got, out, err = plain(api, "artifacts", RUN, "--apply", tree)
        check(f"applied: {where}", got == 0 and open(tree + "/a.py").read() == "x = 2\n" and "is applied" in out, (got, out, err))
        got, out, err = plain(api, "artifacts", RUN, "--apply", tree)
        check(f"not twice: {where}", got == 1 and "nothing was changed" in err and open(tree + "/a.py").read() == "x = 2\n", (got, err))
    open(tree + "/a.py", "w").write("x = 1\n")
    api.answers[base + "/patch"] = (200, PATCH + PATCH.replace(b"a.py", b"../../b.py"))
    got, out, err = plain(api, "artifacts", RUN, "--apply", tree)
    check("no path outside, and nothing of such a patch", got == 1 and open(tree + "/a.py").read() == "x = 1\n", (got, err))
    # Nothing of the repository's settings, and no way out by a link.
    ran, elsewhere = dir_ + "/apply-ran", dir_ + "/apply-elsewhere"
    open(tree + "/.gitattributes", "w").write("*.py filter=x\n")
    git(tree, "config", "filter.x.clean", f"touch {ran}; cat")
    git(tree, "config", "filter.x.smudge", f"touch {ran}; cat")
    api.answers[base + "/patch"] = (200, PATCH)
    got, out, err = plain(api, "artifacts", RUN, "--apply", tree)
    check("no program of a repository's", got == 0 and open(tree + "/a.py").read() == "x = 2\n" and not os.path.exists(ran), (got, err, os.path.exists(ran)))
    open(tree + "/a.py", "w").write("x = 1\n")
    plain(api, "artifacts", RUN, "--apply", tree, GIT_DIR=tree + "/.git", GIT_WORK_TREE=dir_)
    check("nobody's variables lead elsewhere", open(tree + "/a.py").read() == "x = 2\n")
    os.makedirs(elsewhere)
    open(elsewhere + "/a.py", "w").write("x = 1\n")
    os.symlink(elsewhere, tree + "/link")
    api.answers[base + "/patch"] = (200, PATCH.replace(b"a.py", b"link/a.py"))
    got, out, err = plain(api, "artifacts", RUN, "--apply", tree)
    check("nor through a link", got == 1 and open(elsewhere + "/a.py").read() == "x = 1\n", (got, err))
    for path in (b".git/config", b"../a.py"):
        api.answers[base + "/patch"] = (200, b"diff --git a/%s b/%s\nnew file mode 100644\n--- /dev/null\n+++ b/%s\n@@ -0,0 +1 @@\n+x\n" % (path, path, path))
        got, out, err = plain(api, "artifacts", RUN, "--apply", dir_ + "/plain")
        check(f"nor to {path}", got == 1 and not os.path.exists(dir_ + "/plain/.git"), (got, err))
    api.answers[base + "/patch"] = (200, b"")
    check("an empty one", plain(api, "artifacts", RUN, "--apply", tree)[0] == 0)
    got, out, err = plain(api, "artifacts", RUN, "--apply", tree, PATH="/none")
    check("wrong use", plain(api, "artifacts", RUN, "patch", "--apply", tree)[0] == 2 and plain(api, "artifacts", RUN, "--apply")[0] == 2)


def keys(api):
    tree = dir_ + "/tree"
    os.makedirs(tree)
    open(tree + "/a.py", "w").write("x = 1\n")
    for words in ([], [], ["--idempotency-key", "try-1"]):
        got, out, err = plain(api, "run", "-i", "x", "--detach", *words, tree)
        check(f"detached {words}", (got, out) == (0, RUN + "\n"), (got, out, err))
    sent = [h.get("Idempotency-Key") for h in api.heads]
    check("each has a key of its own, or the one that is named", len(set(sent)) == 3 and sent[2] == "try-1" and None not in sent, sent)
    api.answers = {"POST /v1/runs": (503, ERROR)}
    got, out, err = plain(api, "run", "-i", "x", tree)
    check("who cannot know says how to ask again", got == 4 and api.heads[-1]["Idempotency-Key"] in err and "makes no second one" in err, err)
    api.answers = {"POST /v1/runs": (429, ERROR, ("Retry-After", "60"))}
    got, out, err = plain(api, "run", "-i", "x", tree)
    check("a quota", got == 1 and "Try again in 60 seconds." in err and "second one" not in err, err)
    check("wrong use", plain(api, "run", "-i", "x", "--idempotency-key", "a b", tree)[0] == 2)
    api.answers = {}
    got, out, err = plain(api, "run", "--check", "git diff --check", "--check", "sh a b", "--detach", tree)
    check("without an instruction the checks are one", got == 0 and api.created[-1][0]["instruction"].endswith(":\ngit diff --check\nsh a b"), (got, err, api.created[-1:]))
    check("without either it is wrong use", plain(api, "run", "--detach", tree)[0] == 2)


def types(api):
    """What is uploaded is what the tenant may upload; what is left out is named, and which checks there are."""
    tree = dir_ + "/types"
    os.makedirs(tree + "/src")
    for name in ("src/a.c", "b.py", "c.txt", "d.md", "e.md"):
        open(tree + "/" + name, "w").write("x = 1\n")
    os.symlink("b.py", tree + "/l.c")

    def upload(*words):
        api.created.clear()
        got, out, err = plain(api, "run", "-i", "x", "--detach", *words, tree)
        return got, [f["path"] for f in api.created[-1][0]["files"]] if api.created else None, err

    got, paths, err = upload()
    check("of a server that does not say", (got, paths) == (0, ["b.py", "c.txt", "d.md", "e.md"]) and "; left out: l.c, src/a.c (" in err, (got, paths, err))
    may = {"extensions": [".c", ".txt"], "checks": [["make"], ["cc", "-c", "a.c"]]}
    api.answers = {"GET /v1/limits": (200, may)}
    got, paths, err = upload()
    check("the tenant's own types", (got, paths) == (0, ["c.txt", "src/a.c"]) and "uploading 2 files" in err and
          "left out: b.py, d.md, e.md and 1 more (links, or" in err and "checks" not in err, (got, paths, err))
    api.answers["POST /v1/runs"] = (400, ERROR)
    got, paths, err = upload("--check", "make", "--check", "make test")
    check("and its checks", got == 1 and err.endswith('that this tenant may run:\n  --check "make"\n  --check "cc -c a.c"\n'), err)
    check("also where none was named", upload()[2].endswith('"cc -c a.c"\n'))
    check("not where another thing is wrong", "may run" not in upload("--check", "cc  -c a.c", "--check", "make")[2])
    api.answers = {"GET /v1/limits": (200, {**may, "extensions": [".rs"]})}
    got, paths, err = upload()
    check("nothing of them", (got, paths) == (2, None) and err.endswith("none is text of the types .rs\n"), err)
    for odd in ([], {"extensions": 1}, {"extensions": [1, {"a": 2}, []], "checks": [1, [2], {"a": []}]}):
        api.answers = {"GET /v1/limits": (200, odd), "POST /v1/runs": (400, ERROR)}
        got, paths, err = upload()
        check(f"limits that are none: {odd}", got in (1, 2) and err.startswith(("uploading", "pinfold: ")), (got, err))


def git(tree, *words, **env):
    subprocess.run(["git", "-C", tree, "-c", "user.name=x", "-c", "user.email=x@example", *words], check=True, capture_output=True, env={**os.environ, **env})


def unpack(archive):
    """(names in their order, contents by name, modes by name) of what was sent."""
    data = subprocess.run(["zstd", "-dc"] if archive[0] == "application/zstd" else ["gzip", "-dc"], input=archive[1], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(data)) as t:
        return [m.name for m in t], {m.name: t.extractfile(m).read() for m in t}, {m.name: m.mode for m in t}


def repository(api):
    """What git ls-files names, and git runs nothing that the repository names and looks nowhere else."""
    tree, ran = dir_ + "/repository", dir_ + "/ran"
    os.makedirs(tree + "/sub/deep")
    for name in ("a.py", "b.py", ".hidden.py", "sub/c.py", "sub/deep/d.py", "ignored.py", "gone.py", "moved.py"):
        open(f"{tree}/{name}", "w").write("x = 1\n")
    open(tree + "/.gitignore", "w").write("ignored.py\n")
    git(dir_, "init", "-q", tree)
    git(tree, "add", "a.py", "gone.py", "moved.py", "sub/c.py")
    git(tree, "commit", "-qm", "x")
    os.remove(tree + "/gone.py")
    os.remove(tree + "/moved.py")
    os.symlink("/etc/hostname", tree + "/moved.py")
    program = dir_ + "/program"
    open(program, "w").write(f"#!/bin/sh\ntouch {ran}\n")
    os.chmod(program, 0o755)
    elsewhere = dir_ + "/elsewhere"
    os.makedirs(elsewhere)
    open(elsewhere + "/secret.py", "w").write("no\n")
    git(dir_, "init", "-q", elsewhere)

    def upload(where=tree, **env):
        api.created.clear()
        got, out, err = plain(api, "run", "-i", "x", "--detach", where, **env)
        return got, [f["path"] for f in api.created[-1][0]["files"]] if api.created else None, err
    want = [".hidden.py", "a.py", "b.py", "sub/c.py", "sub/deep/d.py"]
    got, paths, err = upload()
    check("tracked, or not ignored", (got, paths) == (0, want) and "left out: .gitignore, moved.py (" in err, (got, paths, err))
    check("of the folder that is named", upload(tree + "/sub")[:2] == (0, ["c.py", "deep/d.py"]), upload(tree + "/sub"))
    check("nobody's variables lead elsewhere", upload(GIT_DIR=elsewhere + "/.git", GIT_WORK_TREE=elsewhere, GIT_INDEX_FILE=elsewhere + "/.git/index")[1] == want)
    git(tree, "config", "core.fsmonitor", program)
    git(tree, "config", "core.hooksPath", dir_)
    check("a repository's own program", upload()[1] == want and not os.path.exists(ran), os.path.exists(ran))
    git(tree, "config", "core.fsmonitor", "false")
    lacking(upload, program, ran)
    shutil.rmtree(tree + "/sub/deep")
    git(tree, "add", "sub")
    os.rename(tree + "/sub", tree + "/was")
    os.symlink(elsewhere, tree + "/sub")
    open(elsewhere + "/c.py", "w").write("no\n")
    got, paths, err = upload()
    check("no link is followed, at no part", "sub/c.py" not in paths and paths[:3] == [".hidden.py", "a.py", "b.py"], (got, paths, err))
    git(tree, "config", "core.worktree", elsewhere)
    got, paths, err = upload()
    check("another work tree", got == 2 and paths is None and "git cannot name the files" in err or paths is not None and "secret.py" not in paths, (got, paths, err))
    open(tree + "/.git/HEAD", "w").write("broken")
    check("a repository that is none", upload()[0] in (0, 2) and "secret.py" not in (upload()[1] or []))


def lacking(upload, program, ran):
    """A repository whose index needs what it has not, and that says by which program of its own it would be had; git is one that
    does not know the variable that would keep it from that."""
    tree, bin_ = dir_ + "/lacking", dir_ + "/old-git"
    os.makedirs(tree + "/sub")
    os.makedirs(bin_)
    open(bin_ + "/git", "w").write(f'#!/bin/sh\nunset GIT_NO_LAZY_FETCH\nexec {shutil.which("git")} "$@"\n')
    os.chmod(bin_ + "/git", 0o755)
    for name in ("a.py", "sub/b.py"):
        open(f"{tree}/{name}", "w").write("x")
    git(dir_, "init", "-q", "--bare", "empty")
    for words in (("init", "-q"), ("add", "-A"), ("-c", "user.name=x", "-c", "user.email=x", "commit", "-q", "-m", "x"),
                  ("sparse-checkout", "init", "--cone", "--sparse-index"), ("sparse-checkout", "set", "nothing")):
        git(tree, *words)
    gone = subprocess.run(["git", "rev-parse", "HEAD:sub"], cwd=tree, capture_output=True, text=True).stdout.strip()
    os.unlink(f"{tree}/.git/objects/{gone[:2]}/{gone[2:]}")
    for key, value in (("core.repositoryFormatVersion", "1"), ("extensions.partialClone", "origin"), ("remote.origin.promisor", "true"),
                       ("remote.origin.url", dir_ + "/empty"), ("remote.origin.uploadpack", program), ("protocol.file.allow", "always")):
        git(tree, "config", key, value)
    upload(tree, PATH=f"{bin_}:{os.environ['PATH']}")
    check("a program that would bring what a repository lacks", not os.path.exists(ran))


def archives(api):
    """What does not fit into one request goes as an archive, and the same folder as the same one."""
    tree = dir_ + "/many"
    os.makedirs(tree + "/src")
    for i in range(40):
        open(f"{tree}/src/f{i}.py", "w").write(f"x = {i}\n")
    open(tree + "/top.py", "w").write("y")
    open(tree + "/no.bin", "w").write("y")
    os.chmod(tree + "/src/f7.py", 0o755)
    git(dir_, "init", "-q", tree)
    api.answers = {"GET /v1/limits": (200, {"extensions": [".py"], "source": {"archiveBytes": 64000000}})}

    def upload(*words):
        api.created.clear()
        api.sources.clear()
        return plain(api, "run", "-i", "x", "--detach", *words, tree)
    got, out, err = upload()
    check("sent", got == 0 and len(api.sources) == 1 and "uploading 41 files (" in err and "as an archive); left out: no.bin (" in err, (got, err))
    names, texts, modes = unpack(api.sources[0])
    check("all of it", sorted(names) == sorted(["top.py", *(f"src/f{i}.py" for i in range(40))]) and texts["src/f9.py"] == b"x = 9\n" and
          (modes["src/f7.py"], modes["src/f8.py"]) == (0o755, 0o644), names)
    body = api.created[-1][0]
    id = hashlib.sha256(api.sources[0][1]).hexdigest()
    check("the run is of it", body.get("source") == id and "files" not in body and sorted(body["allowedPaths"]) == ["src/**", "top.py"], body)
    heads = api.heads[-2:]
    check("the key is the run's", "Idempotency-Key" not in heads[0] and "Idempotency-Key" in heads[1], heads)
    os.utime(tree + "/top.py", (1, 1))
    upload("--allow", "top.py")
    check("the same again", hashlib.sha256(api.sources[0][1]).hexdigest() == id and api.created[-1][0]["allowedPaths"] == ["top.py"])
    source = api.answers["GET /v1/limits"][1]["source"]
    for name, most, said in (("files", 40, "41 files"), ("fileBytes", 6, "src/f10.py has 7 bytes"), ("bytes", 270, "271 bytes")):
        source[name] = most
        got, out, err = upload()
        check(f"more than a source may have of {name}", got == 2 and not api.sources and said in err and f"may have {most}" in err, (got, err))
        source[name] = most + 1
    got, out, err = upload()
    check("as much as a source may have", got == 0 and len(api.sources) == 1, (got, err))
    for name in ("files", "fileBytes", "bytes"):
        del source[name]
    api.answers["POST /v1/sources"] = (429, ERROR, ("Retry-After", "9"))
    got, out, err = upload()
    check("refused, and no run is made", got == 1 and not api.created and "Try again in 9 seconds." in err and "second one" not in err, (got, err))
    del api.answers["POST /v1/sources"]
    for i in range(33):
        open(f"{tree}/top{i}.py", "w").write("y")
    got, out, err = upload()
    check("too much at the top to be named", got == 2 and not api.created and "--allow" in err, (got, err))
    api.answers["GET /v1/limits"][1]["source"]["archiveBytes"] = 100
    got, out, err = upload()
    check("more than the tenant may send", got == 2 and not api.sources and "may send 100" in err, (got, err))
    del api.answers["GET /v1/limits"][1]["source"]
    got, out, err = upload()
    check("to a server that takes none", got == 2 and not api.sources and "takes no archives" in err, (got, err))
    for i in range(40):
        os.remove(f"{tree}/src/f{i}.py")
    for i in range(33):
        os.remove(f"{tree}/top{i}.py")
    open(tree + "/top.py", "w").write("z" * 64001)
    api.answers["GET /v1/limits"][1]["source"] = {"archiveBytes": 64000000}
    got, out, err = upload()
    check("one file that is too large for a request", got == 0 and unpack(api.sources[0])[0] == ["top.py"], (got, err))
    os.truncate(tree + "/top.py", 64000)
    got, out, err = upload()
    check("and one that is not", got == 0 and not api.sources and len(api.created[-1][0]["files"]) == 1, (got, err))


def colours(api):
    tree = dir_ + "/colours"
    os.makedirs(tree)
    open(tree + "/a.py", "w").write("x = 1\n")
    api.answers = {f"GET /v1/runs/{RUN}": (200, {"runId": RUN, "status": "failed", "terminalReason": "checks_failed", "usage": {"maxModelRequests": 10},
                                                "verification": [{"name": "c", "argv": ["true"], "ok": True}, {"name": "d", "argv": ["false"], "ok": False}]})}
    for what, more, coloured in (("colours", {"NO_COLOR": ""}, True), ("NO_COLOR", {}, False), ("a dumb terminal", {"NO_COLOR": "", "TERM": "dumb"}, False)):
        api.events.clear()
        api.event("run.phase", phase="executing")
        for _ in range(5):
            api.event("model.called", text="\u5bbd\u5b57" * 3)
        t = Terminal([CLI, "run", "-i", "x", tree], environment(api, device=False, **more), columns=100)
        if more.get("TERM") != "dumb":
            bar = t.expect("5 of 10 model requests").rsplit("[", 1)[1] if not coloured else t.expect("5 of 10 model requests")
            check(f"{what}: a bar", ("######" in bar and "executing" in bar), bar)
        api.end("failed")
        got = t.wait()
        check(what, got == 1 and (b"\x1b[31mFAILED\x1b[0m d" in t.raw and b"\x1b[32mpassed" in t.raw) == coloured and (b"\x1b[3" in t.raw) == coloured, t.raw[-600:])
        if not coloured:
            check(f"{what}: nothing else", bad_bytes(t.raw) == [], bad_bytes(t.raw))
    status, out, err = plain(api, "run", "-i", "x", tree, NO_COLOR="")
    check("none into pipes", "\x1b" not in out + err and "FAILED d" in out, out + err)
    # The line is never carried over, whatever stands in it.
    for columns in (20, 40, 61, 80):
        api.events.clear()
        api.event("run.phase", phase="\u5bbd\u5b57" * 8)
        t = Terminal([CLI, "run", "-i", "x", tree], environment(api, device=False), columns=columns)
        t.expect("\u5bbd")
        api.end()
        t.wait()
        lines = [l.split("\r\n")[0] for l in t.text().split("\r\x1b[K")[1:]]
        wide = [l for l in lines if l.startswith(("\u5bbd", "[")) and sum(2 if ord(c) > 127 else 1 for c in l) >= columns]
        check(f"{columns} columns", wide == [], wide)


def paragraph(man, command):
    """What the manual says of a command: the items that begin with it."""
    items = re.split(r"(?m)^\.It ", man)
    return "\n".join(i for i in items if re.match(rf"(Xo\n\.)?Cm {command}\b", i))


def manual():
    man = open(TOP + "/man/pinfold.1").read()
    helps = {c: plain(None, c, "--help")[1].split("\n\n")[0] for c in re.findall(r"(?m)^  ([a-z]+) ", plain(None, "--help")[1])}
    known = set()
    check("there are commands", len(helps) > 15, helps)
    for words in (("agent", "test"), ("token", "create"), ("provider", "test"), ("run", "-i", "x")):
        check("help behind further words", plain(None, *words, "--help")[:2] == plain(None, words[0], "--help")[:2], words)
    for c, text in helps.items():
        words = set(re.findall(r"--[a-z][a-z-]+", text)) | set(re.findall(r"(?<![\w-])-[a-z]\b", text))
        known |= words
        said = paragraph(man, c)
        check(f"the manual knows {c}", said != "")
        options = set(re.findall(r"(?:Fl Fl|\|) ([a-z][a-z-]+)", said)) | {"-" + x for x in re.findall(r"Fl ([a-z])\b", said)}
        lacks = [w for w in words if w.lstrip("-") not in {o.lstrip("-") for o in options}]
        check(f"the manual has each option of {c}", lacks == [], lacks)
        synopsis = "\n".join(re.match(r"(?s)Xo\n.*?\n\.Xc|[^\n]*", i).group(0) for i in re.split(r"(?m)^\.It ", man) if re.match(rf"(Xo\n\.)?Cm {c}\b", i))
        more = [o for o in re.findall(r"Fl Fl ([a-z][a-z-]+)", synopsis) if "--" + o not in words and o != "json"]  # that one every command takes
        check(f"and no other of {c}", more == [], more)
    head = plain(None, "--help")[1].split("\n\n")[0]
    for word in set(re.findall(r"--[a-z][a-z-]+", head)):
        check(f"the manual has {word}", re.search(rf"(?m)^\.It .*Fl Fl {word[2:]}\b", man) is not None)
    known |= set(re.findall(r"--[a-z][a-z-]+", head)) | {"--instruction", "--file"}  # -i and -f, spelt out
    known.add("--help")
    # What getopt is told stands in the help.
    for name in sorted(os.listdir(TOP + "/cli")):
        if name.endswith(".c"):
            for o in re.findall(r'\{"([a-z-]+)", (?:no|required)_argument', open(f"{TOP}/cli/{name}").read()):
                check(f"{name}: the help has --{o}", "--" + o in known)
    for code in ("0", "1", "2", "3", "4"):
        check(f"the manual has exit status {code}", re.search(rf"(?m)^\.It {code}$", man) is not None)
    for variable in sorted({v for n in os.listdir(TOP + "/cli") if n.endswith(".c") for v in re.findall(r'"(PINFOLD_[A-Z_]+|NO_COLOR|TERM)"', open(f"{TOP}/cli/{n}").read())}):
        check(f"the manual has {variable}", re.search(rf"(?m)^\.It Ev (.* , )?{variable}\b", man) is not None)


try:
    for f in (refused, secret, pages, output, files, keys, types, repository, archives, colours):
        case(f.__name__, with_api, f)
    case("unreachable", unreachable)
    case("manual", manual)
finally:
    shutil.rmtree(dir_, ignore_errors=True)
done()
