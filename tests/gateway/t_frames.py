#!/usr/bin/env python3
"""A whole answer as a stream: what a client puts together from the events is the answer, whatever it holds.

The clients here are written from the formats' own descriptions and know nothing of how the events are made. An argument is
the seed. Run in a build folder, or with PINFOLD_BUILD naming one.
"""
import copy
import json
import os
import random
import resource
import subprocess
import sys

BUILD = os.environ.get("PINFOLD_BUILD", os.getcwd())
ROUNDS = 400
CPU_SECONDS = 120  # of the program, for what costs it a second or two, and ten minutes where it looks at the same again and again
counts = {"passed": 0, "failed": 0}


def check(ok, what):
    counts["passed" if ok else "failed"] += 1
    if not ok:
        print("FAIL " + what[:2000], flush=True)


class Frames:
    def __init__(self):
        self.p = subprocess.Popen([os.path.join(BUILD, "tests/gateway/frames")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS)))

    def ask(self, name, usage, value):
        self.p.stdin.write(("%s %s %s\n" % (name, usage, json.dumps(value, ensure_ascii=False))).encode())
        self.p.stdin.flush()
        lines = []
        while True:
            line = self.p.stdout.readline().decode()
            if not line or line.startswith("= "):
                return "".join(lines), line[2:].strip()
            lines.append(line)


def events_of(text):
    """[(name, data)]: data as it was parsed, or the text of what is no JSON."""
    got = []
    for block in text.split("\n\n")[:-1]:
        name, data = None, None
        for line in block.split("\n"):
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                data = line[6:]
            else:
                raise ValueError("a line that is none: " + line)
        got.append((name, data if data == "[DONE]" else json.loads(data)))
    return got


# Clients, of each format, that keep what they are told.

def chat_client(events, usage):
    assert events[-1] == (None, "[DONE]")
    choices, top, told = {}, {}, None
    for name, chunk in events[:-1]:
        assert name is None and chunk["object"] == "chat.completion.chunk"
        top.update({k: v for k, v in chunk.items() if k not in ("choices", "usage", "object")})
        if usage:
            assert "usage" in chunk
            if chunk["usage"] is not None:
                assert chunk["choices"] == [] and told is None
                told = chunk["usage"]
        else:
            assert "usage" not in chunk
        for c in chunk["choices"]:
            assert "finish_reason" in c
            own = choices.setdefault(c["index"], {"message": {}, "calls": {}, "finish_reason": None})
            assert own["finish_reason"] is None, "something behind its end"
            if not own["message"]:
                assert "role" in c["delta"], "its first has a role"
            for k, v in c["delta"].items():
                m = own["message"]
                if k == "tool_calls":
                    for t in v:
                        call = own["calls"].setdefault(t["index"], {})
                        for tk, tv in t.items():
                            if tk in ("function", "custom"):
                                for fk, fv in tv.items():
                                    call.setdefault(tk, {})
                                    call[tk][fk] = call[tk].get(fk, "") + fv if isinstance(fv, str) else fv
                            elif tk != "index":
                                call[tk] = tv
                elif k == "role":
                    m[k] = v
                elif isinstance(v, str):
                    m[k] = (m.get(k) or "") + v
                else:
                    m[k] = v
            for k, v in c.items():
                if k not in ("index", "delta") and not (k == "finish_reason" and v is None):
                    own[k] = v
    answer = dict(top, object="chat.completion", choices=[])
    for index in sorted(choices):
        c = choices[index]
        assert c["finish_reason"] is not None
        if c["calls"]:
            assert sorted(c["calls"]) == list(range(len(c["calls"])))
            c["message"]["tool_calls"] = [c["calls"][i] for i in sorted(c["calls"])]
        del c["calls"]
        answer["choices"].append(dict(c, index=index))
    if told is not None:
        answer["usage"] = told
    return answer


