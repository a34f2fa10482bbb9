/*
 * The gateway's parts. The way of a call: http (bytes) -> head (form, route table, token of this connection's box) ->
 * body -> gate_NAME (admit, agent_events, agent_approvals) -> upstream -> gate_settle -> reply by http. call.c has the
 * states of it. One thread, the loop, does all of it but the gate_ functions, which ask the store and are done by a
 * worker; a call is always in the hands of one of them.
 */
#ifndef GATEWAY_GATEWAY_H
#define GATEWAY_GATEWAY_H
#include "gateway/format.h"
#include "gateway/loop.h"
#include "gateway/policy.h"
#include "gateway/stream_in.h"
#include "gen/errors.h"
#include "gen/store_msg.h"
#include "lib/ask.h"
#include "lib/buf.h"
#include "lib/conf.h"
#include "lib/json.h"
#include "lib/keymask.h"
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
	GATE_MARGIN = 1000,     /* tokens that a provider adds to a request */
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
	uint32_t model_timeout_ms, model_idle_seconds, model_stream_seconds, model_stream_bytes;
	uint32_t model_heartbeat_ms; /* 0: none */
	uint64_t model_memory_bytes;
	struct keymask keys; /* of all agents that are given real ones */
};

struct app {
	struct reload reload; /* each that is held has its terms as its own */
	struct box *boxes;    /* the loop's */
	struct loop *loop;
	struct workers *workers;
	struct upstream *upstream;
	struct flights *flights;
	struct beats *beats;
	struct listeners *listeners;
	uint64_t bodies; /* bytes of requests in memory; the loop's, and bodies.c's */
};

enum box_delivery { BOX_UNKNOWN, BOX_FILES, BOX_WIRE }; /* how its run gets its tokens */

/* One box: its listener decided run and tenant. The loop's alone, but for what is named here. */
struct box {
	struct app *app;
	char run[129], tenant[129];
	struct MHD_Daemon *daemon;
	uint64_t watch;
	pthread_mutex_t lock;
	const struct terms *opened_under; /* under the lock; used once by the box */
	enum box_delivery delivery;
	bool bridged;                   /* events and questions are its bridge's alone */
	char model[129];                /* that its run is bound to; empty: not known yet */
	char agent[129], profile[129];  /* the same */
	struct pace denied;             /* how often a wrong token is told of */
	atomic_uint drift_told;         /* workers': drift.c's */
	atomic_bool link_told, id_told; /* workers': one log line a run for what was left out */
	bool closing, due;              /* gone: no call sets out any more; to be run this turn */
	unsigned away;                  /* calls that are not libmicrohttpd's at the moment */
	uint64_t bodies;                /* as app's, of its own */
	unsigned busy;                  /* calls from their body's end to their own */
	struct box *next, *next_due;
};

/* What a call is at; call.c has the table. */
enum call_state {
	CALL_HEAD,      /* its headers are being read */
	CALL_KNOWING,   /* a worker finds out whose it is */
	CALL_KNOWN,     /* and has */
	CALL_TELLING,   /* a worker tells the audit log that it is refused */
	CALL_BODY,      /* its body is being read */
	CALL_ADMITTING, /* a worker has its gate_ function */
	CALL_UPSTREAM,  /* the provider has it */
	CALL_RELAY,     /* its stream goes to the box as it comes */
	CALL_SETTLING,  /* a worker has gate_settle */
	CALL_DONE,      /* its reply is there */
	CALL_STATES
};

/* What the provider said. */
struct upstream_answer {
	bool asked;      /* the provider was, as far as we know */
	unsigned status; /* the provider's; 0: there was none */
	enum err e;      /* what the transfer came to, ERR_OK also for an error status */
	bool json;       /* its type */
	bool says_key;   /* it held the key, and goes nowhere */
	struct buf body; /* strict JSON once answer_judge has said so */
	uint64_t prompt_tokens, completion_tokens;
	uint32_t duration_ms;
	unsigned retry_after; /* seconds, as the provider said; 0: it did not */
};

