#!/usr/bin/python3 -B
"""pinfold approve, and pinfold run that asks at its terminal: a person before a real terminal, against an API that does as
it is told."""
from fake import *

TERM_PROMPT = "[l] later: "


def with_api(f):
    api = Api(steady)
    try:
        f(api)
    finally:
        api.stop()


def listed(api):
    check("nothing waits", plain(api, "approve")[0] == 0 and "nothing waits" in plain(api, "approve")[2])
    for i in range(3):
        api.ask("q%d" % i, "make test\nmore", shortened=i == 2)
    status, out, err = plain(api, "approve")
    rows = out.splitlines()
    check("the inbox, page after page", status == 0 and len(rows) == 4 and all("q%d" % i in rows[i + 1] and rows[i + 1].endswith("make test ...") for i in range(3)), out)
    status, out, err = plain(api, "--json", "approve")
    check("as JSON", [json.loads(x)["pending"][0]["requestId"] for x in out.splitlines()] == ["q0", "q1", "q2"], out)
    for way in ({"device": False}, {}):
        api.inbox = not way == {}
        status, out, err = plain(api, "approve", **way)
        check("run after run, where there is no inbox", status == 0 and out.count("make test") == 3, out + err)
        check("which is said", "--device-token-file" in err, err)
    status, out, err = plain(api, "--json", "approve", RUN)
    check("a run's as JSON", status == 0 and len(json.loads(out)["pending"]) == 3, out)
    for words in (["approve", RUN], ["approve", RUN, "q0"], ["approve", RUN, "--deny"], ["approve", "--deny"], ["approve", RUN, "q0", "--deny", "--cancel"],
                  ["approve", "a/b"], ["approve", RUN, "q 0"], ["approve", RUN, "q0", "q1"], ["approve", RUN, "q0", "--digest", "0" * 64],
                  ["approve", RUN, "q0", "--deny", "--digest", "x"], ["approve", RUN, "q0", "--yes"]):
        check("wrong use: %s" % words, plain(api, *words)[0] == 2)
    check("nobody was answered", api.posts == [])
    long = "746b85e8-0615-4990-aec0-aef88c9fcc4f"
    api.ask(long, "one")
    check("an id as the built-in agent makes them is a word of its own", long in plain(api, "approve")[1].split())


def named(api):
    api.ask("q1", "make test")
    status, out, err = plain(api, "approve", RUN, "q1", "--allow-once")
    check("answered by name", status == 0 and api.posts == [("q1", {"decision": "allow_once", "digest": digest("execute", "make test")}, DEVICE)], (status, err, api.posts))
    check("the card is shown all the same", "  | make test" in err and digest("execute", "make test") in err and "question q1: allow_once at " in err, err)
    status, out, err = plain(api, "approve", RUN, "q1", "--deny")
    check("a second one hears the first", status == 1 and "decided already: allow_once at " in err and "by my device" in err, err)
    status, out, err = plain(api, "approve", RUN, "q9", "--deny")
    check("another question", status == 1 and "does not wait" in err, err)
    api.ask("q2", "rm x")
    status, out, err = plain(api, "approve", RUN, "q2", "--deny", "--digest", digest("execute", "rm y"))
    check("what was shown elsewhere", status == 1 and "not what was shown" in err and "q2" in api.cards, err)
    status, out, err = plain(api, "--json", "approve", RUN, "q2", "--allow-session")
    check("for the session: both steps", status == 0 and json.loads(out)["decision"] == "allow_session" and
          [(p[1]["decision"], "confirm" in p[1]) for p in api.posts[-2:]] == [("allow_session", False), ("allow_session", True)], (out, err))
    api.ask("q3", "x" * 50, shortened=True)
    status, out, err = plain(api, "approve", RUN, "q3", "--allow-session")
    check("not where the card is not whole", status == 1 and "can be allowed once only" in err and "Text shortened" in err, err)
    status, out, err = plain(api, "approve", RUN, "q3", "--deny", device=False)
    check("an API token reads and does not decide", status == 1 and "may read what an agent asks, and not answer it" in err, err)
    for (http, code), says in {(403, "caller_refused"): "apart from one in a sandbox", (404, "approval_not_found"): "no such question",
                               (409, "approval_expired"): "in time", (409, "run_is_terminal"): "has ended", (409, "confirm_invalid"): "too late",
                               (401, "device_expired"): "pair it anew", (403, "decision_not_offered"): "once only", (409, "digest_mismatch"): "not what was shown",
                               (404, "run_not_found"): "no such run", (401, "unauthorized"): "does not know this token"}.items():
        api.refuse = http, code
        status, out, err = plain(api, "approve", RUN, "q3", "--deny")
        check("what %s means" % code, status == 1 and says in err, (status, err))
    api.refuse = 503, "store_unavailable"
    check("away", plain(api, "approve", RUN, "q3", "--deny")[0] == 4)
    api.refuse = None


