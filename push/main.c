/*
 * pinfold-push: tells paired devices by Web Push that a question waits, or that it does no more. Besides the gateway
 * the only process that dials out.
 *
 * Theory of operation. One thread, one loop over: sandboxd's pipe (its end is ours), a connection to stored that wakes
 * us when there is something to send, the transfers of libcurl, and the clock. stored decides what is sent, to whom,
 * how often and what a failure means, and lends one push at a time for a minute; here it is encrypted for its
 * browser alone (seal.c), signed (vapid.c), posted (send.c), and what came of it is told. Nothing is kept: what was
 * lent and not told is lent again.
 *
 * It holds the private key that push services know us by, and no other secret. The address it posts to was chosen by a
 * browser, so it is a stranger's: it is looked at once more here, and where it leads when it is connected (address.c).
 * What answers is read for its status alone. A push holds ids and a count (payload.c), never an agent's text.
 *
 * Where push is not set up (no push_contact, or no key) it stays, has no way into the network, asks nobody and waits
 * for its end: sandboxd starts the same children everywhere.
 */
#include "lib/confine.h"
#include "lib/die.h"
#include "lib/digest.h"
#include "lib/log_to.h"
#include "lib/place.h"
#include "push/app.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { HTTPS = 443, MEMORY = 256 << 20, PATIENCE_MS = 3000 };

/* Nothing has to be put away. */
static void on_term(int sig)
{
	(void)sig;
	_exit(0);
}

static void set_signals(void)
{
	struct sigaction end = {.sa_handler = on_term}, ignore = {.sa_handler = SIG_IGN};
	if (sigaction(SIGTERM, &end, NULL) != 0 || sigaction(SIGINT, &end, NULL) != 0 ||
	    sigaction(SIGPIPE, &ignore, NULL) != 0)
		fatal("signals cannot be set up: %m");
}

/* What is of the C library's and OpenSSL's own, threads that look up names among it, needs a tenth of this. */
static bool bound_memory(void)
{
#ifdef CONFINE_LESS
	return true;
#else
	const struct rlimit most = {MEMORY, MEMORY};
	return setrlimit(RLIMIT_DATA, &most) == 0;
#endif
}

/* Before the first thread. With no way out it has none to any port. */
static void confine_push(const struct conf *conf, bool way_out)
{
	static char folder[256];
	const char *file = conf->push.ca_file, *end = strrchr(file, '/');
	struct landlock_rule certificates = {folder, LL_READ};
	uint16_t port = conf->push.unsafe_loopback_port != 0 ? conf->push.unsafe_loopback_port : HTTPS;
	bool own = end != NULL && end != file && (size_t)(end - file) < sizeof folder;
	if (own)
		memcpy(folder, file, (size_t)(end - file));
	if (!digest_start())
		fatal("OpenSSL does not start: %m");
	if (!bound_memory() || (!confine_tcp(&port, way_out ? 1 : 0) && errno != ENOSYS) ||
	    !confine(CONFINE_PUSH, &certificates, own ? 1 : 0))
		fatal("cannot confine this process: %m");
}

/* NULL, or why there is no push here. */
static const char *open_key(struct app *app, const struct held *h)
{
	const struct secret *key = secrets_find(&h->secrets, "vapid");
	if (key != NULL && !secret_set(&app->key, key->p, key->n))
		fatal("no memory");
	return h->conf.push.contact[0] == '\0' ? "push_contact is not set"
					       : vapid_open(&app->vapid, key, h->conf.push.contact);
}

static bool same(const struct app *app, const struct held *next)
{
	const struct cf_push *a = &app->conf->push, *b = &next->conf.push;
	const struct secret *key = secrets_find(&next->secrets, "vapid");
	return strcmp(a->contact, b->contact) == 0 && strcmp(a->ca_file, b->ca_file) == 0 &&
	       secret_equal(app->key.p, app->key.n, key != NULL ? key->p : NULL, key != NULL ? key->n : 0);
}

static const char *fits(void *arg, struct held *next, int conf)
{
	(void)conf;
	struct vapid v = {0};
	if (next->conf.push.contact[0] == '\0' || same(arg, next))
		return NULL;
	static char said[200];
	const char *why = vapid_open(&v, secrets_find(&next->secrets, "vapid"), next->conf.push.contact);
	vapid_close(&v);
	(void)snprintf(said, sizeof said, "push, with the secret vapid: %s", why != NULL ? why : "");
	return why != NULL ? said : NULL;
}

/* Which way out there is, and whose certificates may be read, is decided once and for all: so this process ends where
 * any of that changes, and sandboxd starts it under what is in force now. */
static void taken(void *arg, struct held *now, struct held *before)
{
	struct app *app = arg;
	(void)before;
	app->leaving = app->leaving || !same(app, now);
	app->conf = &now->conf;
	secrets_wipe(&now->secrets);
}

/* There is nothing to do but to hear of another configuration. */
static void wait_for_end(struct app *app) __attribute__((noreturn));
static void wait_for_end(struct app *app)
{
	struct pollfd p = {.fd = CHILD_FD_CONTROL, .events = POLLIN};
	while (!app->leaving)
		if (poll(&p, 1, -1) > 0 && !reload_hear(&app->reload, NULL))
			break;
	_exit(0);
}

int main(void)
{
	static struct app app;
	static char ca_file[256];
	char path[200];

	log_open("pinfold-push");
	clearenv();
	if (!undumpable())
		fatal("cannot become undumpable: %m");
	set_signals();
	const char *why;
	struct held *first = held_load(CHILD_FD_CONFIG, CHILD_FD_SECRETS, &why);
	if (first == NULL)
		fatal("configuration: %s", why);
	log_to((enum log_to)first->conf.global.log_to, first->conf.global.log_path);
	close(CHILD_FD_SECRETS);
	app.conf = &first->conf;
	app.reload.fits = fits;
	app.reload.taken = taken;
	app.reload.arg = &app;
	why = open_key(&app, first);
	secrets_wipe(&first->secrets);
	confine_push(app.conf, why == NULL);
	held_init(&app.reload.place, first);
	reload_start(&app.reload, CHILD_FD_CONTROL);
	if (why != NULL) {
		log_info("there is no push: %s", why);
		wait_for_end(&app);
	}
	if (app.conf->push.unsafe_loopback_port != 0)
		log_warn("push_unsafe_loopback_port is set: every push goes to 127.0.0.1:%u, none to a real service",
			 app.conf->push.unsafe_loopback_port);
	(void)snprintf(path, sizeof path, "%s/" PLACE_STORE_SOCK, app.conf->global.run_dir);
	app.store = ask_new(path, PATIENCE_MS);
	app.subscription = ask_new(path, PATIENCE_MS);
	(void)snprintf(ca_file, sizeof ca_file, "%s", app.conf->push.ca_file);
	app.sender = sender_new(ca_file, app.conf->push.unsafe_loopback_port);
	if (app.store == NULL || app.subscription == NULL)
		fatal("no memory, or the path %s is too long for a socket", path);
	log_info("ready");
	for (;;)
		post_turn(&app);
}
