/* The conversation with the model, kept within what one request may hold. */
#ifndef AGENT_TALK_H
#define AGENT_TALK_H
#include "agent/task.h"
#include "lib/buf.h"

enum {
	TALK_MESSAGES = 64, /* in one request */
	TALK_BODY = 240000, /* bytes of one request; the gateway takes 256,000 */
	TALK_CALLS = 16,    /* of one answer; what is beyond is left out */
	TALK_SHORT = 2000,  /* bytes to which a result is cut when nothing else helps */
	TALK_RESULT = 64000 /* bytes of one result */
};

struct talk_call {
	const char *id, *name, *arguments; /* the last is JSON text as the model wrote it */
};

struct talk_turn;
/* The first two messages, then turns: an answer of the model and the results of its calls. */
struct talk {
	char *system, *user; /* JSON of each message */
	struct talk_turn *first, *last;
	size_t messages;
};

/* False: no memory. */
bool talk_init(struct talk *t, const struct task *task);
void talk_free(struct talk *t);
/* The model's answer; content may be NULL. Its results follow, or a word to it when it made no call. */
bool talk_answer(struct talk *t, const char *content, const struct talk_call *calls, size_t n);
/* text: any bytes; a NUL becomes a question mark, what is no UTF-8 U+FFFD. */
bool talk_result(struct talk *t, const char *call_id, const void *text, size_t n);
bool talk_say(struct talk *t, const char *text);
/*
 * The body of the next request: model, messages, tools. The oldest turns are dropped whole until it fits;
 * of the last turn results are cut. False: it cannot fit.
 */
bool talk_body(struct talk *t, const struct task *task, const char *tools, struct buf *body);
#endif
