/*
 * A call's course, as a table: in which state what may happen, what comes of it, and what is done on the way. Whatever
 * is not in the table cannot happen, but for an end that comes early: it may come at any time, and where it is no row
 * of its own the call finds it in its flight.
 */
#include "gateway/gateway.h"
#include "lib/die.h"
#include <string.h>

static void ask_worker(struct gate_call *call, void (*step)(struct gate_call *))
{
	call->step = step;
	workers_give(call->app->workers, &call->errand);
}

static void know(struct gate_call *call)
{
	http_suspend(call);
	ask_worker(call, gate_know);
}

static void tell(struct gate_call *call)
{
	http_suspend(call);
	ask_worker(call, gate_tell_denied);
}

/* What can lead to the provider is watched from before the unit is spent. */
static bool spends(const struct gate_call *call)
{
	return call->found.route->audience == TOKEN_MODEL && call->found.route->body != BODY_NONE;
}

static void admit(struct gate_call *call)
{
	http_suspend(call);
	call->box->busy++;
	if (spends(call)) {
		flight_begin(call->app->flights, &call->flight, call->box);
		http_watch(call);
	}
	ask_worker(call, call->found.route->gate);
}

static void set_out(struct gate_call *call)
{
	buf_free(&call->body);
	bodies_keep(call, call->request.body.n);
	call->answer.asked = true;
	upstream_begin(call);
}

static void settle(struct gate_call *call)
{
	model_request_free(&call->request);
	bodies_keep(call, 0);
	ask_worker(call, gate_settle);
}

static void cut_off(struct gate_call *call)
{
	upstream_cancel(call);
	settle(call);
}

/* It was ended while it was being admitted: nobody is asked, and the unit is spent. */
static void stay(struct gate_call *call)
{
	call->answer.e = ERR_MODEL_UNREACHABLE;
	settle(call);
}

static void go_on(struct gate_call *call)
{
	http_resume(call);
}

static void reply(struct gate_call *call)
{
	flight_finish(call->app->flights, &call->flight);
	http_unwatch(call);
	call->box->busy--;
	relay_end(call);
	http_done(call);
}

static const struct row {
	enum call_state at;
	enum call_event ev;
	enum call_state then;
	void (*act)(struct gate_call *call);
} rows[] = {
    {CALL_HEAD, CALL_EV_PASSED, CALL_BODY, NULL},
    {CALL_HEAD, CALL_EV_REFUSED, CALL_DONE, NULL},
    {CALL_HEAD, CALL_EV_ASK, CALL_KNOWING, know},
    {CALL_HEAD, CALL_EV_TELL, CALL_TELLING, tell},
    {CALL_KNOWING, CALL_EV_STEPPED, CALL_KNOWN, go_on},
    {CALL_KNOWN, CALL_EV_PASSED, CALL_BODY, NULL},
    {CALL_KNOWN, CALL_EV_REFUSED, CALL_DONE, NULL},
    {CALL_KNOWN, CALL_EV_TELL, CALL_TELLING, tell},
    {CALL_TELLING, CALL_EV_STEPPED, CALL_DONE, go_on},
    {CALL_BODY, CALL_EV_REFUSED, CALL_DONE, NULL},
    {CALL_BODY, CALL_EV_WHOLE, CALL_ADMITTING, admit},
    {CALL_ADMITTING, CALL_EV_STEPPED, CALL_DONE, reply},
    {CALL_ADMITTING, CALL_EV_FORWARD, CALL_UPSTREAM, set_out},
    {CALL_ADMITTING, CALL_EV_LATE, CALL_SETTLING, stay},
    {CALL_UPSTREAM, CALL_EV_FIRST, CALL_RELAY, go_on},
    {CALL_RELAY, CALL_EV_OVER, CALL_SETTLING, settle},
    {CALL_RELAY, CALL_EV_ENDED, CALL_SETTLING, cut_off},
    {CALL_UPSTREAM, CALL_EV_OVER, CALL_SETTLING, settle},
    {CALL_UPSTREAM, CALL_EV_ENDED, CALL_SETTLING, cut_off},
    {CALL_SETTLING, CALL_EV_STEPPED, CALL_DONE, reply},
};

void call_event(struct gate_call *call, enum call_event ev)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].at == call->state && rows[i].ev == ev) {
			call->state = rows[i].then;
			if (rows[i].act)
				rows[i].act(call);
			return;
		}
	if (ev != CALL_EV_ENDED)
		panic("a call in state %d has no event %d", (int)call->state, (int)ev);
}

static struct gate_call *call_of(struct errand *e)
{
	return (struct gate_call *)(void *)((char *)e - offsetof(struct gate_call, errand));
}

static void do_step(struct errand *e, struct ask *store)
{
	struct gate_call *call = call_of(e);

	call->store = store;
	call->step(call);
	call->store = NULL;
}

static void stepped(struct errand *e)
{
	struct gate_call *call = call_of(e);
	enum call_event ev = CALL_EV_STEPPED;

	if (call->state == CALL_ADMITTING && call->target)
		ev = flight_ended(&call->flight) == FLIGHT_ON ? CALL_EV_FORWARD : CALL_EV_LATE;
	call_event(call, ev);
}

void call_start(struct gate_call *call, struct box *box)
{
	call->box = box;
	call->app = box->app;
	call->state = CALL_HEAD;
	call->errand = (struct errand){.work = do_step, .done = stepped};
}

static int end_calls(void *arg)
{
	struct app *app = arg;

	for (struct gate_call *call; (call = flights_next_ended(app->flights)) != NULL;)
		call_event(call, CALL_EV_ENDED);
	return -1;
}

void calls_watch(struct app *app)
{
	loop_each_turn(app->loop, end_calls, app);
}
