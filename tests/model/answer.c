/*
 * Sends an answer of a scenario, as a stream where the request wants one. Besides a message (scenario.c) an answer may
 * hold: status N            instead of 200 body TEXT           instead of the message, byte for byte hex TEXT the same,
 * in hexadecimal: bytes that a scenario's text cannot hold body_size N         a valid JSON body of about N bytes type
 * TEXT           content type instead of application/json; "" sends none length N            Content-Length instead of
 * the true one; -1 sends none location TEXT       a Location header headers {NAME:TEXT} further headers delay_ms N
 * silence before the answer byte_ms N           the body one byte at a time, N ms apart cut N               close after
 * N bytes of the body chunked true        chunked coding; endless true: chunks that never end gzip true           the
 * body gzip coded, unasked garbage N           N bytes that are no HTTP, then close hang true           no answer at
 * all until the client goes close true          close without an answer
 */
#include "lib/secret.h"
#include "tests/model/model.h"
#include <string.h>
#include <time.h>

static void pause_ms(int64_t ms)
{
	struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
	nanosleep(&t, NULL);
}

static int64_t number(const struct json *o, const char *key, int64_t absent)
{
	int64_t n = absent;
	const struct json *v = json_get(o, key);
	if (v)
		json_int(v, INT64_MIN, INT64_MAX, &n);
	return n;
}

static bool flag(const struct json *o, const char *key)
{
	const struct json *v = json_get(o, key);
	return v && v->type == JSON_BOOL && v->truth;
}

static const char *string(const struct json *o, const char *key)
{
	const struct json *v = json_get(o, key);
	return v && v->type == JSON_STRING ? v->text : NULL;
}

static void put_tool_calls(struct jw *w, const struct json *tools, unsigned nth)
{
	unsigned i = 0;

	jw_key(w, "tool_calls");
	jw_open(w, '[');
	for (const struct json *t = tools->child; t; t = t->next, i++) {
		char id[48];
		struct buf args own_buf = {0};
		const struct json *a = json_get(t, "arguments");
		buf_init(&args, BODY_MAX);
		if (a && a->type == JSON_STRING)
			buf_add(&args, a->text, a->len);
		else if (a)
			json_write(&args, a);
		else
			buf_adds(&args, "{}");
		snprintf(id, sizeof id, "call_%u_%u", nth, i);
		jw_open(w, '{');
		jw_kstr(w, "id", id);
		jw_kstr(w, "type", "function");
		jw_key(w, "function");
		jw_open(w, '{');
		jw_kstr(w, "name", string(t, "name") ? string(t, "name") : "");
		jw_key(w, "arguments");
		jw_strn(w, (const char *)args.p, args.n);
		jw_close(w, '}');
		jw_close(w, '}');
	}
	jw_close(w, ']');
}

static void put_message(struct buf *b, const struct scenario *s, const struct json *answer, unsigned nth)
{
	const struct json *tools = json_get(answer, "tools"), *usage = json_get(answer, "usage");
	const char *content = string(answer, "content"), *reason = string(answer, "finish_reason");
	int64_t prompt = usage ? number(usage, "prompt", 0) : 100,
		completion = usage ? number(usage, "completion", 0) : 20;
	char id[32];
	struct jw w;

	if (tools && tools->type != JSON_ARRAY)
		tools = NULL;
	snprintf(id, sizeof id, "scripted-%u", nth);
	jw_init(&w, b);
	jw_open(&w, '{');
	jw_kstr(&w, "id", id);
	jw_kstr(&w, "object", "chat.completion");
	jw_kint(&w, "created", (int64_t)time(NULL));
	jw_kstr(&w, "model", s->model);
	jw_key(&w, "choices");
	jw_open(&w, '[');
	jw_open(&w, '{');
	jw_kint(&w, "index", 0);
	jw_key(&w, "message");
	jw_open(&w, '{');
	jw_kstr(&w, "role", "assistant");
	jw_key(&w, "content");
	if (content)
		jw_str(&w, content);
	else
		jw_null(&w);
	if (tools)
		put_tool_calls(&w, tools, nth);
	jw_close(&w, '}');
	jw_kstr(&w, "finish_reason", reason ? reason : tools ? "tool_calls" : "stop");
	jw_close(&w, '}');
	jw_close(&w, ']');
	jw_key(&w, "usage");
	jw_open(&w, '{');
	jw_kint(&w, "prompt_tokens", prompt);
	jw_kint(&w, "completion_tokens", completion);
	jw_kint(&w, "total_tokens", prompt + completion);
	jw_close(&w, '}');
	jw_close(&w, '}');
}

/* A gzip file of stored blocks: valid, and needs no compressor. */
static void put_gzip(struct buf *out, const uint8_t *p, size_t n)
{
	uint32_t crc = 0xffffffffu;
	static const uint8_t head[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};

	for (size_t i = 0; i < n; i++) {
		crc ^= p[i];
		for (int k = 0; k < 8; k++)
			crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1)));
	}
	crc = ~crc;
	buf_add(out, head, sizeof head);
	size_t at = 0;
	do {
		size_t part = n - at > 65535 ? 65535 : n - at;
		uint8_t block[5] = {at + part == n, (uint8_t)part, (uint8_t)(part >> 8), (uint8_t)~part,
				    (uint8_t)(~part >> 8)};
		buf_add(out, block, sizeof block);
		buf_add(out, p + at, part);
		at += part;
	} while (at < n);
	for (int shift = 0; shift < 32; shift += 8)
		buf_addc(out, (char)(crc >> shift));
	for (int shift = 0; shift < 32; shift += 8)
		buf_addc(out, (char)((uint32_t)n >> shift));
}

