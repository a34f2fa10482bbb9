#!/usr/bin/python3
"""An agent that asks and obeys: its instruction is a command for the shell, which it runs if a person allows it.
docs/approvals.md says how to have it run."""
import hashlib, json, os, subprocess, sys, time, urllib.error, urllib.request, uuid

os.chdir("/workspace")
task, token = json.load(open("request.json")), {}
for name in "run", "event", "approval":
    token[name] = open(f".pinfold-{name}-token").read().strip()
    os.remove(f".pinfold-{name}-token")  # what is run below must not read them


def call(path, token, body=None):
    """Status and answer. What breaks off is tried again: between two lines hours may have passed."""
    while True:
        request = urllib.request.Request(f"{task['gateway_url']}/runs/{task['run_id']}/{path}", body and json.dumps(body).encode(),
                                         {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            if refused.code < 500:
                return refused.code, {}
        except OSError:
            pass
        time.sleep(0.5)


def event(sequence, kind, data):
    line = {"event_type": kind, "run_id": task["run_id"], "task_id": task["task_id"], "sequence": sequence, "data": data}
    return call("events", token["event"], {"lines": [json.dumps(line) + "\n"]})


def end(well, summary):
    json.dump({"status": "completed" if well else "failed", "summary": summary}, open("response.json", "w"))
    sys.exit(not well)


command, question, status = task["instruction"], str(uuid.uuid4()), 202
event(1, "approval.requested", {"request_id": question, "effect": "execute", "preview": command, "reason": "It is what I was told to do."})
while status == 202:
    time.sleep(0.5)
    status, answer = call("approvals/" + question, token["approval"])
same = answer.get("digest") == hashlib.sha256(b"execute\0" + command.encode()).hexdigest()
if status != 200 or not same or answer.get("decision") not in ("allow_once", "allow_session"):
    end(False, "I was not allowed to: %s." % answer.get("decision", answer.get("status", status)))
done = subprocess.run(["/bin/sh", "-c", command], cwd="source", capture_output=True, text=True, errors="replace")
event(2, "tool.output", {"tool": "sh", "ok": done.returncode == 0, "output": (done.stdout + done.stderr)[:8000]})
end(done.returncode == 0, "The command ended with %d." % done.returncode)
