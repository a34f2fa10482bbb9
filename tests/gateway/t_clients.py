#!/usr/bin/env python3
"""The official openai, @anthropic-ai/sdk and @google/genai clients pass their calls through the gateway unchanged, and stop where it says so.

Needs root, node and npm (or packages that were fetched before). Part of the long list: tools/ci clients.
"""
import json
import os
import random
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import t_frames  # noqa: E402
from cases_common import *  # noqa: E402,F403
from npm import npm  # noqa: E402
from rig import *  # noqa: E402,F403

PACKAGES = (("openai", "6.49.0"), ("@anthropic-ai/sdk", "0.68.0"), ("@google/genai", "2.32.0"))
HERE = os.path.dirname(os.path.abspath(__file__))


ANSWERS, PLAIN = 12, 6  # of each format, as t_frames.py makes them; and so many that are plain


def plain(a):
    """What the clients' own helpers for streams are made for: one answer, with nothing of tomorrow in it."""
    text = json.dumps(a)
    strange = ['"custom"', "of_tomorrow", '"failed"'] + (["reasoning_", "annotations"] if "choices" in a else [])
    return len(a.get("choices", [0])) == 1 and not any(w in text for w in strange)


def within(want, got):
    """What a client has besides is its own; what it knows nothing of it may leave out where it is null."""
    if isinstance(want, dict):
        return isinstance(got, dict) and all(within(v, got.get(k)) for k, v in want.items())
    if isinstance(want, list):
        return isinstance(got, list) and len(want) == len(got) and all(map(within, want, got))
    return want == got or (want == "" and got is None)


def buffered(ask, rig, answers):
    """model_stream = buffered: what the clients hand out are the provider's answers."""
    for name, what, profile, model in (("chat_completions", "chat", "main", MODEL), ("responses", "responses", "main", MODEL),
                                       ("messages", "messages", "anth", "m-anth"), ("gemini_stream", "genai", "gem", "m-gem")):
        own = {w: a for w, (n, a) in answers.items() if n == name}
        run = rig.run(3 * len(own), profile=profile, model=model, agent="calm")
        got = ask(what + "Events", run, None, *own)
        for (word, want), events in zip(own.items(), got.get("got") or [{}] * len(own)):
            try:
                for e in events:
                    e.pop("sdkHttpResponse", None)  # its own
                ends = {"chat_completions": [(None, "[DONE]")], "gemini_stream": []}
                made = t_frames.KINDS[name][1]([(None, e) for e in events] + ends[name] if name in ends else [(e["type"], e) for e in events], True)
            except Exception as e:
                made = repr(e), got
            same(made, want, "%s: %s by its events" % (name, word))
        if name == "gemini_stream":  # has no such helper
            continue
        own = {w: a for w, a in own.items() if plain(a)}
        got = ask(what + "Whole", run, None, *own)
        for (word, want), whole in zip(own.items(), got.get("got") or [got] * len(own)):
            check(within(want, whole), "%s: %s by the client's own helper\n  want %s\n  got  %s" % (name, word, json.dumps(want), json.dumps(whole)))


