/*
 * pinfold-steward: makes what is wanted (the store) true (sandboxd).
 *
 * Theory of operation. One thread, one loop over: sandboxd's private pipe (descriptor 3), a connection to
 * stored that tells of changes, the judges (children, by pidfd), and the clock. Questions to stored are
 * asked on a second connection and waited for, a few seconds at most. Each run is a small state machine in
 * memory (run.c); what must survive is in the store before it is acted upon, and the terminal state is the
 * last thing written. After a restart nothing is resumed: boxes that exist are killed and their runs fail
 * as controller_restarted, queued runs stay queued.
 *
 * It holds the secret that signs run tokens, and nothing else that is secret. It trusts stored and
 * sandboxd; everything a box left is read by a confined child (judge_child.c) or as bounded frames.
 * It never opens a path that a run named, never runs a program, and answers nobody.
 */
#include "lib/confine.h"
#include "lib/die.h"
#include "lib/digest.h"
#include "lib/log_to.h"
#include "lib/num.h"
#include "lib/place.h"
#include "lib/token.h"
#include "steward/app.h"
#include "steward/control.h"
#include "steward/launch.h"
#include "steward/proof.h"
#include "steward/run.h"
#include "steward/sweep.h"
#include "steward/tell.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct app app;

/* Nothing has to be put away: the boxes are sandboxd's to end, the judges die with us, the rest is in the
 * store. So the end need not wait for a question that is being asked. */
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

static const struct secret *key_of(const struct held *h)
{
	const struct secret *key = secrets_find(&h->secrets, conf_run_secret(&h->conf));
	return key != NULL && key->n >= TOKEN_SECRET_MIN ? key : NULL;
}

static const char *fits(void *arg, struct held *next, int conf)
{
	(void)arg;
	(void)conf;
	return key_of(next) != NULL ? NULL : "the secret of run tokens is missing or too short";
}

/* Runs keep what they began under; secrets are used while one starts alone, so the old ones go at once. */
static void taken(void *arg, struct held *now, struct held *before)
{
	(void)arg;
	app.conf = &now->conf;
	app.run_key = key_of(now);
	secrets_wipe(&before->secrets);
	app.expire_at = app.launch_at = 0;
	proof_begin(&app);
}

static void read_conf(void)
{
	const char *why;
	struct held *h = held_load(CHILD_FD_CONFIG, CHILD_FD_SECRETS, &why);
	if (h == NULL)
		fatal("the configuration is not acceptable: %s", why);
	log_to((enum log_to)h->conf.global.log_to, h->conf.global.log_path);
	close(CHILD_FD_SECRETS);
	if (key_of(h) == NULL)
		fatal("the secret %s is missing or shorter than %d bytes: remove its file and run \"pinfold setup\"",
		      conf_run_secret(&h->conf), TOKEN_SECRET_MIN);
	app.conf = &h->conf;
	app.run_key = key_of(h);
	app.reload.fits = fits;
	app.reload.taken = taken;
	held_init(&app.reload.place, h);
}

static void open_store(void)
{
	char path[200];
	snprintf(path, sizeof path, "%s/%s", app.conf->global.run_dir, PLACE_STORE_SOCK);
	app.store = ask_new(path, STORE_PATIENCE);
	app.teller = ask_new(path, STORE_PATIENCE);
	app.subscription = ask_new(path, STORE_PATIENCE);
	if (app.store == NULL || app.teller == NULL || app.subscription == NULL)
		fatal("no memory, or the path %s is too long for a socket", path);
}

/* Runs end while they are looked at, so each round starts from the list as it is. What sandboxd has said is heard
 * first: a question to an absent store may have taken long, and must not make a box look late. */
static void tick(void)
{
	bool again = true;
	while (again) {
		again = false;
		control_drain(&app);
		uint64_t now = timer_ms();
		for (size_t i = 0; i < app.nruns && !again; i++) {
			uint64_t due = run_due(app.runs[i]);
			if (due != 0 && due <= now) {
				run_tick(&app, app.runs[i], now);
				again = true;
			}
		}
	}
}

static int patience(void)
{
	uint64_t now = timer_ms(), due = sweep_due(&app);
	for (size_t i = 0; i < app.nruns; i++) {
		uint64_t at = run_due(app.runs[i]);
		due = at != 0 && at < due ? at : due;
	}
	if (app.queue.n > 0) {
		uint64_t at = app.launch_at > app.expire_at ? app.launch_at : app.expire_at;
		if (tell_quiet(&app) && app.store_quiet_until > at)
			at = app.store_quiet_until;
		due = at < due ? at : due;
	}
	if (proof_due(&app) != 0 && proof_due(&app) < due)
		due = proof_due(&app);
	if (tell_due(&app) != 0 && tell_due(&app) < due)
		due = tell_due(&app);
	if (due <= now)
		return 0;
	return due - now > RESYNC ? RESYNC : (int)(due - now);
}

enum { POLL_CONTROL, POLL_STORE, POLL_JUDGES };

static void round_once(void)
{
	struct pollfd p[POLL_JUDGES + MAX_RUNS];
	char judged[MAX_RUNS][129];
	size_t n = POLL_JUDGES;
	p[POLL_CONTROL] = (struct pollfd){.fd = app.control, .events = POLLIN};
	p[POLL_STORE] = (struct pollfd){.fd = app.subscribed ? ask_fd(app.subscription) : -1, .events = POLLIN};
	for (size_t i = 0; i < app.nruns; i++)
		if (app.runs[i]->judge.pid != 0) {
			memcpy(judged[n - POLL_JUDGES], app.runs[i]->run, sizeof judged[0]);
			p[n++] = (struct pollfd){.fd = app.runs[i]->judge.pidfd, .events = POLLIN};
		}
	if (poll(p, n, patience()) < 0) {
		if (errno == EINTR)
			return;
		fatal("poll: %m");
	}
	if (p[POLL_STORE].revents != 0)
		sweep_heard(&app);
	if (p[POLL_CONTROL].revents != 0)
		control_read(&app);
	for (size_t i = POLL_JUDGES; i < n; i++) {
		struct run *r = app_run(&app, judged[i - POLL_JUDGES]);
		if (p[i].revents != 0 && r != NULL && r->judge.pid != 0 && r->judge.pidfd == p[i].fd)
			run_judge_ended(&app, r);
	}
}

int main(void)
{
	log_open("pinfold-steward");
	if (!undumpable())
		fatal("this process cannot be made undumpable: %m");
	set_signals();
	read_conf();
	if (!digest_start())
		fatal("OpenSSL does not start: %m");
	if (!confine(CONFINE_STEWARD, NULL, 0))
		fatal("cannot confine this process: %m");
	open_store();
	control_start(&app);
	proof_begin(&app);
	log_info("ready, %u boxes, %zu of before", app.slots, app.nstrays);
	for (;;) {
		(void)tell_all(&app);
		tell_figures(&app);
		proof_tick(&app, timer_ms());
		sweep(&app, timer_ms());
		tick();
		launch_queued(&app);
		round_once();
	}
}
