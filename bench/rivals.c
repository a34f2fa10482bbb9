/* See rivals.h. bwrap has its namespaces, a read-only root, /proc and /dev; a bare one what the kernel asks for,
 * whoever builds: the same namespaces and nothing else. */
#include "bench/rivals.h"
#include "lib/die.h"
#include "lib/own.h"
#include "tests/box/rig.h"
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 24, MANY = 128 };

const char *const rival_name[RIVALS] = {"bwrap", "bare clone3"};
static char *const is_true[] = {(char[]){"/bin/true"}, NULL};

bool rival_there(enum rival who)
{
	static int there = -1;
	if (there < 0)
		there = system("command -v bwrap >/dev/null") == 0;
	return who != RIVAL_BWRAP || there == 1;
}

pid_t rival_start(enum rival who, char *const argv[], int out)
{
	static const char *const bwrap[] = {"bwrap",  "--unshare-all", "--ro-bind", "/",   "/",
					    "--proc", "/proc",         "--dev",     "/dev"};
	const char *words[WORDS] = {NULL};
	int n = 0;
	for (size_t i = 0; who == RIVAL_BWRAP && i < sizeof bwrap / sizeof *bwrap; i++)
		words[n++] = bwrap[i];
	if (who == RIVAL_BWRAP && out >= 0) /* it will be killed */
		words[n++] = "--die-with-parent";
	for (int i = 0; argv[i] != NULL && n < WORDS - 1; i++)
		words[n++] = argv[i];
	struct clone_args args = {.flags = CLONE_VFORK, .exit_signal = SIGCHLD};
	if (who == RIVAL_BARE)
		args.flags |= CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS | CLONE_NEWCGROUP;
	long pid = syscall(SYS_clone3, &args, sizeof args);
	if (pid == 0) {
		if (out >= 0)
			dup2(out, 1);
		execvp(words[0], (char *const *)(uintptr_t)words);
		_exit(127);
	}
	return (pid_t)pid;
}

static bool ended(pid_t pid)
{
	int status = 0;
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

double rival_run(enum rival who)
{
	uint64_t from = rig_ns();
	return ended(rival_start(who, is_true, -1)) ? (double)(rig_ns() - from) / 1e6 : -1;
}

double rival_burst(enum rival who, int many)
{
	pid_t pid[MANY];
	uint64_t from = rig_ns();
	bool well = many <= MANY;
	for (int i = 0; well && i < many; i++)
		pid[i] = rival_start(who, is_true, -1);
	for (int i = 0; many <= MANY && i < many; i++)
		well = ended(pid[i]) && well;
	return well ? (double)(rig_ns() - from) / 1e6 : -1;
}

void rival_hold(int processes)
{
	pid_t pid = 0;
	for (int i = 1; i < processes; i++) {
		pid = fork();
		if (pid <= 0)
			break;
	}
	if (pid >= 0 && (processes == 1 || pid > 0) && write(1, "r", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/* Starts a holder; *end: a descriptor that ends when all of it is gone. 0: it did not come up. */
static pid_t hold(enum rival who, int processes, int *end)
{
	char self[512], number[16], said;
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	int ends[2];
	if (n <= 0 || pipe2(ends, O_CLOEXEC) != 0)
		return 0;
	self[n] = '\0';
	snprintf(number, sizeof number, "%d", processes);
	char *argv[] = {self, (char[]){"--hold"}, number, NULL};
	pid_t pid = rival_start(who, argv, ends[1]);
	close(ends[1]);
	*end = ends[0];
	return read(ends[0], &said, 1) == 1 ? pid : 0;
}

static void let_go(pid_t pid, int end)
{
	char said;
	kill(pid, SIGKILL);
	while (read(end, &said, 1) > 0)
		;
	waitpid(pid, NULL, 0);
	close(end);
}

double rival_teardown(enum rival who, int processes)
{
	int end = -1;
	pid_t pid = hold(who, processes, &end);
	if (pid == 0)
		return -1;
	uint64_t from = rig_ns();
	let_go(pid, end);
	return (double)(rig_ns() - from) / 1e6;
}

unsigned long memory_of(pid_t pid)
{
	char path[64], line[200];
	unsigned long one, kb = 0;
	snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
	FILE *f = fopen(path, "re");
	while (f != NULL && fgets(line, sizeof line, f) != NULL)
		kb += sscanf(line, "Pss: %lu", &one) == 1 ? one : 0;
	if (f != NULL)
		fclose(f);
	return kb;
}

/* With its children's. */
static unsigned long memory_below(pid_t pid)
{
	char path[64];
	unsigned long kb = memory_of(pid);
	int child;
	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
	FILE *f = fopen(path, "re");
	while (f != NULL && fscanf(f, "%d", &child) == 1)
		kb += memory_below(child);
	if (f != NULL)
		fclose(f);
	return kb;
}

unsigned long rival_memory(enum rival who, int many)
{
	pid_t pid[MANY];
	int end[MANY];
	unsigned long kb = 0;
	for (int i = 0; i < many && i < MANY; i++) {
		pid[i] = hold(who, 1, &end[i]);
		if (pid[i] == 0)
			fatal("an idle %s does not come up", rival_name[who]);
	}
	for (int i = 0; i < many && i < MANY; i++)
		kb += memory_below(pid[i]);
	for (int i = 0; i < many && i < MANY; i++)
		let_go(pid[i], end[i]);
	return kb / (unsigned long)many;
}
