/*
 * How long the store takes to serve again after SIGKILL, with a million events in it and with none, while it is written
 * to. "Again" is the first answer to a question that a waiting caller asks: start of the process, recovery of the log,
 * opening and counting of the tables. As root, from the build folder: bench/recovery [EVENTS [DIR]].
 */
#include "lib/die.h"
#include "lib/num.h"
#include "lib/wire.h"
#include "tests/store/harness.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 1000000, A_RUN = 9984, A_CALL = 128, KILLS = 9, LOAD_MS = 700 };
static const char tenant[] = "bench";

static double ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static struct wire_bytes lines(void)
{
	static uint8_t page[100000];
	static const char data[] = "{\"agent_sequence\":1}";
	struct wire_list list = {.p = page, .cap = sizeof page};
	struct st_agent_event e = {.type = "step", .data = {(const uint8_t *)data, sizeof data - 1}};
	for (int i = 0; i < A_CALL; i++) {
		uint8_t *p = wire_list_room(&list, 200);
		size_t n = p == NULL ? 0 : st_put_agent_event(p, 200, &e);
		if (n == 0)
			fatal("the events do not fit into one question");
		wire_list_add(&list, n);
	}
	return wire_list_done(&list);
}

struct callers {
	struct ask *fcgi, *steward, *gateway;
	unsigned runs;
};

static void next_run(struct callers *c, char run[32])
{
	(void)snprintf(run, 32, "r%u", c->runs++);
	if (rig_running(c->fcgi, c->steward, tenant, run, UINT32_MAX) != ERR_OK)
		fatal("a run could not be made");
}

static void fill(struct callers *c, uint64_t events)
{
	char run[32];
	struct wire_bytes part = lines();
	uint64_t n = 0;
	next_run(c, run);
	while (n < events) {
		struct st_events_append m = {.tenant = tenant, .run = run, .events = part};
		struct st_events_taken taken = {0};
		if (RIG_AS(RIG_GATEWAY, st_call_events_append(c->gateway, &m, NULL, &taken, NULL)) != ERR_OK)
			fatal("events were not taken");
		n += taken.accepted;
		if (taken.accepted < A_CALL || taken.last_sequence + A_CALL > A_RUN)
			next_run(c, run);
	}
}

/* Consumes until it is killed; a restart in between is asked through. */
static pid_t load(struct rig *r)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid;
	struct st_run_create like = rig_run(tenant, "r0");
	struct st_cap_consume m = {.tenant = tenant, .run = "r0", .model = like.model, .fingerprint = like.fingerprint};
	struct st_cap_is is;
	uid_t uid = rig_uid(RIG_GATEWAY);
	if (setresuid(uid, uid, uid) != 0)
		fatal("setuid: %m");
	struct ask *a = ask_new(r->sock, PATIENCE_MS);
	while (a != NULL && st_call_cap_consume(a, &m, NULL, &is, NULL) == ERR_OK)
		;
	fatal("a consume was refused");
}

static int rising(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static void kills(struct rig *r, const char *what)
{
	double took[KILLS];
	struct st_ping m = {0};
	struct st_ok ok;
	for (int i = 0; i < KILLS; i++) {
		pid_t pid = load(r);
		(void)usleep(LOAD_MS * 1000);
		struct ask *a = ask_new(r->admin, PATIENCE_MS);
		double from = ms();
		(void)rig_stop(r, SIGKILL);
		rig_start(r);
		if (a == NULL || st_call_ping(a, &m, NULL, &ok, NULL) != ERR_OK)
			fatal("the store did not come back; see %s", r->log);
		took[i] = ms() - from;
		ask_free(a);
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	qsort(took, KILLS, sizeof *took, rising);
	printf("%-32s SIGKILL to the first answer: median %.0f ms, longest %.0f ms of %d\n", what, took[KILLS / 2],
	       took[KILLS - 1], KILLS);
	(void)fflush(stdout);
}

int main(int argc, char **argv)
{
	struct rig r;
	char file[200];
	struct stat st;
	uint64_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : EVENTS;
	log_open("bench/recovery");
	rig_open(&r, argc > 2 ? argv[2] : NULL);
	rig_start(&r);
	rig_tenant(&r, tenant);
	struct callers c = {rig_ask(&r, RIG_FCGI), rig_ask(&r, RIG_STEWARD), rig_ask(&r, RIG_GATEWAY), 0};
	if (c.fcgi == NULL || c.steward == NULL || c.gateway == NULL)
		fatal("the store does not answer; see %s", r.log);
	char run[32];
	next_run(&c, run);
	kills(&r, "an empty store:");
	double from = ms();
	fill(&c, events);
	double took = ms() - from;
	(void)snprintf(file, sizeof file, "%s/store/pinfold.db", r.state);
	printf("%llu events written in %.1f s; the tables have %.0f MB\n", (unsigned long long)events, took / 1000,
	       stat(file, &st) == 0 ? (double)st.st_size / 1e6 : 0);
	(void)snprintf(file, sizeof file, "%llu events:", (unsigned long long)events);
	kills(&r, file);
	ask_free(c.fcgi);
	ask_free(c.steward);
	ask_free(c.gateway);
	rig_close(&r);
	return 0;
}
