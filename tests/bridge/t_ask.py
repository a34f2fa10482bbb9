#!/usr/bin/python3 -B
"""pinfold-bridge between people and agents that ask by protocols of their own: Codex CLI's app-server and Claude Code's control
protocol. The agents are scripts that say what the real ones were seen to say (codex 0.171.0, Claude Code 2.1.332), and worse."""
import json, os, signal, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rig import Gateway, agree, begin, check, finish, run, seen, wait_seen

CODEX = r"""
import json, os, sys, time
def read():
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit(0)
def send(**m):
    print(json.dumps(m), flush=True)
def tell(method, **params):
    send(method=method, params={"threadId": "th1", "turnId": "tu1", **params}, emittedAtMs=1)
def turn(status="inProgress", **more):
    return {"id": "tu1", "items": [], "itemsView": "notLoaded", "status": status, "error": None, **more}
def end(status="completed", **more):
    tell("turn/completed", turn=turn(status, **more))
def meet():
    m = read()
    assert m["method"] == "initialize" and m["params"]["clientInfo"]["name"] == "pinfold", m
    send(id=m["id"], result={"userAgent": "pinfold/0.171.0", "codexHome": "/workspace/home/.codex", "platformFamily": "unix", "platformOs": "linux"})
    m = read()
    assert m["method"] == "initialized" and "id" not in m, m
    m = read()
    assert m["method"] == "thread/start" and m["params"] == {"model": "m", "cwd": "/workspace/source", "approvalPolicy": "untrusted",
                                                             "sandbox": "danger-full-access", "ephemeral": True}, m
    send(id=m["id"], result={"thread": {"id": "th1", "turns": []}, "approvalPolicy": "untrusted"})
    send(method="thread/started", params={"thread": {"id": "th1"}})
    m = read()
    assert m["method"] == "turn/start" and m["params"]["threadId"] == "th1", m
    send(id=m["id"], result={"turn": turn()})
    tell("turn/started", turn=turn())
    return m["params"]["input"]
def item(what, **i):
    tell("item/" + what, item=i, startedAtMs=1)
def changes(*rows):
    return [{"path": p, "kind": {"type": k, **({"move_path": None} if k == "update" else {})}, "diff": d} for p, k, d in rows]
def put(method, id, **params):
    send(method="item/" + method + "/requestApproval", id=id, params={"threadId": "th1", "turnId": "tu1", "startedAtMs": 1, **params})
def ask(method, id, **params):
    put(method, id, **params)
    m = read()
    assert m["id"] == id and list(m["result"]) == ["decision"], m
    return m["result"]["decision"]
def command(line, id=0, **more):
    return ask("commandExecution", id, itemId="c1", kind="command", environmentId="local", command=line, cwd="/workspace/source",
               commandActions=[{"type": "read", "command": "ls"}], proposedExecpolicyAmendment=["rm"], availableDecisions=["accept", "cancel"], **more)
def files(id=0, item="c1", **more):
    return ask("fileChange", id, itemId=item, reason=None, **{"grantRoot": None, **more})
def say(*v):
    item("completed", type="agentMessage", id="m1", text=json.dumps(v))
"""
CLAUDE = r"""
import json, os, sys, time
def read():
    line = sys.stdin.readline()
    return json.loads(line) if line else sys.exit(0)
def send(**m):
    print(json.dumps(m), flush=True)
def meet():
    m = read()
    assert m["type"] == "control_request" and m["request"] == {"subtype": "initialize"}, m
    send(type="control_response", response={"subtype": "success", "request_id": m["request_id"], "response": {"commands": [], "pid": 7}})
    m = read()
    assert m["type"] == "user" and m["message"]["role"] == "user", m
    send(type="system", subtype="init", model="m", permissionMode="default")
    return m["message"]["content"]
def put(tool, input, id="r1", **more):
    send(type="control_request", request_id=id, request={"subtype": "can_use_tool", "tool_name": tool, "display_name": tool, "input": input,
         "permission_suggestions": [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}], "tool_use_id": "toolu_1", **more})
def ask(tool, input, id="r1", **more):
    put(tool, input, id, **more)
    m = read()
    assert m["type"] == "control_response" and m["response"]["subtype"] == "success" and m["response"]["request_id"] == id, m
    return m["response"]["response"]
def use(**input):
    send(type="assistant", message={"content": [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": input}]})
def end(text="Mended.", **more):
    send(**{"type": "result", "subtype": "success", "is_error": False, "result": text, **more})
"""
NO_NEWLINE = "\\ no newline at its end\n"


