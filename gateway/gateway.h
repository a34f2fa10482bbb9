/*
 * The gateway's parts. The way of a call: http (headers, body, limits) -> route table -> token of this
 * connection's box -> gate_NAME (admit, agent_events, agent_approvals) -> store, provider -> reply by http.
 */
#ifndef GATEWAY_GATEWAY_H
#define GATEWAY_GATEWAY_H
#include "gateway/format.h"
#include "gateway/policy.h"
#include "gen/errors.h"
#include "gen/store_msg.h"
#include "lib/ask.h"
#include "lib/buf.h"
#include "lib/conf.h"
#include "lib/json.h"
#include "lib/num.h"
#include "lib/pace.h"
#include "lib/reload.h"
#include "lib/route.h"
#include "lib/schema.h"
#include "lib/secret.h"
#include "lib/token.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	GATE_CONNECTIONS = 64,     /* of one box at a time */
	GATE_REPLY_MAX = 1100000,  /* bytes of an answer to a box */
	GATE_NODES = 20000,        /* JSON values in one body, under policy strict */
	GATE_ARENA = 8000000,      /* memory for it, parsed */
	GATE_NODES_LARGE = 200000, /* the same under the other policies */
	GATE_ARENA_LARGE = 40000000,
	GATE_BODY_SECONDS = 30, /* for a whole body to arrive */
	GATE_IDLE_SECONDS = 30, /* for a silent connection */
	GATE_STORE_PATIENCE_MS = 10000,
	GATE_STORE_CONNECTIONS = 32
};

/* A model profile as this process may use it. */
struct upstream_target {
	const struct cf_profile *profile;
	char *url[FORMAT__COUNT]; /* NULL: it is not asked in this format, or not at all */
	bool usable;              /* in any */
	const char *ca_file;      /* "" : the system's */
	const struct secret *key; /* NULL: none is needed */
	uint8_t fingerprint[32];
};

/* What a call is done under (terms.c). All of it is held's. */
struct terms {
	struct held *held;
	const struct conf *conf;
	const struct secret *token_key, *token_next; /* next may be NULL */
	struct upstream_target targets[CONF_PROFILES];
	uint32_t ntargets;
	uint32_t model_timeout_ms;
};

struct app {
	struct reload reload; /* each that is held has its terms as its own */
	struct box *boxes;    /* the main thread's */
	struct store_pool *store;
	struct upstream_pool *upstream;
	struct flights *flights;
};

/* One box: its listener decided run and tenant. */
struct box {
	struct app *app;
	char run[129], tenant[129];
	struct MHD_Daemon *daemon;
	pthread_mutex_t lock;
	const struct terms *opened_under;                   /* under the lock; used once by the box */
	enum { BOX_UNKNOWN, BOX_FILES, BOX_WIRE } delivery; /* under the lock: how its run gets its tokens */
	char model[129];                                    /* that its run is bound to; empty: not known yet */
	char agent[129], profile[129];                      /* the same */
	struct pace denied;                                 /* under the lock: how often a wrong token is told of */
	atomic_bool link_told, id_told;                     /* one log line a run for what was left out */
	atomic_bool closing;                                /* the box is gone: no call sets out any more */
	struct box *next;
};

/* One request. Handlers fill status and reply, or return an error by gate_fail. */
struct gate_call {
	struct app *app;
	struct box *box;
	const struct terms *terms;  /* in force when it began */
	const struct terms *before; /* that its box was opened under, often the same */
	struct route_found found;
	struct token_claims claims;
	char request_id[UUID_LEN + 1];
	const struct format *format;                             /* of a model's route; NULL: none */
	struct policy_rules rules;                               /* once the token was good: what its run may ask */
	char version[FORMAT_VERSION_MAX], beta[FORMAT_BETA_MAX]; /* for the provider */
	struct buf body;
	unsigned status;
	struct buf reply;
	bool stop;            /* asking again is useless: "x-should-retry: false" */
	bool retry;           /* our own refusal, that will pass */
	unsigned retry_after; /* after so many seconds; 0: soon */
	bool cut;             /* nobody may have an answer: the connection is closed */
	int fd;               /* of the connection, to be watched and not touched */
	/* http.c's own */
	char path[512];
	uint64_t started_ms;
	size_t swallowed;
	bool seen_head, too_large;
};

/* terms.c. What it makes is h's own; NULL: *why is a phrase that stays. */
const struct terms *terms_make(struct held *h, const char **why);
/* Whether this process can take it up; makes its terms. */
const char *terms_fit(struct held *next);
/* Can the same be asked under these? */
bool terms_offer(const struct terms *terms, const struct upstream_target *t);
/* The box's run loses nothing by the terms in force: they become the box's. */
void terms_renew(struct box *box);
/* Those in force, and those of a box: used once more, until terms_done (NULL: nothing). */
const struct terms *terms_now(struct app *app);
const struct terms *terms_of_box(struct box *box);
void terms_done(const struct terms *t);

