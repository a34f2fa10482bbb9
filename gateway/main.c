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
#include <sys/resource.h>
#include <unistd.h>

enum { MODEL_TIMEOUT_MS = 120000 };

static void on_term(int sig)
{
	(void)sig;
	_exit(0);
}

static void load_targets(struct app *app)
{
	for (uint32_t i = 0; i < app->conf.nprofiles; i++) {
		struct upstream_target *t = &app->targets[app->ntargets++];
		const struct cf_profile *p = &app->conf.profiles[i];
		const struct cf_provider *provider = conf_provider(&app->conf, p->provider);

		t->profile = p;
		if (!provider || !conf_fingerprint(&app->conf, p, t->fingerprint)) {
			log_error("profile %s: its provider %s is not configured", p->name, p->provider);
			continue;
		}
		t->ca_file = provider->ca_file;
		if (*provider->secret) {
			t->key = secrets_find(&app->secrets, provider->secret);
			if (!t->key || t->key->n == 0 || memchr(t->key->p, '\n', t->key->n) ||
			    memchr(t->key->p, '\r', t->key->n) || memchr(t->key->p, 0, t->key->n)) {
				log_error("provider %s: its secret %s is missing or not one line; its model calls are "
					  "refused until its file is written and the service started again",
					  provider->name, provider->secret);
				continue;
			}
		}
		if (strcmp(provider->protocol, "openai") != 0) {
			log_error("provider %s: protocol %s is not known here", provider->name, provider->protocol);
			continue;
		}
		t->url = upstream_url(provider);
	}
}

/* Before the first thread is started. */
static void close_the_rest(const struct app *app)
{
	struct landlock_rule certificates[16];
	static char folder[16][256];
	size_t n = 0;
	for (uint32_t i = 0; i < app->conf.nproviders && n < 16; i++) {
		const char *file = app->conf.providers[i].ca_file, *end = strrchr(file, '/');
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

static void load(struct app *app)
{
	const char *why = conf_load(&app->conf, CHILD_FD_CONFIG);
	static char path[200];

	if (why)
		fatal("configuration: %s", why);
	log_to((enum log_to)app->conf.global.log_to, app->conf.global.log_path);
	if (!secrets_read(&app->secrets, CHILD_FD_SECRETS))
		fatal("cannot read the secrets");
	close(CHILD_FD_SECRETS);
	const char *run_secret = conf_run_secret(&app->conf), *next = app->conf.global.run_token_secret_next;
	app->token_key = secrets_find(&app->secrets, run_secret);
	app->token_next = *next ? secrets_find(&app->secrets, next) : NULL;
	if (!app->token_key || app->token_key->n < TOKEN_SECRET_MIN)
		fatal("the secret %s is missing or shorter than %d bytes: remove its file and run \"pinfold setup\"",
		      run_secret, TOKEN_SECRET_MIN);
	if (*next && (!app->token_next || app->token_next->n < TOKEN_SECRET_MIN))
		fatal("the secret %s is missing or shorter than %d bytes", next, TOKEN_SECRET_MIN);
	close_the_rest(app);
	app->model_timeout_ms =
	    app->conf.global.model_timeout_ms ? app->conf.global.model_timeout_ms : MODEL_TIMEOUT_MS;
	snprintf(path, sizeof path, "%s/" PLACE_STORE_SOCK, app->conf.global.run_dir);
	app->store = store_pool_new(path);
	app->upstream = upstream_pool_new();
	app->flights = flights_new(app, path);
	load_targets(app);
	store_stay_connected(app->store, app);
}

static void drop_box(struct box **list, const char *run)
{
	for (struct box **at = list; *at; at = &(*at)->next)
		if (strcmp((*at)->run, run) == 0) {
			struct box *box = *at;
			*at = box->next;
			box_close(box);
			return;
		}
}

/* One message of sandboxd. Anything unexpected ends the program: sandboxd starts it afresh. */
static void obey(struct app *app, struct box **list, const uint8_t *frame, size_t n, int *fds, int nfds)
{
	uint16_t number;
	uint64_t op;
	struct sbx_welcome welcome;
	struct sbx_open open;
	struct sbx_close close_it;

	if (!wire_peek(frame, n, &number, &op))
		fatal("sandboxd sent a broken message");
	if (number == SBX_WELCOME && nfds == 0 && sbx_get_welcome(frame, n, &welcome)) {
		if (welcome.version != SBX_VERSION)
			fatal("sandboxd speaks version %u, this program %d: restart everything after an upgrade",
			      welcome.version, SBX_VERSION);
	} else if (number == SBX_OPEN && nfds == 1 && sbx_get_open(frame, n, &open)) {
		drop_box(list, open.run);
		struct box *box = box_open(app, open.run, open.tenant, fds[0]);
		if (!box) {
			log_error("run %s: cannot serve its listener", open.run);
			return;
		}
		box->next = *list;
		*list = box;
	} else if (number == SBX_CLOSE && nfds == 0 && sbx_get_close(frame, n, &close_it))
		drop_box(list, close_it.run);
	else
		fatal("sandboxd sent an unexpected message (%u)", number);
}

int main(void)
{
	static struct app app;
	struct box *boxes = NULL;
	static uint8_t frame[SBX_MAXFRAME];
	struct sigaction term = {.sa_handler = on_term};
	struct rlimit files;

	log_open("pinfold-gateway");
	clearenv();
	if (!undumpable())
		fatal("cannot become undumpable: %m");
	signal(SIGPIPE, SIG_IGN);
	sigaction(SIGTERM, &term, NULL);
	sigaction(SIGINT, &term, NULL);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	load(&app);
	struct sbx_hello hello = {.version = SBX_VERSION};
	size_t n = sbx_put_hello(frame, sizeof frame, 0, &hello);
	if (n == 0 || chan_send(CHILD_FD_CONTROL, frame, n, NULL, 0) != 0)
		fatal("cannot greet sandboxd: %m");
	for (;;) {
		int fds[WIRE_MAX_FDS], nfds = 0;
		ssize_t got = chan_recv(CHILD_FD_CONTROL, frame, sizeof frame, fds, &nfds);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			fatal("sandboxd's channel: %m");
		if (got == 0)
			_exit(0); /* sandboxd is gone, and every box with it */
		obey(&app, &boxes, frame, (size_t)got, fds, nfds);
	}
}