def shown():
    return [q["preview"] for q in seen("approval.requested")]


def codex_course():
    status, claim, out, err = run("codex-ask", CODEX + r"""
assert meet() == [{"type": "text", "text": "Mend it: {\"\u00e9\"} 'now'"}]
send(method="item/tool/requestUserInput", id=5, params={"threadId": "th1"})
assert read()["error"]["code"] == -32601
send(method="item/permissions/requestApproval", id="p", params={"threadId": "th1", "permissions": {}})
m = read()
assert m["error"]["code"] == -32601 and m["id"] == "p"
item("started", type="commandExecution", id="c1", command="/bin/bash -lc ls", status="inProgress")
item("completed", type="commandExecution", id="c1", command="/bin/bash -lc ls", status="completed", exitCode=0, aggregatedOutput="a.py")
item("completed", type="commandExecution", id="c2", command="false", status="failed", exitCode=1, aggregatedOutput=None)
tell("thread/tokenUsage/updated", tokenUsage={}); tell("error", error={"message": "stream broke off"}, willRetry=True)
item("completed", type="agentMessage", id="m1", text="Mended.")
# Of another thread, of no shape, of no sense.
send(method="turn/completed", params={"threadId": "other", "turn": turn("failed")}); send(method="turn/completed", params=[]); send(method=7, id={})
tell("item/started", item=[1]); tell("item/completed"); tell("item/fileChange/patchUpdated", changes=7); send(id=99, result={}); send(id=-1, error=3)
print("no JSON"); print('"' + "x" * 9000000 + '"', flush=True)
end()
sys.stdin.read()
""")
    check("codex: a course to its end", status == 0 and claim == {"status": "completed", "summary": "Mended."}, (status, claim, err))
    agree("codex: what it says", [t["text"] for t in seen("message.text")], ["stream broke off", "Mended."])
    agree("codex: its calls", [(c["tool"], c["arguments"]) for c in seen("tool.call")], [("command", "/bin/bash -lc ls")])
    agree("codex: and what came of them", [(o["ok"], o["output"]) for o in seen("tool.output")], [(True, "a.py"), (False, "")])
    check("codex: the transcript has both sides", '"turn/start"' in out and "no JSON" in out, out[:300])
    for name, program, why in (
            ("a turn that fails", 'meet()\nend("failed", error={"message": "no budget"})', "no budget"),
            ("no thread", 'send(id=read()["id"], result={})\nread()\nsend(id=read()["id"], result={"thread": {}})', "protocol"),
            ("a refusal", 'send(id=read()["id"], error={"code": 1, "message": "not today"})', "not today"),
            ("it dies in the middle", "meet()\nsys.exit(0)", "before its answer"), ("it dies at once", "sys.exit(5)", "5")):
        status, claim, _, _ = run("codex-ask", CODEX + program + "\n")
        check(f"codex: {name}", status == 1 and claim["status"] == "failed" and why in claim["summary"], (status, claim))


