/*
 * Signs of life towards boxes that wait for a stream, while nothing comes of it: the format's own, which its clients
 * take and ignore, between two events. The first settles the status of a call whose provider has not said a word, so
 * it comes only after a while: whoever fails before that is answered as if there were no stream.
 */
#include "gateway/gateway.h"
#include "lib/die.h"
#include <stdlib.h>
#include <string.h>

struct beats {
	struct relay *first;
	uint64_t next; /* timer_ms at which the first of them may be due */
};

void beat_begin(struct gate_call *call)
{
	struct beats *b = call->app->beats;
	struct relay *r = call->relay;

	if (!call->format->heartbeat || call->terms->model_heartbeat_ms == 0)
		return;
	r->call = call;
	r->beat_next = b->first;
	r->beat_back = &b->first;
	if (b->first)
		b->first->beat_back = &r->beat_next;
	b->first = r;
	r->said = timer_ms();
	if (r->said + call->terms->model_heartbeat_ms < b->next)
		b->next = r->said + call->terms->model_heartbeat_ms;
}

void beat_end(struct relay *r)
{
	if (!r->beat_back)
		return;
	*r->beat_back = r->beat_next;
	if (r->beat_next)
		r->beat_next->beat_back = r->beat_back;
	r->beat_back = NULL;
}

/* Is there anything to wait for, and is it somebody who reads? */
static bool waits(const struct relay *r)
{
	enum call_state at = r->call->state;
	return (at == CALL_UPSTREAM || at == CALL_RELAY) && r->call->connection && r->out.n == r->sent;
}

static int turn(void *arg)
{
	struct beats *b = arg;
	uint64_t now = timer_ms();

	if (now >= b->next) {
		b->next = UINT64_MAX;
		for (struct relay *r = b->first, *after; r; r = after) {
			uint32_t every = r->call->terms->model_heartbeat_ms;
			after = r->beat_next;
			if (now >= r->said + every) {
				r->said = now;
				if (waits(r))
					relay_say(r->call, r->call->format->heartbeat);
			}
			if (r->said + every < b->next)
				b->next = r->said + every;
		}
	}
	if (!b->first)
		return -1;
	return b->next - now < 60000 ? (int)(b->next - now) : 60000;
}

struct beats *beats_new(struct app *app)
{
	struct beats *b = calloc(1, sizeof *b);

	if (!b)
		fatal("no memory");
	b->next = UINT64_MAX;
	loop_each_turn(app->loop, turn, b);
	return b;
}