/* A stream on its way through, or an answer that is to look like one. */
struct relay {
	struct stream_in in;
	struct buf out; /* checked, and not sent yet from sent on */
	size_t sent;
	struct buf last;        /* what comes behind that: all of an answer that came whole; or what went wrong */
	bool begun;             /* the box has its status */
	bool streams;           /* the box has something of the provider's */
	bool paused;            /* the provider's side, until the box has read */
	bool over, clean, drop; /* drop: what waits is not sent any more */
	/* beat.c's own */
	uint64_t said; /* timer_ms at which the box was last told anything */
	struct gate_call *call;
	struct relay *beat_next, **beat_back;
};

/* flight.c: a model call that is under way, and what ends it early */
enum flight_end { FLIGHT_ON, FLIGHT_REVOKED, FLIGHT_BOX_GONE, FLIGHT_CLIENT_LEFT };
struct flight {
	struct box *box;
	atomic_int end; /* enum flight_end */
	bool begun, told;
	struct flight *next, **back; /* under the lock of flight.c */
};

/* One request. Handlers fill status and reply, or return an error by gate_fail. */
struct gate_call {
	struct app *app;
	struct box *box;
	const struct terms *terms;  /* in force when it began */
	const struct terms *before; /* that its box was opened under, often the same */
	struct route_found found;
	struct token_claims claims;
	const struct secret
	    *key; /* the agent's own, which it showed: asked with instead of the provider's; NULL: none */
	char request_id[UUID_LEN + 1];
	const struct cf_agent *agent;                            /* before's; NULL: not known whose it is */
	const struct format *format;                             /* of a model's route; NULL: none */
	struct policy_rules rules;                               /* once the token was good: what its run may ask */
	char version[FORMAT_VERSION_MAX], beta[FORMAT_BETA_MAX]; /* for the provider */
	struct ask *store; /* of the worker that has the call; NULL: the store was not to be had in time */
	struct buf body;
	unsigned status;
	struct buf reply;
	bool stop;            /* asking again is useless: "x-should-retry: false" */
	bool retry;           /* our own refusal, that will pass */
	unsigned retry_after; /* after so many seconds; 0: soon */
	bool cut;             /* nobody may have an answer: the connection is closed */
	/* set by a gate_ function that wants the provider asked: what gate_settle gets back */
	const struct upstream_target *target;
	struct upstream_target own; /* target with the agent's own key */
	struct model_request request;
	struct upstream_answer answer;
	uint64_t reserved, reserved_at; /* tokens that its unit was spent with, and what stored called that */
	struct flight flight;
	struct relay *relay; /* the client waits for a stream; NULL: it does not */
	/* head.c's own */
	enum err known;    /* of KNOWING: what the token alone came to, then what the worker found */
	bool renew, learn; /* what a worker shall find out */
	struct {
		char agent[129], profile[129], model[129]; /* and has: what the run is bound to; empty: nobody said */
	} learnt;
	char denied[300]; /* of TELLING: what was refused */
	uint32_t suppressed;
	/* call.c's and http.c's own */
	enum call_state state;
	struct errand errand;
	void (*step)(struct gate_call *call);
	struct MHD_Connection *connection; /* NULL: it is gone */
	bool suspended;
	struct transfer *transfer;
	uint64_t watch; /* of its client */
	char path[512];
	uint64_t started_ms;
	size_t swallowed;
	size_t declared; /* bytes that its body has or may have */
	uint64_t holds;  /* bytes of app's bodies that are its own */
	bool too_large, close;
};

/* terms.c. What it makes is h's own; NULL: *why is a phrase that stays. */
const struct terms *terms_make(struct held *h, const char **why);
/* Those in force, and those of a box: used once more, until terms_done (NULL: nothing). */
const struct terms *terms_now(struct app *app);
const struct terms *terms_of_box(struct box *box);
void terms_done(const struct terms *t);

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
/* Is it there, and one line? */
bool key_usable(const struct secret *key);

