/*
 * The parts of the scripted model: canned answers over a raw socket, no AI. It trusts its own command
 * line and scenario file and nobody else; it never logs a key (only the SHA-256 of the Authorization value).
 */
#ifndef TESTS_MODEL_MODEL_H
#define TESTS_MODEL_MODEL_H
#include "lib/json.h"
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct peer {
	int fd;
	SSL *ssl; /* NULL: plain */
};

enum { HEADERS_MAX = 64, HEAD_MAX = 65536, BODY_MAX = 12000000 };

struct http_request {
	char method[16], path[256];
	char *names[HEADERS_MAX];
	size_t nnames;
	char *authorization;            /* whole value, NULL if absent */
	char *api_key, *version, *beta; /* of x-api-key or x-goog-api-key, anthropic-version, anthropic-beta */
	char *body;
	size_t body_len;
	bool keep_alive;
	struct arena arena; /* everything above lives here */
};

/* Which wire format a request is in. */
enum dialect { DIALECT_CHAT, DIALECT_RESPONSES, DIALECT_MESSAGES, DIALECT_COUNT, DIALECT_GEMINI, DIALECT_GEMINI_COUNT };

/* What a rule of the scenario may look at. */
struct conversation {
	enum dialect dialect;
	const struct json *body;
	bool streams;     /* the answer is wanted as a stream */
	unsigned turn;    /* assistant messages so far */
	unsigned results; /* what tools gave back so far */
	unsigned nth;     /* chat requests since start, this one included */
};

struct scenario {
	struct arena arena;
	const struct json *rules;
	const char *model;
};

/* All of n bytes; false when the peer is gone. */
bool peer_write(struct peer *p, const void *data, size_t n);
/* At most n bytes; 0 or less at the end. */
long peer_read(struct peer *p, void *data, size_t n);
void peer_close(struct peer *p);

/* Reads one request. False at the end of the connection or for anything malformed. */
bool http_read(struct peer *p, struct http_request *rq);

/* Loads a scenario file, or the built-in one of that name. Ends the program when it is wrong. */
void scenario_load(struct scenario *s, const char *file_or_name);
/* The "answer" object of the first rule that matches; NULL: none. */
const struct json *scenario_choose(const struct scenario *s, const struct conversation *c);

/* dialect.c. False: no format has this path. */
bool dialect_of(const char *path, enum dialect *d);
/* Does the request want a stream? Gemini says so in its path. */
bool dialect_streams(const char *path, const struct json *body);
/* The field that holds what was said. */
const char *dialect_says(enum dialect d);
/* How often the model spoke so far. */
unsigned dialect_turns(enum dialect d, const struct json *body);
/* How many results of tools it was given so far. */
unsigned dialect_results(enum dialect d, const struct json *body);
/* The answer object's message, in any format but chat. */
void dialect_put(struct buf *b, enum dialect d, const struct scenario *s, const struct json *answer, unsigned nth);

/* Sends what the answer object says, lies included; a message as a stream where the request wants one. False: close the
 * connection. */
bool answer_send(struct peer *p, const struct scenario *s, const struct json *answer, const struct conversation *c);
/* stream.c: sends a whole message as its format's stream. */
bool stream_send(struct peer *p, enum dialect d, const struct buf *whole);
/* shell.c: an answer that names a command ("shell"), as one that calls the tool for it of this request (of size bytes);
 * any other as it is. In the arena. */
const struct json *shell_answer(struct arena *a, const struct json *answer, const struct json *body, size_t size);
/* Does the request offer tools, but none of this name? */
bool tools_lack(const struct json *body, const char *name);
/* Sends a plain JSON answer. */
bool answer_json(struct peer *p, unsigned status, const char *body);

/* Makes ca.pem, cert.pem and key.pem in dir unless they are there. name NULL: localhost and 127.0.0.1.
 * Ends the program on failure. */
void cert_make(const char *dir, const char *name);

extern const char scenario_repair[], scenario_agent[];
#endif
