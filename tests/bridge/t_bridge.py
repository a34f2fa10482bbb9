#!/usr/bin/python3 -B
"""pinfold-bridge between agents of every dialect, which are scripts here, and a gateway that is one as well."""
import json, os, signal, subprocess, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rig import BRIDGE, Gateway, begin, check, finish, run, seen, wait_seen

ACP = """
import json, sys
def read():
    return json.loads(sys.stdin.readline())
def send(**m):
    print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
def answer(m, **result):
    send(id=m["id"], result=result)
def update(**u):
    send(method="session/update", params={"sessionId": "s1", "update": u})
def ask(call, options=None, id="q1"):
    send(id=id, method="session/request_permission", params={"sessionId": "s1", "toolCall": call, "options": options or [
        {"optionId": "forever", "name": "always", "kind": "allow_always"}, {"optionId": "go", "name": "once", "kind": "allow_once"},
        {"optionId": "stay", "name": "no", "kind": "reject_once"}]})
    m = read()
    while m.get("id") != id:
        m = read()
    return m["result"]["outcome"]
def meet(modes=None):
    m = read()
    assert m["method"] == "initialize" and m["params"]["protocolVersion"] == 1
    assert m["params"]["clientCapabilities"] == {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
    answer(m, protocolVersion=1)
    m = read()
    assert m["method"] == "session/new" and m["params"] == {"cwd": "/workspace/source", "mcpServers": []}
    answer(m, sessionId="s1", **({"modes": modes} if modes else {}))
    m = read()
    if modes:
        assert m["method"] == "session/set_mode" and m["params"]["modeId"] == "default", m
        answer(m)
        m = read()
    assert m["method"] == "session/prompt"
    return m
"""
SHELL = '{"toolCallId": "t1", "title": "a harmless step", "kind": "execute", "rawInput": {"command": "rm -rf build", "cwd": "/x"}}'


def acp_course():
    status, claim, out, err = run("acp", ACP + """
m = meet({"currentModeId": "auto", "availableModes": [{"id": "auto"}, {"id": "default"}]})
assert m["params"]["prompt"] == [{"type": "text", "text": "Mend it: {\\"\\u00e9\\"} 'now'"}]
send(id=77, method="craft/strange", params={})
assert read()["error"]["code"] == -32601
send(id="x", method="fs/read_text_file", params={"path": "/etc/passwd"})
assert read()["error"]["code"] == -32601
for word in ("It ", "is ", "done."):
    update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": word})
update(sessionUpdate="tool_call", toolCallId="t1", title="x", kind="edit", status="pending", rawInput={"path": "a.py"})
print("this is no JSON"); print("[1,2]"); print('{"a":1,"a":2}'); print('"' + "x" * 9000000 + '"')
update(sessionUpdate="tool_call_update", toolCallId="t1", status="completed", content=[{"type": "content", "content": {"type": "text", "text": "ok"}}])
update(sessionUpdate=7); update(); send(method="session/update", params=[]); send(method="other"); send(id=99, result={})
answer(m, stopReason="end_turn")
sys.stdin.read()
""")
    check("a course to its end", status == 0 and claim == {"status": "completed", "summary": "It is done."}, (status, claim, err))
    check("what it says is one event", seen("message.text") == [{"text": "It is done."}], Gateway.events)
    check("its call", seen("tool.call") == [{"call_id": "t1", "tool": "edit", "arguments": '{"path":"a.py"}'}], seen("tool.call"))
    check("and what came of it", len(seen("tool.output")) == 1 and seen("tool.output")[0]["ok"] is True and "ok" in seen("tool.output")[0]["output"],
          seen("tool.output"))
    check("the transcript has both sides", '"session/prompt"' in out and "this is no JSON" in out and '"agent_message_chunk"' in out, out[:500])
    check("a line that is too long is told of", "1 lines of the agent" in err, err)


