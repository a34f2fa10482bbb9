/* Tells the run's watchers what happens. Best effort: a run never fails because nobody could listen. */
#ifndef AGENT_EVENTS_H
#define AGENT_EVENTS_H
#include "agent/http.h"
#include "agent/task.h"
#include "lib/json.h"

enum { EVENT_FAILURES = 3, EVENT_LINE = 64000, EVENT_TEXT = 4000, EVENT_TIMEOUT_MS = 10000 };

struct events {
	struct http *http;
	const struct secret *token;
	const struct task *task;
	int64_t sequence;
	unsigned failures; /* at EVENT_FAILURES nothing is sent any more */
};

/* One line for the event, ending in a newline; data is JSON text or NULL. False: it would be too long. */
bool event_line(struct buf *line, const struct task *t, int64_t sequence, const char *type, const char *data);
/* Sends one event. True: it was taken. */
bool event_post(struct events *e, const char *type, const char *data);
/* The usual shapes. Texts are cut to EVENT_TEXT. */
void event_text(struct events *e, const char *text);
void event_call(struct events *e, const char *call_id, const char *tool, const char *arguments);
void event_output(struct events *e, const char *call_id, const char *tool, bool ok, const char *text, size_t n);
#endif
