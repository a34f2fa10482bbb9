/*
 * Boxes against bubblewrap, in alternation in one run: only the ratios mean something. Ours has every wall of
 * spec and design; bwrap has its namespaces, a read-only root, /proc and /dev. Run as root from the build
 * folder, with the path of the probe runner and, if wanted, the number of rounds.
 */
#include "lib/die.h"
#include "lib/names.h"
#include "lib/own.h"
#include "tests/box/rig.h"
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 1000, BURST = 100, IDLE = 20, TEARDOWNS = 7 };

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

static double bwrap(void)
{
	char *const argv[] = {(char[]){"bwrap"},
			      (char[]){"--unshare-all"},
			      (char[]){"--ro-bind"},
			      (char[]){"/"},
			      (char[]){"/"},
			      (char[]){"--proc"},
			      (char[]){"/proc"},
			      (char[]){"--dev"},
			      (char[]){"/dev"},
			      (char[]){"/bin/true"},
			      NULL};
	uint64_t from = rig_ns();
	pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): the cheapest start, to be fair */
	if (pid == 0) {
		execvp("bwrap", argv);
		_exit(127);
	}
	int status = 0;
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		return -1;
	return (double)(rig_ns() - from) / 1e6;
}

/* The same namespaces and nothing else: what the kernel asks for, whoever builds. */
static double bare(void)
{
	uint64_t from = rig_ns();
	struct clone_args args = {.flags = CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS |
					   CLONE_NEWCGROUP | CLONE_VFORK,
				  .exit_signal = SIGCHLD};
	long pid = syscall(SYS_clone3, &args, sizeof args);
	if (pid == 0) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(127);
	}
	int status = 0;
	if (pid < 0 || waitpid((pid_t)pid, &status, 0) != pid || status != 0)
		return -1;
	return (double)(rig_ns() - from) / 1e6;
}

static struct rig_told *hold(struct rig *rig, const char *run, const struct box_limits *l, const char *what)
{
	own_fd int result = rig_spawn(rig, run, BOX_WORK, l, what);
	if (!rig_until_says(rig, result, "ready", 60000))
		fatal("box %s: %s is not ready", run, what);
	return rig_told(rig, run);
}

/* From KILL to nothing left: no process, mount, group or namespace. */
static void teardowns(struct rig *rig)
{
	static const char *const what[] = {"hold", "bomb 100", "bomb 1000", "bomb 256 forking"};
	struct box_limits l = rig_limits();
	for (size_t i = 0; i < sizeof what / sizeof *what; i++) {
		double ms[TEARDOWNS];
		l.pids = i == 3 ? 256 : 1100;
		for (int k = 0; k < TEARDOWNS; k++) {
			struct rig_told *t = hold(rig, "down", &l, what[i]);
			uint64_t from = rig_ns();
			box_kill(&rig->boxes, 0, "down", BOX_WORK, 0);
			if (!rig_until(rig, &t->gone, 20000) || !t->clean)
				fatal("a box is not gone");
			ms[k] = (double)(t->gone_ns - from) / 1e6;
		}
		double middle = at(ms, TEARDOWNS, 0.5);
		printf("teardown, %-16s %6.2f ms (most %.2f)\n", what[i], middle, at(ms, TEARDOWNS, 0.99));
	}
}

/* All asked for at once, until each has run and is reaped. */
static void burst(struct rig *rig)
{
	struct box_limits l = rig_limits();
	char run[BURST][16];
	int result[BURST];
	uint64_t from = rig_ns();
	for (int i = 0; i < BURST; i++) {
		snprintf(run[i], sizeof run[i], "burst-%d", i);
		result[i] = rig_spawn(rig, run[i], BOX_WORK, &l, "true");
	}
	for (int i = 0; i < BURST; i++)
		if (!rig_until(rig, &rig_told(rig, run[i])->exited, 60000))
			fatal("a box of the burst does not end");
	double ours = (double)(rig_ns() - from) / 1e6;
	for (int i = 0; i < BURST; i++) {
		box_kill(&rig->boxes, 0, run[i], BOX_WORK, 0);
		close(result[i]);
	}
	for (int i = 0; i < BURST; i++)
		if (!rig_until(rig, &rig_told(rig, run[i])->gone, 60000))
			fatal("a box of the burst is not gone");
	printf("burst of %d boxes         %6.0f ms\n", BURST, ours);
}

