#!/usr/bin/python3 -B
"""The agents that people use, as npm distributes them, in real boxes, through the real gateway, against a scripted provider: agents and cases
are tables of cases.py. None of the agents ever holds a key. For the long list: it fetches some 600 MB from the registry.

    tests/agents/run.py --build DIR [--keep FOLDER] [--case NAME,...] [AGENT...]     FOLDER: below /usr, where agents stay installed
"""
import argparse, os, sys, time, traceback
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
from cases import AGENTS, CASES, variants
from stage import Score, Stage


def every_case(stage, name, cases):
    """Of one agent, one after the other; what one breaks the next does not feel."""
    for case in cases:
        if case in AGENTS[name].without:
            continue
        stage.upstream.seat(name).clear()
        since = time.monotonic()
        try:
            CASES[case](stage, name)
            stage.end(name)
        except Exception:
            stage.check(f"{name}: {case}", False, traceback.format_exc())
        print(f"# {name} {case} {time.monotonic() - since:.0f} s", flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", required=True)
    p.add_argument("--keep")
    p.add_argument("--case", default=",".join(CASES))
    p.add_argument("agents", nargs="*")
    a = p.parse_args()
    agents = {n: AGENTS[n] for n in a.agents or AGENTS}
    score = Score()
    stage = Stage(a.build, agents, score, a.keep)
    try:
        agents = {n: agents[n] for n in stage.install()}
        for name, agent in agents.items():
            stage.profiles(name, variants(name, agent))
        stage.reload()
        with ThreadPoolExecutor(3) as pool:
            # Those that take longest first, so that none is alone at the end.
            slow = sorted(agents, key=lambda n: n not in ("opencode", "gemini", "copilot", "qwen"))
            list(pool.map(lambda name: every_case(stage, name, a.case.split(",")), slow))
    finally:
        stage.close()
    print(f"{score.good} passed, {score.bad} failed")
    return score.bad > 0


sys.exit(main())
