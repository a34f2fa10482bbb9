/*
 * The loop: from stored to the push services and back. Trusts stored for what it says, and what a browser said through
 * it for nothing: the endpoint must be of the right form and on the list here as well.
 */
#include "gen/store_msg.h"
#include "lib/die.h"
#include "lib/endpoint.h"
#include "lib/num.h"
#include "lib/p256.h"
#include "lib/place.h"
#include "push/app.h"
#include "push/payload.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { READY_MS = 5000, RETRY_MS = 500, WAIT_MOST_MS = 60000 };

static bool says_ready(struct app *app, uint64_t now)
{
	struct st_push_ready m = {.public_key = {app->vapid.point, sizeof app->vapid.point}};
	struct st_ok ok;
	enum err e = st_call_push_ready(app->store, &m, NULL, &ok, NULL);
	/* Said again and again: it is kept with the connection, which may be another one than the last time. */
	app->ready_at = now + (e == ERR_OK ? READY_MS : RETRY_MS);
	return e == ERR_OK;
}

static void subscribe(struct app *app, uint64_t now)
{
	struct st_subscribe all = {.tenant = "", .run = ""};
	struct st_ok ok;
	app->subscribed = st_call_subscribe(app->subscription, &all, NULL, &ok, NULL) == ERR_OK;
	app->subscribe_at = now + RETRY_MS;
	app->ready_at = app->next_at = now; /* stored may be another one, and what happened in between is in it */
}

static void hear(struct app *app)
{
	struct ask_answer packet;
	int got;
	while ((got = ask_wait(app->subscription, 0, &packet)) > 0) {
		ask_close_fds(&packet);
		app->next_at = 0;
	}
	if (got < 0)
		app->subscribed = false;
}

static void log_receipt(const struct receipt *r)
{
	if (r->outcome == PUSH_SENT)
		return;
	/* No endpoint and no host: whoever knows the one can post to it. */
	if (r->why != NULL)
		log_warn("a push to a device of %s was not sent: %s", r->tenant, r->why);
	else
		log_warn("a push to a device of %s was answered with %u", r->tenant, r->status);
}

static void put_down(struct app *app, const struct receipt *r)
{
	log_receipt(r);
	app->untold[app->nuntold++] = *r;
}

/* "https://" and the host, as browsers write an origin: the endpoint has no other port than 443. */
static const char *authorization(struct app *app, const char *host)
{
	char origin[VAPID_ORIGIN_MAX + 1];
	(void)snprintf(origin, sizeof origin, "https://%s", host);
	return vapid_header(&app->vapid, origin, clock_ms() / 1000);
}

static bool topic_plain(const char *s)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	return s[strspn(s, alphabet)] == '\0';
}

/* NULL: it is on its way. Otherwise why not, and *outcome what that is. */
static const char *send_one(struct app *app, const struct st_push_is *m, enum push_outcome *outcome)
{
	char host[ENDPOINT_HOST];
	struct seal_to to;
	struct letter l = {.id = m->id, .endpoint = m->endpoint, .topic = m->topic, .ttl = m->ttl};
	own_buf struct buf text;

	buf_init(&text, SEAL_TEXT_MAX);
	*outcome = PUSH_REFUSED;
	payload_write(&text, m);
	if (!endpoint_host(m->endpoint, host) ||
	    !endpoint_allowed(host, app->conf->global.push_hosts, app->conf->global.push_hosts_n))
		return "its endpoint is not of a push service that is allowed here";
	if (m->p256dh.n != sizeof to.point || m->auth.n != sizeof to.auth || !topic_plain(m->topic))
		return "its keys are none";
	memcpy(to.point, m->p256dh.p, sizeof to.point);
	memcpy(to.auth, m->auth.p, sizeof to.auth);
	if (!p256_point(to.point, sizeof to.point) && errno == 0)
		return "its key is no point of the curve";
	*outcome = PUSH_FAILED;
	l.authorization = authorization(app, host);
	(void)snprintf(l.tenant, sizeof l.tenant, "%s", m->tenant);
	if (l.authorization == NULL || buf_failed(&text) || !seal(&to, text.p, text.n, l.body) ||
	    !sender_begin(app->sender, &l))
		return "there is no memory";
	return NULL;
}