/* agent_text.c: appends an event's data (NULL: it has none), cleaned, with the agent's own number. Of a question also
 * what the cleaning changed, as text_shortened: [{"field","bytes","sha256","masked"},...] of the text before, absent
 * where it is shown as the agent wrote it; mask: what looks like a secret is masked; id (NULL: it has none) stands for
 * a title without words. What cannot be stored fails out. False: a link without an address that may be offered; it must
 * be left out (C-69). */
enum agent_says { AGENT_EVENT, AGENT_QUESTION, AGENT_LINK };
bool agent_data(struct buf *out, const struct json *data, int64_t sequence, enum agent_says what, bool mask,
		const char *id);
/* refuse.c: writes the error reply, in the words of the call's format. field may be NULL. */
void gate_fail(struct gate_call *call, enum err e, const char *field);
/* The same of what was decided already; the call has a format. */
void gate_refuse(struct gate_call *call, const struct refusal *r, const char *field);

/* admit.c: does no token enter this box? Then the connection alone says whose call it is, and model becomes the run's.
 */
bool gate_by_wire(struct gate_call *call, char model[129]);
/* Once the caller is known: what its run may ask (call->rules). Where that is not to be learnt, what the strictest may.
 */
void gate_rules(struct gate_call *call);
/* Bytes that the body of this call may have, by its route and its run's rules. */
size_t gate_body_max(const struct gate_call *call);
/* ERR_OK where a token of the call's run is good although its own time is over: its capability was given a further
 * life. */
enum err gate_renewed(struct gate_call *call);
/* ERR_OK while the run's capability is alive, whatever is left of its budget; never spends. */
enum err gate_alive(struct gate_call *call);
enum err gate_alive_run(const struct app *app, const char *tenant, const char *run);

/* flight.c: the model calls that are under way, and what ends them early */
enum flight_end { FLIGHT_ON, FLIGHT_REVOKED, FLIGHT_BOX_GONE, FLIGHT_CLIENT_LEFT };
struct flight {
	struct box *box;
	int fd;
	atomic_int end; /* enum flight_end */
	/* flight.c's own */
	uint64_t id;
	void (*wake)(void *);
	void *arg;
	struct flight *next;
};
/* Begins to watch the store at this path, for the life of the program. Ends it where it cannot. */
struct flights *flights_new(const struct app *app, const char *store_path);
/* From now on the call may be ended; fd is its client's. Before the unit is spent, so that nothing is missed. */
void flight_begin(struct flights *fs, struct flight *f, struct box *box, int fd);
/* Are no more calls of its run and of its tenant under way, with this one, than these (0: no limit)? Those of all boxes
 * pass here, and a gateway that dies ends them all, so that nothing is counted that is not there. */
enum err flight_room(struct flights *fs, const struct flight *of, uint32_t most_run, uint32_t most_tenant);
void flight_finish(struct flights *fs, struct flight *f);
/* wake(arg) is called by another thread when the call shall end; NULL: no more. */
void flight_waker(struct flights *fs, struct flight *f, void (*wake)(void *), void *arg);
enum flight_end flight_ended(const struct flight *f);
/* The box is gone (closing is set): its calls end. */
void flights_end_box(struct flights *fs, const struct box *box);

/* http.c: serves the listener fd (taken over) for this box. NULL: cannot. */
struct box *box_open(struct app *app, const char *run, const char *tenant, int fd);
/* Stops serving and frees it in the background; calls in flight are cut short. */
void box_close(struct box *box);

/* store_pool.c: connections to stored, lent to one call at a time. */
struct store_pool *store_pool_new(const char *socket_path);
/* Keeps one connection of its own to the store, over which it says again and again which profiles can be asked, and
 * from which METRICS there tells that this process is up. */
void store_stay_connected(struct store_pool *p, struct app *app);
/* Which profiles can be asked may have changed: it is said at once. */
void store_say_again(struct store_pool *p);
struct ask *store_take(struct store_pool *p); /* waits; NULL after GATE_STORE_PATIENCE_MS */
void store_give(struct store_pool *p, struct ask *a);

/* upstream.c (sole includer of curl) */
struct upstream_answer {
	unsigned status; /* the provider's; 0: there was none */
	struct buf body; /* strict JSON when the result is ERR_OK */
	uint64_t prompt_tokens, completion_tokens;
	uint32_t duration_ms;
	unsigned retry_after; /* seconds, as the provider said; 0: it did not */
};
struct upstream_pool *upstream_pool_new(void);
/* The complete address for a format of a provider, or NULL: it does not speak it, or the reason is logged. The caller
 * frees. */
char *upstream_url(const struct cf_provider *p, const struct format *f);
/* One call, never repeated. Cut off when the flight is ended. ERR_OK also for an error status of the provider. */
enum err upstream_call(const struct app *app, const struct upstream_target *t, uint32_t timeout_ms,
		       const struct model_request *request, struct flight *flight, struct upstream_answer *answer);
#endif
