#!/usr/bin/python3 -B
"""
Compares what clients were told (their journals), what the model was asked (its log), and what agents said, with what
the store holds, as read by tests/fault/dump from a copy of it; and the machine with an empty one. Asks the product
nothing. Works on a folder of evidence, so that a folder that was kept can be looked at again:

    checker.py FOLDER

FOLDER holds dump.txt, files.json (the files of the store's blobs: size and time, the time of stored's start),
machine.json (before and now: what machine.py sees), journals/, model.log, audit/, shown.json (usage as shown).
"""
import collections, hashlib, json, os, re, sys
from following import ENDS
from rows import Store, states

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KINDS = ("lost acknowledgements", "double executions", "overspent budgets", "leftovers", "untrue states")
LOST, DOUBLE, SPENT, LEFT, UNTRUE = KINDS
DECISIONS = ("none", "allow_once", "allow_session", "deny", "cancel")  # as in lib/names.h
CALL = re.compile(r"chaos run=(\S+) mark=(\w+) call=(\d+)")


class Told:
    """What clients were told of one run."""

    def __init__(self):
        self.tenant = self.key = self.nonce = self.ended = self.cancelled = None
        self.most, self.created, self.deleting, self.deleted, self.seen = None, False, False, False, []
        self.followed = []


class Checker:
    def __init__(self, folder):
        self.folder, self.found = folder, []
        self.told = collections.defaultdict(Told)
        self.keys, self.conflicts, self.nonces = {}, [], {}
        self.upstream, self.marks = collections.Counter(), collections.defaultdict(set)
        self.executed = collections.defaultdict(set)  # nonce: runs
        self.places = {}                              # how far each growing file was read
        self.states, self.public, self.final = states(TOP)
        self.finished = {}  # run: its final record at an earlier look
        self.decided, self.tried = {}, collections.defaultdict(set)  # (run, request): what was acknowledged, what was asked for
        self.heard, self.finished_heard = 0, set()
        self.followed = collections.Counter()  # what followers saw: runs, events, breaks
        self.store = None   # as it was at the last look

    def bad(self, kind, text):
        self.found.append((kind, text))

    def lines(self, path):
        """The whole lines of a file that were not there last time."""
        at = self.places.get(path, 0)
        try:
            with open(path, "rb") as f:
                f.seek(at)
                data = f.read()
        except OSError:
            return []
        end = data.rfind(b"\n") + 1
        self.places[path] = at + end
        return data[:end].splitlines()

    # --- what was promised ---

    def read_journals(self):
        folder = os.path.join(self.folder, "journals")
        for name in sorted(os.listdir(folder)):
            tenant, asked = name.split("-")[0], None
            for line in self.lines(os.path.join(folder, name)):
                j = json.loads(line)
                if "trouble" in j:
                    self.bad(UNTRUE, f"{name}: an answer that makes no sense: {j}")
                elif "internal" in j:
                    self.bad(UNTRUE, f"{name}: {j['path']} was told of a bug: {j['internal']}")
                elif "ask" in j:
                    asked = j
                    if j["ask"] == "delete":
                        self.told[j["run"]].deleting = True
                    elif j["ask"] == "decide":
                        self.tried[j["run"], j["request"]].add(j["decision"])
                elif asked is not None and asked["n"] == j["n"]:
                    self.take(name, tenant, asked, j)

    def take(self, name, tenant, asked, j):
        what, status, run = asked["ask"], j["status"], j.get("run")
        if status not in (0, 200, 202, 204, 404, 409, 429) and status < 500:
            self.bad(UNTRUE, f"{name}: {what} of {run} was refused with {status}")
        t = self.told[run] if run else None
        if t is not None:
            t.tenant = tenant
        if what == "create" and status == 202:
            t.created, t.most = True, j["most"]
            t.nonce = j["nonce"]
            if j["key"] is not None:
                if self.keys.setdefault((tenant, j["key"]), run) != run:
                    self.bad(DOUBLE, f"{name}: key {j['key']} named run {self.keys[tenant, j['key']]}, then run {run}")
        elif what in ("show", "events", "artifacts", "cancel", "follow") and status == 404 and t.created and not t.deleting:
            self.bad(LOST, f"{name}: run {run} was acknowledged and is unknown to {what}")
        elif what == "show" and status == 200 and j["state"] in ("completed", "failed", "cancelled"):
            now = (j["state"], j["reason"], j["finished"], j["error"], j["used"])
            if not j["reason"]:
                self.bad(UNTRUE, f"run {run} is {j['state']} without a terminalReason")
            if "internal_error" in (j["reason"], j["error"]):  # what passes is no bug
                self.bad(UNTRUE, f"run {run} is said to have ended by a bug: {j['reason']}, {j['error']}")
            if t.ended not in (None, now):
                self.bad(UNTRUE, f"run {run} ended as {t.ended}, then as {now}")
            t.ended = now
        elif what == "cancel" and status == 202:
            t.cancelled = "cancelled"
        elif what == "cancel" and status == 200 and t.cancelled is None:
            t.cancelled = j["state"]
        elif what == "delete" and status == 204:
            t.deleted = True
        elif what == "decide" and status == 200:
            key, now = (run, asked["request"]), (j["decision"], j["at"])
            if key in self.decided:
                self.bad(DOUBLE, f"question {key} was decided as {self.decided[key]}, then as {now}")
            self.decided[key] = now
            if j["decision"] != asked["decision"]:
                self.bad(UNTRUE, f"{name}: question {key} was decided with {asked['decision']}, and the answer is {now}")
        elif what == "events" and status == 200:
            self.take_events(run, t, j["seen"])
        elif what == "follow" and status == 204:
            self.take_followed(name, run, t, j)
        elif what == "list" and status == 200:
            self.take_list(name, tenant, set(j["found"]), asked["t"])
        if status == -1:
            self.bad(UNTRUE, f"{name}: events of run {run} are not lines of JSON")

    def take_events(self, run, t, seen):
        if [s for s, _ in seen] != list(range(1, len(seen) + 1)):
            self.bad(UNTRUE, f"run {run}: sequences {[s for s, _ in seen]}")
        short = min(len(seen), len(t.seen))
        if seen[:short] != t.seen[:short]:
            self.bad(LOST, f"run {run}: events that were read before are others now")
        if len(seen) > len(t.seen):
            t.seen = seen

    def take_followed(self, name, run, t, j):
        """To its end, over however many connections: each event once, in order, and nothing behind the terminal one."""
        seen, ends = j["seen"], [s for s, _, kind in j["seen"] if kind in ENDS]
        self.followed.update(runs=1, events=len(seen), breaks=j["breaks"])
        if [s for s, _, _ in seen] != list(range(1, len(seen) + 1)):
            self.bad(UNTRUE, f"{name}: the stream of run {run} told sequences {[s for s, _, _ in seen]}")
        if ends != [len(seen)]:
            self.bad(LOST, f"{name}: the stream of run {run} was over after {seen[-1:]}, its ends are {ends}")
        t.followed.append([[s, i] for s, i, _ in seen])

    def take_list(self, name, tenant, found, since):
        """What was acknowledged to this client itself, before it asked."""
        for run, t in self.told.items():
            if t.tenant == tenant and t.created and not t.deleting and run not in found and t.nonce.startswith(name.removesuffix(".journal") + "-"):
                self.bad(LOST, f"{name}: run {run} was acknowledged and is not in the list")

    def read_model(self):
        for line in self.lines(os.path.join(self.folder, "model.log")):
            m = CALL.search(line.decode("utf-8", "replace"))
            if m:
                self.upstream[m[1]] += 1
                self.marks[m[1]].add(m[2])

    # --- the store ---

    def check_store(self, store):
        for text in store.bad:
            self.bad(UNTRUE, "the store holds what cannot be read: " + text)
        runs = {run: (tenant, r) for (tenant, run), r in store.run.items()}
        events = collections.defaultdict(list)
        for (tenant, run, sequence), e in store.event.items():
            events[run].append((sequence, e))
        for run, t in self.told.items():
            if t.created and run not in runs and not t.deleting:
                self.bad(LOST, f"run {run} was acknowledged and does not exist")
            if t.deleted and run in runs:
                self.bad(LOST, f"run {run} was deleted, and is there")
        for run, (tenant, r) in runs.items():
            self.check_run(store, tenant, run, r, sorted(events.get(run, []), key=lambda x: x[0]))
        for run in events:
            if run not in runs:
                self.bad(LEFT, f"events of run {run}, which does not exist")
        self.check_questions(store, runs)
        for (tenant, key), run in self.keys.items():
            have = store.idempotency.get((tenant, key))
            if have is None or have["run"] != run:
                self.bad(LOST, f"key {key} of {tenant} was acknowledged for run {run}; the store has {have}")
        for tenant, run in store.capability:
            if run not in runs or self.states[runs[run][1]["state"]] in self.final:
                self.bad(LEFT, f"a capability of run {run}, which has ended")
        if {(t, r) for t, _, r in store.run_by_age} != set(store.run):
            self.bad(UNTRUE, "the index of runs by age and the runs differ")
        still = {k for k, r in store.run.items() if self.states[r["state"]] not in self.final}
        if set(store.run_open) != still:
            self.bad(UNTRUE, "the index of open runs and the runs differ")
        gone = {(str(r["artifacts_gone"]), t, run) for (t, run), r in store.run.items() if (t, run) not in still}
        if {(stage, t, run) for stage, _, t, run in store.run_ended} != gone:
            self.bad(UNTRUE, "the index of ended runs and the runs differ")
        for k in still:
            self.bad(UNTRUE, f"run {k[1]} of {k[0]} is still {self.states[store.run[k]['state']]}, phase {store.run[k]['phase']}")
        self.check_budgets(runs)
        self.check_blobs(store, runs)

    def check_run(self, store, tenant, run, r, events):
        state, t = self.public[r["state"]], self.told.get(run)
        if self.states[r["state"]] not in self.final:
            return
        if not r["terminal_reason"]:
            self.bad(UNTRUE, f"run {run} is {state} without a terminalReason")
        if [s for s, _ in events] != list(range(1, r["last_sequence"] + 1)):
            self.bad(UNTRUE, f"run {run}: event sequences {[s for s, _ in events]}, last {r['last_sequence']}")
        ends = [(s, e["type"]) for s, e in events if e["type"] in ("run.completed", "run.failed", "run.cancelled")]
        if ends != [(r["last_sequence"], "run." + state)]:
            self.bad(UNTRUE, f"run {run} is {state}, and its terminal events are {ends} of {r['last_sequence']}")
        if sum(e["type"] == "run.started" for _, e in events) > 1:
            self.bad(DOUBLE, f"run {run} was started twice")
        record = (state, r["terminal_reason"], r["finished_at"], r["error"], r["used_requests"])
        if self.finished.setdefault(run, record) != record:
            self.bad(UNTRUE, f"run {run} had ended as {self.finished[run]} and is {record}")
        for s, e in events:
            if e["type"].startswith("chaos."):
                self.take_agent(run, s, json.loads(e["data"]), dict(events))
        heard = [json.loads(e["data"]) for _, e in events if e["type"] == "chaos.heard"]
        if run not in self.finished_heard:
            self.finished_heard.add(run)
            self.heard += len(heard)
        for h in heard:
            self.take_heard(store, tenant, run, h)
        resolved = collections.Counter(json.loads(e["data"])["requestId"] for _, e in events
                                       if e["type"] in ("approval.resolved", "approval.rejected", "approval.expired", "approval.abandoned"))
        for request, n in resolved.items():
            if n > 1:
                self.bad(DOUBLE, f"run {run}: question {request} ended {n} times")
        if t is None:
            return
        if t.cancelled is not None and t.cancelled != state:
            self.bad(LOST, f"run {run}: its cancel was answered \"{t.cancelled}\", and it is {state}")
        if t.ended is not None and (t.ended[0], t.ended[1], t.ended[4]) != (state, r["terminal_reason"], r["used_requests"]):
            self.bad(UNTRUE, f"run {run} was shown as {t.ended} and is {record}")
        ids = {s: e["event_id"] for s, e in events}
        for s, i in t.seen:
            if ids.get(s) != i:
                self.bad(LOST, f"run {run}: event {s} was read as {i} and is {ids.get(s)}")
        for seen in t.followed:
            if seen != [[s, e["event_id"]] for s, e in events]:
                self.bad(LOST, f"run {run}: its stream told {seen}, and its events are {[(s, e['event_id']) for s, e in events]}")

    def take_agent(self, run, sequence, data, events):
        self.marks[run].add(data["mark"])
        ack = data["acknowledged"]
        if ack["n"] and json.loads(events[ack["at"]]["data"] if ack["at"] in events else b"{}").get("n") != ack["n"]:
            self.bad(LOST, f"run {run}: the agent's event {ack['n']} was acknowledged as {ack['at']} and is not there")
        if "nonce" in data:
            self.executed[data["nonce"]].add(run)

    def take_heard(self, store, tenant, run, h):
        """An agent proceeds only with what is decided, for what it asked, by somebody who was there to decide so."""
        q, key = store.approval.get((tenant, run, h["request"])), (run, h["request"])
        is_ = "unknown" if q is None else ("pending", DECISIONS[q["decision"]], "expired")[q["status"]]
        if h["said"] != is_:
            self.bad(UNTRUE, f"the agent of run {run} heard {h['said']} of question {h['request']}, which is {is_}")
        if h["said"].startswith("allow") and h["digest"] != h["want"]:
            self.bad(UNTRUE, f"the agent of run {run} was allowed another action than it asked for: {h}")
        granted = q is not None and q["device"] == "" and (tenant, run, h["digest"]) in store.grant
        if h["said"] not in ("expired", "pending") and h["said"] not in self.tried[key] and not granted:
            self.bad(UNTRUE, f"the agent of run {run} heard {h['said']} of question {h['request']}, which nobody said: {self.tried[key]}")

    def check_questions(self, store, runs):
        for (tenant, run, request), q in store.approval.items():
            if run not in runs:
                self.bad(LEFT, f"question {request} of run {run}, which does not exist")
            elif q["status"] == 0 and self.states[runs[run][1]["state"]] in self.final:
                self.bad(UNTRUE, f"question {request} of run {run} waits, and the run has ended")
        for tenant, run, digest in store.grant:
            if run not in runs:
                self.bad(LEFT, f"a grant of run {run}, which does not exist")
        for (run, request), (decision, at) in self.decided.items():
            if run not in runs:
                continue  # check_store says whether it may be gone
            q = store.approval.get((runs[run][0], run, request))
            have = None if q is None else (q["status"], DECISIONS[q["decision"]], q["decided_at"])
            if have != (1, decision, at):
                self.bad(LOST, f"question {request} of run {run} was acknowledged as {decision} at {at}, and is {have}")
            elif decision == "allow_session" and (runs[run][0], run, q["digest"].hex()) not in store.grant:
                self.bad(LOST, f"question {request} of run {run} was allowed for the rest of the run, and that is gone")

    def check_budgets(self, runs):
        for run, n in self.upstream.items():
            t = self.told.get(run)
            tenant, r = runs.get(run, (None, None))
            most = r["max_requests"] if r else t.most if t else None
            if most is not None and n > most:
                self.bad(SPENT, f"run {run}: the model was asked {n} times, {most} were allowed")
            used = r["used_requests"] if r else t.ended[4] if t and t.ended else None
            if used is not None and n > used:
                self.bad(SPENT, f"run {run}: the model was asked {n} times, {used} were charged")
        for run, (tenant, r) in runs.items():
            if r["used_requests"] > r["max_requests"]:
                self.bad(SPENT, f"run {run}: {r['used_requests']} used of {r['max_requests']}")
        for run, marks in self.marks.items():
            if len(marks) > 1:
                self.bad(DOUBLE, f"run {run} was executed {len(marks)} times: {sorted(marks)}")
        for nonce, made in self.executed.items():
            if len(made) > 1:
                self.bad(DOUBLE, f"one creation was executed as {sorted(made)}")

    def check_blobs(self, store, runs):
        files = json.load(open(os.path.join(self.folder, "files.json")))
        sizes, started = files["blobs"], files["started"]
        used = collections.Counter(k[0] for k in store.blob_use)
        wanted = {r[k].hex() for _, r in runs.values() for k in ("request_sha", "upload_sha")}
        wanted |= {a["sha256"].hex() for a in store.artifact.values()}
        for (name,), b in store.blob.items():
            small = store.blob_content.get((name,))
            if small is not None:
                good = len(small["content"]) == b["size"] and hashlib.sha256(small["content"]).hexdigest() == name
            else:
                good = name in sizes and sizes[name][0] == b["size"] and sizes[name][2] == name
            if not good:
                self.bad(LOST, f"blob {name} of {b['size']} bytes: it holds {small}, its file is {sizes.get(name)}")
            if not used[name]:
                self.bad(LEFT, f"blob {name} is used by nobody")
        for name in wanted - {k[0] for k in store.blob}:
            self.bad(LOST, f"blob {name} is referred to and not there")
        for name, tenant, run, use in store.blob_use:
            if run not in runs:
                self.bad(LEFT, f"blob {name} is used as {use} of run {run}, which does not exist")
        for tenant, run, name in store.artifact:
            if run not in runs:
                self.bad(LEFT, f"artifact {name} of run {run}, which does not exist")
        for (name,) in store.blob_content:
            if (name,) not in store.blob:
                self.bad(LEFT, f"the content of blob {name}, which no record names")
        for name, (size, when, _) in sizes.items():
            # stored sweeps them at its start.
            if ((name,) not in store.blob or (name,) in store.blob_content) and when < started - 1:
                self.bad(LEFT, f"the file of blob {name}, which no record names")

    def check_audit(self):
        """The last box of a run is gone before its end is committed."""
        seen = collections.defaultdict(dict)
        undone, count = set(), collections.Counter()
        folder = os.path.join(self.folder, "audit")
        # Only what was written since the last look: a run's lines are all within it, since all runs have ended.
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            for line in open(os.path.join(folder, name), "rb"):
                try:
                    x = json.loads(line)
                except ValueError:
                    continue
                if x.get("event") == "audit.undone":
                    undone.add(x.get("of"))
                seen[x.get("run", "")].setdefault(x.get("event"), []).append(x["seq"])
        for run, events in seen.items():
            ends = [s for s in events.get("run.finish", []) if s not in undone]
            made = [s for s in events.get("run.create", []) if s not in undone]
            if run and len(ends) > 1:
                self.bad(UNTRUE, f"run {run}: lines {ends} of the audit log are its end")
            if run and len(made) > 1:
                self.bad(DOUBLE, f"run {run}: lines {made} of the audit log are its creation")
            late = [s for s in events.get("sandbox.destroy", []) if ends and s > ends[0]]
            if late:
                self.bad(LEFT, f"run {run} ended (line {ends[0]} of the audit log) before its box was gone (line {late[0]})")

    def check_shown(self, store):
        shown = json.load(open(os.path.join(self.folder, "shown.json")))
        for tenant, run, used, most in shown:
            r = store.run.get((tenant, run))
            if r is not None and (used, most) != (r["used_requests"], r["max_requests"]):
                self.bad(UNTRUE, f"run {run}: usage {used} of {most} is shown, {r['used_requests']} of {r['max_requests']} is true")

    def check_machine(self):
        m = json.load(open(os.path.join(self.folder, "machine.json")))
        for what in m["before"]:
            if m["before"][what] != m["now"][what]:
                self.bad(LEFT, f"{what}: {m['now'][what]}, not {m['before'][what]}")
        for name, n in m["descriptors"].items():
            if n > m["most"][name]:
                self.bad(LEFT, f"{name} has {n} descriptors open, at most {m['most'][name]} are plausible")

    def look(self):
        """Everything. The violations: [(kind, text)]."""
        self.found = []
        self.read_journals()
        self.read_model()
        with open(os.path.join(self.folder, "dump.txt")) as f:
            self.store = store = Store(TOP, f, self.store)
        self.check_store(store)
        self.check_shown(store)
        self.check_audit()
        self.check_machine()
        return self.found


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: checker.py FOLDER")
    checker = Checker(sys.argv[1])
    for kind, text in checker.look():
        print(f"{kind}: {text}")
    print(f"{len(checker.told)} runs, {len(checker.store.run)} of them in the store, {len(checker.found)} violations")
    sys.exit(1 if checker.found else 0)
