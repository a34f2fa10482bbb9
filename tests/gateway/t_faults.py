#!/usr/bin/env python3
"""The gateway when things go wrong under way: revocation, leaving clients, a store that dies, bombs, a clock that jumps.

Arguments choose cases by name. Run in a build folder, or with PINFOLD_BUILD naming one; needs root.
"""
import os
import random
import signal
import sys
import threading
import time
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cases_common import check, counts, same  # noqa: E402
from rig import *  # noqa: E402,F403
from tap import Tap, bomb  # noqa: E402

cuts = []  # seconds from what ended a call to the provider's seeing it: told, not judged


class Call(threading.Thread):
    """A model call under way: begun when this returns, its answer after join."""

    def __init__(self, run, tap, kind, **more):
        super().__init__()
        self.run_, self.text, self.answer = run, "%s of %s" % (kind, run.id), None
        self.token, self.tap, self.more = run.token(), tap, more
        self.start()
        check(wait_for(lambda: tap.asked(self.text)), self.text + ": it reached the provider")

    def run(self):
        self.answer = self.run_.chat(self.text, token=self.token, **self.more)

    def refused(self, what, outcome="inactive_run_token"):
        """The run heard that it is over, got nothing of the answer, the provider was hung up on, the unit is spent."""
        self.join(PATIENCE)
        a = self.answer
        same((a.status, a.code) if a else None, (401, "inactive_run_token"), what)
        check(a is None or b"SECRET" not in a.raw, what + ": nothing of the answer")
        self.spent(what, outcome)

    def spent(self, what, outcome):
        same(self.run_.shown()["used"], 1, what + ": the unit stays spent")
        if outcome:
            called = wait_for(lambda: [d["outcome"] for _, k, d in self.run_.events() if k == "model.called"])
            same(called, [outcome], what + ": what is told of it")


def test_revoked_under_way(rig, tap):
    other = Call(rig.run(2), tap, "HOLD")
    for how in ("revoke", "cancel", "finish"):
        for kind in ("HANG", "DRIP"):
            run = rig.run(2)
            call = Call(run, tap, kind)
            began = time.monotonic()
            rig.tell(how, run.tenant, run.id)
            cut = wait_for(lambda: tap.lost(call.text)) and time.monotonic() - began
            cuts.append(cut)
            what = "%s under a call that %ss" % (how, kind)
            call.refused(what, None if how == "finish" else "inactive_run_token")
            check(cut, what + ": the provider is hung up on")
            same(run.chat(token=call.token).code, "inactive_run_token", what + ": the next call")
    same(tap.lost(other.text), 0, "another run's call goes on")
    tap.release()
    other.join(PATIENCE)
    same(other.answer.status, 200, "and is answered")
    same(rig.run(1).chat("after").status, 200, "a call after all of it")


def test_many_under_way(rig, tap):
    """Two calls of a run, three of a tenant: one more spends nothing, and one that is over makes room."""
    tap.gone.clear()
    one, two, others = rig.run(9, tenant="narrow"), rig.run(9, tenant="narrow"), rig.run(9)
    held = [Call(one, tap, "HOLD"), Call(one, tap, "HOLD too")]
    full = one.chat("hello")
    same((full.status, full.code, full.headers.get("retry-after")), (429, "too_many_model_calls", "1"), "a third of the run")
    held.append(Call(two, tap, "HOLD"))
    same(two.chat("hello").code, "too_many_model_calls", "a fourth of the tenant")
    same((one.shown()["used"], two.shown()["used"]), (2, 1), "what was refused has spent nothing")
    same(others.chat("hello").status, 200, "another tenant's")
    rig.tell("revoke", "narrow", one.id)
    for call in held[:2]:
        call.join(PATIENCE)
        same(call.answer and call.answer.code, "inactive_run_token", "the run is over, and so are its calls")
    same(one.chat("hello").code, "inactive_run_token", "a dead run hears that it is dead")
    same(two.chat("hello").status, 200, "there is room again")
    tap.release()
    held[2].join(PATIENCE)
    same(held[2].answer.status, 200, "the one that was held")


def test_close_under_way(rig, tap):
    run = rig.run(2)
    call = Call(run, tap, "HANG")
    rig.tell("close", run.id)
    check(wait_for(lambda: tap.lost(call.text)), "a closed box: the provider is hung up on")
    call.join(PATIENCE)
    check(call.answer is not None and call.answer.raw == b"", "a closed box: the connection is cut")
    call.spent("a closed box", "inactive_run_token")


