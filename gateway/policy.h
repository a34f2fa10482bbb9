/*
 * What a model request may say, and what is sent on: by a table (spec/fields.tab), without input or output. What goes
 * out is written from what was parsed, never copied.
 */
#ifndef GATEWAY_POLICY_H
#define GATEWAY_POLICY_H
#include "gateway/format.h"
#include "lib/json.h"
#include "lib/schema.h"
#include "lib/secret.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum policy_kind { POLICY_STRICT, POLICY_AGENT, POLICY_PASSTHROUGH };
/* As clients name it, least first. */
enum effort {
	EFFORT_NONE,
	EFFORT_MINIMAL,
	EFFORT_LOW,
	EFFORT_MEDIUM,
	EFFORT_HIGH,
	EFFORT_XHIGH,
	EFFORT_MAX,
	EFFORT__COUNT
};
enum { POLICY_DRIFT = 8, POLICY_DRIFT_NAME = 64, POLICY_FORMATS = (1 << FORMAT__COUNT) - 1 };

/* What a runner profile permits, for one run. Pointers are the owner's. */
struct policy_rules {
	enum policy_kind kind;
	unsigned formats;           /* 1 << enum format_id of each that is served */
	bool stream;                /* "stream": true is taken */
	bool buffered;              /* and then asked for as a whole */
	uint32_t max_output_tokens; /* of one call */
	enum effort effort;         /* the most */
	size_t body_max;            /* bytes of a request */
	const char *model;          /* the one name that may be asked for */
	const char *upstream_model; /* as the provider has it */
	const char *chat_cap;       /* how the provider calls a chat's output cap; NULL: max_tokens */
	const char *tenant;
	const struct secret *cache_key; /* from which names of caches are made, apart for each tenant */
};

struct model_request {
	const struct format *format;
	bool stream;     /* the client wants one */
	bool stream_up;  /* the provider is asked for one */
	bool usage;      /* of a chat's stream: its client wants to know what it cost */
	uint32_t cap;    /* output tokens at most; 0: there is no output */
	struct buf body; /* what is sent; made by policy_apply, freed with model_request_free */
	/* From the client's headers, cleaned; of use for messages alone. */
	char version[FORMAT_VERSION_MAX], beta[FORMAT_BETA_MAX];
	/* Places of fields that are not in the table and were left out (policy agent). */
	char drift[POLICY_DRIFT][POLICY_DRIFT_NAME];
	unsigned ndrift, more_drift;
};

/*
 * Checks a parsed request and writes what is sent. ERR_OK, or what is wrong, and in field its place; then nothing may
 * be sent. What a body lacks in memory is lack_or's.
 */
enum err policy_apply(const struct policy_rules *rules, const struct format *format, const struct json *body,
		      struct model_request *out, char field[SCHEMA_FIELD]);
void model_request_free(struct model_request *rq);

bool policy_kind_named(const char *name, enum policy_kind *kind);
bool effort_named(const char *name, size_t n, enum effort *effort);
const char *effort_name(enum effort effort);

/* policy_strict.c: policy strict, of chat completions alone. */
enum err policy_strict(const struct json *body, const char *model, struct buf *out, char field[SCHEMA_FIELD]);
#endif
