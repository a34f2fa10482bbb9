/*
 * Another configuration while the service runs, in two phases (spec/sandbox.msg, LOAD). A child of ours reads the files
 * as the start does, and may end as the start would; what it said is passed on unread. Nothing of the new one is looked
 * at here: folders, users, sockets and boxes stay as they were made, and a daemon refuses what would have them
 * otherwise.
 */
#include "lib/clock.h"
#include "lib/die.h"
#include "lib/packet.h"
#include "sandboxd/app.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READ_MS = 15000, ASK_MS = 30000 };

static void tell(struct app *app)
{
	const struct reload *r = &app->reload;
	uint8_t frame[SBX_MAX_OUTCOME];
	const struct sbx_outcome m = {.number = r->number, .going = r->going, .applied = r->applied, .why = r->why};
	monitor_send(&app->child[CHILD_STORED].from, frame, sbx_put_outcome(frame, sizeof frame, 0, &m), NULL, 0);
}

/* NULL: every child has said yes. */
static void over(struct app *app, const char *why)
{
	struct reload *r = &app->reload;
	uint8_t frame[SBX_MAX_DECIDED];
	const struct sbx_decided m = {.number = r->number, .commit = why == NULL};
	size_t n = sbx_put_decided(frame, sizeof frame, 0, &m);
	for (int i = 0; i < CHILD__COUNT; i++)
		monitor_send(&app->child[i].from, frame, n, NULL, 0);
	snprintf(r->why, sizeof r->why, "%s", why != NULL ? why : "");
	if (why != NULL) {
		log_error("the configuration stays as it was: %.*s", (int)strcspn(why, "\n"), why);
		given_close(&r->next);
	} else {
		log_info("another configuration is in force (%u)", r->number);
		given_close(&app->given);
		app->given = r->next;
	}
	chan_close_fds(&r->report, 1);
	r->applied = why == NULL;
	r->going = false;
	if (r->again) /* nobody hears that this one is over: what comes counts */
		reload_begin(app);
	else
		tell(app);
}

void reload_begin(struct app *app)
{
	struct reload *r = &app->reload;
	r->again = r->going;
	if (r->going || app->stop != STOP_NO)
		return;
	r->going = true;
	r->number++;
	r->until = timer_ms() + READ_MS;
	r->report = bundle_new("report");
	r->reader = given_open(&r->next) && r->report >= 0 ? fork() : -1;
	if (r->reader == 0) {
		struct settings s = {0};
		if (dup2(r->report, 2) == 2 && prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && getppid() == app->pid)
			settings_load(&s, &r->next);
		_exit(s.storage == NULL);
	}
	tell(app);
	if (r->reader < 0)
		over(app, "its reader cannot be started");
}

static void ask(struct app *app, int child)
{
	struct reload *r = &app->reload;
	uint8_t frame[SBX_MAX_LOAD];
	const int fds[] = {r->next.conf, r->next.secrets[child]};
	size_t n = sbx_put_load(frame, sizeof frame, 0, &(struct sbx_load){.number = r->number});
	r->unheard |= 1u << child;
	monitor_send(&app->child[child].from, frame, n, fds, 2);
}

bool reload_reap(struct app *app, pid_t pid)
{
	struct reload *r = &app->reload;
	char said[sizeof r->why] = "";
	int status = 1;
	if (!r->going || pid != r->reader)
		return false;
	waitpid(pid, &status, WNOHANG);
	r->reader = 0;
	r->until = timer_ms() + ASK_MS;
	ssize_t n = pread(r->report, said, sizeof said - 1, 0);
	if (n > 0)
		(void)!write(2, said, (size_t)n);
	if (status != 0)
		over(app, n > 0 ? said : "its reader was killed");
	for (int i = 0; i < CHILD__COUNT && status == 0; i++)
		ask(app, i);
	return true;
}

void reload_greeted(struct app *app, const struct child *c)
{
	if (c->row == &child_rows[CHILD_STORED])
		tell(app);
	if (app->reload.going && app->reload.reader == 0)
		ask(app, (int)(c->row - child_rows));
}

void reload_heard(struct app *app, const struct child *c, const struct sbx_loaded *m)
{
	struct reload *r = &app->reload;
	if (!r->going || r->reader != 0 || m->number != r->number)
		return;
	r->unheard &= ~(1u << (c->row - child_rows));
	if (!m->fits || r->unheard == 0)
		over(app, m->fits ? NULL : m->why);
}

uint64_t reload_tick(struct app *app, uint64_t now)
{
	struct reload *r = &app->reload;
	if (r->going && now >= r->until && r->reader > 0) { /* its end comes */
		kill(r->reader, SIGKILL);                   /* ours and not reaped */
		r->until = now + READ_MS;
	} else if (r->going && now >= r->until) {
		over(app, "a process has not said in time whether it can take it up");
	}
	return r->going ? r->until : 0;
}
