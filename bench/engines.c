/*
 * Durable consumes through the whole client path (question, transaction, flush, answer), at 1, 16 and 64 callers, on
 * one hot capability and on 1,000: stored against SQLite and LMDB, which do the same operation behind the same kind of
 * socket (engine.c). All take turns within each round; a ratio is the median of the rounds' ratios. As root, from the
 * build folder: bench/engines [ROUNDS [DIR]].
 */
#include "bench/engine.h"
#include "lib/die.h"
#include "lib/num.h"
#include "tests/store/harness.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 3, ROUNDS_MOST = 15, TURN_MS = 600, CALLERS = 64, RUNS = 1000, SAMPLES = 20000 };
enum { WHO = 4 };
static const char tenant[] = "bench";
static const struct engine *const engines[WHO] = {NULL, &engine_sqlite_full, &engine_sqlite_normal, &engine_lmdb};

/* Shared with the callers. took: microseconds of the first SAMPLES calls of each. */
struct tally {
	volatile bool go, stop;
	volatile uint64_t ready, done[CALLERS];
	uint32_t took[CALLERS][SAMPLES];
};
static struct tally *tally;

struct turn {
	double rate, p50, p99;
};

static uint64_t us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void call(const char *sock, int index, unsigned runs)
{
	char run[32];
	struct st_run_create like = rig_run(tenant, "b");
	struct st_cap_consume m = {.tenant = tenant, .run = run, .model = like.model, .fingerprint = like.fingerprint};
	struct st_cap_is is;
	uid_t uid = rig_uid(RIG_GATEWAY);
	uint64_t seed = (uint64_t)index * 7919 + 1;
	if (setresuid(uid, uid, uid) != 0)
		fatal("setuid: %m");
	struct ask *a = ask_new(sock, PATIENCE_MS);
	for (uint64_t n = 0; !tally->stop; n++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		(void)snprintf(run, sizeof run, "b%u", (unsigned)(seed >> 33) % runs);
		uint64_t from = us();
		if (a == NULL || st_call_cap_consume(a, &m, NULL, &is, NULL) != ERR_OK)
			fatal("a consume was refused");
		if (n == 0) { /* the first made the connection, and is not counted */
			__atomic_add_fetch(&tally->ready, 1, __ATOMIC_SEQ_CST);
			while (!tally->go)
				(void)usleep(500);
			continue;
		}
		if (tally->done[index] < SAMPLES)
			tally->took[index][tally->done[index]] = (uint32_t)(us() - from);
		tally->done[index]++;
	}
	ask_free(a);
	_exit(0);
}

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

static struct turn take_turn(const char *sock, int callers, unsigned runs)
{
	static uint32_t all[CALLERS * SAMPLES];
	pid_t pids[CALLERS];
	uint64_t n = 0;
	size_t samples = 0;
	tally->go = tally->stop = false;
	tally->ready = 0;
	for (int i = 0; i < callers; i++) {
		tally->done[i] = 0;
		pids[i] = fork();
		if (pids[i] < 0)
			fatal("fork: %m");
		if (pids[i] == 0)
			call(sock, i, runs);
	}
	for (int i = 0; tally->ready < (uint64_t)callers; i++) {
		if (i == 10000)
			fatal("the callers of %s do not get an answer", sock);
		(void)usleep(1000);
	}
	uint64_t from = us();
	tally->go = true;
	(void)usleep(TURN_MS * 1000);
	tally->stop = true;
	uint64_t took = us() - from;
	for (int i = 0; i < callers; i++) {
		(void)waitpid(pids[i], NULL, 0);
		n += tally->done[i];
		for (uint64_t k = 0; k < tally->done[i] && k < SAMPLES; k++)
			all[samples++] = tally->took[i][k];
	}
	qsort(all, samples, sizeof *all, ascending);
	return (struct turn){.rate = (double)n * 1e6 / (double)took,
			     .p50 = samples ? all[samples / 2] : 0,
			     .p99 = samples ? all[samples * 99 / 100] : 0};
}

static int rising(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof *v, rising);
	return v[n / 2];
}

static void cell(char socks[WHO][200], int callers, unsigned runs, int rounds)
{
	struct turn got[WHO][ROUNDS_MOST];
	double v[4][ROUNDS_MOST];
	for (int i = 0; i < rounds; i++)
		for (int k = 0; k < WHO; k++) {
			int who = (k + i) % WHO;
			got[who][i] = take_turn(socks[who], callers, runs);
		}
	printf("%d caller%s, %u capabilit%s\n", callers, callers == 1 ? "" : "s", runs, runs == 1 ? "y" : "ies");
	for (int who = 0; who < WHO; who++) {
		for (int i = 0; i < rounds; i++) {
			v[0][i] = got[who][i].rate;
			v[1][i] = got[who][i].p50;
			v[2][i] = got[who][i].p99;
			v[3][i] = got[0][i].rate / got[who][i].rate;
		}
		printf("  %-45s %8.0f/s  p50 %6.0f us  p99 %6.0f us", who == 0 ? "stored" : engines[who]->name,
		       median(v[0], rounds), median(v[1], rounds), median(v[2], rounds));
		if (who == 0)
			printf("\n");
		else
			printf("  stored is x %.2f\n", median(v[3], rounds));
	}
	(void)fflush(stdout);
}

int main(int argc, char **argv)
{
	struct rig r;
	char socks[WHO][200];
	pid_t servers[WHO] = {0};
	int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
	log_open("bench/engines");
	if (rounds < 1 || rounds > ROUNDS_MOST)
		fatal("1 to %d rounds", ROUNDS_MOST);
	tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tally == MAP_FAILED)
		fatal("mmap: %m");
	rig_open(&r, argc > 2 ? argv[2] : NULL);
	rig_start(&r);
	rig_tenant(&r, tenant);
	struct ask *fcgi = rig_ask(&r, RIG_FCGI), *steward = rig_ask(&r, RIG_STEWARD);
	for (unsigned i = 0; i < RUNS; i++) {
		char run[32];
		(void)snprintf(run, sizeof run, "b%u", i);
		if (fcgi == NULL || steward == NULL || rig_running(fcgi, steward, tenant, run, UINT32_MAX) != ERR_OK)
			fatal("the runs could not be made; see %s", r.log);
	}
	(void)snprintf(socks[0], sizeof socks[0], "%s", r.sock);
	for (int k = 1; k < WHO; k++) {
		char dir[200];
		(void)snprintf(dir, sizeof dir, "%s/engine%d", r.dir, k);
		(void)snprintf(socks[k], sizeof socks[k], "%s/e%d.sock", r.dir, k);
		if (mkdir(dir, 0700) != 0 || (servers[k] = fork()) < 0)
			fatal("%s: %m", dir);
		if (servers[k] == 0)
			engine_serve(engines[k], socks[k], dir, RUNS);
	}
	const int callers[] = {1, 16, 64};
	for (int i = 0; i < 3; i++) {
		cell(socks, callers[i], 1, rounds);
		cell(socks, callers[i], RUNS, rounds);
	}
	for (int k = 1; k < WHO; k++) {
		(void)kill(servers[k], SIGKILL);
		(void)waitpid(servers[k], NULL, 0);
	}
	ask_free(fcgi);
	ask_free(steward);
	rig_close(&r);
	return 0;
}