def codex_questions():
    tell = CODEX + 'meet()\nsay(command("rm -rf build", networkApprovalContext={"host": "h"}, reason="a harmless step"))\nend()\n'
    for decision, want in (("allow_once", "accept"), ("allow_session", "accept"), ("deny", "decline"), (None, "decline"), ("other allow_once", "decline"), ("cancel", "cancel")):
        Gateway.answers = [decision]
        _, claim, out, _ = run("codex-ask", tell)
        agree(f"codex answered {decision}", json.loads(claim["summary"]), [want])
        q = seen("approval.requested")
        agree("codex: the command and all of it", [(x["preview"], x["effect"], x["reason"], x["action_id"]) for x in q],
              [('rm -rf build\n{"cwd":"/workspace/source","networkApprovalContext":{"host":"h"}}\n', "execute", "a harmless step", "c1")])
        check("codex: nothing is allowed for its session", "acceptForSession" not in out and out.count("execpolicy_amendment") == 0, out)
    for permissions, want in (({"execute": "allow"}, "accept"), ({"execute": "deny"}, "decline")):
        Gateway.answers = []
        _, claim, _, _ = run("codex-ask", tell, permissions=permissions)
        check(f"codex: permissions {permissions}", json.loads(claim["summary"]) == [want] and not shown(), claim)
    # All that a question about files says is an item.
    Gateway.answers = ["allow_once", "deny"]
    _, claim, _, _ = run("codex-ask", CODEX + r"""
meet()
item("started", type="fileChange", id="c1", status="inProgress", changes=changes(("/workspace/source/a.py", "update", "@@ -1 +1 @@\n-one\n+two\n"), ("b", "add", "x\ny"), ("c", "delete", "z\n")))
item("started", type="fileChange", id="c2", status="inProgress", changes=changes(("a.py", "update", "update trusted.txt\n+x\n"), ("d\nadd e", "add", "")))
said = files(0, "c1"), files(1, "c2")
item("completed", type="fileChange", id="c1", status="completed", changes=[])
say(*said)
end()
""")
    agree("codex: its changes", json.loads(claim["summary"]), ["accept", "decline"])
    agree("codex: of each item its own", shown(), [
        "update /workspace/source/a.py\n@@ -1 +1 @@\n-one\n+two\nadd b\n+x\n+y\n" + NO_NEWLINE + "delete c\n-z\n",
        '{"path":"a.py","kind":{"type":"update","move_path":null},"diff":"update trusted.txt\\n+x\\n"}\n{"path":"d\\nadd e","kind":{"type":"add"},"diff":""}\n'])
    agree("codex: files are modified", {q["effect"] for q in seen("approval.requested")}, {"modify"})


LONG = 'print(json.dumps({"method": "item/started", "params": "x" * 9000000}), flush=True)\n'
DEEP = 'print("{\\"method\\": \\"item/started\\", \\"params\\": " + 5000 * "[" + 5000 * "]" + "}", flush=True)\n'


def codex_hostile():
    """A question that does not say what would be done, or says it of another, is refused, and nobody is asked."""
    begun = 'item("started", type="fileChange", id="c1", status="inProgress", changes=changes(("a.py", "add", "harmless\\n")))\n'
    for name, program in (
            ("an unknown item", 'say(files(0, "c9"))\n'),
            ("no item", 'say(files(0, ""))\n'),
            ("no command", 'say(ask("commandExecution", 0, itemId="c1", reason="trust me"), ask("commandExecution", 1, command=["rm"], itemId="c1"))\n'),
            ("a root for the session", begun + 'say(files(0, grantRoot="/"))\n'),
            ("an item that is done", begun + 'item("completed", type="fileChange", id="c1", status="completed", changes=[])\nsay(files())\n'),
            ("an id that is given twice", begun + begun.replace("harmless", "evil") + 'say(files())\n'),
            ("the first of two of one id is done", begun + begun.replace("harmless", "evil") + 'item("completed", type="fileChange", id="c1", status="completed")\nsay(files())\n'),
            ("a change that changes", begun + 'tell("item/fileChange/patchUpdated", itemId="c1", changes=changes(("a.py", "add", "evil\\n")))\nsay(files())\n'),
            ("no changes", 'item("started", type="fileChange", id="c1", status="inProgress", changes=[])\nsay(files())\n'),
            ("after a line too long to be read", begun + LONG + 'say(files())\n'),
            ("after a line too deep to be read", begun + DEEP + 'say(files())\n'),
            ("after a line too long, of the same id", LONG + begun + 'say(files())\n'),
            ("what is not shown as it is", begun.replace("harmless", "harm\\0less") + 'say(files())\n'),
            ("more than can be shown", begun.replace("harmless", "x" * 300000) + 'say(files())\n'),
            ("more than can be asked", begun.replace("harmless", "x" * 90000) + 'say(files())\n'),
            ("a command that is no item's", begun.replace("fileChange", "commandExecution") + 'say(files())\n'),
            ("one of too many", "".join(begun.replace("c1", f"i{i}") for i in range(64)) + begun + 'say(files())\n')):
        Gateway.answers = ["allow_once"] * 2
        _, claim, _, err = run("codex-ask", CODEX + "meet()\n" + program + "end()\n")
        check(f"codex: {name}", set(json.loads(claim["summary"])) == {"decline"} and not shown(), (claim, shown(), err))
    # The same id again when the first is done, an update that says the same, and ids of requests that come again: each has its own.
    Gateway.answers = ["allow_once", "deny", "allow_once", "allow_once"]
    _, claim, _, _ = run("codex-ask", CODEX + "meet()\nprint('no message: {', flush=True)\n" + begun + 'tell("item/fileChange/patchUpdated", itemId="c1", changes=changes(("a.py", "add", "harmless\\n")))\nsaid = [files()]\n'
                         'item("completed", type="fileChange", id="c1", status="completed", changes=[])\n' + begun.replace("harmless", "evil") +
                         'said += [files(), command("ls"), command("ls -l")]\nsay(*said)\nend()\n')
    agree("codex: one after the other", json.loads(claim["summary"]), ["accept", "decline", "accept", "accept"])
    agree("codex: what was shown of them", shown(), ["add a.py\n+harmless\n", "add a.py\n+evil\n", 'ls\n{"cwd":"/workspace/source"}\n', 'ls -l\n{"cwd":"/workspace/source"}\n'])
    # Ids of no type that there is, or of any length, are not answered; what is asked without end ends the run.
    status, claim, out, _ = run("codex-ask", CODEX + r"""
meet()
for id in ({}, [], True, None, "x" * 129):
    send(method="craft/strange", id=id, params={})
send(method="craft/strange", id="last")
assert read()["id"] == "last"
for i in range(100000):
    print(json.dumps({"method": "craft/strange", "id": i}))
end()
""")
    check("codex: a flood", status == 1 and "again and again" in claim["summary"] and out.count("-32601") == 256, (status, claim, out.count("-32601")))