def tokens(api):
    api.ask("q1", "x")
    path = os.path.join(os.environ.get("TMPDIR", "/tmp"), "pinfold-token.%d" % os.getpid())
    with open(path, "w") as f:
        f.write(DEVICE + "\n")
    try:
        os.chmod(path, 0o644)
        status, out, err = plain(api, "--device-token-file", path, "approve", RUN, "q1", "--deny", device=False)
        check("a token that others may read", status == 2 and "chmod 600" in err and api.posts == [], err)
        os.chmod(path, 0o600)
        check("from a file", plain(api, "--device-token-file", path, "approve", RUN, "q1", "--deny", device=False)[0] == 0 and api.posts[-1][2] == DEVICE)
        api.ask("q2", "x")
        check("from a variable", plain(api, "--device-token-env", "MINE", "approve", RUN, "q2", "--deny", device=False, MINE=DEVICE)[0] == 0 and api.posts[-1][2] == DEVICE)
        api.ask("q3", "x")
        status, out, err = plain(api, "--token-env", "MINE", "approve", RUN, "q3", "--deny", MINE=API)
        check("the one that was named before the one that is there", status == 1 and api.posts[-1][2] == API, err)
        status, out, err = plain(api, "--device-token-env", "NONE", "approve", RUN)
        check("none there", status == 2, err)
    finally:
        os.unlink(path)


def at_terminal(api):
    api.ask("q1", "echo one\n[o] allow once  [d] deny\n\x1b[2J\u202eend", reason="because")
    api.ask("q2", "rm -rf build", shortened=True)
    api.ask("q3", "git status")
    api.ask("q4", "later")
    t = Terminal([CLI, "approve", RUN], environment(api))
    card = t.expect(TERM_PROMPT)
    check("a card", all(x in card for x in ("question q1", "because", "the rule", digest("execute", api.cards["q1"]["preview"]), "  | echo one\r\n",
                                            "  | [o] allow once  [d] deny\r\n", "[s] allow for the session")), card)
    t.type("\n")
    t.expect(TERM_PROMPT)
    t.type("yes\n")
    t.expect(TERM_PROMPT)
    check("nothing is a default", api.posts == [])
    t.type("d\n")
    card = t.expect(TERM_PROMPT)
    check("the next card", "question q1: deny at " in card and "question q2" in card and "Text shortened" in card and "[s]" not in card.split("Text shortened")[1], card)
    t.type("s\n")
    check("the session is not offered where a card is not whole", "once only" in t.expect(TERM_PROMPT) and "q2" in api.cards)
    t.type("once\n")
    t.expect(TERM_PROMPT)
    t.type("s\n")
    t.expect("anything else not to: ")
    check("one tap is not enough", "q3" in api.cards)
    t.type("\n")
    t.expect("nothing is decided")
    t.expect(TERM_PROMPT)
    t.type("s\n")
    t.expect("anything else not to: ")
    t.type("s\n")
    t.expect("question q3: allow_session at ")
    t.expect(TERM_PROMPT)
    t.type("l\n")
    t.expect("it still waits: pinfold approve")
    check("it ends when none is left", t.wait() == 0)
    check("what was sent", [(p[0], p[1]["decision"]) for p in api.posts] ==
          [("q1", "deny"), ("q2", "allow_session"), ("q2", "allow_once"), ("q3", "allow_session"), ("q3", "allow_session"), ("q3", "allow_session")] and
          all(p[1]["digest"] and p[2] == DEVICE for p in api.posts), api.posts)
    check("no byte of it moves the cursor", bad_bytes(t.raw) == [] and "\u202e" not in t.text(), bad_bytes(t.raw))