/* drift.c: by a worker, tells of fields that were left out, each once a run. */
void gate_drift(struct gate_call *call, const struct model_request *rq);

/* probe.c: what the program does as "--test PROVIDER", once it is confined by close_rest. The exit status. */
int probe(const char *provider, void (*close_rest)(const struct conf *conf));

/* keys.c: agents that are given real keys. */
/* Their keys into mask. NULL, or why the configuration is refused: a profile holds a secret itself. */
const char *keys_load(struct keymask *mask, const struct held *h);
/* "[masked]" in the place of each such key in what came from a box. Returns how many bytes are left. */
size_t keys_hide(const struct gate_call *call, void *p, size_t n);
/* Is what was shown (NULL: nothing was) one of the own keys of the box's agent? Then call->key is it. True as well for
 * an agent that has none. */
bool keys_own(struct gate_call *call, const char *given, size_t n);
/* By a worker: tells the audit log that a provider said the key that it was asked with. */
void keys_said(struct gate_call *call);
/* Tells the audit log, in a while, which keys the box of a run has: by name and the beginning of their digest. */
void keys_note(struct app *app, const char *run, const char *tenant);

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

/* admit.c: once the caller is known: what its run may ask (call->rules). Where that is not to be learnt, what the
 * strictest may. */
void gate_rules(struct gate_call *call);
/* Bytes that the body of this call may have, by its route and its run's rules. */
size_t gate_body_max(const struct gate_call *call);
/* The gate_ functions, by a worker. gate_know finds out what call->known asks for; gate_tell_denied tells the audit log
 * of call->denied. */
void gate_know(struct gate_call *call);
void gate_tell_denied(struct gate_call *call);
/* What the provider said, or what ended the call early, is written down and becomes the reply. */
void gate_settle(struct gate_call *call);
/* gemini.c: is a stream asked for as events by this target? The same parameter twice, or any other form, is not that.
 */
bool gemini_as_events(const char *target);
/* One that asks a model, its body still to be looked at: refused, or call->target is set. */
void gate_model_call(struct gate_call *call);
/* ERR_OK while the run's capability is alive, whatever is left of its budget; never spends. */
enum err gate_alive(struct gate_call *call);
enum err gate_alive_run(struct ask *store, const char *tenant, const char *run);

/* head.c: what the headers say. ERR_OK: the body may come. */
struct MHD_Connection;
enum head_next { HEAD_ON, HEAD_REFUSED, HEAD_ASK, HEAD_TELL };
/* Again with knew once a worker was asked (HEAD_ASK). Refused: e says why, also of HEAD_TELL. */
enum head_next head_check(struct gate_call *call, const char *method, bool knew, enum err *e);

/* call.c */
enum call_event {
	CALL_EV_PASSED,  /* the headers are right */
	CALL_EV_REFUSED, /* they or the body are not; the reply is there */
	CALL_EV_ASK,     /* a worker must say whose it is */
	CALL_EV_TELL,    /* a worker must tell of the refusal */
	CALL_EV_WHOLE,   /* the body is there */
	CALL_EV_STEPPED, /* the worker is done, the reply is there */
	CALL_EV_FORWARD, /* the worker is done, the provider is to be asked */
	CALL_EV_LATE,    /* it would be, but the call was ended meanwhile */
	CALL_EV_FIRST,   /* the stream has begun */
	CALL_EV_OVER,    /* the transfer is */
	CALL_EV_ENDED,   /* early: call->flight says by whom */
};
void call_event(struct gate_call *call, enum call_event ev);
void call_start(struct gate_call *call, struct box *box);
/* Calls that a flight's end ends are told so, in each turn of the loop. */
void calls_watch(struct app *app);

/* flight.c. Begins to watch the store at this path, for the life of the program. Ends it where it cannot. */
struct flights *flights_new(const struct app *app, const char *store_path);
/* From now on the call may be ended. Before the unit is spent, so that nothing is missed. By the loop. */
void flight_begin(struct flights *fs, struct flight *f, struct box *box);
void flight_finish(struct flights *fs, struct flight *f);
/* Are no more calls of its run and of its tenant under way, with this one, than these (0: no limit)? Those of all boxes
 * pass here, and a gateway that dies ends them all, so that nothing is counted that is not there. */
