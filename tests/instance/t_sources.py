#!/usr/bin/python3
"""Runs of a source: an archive goes up, is unpacked in a box of its own, and is then repaired like any other upload; one that is no
good fails with what is wrong with it, before anything was asked of a model."""
from client import *
import gzip, io, shutil, subprocess, tarfile, tempfile, zlib

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
mine = token()
BROKEN = "def add(a, b):\n    return a - b\n"
TEST = "import unittest\nfrom calc import add\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(add(1, 2), 3)\n"
CALC = {"calc.py": BROKEN, "test_calc.py": TEST}
UNITTEST = [["python3", "-m", "unittest", "discover"]]


def tar(files, *more):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as a:
        for name, text in files.items():
            t = tarfile.TarInfo(name)
            t.size, t.mode = len(text), 0o755 if name.endswith("tool.py") else 0o644
            a.addfile(t, io.BytesIO(text.encode()))
        for t in more:
            a.addfile(t)
    return out.getvalue()


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


KINDS = {"tar": ("application/x-tar", lambda b: b), "gzip": ("application/gzip", gzip.compress), "zstd": ("application/zstd", zstd)}


def send(archive, kind="tar"):
    status, _, body = call("POST", "/v1/sources", KINDS[kind][1](archive), mine, [("Content-Type", KINDS[kind][0])])
    assert status in (200, 201), (status, body[:300])
    return json.loads(body)["sourceId"]


def begin(source, allowed, agent="builtin", checks=UNITTEST, **more):
    body = {"instruction": "Repair the test.", "source": source, "allowedPaths": allowed, "checks": checks, "agent": agent, **more}
    status, _, answer = call("POST", "/v1/runs", body, mine)
    assert status == 202, (status, answer[:300])
    return json.loads(answer)["runId"]


def unpacked(run):
    return [e["data"] for e in events(mine, run) if e["event_type"] == "run.source_unpacked"]


def repaired(kind, many):
    """Three thousand files, of which one is wrong."""
    files = dict(CALC, **{f"pkg{i % 40}/mod{i}.py": f"x = {i}\n" * 40 for i in range(many)}, **{"pkg0/tool.py": "#!/usr/bin/python3\n"})
    run = begin(send(tar(files), kind), ["calc.py"])
    v = until(mine, run)
    check(f"{kind} of {len(files)} files: repaired", (v["status"], v.get("terminalReason")) == ("completed", "completed"), v)
    patch = artifact(mine, run, "patch")
    check(f"{kind}: the patch is of that file alone", patch.count("diff --git") == 1 and "-    return a - b\n+    return a + b\n" in patch, patch)
    said = unpacked(run)
    check(f"{kind}: what came of it is told", said == [{"accepted": True, "files": len(files), "bytes": sum(map(len, files.values()))}], said)
    kept = json.loads(artifact(mine, run, "checkpoint"))
    check(f"{kind}: the checkpoint has what was changed", [f["path"] for f in kept["base"]] == ["calc.py"] == [f["path"] for f in kept["result"]], kept)
    return v


repaired("gzip", 3000)
repaired("zstd", 300)

# By the command line: a folder of a repository that is too large for one request.
with tempfile.TemporaryDirectory() as tree:
    shutil.copytree(TOP + "/examples/calc", tree, dirs_exist_ok=True)
    os.makedirs(tree + "/src")
    for n in range(3000):
        open(f"{tree}/src/mod{n}.py", "w").write(f"x = {n}\n")
    subprocess.run(["git", "init", "-q", tree], check=True)
    p = subprocess.run([CLI, "run", "-i", "Repair the test.", "--check", "python3 -m unittest discover", "--allow", "calc.py", tree],
                       env=dict(os.environ, PINFOLD_TOKEN=mine), capture_output=True, text=True, timeout=2 * PATIENCE)
    check("pinfold run of 3,002 files: repaired", p.returncode == 0 and "uploading 3002 files (" in p.stderr and "as an archive)" in p.stderr, (p.returncode, p.stderr[-500:]))
    run = next(l.split()[1] for l in p.stderr.splitlines() if l.startswith("run "))
    check("and its patch is right", artifact(mine, run, "patch").count("diff --git") == 1 and "-    return a - b\n+    return a + b\n" in artifact(mine, run, "patch"))