def codex_ends():
    """The agent is gone while a person thinks, and the run is stopped while it is asked, or before."""
    Gateway.answers = ["allow_once"]
    status, claim, _, _ = run("codex-ask", CODEX + 'meet()\nput("commandExecution", 0, itemId="c1", command="ls")\n')
    check("codex: who is asked for is gone", status == 1 and claim["status"] == "failed", claim)
    p = begin("codex-ask", CODEX + r"""
meet()
item("started", type="commandExecution", id="c1", command="ls")
m = read()
assert m["method"] == "turn/interrupt" and m["params"] == {"threadId": "th1", "turnId": "tu1"}, m
assert command("ls") == "cancel"
send(id=m["id"], result={})
end("interrupted")
""")
    wait_seen("tool.call")
    p.bridge.send_signal(signal.SIGTERM)
    status, claim, _, _ = p.end()
    check("codex: the end of the run is the end of its turn", status == 1 and claim["summary"] == "interrupted" and not shown(), claim)


def claude_course():
    status, claim, out, err = run("claude-ask", CLAUDE + r"""
assert meet() == [{"type": "text", "text": "Mend it: {\"\u00e9\"} 'now'"}]
send(type="control_request", request_id="h1", request={"subtype": "hook_callback"})
m = read()["response"]
assert m["subtype"] == "error" and m["request_id"] == "h1", m
use(command="ls")
send(type="user", message={"content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a.py", "is_error": False}]})
send(type="control_cancel_request", request_id="r1"); send(type="control_request"); send(type="control_request", request_id=7, request=[])
send(type="control_response", response=[]); send(type="control_response", response={"request_id": "stop", "subtype": "error"}); send(type=[]); print("no JSON")
send(type="control_response", response={"subtype": "success", "request_id": "begin"})
send(type="assistant", message={"content": [{"type": "text", "text": "Mended."}]})
end()
assert sys.stdin.read() == ""
""")
    check("claude: a course to its end", status == 0 and claim == {"status": "completed", "summary": "Mended."}, (status, claim, err))
    agree("claude: what it does", [(c["tool"], c["arguments"]) for c in seen("tool.call")], [("Bash", '{"command":"ls"}')])
    agree("claude: and what came of it", [(o["ok"], o["output"]) for o in seen("tool.output")], [(True, "a.py")])
    check("claude: it is prompted once", out.count('"role":"user"') == 1, out)
    for name, program, why in (
            ("a result that failed", 'meet()\nend("no budget", is_error=True)', "no budget"),
            ("one without words", 'meet()\nend("", is_error=True, subtype="error_during_execution")', "error_during_execution"),
            ("a refusal", 'm = read()\nsend(type="control_response", response={"subtype": "error", "request_id": m["request_id"], "error": "not today"})', "not today"),
            ("it dies in the middle", "meet()\nsys.exit(0)", "before its answer")):
        status, claim, _, _ = run("claude-ask", CLAUDE + program + "\n")
        check(f"claude: {name}", status == 1 and claim["status"] == "failed" and why in claim["summary"], (status, claim))


