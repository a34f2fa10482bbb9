"""Cases about events and approvals."""
import hashlib
import json
import os
import socket
import threading
import time

from cases_common import *  # noqa: F403
from rig import *  # noqa: F403


def test_events(rig, model):
    run = rig.run(2)
    a = run.send_events([run.line(sequence=5, data={"a": "b", "agent_sequence": 99}), run.line("run.completed", 6),
                         run.line("approval.resolved", 7), run.line("check.done", 8), run.line("model.called", 9),
                         run.line("events.x", 10), run.line("limit.reached", 11), run.line("runner", 12)])
    same((a.status, a.json["accepted"]), (202, 8), "a batch")
    events = [e for e in run.events() if "agent_sequence" in e[2]]
    same([k for _, k, _ in events], ["tool.used", "agent.run.completed", "agent.approval.resolved", "agent.check.done",
                                    "agent.model.called", "agent.events.x", "agent.limit.reached", "runner"], "reserved types are renamed")
    same(events[0][2], {"agent_sequence": 5, "a": "b"}, "data and the agent's own number")
    same(a.json["lastSequence"], events[-1][0], "lastSequence")
    nasty = "a\x1b[31mred\x1b[0m\u202eb\x00c\u2028d"
    a = run.send_events([run.line(sequence=1, data={"t": nasty.replace("\x00", ""), "deep": {"x": ["\x1b]0;t\x07"]},
                                                    "\x1b[2J": 1, "long": "z" * 40000})])
    same(a.status, 202, "text that has to be cleaned")
    data = run.events()[-1][2]
    check("\x1b" not in json.dumps(data, ensure_ascii=False), "escape codes are gone")
    check("\u202e" not in data["t"], "no direction override")
    check(len(data["long"].encode()) <= 16000, "long text is cut")
    check(not any("\x1b" in k for k in data), "keys are clean")
    count = len(run.events())
    good = run.line()
    long_type = "a" * 65
    for what, lines in {
        "no lines": [], "too many": [good] * 129, "number": [1], "empty": [""], "one char": ["\n"], "no newline": [good[:-1]],
        "two newlines": [good + "\n"], "inner newline": [good + good], "not JSON": ["{]\n"], "array": ["[]\n"],
        "no type": [json.dumps({"run_id": "r", "task_id": run.id, "sequence": 1}) + "\n"],
        "empty type": [run.line("")], "upper type": [run.line("Tool")], "type with a dash": [run.line("a-b")],
        "long type": [run.line(long_type)], "number type": [run.line(5)], "empty run_id": [run.line(run_id="")],
        "number run_id": [run.line(run_id=1)], "other task": [run.line(task_id="other")], "number task": [run.line(task_id=1)],
        "negative": [run.line(sequence=-1)], "text sequence": [run.line(sequence="1")], "float": [run.line(sequence=1.0)],
        "huge": [run.line().replace("\"sequence\": 1", "\"sequence\": 1e400")], "data array": [run.line(data=[])],
        "5,000 digits": [run.line(data={"n": 0}).replace("\"n\": 0", "\"n\": " + "9" * 5000)],
        "a number beyond any": [good, run.line(data={"n": [0]}).replace("[0]", "[-1e400]")], "data null": [run.line(data=None)], "bad second": [good, "x\n"], "nested": ["[" * 5000 + "\n"],
        "twice": [good.replace("{", "{\"sequence\":1,", 1)], "too long": [run.line(data={"x": "y" * 64000})],
    }.items():
        a = run.send_events(lines)
        same((a.status, a.code), (400, "invalid_event_append"), "events: " + what)
        if what == "bad second":
            same(a.field, "lines[1]", "the line at fault")
        if what == "too many":
            same(a.field, "lines", "the bound itself says so, not the room behind it")
    same(post(run.port, run.path("events"), run.token("events"), {"lines": [good], "x": 1}).code, "unknown_field", "a key more")
    same(run.send_events(["\0\0\n"]).code, "invalid_json", "a NUL")
    same(post(run.port, run.path("events"), run.token("events"), b"{").code, "invalid_json", "no JSON")
    same(post(run.port, run.path("events"), run.token("events"), b" " * 128001).code, "request_too_large", "128,001 bytes")
    same(len(run.events()), count, "a refused batch stores nothing")
    same(run.send_events([run.line(data={"\ud83d\ude00": "\U0001f600"}, extra=1)]).status, 202, "other planes, other keys")
    a = run.send_events([run.line("link", 1, data={"url": "https://m\u00fcnchen.example/x"}), run.line("link", 2, data={"url": "http://a.example/"}),
                         run.line("link", 3, data={"url": "https://a@b.example/"}), run.line("after", 4)])
    same((a.status, a.json["accepted"]), (202, 2), "a link, and two that are none")
    same([(k, d.get("url")) for _, k, d in run.events()[-2:]], [("link", "https://xn--mnchen-3ya.example/x"), ("after", None)],
         "what may be opened, as the network spells it")
    with open(rig.folder + "/pinfold-gateway.log") as f:
        same(sum("run %s: a link is left out" % run.id in line for line in f), 1, "one line for all of them")
    same(run.shown()["used"], 0, "events spend nothing")


