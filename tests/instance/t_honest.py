#!/usr/bin/python3
"""Honest checks: what ran nothing is not passed, every check says how much it ran, nothing an agent leaves beside its allowed
changes flips one, and what it can still do inside them is flagged."""
from client import *
import os, subprocess, tempfile

mine = token()
brief = operator("token", "create", "--tenant", "brief").strip()
DIFF, UNIT = ["git", "diff", "--check"], ["python3", "-m", "unittest", "discover"]
PYTEST, COMPILE = ["python3", "-m", "pytest", "-q"], ["python3", "-m", "compileall", "-q", "."]
HEAD = "import unittest, calc\nclass T(unittest.TestCase):\n"
TEST = HEAD + "    def test_add(self):\n        self.assertEqual(calc.add(2, 3), 5)\n    def test_zero(self):\n        self.assertEqual(calc.add(0, 0), 0)\n"
RIGHT, WRONG = "def add(a, b):\n    return a + b\n", "def add(a, b):\n    return a - b\n"


def run(files, allowed, checks, bearer=mine, agent="script", **more):
    """The run's end, and its checks by their first or third word."""
    v = until(bearer, start(bearer, files, agent=agent, allowed=allowed, checks=checks, **more))
    return v, {("git" if c["argv"][0] == "git" else c["argv"][2]): c for c in v.get("verification", [])}


def write(path, text):
    return f"import os\nos.makedirs(os.path.dirname({path!r}) or '.', exist_ok=True)\nopen({path!r}, 'w').write({text!r})\n"


def nothing_ran():
    for argv, name in ((UNIT, "unittest"), (PYTEST, "pytest")):
        v, c = run({"agent.py": "pass\n", "calc.py": RIGHT}, ["calc.py"], [argv])
        check(f"{name} without tests is not passed", (v["status"], v["terminalReason"], c[name]["outcome"], c[name]["ok"]) ==
              ("failed", "no_tests", "no_tests", False), v)
        skips = HEAD.replace("class", "@unittest.skip('no')\nclass") + "    def test(self):\n        pass\n"
        v, c = run({"agent.py": "pass\n", "calc.py": RIGHT, "test_calc.py": skips}, ["calc.py"], [argv])
        check(f"{name} that skipped everything is not passed", (v["terminalReason"], c[name]["outcome"], c[name].get("tests")) ==
              ("no_tests", "no_tests", {"run": 0, "failed": 0, "skipped": 1}), v)
    # The program under test cannot hide that nothing ran behind a flood, and a flood is bounded.
    flood = "import unittest, sys\nfor i in range(100000):\n    sys.stderr.write('x' * 999 + '\\n')\n"
    v, c = run({"agent.py": "pass\n", "test_a.py": flood}, ["test_a.py"], [UNIT])
    check("printing 100 MB and running nothing is not passed", c["unittest"]["outcome"] == "no_tests", v)
    v, c = run({"agent.py": "pass\n", "calc.py": RIGHT, "test_calc.py": flood + TEST}, ["calc.py"], [UNIT])
    check("printing 100 MB and running two tests says so", (c["unittest"]["outcome"], c["unittest"].get("tests", {}).get("run")) == ("passed", 2), v)
    check("what it printed is bounded", len(artifact(mine, v["runId"], "test_log")) < 210000)
    v, c = run({"agent.py": "import os; os.unlink('agent.py')\n", "readme.txt": "no program\n"}, ["agent.py"], [COMPILE])
    check("compiling nothing is not passed", (v["terminalReason"], c["compileall"]["outcome"]) == ("no_tests", "no_tests"), v)
    v, c = run({"agent.py": "pass\n"}, ["agent.py"], [COMPILE])
    check("compiling something is", (v["status"], c["compileall"]["outcome"]) == ("completed", "passed"), v)
    v, c = run({"agent.py": "pass\n"}, ["agent.py"], [DIFF])
    check("no change is told", (v["status"], c["git"]["flags"]) == ("completed", [{"flag": "nothing_changed"}]), v)


def outcomes():
    for body, want, reason in (("import time; time.sleep(60)", "timeout", "check_failed"), ("import os; os.kill(os.getpid(), 9)", "killed", "check_failed"),
                               ("import os; os._exit(3)", "failed", "check_failed"), ("import os; os._exit(0)", "no_tests", "no_tests")):
        for argv, name in ((UNIT, "unittest"), (PYTEST, "pytest")):
            v, c = run({"agent.py": "pass\n", "calc.py": RIGHT, "test_calc.py": HEAD + f"    def test(self):\n        {body}\n"}, ["calc.py"], [argv], brief)
            check(f"{name}: {body[-15:]} is {want}", (v["status"], v["terminalReason"], c[name]["outcome"]) == ("failed", reason, want), v)
    hog = "x = bytearray(900_000_000)\n        for i in range(0, len(x), 4096): x[i] = 1\n"
    v, c = run({"agent.py": "pass\n", "calc.py": RIGHT, "test_calc.py": HEAD + f"    def test(self):\n        {hog}\n"}, ["calc.py"], [UNIT])
    check("a check that is out of memory did not pass", v["status"] == "failed" and not any(k["ok"] for k in c.values()), v)


