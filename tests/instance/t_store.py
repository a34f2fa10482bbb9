#!/usr/bin/env python3
"""The store of a whole instance: figures, check, backup, retention and compaction while runs go on."""
import os, shutil, stat, subprocess, tempfile
from client import *

mine = token()
env = dict(os.environ, PINFOLD_ROOT=INSTANCE)


def store(*words):
    done = subprocess.run([CLI, "--json", "store", *words], env=env, capture_output=True, text=True, timeout=300)
    lines = [json.loads(x) for x in done.stdout.splitlines()]
    return done.returncode, lines, done.stderr


def whole(when):
    status, lines, said = store("check", "--contents")
    check(f"the store is whole {when}", status == 0 and lines[-1]["ok"], (lines[-5:], said))


agent = "open('agent.py', 'a').write('# changed\\n')\n"
runs = [start(mine, {"agent.py": agent}, agent="script", checks=[["git", "diff", "--check"]]) for _ in range(4)]
whole("while runs go on")
folder = tempfile.mkdtemp(prefix="pinfold-backup-")
os.chmod(folder, 0o700)
try:
    where = os.path.join(folder, "b")
    status, lines, said = store("backup", where)
    check("a backup while runs go on", status == 0 and lines[-1]["ok"], (lines, said))
    check("is root's alone", stat.S_IMODE(os.stat(where).st_mode) == 0o700)
    status, lines, said = store("check", where)
    check("and is what its manifest says", status == 0 and lines[-1]["ok"], (lines, said))
    held = b"".join(open(os.path.join(d, f), "rb").read() for d, _, fs in os.walk(where) for f in fs)
    check("it holds no token", mine.encode() not in held and token("device-token").encode() not in held)
    status, _, said = store("restore", where)
    check("a restore wants the service stopped", status == 1 and "stop it first" in said, said)
finally:
    shutil.rmtree(folder)
for run in runs:
    until(mine, run)
whole("when they have ended")
status, lines, said = store("prune")
check("nothing is too old", status == 0 and lines[-1]["runs"] == 0, (lines, said))
status, lines, said = store("compact")
check("compaction", status == 0 and lines[-1]["bytesAfter"] <= lines[-1]["bytesBefore"], (lines, said))
status, lines, said = store("stat")
check("figures", status == 0 and lines[0]["runs"] >= 4 and lines[0]["form"] >= 2 and lines[0]["generation"] >= 1, (lines, said))
for run in runs:
    check("a run is still there", get(f"/v1/runs/{run}", mine)[0] == 200)
whole("at the end")
done()
