#!/usr/bin/env python3
"""Gateway call against the same call straight to the scripted model, at 1 and 16 callers; ratios of one run.

Run as root in a build folder (or with PINFOLD_BUILD): bench/gateway.py [CALLS]
"""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "gateway"))
from rig import *  # noqa: E402,F403


def main():
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
    top = folder()
    model = Model(top, "main", {"model": MODEL, "rules": [{"answer": {"content": "ok"}}]})
    rig = Rig(top)
    try:
        rig.tell("secret", "run-token", RUN_SECRET)
        rig.tell("secret", "key", KEY)
        rig.tell("provider", "p-main", model.url, model.ca, "key", 0)
        rig.tell("profile", "main", "p-main", MODEL)
        rig.start()
        for callers in (1, 16):
            run = rig.run(budget=calls + 100)
            subprocess.run([os.path.join(BUILD, "bench/gateway_call"), str(run.port), str(model.port), model.ca, MODEL,
                            str(calls), str(callers)], check=True, env=dict(os.environ, TOKEN=run.token()))
        with open("/proc/%d/status" % rig.pid) as f:
            print("".join(line for line in f if line.startswith(("VmRSS", "RssAnon", "Threads"))), end="")
    finally:
        rig.stop()
        model.stop()
        remove(top)


main()