def counts():
    mixed = TEST + "    @unittest.skip('not now')\n    def test_later(self):\n        pass\n"
    v, c = run({"agent.py": "pass\n", "calc.py": RIGHT, "test_calc.py": mixed}, ["calc.py"], [UNIT, PYTEST, DIFF])
    want = {"run": 2, "failed": 0, "skipped": 1}
    check("a run says how many tests ran", v["status"] == "completed" and [c[n].get("tests") for n in ("unittest", "pytest", "git")] == [want, want, None], v)
    v, c = run({"agent.py": "pass\n", "calc.py": WRONG, "test_calc.py": mixed}, ["calc.py"], [UNIT])
    check("and how many failed", c["unittest"]["tests"] == {"run": 2, "failed": 1, "skipped": 1}, v)
    quiet = {"agent.py": "pass\n", "calc.py": RIGHT, "test_calc.py": mixed, "pytest.ini": "[pytest]\naddopts = -q\n"}
    v, c = run(quiet, ["calc.py"], [PYTEST])
    check("also where pytest was told to be quiet", c["pytest"]["tests"] == want and v["status"] == "completed", v)
    said = [e["data"] for e in events(mine, v["runId"]) if e["event_type"] == "check.finished"]
    check("the event says it too", said[0]["tests"] == want and said[0]["outcome"] == "passed", said)


def new_files():
    """A new file is a change: the check that looks at changes sees it, whatever git would take it for."""
    for what, text, ok in (("in order", "x = 1\n", True), ("with a blank at an end", "x = 1 \n", False), ("with a mark of a conflict", "<<<<<<< ours\n", False),
                           ("with a byte that makes it binary", "x = 1 \n\0\n", False)):
        v, c = run({"agent.py": write("src/new.py", text), "src/a.py": "a = 1\n"}, ["src/**"], [DIFF])
        check(f"a new file {what}", c["git"]["ok"] is ok and v["changedFiles"] == ["src/new.py"], v)


def left_beside():
    """What an agent leaves where nobody allowed it to: caches, settings in its home, hooks, plugins."""
    tricks = {
        "settings in its home": "".join(write("/tmp/" + p, t) for p, t in (
            (".config/git/config", "[core]\nwhitespace = -trailing-space\n"), (".config/git/attributes", "* -whitespace -diff\n"),
            (".gitconfig", "[core]\nwhitespace = -trailing-space\n"), (".pytest.ini", "[pytest]\naddopts = --collect-only\n"),
            ("pytest.ini", "[pytest]\naddopts = --co\n"), ("conftest.py", "import os; os._exit(0)\n"),
            (".local/lib/python3.11/site-packages/usercustomize.py", "import os; os._exit(0)\n"))),
        "settings above the tree": "".join(write("/workspace/" + p, t) for p, t in (
            ("pytest.ini", "[pytest]\naddopts = --co\n"), ("conftest.py", "import os; os._exit(0)\n"), ("setup.cfg", "[tool:pytest]\naddopts = --co\n"),
            (".gitattributes", "* -whitespace\n"), (".git/info/attributes", "* -whitespace\n"))),
        "git's own folder": "".join(write("/workspace/source/.git/" + p, t) for p, t in (
            ("info/attributes", "* -whitespace -diff\n"), ("config", "[core]\nwhitespace = -trailing-space\nworktree = /tmp\n"),
            ("info/exclude", "*\n"), ("hooks/post-checkout", "#!/bin/sh\nexit 0\n"))),
        "compiled code": write("/tmp/calc.py", RIGHT) + "import py_compile\nfor d, n in (('__pycache__', 'calc.cpython-311.pyc'), ('.', 'calc.pyc')):\n"
            "    os.makedirs(d, exist_ok=True)\n"
            "    py_compile.compile('/tmp/calc.py', cfile=d + '/' + n, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)\n",
        "caches": write(".pytest_cache/v/cache/lastfailed", "{}") + write(".pytest_cache/conftest.py", "import os; os._exit(0)\n") +
            write("__pycache__/conftest.py", "import os; os._exit(0)\n") + write("__pycache__/test_calc.py", "raise SystemExit(0)\n"),
        "the clock": "import os\nfor f in ('calc.py', 'test_calc.py'):\n    os.utime(f, (2**31, 2**31))\n",
    }
    for what, agent in tricks.items():
        files = {"agent.py": agent + "open('blank.py', 'w').write('x = 1 \\n')\n", "calc.py": WRONG, "test_calc.py": TEST, "blank.py": "x = 1\n"}
        for argv, name in ((UNIT, "unittest"), (PYTEST, "pytest"), (DIFF, "git")):
            v, c = run(files, ["blank.py"], [argv])
            check(f"{what} do not flip {name}", (v["status"], v["error"], c[name]["outcome"]) == ("failed", "verification_failed", "failed"), v)
    # An uploaded file is no by-product, wherever it lies.
    for path in ("__pycache__/notes.txt", ".pytest_cache/README.md"):
        for act in (f"open({path!r}, 'a').write('!')\n", f"__import__('os').unlink({path!r})\n"):
            v, c = run({"agent.py": act, "a.py": "a = 1\n", path: "mine\n"}, ["a.py"], [DIFF])
            check(f"a change of the uploaded {path} is one", v.get("error") == "sandbox_changed_files_mismatch", v)