# Programs stay such, and what an agent takes away from them is seen.
RUNS = "import os\nassert os.access('bin/tool.py', os.X_OK) and not os.access('a.py', os.X_OK)\nos.chmod('bin/tool.py', 0o644)\n"
run = begin(send(tar({"agent.py": RUNS, "a.py": "", "bin/tool.py": "#!/bin/sh\n"})), ["bin/tool.py"], "script", [["git", "diff", "--check"]])
v = until(mine, run)
check("a file can be executed", v["status"] == "completed" and "old mode 100755\nnew mode 100644" in artifact(mine, run, "patch"), v)

# What fails, and where. Nothing was asked of a model.
link = tarfile.TarInfo("link.py")
link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
z = zlib.compressobj(9, wbits=31)
zeros = bytes(1 << 20)
bomb = b""
for i in range(200):
    t = tarfile.TarInfo(f"z{i}.txt")
    t.size = 1 << 20
    bomb += z.compress(t.tobuf()) + z.compress(zeros)
bomb += z.flush()
KINDS["raw"] = ("application/gzip", lambda b: b)
CASES = [
    ("a bomb", bomb, "raw", "source_tree_too_large", "z122.txt"),
    ("a link", tar(CALC, link), "gzip", "source_entry_refused", "link.py"),
    ("a name that leads up", tar(dict(CALC, **{"../up.py": ""})), "tar", "invalid_source_path", "../up.py"),
    ("an extension that the tenant does not have", tar(dict(CALC, **{"logo.png": "x"})), "zstd", "unsupported_source_type", "logo.png"),
    ("names that differ by case", tar(dict(CALC, **{"CALC.py": "x"})), "tar", "conflicting_source_path", "calc.py"),
    ("a path that is not there", tar({"other.py": "x"}), "tar", "unbound_allowed_path", "calc.py"),
    ("half of it", tar(CALC)[:1200], "tar", "invalid_archive", None),
    ("a file that is too large", tar(dict(CALC, **{"big.txt": "x" * 8000001})), "gzip", "source_file_too_large", "big.txt"),
]
runs = []
for name, archive, kind, error, path in CASES:
    runs.append(begin(send(archive, kind), ["calc.py"]))
for (name, archive, kind, error, path), run in zip(CASES, runs):
    v = until(mine, run)
    seen = (v["status"], v.get("error"), v.get("terminalReason"))
    said = unpacked(run)
    check(f"{name}: refused", seen == ("failed", error, "source_refused"), seen)
    check(f"{name}: it is told where", len(said) == 1 and said[0]["error"] == error and (path is None or said[0]["path"] == path), said)
    check(f"{name}: no model was asked", v["usage"]["modelRequests"] == 0 and
          not any(e["event_type"] in ("run.agent_exited", "run.changes_judged") for e in events(mine, run)), v)
small = until(mine, begin(send(tar({"agent.py": "", **{f"t{i}.txt": "x" * 5000000 for i in range(4)}}), "gzip"), ["agent.py"], "script"))
check("no room in the agent's workspace", (small["status"], small["error"]) == ("failed", "source_exceeds_workspace"), small)

# A cancel while it is unpacked; and its box is gone afterwards, so that the next one finds its place.
run = begin(send(gzip.compress(tar({f"d{i % 100}/f{i}.txt": "x" * 3000 for i in range(19000)} | CALC)), "raw"), ["calc.py"])
until(mine, run, lambda v: v.get("phase") == "staging" or v["status"] in TERMINAL)
call("POST", f"/v1/runs/{run}/cancel", {}, mine)
v = until(mine, run)
check("a cancel while it is unpacked", (v["status"], v["terminalReason"]) == ("cancelled", "cancelled_by_request"), v)
seen = {e["event_type"] for e in events(mine, run)}
check("nothing was done behind it", "run.source_unpacked" in seen or not seen & {"run.agent_exited", "run.changes_judged", "check.started"}, seen)
done()
