#!/usr/bin/python3
"""What Pinfold shows of itself: pinfold attack, as an operator runs it; and no key is left anywhere."""
from client import *
import os, subprocess

env = dict(os.environ, PINFOLD_ROOT=INSTANCE)
CLASSES = """files processes kernel network sockets vsock descriptors terminals time tenants gateway collector checks resources bridge""".split()
# What a kernel may lack, or a build with sanitizers cannot say. Nothing else may be skipped.
MAY_SKIP = {"net-dns", "net-dns-tcp", "call-int80", "near-core", "use-outlive", "files-cut", "files-ioctl", "sock-abstract-dgram"}


def attack(*words):
    r = subprocess.run([CLI, "attack", *words], env=env, capture_output=True, text=True)
    return r.returncode, r.stdout, r.stderr


def suite():
    status, out, err = attack("--json")
    v = json.loads(out)
    print(f"# {v['held']} of {v['total']} attacks held, {v['skipped']} skipped: " + " ".join(a["id"] for a in v["attacks"] if a["held"] is None))
    lost = [(a["id"], a["outcome"], a["detail"]) for a in v["attacks"] if a["held"] is False]
    check("every attack holds", status == 0 and lost == [] and v["held"] == v["total"], (status, lost, err[-500:]))
    check("there are many", v["total"] >= 250 and v["total"] + v["skipped"] == len(v["attacks"]), (v["total"], v["skipped"]))
    check("of every class", sorted({a["class"] for a in v["attacks"] if a["held"]}) == sorted(CLASSES))
    skipped = {a["id"]: a["detail"] for a in v["attacks"] if a["held"] is None}
    check("hardly any is skipped", set(skipped) <= MAY_SKIP, skipped)
    left = [l for t in ("attack", "attack-neighbour") for l in operator("token", "list", "--tenant", t).splitlines()[1:] if "revoked" not in l]
    check("no token of it is left", left == [], left)


def table():
    status, out, _ = attack("collect-link", "net-tcp-out")
    lines = out.splitlines()
    check("named attacks alone are tried", status == 0 and len(lines) == 3 and lines[2] == "2 of 2 attacks held", out)
    check("a line says what and how", lines[0].startswith("held ") and "network" in lines[0] and "ENETUNREACH" in lines[0], lines[0])
    status, out, _ = attack("--class", "collector")
    check("a class is tried", status == 0 and all(" collector " in l for l in out.splitlines()[:-1]) and len(out.splitlines()) > 15, out)
    status, out, _ = attack("--list")
    check("a list tries nothing", status == 0 and len(out.splitlines()) >= 250 and "held" not in out.split("\n")[0])
    for words in (["no-such"], ["--class", "no-such"], ["--what"]):
        check(f"attack {' '.join(words)} is wrong use", attack(*words)[0] == 2)


for f in (suite, table):
    case(f.__name__, f)
done()
