"""A provider of streams that end in every way there is, and calls of which one sees on the socket how they end."""
import json
import socket

import t_frames
from rig import *  # noqa: F403
from tap import Tap


def typed(name, **more):
    return "event: %s\ndata: %s\n\n" % (name, json.dumps(dict({"type": name}, **more)))


def chat(text, finish=None):
    return "data: %s\n\n" % json.dumps({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]})


# format -> route, profile, model, first event, rest of a whole stream, an error event
FORMATS = {
    "chat": ("/internal/v1/chat/completions", "main", MODEL, chat("PART"),
             chat("", "stop") + "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n",
             "data: {\"error\":{\"message\":\"overloaded\"}}\n\n"),
    "responses": ("/internal/v1/responses", "main", MODEL, typed("response.created", text="PART"),
                  typed("response.completed", response={"usage": {"input_tokens": 7, "output_tokens": 3}}), typed("error", message="x")),
    "messages": ("/internal/v1/messages", "anth", "m-anth",
                 typed("message_start", message={"usage": {"input_tokens": 7, "output_tokens": 1}}, text="PART"),
                 typed("message_delta", usage={"output_tokens": 3}) + typed("message_stop"), typed("error", error={"type": "overloaded_error"})),
    "gemini": ("/internal/v1beta/models/m-gem:streamGenerateContent?alt=sse", "gem", "m-gem",
               "data: %s\n\n" % json.dumps({"candidates": [{"index": 0, "content": {"role": "model", "parts": [{"text": "PART"}]}}]}),
               "data: %s\n\n" % json.dumps({"candidates": [{"index": 0, "finishReason": "STOP"}], "usageMetadata": {
                   "promptTokenCount": 7, "candidatesTokenCount": 1, "thoughtsTokenCount": 2}}),
               "data: %s\n\n" % json.dumps({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}})),
}
# An event that says a piece of a text.
PIECES = {"chat": "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%s\"}}]}\n\n",
          "responses": "data: {\"type\":\"response.output_text.delta\",\"item_id\":\"m\",\"output_index\":0,\"content_index\":0,\"delta\":\"%s\"}\n\n",
          "messages": "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"%s\"}}\n\n",
          "gemini": "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"%s\"}]}}]}\n\n"}
# What the same say as a whole.
ANSWERS = {
    "chat": {"id": "c1", "object": "chat.completion", "created": 1, "model": MODEL, "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": "PART", "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "look", "arguments": "{\"a\":1}"}}]}}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}},
    "responses": {"id": "r1", "object": "response", "status": "completed", "model": MODEL, "output": [
        {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "PART", "annotations": []}]}],
        "usage": {"input_tokens": 7, "output_tokens": 3}},
    "messages": {"id": "a1", "type": "message", "role": "assistant", "model": "m-anth", "content": [{"type": "text", "text": "PART"}], "stop_reason": "end_turn",
                 "stop_sequence": None, "usage": {"input_tokens": 7, "output_tokens": 3}},
    "gemini": {"candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [{"text": "PART"}]}}], "modelVersion": "m-gem",
               "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 1, "thoughtsTokenCount": 2}},
}
CLIENTS = {"chat": t_frames.chat_client, "responses": t_frames.responses_client, "messages": t_frames.messages_client,
           "gemini": t_frames.gemini_client}


