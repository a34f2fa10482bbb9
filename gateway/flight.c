/*
 * Calls that are under way to a provider, and whoever ends them early: the store, which says that a run lost its
 * capability; sandboxd, which closed the box; the box's client, which left (http.c looks for that, libmicrohttpd does
 * not look at a connection that it has lent). Ending is asked for here and done by the loop.
 *
 * What the store says may be missed, while it is away or before we have subscribed. So each time that we subscribe,
 * every call under way is looked up, and none is delivered without a last look (MODEL_CALLED in admit.c).
 */
#include "gateway/gateway.h"
#include "lib/die.h"
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { PAUSE_MS = 100 };

struct flights {
	const struct app *app;
	const char *store_path;
	pthread_mutex_t lock;
	struct flight *first; /* under the lock */
	bool some_ended;      /* under the lock: and not told */
};

/* Under the lock, or by the loop for its own. */
static bool end(struct flight *f, enum flight_end why)
{
	int on = FLIGHT_ON;
	return atomic_compare_exchange_strong(&f->end, &on, (int)why);
}

void flight_stop(struct flight *f, enum flight_end why)
{
	(void)end(f, why);
}

enum flight_end flight_ended(const struct flight *f)
{
	return (enum flight_end)atomic_load(&f->end);
}

void flight_begin(struct flights *fs, struct flight *f, struct box *box)
{
	*f = (struct flight){.box = box, .begun = true, .end = box->closing ? FLIGHT_BOX_GONE : FLIGHT_ON};
	pthread_mutex_lock(&fs->lock);
	f->next = fs->first;
	f->back = &fs->first;
	if (f->next)
		f->next->back = &f->next;
	fs->first = f;
	pthread_mutex_unlock(&fs->lock);
}

enum err flight_room(struct flights *fs, const struct flight *of, uint32_t most_run, uint32_t most_tenant)
{
	uint32_t run = 0, tenant = 0;

	pthread_mutex_lock(&fs->lock);
	for (const struct flight *f = fs->first; f; f = f->next) {
		bool same = strcmp(f->box->tenant, of->box->tenant) == 0;
		tenant += same;
		run += same && strcmp(f->box->run, of->box->run) == 0;
	}
	pthread_mutex_unlock(&fs->lock);
	return (most_run > 0 && run > most_run) || (most_tenant > 0 && tenant > most_tenant) ? ERR_TOO_MANY_MODEL_CALLS
											     : ERR_OK;
}

void flight_finish(struct flights *fs, struct flight *f)
{
	if (!f->begun)
		return;
	f->begun = false;
	pthread_mutex_lock(&fs->lock);
	*f->back = f->next;
	if (f->next)
		f->next->back = f->back;
	pthread_mutex_unlock(&fs->lock);
}

void flights_end_box(struct flights *fs, const struct box *box)
{
	pthread_mutex_lock(&fs->lock);
	for (struct flight *f = fs->first; f; f = f->next)
		if (f->box == box && end(f, FLIGHT_BOX_GONE))
			fs->some_ended = true;
	pthread_mutex_unlock(&fs->lock);
}

static void end_run(struct flights *fs, const char *tenant, const char *run)
{
	bool some = false;

	pthread_mutex_lock(&fs->lock);
	for (struct flight *f = fs->first; f; f = f->next)
		if (strcmp(f->box->run, run) == 0 && strcmp(f->box->tenant, tenant) == 0 && end(f, FLIGHT_REVOKED))
			some = true;
	fs->some_ended = fs->some_ended || some;
	pthread_mutex_unlock(&fs->lock);
	if (some)
		loop_wake(fs->app->loop);
}

struct gate_call *flights_next_ended(struct flights *fs)
{
	struct flight *f = NULL;

	pthread_mutex_lock(&fs->lock);
	if (fs->some_ended) {
		f = fs->first;
		while (f && (f->told || flight_ended(f) == FLIGHT_ON))
			f = f->next;
		if (f)
			f->told = true;
		else
			fs->some_ended = false;
	}
	pthread_mutex_unlock(&fs->lock);
	return f ? (struct gate_call *)(void *)((char *)f - offsetof(struct gate_call, flight)) : NULL;
}

struct name {
	char tenant[129], run[129];
};

/* The runs of all calls under way, copied: *n of them. NULL with *n 0 where there are none. */
static struct name *names(struct flights *fs, size_t *n)
{
	size_t room = 0;

	*n = 0;
	pthread_mutex_lock(&fs->lock);
	for (struct flight *f = fs->first; f; f = f->next)
		room++;
	struct name *list = room ? calloc(room, sizeof *list) : NULL;
	for (struct flight *f = list ? fs->first : NULL; f; f = f->next) {
		memcpy(list[*n].tenant, f->box->tenant, sizeof list[*n].tenant);
		memcpy(list[*n].run, f->box->run, sizeof list[*n].run);
		++*n;
	}
	pthread_mutex_unlock(&fs->lock);
	return list;
}

/* Whether any run lost its capability while nobody told us. False: the store would not say. */
static bool look_at_all(struct flights *fs, struct ask *store)
{
	size_t n;
	struct name *list = names(fs, &n);
	bool told = true;

	for (size_t i = 0; i < n && told; i++) {
		enum err e = gate_alive_run(store, list[i].tenant, list[i].run);
		if (e == ERR_INACTIVE_RUN_TOKEN)
			end_run(fs, list[i].tenant, list[i].run);
		told = e != ERR_STORE_UNAVAILABLE;
	}
	free(list);
	return told;
}

static void *watch_store(void *arg)
{
	struct flights *fs = arg;
	struct ask *a = ask_new(fs->store_path, GATE_STORE_PATIENCE_MS);
	struct ask *look = ask_new(fs->store_path, GATE_STORE_PATIENCE_MS);
	struct st_subscribe all = {.tenant = "", .run = ""};
	struct ask_answer packet;
	struct st_woken m;
	struct st_ok ok;

	if (!a || !look)
		fatal("no memory");
	for (;;) {
		bool subscribed = st_call_subscribe(a, &all, NULL, &ok, NULL) == ERR_OK && look_at_all(fs, look);
		while (subscribed && ask_wait(a, -1, &packet) > 0) {
			ask_close_fds(&packet);
			if (st_get_woken(packet.frame, packet.len, &m))
				end_run(fs, m.tenant, m.run);
		}
		poll(NULL, 0, PAUSE_MS);
	}
	return NULL;
}

struct flights *flights_new(const struct app *app, const char *store_path)
{
	struct flights *fs = calloc(1, sizeof *fs);
	pthread_t one;

	if (!fs)
		fatal("no memory");
	fs->app = app;
	fs->store_path = store_path;
	pthread_mutex_init(&fs->lock, NULL);
	if (pthread_create(&one, NULL, watch_store, fs) != 0)
		fatal("cannot watch the calls under way: %m");
	pthread_detach(one);
	return fs;
}