/* What each adds: the proportional set of its process 1, a static program here as the real runner is. */
static void idle(struct rig *rig)
{
	struct box_limits l = rig_limits();
	char run[IDLE][16], path[64], line[200];
	unsigned long kb = 0, one;
	for (int i = 0; i < IDLE; i++) {
		snprintf(run[i], sizeof run[i], "idle-%d", i);
		(void)hold(rig, run[i], &l, "hold");
	}
	for (int i = 0; i < IDLE; i++) {
		snprintf(path, sizeof path, "/proc/%d/smaps_rollup",
			 (int)boxes_find(&rig->boxes, run[i], BOX_WORK)->pid);
		FILE *f = fopen(path, "re");
		while (f != NULL && fgets(line, sizeof line, f) != NULL)
			kb += sscanf(line, "Pss: %lu", &one) == 1 ? one : 0;
		if (f != NULL)
			fclose(f);
	}
	for (int i = 0; i < IDLE; i++) {
		struct rig_told *t = rig_told(rig, run[i]);
		box_kill(&rig->boxes, 0, run[i], BOX_WORK, 0);
		if (!rig_until(rig, &t->gone, 20000))
			fatal("an idle box is not gone");
	}
	printf("memory of an idle box      %6lu kB (PSS of its process 1)\n", kb / IDLE);
}

int main(int argc, char **argv)
{
	static struct rig rig;
	static double first[MOST], reaped[MOST], gone[MOST], other[MOST], least[MOST];
	if (geteuid() != 0)
		fatal("must be started as root");
	const char *program = argc > 1 ? argv[1] : "tests/box/probe_runner";
	int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 100, others = 0, bares = 0;
	rounds = rounds < 5 ? 5 : rounds > MOST ? MOST : rounds;
	umask(077);
	rig_open(&rig, program, BURST);
	struct box_limits l = rig_limits();
	for (int i = -3; i < rounds; i++) { /* the first few warm up */
		int k = i < 0 ? 0 : i;
		uint64_t from = rig_ns();
		own_fd int result = rig_spawn(&rig, "first", BOX_WORK, &l, "first");
		struct rig_told *t = rig_told(&rig, "first");
		if (!rig_until(&rig, &t->exited, 10000))
			fatal("a box does not end: %s", t->detail);
		own_free char *text = rig_text(result);
		first[k] = (double)(strtoull(text, NULL, 10) - from) / 1e6;
		reaped[k] = (double)(t->exited_ns - from) / 1e6;
		box_kill(&rig.boxes, 0, "first", BOX_WORK, 0);
		if (!rig_until(&rig, &t->gone, 10000))
			fatal("a box is not gone");
		gone[k] = (double)(t->gone_ns - from) / 1e6;
		double b = bwrap();
		if (b >= 0 && i >= 0)
			other[others++] = b;
		b = bare();
		if (b >= 0 && i >= 0)
			least[bares++] = b;
	}
	teardowns(&rig);
	burst(&rig);
	idle(&rig);
	/* SIGCHLD of bwrap went to the rig's signal descriptor; nothing else of ours is running. */
	rig_close(&rig);
	double f = at(first, rounds, 0.5), r = at(reaped, rounds, 0.5);
	printf("box to first instruction   %6.2f ms (p99 %.2f)\n", f, at(first, rounds, 0.99));
	printf("box to reaped              %6.2f ms (p99 %.2f)\n", r, at(reaped, rounds, 0.99));
	printf("box to nothing left        %6.2f ms (p99 %.2f)\n", at(gone, rounds, 0.5), at(gone, rounds, 0.99));
	if (bares > 0)
		printf("bare clone3 and exec       %6.2f ms (p99 %.2f): the kernel's own part, %.2f of a box\n",
		       at(least, bares, 0.5), at(least, bares, 0.99), at(least, bares, 0.5) / r);
	if (others == 0) {
		puts("bwrap is not installed: no ratio");
		return 0;
	}
	double b = at(other, others, 0.5);
	printf("bwrap --unshare-all true   %6.2f ms (p99 %.2f)\n", b, at(other, others, 0.99));
	printf("ratio first instruction %.2f, reaped %.2f (goal: 0.45)\n", f / b, r / b);
	return 0;
}