enum err flight_room(struct flights *fs, const struct flight *of, uint32_t most_run, uint32_t most_tenant);
/* The first reason stays. */
void flight_stop(struct flight *f, enum flight_end why);
enum flight_end flight_ended(const struct flight *f);
/* The box is gone (closing is set): its calls end. */
void flights_end_box(struct flights *fs, const struct box *box);
/* By the loop: the next call that was ended and is not told yet. */
struct gate_call *flights_next_ended(struct flights *fs);

/* http.c: HTTP towards the boxes, by the loop. */
struct listeners *listeners_new(struct app *app);
/* Serves the listener fd (taken over) for this box. NULL: cannot. */
struct box *box_open(struct app *app, const char *run, const char *tenant, int fd);
/* Stops serving the run's, if there is one; calls in flight are cut short, and it is freed when the last of them is
 * done.
 */
void box_close(struct app *app, const char *run);
/* The connection waits for the call, which is somebody else's now; goes on. */
void http_suspend(struct gate_call *call);
void http_resume(struct gate_call *call);
/* It is over, its reply is there; one whose connection is gone is freed. */
void http_done(struct gate_call *call);
/* relay.c, by the loop: a stream towards a box. It ends cleanly only where relay_end said so, and breaks off otherwise.
 */
bool relay_new(struct gate_call *call);
void relay_free(struct gate_call *call);
/* Bytes of the provider's. False: they are no such stream, call->relay->in.fault says why. */
bool relay_take(struct gate_call *call, const void *p, size_t n);
/* Something of our own between two events; the box has its status then. */
void relay_say(struct gate_call *call, const char *text);
void relay_end(struct gate_call *call);
/* Queues the response. */
struct MHD_Connection;
bool relay_reply(struct gate_call *call);
/* Whether its client leaves meanwhile. */
void http_watch(struct gate_call *call);
void http_unwatch(struct gate_call *call);

/* bodies.c, by the loop: room for what the call's request needs, before it is read. False: there is none now. */
bool bodies_take(struct gate_call *call);
/* Of that, only so much is needed any more. */
void bodies_keep(struct gate_call *call, uint64_t n);

/* beat.c, by the loop: signs of life to a call's box, from now until the end, as its format and its terms want them. */
struct beats *beats_new(struct app *app);
void beat_begin(struct gate_call *call);
void beat_end(struct relay *r);

/* store_stay.c: keeps one connection of its own to the store, over which it says again and again which profiles can be
 * asked, and from which METRICS there tells that this process is up. */
void store_stay_connected(const char *store_path, struct app *app);
/* Which profiles can be asked may have changed: it is said at once. */
void store_say_again(void);

/* upstream.c (upstream*.c are the sole includers of curl), by the loop */
struct upstream *upstream_new(struct app *app);
/* upstream_memory.c: starts libcurl, once. */
bool upstream_memory_start(void);
/* upstream_url.c: the complete address for a format and a model of a provider, or NULL: it does not speak it, or the
 * reason is logged. The caller frees. */
char *upstream_url(const struct cf_provider *p, const struct format *f, const char *model);
/* Begins to ask call->target for call->request, once, never repeated; CALL_EV_OVER when it is over, with call->answer
 * filled. */
void upstream_begin(struct gate_call *call);
/* A stream that was paused as its reader was slow goes on. */
void upstream_resume(struct gate_call *call);
/* Cuts it off; there is no event any more. */
void upstream_cancel(struct gate_call *call);

/* answer.c: a whole answer: type, strict JSON, no trace of the key. Counts its usage. frames (NULL: none are wanted)
 * gets one that is no error as a stream, and then it has to be a whole one of its format; usage: see stream_out.h. */
enum err answer_judge(const struct upstream_target *target, const struct format *f, struct upstream_answer *answer,
		      bool usage, struct buf *frames);
#endif