def main(top, models):
    folders = []
    for name, version in PACKAGES:
        folder, wrong = npm(name, version)
        check(folder is not None, wrong)
        folders.append(os.path.abspath(folder) if folder else "")
    if counts["failed"]:
        return
    r = random.Random(8)
    answers = {}
    for n, (make, _) in t_frames.KINDS.items():
        made = [make(r) for _ in range(ANSWERS)]
        while sum(map(plain, made)) < PLAIN:
            made += filter(plain, [make(r)])
        for i, a in enumerate(made):
            answers["ANSWER-%s-%d." % (n, i)] = n, a
            if n == "chat_completions":
                a.setdefault("usage", {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2})
    scenario = dict(SCENARIO, rules=[{"when": {"marker": w}, "answer": {"body": json.dumps(a)}} for w, (_, a) in answers.items()] + SCENARIO["rules"])
    model = Model(top, "main", scenario, "--expect-key-env", "EXPECTED_KEY")
    models.append(model)
    rig = Rig(top)
    rig.tell("secret", "signing", RUN_SECRET)
    rig.tell("secret", "key", KEY)
    rig.tell("provider", "p-main", model.url, model.ca, "key", 0)
    rig.tell("provider", "p-anth", model.url, model.ca, "key", 0, "anthropic")
    rig.tell("profile", "main", "p-main", MODEL)
    rig.tell("profile", "anth", "p-anth", "m-anth")
    rig.tell("provider", "p-gem", model.url.replace("/v1", "/v1beta"), model.ca, "key", 0, "gemini")
    rig.tell("profile", "gem", "p-gem", "m-gem")
    rig.tell("agent", "open", "agent", 0, 0, 4000, 3)
    rig.tell("agent", "calm", "agent", 0, 1, 4000, 3)
    rig.start()

    def ask(what, run, token=None, *words):
        done = subprocess.run(["node", os.path.join(HERE, "clients.mjs"), *folders, "http://127.0.0.1:%d/internal" % run.port, run.model,
                               token or run.token(), what, *words], capture_output=True, text=True, timeout=PATIENCE)
        try:
            return json.loads(done.stdout)
        except ValueError:
            return {"broken": done.stdout + done.stderr}

    runs = {"main": rig.run(40, agent="open"), "anth": rig.run(40, profile="anth", model="m-anth", agent="open"),
            "gem": rig.run(40, profile="gem", model="m-gem", agent="open")}
    for what, profile, got in (("chat", "main", "hi"), ("parts", "main", "hi"), ("models", "main", MODEL), ("responses", "main", "hi"),
                               ("messages", "anth", "hi"), ("bearer", "anth", "hi"), ("beta", "anth", "hi"), ("count", "anth", 42),
                               ("claudeModels", "anth", "m-anth"), ("genai", "gem", "hi"), ("genaiCount", "gem", 42),
                               ("genaiModels", "gem", "models/m-gem"), ("genaiModel", "gem", "models/m-gem")):
        same(ask(what, runs[profile]), {"got": got, "tries": 1}, what)
    sent = [json.loads(r["body"]) for r in model.requests() if '"thinking":' in r["body"]]
    same([(b["max_tokens"], b["thinking"]["budget_tokens"], "metadata" in b) for b in sent], [(4000, 3999, False)], "cap and budget")
    same({r.get("beta") for r in model.requests() if r.get("beta")}, {"effort-2025-11-24"}, "betas")
    sent = [json.loads(r["body"])["generationConfig"] for r in model.requests() if "thinkingConfig" in r["body"]]
    same([(c["maxOutputTokens"], c["thinkingConfig"]["thinkingBudget"], c["candidateCount"]) for c in sent], [(4000, 3999, 1)], "cap, budget and one answer")
    used = {p: r.shown()["used"] for p, r in runs.items()}
    same(used, {"main": 3, "anth": 4, "gem": 2}, "units")
    for what, profile, error, status, code in (
            ("hosted", "main", "BadRequestError", 400, "model_field_refused"),
            ("hostedClaude", "anth", "BadRequestError", 400, "model_field_refused"),
            ("genaiHosted", "gem", "ApiError", 400, "model_field_refused"), ("genaiFile", "gem", "ApiError", 400, "model_field_refused"),
            ("genaiForeign", "gem", "ApiError", 404, "model_not_allowed"),
            ("foreign", "main", "NotFoundError", 404, "model_not_allowed")):
        a = ask(what, runs[profile])
        same((a.get("error"), a.get("status"), a.get("code"), a.get("tries")), (error, status, code, 1), what)
    same({p: r.shown()["used"] for p, r in runs.items()}, used, "refusals spend nothing")
    for profile, what, error, status in (("main", "chat", "PermissionDeniedError", 403), ("main", "responses", "BadRequestError", 400),
                                         ("anth", "messages", "PermissionDeniedError", 403), ("gem", "genai", "ApiError", 403)):
        run = rig.run(1, profile=profile, model=runs[profile].model, agent="open")
        same(ask(what, run).get("got"), "hi", what + ": the last unit")
        a = ask(what, run)
        same((a.get("error"), a.get("status"), a.get("code"), a.get("tries")), (error, status, "model_request_budget_exhausted", 1),
             what + ": exhausted, and it stops at the first call")
    buffered(ask, rig, answers)
    rig.stop()


sys.exit(alone(main))