def acp_ends():
    for name, program, why in (
            ("another end", 'answer(meet(), stopReason="refusal")', "refusal"),
            ("an error", 'send(id=meet()["id"], error={"code": -32000, "message": "no model"})', "no model"),
            ("no session", 'answer(read(), protocolVersion=1)\nanswer(read(), sessionId="")\nsys.stdin.read()', "protocol"),
            ("authentication is wanted", 'answer(read(), protocolVersion=1)\nsend(id=read()["id"], error={"code": -32000, "message": "Authentication required"})\nsys.stdin.read()',
             "Authentication required"),
            ("it dies in the middle", "meet()\nsys.exit(0)", "before its answer"), ("it dies with a status", "meet()\nsys.exit(3)", "3"),
            ("it dies at once", "sys.exit(5)", "5"),
            ("it is not there", "sys.exit(127)", "not found in the sandbox")):
        status, claim, _, _ = run("acp", ACP + program + "\n")
        check(name, status == 1 and claim["status"] == "failed" and why in claim["summary"], (status, claim))
    # One that goes on when it has answered is ended.
    status, claim, _, _ = run("acp", ACP + 'answer(meet(), stopReason="end_turn")\nimport time\nwhile True: time.sleep(1)\n')
    check("one that does not end is ended", status == 0, claim)


def questions():
    tell = ACP + f"m = meet()\nsaid = ask({SHELL})\nupdate(sessionUpdate='agent_message_chunk', content={{'type': 'text', 'text': json.dumps(said)}})\nanswer(m, stopReason='end_turn')\n"
    for decision, want in (("allow_once", "go"), ("allow_session", "go"), ("deny", "stay"), (None, "stay"), ("other allow_once", "stay")):
        Gateway.answers = [decision]
        _, claim, _, _ = run("acp", tell)
        check(f"answered {decision}", json.loads(claim["summary"]) == {"outcome": "selected", "optionId": want}, claim)
        q = seen("approval.requested")
        check("what is shown is the command and all of it", len(q) == 1 and q[0]["preview"] == 'rm -rf build\n{"command":"rm -rf build","cwd":"/x"}\n' and
              q[0]["effect"] == "execute" and q[0]["reason"] == "a harmless step" and q[0]["action_id"] == "t1", q)
    Gateway.answers = ["cancel"]
    status, claim, out, _ = run("acp", ACP + f"""
m = meet()
send(id="q", method="session/request_permission", params={{"sessionId": "s1", "toolCall": {SHELL}, "options": [{{"optionId": "a", "kind": "allow_once"}}]}})
one, two = read(), read()
assert one["method"] == "session/cancel" and two["result"]["outcome"] == {{"outcome": "cancelled"}}, (one, two)
answer(m, stopReason="cancelled")
""")
    check("cancel ends the turn", status == 1 and claim["summary"] == "cancelled", claim)
    # By the run's permissions nobody is asked.
    for permissions, want in (({"execute": "allow"}, "go"), ({"execute": "deny"}, "stay")):
        Gateway.answers = []
        _, claim, _, _ = run("acp", tell, permissions=permissions)
        check(f"permissions {permissions}", json.loads(claim["summary"])["optionId"] == want and not seen("approval.requested"), claim)
    Gateway.answers = ["allow_once"]
    _, claim, _, _ = run("acp", tell.replace('"execute"', '"sudo"'), permissions={"sudo": "allow", "other": "ask"})
    check("an unknown kind is of the others", len(seen("approval.requested")) == 1, Gateway.events)


def nothing_shown():
    Gateway.answers = ["allow_once"] * 3
    for call in ('{"toolCallId": "t1", "title": "trust me", "kind": "execute"}', '{"title": "no id", "kind": "edit", "rawInput": "x"}', '7'):
        _, claim, _, _ = run("acp", ACP + f"m = meet()\nsaid = ask({call})\nupdate(sessionUpdate='agent_message_chunk', content={{'type': 'text', 'text': json.dumps(said)}})\nanswer(m, stopReason='end_turn')\n")
        check(f"a title alone is not shown to anybody: {call}", json.loads(claim["summary"])["optionId"] == "stay" and not seen("approval.requested"), claim)
    # What was said of the call before counts.
    _, claim, _, _ = run("acp", ACP + """
m = meet()
update(sessionUpdate="tool_call", toolCallId="t9", kind="edit", content=[{"type": "diff", "path": "a.py", "oldText": "one", "newText": "two"}])
said = ask({"toolCallId": "t9", "title": "t"})
answer(m, stopReason="end_turn")
""")
    check("a diff is shown", [(q["preview"], q["effect"]) for q in seen("approval.requested")] ==
          [("file a.py\n-one\n\\ no newline at its end\n+two\n\\ no newline at its end\n", "modify")], seen("approval.requested"))


