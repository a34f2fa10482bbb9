"""A provider with canned answers, in four wire formats, streamed or whole: it has the agent run one shell command, and is
content with what came of it. It keeps what it was asked and what it charged."""
import http.server, json, threading, time

# A tool for a shell command, as each agent offers it, and what it takes.
SHELLS = {
    "exec_command": lambda c: {"cmd": c}, "bash": lambda c: {"command": c, "description": "mend the file"},
    "Bash": lambda c: {"command": c, "description": "mend the file"}, "shell": lambda c: {"command": ["bash", "-lc", c]},
    "run_shell_command": lambda c: {"command": c, "description": "mend the file", "is_background": False},
}


class Seat:
    """One provider of those that are here, by the first part of its path. asked: of each request its path, headers, body, what it cost, and when
    it came. spoil(handler, kind, frames, send) may send instead of us; refuse(n, body), of the n-th request from 0, gives (status, headers, text)
    or None; endless: it is never content."""

    def __init__(self, command):
        self.mend, self.key, self.lock = command, None, threading.Lock()
        self.clear()

    def clear(self):
        self.command = self.mend
        self.asked, self.spoil, self.refuse, self.endless = [], None, None, False

    def tokens(self):
        """What it charged, in and out."""
        return [sum(q["tokens"][i] for q in self.asked) for i in (0, 1)]


class Upstream:
    def __init__(self, command):
        self.command, self.seats, self.lock = command, {}, threading.Lock()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                try:
                    Answer(self, outer.seat(self.path.split("/")[1])).give()
                except OSError:
                    self.close_connection = True  # whoever asked is gone

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def seat(self, name):
        with self.lock:
            return self.seats.setdefault(name, Seat(self.command))