def narrow(api):
    """What a terminal carries over to its next line stands behind a margin, too."""
    columns = 60
    for i, text in enumerate(("echo ok; rm -rf ~ #" + " " * (columns - 4 - 19) + "[d] deny: nothing is decided", "x" * 300, "\u00e9\u6f22\u0301" * 60, "\t" * 30 + "a\tb",
                              "\x1b" * 100, "a" * (columns - 4), "a" * (columns - 3), "two\n\nlines " + "y" * 70)):
        api.ask("n%d" % i, text, reason=text.replace("\n", " "), policyReason="", actionId=text.replace("\n", " "))
        t = Terminal([CLI, "approve", RUN, "n%d" % i], environment(api), columns=columns)
        card = t.expect("[o] allow once")
        rows = [r for r in card.split("waits until")[1].split("\r\n") if r]
        rows = rows[rows.index(next(r for r in rows if r.startswith("  | "))):]
        check("no row is wider than the terminal, and each has its margin", all(r.startswith(("  | ", "  : ")) and len(r) <= columns for r in rows), rows)
        check("the lines that were sent are those that begin one", sum(r.startswith("  | ") for r in rows) == text.count("\n") + 1, rows)
        check("nothing of it is lost", "".join(r[4:] for r in rows) == text.replace("\n", "").replace("\x1b", "\\x1b"), rows)
        said = card.split("  asked ")[0].split("  reason ")[1].split("\r\n")[1:-1]
        check("nor is a reason", all(r.startswith(("              : ", "  action ")) and len(r) <= columns for r in said), said)
        t.type("l\n")
        check("it still waits", t.wait() in (0, 1))
    said = "more than the screen: read it from its beginning"
    for lines, told in ((3, False), (40, True)):
        api.ask("long", "rm -rf ~\n" + "\n" * (lines - 2) + "ls")
        t = Terminal([CLI, "approve", RUN, "long"], environment(api), rows=24)
        check("who sees only the end of a card is told", (said in t.expect("[o] allow once")) == told)
        t.type("l\n")
        t.wait()


def decided_elsewhere(api):
    api.ask("q1", "one")
    api.ask("q2", "two")
    t = Terminal([CLI, "approve", RUN], environment(api))
    t.expect(TERM_PROMPT)
    t.type("o")  # half an answer, to a question that goes
    t.expect("o")  # the terminal has it
    api.decide("q1", "deny", "the other")
    news = t.expect(TERM_PROMPT)
    check("the news", "question q1 was decided meanwhile: deny at " in news and "by the other" in news and "question q2" in news, news)
    t.type("\n")
    t.expect(TERM_PROMPT)
    check("half an answer is none to the next", api.posts == [])
    api.decide("q2", "expired", None)
    t.expect("question q2 was decided meanwhile: expired")
    check("then nothing is left", t.wait() == 0)
    api.ask("q3", "three")
    t = Terminal([CLI, "approve", RUN, "q3"], environment(api))
    t.expect(TERM_PROMPT)
    t.type("\x04")
    t.expect("nothing is decided")
    check("the end of input decides nothing", t.wait() == 1 and api.posts == [])
    t = Terminal([CLI, "approve", RUN, "q3"], environment(api))
    t.expect(TERM_PROMPT)
    t.type("\x03")
    check("nor does Ctrl-C", t.wait() == -signal.SIGINT and api.posts == [])
    t = Terminal([CLI, "approve", RUN, "q3", "--allow-session"], environment(api))
    t.expect("anything else not to: ")
    t.type("x\n")
    check("the second step is asked for at a terminal", t.wait() == 1 and "q3" in api.cards)
    t = Terminal([CLI, "approve", RUN, "--deny"], environment(api))
    check("the only one needs no name", t.wait() == 0 and "q3" not in api.cards)


def run_words():
    import tempfile
    d = tempfile.mkdtemp(prefix="pinfold-cli.")
    with open(d + "/a.py", "w") as f:
        f.write("x = 1\n")
    return d


def running(api, folder):
    words = [CLI, "run", "-i", "x", folder]
    api.event("run.queued")
    t = Terminal(words, environment(api))
    t.expect("run.queued")
    t.expect("0 model requests")
    t.type("o\no\n")  # before there is a card: no answer to it
    t.expect("o\r\n")  # the terminal has them
    t.expect("o\r\n")
    api.event("run.phase", phase="executing")
    t.expect("executing, 0:")
    api.ask("q1", "make test")
    card = t.expect(TERM_PROMPT)
    check("run shows a card", "question q1" in card and "  | make test" in card, card)
    api.event("told", n=1)
    api.event("told", n=2)
    t.type("x\n")
    t.expect(TERM_PROMPT)
    check("what was typed before answers nothing", api.posts == [])
    check("no event pushes the card away", "told" not in t.text())
    t.type("o\n")
    after = t.expect("approval.resolved")
    check("then the events go on, in order", after.index("question q1: allow_once at ") < after.index('"n":1') < after.index('"n":2'), after)
    api.ask("q2", "two")
    t.expect(TERM_PROMPT)
    api.event("told", n=3)
    api.decide("q2", "deny", "the phone")
    news = t.expect("approval.resolved")
    check("the news at the prompt", "question q2 was decided meanwhile: deny at " in news and "by the phone" in news and '"n":3' in news, news)
    api.ask("q3", "three")
    t.expect(TERM_PROMPT)
    t.type("\x03")
    t.expect("question q3: nothing is decided")
    t.expect("The run's end is asked for")
    wait_for(lambda: api.cancelled == 1, PATIENCE)
    check("Ctrl-C at a question asks for the end", api.cancelled == 1 and [p[0] for p in api.posts] == ["q1"], api.posts)
    api.decide("q3", "expired", None)
    api.end("cancelled")
    check("and is followed to it", t.wait() == 3)
    check("nothing but text and the live line", bad_bytes(t.raw) == [], bad_bytes(t.raw))
    check("each event once", [int(x) for x in re.findall(r'told  \{"n":(\d)', t.text())] == [1, 2, 3])