def titles():
    """Gemini CLI says what it would execute in the title alone, and nobody else may."""
    gemini = {"toolCallId": "t1", "status": "pending", "title": "rm -rf build", "kind": "execute", "content": [
        {"type": "content", "content": {"type": "text", "text": "[in /x] (a harmless\nstep)"}}]}
    shown = 'rm -rf build\n{"type":"text","text":"[in /x] (a harmless\\nstep)"}\n'
    for dialect, change, want in (("acp-gemini", {}, [shown]), ("acp", {}, []), ("acp-gemini", {"kind": "other"}, []), ("acp-gemini", {"kind": "fetch"}, []),
                                  ("acp-gemini", {"title": ""}, []), ("acp-gemini", {"status": "completed"}, []),
                                  ("acp-gemini", {"rawInput": {"command": "ls"}}, ['ls\n'])):
        Gateway.answers = ["allow_once"]
        _, claim, _, err = run(dialect, ACP + f"m = meet()\nsaid = ask({dict(gemini, **change)!r})\n"
                               "update(sessionUpdate='agent_message_chunk', content={'type': 'text', 'text': json.dumps(said)})\nanswer(m, stopReason='end_turn')\n")
        check(f"a title of {dialect} with {change}", [q["preview"] for q in seen("approval.requested")] == want and
              json.loads(claim["summary"])["optionId"] == ("go" if want else "stay"), (claim, seen("approval.requested"), err))


def shown_is_done():
    """What was said of a call before does not stand for a question that says something else, or more than can be shown."""
    before = "m = meet()\nupdate(sessionUpdate='tool_call', toolCallId='t1', kind='execute', rawInput={'command': 'ls'})\n"
    after = "update(sessionUpdate='agent_message_chunk', content={'type': 'text', 'text': json.dumps(said)})\nanswer(m, stopReason='end_turn')\n"
    for call, want, shown in (
            ("{'toolCallId': 't1', 'rawInput': {'command': 'rm -rf /; ' + 'x' * 300000}}", "stay", []),
            ("{'toolCallId': 't1', 'content': [{'type': 'diff', 'path': 'a', 'newText': 'y' * 300000}]}", "stay", []),
            ("{'toolCallId': 't1', 'rawInput': 'rm -rf /'}", "go", ['"rm -rf /"\n']),
            ("{'toolCallId': 't1', 'rawInput': ['rm', '-rf']}", "go", ['["rm","-rf"]\n']),
            ("{'toolCallId': 't1', 'content': [{'type': 'diff', 'path': 'a', 'newText': ['b']}]}", "go", ['{"type":"diff","path":"a","newText":["b"]}\n']),
            ("{'toolCallId': 't1', 'rawInput': None}", "go", ["ls\n"])):
        Gateway.answers = ["allow_once"]
        _, claim, _, err = run("acp", ACP + before + f"said = ask({call})\n" + after)
        check(f"what is shown is what is done: {call[:70]}", json.loads(claim["summary"])["optionId"] == want and
              [q["preview"] for q in seen("approval.requested")] == shown, (claim, seen("approval.requested"), err))
    # Nor does it where something was said since that nobody could read.
    lost = "update(sessionUpdate='tool_call_update', toolCallId='t1', rawInput={'command': 'rm -rf /;' + 'x' * 9000000})\n"
    nearly = "update(sessionUpdate='tool_call_update', toolCallId='t1', rawInput={'command': 'rm -rf /\\0'})\n"
    for said, call, want, shown in ((lost, "{'toolCallId': 't1'}", "stay", []), (nearly, "{'toolCallId': 't1'}", "stay", []),
                                    (lost, "{'toolCallId': 't1', 'rawInput': {'command': 'ls -l'}}", "go", ["ls -l\n"])):
        Gateway.answers = ["allow_once"]
        _, claim, _, err = run("acp", ACP + before + said + f"said = ask({call})\n" + after)
        check(f"what could not be read: {call[:70]}", json.loads(claim["summary"])["optionId"] == want and
              [q["preview"] for q in seen("approval.requested")] == shown, (claim, seen("approval.requested"), err))


