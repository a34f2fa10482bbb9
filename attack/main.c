/*
 * pinfold-attacker: tries to break out of a box, and says how it went.
 *
 * Theory of operation. "pinfold attack" starts runs whose agent is this program. /workspace/source/attack.txt says what
 * to try and what there is to know about the machine outside. Each attack of spec/attacks.tab is a function here; it is
 * tried in a process of its own, so that one that is killed by a wall does not end the others, and comes to one line
 * "ID held|open|skipped DETAIL" of report.txt, which comes back as the run's patch. A "plant" leaves something in the
 * workspace and ends; what is made of it is judged outside. A neighbour offers what another run must not reach, and
 * waits. As a check ("check", "spoil") it is the honest, or spoiling, check of the attacks on checks.
 *
 * It is an ordinary agent: it has no right that another has not, and whoever may name the profile may run it. No attack
 * does harm where it succeeds: it opens, asks and looks, and changes nothing outside the box.
 */
#include "attack/know.h"
#include "attack/neighbour.h"
#include "attack/tried.h"
#include "gen/attacks_inside.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 45000 };

static const struct {
	const char *id;
	struct tried (*try)(void);
} inside[] = {
#define X(id, function) {id, function},
    ATTACKS_INSIDE(X)
#undef X
};

static struct tried try_apart(struct tried (*try)(void))
{
	int pair[2], status = 0;
	struct tried t;
	if (pipe2(pair, O_CLOEXEC) != 0)
		return skipped("no pipe: %s", strerror(errno));
	pid_t pid = fork();
	if (pid == 0) {
		t = try();
		_exit(write(pair[1], &t, sizeof t) != (ssize_t)sizeof t);
	}
	close(pair[1]);
	struct pollfd p = {.fd = pair[0], .events = POLLIN};
	bool said = pid > 0 && poll(&p, 1, PATIENCE_MS) > 0 && read(pair[0], &t, sizeof t) == (ssize_t)sizeof t;
	close(pair[0]);
	if (pid < 0)
		return skipped("no process: %s", strerror(errno));
	if (!said)
		kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	if (said) {
		t.detail[sizeof t.detail - 1] = '\0';
		return t;
	}
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		return held("killed by the filter");
	return WIFSIGNALED(status) ? held("ended by signal %d", WTERMSIG(status)) : skipped("it said nothing");
}

static struct tried try_id(const char *id, bool apart)
{
	for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
		if (strcmp(inside[i].id, id) == 0)
			return apart ? try_apart(inside[i].try) : inside[i].try();
	return skipped("this attacker does not know it");
}

static int try_all(void)
{
	static const char *const words[] = {"held", "open", "skipped"};
	FILE *report = fopen("report.txt", "we");
	if (report == NULL)
		return 1;
	for (unsigned i = 0; know_try(i) != NULL; i++) {
		struct tried t = try_id(know_try(i), true);
		for (char *c = t.detail; *c != '\0'; c++)
			if (*c < ' ' || *c > '~')
				*c = '?';
		fprintf(report, "%s %s %s\n", know_try(i), words[t.outcome], t.detail);
		fflush(report);
	}
	neighbour_gestures();
	return fclose(report) != 0;
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	if (argc > 1)
		return strcmp(argv[1], "spoil") == 0 ? neighbour_spoil() : strcmp(argv[1], "check") != 0;
	if (!know_read("/workspace/source/attack.txt")) {
		fputs("pinfold-attacker: the agent of \"pinfold attack\"; there is no attack.txt\n", stderr);
		return 1;
	}
	descriptors_first();
	if (strcmp(know_mode(), "neighbour") == 0)
		return neighbour_live();
	if (strcmp(know_mode(), "plant") == 0 && know_try(0) != NULL)
		return try_id(know_try(0), false).outcome == TRIED_SKIPPED;
	return try_all();
}