def flagged():
    """Inside allowed files an agent can cheat: then it can be seen."""
    fewer = HEAD + "    def test_zero(self):\n        pass\n"
    v, c = run({"agent.py": write("test_calc.py", fewer), "calc.py": WRONG, "test_calc.py": TEST}, ["test_calc.py", "calc.py"], [UNIT, PYTEST, DIFF])
    want = [{"flag": "changed_test_file", "path": "test_calc.py"}, {"flag": "fewer_tests"}]
    check("a test that is gone is seen", v["status"] == "completed" and c["unittest"]["flags"] == c["pytest"]["flags"] == want and c["git"]["flags"] == [], v)
    check("with both counts", (c["unittest"]["tests"]["run"], c["unittest"]["uploadTests"]) == (1, {"run": 2, "failed": 1, "skipped": 0}), v)
    kinds = [e["event_type"] for e in events(mine, v["runId"])]
    check("the comparison is an event before the end", kinds.count("check.compared") == 2 and kinds[-1] == "run.completed", kinds)
    result = json.loads(artifact(mine, v["runId"], "result"))
    check("the result tells it too", result["verification"] == v["verification"], result)
    with tempfile.TemporaryDirectory() as d:
        for path, text in (("agent.py", write("test_calc.py", fewer)), ("calc.py", WRONG), ("test_calc.py", TEST)):
            open(os.path.join(d, path), "w").write(text)
        shown = subprocess.run([CLI, "run", "-i", "test", "--agent", "script", "--allow", "test_calc.py", "--check", " ".join(UNIT), d],
                               env=dict(os.environ, PINFOLD_TOKEN=mine), capture_output=True, text=True)
    check("so does the command line", ": 1 run; on the upload: 2 run, 1 failed" in shown.stdout and "note: changed_test_file test_calc.py" in shown.stdout and
          "note: fewer_tests" in shown.stdout, shown)
    v, c = run({"agent.py": write("tests/conftest.py", "collect_ignore = ['test_hard.py']\n"), "calc.py": RIGHT, "tests/test_calc.py": TEST,
                "tests/test_hard.py": "def test_hard():\n    assert False\n"}, ["tests/**"], [PYTEST])
    check("settings that leave tests out are seen", v["status"] == "completed" and
          c["pytest"]["flags"] == [{"flag": "changed_check_setup", "path": "tests/conftest.py"}, {"flag": "fewer_tests"}], v)
    v, c = run({"agent.py": write("calc.py", "import unittest\nraise unittest.SkipTest('no')\n"), "calc.py": WRONG, "test_calc.py": TEST,
                "test_other.py": "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        pass\n"}, ["calc.py"], [UNIT])
    check("a program that has its tests skipped is seen", v["status"] == "completed" and c["unittest"]["flags"] == [{"flag": "fewer_tests"}] and
          c["unittest"]["uploadTests"]["run"] == 3, v)
    v, c = run({"agent.py": write("test_calc.py", TEST + "    def test_more(self):\n        pass\n"), "calc.py": RIGHT, "test_calc.py": TEST},
               ["test_calc.py"], [UNIT])
    check("a test more is a changed test file and no more", v["status"] == "completed" and c["unittest"]["flags"] == want[:1] and
          c["unittest"]["uploadTests"]["run"] == 2 and c["unittest"]["tests"]["run"] == 3, v)
    v, c = run({"agent.py": write("calc.py", RIGHT), "calc.py": WRONG, "test_calc.py": TEST}, ["calc.py"], [UNIT])
    check("an honest repair has no flag and no second box", v["status"] == "completed" and c["unittest"]["flags"] == [] and
          "uploadTests" not in c["unittest"], v)
    # A program can decide how many tests there are: that is seen where the profile has every check counted.
    made = "import unittest, calc\nclass T(unittest.TestCase):\n    pass\nfor n in calc.CASES:\n    setattr(T, f'test_{n}', lambda self, n=n: self.assertGreater(n, 1))\n"
    for agent, flags in (("script", []), ("counted", [{"flag": "fewer_tests"}])):
        v, c = run({"agent.py": write("calc.py", "CASES = [2]\n"), "calc.py": "CASES = [1, 2]\n", "test_calc.py": made}, ["calc.py"], [UNIT], agent=agent)
        check(f"a program that leaves a test out, with the profile {agent}", v["status"] == "completed" and c["unittest"]["flags"] == flags, v)
    # A comparison that cannot end is given up, and costs the run nothing but time.
    endless = "import time\ntime.sleep(60)\n"
    v, c = run({"agent.py": write("test_calc.py", TEST), "calc.py": RIGHT, "test_calc.py": endless + TEST}, ["test_calc.py"], [UNIT], brief)
    check("an upload whose tests do not end fails nothing", v["status"] == "completed" and c["unittest"]["flags"] == want[:1] and
          "uploadTests" not in c["unittest"], v)