def responses_client(events, usage):
    for n, (name, e) in enumerate(events):
        assert name == e["type"] and e["sequence_number"] == n
    assert [n for n, _ in events[:2]] == ["response.created", "response.in_progress"]
    assert events[0][1]["response"]["status"] == "in_progress" and events[0][1]["response"]["output"] == []
    output, done = [], []
    for name, e in events[2:-1]:
        if name == "response.output_item.added":
            assert e["output_index"] == len(output) == len(done)
            output.append(copy.deepcopy(e["item"]))
            continue
        item = output[e["output_index"]]
        assert e["output_index"] == len(output) - 1
        if name == "response.output_item.done":
            done.append(e["item"])
            if "status" in item:
                item["status"] = e["item"]["status"]
            assert item == e["item"], "put together: %s, told: %s" % (item, e["item"])
            continue
        assert e["item_id"] == item.get("id", "")
        kind = name[len("response."):]
        if kind == "content_part.added":
            assert e["content_index"] == len(item["content"])
            item["content"].append(e["part"])
        elif kind == "reasoning_summary_part.added":
            assert e["summary_index"] == len(item["summary"])
            item["summary"].append(e["part"])
        elif kind == "content_part.done":
            part = item["content"][e["content_index"]]
            if "logprobs" in part:
                part["logprobs"] = e["part"]["logprobs"]  # there is no event for them
            assert part == e["part"], "%s %s" % (part, e["part"])
        elif kind == "reasoning_summary_part.done":
            assert item["summary"][e["summary_index"]] == e["part"]
        elif kind in ("output_text.delta", "reasoning_text.delta"):
            item["content"][e["content_index"]]["text"] += e["delta"]
        elif kind in ("output_text.done", "reasoning_text.done"):
            assert item["content"][e["content_index"]]["text"] == e["text"]
        elif kind == "refusal.delta":
            item["content"][e["content_index"]]["refusal"] += e["delta"]
        elif kind == "refusal.done":
            assert item["content"][e["content_index"]]["refusal"] == e["refusal"]
        elif kind == "output_text.annotation.added":
            notes = item["content"][e["content_index"]]["annotations"]
            assert e["annotation_index"] == len(notes)
            notes.append(e["annotation"])
        elif kind == "reasoning_summary_text.delta":
            item["summary"][e["summary_index"]]["text"] += e["delta"]
        elif kind == "reasoning_summary_text.done":
            assert item["summary"][e["summary_index"]]["text"] == e["text"]
        elif kind == "function_call_arguments.delta":
            item["arguments"] += e["delta"]
        elif kind == "function_call_arguments.done":
            assert item["arguments"] == e["arguments"]
        elif kind == "custom_tool_call_input.delta":
            item["input"] += e["delta"]
        elif kind == "custom_tool_call_input.done":
            assert item["input"] == e["input"]
        else:
            raise AssertionError("an event that nobody knows: " + name)
    name, last = events[-1]
    assert name == "response." + last["response"]["status"]
    assert last["response"]["output"] == done == output
    began = events[0][1]["response"]
    for k, v in last["response"].items():
        if k not in ("status", "output", "usage", "error", "incomplete_details", "completed_at", "output_text"):
            assert began[k] == v, "of the beginning: " + k
    return last["response"]


def messages_client(events, usage):
    for name, e in events:
        assert name == e["type"]
    assert events[0][0] == "message_start" and events[-1] == ("message_stop", {"type": "message_stop"})
    m = copy.deepcopy(events[0][1]["message"])
    assert m["content"] == [] and m["stop_reason"] is None and m["stop_sequence"] is None
    open_block, inputs, ended = None, {}, False
    for name, e in events[1:-1]:
        assert not ended
        if name == "content_block_start":
            assert open_block is None and e["index"] == len(m["content"])
            open_block = e["index"]
            m["content"].append(copy.deepcopy(e["content_block"]))
        elif name == "content_block_delta":
            assert e["index"] == open_block
            block, d = m["content"][open_block], e["delta"]
            if d["type"] == "text_delta":
                block["text"] += d["text"]
            elif d["type"] == "thinking_delta":
                block["thinking"] += d["thinking"]
            elif d["type"] == "signature_delta":
                block["signature"] = d["signature"]
            elif d["type"] == "citations_delta":
                block["citations"].append(d["citation"])
            elif d["type"] == "input_json_delta":
                inputs[open_block] = inputs.get(open_block, "") + d["partial_json"]
            else:
                raise AssertionError(d["type"])
        elif name == "content_block_stop":
            assert e["index"] == open_block
            if open_block in inputs:
                assert m["content"][open_block]["input"] == {}
                m["content"][open_block]["input"] = json.loads(inputs[open_block])
            open_block = None
        elif name == "message_delta":
            assert open_block is None
            ended = True
            m.update(e["delta"])
            m["usage"].update(e["usage"])
            if "context_management" in e:
                m["context_management"] = e["context_management"]
        else:
            raise AssertionError(name)
    assert ended
    return m