def claude_questions():
    tell = CLAUDE + 'meet()\nsaid = ask("Bash", {"command": "rm -rf build", "timeout": 9.5, "description": "harmless"}, description="harmless")\nend(json.dumps(said))\n'
    input = {"command": "rm -rf build", "timeout": 9.5, "description": "harmless"}
    deny = {"behavior": "deny", "message": "This was not allowed."}
    for decision, want in (("allow_once", {"behavior": "allow", "updatedInput": input}), ("allow_session", {"behavior": "allow", "updatedInput": input}),
                           ("deny", deny), (None, deny), ("other allow_once", deny), ("cancel", {**deny, "interrupt": True})):
        Gateway.answers = [decision]
        _, claim, out, _ = run("claude-ask", tell.replace("end(json.dumps(said))", "send(type='assistant', message={'content': [{'type': 'text', 'text': json.dumps(said)}]})\nend()"))
        agree(f"claude answered {decision}", json.loads(claim["summary"]), want)
        agree("claude: the command and what it depends on", [(q["preview"], q["effect"], q["reason"], q["action_id"]) for q in seen("approval.requested")],
              [('rm -rf build\n{"timeout":9.5}\n', "execute", "harmless", "toolu_1")])
        check("claude: no rule is taken", "updatedPermissions" not in out, out)
    for tool, input, effect, want in (
            ("Edit", {"file_path": "a.py", "old_string": "one\ntwo", "new_string": "", "replace_all": True}, "modify",
             "edit a.py\n-one\n-two\n" + NO_NEWLINE + '{"replace_all":true}\n'),
            ("Write", {"file_path": "a.py", "content": "edit b\n"}, "modify", "write a.py\n+edit b\n"),
            ("Write", {"file_path": "a.py\n+x", "content": ""}, "modify", '"Write"\n{"file_path":"a.py\\n+x","content":""}\n'),
            ("Edit", {"file_path": "a.py", "old_string": "x"}, "modify", '"Edit"\n{"file_path":"a.py","old_string":"x"}\n'),
            ("WebFetch", {"url": "http://x", "n": None}, "execute", '"WebFetch"\n{"url":"http://x"}\n'),
            ("Bash", {"command": ["ls"]}, "execute", '"Bash"\n{"command":["ls"]}\n'),
            ("mcp__x\nls", {"command": "ls"}, "execute", '"mcp__x\\nls"\n{"command":"ls"}\n'), ("Task", {}, "execute", '"Task"\n')):
        Gateway.answers = ["allow_once"]
        _, claim, _, _ = run("claude-ask", CLAUDE + f"meet()\ngiven = {input!r}\nassert ask({tool!r}, given) == {{'behavior': 'allow', 'updatedInput': given}}\nend()\n")
        check(f"claude: {tool} is allowed as it is", claim["status"] == "completed", claim)
        agree(f"claude: {tool} is shown", [(q["preview"], q["effect"]) for q in seen("approval.requested")], [(want, effect)])
    for permissions, want in (({"execute": "allow"}, "allow"), ({"execute": "deny"}, "deny")):
        Gateway.answers = []
        _, claim, _, _ = run("claude-ask", tell.replace("\nend(", f"\nassert said['behavior'] == '{want}'\nend("), permissions=permissions)
        check(f"claude: permissions {permissions}", claim["status"] == "completed" and not shown(), claim)


