/*
 * Boxes against bubblewrap and bare namespaces, in alternation in one run: only the ratios mean something, and each is
 * the median of its rounds' ratios. Ours has every wall of spec and design. Run as root from the build folder, with the
 * path of the probe runner and, if wanted, the number of rounds.
 */
#include "bench/rivals.h"
#include "lib/die.h"
#include "lib/names.h"
#include "lib/own.h"
#include "tests/box/rig.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 1000, BURST = 100, IDLE = 20, TEARDOWNS = 7, BURSTS = 3 };

/* What was measured in the same round. */
struct round {
	double ours, rival[RIVALS];
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double at(double *v, int n, double part)
{
	qsort(v, (size_t)n, sizeof *v, compare);
	int i = (int)((double)n * part);
	return v[i < n ? i : n - 1];
}

/* A line: ours, and beside it each rival's own and how ours compares with it. */
static void report(const char *what, const char *unit, const struct round *r, int n)
{
	static double v[MOST];
	for (int i = 0; i < n; i++)
		v[i] = r[i].ours;
	double middle = at(v, n, 0.5), p99 = at(v, n, 0.99);
	printf("%-28s %8.2f %s (p99 %.2f)", what, middle, unit, p99);
	for (int who = 0; who < RIVALS; who++) {
		if (!rival_there((enum rival)who) || r[0].rival[who] <= 0)
			continue;
		for (int i = 0; i < n; i++)
			v[i] = r[i].rival[who];
		middle = at(v, n, 0.5), p99 = at(v, n, 0.99);
		for (int i = 0; i < n; i++)
			v[i] = r[i].ours / r[i].rival[who];
		printf("; %s %.2f (p99 %.2f), ratio %.2f", rival_name[who], middle, p99, at(v, n, 0.5));
	}
	putchar('\n');
	fflush(stdout);
}

static double with(enum rival who, double (*measure)(enum rival, int), int n)
{
	double ms = rival_there(who) ? measure(who, n) : 0;
	if (ms < 0)
		fatal("%s fails", rival_name[who]);
	return ms;
}

static double run(enum rival who, int n)
{
	(void)n;
	return rival_run(who);
}

static void spawns(struct rig *rig, int rounds)
{
	static struct round first[MOST], reaped[MOST], gone[MOST];
	struct box_limits l = rig_limits();
	for (int i = -3; i < rounds; i++) { /* the first few warm up */
		int k = i < 0 ? 0 : i;
		uint64_t from = rig_ns();
		own_fd int result = rig_spawn(rig, "first", BOX_WORK, &l, "first");
		struct rig_told *t = rig_told(rig, "first");
		if (!rig_until(rig, &t->exited, 60000))
			fatal("a box does not end: %s", t->detail);
		own_free char *text = rig_text(result);
		first[k].ours = (double)(strtoull(text, NULL, 10) - from) / 1e6;
		reaped[k].ours = (double)(t->exited_ns - from) / 1e6;
		box_kill(&rig->boxes, 0, "first", BOX_WORK, 0);
		if (!rig_until(rig, &t->gone, 60000))
			fatal("a box is not gone");
		gone[k].ours = (double)(t->gone_ns - from) / 1e6;
		for (int who = 0; who < RIVALS; who++)
			first[k].rival[who] = reaped[k].rival[who] = gone[k].rival[who] = with((enum rival)who, run, 0);
	}
	report("box to first instruction", "ms", first, rounds);
	report("box to reaped", "ms", reaped, rounds);
	report("box to nothing left", "ms", gone, rounds);
}

static struct rig_told *hold(struct rig *rig, const char *name, const struct box_limits *l, const char *what)
{
	own_fd int result = rig_spawn(rig, name, BOX_WORK, l, what);
	struct rig_told *t = rig_told(rig, name);
	if (!rig_until_says(rig, result, "ready", 60000) || !rig_until(rig, &t->spawned, 60000))
		fatal("box %s: %s is not ready", name, what);
	return t;
}

/* From KILL to nothing left: no process, mount, group or namespace; the rivals', to no process left. A bomb that forks
 * on would not be bounded by the rivals: theirs is one that holds still. */
static void teardowns(struct rig *rig)
{
	static const struct {
		const char *name, *what;
		uint32_t pids;
		int rivals;
	} rows[] = {{"teardown, 1 process", "hold", 1100, 1},
		    {"teardown, 100 processes", "bomb 100", 1100, 100},
		    {"teardown, 1,000 processes", "bomb 1000", 1100, 1000},
		    {"teardown, bomb of 256", "bomb 256 forking", 256, 256}};
	struct box_limits l = rig_limits();
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct round r[TEARDOWNS];
		l.pids = rows[i].pids;
		for (int k = 0; k < TEARDOWNS; k++) {
			struct rig_told *t = hold(rig, "down", &l, rows[i].what);
			uint64_t from = rig_ns();
			box_kill(&rig->boxes, 0, "down", BOX_WORK, 0);
			if (!rig_until(rig, &t->gone, 60000) || !t->clean)
				fatal("a box is not gone");
			r[k].ours = (double)(t->gone_ns - from) / 1e6;
			for (int who = 0; who < RIVALS; who++)
				r[k].rival[who] = with((enum rival)who, rival_teardown, rows[i].rivals);
		}
		report(rows[i].name, "ms", r, TEARDOWNS);
	}
}

