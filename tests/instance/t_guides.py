#!/usr/bin/python3 -B
"""Each box of docs/using.md that says it is a shell's, run as it is, in one shell, from an empty folder, by somebody who has a token and a
device's. Each route of the API is asked there, or named at the end."""
import re, subprocess, tempfile
from client import *

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ELSEWHERE = {  # what is said there in words, and not run
    "POST /v1/pair", "DELETE /v1/devices/{label}", "DELETE /v1/runs/{runId}/approvals/{requestId}/grant", "GET /metrics",
    "POST /v1/push/subscriptions", "DELETE /v1/push/subscriptions"}
text = open(TOP + "/docs/using.md").read()
boxes = re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S)
check("the guide has its boxes", len(boxes) > 6, len(boxes))


def asked(method, path):
    """Does a line of the boxes ask for it?"""
    shape = re.escape(path).replace(r"\{runId\}", r"\$RUN").replace(r"\{requestId\}", r"\$\{CARD[^}]*\}").replace(r"\{name\}", r"\w+").replace(r"\{sourceId\}", r"\$SOURCE")
    for line in re.sub(r"\\\n", " ", "\n".join(boxes)).split("\n"):
        for url in re.findall(r'"\$PINFOLD_URL(/[^"?]*)', line):
            how = "DELETE" if "-X DELETE" in line else "POST" if "-X POST" in line or " -d " in line or url == "/v1/runs" and "?" not in line else "GET"
            if re.fullmatch(shape, url) and how == method:
                return True
    return False


for row in (line.split("\t") for line in open(TOP + "/spec/routes.tab")):
    if row[0] == "public" and f"{row[1]} {row[2]}" not in ELSEWHERE:
        check(f"{row[1]} {row[2]} is in the guide", asked(row[1], row[2]))
codes = {line.split("\t")[i] for table, i in (("errors", 1), ("reasons", 0)) for line in open(f"{TOP}/spec/{table}.tab") if line.count("\t") > 1}
for line in text.split("\n"):
    for code in re.findall(r"`([a-z]+(?:_[a-z]+)+)`", line) if line.startswith("|") else ():
        check(f"{code} exists", code in codes or code == "test_log")
with tempfile.TemporaryDirectory(prefix="pinfold-guide.") as home:
    env = {"PATH": os.path.dirname(CLI) + ":/usr/sbin:/usr/bin:/sbin:/bin", "HOME": home, "LANG": "C.UTF-8", "PINFOLD_URL": URL, "no_proxy": "*",
           "PINFOLD_TOKEN": token(), "PINFOLD_DEVICE_TOKEN": token("device-token")}
    # What a box made is there for the next ones: one shell, which says how far it came.
    script = "set -eu\n" + "".join(f"{b}\necho \"== {i} ==\" >&3\n" for i, b in enumerate(boxes))
    with open(home + "/said", "w") as said, open(home + "/came", "w+") as came:
        try:
            r = subprocess.run(["bash", "-c", script], cwd=home, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT,
                               timeout=3 * PATIENCE, preexec_fn=lambda: os.dup2(came.fileno(), 3), pass_fds=(3,) if came.fileno() == 3 else (), close_fds=False)
            status = r.returncode
        except subprocess.TimeoutExpired:
            status = "it did not end"
        came.seek(0)
        done_boxes = came.read().count("==") // 2
    out = open(home + "/said", errors="replace").read()
    for i, b in enumerate(boxes):
        check(f"box {i + 1} of the guide: {b.splitlines()[0][:60]}", i < done_boxes, (status, out[-1500:]) if i == done_boxes else "")
done()