def options():
    for rows, want in (
            ([("forever", "allow_always"), ("x", "reject_once")], "cancelled"),
            ([("mode", "allow_once"), ("proceed_once", "allow_once"), ("x", "reject_once")], "proceed_once"),
            ([("mode", "allow_once"), ("odd", "allow_once"), ("x", "reject_once")], "cancelled"),
            ([("only", "allow_once")], "only"), ([], "cancelled")):
        Gateway.answers = ["allow_session"]
        listed = json.dumps([{"optionId": o, "kind": k, "name": "n"} for o, k in rows]) if rows else "[0]"
        _, claim, _, _ = run("acp", ACP + f"m = meet()\nsaid = ask({SHELL}, {listed})\nupdate(sessionUpdate='agent_message_chunk', content={{'type': 'text', 'text': said.get('optionId', said['outcome'])}})\nanswer(m, stopReason='end_turn')\n")
        check(f"of {rows}", claim["summary"] == want, claim)


def stopped():
    p = begin("acp", ACP + """
m = meet()
update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": "begun"})
update(sessionUpdate="tool_call", toolCallId="t1", kind="read")
c = read()
assert c["method"] == "session/cancel" and c["params"] == {"sessionId": "s1"}
answer(m, stopReason="cancelled")
""")
    wait_seen("tool.call")
    p.bridge.send_signal(signal.SIGTERM)
    status = p.end()[0]
    check("the end of the run is the end of its turn", status == 1, status)


SPEAKERS = {
    "codex": ([{"type": "thread.started"}, {"type": "item.started", "item": {"id": "i1", "type": "command_execution", "command": "ls"}},
               {"type": "item.completed", "item": {"id": "i1", "type": "command_execution", "exit_code": 0, "aggregated_output": "a.py"}},
               {"type": "item.completed", "item": {"id": "i2", "type": "agent_message", "text": "Mended."}}],
              {"type": "turn.completed"}, {"type": "turn.failed", "error": {"message": "no budget"}}),
    "claude": ([{"type": "system", "subtype": "init"},
                {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "i1", "name": "Bash", "input": {"command": "ls"}}]}},
                {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "i1", "content": "a.py"}]}},
                {"type": "user", "message": {"content": "text"}}, {"type": "assistant", "message": {"content": [{"type": "text", "text": "Mended."}]}}],
               {"type": "result", "subtype": "success", "is_error": False}, {"type": "result", "subtype": "success", "is_error": True, "result": "no budget"}),
    "pi": ([{"type": "tool_execution_start", "toolCallId": "i1", "toolName": "bash", "args": {"command": "ls"}},
            {"type": "tool_execution_end", "toolCallId": "i1", "toolName": "bash", "result": {"content": "a.py"}, "isError": False},
            {"type": "message_end", "message": {"role": "user", "content": [{"type": "text", "text": "no"}]}},
            {"type": "message_end", "message": {"role": "assistant", "content": [{"type": "text", "text": "Mended."}], "stopReason": "stop"}}],
           {"type": "agent_end"}, {"type": "message_end", "message": {"role": "assistant", "content": [], "stopReason": "error", "errorMessage": "no budget"}}),
    "opencode": ([{"type": "tool_use", "part": {"tool": "bash", "callID": "i1", "state": {"status": "completed", "input": {"command": "ls"}, "output": "a.py"}}},
                  {"type": "text", "part": {"text": "Mended."}}],
                 {"type": "step_finish"}, {"type": "error", "error": {"name": "APIError", "data": {"message": "no budget"}}}),
    "copilot": ([{"type": "tool.execution_start", "data": {"toolCallId": "i1", "toolName": "bash", "arguments": {"command": "ls"}}},
                 {"type": "tool.execution_complete", "data": {"toolCallId": "i1", "success": True, "result": "a.py"}},
                 {"type": "assistant.message", "data": {"content": "Mended."}}],
                {"type": "result", "exitCode": 0}, {"type": "result", "exitCode": 1}),
    "gemini": ([{"type": "init", "session_id": "s", "model": "m"}, {"type": "message", "role": "user", "content": "Mend it"},
                {"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "i1", "parameters": {"command": "ls"}},
                {"type": "tool_result", "tool_id": "i1", "status": "success", "output": "a.py"},
                {"type": "message", "role": "assistant", "content": "Mend", "delta": True}, {"type": "message", "role": "assistant", "content": "ed.", "delta": True}],
               {"type": "result", "status": "success", "stats": {}}, {"type": "result", "status": "error", "error": {"type": "x", "message": "no budget"}}),
}