class Upstream(Tap):
    """WHOLE, CUT, CLEAN (end in the middle), ERROR, BROKEN, PAGE, ONCE (the whole in one write), DRIP, HANG, MUCH, REFUSED.
    LATE: all of it, and its status, after release(). KEYLESS: its key is refused. Not streamed, GOOD is an answer of the format and HALF is one that is not over."""

    def whole(self, c, text, name):
        answer = dict(ANSWERS[name])
        if "HALF" in text:
            answer = (dict(answer, choices=[dict(answer["choices"][0], finish_reason=None)]) if name == "chat" else
                      dict(answer, candidates=[{"content": answer["candidates"][0]["content"]}]) if name == "gemini" else dict(answer, status=None, stop_reason=None))
        while ("HELD" in text or "LATE" in text) and not self.gone.is_set():
            if not self.stays(c, 0.02):
                return False
        body = json.dumps(answer).encode()
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        return True

    def answer(self, c, text):
        name = next((f for f in FORMATS if "(%s)" % f in text), None)
        if not any(w in text for w in ("REFUSED", "KEYLESS", "OWN WAY")) and '"stream":true' not in text:
            return self.whole(c, text, name) if "GOOD" in text or "HALF" in text else super().answer(c, text)
        first, rest, error = FORMATS[name][3:]
        while "LATE" in text and not self.gone.is_set():
            if not self.stays(c, 0.02):
                return False
        if "KEYLESS" in text:
            c.sendall(b"HTTP/1.1 401 No\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
            return True
        if "OWN WAY" in text:
            c.sendall(b"HTTP/1.1 400 No\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{\"detail\":\"x\"}")
            return True
        if "REFUSED" in text:
            body = b'{"error":{"message":"slow down"}}'
            c.sendall(b"HTTP/1.1 429 Too Many\r\nContent-Type: application/json\r\nRetry-After: 7\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            return True
        kind = "text/html" if "PAGE" in text else "text/event-stream"
        c.sendall(("HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nX-Evil: 1\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n" % kind).encode())

        def send(s):
            c.sendall(b"%x\r\n%s\r\n" % (len(s.encode()), s.encode()))
        if "MUTE" in text:
            while self.stays(c, 0.05):
                pass
            return False
        if "PAGE" in text:
            send("<html>oops</html>")
        elif "ONCE" in text:
            send(first + rest)
        elif "HANG" in text or "DRIP" in text:
            send(first)
            while self.stays(c, 0.05):
                if "DRIP" in text:
                    send(first)
            return False
        elif "LEAK" in text:
            # The key in two events, at the place that the text names.
            at = int(text.split("LEAK ")[1].split()[0])
            piece = PIECES[name]
            send(first + piece % KEY[:at])
            if not self.stays(c, 0.05):
                return False
            send(piece % KEY[at:] + rest)
        elif "SPENDER" in text:
            while self.stays(c, 0):
                send(PIECES[name] % "more")
            return False
        elif "BILL" in text:
            send(first + rest.replace("3}", "300000}").replace('"thoughtsTokenCount": 2', '"thoughtsTokenCount": 299999'))
        elif "MUCH" in text:
            event = chat("x" * 1000)
            for _ in range(3000):
                send(event)
            send(rest)
        else:
            send(": hello\n\n" + first)
            # in pieces that end anywhere
            if "WHOLE" in text or "HELD" in text:
                while "HELD" in text and not self.gone.is_set():
                    if not self.stays(c, 0.02):
                        return False
                for i in range(0, len(rest), 7):
                    send(rest[i:i + 7])
            elif "ERROR" in text:
                send(error + rest)
            elif "BROKEN" in text:
                send("data: {\"choices\":[}\n\n" + rest)
            elif "CUT" in text:
                send(rest[:len(rest) // 2])
                return False
            else:  # CLEAN
                send(rest[:len(rest) // 3])
        c.sendall(b"0\r\n\r\n")
        return True


def asks(name, text):
    return {"input": text} if name == "responses" else {"contents": [{"role": "user", "parts": [{"text": text}]}]} if name == "gemini" else {
        "messages": [{"role": "user", "content": text}], "max_tokens": 50}


class Stream:
    """One call with stream true; how it ends is seen on the socket."""

    def __init__(self, run, name, what, read=True, buffer=None, token=None, pad="", **more):
        path, _, model = FORMATS[name][:3]
        self.run, self.name, self.text = run, name, "%s (%s) of %s" % (what, name, run.id)
        said = asks(name, self.text + pad)
        self.s = socket.socket()
        if buffer:
            self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.s.settimeout(PATIENCE)
        self.s.connect(("127.0.0.1", run.port))
        whole = {} if name == "gemini" else {"model": model, "stream": True}
        try:
            self.s.sendall(request("POST", path, token or run.token(), json.dumps({**whole, **said, **more}).encode()))
        except OSError:
            pass  # it is answered already
        self.raw, self.waits = b"", False
        if read:
            self.all()

    def until(self, what):
        while what not in self.raw:
            more = self.s.recv(65536)
            if not more:
                return False
            self.raw += more
        return True

    def all(self):
        """To the last chunk, a whole body, or the connection's end."""
        try:
            while not self.clean() and not self.whole():
                more = self.s.recv(1 << 20)
                if not more:
                    break
                self.raw += more
        except TimeoutError:
            self.waits = True  # nobody ended it
        except OSError:
            pass
        self.s.close()
        return self

    def clean(self):
        return self.raw.endswith(b"\r\n0\r\n\r\n") and b"ransfer-" in self.raw.partition(b"\r\n\r\n")[0]

    def whole(self):
        head, gap, body = self.raw.partition(b"\r\n\r\n")
        length = [r.split(b":")[1] for r in head.lower().split(b"\r\n") if r.startswith(b"content-length:")]
        return bool(gap and length) and len(body) >= int(length[0])

    @property
    def answer(self):
        return Answer(self.raw)

    def body(self):
        left, got = self.raw.partition(b"\r\n\r\n")[2], b""
        while left:
            size, _, left = left.partition(b"\r\n")
            n = int(size or b"0", 16)
            got, left = got + left[:n], left[n + 2:]
        return got.decode()

    def outcome(self):
        return wait_for(lambda: [d["outcome"] for _, k, d in self.run.events() if k == "model.called"])


def begin(rig, name, budget=9, agent="open"):
    return rig.run(budget, profile=FORMATS[name][1], model=FORMATS[name][2], agent=agent)
