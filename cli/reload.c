/*
 * SIGHUP to sandboxd, whose process id stored knows, and then questions to stored until the attempt is over. An attempt
 * that went on when we came may have read the files before they were as they are: what counts has a higher number.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/admin.h"
#include "cli/cli.h"
#include "cli/reload.h"
#include "gen/store_msg.h"
#include "lib/chan.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/place.h"

enum { OUTCOME_MS = 120000, LOOK_US = 20000 };

struct state {
	uint32_t sandboxd, number;
	bool going, applied;
	char why[1001];
};

static enum err look(struct ask *a, struct state *s)
{
	struct st_reload_state m = {0};
	struct st_reload_is is;
	enum err e = st_call_reload_state(a, &m, NULL, &is, NULL);

	if (e != ERR_OK)
		return e;
	*s = (struct state){.sandboxd = is.sandboxd, .number = is.number, .going = is.going, .applied = is.applied};
	snprintf(s->why, sizeof s->why, "%s", is.why);
	return ERR_OK;
}

bool service_there(uint32_t *sandboxd)
{
	char path[300];
	uid_t uid;
	pid_t pid;

	snprintf(path, sizeof path, "%s/%s", place_dir(PLACE_RUN), PLACE_ADMIN_SOCK);
	own_fd int fd = chan_reach(path);
	bool there = fd >= 0 && chan_peer(fd, &uid, &pid);
	if (sandboxd != NULL)
		*sandboxd = there && uid == geteuid() ? (uint32_t)pid : 0;
	return there;
}

/* Only the process that made the socket, by the kernel's word: stored's alone would send root's signal to whomever a
 * stored that was taken over names. The second look is behind the descriptor, which stays its. */
static bool wake(struct ask *a, const struct state *s)
{
	struct state again;
	uint32_t listens;
	own_fd int pidfd = s->sandboxd > 1 ? (int)syscall(SYS_pidfd_open, s->sandboxd, 0) : -1;

	return pidfd >= 0 && look(a, &again) == ERR_OK && again.sandboxd == s->sandboxd && service_there(&listens) &&
	       listens == s->sandboxd && syscall(SYS_pidfd_send_signal, pidfd, SIGHUP, NULL, 0) == 0;
}

/* Lines, each of which may hold what stands in a file. */
static void explain(const char *why)
{
	fputs("pinfold: the configuration stays as it was:\n", stderr);
	for (size_t n; *why != '\0'; why += n + (why[n] == '\n')) {
		n = strcspn(why, "\n");
		say_foreign(stderr, why, n);
		fputc('\n', stderr);
	}
}

enum reload_end config_reload(bool quiet)
{
	struct state first, now;
	struct ask *a = admin_open();
	enum err e = look(a, &first);

	if (e != ERR_OK && quiet && !service_there(NULL)) {
		ask_free(a);
		return RELOAD_NOT_RUNNING;
	}
	if (e != ERR_OK) {
		(void)admin_failed(a, e);
		return quiet ? RELOAD_REFUSED : RELOAD_NOT_RUNNING;
	}
	if (!wake(a, &first)) {
		fprintf(stderr, "pinfold: pinfold-sandboxd (%u) cannot be told: are you root?\n", first.sandboxd);
		ask_free(a);
		return RELOAD_REFUSED;
	}
	uint64_t until = timer_ms() + OUTCOME_MS;
	do {
		usleep(LOOK_US);
		e = look(a, &now);
		/* stored may have been started anew, and by another sandboxd, whose numbers begin again. */
	} while (timer_ms() < until &&
		 (e != ERR_OK || (now.sandboxd == first.sandboxd && (now.going || now.number <= first.number))));
	ask_free(a);
	if (e == ERR_OK && now.sandboxd == first.sandboxd && !now.going && now.applied)
		return RELOAD_APPLIED;
	explain(e != ERR_OK || now.going         ? "no answer came in time; the log says more"
		: now.sandboxd != first.sandboxd ? "the service was started anew meanwhile"
						 : now.why);
	return RELOAD_REFUSED;
}

void reload_note(enum audit_event event, const char *name)
{
	struct st_audit_note m = {.event = (uint8_t)event, .actor = "operator", .subject = name};
	struct st_ok ok;
	struct ask *a = admin_open();

	(void)st_call_audit_note(a, &m, NULL, &ok, NULL);
	ask_free(a);
}