def speakers():
    odd = [{"type": 7}, {"type": "assistant", "message": []}, {"item": [], "part": 1, "data": [{}], "message": {"content": {}}}, {"type": "item.started", "item": [1]},
           {"type": "error"}, {"type": "user", "message": {"content": [7, {"type": "tool_result"}]}}]
    for dialect, (lines, well, badly) in SPEAKERS.items():
        for last, want in ((well, 0), (badly, 1)):
            program = "import sys\nassert sys.stdin.read() == ''\n" + "".join(f"print({json.dumps(json.dumps(m))})\n" for m in odd[:4] + lines + [last])
            status, claim, out, err = run(dialect, program)
            check(f"{dialect} ends {'badly' if want else 'well'}", status == want and claim["status"] == ("failed" if want else "completed"), (status, claim, err))
            if not want:
                check(f"{dialect}: what it said", claim["summary"] == "Mended." and seen("message.text") == [{"text": "Mended."}], (claim, Gateway.events))
                check(f"{dialect}: what it did", len(seen("tool.call")) == 1 and "ls" in seen("tool.call")[0]["arguments"] and
                      [(o["ok"], "a.py" in o["output"]) for o in seen("tool.output")] == [(True, True)], Gateway.events)
            elif dialect != "copilot":
                check(f"{dialect}: why", claim["summary"] == "no budget", claim)
        for m in odd:
            run(dialect, f"print({json.dumps(json.dumps(m))})\n")
        status, claim, _, _ = run(dialect, "import sys\nsys.exit(9)\n")
        check(f"{dialect}: a status without a word", status == 1 and "9" in claim["summary"], claim)
    # A process that it leaves behind holds the pipe open.
    program = ("import json, subprocess\nleft = subprocess.Popen(['sleep', '600'], stderr=subprocess.DEVNULL)\n"
               "print(json.dumps({'type': 'item.completed', 'item': {'type': 'agent_message', 'text': str(left.pid)}}))\n"
               "print('{\"type\":\"turn.completed\"}')\n")
    status, claim, _, _ = run("codex", program)
    os.kill(int(claim["summary"]), signal.SIGKILL)
    check("who it leaves behind is not waited for", status == 0, status)


def unheard():
    Gateway.refuse = True
    status, claim, _, _ = run("codex", 'print(\'{"type":"turn.completed"}\')\n')
    check("a run does not fail because nobody listens", status == 0, claim)
    Gateway.refuse = False


def both_at_once():
    """What the agent has to say fills its pipe while it is told more than fits into the other one."""
    status, claim, out, _ = run("acp", ACP + """
print(json.dumps({"method": "session/update", "params": {"update": {"a": "x" * 3000000}}}), flush=True)
for i in range(3):
    print(json.dumps({"method": "session/update", "params": {"update": {"a": "y" * 300000}}}), flush=True)
m = read()
for i in range(3000):
    send(id=1000 + i, method="session/request_permission", params={"toolCall": CALL, "options": [{"optionId": "z" * 1000, "kind": "reject_once"}]})
answer(m, protocolVersion=1)
m = read()
while "method" not in m: m = read()
answer(m, sessionId="s1", modes=None)
m = read()
print("w" * 5000000, flush=True)
assert m["method"] == "session/prompt" and len(m["params"]["prompt"][0]["text"]) == 120000
answer(m, stopReason="end_turn")
sys.stdin.read()
""".replace("CALL", SHELL), instruction="i" * 120000, permissions={"execute": "deny"})
    check("a flood both ways ends well", status == 0 and claim["status"] == "completed" and len(out) > 8000000, (status, claim, len(out)))


def whose():
    """Events go under the one token and questions under the other; neither is in its environment or its arguments."""
    check("which token it shows", Gateway.shown == {("POST", "Bearer for.events"), ("GET", "Bearer for.approvals")}, Gateway.shown)


def use():
    for words in ([], ["acp"], ["acp", "--"], ["acp", "--", "python3"], ["none"], ["none", "--", "true"]):
        r = subprocess.run([BRIDGE, *words], capture_output=True, text=True)
        check(f"wrong use: {words}", r.returncode == 2 and "usage" in r.stderr, r)


sys.exit(finish((acp_course, acp_ends, questions, nothing_shown, titles, shown_is_done, options, stopped, speakers, unheard, both_at_once, whose, use)))
