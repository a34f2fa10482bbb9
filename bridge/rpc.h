/*
 * JSON-RPC 2.0, a line each way, as those agents speak it that can be spoken to. Who asks and who answers is the same
 * in both directions: requests have a method and an id, answers an id alone, and what is only told has a method alone.
 */
#ifndef BRIDGE_RPC_H
#define BRIDGE_RPC_H
#include "bridge/bridge.h"

enum { RPC_ID = 128, RPC_STRANGE = 256 };

struct rpc {
	int answers; /* the ids of our requests are below this */
	/* Answered by the agent; result is NULL where error is an object. False: that is not the protocol. */
	bool (*answered)(struct bridge *b, int64_t id, const struct json *result, const struct json *error);
	/* Told; params is an object. */
	void (*told)(struct bridge *b, const char *method, const struct json *params);
	/* Asked; params is an object. It answers, once. False: it does not know this method, and answered nothing. */
	bool (*asked)(struct bridge *b, const char *method, const struct json *id, const struct json *params);
};

/* One line of ours: between open and send the members of params, or of an answer's result, are written to w. */
struct rpc_line {
	struct buf text;
	struct jw w;
};
void rpc_open(struct rpc_line *l, int id, const char *method); /* a request; id below 0: only told */
void rpc_answer(struct rpc_line *l, const struct json *id);
/* Sends and frees it. False: the agent's input is closed, or no memory; the course has ended then. */
bool rpc_send(struct bridge *b, struct rpc_line *l);

/* One line of the agent's, to whom it belongs. What it asks and nobody knows is refused; RPC_STRANGE of those in a row
 * end the course. */
void rpc_take(struct bridge *b, const struct rpc *rpc, const struct json *root);
#endif