static bool send_body(struct peer *p, const struct json *answer, const uint8_t *body, size_t n)
{
	int64_t byte_ms = number(answer, "byte_ms", 0), cut = number(answer, "cut", -1);
	size_t end = cut >= 0 && (size_t)cut < n ? (size_t)cut : n;

	if (flag(answer, "endless")) {
		char chunk[4096 + 8];
		memset(chunk, ' ', sizeof chunk);
		memcpy(chunk, "1000\r\n", 6);
		memcpy(chunk + 6 + 4096, "\r\n", 2);
		while (peer_write(p, chunk, 6 + 4096 + 2))
			;
		return false;
	}
	if (flag(answer, "chunked")) {
		char size[32];
		snprintf(size, sizeof size, "%zx\r\n", n);
		return peer_write(p, size, strlen(size)) && peer_write(p, body, end) && end == n &&
		       peer_write(p, "\r\n0\r\n\r\n", 7);
	}
	for (size_t i = 0; byte_ms && i < end; i++) {
		if (!peer_write(p, body + i, 1))
			return false;
		pause_ms(byte_ms);
	}
	return (byte_ms || peer_write(p, body, end)) && end == n && number(answer, "length", 0) == 0;
}

static bool send_garbage(struct peer *p, int64_t n)
{
	uint8_t block[1024];

	for (; n > 0; n -= (int64_t)sizeof block) {
		random_bytes(block, sizeof block);
		block[0] = 0x80;
		if (!peer_write(p, block, n < (int64_t)sizeof block ? (size_t)n : sizeof block))
			break;
	}
	return false;
}

static void add_hex(struct buf *b, const char *s)
{
	unsigned byte;
	for (; sscanf(s, "%2x", &byte) == 1; s += 2)
		buf_addc(b, (char)byte);
}

bool answer_send(struct peer *p, const struct scenario *s, const struct json *answer, const struct conversation *c)
{
	enum dialect d = c->dialect;
	unsigned nth = c->nth;
	bool made = false; /* a message of ours, which may be streamed */
	struct buf head own_buf = {0}, body own_buf = {0}, coded own_buf = {0};
	const char *type = string(answer, "type"), *location = string(answer, "location"),
		   *raw = string(answer, "body"), *coded_raw = string(answer, "hex");
	const struct json *headers = json_get(answer, "headers");
	int64_t size = number(answer, "body_size", 0), length = number(answer, "length", 0);

	buf_init(&head, HEAD_MAX);
	buf_init(&body, 64000000);
	buf_init(&coded, 65000000);
	pause_ms(number(answer, "delay_ms", 0));
	if (flag(answer, "close"))
		return false;
	if (flag(answer, "hang")) {
		uint8_t sink[512];
		while (peer_read(p, sink, sizeof sink) > 0)
			;
		return false;
	}
	if (number(answer, "garbage", 0) > 0)
		return send_garbage(p, number(answer, "garbage", 0));
	if (raw)
		buf_add(&body, raw, json_get(answer, "body")->len);
	else if (coded_raw)
		add_hex(&body, coded_raw);
	else if (size > 0) {
		buf_adds(&body, "{\"x\":\"");
		for (int64_t i = 0; i < size; i++)
			buf_addc(&body, 'a');
		buf_adds(&body, "\"}");
	} else {
		made = d != DIALECT_COUNT && d != DIALECT_GEMINI_COUNT && c->streams;
		if (d != DIALECT_CHAT)
			dialect_put(&body, d, s, answer, nth);
		else
			put_message(&body, s, answer, nth);
	}
	if (made && !buf_failed(&body) && number(answer, "status", 200) == 200)
		return stream_send(p, d, &body);
	if (flag(answer, "gzip")) {
		put_gzip(&coded, body.p, body.n);
		buf_reset(&body);
		buf_add(&body, coded.p, coded.n);
	}
	bool chunked = flag(answer, "chunked") || flag(answer, "endless");
	buf_addf(&head, "HTTP/1.1 %d Scripted\r\n", (int)number(answer, "status", 200));
	if (!type || *type)
		buf_addf(&head, "Content-Type: %s\r\n", type ? type : "application/json");
	if (location)
		buf_addf(&head, "Location: %s\r\n", location);
	if (flag(answer, "gzip"))
		buf_adds(&head, "Content-Encoding: gzip\r\n");
	if (headers && headers->type == JSON_OBJECT)
		for (const struct json *h = headers->child; h; h = h->next)
			buf_addf(&head, "%s: %s\r\n", h->key, h->text ? h->text : "");
	if (chunked)
		buf_adds(&head, "Transfer-Encoding: chunked\r\n");
	else if (length >= 0)
		buf_addf(&head, "Content-Length: %lld\r\n", (long long)(length ? length : (int64_t)body.n));
	else
		buf_adds(&head, "Connection: close\r\n");
	buf_adds(&head, "\r\n");
	if (buf_failed(&head) || buf_failed(&body) || buf_failed(&coded))
		return false;
	/* One write where nothing is to be slow: the peer sees head and body together. */
	if (!chunked && number(answer, "byte_ms", 0) == 0 && number(answer, "cut", -1) < 0 && body.n < 60000) {
		buf_add(&head, body.p, body.n);
		return peer_write(p, head.p, head.n) && length == 0;
	}
	return peer_write(p, head.p, head.n) && send_body(p, answer, body.p, body.n);
}

bool answer_json(struct peer *p, unsigned status, const char *body)
{
	struct buf b own_buf = {0};
	buf_init(&b, HEAD_MAX);
	buf_addf(&b, "HTTP/1.1 %u Scripted\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", status,
		 strlen(body), body);
	return !buf_failed(&b) && peer_write(p, b.p, b.n);
}