class Answer:
    """To one request."""

    def __init__(self, handler, seat):
        self.h, self.seat, self.command = handler, seat, seat.command

    def give(self):
        h, seat = self.h, self.seat
        raw = h.rfile.read(int(h.headers["Content-Length"]))
        body, path = json.loads(raw), h.path.split("?")[0]
        offered = seat.key in (h.headers.get("Authorization", "").removeprefix("Bearer "), h.headers.get("x-api-key"), h.headers.get("x-goog-api-key"))
        kind = path.rsplit("/v1/", 1)[-1]
        model, _, verb = kind.removeprefix("models/").partition(":")  # as Gemini has it
        took, gave = len(raw) // 4, 20
        with seat.lock:
            n = len(seat.asked)
            seat.asked.append({"path": path, "headers": dict(h.headers), "body": body, "tokens": (took, gave), "key": offered, "at": time.monotonic()})
        if not offered:
            return self.whole(401, {"error": {"message": "no such key", "type": "invalid_request_error", "code": "invalid_api_key"}})
        refused = seat.refuse(n, body) if seat.refuse else None
        if refused:
            seat.asked[n]["tokens"] = (0, 0)
            return self.bytes(*refused)
        tool = next((n for n in self.tools(body) if n in SHELLS), None)
        calls = tool is not None and (seat.endless or not self.seen(body))
        if seat.endless:
            self.command += f" # {n}"  # some end by themselves what repeats itself
        frames, answer = {"chat/completions": self.chat, "responses": self.responses, "messages": self.messages}.get(kind, self.gemini)(
            model if verb else body["model"], tool if calls else None, took, gave)
        if not body.get("stream") and verb != "streamGenerateContent":
            return self.whole(200, answer)
        h.send_response(200)
        h.send_header("Content-Type", "text/event-stream")
        h.send_header("Transfer-Encoding", "chunked")
        h.end_headers()
        send = lambda text: (h.wfile.write(b"%x\r\n" % len(text.encode()) + text.encode() + b"\r\n"), h.wfile.flush())
        if seat.spoil is not None and seat.spoil(h, kind, frames, send):
            return
        for f in frames:
            send(f)
        h.wfile.write(b"0\r\n\r\n")

    def whole(self, status, value):
        self.bytes(status, {"Content-Type": "application/json"}, json.dumps(value))

    def bytes(self, status, headers, text):
        self.h.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(text.encode()))}.items():
            self.h.send_header(name, value)
        self.h.end_headers()
        self.h.wfile.write(text.encode())

    @staticmethod
    def tools(body):
        for t in body.get("tools") or []:
            yield t.get("function", {}).get("name") or t.get("name")
            yield from (f["name"] for f in t.get("functionDeclarations") or [])

    @staticmethod
    def seen(body):
        """Was a tool's result given back?"""
        for m in body.get("messages") or []:
            if m.get("role") == "tool" or any(isinstance(p, dict) and p.get("type") == "tool_result" for p in
                                              (m["content"] if isinstance(m.get("content"), list) else [])):
                return True
        if any("functionResponse" in p for c in body.get("contents") or [] for p in c["parts"]):
            return True
        inputs = body.get("input")
        return any(i.get("type") in ("function_call_output", "custom_tool_call_output") for i in (inputs if isinstance(inputs, list) else []))

    def arguments(self, tool):
        return json.dumps(SHELLS[tool](self.command))

    def chat(self, model, tool, took, gave):
        message = {"role": "assistant", "content": None if tool else "Mended."}
        if tool:
            message["tool_calls"] = [{"index": 0, "id": "call_1", "type": "function", "function": {"name": tool, "arguments": self.arguments(tool)}}]
        end = "tool_calls" if tool else "stop"
        usage = {"prompt_tokens": took, "completion_tokens": gave, "total_tokens": took + gave}
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}
        deltas = [message]
        if tool:
            # The arguments come in two events, as from any provider: an end between them leaves half a command.
            call, text = message["tool_calls"][0], self.arguments(tool)
            at = text.find("whole.txt") + 3 if "whole.txt" in text else len(text) // 2
            deltas = [{**message, "tool_calls": [{**call, "function": {"name": tool, "arguments": text[:at]}}]},
                      {"tool_calls": [{"index": 0, "function": {"arguments": text[at:]}}]}]
        parts = [{"choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas] + [{"choices": [{"index": 0, "delta": {}, "finish_reason": end}]},
                 {"choices": [], "usage": usage}]
        frames = ["data: " + json.dumps({**head, **p}) + "\n\n" for p in parts] + ["data: [DONE]\n\n"]
        whole = dict(message)
        if tool:
            whole["tool_calls"] = [{k: v for k, v in message["tool_calls"][0].items() if k != "index"}]
        return frames, {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model, "usage": usage,
                        "choices": [{"index": 0, "message": whole, "finish_reason": end}]}

    def responses(self, model, tool, took, gave):
        item = ({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": tool, "arguments": self.arguments(tool), "status": "completed"} if tool else
                {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                 "content": [{"type": "output_text", "text": "Mended.", "annotations": []}]})
        usage = {"input_tokens": took, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": gave,
                 "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": took + gave}
        response = {"id": "resp_1", "object": "response", "created_at": 1, "status": "in_progress", "model": model, "output": []}
        done = {**response, "status": "completed", "output": [item], "usage": usage}
        events = [("response.created", {"response": response}), ("response.output_item.added", {"output_index": 0, "item": item}),
                  ("response.output_item.done", {"output_index": 0, "item": item}), ("response.completed", {"response": done})]
        return [f"event: {n}\ndata: " + json.dumps({"type": n, "sequence_number": i, **d}) + "\n\n" for i, (n, d) in enumerate(events)], done

    def messages(self, model, tool, took, gave):
        block = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": SHELLS[tool](self.command)} if tool else {"type": "text", "text": "Mended."}
        end = "tool_use" if tool else "end_turn"
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": [], "stop_reason": None, "stop_sequence": None,
                   "usage": {"input_tokens": took, "output_tokens": 1}}
        start = {**block, "input": {}} if tool else {**block, "text": ""}
        delta = {"type": "input_json_delta", "partial_json": self.arguments(tool)} if tool else {"type": "text_delta", "text": "Mended."}
        events = [("message_start", {"message": message}), ("content_block_start", {"index": 0, "content_block": start}),
                  ("content_block_delta", {"index": 0, "delta": delta}), ("content_block_stop", {"index": 0}),
                  ("message_delta", {"delta": {"stop_reason": end, "stop_sequence": None}, "usage": {"output_tokens": gave}}), ("message_stop", {})]
        return ([f"event: {n}\ndata: " + json.dumps({"type": n, **d}) + "\n\n" for n, d in events],
                {**message, "content": [block], "stop_reason": end, "usage": {"input_tokens": took, "output_tokens": gave}})

    def gemini(self, model, tool, took, gave):
        part = {"functionCall": {"id": "call_1", "name": tool, "args": SHELLS[tool](self.command)}} if tool else {"text": "Mended."}
        said = lambda *parts, **more: [{"index": 0, "content": {"role": "model", "parts": list(parts)}, **more}]
        usage = {"promptTokenCount": took, "candidatesTokenCount": gave - 5, "thoughtsTokenCount": 5, "cachedContentTokenCount": 1, "totalTokenCount": took + gave}
        head = {"modelVersion": model, "responseId": "r1"}
        events = [{**head, "candidates": said({"text": "Let me see.", "thought": True}), "usageMetadata": {"promptTokenCount": took, "thoughtsTokenCount": 5}},
                  {**head, "candidates": said({**part, "thoughtSignature": "c2ln"})}, {**head, "candidates": said(finishReason="STOP"), "usageMetadata": usage}]
        return ["data: " + json.dumps(e) + "\r\n\r\n" for e in events], {**head, "candidates": said(part, finishReason="STOP"), "usageMetadata": usage}
