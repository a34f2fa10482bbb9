"""Attacks on what a machine has only once: each is a program that takes all it can get. Tests and bench/storms.py use them."""

# Forks, and so do the children, until the time is over; a refused fork does not stop it.
FORKS = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
# Gives up at the first refusal.
FORKS_ONCE = """
import os, time
while True:
    if os.fork() == 0:
        time.sleep(60)
"""
MEMORY = "held = []\nwhile True:\n    held.append(b'x' * (1 << 20))\n"
DISK = """
for n in range(1000):
    with open(f"/workspace/fill-{n}", "wb") as f:
        f.write(bytes(1 << 20))
"""
FILES = "for n in range(2000000):\n    open(f'/workspace/empty-{n}', 'w').close()\n"
TMP = "for n in range(1000):\n    open(f'/tmp/fill-{n}', 'wb').write(bytes(1 << 20))\n"
# A hundred million bytes.
OUTPUT = "import os\nblock = b'x' * 99999 + b'\\n'\nfor n in range(1000):\n    os.write(1, block)\n"
# The same as events, or as many as a slow machine takes within 100 s; what is refused is counted.
EVENTS = """
import collections, json, http.client, os, time
begun = time.monotonic()
run, token = os.environ["PINFOLD_RUN_ID"], open("/workspace/.pinfold-event-token").read()
said, sent, c = collections.Counter(), 0, http.client.HTTPConnection("127.0.0.1", 9797)
lines = [json.dumps({"event_type": "flood", "run_id": run, "task_id": run, "sequence": 1, "data": {"x": "y" * 3500}}) + chr(10)] * 30
body = json.dumps({"lines": lines})
while sent < 100 << 20 and time.monotonic() - begun < 100:
    c.request("POST", f"/internal/v1/runs/{run}/events", body, {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    answer = c.getresponse()
    answer.read()
    said[answer.status] += 1
    sent += len(body)
open("report.txt", "w").write(" ".join(f"{k}={v}" for k, v in sorted(said.items())) + "\\n")
"""
TREE = """
import os, time
for n in range(1000):
    os.posix_spawn("/bin/sleep", ["sleep", "600"], {})
open("report.txt", "w").write("1000\\n")
"""
# The same, and does not end by itself.
TREE_STAYS = TREE + "time.sleep(600)\n"
PROCESSOR = "import os\nfor n in range(3):\n    os.fork()\nwhile True:\n    pass\n"
ONE_FILE = """
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
with open("/workspace/large", "wb") as f:
    for n in range(8):
        f.write(bytes(1 << 20))
"""
OPEN_FILES = """
import errno
held = []
try:
    while True:
        held.append(open("/dev/null"))
except OSError as e:
    open_at_once, held = len(held), []
    open("report.txt", "w").write(f"{errno.errorcode[e.errno]} {open_at_once < 64}\\n")
"""