def test_client_leaves(rig, tap):
    body = {"model": run_model, "messages": [{"role": "user", "content": ""}]}
    for kind in ("HANG", "DRIP"):
        run = rig.run(3)
        for n in range(10):
            text = "%s left %d of %s" % (kind, n, run.id)
            body["messages"][0]["content"] = text
            s = socket.create_connection(("127.0.0.1", run.port))
            s.sendall(request("POST", run.path("model"), run.token(), json.dumps(body).encode()))
            if n < 3:
                check(wait_for(lambda: tap.asked(text)), text + ": it reached the provider")
            else:
                same(Answer(s.recv(65536)).code, "model_request_budget_exhausted", text)
            began = time.monotonic()
            s.close()
            if n < 3:
                check(wait_for(lambda: tap.lost(text)), text + ": the provider is hung up on")
                cuts.append(time.monotonic() - began)
        same(tap.asked(" of " + run.id), 3, "a client that leaves gets no unit back")
        same(run.shown()["used"], 3, "the counter")
        called = wait_for(lambda: [d["outcome"] for _, k, d in run.events() if k == "model.called"])
        check(set(called) == {"client_left"}, "what is told of it: %s" % called)


def stop(pid, go=False):
    """Stops the process for sure, or lets it go on."""
    os.kill(pid, signal.SIGCONT if go else signal.SIGSTOP)
    wait_for(lambda: (open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[0] == "T") != go)


def test_missed_wake_up(rig, tap):
    """The store dies, and while the gateway cannot listen the run is revoked: nobody will tell it of that."""
    for kind in ("HANG", "HOLD"):
        tap.gone.clear()
        run = rig.run(2)
        call = Call(run, tap, kind)
        gateway = int(rig.tell("pids")[0])
        stop(gateway)
        rig.tell("restart_store")
        rig.tell("revoke", run.tenant, run.id)
        tap.release()  # the held answer is there before the gateway can know
        stop(gateway, go=True)
        call.refused("a revocation that nobody told of, call that %ss" % kind, None)


def test_storm(rig, tap):
    """32 callers share 4 units while gateway, store or both are killed at any instant; ROUNDS in the environment: how often."""
    seed = int(os.environ.get("SEED", random.randrange(1 << 32)))
    chance, whom, spared = random.Random(seed), {"restart": 0, "restart_store": 0}, 0
    for n in range(int(os.environ.get("ROUNDS", 12))):
        run = rig.run(4)
        text, token, got = "burst %d of %s" % (n, run.id), run.token(), []

        def one():
            said = None
            while said in (None, "store_unavailable"):
                a = run.chat(text, token=token)  # lost: again, so that a unit that came back would be spent
                said = a.code or (a.status if a.status else None)
            got.append(said)

        threads = [threading.Thread(target=one) for _ in range(32)]
        [t.start() for t in threads]
        kills = [chance.choice(list(whom)) for _ in range(chance.randrange(1, 4))]
        for k in kills:
            time.sleep(chance.uniform(0, 0.05))
            rig.tell(k)
            whom[k] += 1
        [t.join() for t in threads]
        seen, used, good = tap.asked(text), run.shown()["used"], got.count(200)
        what = "seed %d, round %d, %s: " % (seed, n, "+".join(kills))
        same(used, 4, what + "the counter")
        check(good <= seen <= 4, what + "%d answered, %d asked" % (good, seen))
        if "restart" not in kills:
            same((good, seen), (4, 4), what + "a store that dies loses no call")
        check(set(got) <= {200, "model_request_budget_exhausted"}, what + "nothing else is said: %s" % set(got))
        spared += 4 - seen
        rig.tell("close", run.id)
    print("storm: %s; %d units spent for nothing, none given back" % (whom, spared))


def test_two_answers_wait(rig, tap):
    """A store that stands still: the call is not delivered before the store has said that it may be."""
    tap.gone.clear()
    run = rig.run(2)
    call = Call(run, tap, "HOLD")
    store = int(rig.tell("pids")[1])
    stop(store)
    tap.release()
    time.sleep(0.2)
    check(call.is_alive(), "no answer before the last look")
    stop(store, go=True)
    call.join(PATIENCE)
    same(call.answer.status, 200, "and then it comes")


def test_bombs(rig, tap):
    """What is small on the wire stays small in memory."""
    tap.bomb = bomb()
    gateway = int(rig.tell("pids")[0])

    def peak():
        return [int(l.split()[1]) for l in open("/proc/%d/status" % gateway) if l.startswith("VmHWM")][0]

    with open("/proc/%d/maps" % gateway) as f:
        sanitized = "libasan" in f.read() or "libtsan" in f.read()
    before = peak()
    for kind, code in (("GZIP", "invalid_model_response"), ("ENDLESS", "model_response_too_large")):
        runs = [rig.run(1) for _ in range(8)]
        calls = [Call(r, tap, kind) for r in runs]
        for c in calls:
            c.join(PATIENCE)
            same((c.answer.status, c.answer.code), (502, code), kind)
    check(sanitized or peak() - before < 65536, "eight bombs at once took %d kB" % (peak() - before))