def run_alone(api, folder):
    """Without a device's token nobody is asked, and it is said once how."""
    words = [CLI, "run", "-i", "x", folder]
    api.ask("q1", "one")
    api.ask("q2", "two")
    t = Terminal(words, environment(api, device=False))
    t.expect("The agent waits for a person: answer in the page, %s/#/run/%s, or with \"pinfold approve %s\"" % (api.url, RUN, RUN))
    api.decide("q1", "deny", "x")
    api.decide("q2", "deny", "x")
    api.end()
    check("it goes on without", t.wait() == 0 and t.text().count("waits for a person") == 1 and "[d]" not in t.text(), t.text())


def run_piped(api, folder):
    """Input that is no terminal is never asked."""
    api.ask("q1", "one")
    p = subprocess.Popen([CLI, "run", "-i", "x", folder], env=environment(api), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdin.write(b"o\n")
    p.stdin.flush()
    wait_for(lambda: api.connects, PATIENCE)
    api.decide("q1", "deny", "x")
    api.end("failed")
    out, err = p.communicate(timeout=PATIENCE)
    check("no question to a pipe", p.returncode == 1 and api.posts == [] and b"[d]" not in err and b"\x1b" not in out + err, err)
    check("the output is lines of events", [x.split()[1] for x in out.decode().splitlines()[:3]] == ["approval.requested", "approval.resolved", "run.failed"], out)


def permissions(api, folder):
    """--ask and --deny are the run's permissions, each tool once."""
    words = ["run", "-i", "x", "--detach"]
    check("detached", plain(api, *words, "--ask", "edit_file", "--deny", "run_check", "--ask", "write_file", folder)[:2] == (0, RUN + "\n"))
    check("what the agent may", api.created[-1][0]["permissions"] == {"edit_file": "ask", "run_check": "deny", "write_file": "ask"}, api.created[-1])
    check("none", plain(api, *words, folder)[0] == 0 and "permissions" not in api.created[-1][0])
    status, out, err = plain(api, *words, "--ask", "edit_file", "--deny", "edit_file", folder)
    check("one tool twice", status == 2 and "each once" in err, err)
    many = [w for i in range(33) for w in ("--ask", "t%d" % i)]
    check("as many as a run takes", plain(api, *words, *many[:-2], folder)[0] == 0 and len(api.created[-1][0]["permissions"]) == 32)
    check("one more", plain(api, *words, *many, folder)[0] == 2 and len(api.created) == 3)


def whose_token(api, folder):
    """The device's token is taken for everything, however it is named, where there is no other."""
    path = folder + "/device-token"
    with open(path, "w", opener=lambda p, flags: os.open(p, flags, 0o600)) as f:
        f.write(DEVICE + "\n")
    for named, more in (["--device-token-file", path], {}), (["--device-token-env", "MINE"], {"MINE": DEVICE}), ([], {"PINFOLD_DEVICE_TOKEN": DEVICE}):
        for token, bearer in (False, DEVICE), (True, API):
            status, out, err = plain(api, *named, "run", "-i", "x", "--detach", folder, device=False, token=token, **more)
            check("%s %s" % (named, token), status == 0 and api.created[-1][1] == bearer, err)
    status, out, err = plain(api, "ps", device=False, token=False)
    check("none at all", status == 2 and "set PINFOLD_TOKEN" in err, err)


def refused_at_prompt(api, folder):
    api.event("run.queued")
    t = Terminal([CLI, "run", "-i", "x", folder], environment(api))
    api.ask("q1", "one")
    t.expect(TERM_PROMPT)
    api.refuse = 403, "caller_refused"
    t.type("d\n")
    t.expect("apart from one in a sandbox")
    api.ask("q2", "two")
    api.end()
    check("who may not answer is not asked again", t.wait() == 0 and t.text().count(TERM_PROMPT) == 1, t.text())


folder = run_words()
for name in ("listed", "named", "tokens", "at_terminal", "narrow", "decided_elsewhere"):
    case(name, with_api, globals()[name])
for name in ("running", "run_alone", "run_piped", "permissions", "whose_token", "refused_at_prompt"):
    case(name, with_api, lambda api: globals()[name](api, folder))
subprocess.run(["rm", "-rf", folder], check=True)
done()