def gemini_client(events, usage):
    answer, ended = {}, False
    for name, e in events:
        assert name is None and not ended
        for k, v in e.items():
            if k != "candidates":
                answer[k] = v
        for c in e.get("candidates", []):
            parts = answer.setdefault("candidates", [{}])[0].setdefault("content", {}).get("parts", []) + c.get("content", {}).get("parts", [])
            answer["candidates"][0].update(c)
            if "content" in c and "parts" in c["content"]:
                answer["candidates"][0]["content"] = dict(c["content"], parts=parts)
            ended = ended or "finishReason" in c
        ended = ended or "blockReason" in e.get("promptFeedback", {})
    assert ended
    return answer


# Answers, by chance.

def word(r):
    return "".join(r.choice("abc \n\t\"\\/é漢\U0001f40d{}[]:,data event\u2028") for _ in range(r.choice((0, 1, 3, 20, 200))))


def value(r, depth=0):
    kind = r.randrange(7 if depth < 3 else 5)
    if kind == 5:
        return [value(r, depth + 1) for _ in range(r.randrange(3))]
    if kind == 6:
        return {"k%d" % i: value(r, depth + 1) for i in range(r.randrange(3))}
    return (None, True, r.randrange(-9, 10**12), r.random(), word(r))[kind]


def maybe(r, o, key, make):
    if r.random() < 0.4:
        o[key] = make()


def chat_answer(r):
    choices = []
    for i in range(r.choice((1, 1, 1, 2))):
        m = {"role": "assistant", "content": r.choice((None, word(r), "", word(r)))}
        maybe(r, m, "refusal", lambda: r.choice((None, word(r))))
        maybe(r, m, "reasoning_content", lambda: word(r))
        maybe(r, m, "reasoning_details", lambda: [{"type": "t", "data": word(r)}])
        maybe(r, m, "annotations", lambda: [{"type": "url_citation", "url_citation": {"title": word(r)}}])
        maybe(r, m, "audio", lambda: r.choice((None, {"id": "a"})))
        maybe(r, m, "function_call", lambda: {"name": "f", "arguments": word(r)})
        if r.random() < 0.6:
            m["tool_calls"] = [r.choice(({"id": "c%d" % k, "type": "function", "function": {"name": "f%d" % k, "arguments": json.dumps({"a": word(r)})}},
                                         {"id": "c%d" % k, "type": "custom", "custom": {"name": "g", "input": word(r)}},
                                         {"id": "c%d" % k, "type": "function", "function": {"name": "f", "arguments": ""}, "extra_content": {"x": {"signature": "s"}}}))
                               for k in range(r.randrange(1, 4))]
        items = list(m.items())
        r.shuffle(items)
        c = {"index": i, "message": dict(items), "finish_reason": r.choice(("stop", "length", "tool_calls", "content_filter"))}
        maybe(r, c, "logprobs", lambda: r.choice((None, {"content": [{"token": "a", "logprob": -0.5}], "refusal": None})))
        maybe(r, c, "stop_reason", lambda: r.choice((None, 7)))
        choices.append(c)
    a = {"id": "chatcmpl-" + word(r), "object": "chat.completion", "created": r.randrange(10**10), "model": word(r), "choices": choices}
    maybe(r, a, "system_fingerprint", lambda: r.choice((None, word(r))))
    maybe(r, a, "x_provider", lambda: value(r))
    if r.random() < 0.9:
        a["usage"] = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10, "prompt_tokens_details": {"cached_tokens": r.randrange(9)}}
    return a