def test_shortened(rig, model):
    """Who is asked must know what he does not see (C-65)."""
    run = rig.run(2)
    command = "make test" + " " * 16000 + "; rm -rf ~"
    for n, (more, fields) in enumerate((({"preview": "make test"}, None), ({"preview": command}, ["preview"]), ({"title": "a\u202eb", "reason": "c\x1bd"}, ["title", "reason"]),
                                        ({"preview": "make test", "text_shortened": []}, None), ({"text_shortened": None, "truncated": True}, ["truncated"]))):
        a = run.send_events([run.line("approval.requested", n, data=dict({"request_id": "ask-%d" % n}, **more))])
        same((a.status, a.json["accepted"]), (202, 1), "a question")
        data = [d for _, k, d in run.events() if k == "approval.requested"][-1]
        marks = data.get("text_shortened")
        same(marks and [m["field"] for m in marks], fields, "which of its texts are not whole")
        if more.get("preview") == command:
            same((marks[0]["bytes"], marks[0]["sha256"]), (len(command), hashlib.sha256(command.encode()).hexdigest()), "the whole of it")
            same(len(data["preview"].encode()), 16000, "its cap")


def test_masks(rig, model):
    """Where the setting says so: in questions, in all events, nowhere (D-61)."""
    said = {"reason": "password=hunter22", "preview": "x --token=hunter22 " + "sk-" + "a" * 20}
    hidden = {"reason": "password=[masked]", "preview": "x --token=[masked] sk-[masked]"}
    for masks, question, event in ((1, hidden, hidden), (2, said, said), (0, hidden, said)):
        rig.tell("masks", masks)
        rig.restart()
        run = rig.run(2)
        ids = "sk-" + "b" * 20
        a = run.send_events([run.line("note", 1, data=said), run.line("approval.requested", 2, data=dict(said, request_id=ids, effect="execute"))])
        same((a.status, a.json["accepted"]), (202, 2), "an event and a question")
        data = {k: d for _, k, d in run.events()}
        same({k: data["note"][k] for k in said}, event, "the event under %d" % masks)
        same({k: data["approval.requested"][k] for k in said}, question, "the question under %d" % masks)
        same(data["approval.requested"]["request_id"], ids, "an id is never masked")
        same([m.get("masked") for m in data["approval.requested"].get("text_shortened", [])], [True, True] if question is hidden else [], "which is said")
        same("text_shortened" in data["note"], False, "of questions alone")
        poll = get(run.port, run.path("approvals")[:run.path("approvals").rindex("/") + 1] + ids, run.token("approvals"))
        same(poll.json.get("digest", ""), "" if poll.json["status"] != "decided" else hashlib.sha256(b"execute\0" + said["preview"].encode()).hexdigest(),
             "a digest is of what was sent")


def test_approvals(rig, model):
    run = rig.run(2)
    ask = {"request_id": "ask-1", "action_id": "a", "effect": "execute", "reason": "model_tool", "preview": "rm -rf /"}
    a = run.send_events([run.line("note"), run.line("approval.requested", 2, data=ask),
                         run.line("approval.requested", 3, data={"request_id": "../x"}), run.line("approval.requested", 4)])
    same((a.status, a.json.get("accepted")), (202, 2), "a question, and two that are none")
    a = get(run.port, run.path("approvals"), run.token("approvals"))
    check(a.status in (200, 202), "its poll: %d" % a.status)
    if a.status == 200 and a.json["status"] == "decided":
        check(a.json["decision"] in ("deny", "cancel", "allow_once", "allow_session"), "a decision")
        check(len(a.json["digest"]) == 64 and a.json["decidedAt"] > 0, "digest and time")
    for path in ("/internal/v1/runs/%s/approvals/.x" % run.id, "/internal/v1/runs/%s/approvals/a%%2fb" % run.id):
        same(get(run.port, path, run.token("approvals")).status, 404, "a bad request id")
    same(run.shown()["used"], 0, "approvals spend nothing")
    # All or nothing: of a batch that is refused nothing is there, however far it came.
    def asks(n, size):
        return [run.line("note")] + [run.line("approval.requested", 2, data={"request_id": "b-%d" % i, "preview": "p" * size}) for i in range(n)]
    count = len(run.events())
    a = run.send_events(asks(9, 10))
    same((a.status, a.code, a.field), (400, "invalid_event_append", "lines[9]"), "a ninth question")
    same(run.send_events(asks(8, 15000)).code, "request_too_large", "questions that do not fit into one transaction")
    same(len(run.events()), count, "neither left anything")
    a = run.send_events(asks(8, 2000))
    same((a.status, a.json["accepted"]), (202, 9), "eight questions")
    same(sum(k == "note" for _, k, _ in run.events()), 2, "and what stood before them, once")
