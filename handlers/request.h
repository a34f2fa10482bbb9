/*
 * The stages of one public request. Each later type has one constructor, so that no stage can be
 * skipped: an arrival comes from fcgi/ingress.c, a principal from authority_check(), a body from
 * body_read(), and a struct request is handed to a handler by dispatch() alone.
 */
#ifndef HANDLERS_REQUEST_H
#define HANDLERS_REQUEST_H
#include "gen/errors.h"
#include "lib/buf.h"
#include "lib/held.h"
#include "lib/json.h"
#include "lib/route.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ask;
struct known;
struct sources;

enum { BODY_BROKEN = -1, BODY_LATE = -2 };
/* Where the body comes from. read gives 1..n bytes, 0 at the whole body's end, BODY_BROKEN when it broke
 * off, BODY_LATE when it did not come in time. */
struct body_source {
	long (*read)(void *ctx, void *p, size_t n);
	void *ctx;
	/* Of a large one: it comes along, so its deadline is so many milliseconds later. NULL: there is none. */
	void (*more_time)(void *ctx, unsigned ms);
};

/* Whose process the connection is, by the kernel; a web server's, if all is well. False: it cannot be known. */
struct peer_source {
	bool (*who)(void *ctx, uid_t *uid, pid_t *pid);
	void *ctx;
};

/* An event stream that a handler begins, for who goes on with it. The texts need not outlive the call. */
struct stream_order {
	const char *tenant, *run;
	uint64_t after; /* the sequence behind which to begin */
	uint32_t most;  /* streams of this tenant; 0: 200 */
	const char *token_id;
	const uint8_t *token_hash; /* 32 bytes: who reads, to be looked at again */
};
/* open gives it a place; an answer whose status is 200 must then be its head. ERR_OK, ERR_TOO_MANY_STREAMS or
 * ERR_RESOURCES_EXHAUSTED. NULL: there are no streams here. */
struct stream_source {
	enum err (*open)(void *ctx, const struct stream_order *order);
	void *ctx;
};
struct stream_figures {
	uint32_t open;
	uint64_t opened, refused,
	    slow; /* since the start: begun, refused for want of a place, cut for not being read */
};

/* Stage 1: the request as it arrived, strictly read. Strings are C strings without control bytes; NULL
 * where the parameter is absent. Nothing here was authenticated. */
struct arrival {
	enum err refused; /* not ERR_OK: malformed, and nothing below but method and id is to be used */
	const char *why;  /* a sentence for the caller when refused */
	const char *method;
	const char *mount;  /* prefix of every link, such as "/api"; "" at the root */
	const char *path;   /* canonical, without the mount */
	bool odd;           /* it holds characters that only a {label} may have */
	const char *query;  /* as sent, without '?' */
	const char *target; /* REQUEST_URI as the web server passed it */
	bool kept;          /* the web server wants to use this connection again */
	const char *authorization, *content_type, *content_encoding, *content_length;
	const char *accept, *if_none_match, *idempotency_key;
	const char *last_event_id; /* "" where it is not even text */
	const char *cookie, *host, *origin, *fetch_site;
	const char *source;       /* the client's address, as the web server saw it */
	const char *vhost_tenant; /* PINFOLD_TENANT of the web server's configuration */
	bool chunked;             /* the client announced no length; Apache passes such a body on as it comes */
	struct body_source body;
	struct peer_source peer;
	struct stream_source streams;
	char id[65]; /* the request id: PINFOLD_REQUEST_ID of the web server's configuration, or a UUID of ours */
};

/* Stage 2: who asks. Only authority_check() makes one; authority_guess() repeats one that it made before. */
struct principal {
	char tenant[129];
	char label[161];
	char by[101];     /* as written into records: "api:ID" or "device:ID" */
	char id[33];      /* the public id of the token */
	uint8_t hash[32]; /* of the whole token */
	unsigned kind, rights;
};

/* A token as stored knows it: its public id, and the SHA-256 of the whole. */
struct proof {
	char id[17];
	uint8_t hash[32];
};

/* Everything that lives as long as the process; handlers only read it. */
struct app {
	struct held_place *place; /* of the configuration; NULL: conf is all there is */
	const struct conf *conf;
	atomic_uint up;          /* enum child_up: who of the others serves */
	atomic_uint *pauses;     /* of handle_front, now */
	int empty;               /* a descriptor of nothing, for questions that need none */
	struct known *known;     /* of authority.c; NULL: stored is asked first, always */
	struct sources *sources; /* who presented wrong credentials; NULL: nobody is counted */
	struct counts *counts;   /* NULL: nothing is counted */
	/* Of the event streams; NULL: there are none. */
	void (*figures)(void *ctx, struct stream_figures *out);
	void *figures_ctx;
};

/* Stage 3: what a handler gets. who is NULL exactly on routes for anyone. */
struct request {
	const struct app *app;
	const struct conf *conf; /* in force when it began, there until it ends */
	const struct arrival *in;
	const struct principal *who;
	/* NULL: stored has said who asks. Otherwise it must be asked with this, before anything is done or said. */
	const struct proof *proof;
	const struct conf_tenant *tenant;
	const struct route *route;
	const char *arg[ROUTE_ARGS]; /* path segments; a run id has its shape checked already */
	const struct json *json;     /* an object, on routes that take JSON */
	struct ask *ask;
	struct arena *arena;
};
#endif