def responses_answer(r):
    def part():
        p = r.choice(({"type": "output_text", "text": word(r), "annotations": [value(r) for _ in range(r.randrange(3))]},
                      {"type": "refusal", "refusal": word(r)}, {"type": "of_tomorrow", "thing": value(r)}))
        if p["type"] == "output_text":
            maybe(r, p, "logprobs", lambda: [{"token": "a", "logprob": -1}])
        return p

    def item(i):
        kind = r.randrange(5)
        if kind == 0:
            return {"type": "message", "id": "msg_%d" % i, "status": "completed", "role": "assistant", "content": [part() for _ in range(r.randrange(3))]}
        if kind == 1:
            it = {"type": "reasoning", "id": "rs_%d" % i, "summary": [{"type": "summary_text", "text": word(r)} for _ in range(r.randrange(3))]}
            maybe(r, it, "content", lambda: [{"type": "reasoning_text", "text": word(r)} for _ in range(r.randrange(3))])
            maybe(r, it, "encrypted_content", lambda: r.choice((None, word(r))))
            return it
        if kind == 2:
            it = {"type": "function_call", "id": "fc_%d" % i, "call_id": "call_%d" % i, "name": "f", "arguments": word(r), "status": "completed"}
            maybe(r, it, "namespace", lambda: "n")
            return it
        if kind == 3:
            return {"type": "custom_tool_call", "id": "ctc_%d" % i, "call_id": "call_%d" % i, "name": "apply_patch", "input": word(r), "status": "completed"}
        return {"type": "of_tomorrow_call", "id": "x_%d" % i, "thing": value(r), "status": "completed"}

    status = r.choice(("completed", "completed", "completed", "incomplete", "failed"))
    a = {"id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": word(r), "output": [item(i) for i in range(r.randrange(5))],
         "error": {"code": "server_error", "message": word(r)} if status == "failed" else None,
         "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None, "tools": [value(r)],
         "usage": {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10, "output_tokens_details": {"reasoning_tokens": 1}}}
    maybe(r, a, "instructions", lambda: word(r))
    maybe(r, a, "metadata", lambda: {})
    return a


def messages_answer(r):
    def block(i):
        kind = r.randrange(7)
        if kind == 0:
            b = {"type": "text", "text": word(r)}
            maybe(r, b, "citations", lambda: r.choice((None, [{"type": "char_location", "cited_text": word(r)} for _ in range(r.randrange(3))])))
            return b
        if kind == 1:
            return {"type": "thinking", "thinking": word(r), "signature": word(r)}
        if kind == 2:
            return {"type": "redacted_thinking", "data": word(r)}
        if kind == 3:
            return {"type": "tool_use", "id": "toolu_%d" % i, "name": "f", "input": {"k": value(r), "l": word(r)}}
        if kind == 4:
            return {"type": "tool_use", "id": "toolu_%d" % i, "name": "f", "input": {}, "caller": {"type": "direct"}}
        if kind == 5:
            return {"type": "server_tool_use", "id": "s_%d" % i, "name": "f", "input": {"q": word(r)}}
        return {"type": "of_tomorrow", "thing": value(r)}

    a = {"id": "msg_1", "type": "message", "role": "assistant", "model": word(r), "content": [block(i) for i in range(r.randrange(5))],
         "stop_reason": r.choice(("end_turn", "tool_use", "max_tokens", "refusal")), "stop_sequence": r.choice((None, word(r))),
         "usage": {"input_tokens": 7, "output_tokens": 3, "cache_read_input_tokens": r.randrange(5), "server_tool_use": None}}
    maybe(r, a, "container", lambda: None)
    maybe(r, a, "context_management", lambda: {"applied_edits": [value(r)]})
    return a


