/*
 * Requests in memory: how many bytes all boxes together may have here, and each of them beside the others. What a
 * request may need is taken before its body is read, by the length that it declares (or the most it may have), and
 * given back in parts as it is not needed any more. By the loop.
 */
#include "gateway/gateway.h"
#include "gen/routes.h"

/* A model's request is there as it came, as what was parsed, and as what is sent. */
enum { WHILE_READ = 3 };

static void hold(struct gate_call *call, uint64_t n)
{
	call->app->bodies += n - call->holds;
	call->box->bodies += n - call->holds;
	call->holds = n;
}

bool bodies_take(struct gate_call *call)
{
	const struct route *route = call->found.route;
	uint64_t n = route->audience == TOKEN_MODEL ? WHILE_READ * (uint64_t)call->declared : call->declared;
	uint64_t most = call->terms->model_memory_bytes, all = call->app->bodies;
	uint64_t room = all < most ? most - all : 0;

	/* Whoever has none is let in while there is room; whoever has some leaves as much as that for others. So one
	 * alone has half of it, two have a third each, and the next always finds room. */
	if (n == 0)
		return true;
	if (n > room || (call->box->bodies > 0 && call->box->bodies + n > room))
		return false;
	hold(call, n);
	return true;
}

void bodies_keep(struct gate_call *call, uint64_t n)
{
	if (n < call->holds)
		hold(call, n);
}