def test_no_core(rig, tap):
    run = rig.run(2)
    Call(run, tap, "HANG")
    gateway = int(rig.tell("pids")[0])
    same(os.stat("/proc/%d/environ" % gateway).st_uid, 0, "its memory is nobody's to dump, whatever the limits are")
    same(rig.tell("abort"), [str(int(signal.SIGABRT)), "none"], "an aborted gateway leaves no core")
    rig.restart()
    same(run.chat("after").status, 200, "and the next one serves")


def no_trace(rig):
    """Nothing that is left holds the key or a run's token."""
    for path, _, names in os.walk(rig.folder):
        for name in names:
            if not os.path.isfile(os.path.join(path, name)):
                continue
            with open(os.path.join(path, name), "rb") as f:
                data = f.read()
            check(KEY.encode() not in data, "the key is in " + name)
            check(not any(t.encode() in data for t in rig.tokens), "a run's token is in " + name)


def clock_cases(rig, tap, clock):
    def set_clock(seconds):
        with open(clock, "w") as f:
            f.write("%d" % (1000 * seconds))

    run = rig.run(9)
    token = run.token()
    same(run.chat("now", token=token).status, 200, "a token now")
    set_clock(-2)
    same(run.chat("a little before", token=token).status, 200, "two seconds before it was minted")
    set_clock(3600)
    same(run.chat("late", token=token).status, 401, "an hour later")
    set_clock(0)
    same(run.chat("back", token=token).code, "inactive_run_token", "what expired once does not come back")
    same(run.shown()["used"], 2, "neither spends")
    run = rig.run(9)
    token = run.token()
    rig.tell("revoke", run.tenant, run.id)
    for seconds in (-3600, 0, -2):
        set_clock(seconds)
        same(run.chat("revoked", token=token).status, 401, "revoked, clock %d s" % seconds)
    set_clock(0)
    run = rig.run(9)
    call = Call(run, tap, "HOLD")
    set_clock(-3600)
    same(rig.run(1).chat("new").code, "expired_run_token", "a token from the future")
    check(call.is_alive(), "no deadline of a call is on that clock")
    set_clock(0)
    tap.release()
    call.join(PATIENCE)
    same(call.answer.status, 200, "a call under way while the clock steps back and forth")
    same(rig.run(1).chat("new").status, 200, "new runs work once the clock is right")
    tap.gone.clear()
    call = Call(rig.run(9), tap, "HOLD")
    set_clock(3600)
    tap.release()
    call.refused("a capability that expired under a call", None)


def rig_with(top, tap, env, timeout):
    rig = Rig(top, env)
    rig.tell("secret", "signing", RUN_SECRET)
    rig.tell("secret", "key", KEY)
    rig.tell("timeout", timeout)
    rig.tell("provider", "p-main", tap.url, "-", "key", 1)
    rig.tell("profile", "main", "p-main", MODEL)
    rig.start()
    return rig


run_model = MODEL


def each(name, test, *args):
    if not sys.argv[1:] or name in sys.argv[1:]:
        try:
            test(*args)
        except Exception:
            traceback.print_exc()
            check(False, name + " broke off")


def main():
    if os.geteuid() != 0:
        print("needs root: the store tells roles by uid")
        return 77
    top, second = folder(), folder()
    try:
        tap = Tap()
        rig = rig_with(top, tap, {}, 300000)  # longer than any case: what ends a call is what the case does
        for name, test in list(globals().items()):
            if name.startswith("test_"):
                each(name, test, rig, tap)
        no_trace(rig)
        rig.stop()
        tap, clock = Tap(), os.path.join(second, "clock")
        with open(clock, "w") as f:
            f.write("0")
        os.chmod(second, 0o711)
        rig = rig_with(second, tap, {"PINFOLD_TEST_CLOCK": clock, "PINFOLD_STORED": "tests/store/stored-clock",
                                     "PINFOLD_GATEWAY": "tests/gateway/gateway-clock"}, 300000)
        each("clock", clock_cases, rig, tap, clock)
        rig.stop()
    finally:
        if counts["failed"] or sys.exc_info()[0]:
            for f in (top, second):
                for log in ("pinfold-gateway.log", "pinfold-stored.log"):
                    if os.path.exists(os.path.join(f, log)):
                        print("".join(open(os.path.join(f, log)).readlines()[-20:]))
        remove(top)
        remove(second)
    if cuts:
        print("calls under way were cut off after at most %.0f ms" % (1000 * max(cuts)))
    print("%d passed, %d failed" % (counts["passed"], counts["failed"]))
    return 1 if counts["failed"] else 0


sys.exit(main())