def gemini_answer(r):
    def part(i):
        kind = r.randrange(4)
        if kind == 0:
            p = {"text": word(r)}
            maybe(r, p, "thought", lambda: True)
        elif kind == 1:
            p = {"functionCall": {"id": "c%d" % i, "name": "f", "args": {"k": value(r), "l": word(r)}}}
        elif kind == 2:
            p = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
        else:
            p = {"ofTomorrow": value(r)}
        maybe(r, p, "thoughtSignature", lambda: word(r))
        return p

    a = {"usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10}, "modelVersion": word(r), "responseId": word(r)}
    if r.random() < 0.1:
        return dict(a, promptFeedback={"blockReason": "SAFETY"})
    return dict(a, candidates=[{"index": 0, "finishReason": r.choice(("STOP", "MAX_TOKENS", "SAFETY")), "content": {
        "role": "model", "parts": [part(i) for i in range(r.randrange(5))]}}])


KINDS = {"gemini_stream": (gemini_answer, gemini_client), "chat_completions": (chat_answer, chat_client), "responses": (responses_answer, responses_client), "messages": (messages_answer, messages_client)}


def test_same(frames, r):
    for name, (make, client) in KINDS.items():
        for _ in range(ROUNDS):
            answer, usage = make(r), r.random() < 0.5
            text, how = frames.ask(name, int(usage), answer)
            want = copy.deepcopy(answer)
            if name == "chat_completions" and not usage:
                want.pop("usage", None)
            try:
                got = client(events_of(text), usage) if how == "ok" else how
                ok = got == want
            except (AssertionError, KeyError, IndexError, ValueError, TypeError) as e:
                ok, got = False, repr(e)
            check(ok, "%s: %s\n  from %s\n  got %s" % (name, json.dumps(answer), text, got))
            if not ok:
                break


def test_no_answer(frames, r):
    """Half an answer is none."""
    whole = {name: make(random.Random(3)) for name, (make, _) in KINDS.items()}
    whole["messages"]["content"] = [{"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}]
    whole["gemini_stream"] = {"candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": []}}]}
    whole["responses"]["output"] = [{"type": "function_call", "id": "f", "call_id": "c", "name": "f", "arguments": "{}"}]

    def but(name, change):
        o = copy.deepcopy(whole[name])
        change(o)
        return name, o

    for name, broken in (
            ("chat_completions", {}), ("chat_completions", []), ("chat_completions", "x"), ("responses", {}), ("messages", {}),
            but("chat_completions", lambda o: o.update(choices=[])), but("chat_completions", lambda o: o.update(choices=[1])),
            but("chat_completions", lambda o: o["choices"][0].update(finish_reason=None)), but("chat_completions", lambda o: o["choices"][0].pop("finish_reason")),
            but("chat_completions", lambda o: o["choices"][0].pop("message")), but("chat_completions", lambda o: o.update(error={"message": "x"})),
            but("chat_completions", lambda o: o["choices"][0]["message"].update(tool_calls={})),
            but("chat_completions", lambda o: o["choices"][0]["message"].update(tool_calls=["x"])),
            but("responses", lambda o: o.update(status="in_progress")), but("responses", lambda o: o.pop("status")), but("responses", lambda o: o.pop("output")),
            but("responses", lambda o: o.update(output=[1])), but("responses", lambda o: o["output"][0].pop("type")),
            but("responses", lambda o: o["output"][0].pop("arguments")), but("responses", lambda o: o["output"][0].update(arguments=None)),
            but("responses", lambda o: o.update(output=[{"type": "custom_tool_call", "id": "x"}])),
            but("responses", lambda o: o.update(output=[{"type": "message", "id": "x", "content": [1]}])),
            but("messages", lambda o: o.update(stop_reason=None)), but("messages", lambda o: o.pop("stop_reason")), but("messages", lambda o: o.update(type="error")),
            but("messages", lambda o: o.pop("content")), but("messages", lambda o: o.update(content=["x"])), but("messages", lambda o: o["content"][0].pop("input")),
            but("messages", lambda o: o["content"][0].update(input="{}")), but("messages", lambda o: o["content"][0].pop("type")),
            ("gemini_stream", {}), ("gemini_stream", []), but("gemini_stream", lambda o: o["candidates"][0].pop("finishReason")),
            but("gemini_stream", lambda o: o["candidates"][0].update(finishReason="")), but("gemini_stream", lambda o: o.pop("candidates")),
            but("gemini_stream", lambda o: o["candidates"][0].update(finishReason="FINISH_REASON_UNSPECIFIED")),
            but("gemini_stream", lambda o: o.update(error={"code": 500}))):
        check(frames.ask(name, 0, broken)[1] == "invalid_model_response", "%s: %s" % (name, json.dumps(broken)))
    for name in KINDS:
        check(frames.ask(name, 0, whole[name])[1] == "ok", name + ": what they are made of")
    big = copy.deepcopy(whole["responses"])
    big["output"] = [{"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "x" * 990000, "annotations": []}]}]
    check(frames.ask("responses", 0, big)[1] == "ok", "the largest answer that there may be")


def test_errors(frames, r):
    ours = {"error": {"message": "It is over.", "type": "permission_error", "code": "provider_key_refused"}, "request_id": "r"}
    check(events_of(frames.ask("chat_completions", "!10", ours)[0]) == [(None, ours)], "an error of a chat")
    claude = dict(ours, type="error")
    check(events_of(frames.ask("messages", "!10", claude)[0]) == [("error", claude)], "an error of messages")
    for usage, code, words in (("!10", "invalid_prompt", "It is over. (provider_key_refused)"), ("!07", "rate_limit_exceeded", "It is over. Please try again in 7s."),
                               ("!00", "provider_key_refused", "It is over.")):
        (name, e), = events_of(frames.ask("responses", usage, ours)[0])
        check(name == e["type"] == "response.failed" and e["response"]["status"] == "failed" and e["response"]["error"] == {"code": code, "message": words},
              "an error of responses: %s" % e)
    said = {"message": "The model provider refused the call.", "type": "invalid_request_error"}
    for other in ({"detail": [{"msg": "x"}]}, {"error": "x"}, {"object": "error", "message": "x"}, [], "x", None):
        same = [events_of(frames.ask(name, "!10", other)[0]) for name in ("chat_completions", "messages", "responses")]
        check(same[:2] == [[(None, {"error": said})], [("error", {"type": "error", "error": said})]], "a provider's own refusal, %s: %s" % (other, same))
        check([(name, e["response"]["error"]) for name, e in same[2]] == [("response.failed", {"code": "invalid_prompt", "message": said["message"]})],
              "the same of responses, %s: %s" % (other, same[2]))
    (_, e), = events_of(frames.ask("responses", "!10", {"error": {"message": "x", "code": "context_length_exceeded"}})[0])
    check(e["response"]["error"] == {"code": "context_length_exceeded", "message": "x"}, "one that its clients mend: %s" % e)


def test_work(frames, r):
    """What an answer costs is bounded by what may come of it, not by how many things it holds times how large one of them is."""
    message, part, long = {"message": {}, "finish_reason": ""}, {"type": "output_text", "text": ""}, "\x7f" * 400000
    many = {"%x" % i: 0 for i in range(35000)}
    for name, answer in (
            ("chat_completions", {"x": long, "choices": [message] * 9000}),
            ("chat_completions", dict(many, choices=[message] * 9000)),
            ("chat_completions", {"x": long, "choices": [{"message": {"tool_calls": [{}] * 40000}, "finish_reason": ""}]}),
            ("responses", {"status": "completed", "output": [{"type": "message", "id": long, "content": [part] * 13000}]}),
            ("responses", {"status": "completed", "output": [{"type": "message", "id": long, "content": [dict(part, annotations=[0] * 50000)]}]}),
            ("responses", {"status": "completed", "output": [dict(many, type="message", content=[part] * 13000)]})):
        how = frames.ask(name, 0, answer)[1]
        check(how in ("ok", "model_response_too_large"), "%s of %s: %s" % (name, list(answer), how or "it took too long"))


def main():
    seed = int(sys.argv[1]) if sys.argv[1:] else random.randrange(10**6)
    frames, r = Frames(), random.Random(seed)
    for test in (test_same, test_no_answer, test_errors, test_work):
        test(frames, r)
    frames.p.stdin.close()
    if counts["failed"]:
        print("seed %d" % seed)
    print("%d passed, %d failed" % (counts["passed"], counts["failed"]))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