def claude_hostile():
    for name, call in (("no input", 'ask("Bash", None)'), ("an input that is none", 'ask("Bash", ["ls"])'), ("no tool", 'ask("", {"command": "ls"})'),
                       ("a question to the user", 'ask("AskUserQuestion", {"questions": []})'),
                       ("more than can be shown", 'ask("Bash", {"command": "ls; " + "x" * 300000})'),
                       ("more than can be asked", 'ask("Bash", {"command": "ls; " + "x" * 90000})')):
        Gateway.answers = ["allow_once"]
        _, claim, _, err = run("claude-ask", CLAUDE + f"meet()\nassert {call} == {{'behavior': 'deny', 'message': 'This was not allowed.'}}\nend()\n")
        check(f"claude: {name}", claim["status"] == "completed" and not shown(), (claim, shown(), err))
    # What JSON of ours does not take is shown as nearly as can be, and a question about it is answered all the same: by no.
    for escape in (r"\u0000", r"\ud83d", r"\udc00\ud83d\ude00", "\\xff"):
        Gateway.answers = ["allow_once"]
        _, claim, _, err = run("claude-ask", CLAUDE + f"""
meet()
put = {{"command": "ls MARK"}}
line = json.dumps({{"type": "control_request", "request_id": "r1", "request": {{"subtype": "can_use_tool", "tool_name": "Bash", "input": put, "tool_use_id": "t"}}}})
sys.stdout.buffer.write(line.replace("MARK", {escape!r}).encode().replace(b"\\\\xff", b"\\xff") + b"\\n")
sys.stdout.buffer.flush()
assert read()["response"]["response"]["behavior"] == "deny"
use(command="MARK")
sys.stdout.flush()
print(json.dumps({{"type": "assistant", "message": {{"content": [{{"type": "text", "text": "a MARK"}}]}}}}).replace("MARK", "\\\\ud83d"), flush=True)
end()
""")
        check(f"claude: {escape} is refused", claim["status"] == "completed" and not shown(), (claim, shown(), err))
        agree("claude: and read", [t["text"] for t in seen("message.text")], ["a \ufffd"])
    # Two at once, with one id: each answer carries what was shown for it.
    Gateway.answers = ["allow_once", "deny"]
    _, claim, _, _ = run("claude-ask", CLAUDE + r"""
meet()
put("Bash", {"command": "ls"}); put("Bash", {"command": "rm -rf /"})
one, two = read()["response"]["response"], read()["response"]["response"]
assert one == {"behavior": "allow", "updatedInput": {"command": "ls"}} and two["behavior"] == "deny", (one, two)
end()
""")
    check("claude: one id for two", claim["status"] == "completed" and shown() == ["ls\n", "rm -rf /\n"], (claim, shown()))
    # What is allowed without a person may be long; it comes back whole.
    _, claim, _, err = run("claude-ask", CLAUDE + r"""
meet()
given = {"file_path": "a", "content": "\u20ac\n\"" * 500000}
assert ask("Write", given)["updatedInput"] == given
end()
""", permissions={"edit": "allow"})
    check("claude: a long one", claim["status"] == "completed", (claim, err[-300:]))
    status, claim, out, _ = run("claude-ask", CLAUDE + r"""
meet()
for i in range(100000):
    print(json.dumps({"type": "control_request", "request_id": str(i), "request": {"subtype": "craft"}}))
end()
""")
    check("claude: a flood", status == 1 and "again and again" in claim["summary"] and out.count("does not have it") == 256, (status, claim))


def claude_ends():
    Gateway.answers = ["allow_once"]
    status, claim, _, _ = run("claude-ask", CLAUDE + 'meet()\nput("Bash", {"command": "ls"})\n')
    check("claude: who is asked for is gone", status == 1 and claim["status"] == "failed", claim)
    p = begin("claude-ask", CLAUDE + r"""
meet()
use(command="ls")
m = read()
assert m["type"] == "control_request" and m["request"] == {"subtype": "interrupt"}, m
said = ask("Bash", {"command": "ls"})
assert said["behavior"] == "deny" and said["interrupt"] is True, said
end("", is_error=True, subtype="error_during_execution")
""")
    wait_seen("tool.call")
    p.bridge.send_signal(signal.SIGTERM)
    status, claim, _, _ = p.end()
    check("claude: the end of the run is the end of its turn", status == 1 and not shown(), (status, shown()))


sys.exit(finish((codex_course, codex_questions, codex_hostile, codex_ends, claude_course, claude_questions, claude_hostile, claude_ends)))
