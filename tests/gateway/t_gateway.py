#!/usr/bin/env python3
"""The gateway against a real store and a scripted model that lies. Ends with "N passed, N failed".

Arguments choose cases by name. Run in a build folder, or with PINFOLD_BUILD naming one; needs root.
"""
import glob
import os
import sys
import time
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases_events  # noqa: E402
import cases_http  # noqa: E402
import cases_model  # noqa: E402
import cases_policy  # noqa: E402
import cases_token  # noqa: E402
from cases_common import *  # noqa: E402,F403
from rig import *  # noqa: E402,F403


def no_trace(rig, model):
    check(PROXY_TRAP.untouched(), "a proxy of the environment or of a header was used")
    key = KEY.encode()
    check(not any(key in s for s in SEEN), "the key was sent to a box")
    for path in glob.glob(rig.folder + "/**", recursive=True):
        if os.path.isfile(path) and ".scenario." not in path:
            with open(path, "rb") as f:
                data = f.read()
            check(key not in data, "the key is in " + os.path.basename(path))
            check(not any(t.encode() in data for t in rig.tokens), "a run's token is in " + os.path.basename(path))
    for name in ("cmdline", "environ"):
        with open("/proc/%d/%s" % (rig.pid, name), "rb") as f:
            check(key not in f.read(), "the key is in " + name)
    log = open(rig.folder + "/pinfold-gateway.log").read()
    check("Bearer" not in log and RUN_SECRET not in log, "the log holds a token")


def start_fails(folder, secrets):
    os.mkdir(folder)
    rig = Rig(folder)
    try:
        rig.tell("provider", "p", "https://127.0.0.1:1/v1", "-", "-", "0")
        rig.tell("profile", "main", "p", MODEL)
        for name, value in secrets:
            rig.tell("secret", name, value)
        try:
            rig.tell("start", folder, BUILD)
            return False
        except RuntimeError as e:
            return "no_hello" in str(e)
    finally:
        rig.stop()


def main(top, models):
    env = {}
    for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        env[name] = "http://127.0.0.1:%d" % PROXY_TRAP.port
    model = Model(top, "main", SCENARIO, "--expect-key-env", "EXPECTED_KEY")
    wrong = Model(top, "wrong", SCENARIO, "--cert-name", "wrong.invalid")
    plain = Model(top, "plain", SCENARIO, tls=False)
    models += [model, wrong, plain]
    closed = Trap()
    closed.s.close()
    rig = Rig(top, env)
    rig.tell("secret", "signing", RUN_SECRET)
    rig.tell("secret", "signing-next", NEXT_SECRET)
    rig.tell("secret", "key", KEY)
    rig.tell("missing", "missing")
    rig.tell("timeout", 3000)
    for name, url, ca, secret, flag, model_name in (
            ("main", model.url, model.ca, "key", 0, MODEL), ("twin", model.url, model.ca, "key", 0, MODEL),
            ("wrong-name", wrong.url, wrong.ca, "key", 0, None), ("no-ca", model.url, "-", "key", 0, None),
            ("refused", "https://127.0.0.1:%d/v1" % closed.port, model.ca, "key", 0, None),
            ("no-host", "https://nothing.invalid/v1", model.ca, "key", 0, None),
            ("no-key", model.url, model.ca, "missing", 0, None), ("plain", plain.url, "-", "-", 1, None),
            ("plain-denied", plain.url, "-", "-", 0, None), ("plain-far", "http://192.0.2.1/v1", "-", "-", 1, None),
            ("userinfo", "https://a:b@127.0.0.1:1/v1", "-", "-", 0, None),
            ("query", "https://127.0.0.1:1/v1?a=b", "-", "-", 0, None)):
        rig.tell("provider", "p-" + name, url, ca, secret, flag)
        rig.tell("profile", name, "p-" + name, model_name or "m-" + name)
    rig.tell("provider", "p-anth", model.url, model.ca, "key", 0, "anthropic")
    rig.tell("profile", "anth", "p-anth", "m-anth")
    rig.tell("provider", "p-gem", model.url.replace("/v1", "/v1beta"), model.ca, "key", 0, "gemini")
    rig.tell("profile", "gem", "p-gem", "m-gem")
    for name, policy, form, stream in (("open", "agent", 0, 0), ("passing", "passthrough", 0, 0), ("only-responses", "agent", 2, 0),
                                       ("no-streams", "agent", 0, 2)):
        rig.tell("agent", name, policy, form, stream, 1000, 3)
    rig.start()
    only = sys.argv[1:]
    for name, test in [(n, f) for m in (cases_model, cases_policy, cases_token, cases_http, cases_events) for n, f in vars(m).items()]:
        if name.startswith("test_") and (not only or name in only):
            try:
                test(rig, model)
            except Exception:
                traceback.print_exc()
                check(False, name + " broke off")
    no_trace(rig, model)
    check(start_fails(top + "/short", [("signing", "x" * 31)]), "a secret of 31 bytes is refused")
    check(start_fails(top + "/next", [("signing", "x" * 32), ("signing-next", "x" * 31)]), "a next secret of 31 bytes is refused")
    check(start_fails(top + "/none", [("key", KEY)]), "no run secret is refused")
    rig.stop()
    check(wait_for(lambda: not os.path.exists("/proc/%d" % rig.pid)), "the gateway ends with its parent")


sys.exit(alone(main))
