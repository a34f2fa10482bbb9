/*
 * pinfold-gateway: the only holder of provider keys, and the only peer that a box can reach.
 *
 * sandboxd starts it and gives it a control channel, the configuration and its secrets. Each OPEN brings the
 * listener of one box; http.c serves it until CLOSE. Whatever arrives on that listener is of that run: the
 * token must name the same run, so a stolen token is useless elsewhere. Budget and liveness are asked of
 * stored for each call, never remembered. It never serves anyone but boxes, reads no environment and no
 * file, and ends when sandboxd's channel ends.
 */
#include "gateway/gateway.h"
#include "gen/sandbox_msg.h"
#include "lib/chan.h"
#include "lib/confine.h"
#include "lib/die.h"
#include "lib/digest.h"
#include "lib/log_to.h"
#include "lib/place.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

static void on_term(int sig)
{
	(void)sig;
	_exit(0);
}

/* Before the first thread is started. */
static void close_the_rest(const struct conf *conf)
{
	struct landlock_rule certificates[16];
	static char folder[16][256];
	size_t n = 0;
	for (uint32_t i = 0; i < conf->nproviders && n < 16; i++) {
		const char *file = conf->providers[i].ca_file, *end = strrchr(file, '/');
		if (end == NULL || end == file || (size_t)(end - file) >= sizeof folder[0])
			continue;
		memcpy(folder[n], file, (size_t)(end - file));
		certificates[n] = (struct landlock_rule){folder[n], LL_READ};
		n++;
	}
	if (!digest_start())
		fatal("OpenSSL does not start: %m");
	if (!confine(CONFINE_GATEWAY, certificates, n))
		fatal("cannot confine this process: %m");
}

static const char *fits(void *arg, struct held *next, int conf)
{
	(void)arg;
	(void)conf;
	return terms_fit(next);
}

/* Calls go on under what they began with. A box keeps that, and so its keys, for as long as a profile of it is gone. */
static void taken(void *arg, struct held *now, struct held *before)
{
	struct app *app = arg;
	(void)now;
	(void)before;
	for (struct box *box = app->boxes; box; box = box->next)
		terms_renew(box);
	store_say_again();
}

static void load(struct app *app)
{
	const char *why;
	struct held *h = held_load(CHILD_FD_CONFIG, CHILD_FD_SECRETS, &why);
	static char path[200];

	if (!h)
		fatal("configuration: %s", why);
	log_to((enum log_to)h->conf.global.log_to, h->conf.global.log_path);
	close(CHILD_FD_SECRETS);
	close_the_rest(&h->conf);
	snprintf(path, sizeof path, "%s/" PLACE_STORE_SOCK, h->conf.global.run_dir);
	if (!terms_make(h, &why))
		fatal("configuration: %s", why);
	held_init(&app->reload.place, h);
	app->reload.fits = fits;
	app->reload.taken = taken;
	app->reload.arg = app;
	app->loop = loop_new();
	app->workers = workers_new(app->loop, path);
	app->flights = flights_new(app, path);
	/* In this order in each turn: who ends, what comes of it, what is sent of that. */
	calls_watch(app);
	app->upstream = upstream_new(app);
	app->beats = beats_new(app);
	app->listeners = listeners_new(app);
	store_stay_connected(path, app);
}

/* One message of sandboxd. Anything unexpected ends the program: sandboxd starts it afresh. */
static void obey(struct app *app, const uint8_t *frame, size_t n, int *fds, int nfds)
{
	uint16_t number;
	uint64_t op;
	struct sbx_open open;
	struct sbx_close close_it;

	if (!wire_peek(frame, n, &number, &op))
		fatal("sandboxd sent a broken message");
	if (reload_packet(&app->reload, frame, n, fds, nfds))
		return;
	if (number == SBX_OPEN && nfds == 1 && sbx_get_open(frame, n, &open)) {
		box_close(app, open.run);
		if (!box_open(app, open.run, open.tenant, fds[0]))
			log_error("run %s: cannot serve its listener", open.run);
		else
			keys_note(app, open.run, open.tenant);
	} else if (number == SBX_CLOSE && nfds == 0 && sbx_get_close(frame, n, &close_it))
		box_close(app, close_it.run);
	else
		fatal("sandboxd sent an unexpected message (%u)", number);
}

static void on_control(void *arg, uint32_t events)
{
	static uint8_t frame[SBX_MAXFRAME];
	int fds[WIRE_MAX_FDS], nfds = 0;

	(void)events;
	ssize_t got = chan_recv(CHILD_FD_CONTROL, frame, sizeof frame, fds, &nfds);
	if (got < 0 && errno != EINTR)
		fatal("sandboxd's channel: %m");
	if (got == 0)
		_exit(0); /* sandboxd is gone, and every box with it */
	if (got > 0)
		obey(arg, frame, (size_t)got, fds, nfds);
}

int main(int argc, char **argv)
{
	static struct app app;
	struct sigaction term = {.sa_handler = on_term};
	struct rlimit files;

	log_open("pinfold-gateway");
	clearenv();
	if (!undumpable())
		fatal("cannot become undumpable: %m");
	signal(SIGPIPE, SIG_IGN);
	sigaction(SIGTERM, &term, NULL);
	sigaction(SIGINT, &term, NULL);
	if (argc == 3 && strcmp(argv[1], "--test") == 0)
		return probe(argv[2], close_the_rest);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	load(&app);
	reload_start(&app.reload, CHILD_FD_CONTROL);
	if (loop_watch(app.loop, CHILD_FD_CONTROL, EPOLLIN, on_control, &app) == 0)
		fatal("cannot watch sandboxd's channel: %m");
	loop_run(app.loop);
}
