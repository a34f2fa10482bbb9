/* Asks the model through the gateway and understands its answer. */
#ifndef AGENT_MODEL_H
#define AGENT_MODEL_H
#include "agent/http.h"
#include "agent/talk.h"
#include "lib/buf.h"
#include "lib/secret.h"

struct model_answer {
	struct arena arena;  /* everything below lives here */
	const char *content; /* may be NULL */
	struct talk_call calls[TALK_CALLS];
	size_t calls_n;
	int64_t prompt_tokens, completion_tokens; /* 0 where it does not say */
};

struct model {
	struct http *http;
	const struct secret *token;
	const struct task *task;
	const char *tools;
	uint32_t requests;
	int64_t prompt_tokens, completion_tokens;
	char code[64]; /* the gateway's error code after a failure, else "" */
};

/*
 * One answer of the model. 502, 503, 504, a busy provider and a broken connection are tried again at most
 * twice. NULL, or the terminal reason. The caller frees answer->arena in both cases.
 */
const char *model_ask(struct model *m, struct talk *talk, uint64_t left_ms, struct model_answer *answer);
/* The same without the network: NULL, or why the body is no answer. */
const char *model_parse(struct model_answer *answer, const void *json, size_t n);
#endif