/* As many as may be on their way. */
static void fetch(struct app *app, uint64_t now)
{
	while (!app->leaving && now >= app->next_at && sender_busy(app->sender) + app->nuntold < SEND_MOST) {
		struct st_push_next ask = {0};
		struct st_push_is m;
		enum err e = st_call_push_next(app->store, &ask, NULL, &m, NULL);
		if (e != ERR_OK) {
			app->next_at = now + RETRY_MS;
			return;
		}
		if (m.id == 0) {
			app->next_at = now + (m.wait_ms > 0 && m.wait_ms < WAIT_MOST_MS ? m.wait_ms : WAIT_MOST_MS);
			return;
		}
		struct receipt r = {.id = m.id};
		(void)snprintf(r.tenant, sizeof r.tenant, "%s", m.tenant);
		r.why = send_one(app, &m, &r.outcome);
		if (r.why != NULL)
			put_down(app, &r);
	}
}

/* With stored away, what is untold stays so. */
static void tell(struct app *app)
{
	struct receipt r;
	while (app->nuntold < SEND_MOST && sender_take(app->sender, &r))
		put_down(app, &r);
	while (app->nuntold > 0) {
		const struct receipt *last = &app->untold[app->nuntold - 1];
		struct st_push_done m = {.tenant = last->tenant,
					 .id = last->id,
					 .outcome = (uint8_t)last->outcome,
					 .retry_after = last->retry_after};
		struct st_ok ok;
		enum err e = st_call_push_done(app->store, &m, NULL, &ok, NULL);
		if (e == ERR_STORE_UNAVAILABLE)
			return;
		if (e != ERR_OK)
			log_warn("what came of a push could not be told: %s", err_code(e));
		app->nuntold--;
		app->next_at = 0; /* its device may have another */
	}
}

static int patience(const struct app *app, uint64_t now)
{
	uint64_t due = app->next_at < app->ready_at ? app->next_at : app->ready_at;
	if (!app->subscribed && app->subscribe_at < due)
		due = app->subscribe_at;
	if (app->nuntold > 0 && now + RETRY_MS < due)
		due = now + RETRY_MS;
	if (app->leaving && due > now + RETRY_MS)
		due = now + RETRY_MS;
	if (due > now)
		return due - now > WAIT_MOST_MS ? WAIT_MOST_MS : (int)(due - now);
	/* As many as may be are on their way: their end is what is waited for. */
	return sender_busy(app->sender) + app->nuntold >= SEND_MOST && app->ready_at > now ? RETRY_MS : 0;
}

void post_turn(struct app *app)
{
	uint64_t now = timer_ms();
	if (!app->subscribed && now >= app->subscribe_at)
		subscribe(app, now);
	if (now >= app->ready_at && !says_ready(app, now) && app->next_at < app->ready_at)
		app->next_at = app->ready_at;
	tell(app);
	fetch(app, now);
	struct pollfd others[2] = {{.fd = CHILD_FD_CONTROL, .events = POLLIN},
				   {.fd = app->subscribed ? ask_fd(app->subscription) : -1, .events = POLLIN}};
	unsigned n = others[1].fd >= 0 ? 2 : 1;
	sender_turn(app->sender, patience(app, timer_ms()), others, n);
	if (others[0].revents != 0 && !reload_hear(&app->reload, NULL))
		_exit(0); /* sandboxd is gone */
	if (app->leaving && sender_busy(app->sender) + app->nuntold == 0)
		_exit(0);
	if (n == 2 && others[1].revents != 0)
		hear(app);
}
