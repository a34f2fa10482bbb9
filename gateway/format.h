/*
 * The wire formats in which agents ask models, as one table: where a call comes in and goes out, how the provider's
 * key is sent, how an error looks, which status makes a client stop, where the usage stands, what ends a stream.
 */
#ifndef GATEWAY_FORMAT_H
#define GATEWAY_FORMAT_H
#include "gen/errors.h"
#include "lib/buf.h"
#include "lib/json.h"
#include <stdbool.h>
#include <stdint.h>

/* The first are as settings name them, in their order. */
enum format_id {
	FORMAT_CHAT,
	FORMAT_RESPONSES,
	FORMAT_MESSAGES,
	FORMAT_GEMINI,
	FORMAT_COUNT_TOKENS,
	FORMAT_GEMINI_STREAM,
	FORMAT_GEMINI_COUNT,
	FORMAT__COUNT
};
/* Who made it: whose words an error has, where usage stands. */
enum format_family { FAMILY_OPENAI, FAMILY_ANTHROPIC, FAMILY_GEMINI };
enum { FORMAT_BETA_MAX = 512, FORMAT_VERSION_MAX = 16 };

struct format {
	enum format_id id;
	enum format_family family;
	enum format_id with;  /* what settings name it by: itself, or that which it comes with */
	enum format_id whole; /* how the provider is asked for a whole answer */
	const char *name;     /* in settings; empty: it comes with another */
	const char *route;    /* the name of its row in spec/routes.tab */
	const char *path;     /* behind a provider's base URL */
	const char *verb; /* behind the model's name, which then stands behind path; NULL: the body says the model */
	const char *protocol;   /* of the providers that speak it */
	const char *key_header; /* what is sent before the key */
	unsigned stop_status;   /* with "x-should-retry: false": makes its clients stop at the first call */
	unsigned other_model;   /* the same where another model than the run's is asked for */
	const char *says;       /* the field that holds the conversation */
	const char *cap;  /* the field that bounds the output, where the client sends none; NULL: there is no output */
	const char *caps; /* the object in which that stands; NULL: at the top */
	bool always;      /* it is a stream, whatever the body says */
	bool two_spellings; /* a field may be spelt a_b or aB; it is sent as aB */
	/* Of a stream. A clean end is one of ends as an event's "type" (chat: as its data), and nothing else; of
	 * Gemini's, which names none, an answer that says why it finished. */
	const char *const *ends; /* ends with NULL */
	bool fails;              /* one of them says that it failed, and is the format's error event */
	bool typed_events;       /* events are named, and their data has the same name as "type" */
	const char *grows;       /* of its events: the member below which the model's words are */
	const char *heartbeat;   /* whole bytes that every client takes and ignores; NULL: none */
};

/* NULL: no format has this route. */
const struct format *format_of_route(const char *route);
const struct format *format_get(enum format_id id);
/* The first that a provider of this protocol speaks; chat completions where there is none. */
const struct format *format_of_protocol(const char *protocol);
/* As in settings. NULL: there is none of this name. */
const struct format *format_named(const char *name);

/*
 * The usage in an answer or in a stream's event: what is counted there replaces *in and *out, what is not leaves them.
 * In is everything that was read, from caches as well. Numbers that are none, or absurd, count for nothing.
 */
void format_usage(const struct format *f, const struct json *answer, uint64_t *in, uint64_t *out);

/* What a client is told when it gets no answer. */
struct refusal {
	unsigned status;
	bool stop;            /* asking again helps nobody: "x-should-retry: false" */
	unsigned retry_after; /* seconds, for the header Retry-After; 0: it is not sent */
	const char *code, *message;
};
/* Of our own error, in a format's own terms. */
struct refusal format_refusal(const struct format *f, enum err e, unsigned retry_after);
/*
 * What a provider's status is for an agent. True: the provider's answer may go to it as it stands (with the status and,
 * where it is set, retry_after of r); false: r is told instead. Its 401 and 403 are about our key and no agent's.
 */
bool format_upstream(const struct format *f, unsigned status, unsigned retry_after, struct refusal *r);
/* Is a provider's refusal about our key, though its status does not say so? */
bool format_key_refused(const struct format *f, unsigned status, const struct json *answer);
/* Of a stream's event without a name: does it say why the answer is finished, or the question was refused? */
bool format_finished(const struct json *event);
/* The body of a refusal. field may be NULL or empty. */
void format_error(const struct format *f, const struct refusal *r, const char *field, const char *request_id,
		  struct buf *out);

/* Of a client's anthropic-version: the same where it is a plain date, otherwise the one that all know. */
void format_version(const char *value, char out[FORMAT_VERSION_MAX]);
/* Of a client's anthropic-beta: those that give nothing but a shape; out is empty where none is left. */
void format_beta(const char *value, char out[FORMAT_BETA_MAX]);
#endif
