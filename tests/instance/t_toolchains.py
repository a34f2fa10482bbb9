#!/usr/bin/python3 -B
"""The tools that agents use, each with a real small job in a real box, within the memory and processes that the profile
gives. A tool that is not below this machine's /usr is in no box: it is skipped, and says so."""
import shutil
from client import *

# Runs in the box, as the agent. A job is a function that raises; what it says goes into report.txt.
AGENT = r'''
import json, os, subprocess, sys, traceback

os.makedirs("/tmp/job", exist_ok=True)
os.chdir("/tmp/job")


def put(name, text):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with open(name, "w") as f:
        f.write(text)


def do(*words, **more):
    p = subprocess.run(words, capture_output=True, text=True, timeout=120, **more)
    if p.returncode != 0:
        raise RuntimeError(f"{words} ended with {p.returncode}: {p.stderr[-600:]} {p.stdout[-200:]}")
    return p.stdout


def python3():
    put("py/part.py", "def square(n):\n    return n * n\n")
    put("py/main.py", """
import concurrent.futures, json, multiprocessing, sqlite3, tempfile, threading
from part import square
if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        squares = pool.map(square, range(10))
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        again = list(threads.map(square, range(10)))
    db = sqlite3.connect(tempfile.mktemp())
    db.execute("create table t(n)")
    db.executemany("insert into t values(?)", [(n,) for n in squares])
    db.commit()
    print(json.dumps([squares == again, db.execute("select sum(n) from t").fetchone()[0]]))
""")
    assert json.loads(do(sys.executable, "py/main.py")) == [True, 285]


def node():
    put("js/main.js", """
const http = require("http"), fs = require("fs"), { Worker, isMainThread, parentPort } = require("worker_threads");
if (!isMainThread) { parentPort.postMessage(6 * 7); return; }
const server = http.createServer((q, a) => a.end("served")).listen(0, "127.0.0.1", () => {
  http.get({ port: server.address().port, host: "127.0.0.1" }, (a) => {
    let text = "";
    a.on("data", (d) => (text += d));
    a.on("end", () => {
      server.close();
      new Worker(__filename).on("message", (n) => {
        fs.writeFileSync("js/out.txt", `${text} ${n} ${require("child_process").execSync("echo child").toString().trim()}`);
      });
    });
  });
});
""")
    do("node", "js/main.js")
    assert open("js/out.txt").read() == "served 42 child"


def git():
    os.makedirs("repo")
    def g(*words):
        return do("git", "-c", "user.name=a", "-c", "user.email=a@box", *words, cwd="repo")
    g("init", "-q", "-b", "main")
    put("repo/a.txt", "one\n")
    g("add", "a.txt")
    g("commit", "-q", "-m", "first")
    g("checkout", "-q", "-b", "side")
    put("repo/b.txt", "two\n")
    g("add", "b.txt")
    g("commit", "-q", "-m", "second")
    g("checkout", "-q", "main")
    g("merge", "-q", "--no-ff", "-m", "both", "side")
    g("gc", "-q")
    assert sorted(g("log", "--format=%s").split()) == ["both", "first", "second"] and g("status", "--porcelain") == ""


SOURCE = {"one.c": "#include <stdio.h>\nint two(void);\nint main(void) { printf(\"%d\\n\", two()); return 0; }\n", "two.c": "int two(void) { return 2; }\n"}


def gcc():
    for name, text in SOURCE.items():
        put("c/" + name, text)
    do("gcc", "-O2", "-Wall", "-g", "-flto", "-o", "c/both", "c/one.c", "c/two.c")
    assert do("c/both") == "2\n"


def make():
    for name, text in SOURCE.items():
        put("mk/" + name, text)
    put("mk/Makefile", "both: one.o two.o\n\tgcc -o $@ $^\ntest: both\n\ttest `./both` = 2\n.PHONY: test\n")
    do("make", "-s", "-j2", "-C", "mk", "test")
    assert "up to date" in do("make", "-C", "mk", "both")


def cargo():
    put("rs/Cargo.toml", "[package]\nname = \"box\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[lib]\npath = \"lib.rs\"\n")
    put("rs/lib.rs", "pub fn two() -> i32 { 2 }\n#[test]\nfn is_two() { assert_eq!(two(), 2); }\n")
    assert "1 passed" in do("cargo", "test", "--offline", "-q", cwd="rs")


with open("/workspace/source/report.txt", "w") as out:
    for job in sys.argv[1:] or json.load(open("/workspace/source/jobs.json")):
        try:
            globals()[job]()
            out.write(f"{job} works\n")
        except BaseException:
            out.write(f"{job} {traceback.format_exc()[-900:]!r}\n")
        out.flush()
'''
TOOLS = ("python3", "node", "git", "gcc", "make", "cargo")


def in_usr(tool):
    """Where a box would find it, or None."""
    path = shutil.which(tool, path="/usr/local/bin:/usr/bin:/bin")
    return path if path and os.path.realpath(path).startswith("/usr/") else None


mine = token()
here = [t for t in TOOLS if in_usr(t)]
for t in TOOLS:
    if t not in here:
        print(f"skipped {t}: it is not below this machine's /usr, so no box has it")
run = start(mine, {"agent.py": AGENT, "jobs.json": json.dumps(here), "report.txt": "\n"}, agent="roomy", allowed=["report.txt"],
            checks=[["git", "diff", "--check"]])
end = until(mine, run, seconds=300)
check("the run has ended well", end["status"] == "completed", end)
patch = artifact(mine, run, "patch")
for t in here:
    lines = [l[1:] for l in patch.split("\n") if l.startswith(f"+{t} ")]
    check(f"{t} does its job in a box", lines == [f"{t} works"], lines or patch[-500:])
done()