def programs_of_git():
    """Whatever the agent's repository and home tell git to run, nobody outside its box does, and no check."""
    marker = f"/tmp/pinfold-marker-{os.getpid()}"  # a name that means something in its box and on the host alike
    plant = r"""
import os, subprocess
x = '/workspace/hooks/run'
def program(path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, 'w').write('#!/bin/sh\ntouch MARKER\ncat\nexit 0\n'); os.chmod(path, 0o755)
program(x)
for n in ('pre-commit', 'post-checkout', 'post-index-change', 'fsmonitor-watchman', 'reference-transaction', 'post-rewrite', 'pre-auto-gc'):
    program('.git/hooks/' + n); program('/workspace/hooks/' + n)
keys = {'core.fsmonitor': x, 'core.hooksPath': '/workspace/hooks', 'diff.external': x, 'core.pager': x, 'core.editor': x, 'core.sshCommand': x,
        'core.askPass': x, 'credential.helper': x, 'alias.diff': '!' + x, 'filter.z.clean': x, 'filter.z.smudge': x,
        'filter.z.required': 'true', 'diff.z.textconv': x, 'diff.z.command': x, 'gpg.program': x, 'commit.gpgSign': 'true', 'include.path': '/workspace/more'}
for where in ('.git/config', '/tmp/.gitconfig'):
    for k, v in keys.items():
        subprocess.run(['git', 'config', '-f', where, k, v])
for a in ('.git/info/attributes', '/tmp/.config/git/attributes'):
    os.makedirs(os.path.dirname(a), exist_ok=True)
    open(a, 'w').write('* filter=z diff=z\n')
open('a.py', 'w').write('x = 1 \n')
subprocess.run(['git', 'diff'], env={'PATH': '/usr/bin:/bin', 'HOME': '/tmp'}, stdout=subprocess.DEVNULL)
open('said.txt', 'w').write(f"{os.path.exists('MARKER')}\n")
""".replace("MARKER", marker)
    probe = f"import os, unittest\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertFalse(os.path.exists('{marker}'))\n"
    settings = lambda: [os.path.exists(p) and open(p).read() for p in ("/root/.gitconfig", "/etc/gitconfig")]
    before = settings()
    v, c = run({"agent.py": plant, "a.py": "x = 1\n", "said.txt": "\n", "test_a.py": probe}, ["a.py", "said.txt"], [UNIT, DIFF])
    check("what was planted works in its box", "+True" in artifact(mine, v["runId"], "patch").splitlines(), v)
    check("and in no check", (c["unittest"]["ok"], c["git"]["ok"]) == (True, False), v)
    for name in ("request", "events", "checkpoint", "patch", "test_log", "result"):
        artifact(mine, v["runId"], name)
    check("nor outside", not os.path.exists(marker) and not os.path.exists(INSTANCE + marker))
    check("no git of the host was told to trust a folder", before == settings())


for f in (nothing_ran, programs_of_git, outcomes, counts, new_files, left_beside, flagged):
    case(f.__name__, f)
done()
