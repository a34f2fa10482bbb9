/*
 * The request of a run as the steward needs it: read from the canonical summary that the store keeps, and
 * written again as the request.json that an agent finds in its box.
 */
#ifndef STEWARD_REQUEST_H
#define STEWARD_REQUEST_H
#include "gen/errors.h"
#include "lib/buf.h"
#include "lib/json.h"

enum { REQUEST_BYTES = 1000000, REQUEST_CHECKS = 4, REQUEST_PATHS = 32, REQUEST_ARGS = 16, REQUEST_CHECK_NAME = 16 };

struct request_check {
	char name[REQUEST_CHECK_NAME]; /* check-1 ... in the order asked for */
	uint32_t argc;
	const char *argv[REQUEST_ARGS];
};

/* Pointers lead into the arena, which is freed by request_free. */
struct request {
	struct arena arena;
	const char *text; /* the summary as it was stored */
	size_t text_n;
	const struct json *root;
	const char *instruction;
	size_t nallow, nchecks;
	const char *allow[REQUEST_PATHS];
	struct request_check checks[REQUEST_CHECKS];
};

struct request_facts {
	const char *run, *model;
	uint32_t max_steps, wall_seconds, tool_output_bytes, patch_bytes;
	unsigned gateway_port;
};

/* Reads fd from offset 0. ERR_INTERNAL_ERROR: it is not what the store was given; or what was lacking (lib/lack.h). */
enum err request_read(struct request *rq, int fd);
void request_free(struct request *rq);
void request_write(struct buf *out, const struct request *rq, const struct request_facts *f);
/* http://127.0.0.1:PORT/internal/v1 */
void request_gateway_url(char *out, size_t cap, unsigned port);
#endif
