/*
 * Durable consumes a second through the whole client path (socket, transaction, flush, answer) at 1 and 16
 * callers, against the same disk's plain append of 200 bytes and fsync, in turns in one run. Prints
 * the medians and what counts: the ratios. As root, from the build folder: bench/consume [DIR].
 */
#include "lib/die.h"
#include "lib/num.h"
#include "tests/store/harness.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 5, ROUND_MS = 1000, CALLERS = 16 };

struct tally {
	volatile bool go, stop;
	volatile uint64_t done[CALLERS];
};
static struct tally *tally;

static double plain(const struct rig *r)
{
	char path[128], block[200] = {0};
	(void)snprintf(path, sizeof path, "%s/plain", r->dir);
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	uint64_t n = 0, from = timer_ms();
	while (timer_ms() - from < ROUND_MS) {
		if (fd < 0 || write(fd, block, sizeof block) != sizeof block || fsync(fd) != 0)
			fatal("%s: %m", path);
		n++;
	}
	uint64_t took = timer_ms() - from;
	close(fd);
	(void)unlink(path);
	return (double)n * 1000 / (double)took;
}

static void call(const struct rig *r, int index, const char *run)
{
	struct st_run_create like = rig_run("bench", run);
	struct st_cap_consume m = {.tenant = "bench", .run = run, .model = like.model, .fingerprint = like.fingerprint};
	struct st_cap_is is;
	uid_t uid = rig_uid(RIG_GATEWAY);
	if (setresuid(uid, uid, uid) != 0)
		fatal("setuid: %m");
	struct ask *a = ask_new(r->sock, PATIENCE_MS);
	while (!tally->go)
		(void)usleep(1000);
	while (!tally->stop) {
		if (st_call_cap_consume(a, &m, NULL, &is, NULL) != ERR_OK)
			fatal("a consume was refused");
		tally->done[index]++;
	}
	ask_free(a);
	_exit(0);
}

static double store(const struct rig *r, const char *run, int callers)
{
	pid_t pids[CALLERS];
	uint64_t n = 0;
	memset(tally, 0, sizeof *tally);
	for (int i = 0; i < callers; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			fatal("fork: %m");
		if (pids[i] == 0)
			call(r, i, run);
	}
	(void)usleep(50000);
	uint64_t from = timer_ms();
	tally->go = true;
	(void)usleep(ROUND_MS * 1000);
	tally->stop = true;
	uint64_t took = timer_ms() - from;
	for (int i = 0; i < callers; i++) {
		(void)waitpid(pids[i], NULL, 0);
		n += tally->done[i];
	}
	return (double)n * 1000 / (double)took;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static double median(double *v)
{
	qsort(v, ROUNDS, sizeof *v, ascending);
	return v[ROUNDS / 2];
}

int main(int argc, char **argv)
{
	struct rig r;
	double fsyncs[ROUNDS], one[ROUNDS], many[ROUNDS], one_ratio[ROUNDS], many_ratio[ROUNDS];
	log_open("bench/consume");
	tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tally == MAP_FAILED)
		fatal("mmap: %m");
	rig_open(&r, argc > 1 ? argv[1] : NULL);
	rig_start(&r);
	rig_tenant(&r, "bench");
	struct ask *fcgi = rig_ask(&r, RIG_FCGI), *steward = rig_ask(&r, RIG_STEWARD);
	if (fcgi == NULL || steward == NULL || rig_running(fcgi, steward, "bench", "hot", UINT32_MAX) != ERR_OK)
		fatal("the run could not be made; see %s", r.log);
	for (int i = 0; i < ROUNDS; i++) {
		fsyncs[i] = plain(&r);
		one[i] = store(&r, "hot", 1);
		many[i] = store(&r, "hot", CALLERS);
		/* Within the round: the disk may be another one a second later. */
		one_ratio[i] = one[i] / fsyncs[i];
		many_ratio[i] = many[i] / fsyncs[i];
	}
	printf("plain append of 200 bytes and fsync   %8.0f/s\n", median(fsyncs));
	printf("durable consume, 1 caller             %8.0f/s   ratio %.2f\n", median(one), median(one_ratio));
	printf("durable consume, %d callers, one run  %8.0f/s   ratio %.2f\n", CALLERS, median(many),
	       median(many_ratio));
	ask_free(fcgi);
	ask_free(steward);
	rig_close(&r);
	return 0;
}
