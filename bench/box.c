/*
 * Boxes against bubblewrap, in alternation in one run: only the ratios mean something. Ours has every wall of
 * spec and design; bwrap has its namespaces, a read-only root, /proc and /dev. Run as root from the build
 * folder, with the path of the probe runner and, if wanted, the number of rounds.
 */
#include "lib/die.h"
#include "lib/names.h"
#include "lib/own.h"
#include "tests/box/rig.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 1000 };

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

int main(int argc, char **argv)
{
	static struct rig rig;
	static double first[MOST], reaped[MOST], gone[MOST], other[MOST];
	if (geteuid() != 0)
		fatal("must be started as root");
	const char *program = argc > 1 ? argv[1] : "tests/box/probe_runner";
	int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 100, others = 0;
	rounds = rounds < 5 ? 5 : rounds > MOST ? MOST : rounds;
	umask(077);
	rig_open(&rig, program, 4);
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
	}
	/* SIGCHLD of bwrap went to the rig's signal descriptor; nothing else of ours is running. */
	rig_close(&rig);
	double f = at(first, rounds, 0.5), r = at(reaped, rounds, 0.5);
	printf("box to first instruction   %6.2f ms (p99 %.2f)\n", f, at(first, rounds, 0.99));
	printf("box to reaped              %6.2f ms (p99 %.2f)\n", r, at(reaped, rounds, 0.99));
	printf("box to nothing left        %6.2f ms (p99 %.2f)\n", at(gone, rounds, 0.5), at(gone, rounds, 0.99));
	if (others == 0) {
		puts("bwrap is not installed: no ratio");
		return 0;
	}
	double b = at(other, others, 0.5);
	printf("bwrap --unshare-all true   %6.2f ms (p99 %.2f)\n", b, at(other, others, 0.99));
	printf("ratio first instruction %.2f, reaped %.2f (goal: 0.45)\n", f / b, r / b);
	return 0;
}
