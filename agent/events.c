/* One line a request, as the append route takes it. What is sent is bounded here and cleaned there. */
#include "agent/events.h"
#include "lib/die.h"
#include "lib/num.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

static void now_text(char out[32])
{
	uint64_t ms = clock_ms();
	time_t s = (time_t)(ms / 1000);
	struct tm tm;
	gmtime_r(&s, &tm);
	size_t n = strftime(out, 32, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + n, 32 - n, ".%03uZ", (unsigned)(ms % 1000));
}

bool event_line(struct buf *line, const struct task *t, int64_t sequence, const char *type, const char *data)
{
	struct jw w;
	char now[32], id[UUID_LEN + 1];
	now_text(now);
	uuid4(id);
	jw_init(&w, line);
	jw_open(&w, '{');
	jw_kstr(&w, "event_type", type);
	jw_kstr(&w, "run_id", t->id);
	jw_kstr(&w, "task_id", t->id);
	jw_kint(&w, "sequence", sequence);
	jw_kstr(&w, "created_at", now);
	jw_kstr(&w, "event_id", id);
	jw_key(&w, "data");
	jw_raw(&w, data != NULL ? data : "{}", data != NULL ? strlen(data) : 2);
	jw_close(&w, '}');
	buf_addc(line, '\n');
	return !buf_failed(line) && line->n <= EVENT_LINE;
}

bool event_post(struct events *e, const char *type, const char *data)
{
	if (e->failures >= EVENT_FAILURES)
		return false;
	own_buf struct buf line, body, reply, path;
	struct jw w;
	buf_init(&line, 2 * EVENT_LINE);
	buf_init(&body, 4 * EVENT_LINE);
	buf_init(&reply, 65536);
	buf_init(&path, 512);
	bool sent = false;
	if (event_line(&line, e->task, ++e->sequence, type, data)) {
		jw_init(&w, &body);
		jw_open(&w, '{');
		jw_key(&w, "lines");
		jw_open(&w, '[');
		jw_buf(&w, &line);
		jw_close(&w, ']');
		jw_close(&w, '}');
		buf_addf(&path, "/runs/%s/events", e->task->id);
		if (buf_cstr(&path) != NULL && !buf_failed(&body))
			sent = http_send(e->http, buf_cstr(&path), e->token, body.p, body.n, EVENT_TIMEOUT_MS,
					 &reply) == 202;
	} else {
		e->failures = EVENT_FAILURES;
	}
	if (!sent && e->failures < EVENT_FAILURES)
		e->failures++;
	if (!sent && e->failures == EVENT_FAILURES)
		log_warn("events are not taken; no more are sent");
	return sent;
}

static void begin(struct buf *b, struct jw *w)
{
	buf_init(b, EVENT_LINE);
	jw_init(w, b);
	jw_open(w, '{');
}

static void put(struct events *e, const char *type, struct buf *b, struct jw *w)
{
	jw_close(w, '}');
	if (buf_cstr(b) != NULL)
		event_post(e, type, buf_cstr(b));
}

void event_text(struct events *e, const char *text)
{
	own_buf struct buf b;
	struct jw w;
	begin(&b, &w);
	jw_key(&w, "text");
	jw_strn(&w, text, utf8_fit(text, strlen(text), EVENT_TEXT));
	put(e, "message.text", &b, &w);
}

void event_call(struct events *e, const char *call_id, const char *tool, const char *arguments)
{
	own_buf struct buf b;
	struct jw w;
	begin(&b, &w);
	jw_kstr(&w, "call_id", call_id);
	jw_kstr(&w, "tool", tool);
	jw_key(&w, "arguments");
	jw_strn(&w, arguments, utf8_fit(arguments, strlen(arguments), EVENT_TEXT));
	put(e, "tool.call", &b, &w);
}

void event_output(struct events *e, const char *call_id, const char *tool, bool ok, const char *text, size_t n)
{
	own_buf struct buf b;
	struct jw w;
	begin(&b, &w);
	jw_kstr(&w, "call_id", call_id);
	jw_kstr(&w, "tool", tool);
	jw_kbool(&w, "ok", ok);
	jw_key(&w, "output");
	jw_strn(&w, text, utf8_fit(text, n, EVENT_TEXT));
	jw_kbool(&w, "truncated", n > EVENT_TEXT);
	put(e, "tool.output", &b, &w);
}