/* All asked for at once, until each has run and is reaped. */
static double burst(struct rig *rig)
{
	struct box_limits l = rig_limits();
	char name[BURST][16];
	int result[BURST];
	uint64_t from = rig_ns();
	for (int i = 0; i < BURST; i++) {
		snprintf(name[i], sizeof name[i], "burst-%d", i);
		result[i] = rig_spawn(rig, name[i], BOX_WORK, &l, "true");
	}
	for (int i = 0; i < BURST; i++)
		if (!rig_until(rig, &rig_told(rig, name[i])->exited, 60000))
			fatal("a box of the burst does not end");
	double ours = (double)(rig_ns() - from) / 1e6;
	for (int i = 0; i < BURST; i++) {
		box_kill(&rig->boxes, 0, name[i], BOX_WORK, 0);
		close(result[i]);
	}
	for (int i = 0; i < BURST; i++)
		if (!rig_until(rig, &rig_told(rig, name[i])->gone, 60000))
			fatal("a box of the burst is not gone");
	return ours;
}

static void bursts(struct rig *rig)
{
	struct round r[BURSTS];
	for (int k = 0; k < BURSTS; k++) {
		r[k].ours = burst(rig);
		for (int who = 0; who < RIVALS; who++)
			r[k].rival[who] = with((enum rival)who, rival_burst, BURST);
	}
	report("burst of 100", "ms", r, BURSTS);
}

/* What each adds: the proportional set of its processes. Ours is process 1 alone, a static program here as the real
 * runner is; bwrap's are the two that stay beside the program. */
static void idle(struct rig *rig)
{
	struct box_limits l = rig_limits();
	char name[IDLE][16];
	struct round r = {0};
	for (int i = 0; i < IDLE; i++) {
		snprintf(name[i], sizeof name[i], "idle-%d", i);
		(void)hold(rig, name[i], &l, "hold");
	}
	for (int i = 0; i < IDLE; i++)
		r.ours += (double)memory_of(boxes_find(&rig->boxes, name[i], BOX_WORK)->pid) / IDLE;
	for (int i = 0; i < IDLE; i++) {
		struct rig_told *t = rig_told(rig, name[i]);
		box_kill(&rig->boxes, 0, name[i], BOX_WORK, 0);
		if (!rig_until(rig, &t->gone, 60000))
			fatal("an idle box is not gone");
	}
	for (int who = 0; who < RIVALS; who++)
		r.rival[who] = rival_there((enum rival)who) ? (double)rival_memory((enum rival)who, IDLE) : 0;
	report("memory of an idle one", "kB", &r, 1);
}

int main(int argc, char **argv)
{
	static struct rig rig;
	if (argc == 3 && strcmp(argv[1], "--hold") == 0)
		rival_hold((int)strtol(argv[2], NULL, 10));
	if (geteuid() != 0)
		fatal("must be started as root");
	const char *program = argc > 1 ? argv[1] : "tests/box/probe_runner";
	int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 100;
	rounds = rounds < 5 ? 5 : rounds > MOST ? MOST : rounds;
	umask(077);
	if (!rival_there(RIVAL_BWRAP))
		puts("bwrap is not installed: no ratio to it");
	rig_open(&rig, program, BURST);
	spawns(&rig, rounds);
	puts("goal: the ratio to bwrap at most 0.45");
	teardowns(&rig);
	bursts(&rig);
	idle(&rig);
	/* SIGCHLD of the rivals went to the rig's signal descriptor; nothing else of ours is running. */
	rig_close(&rig);
	return 0;
}
