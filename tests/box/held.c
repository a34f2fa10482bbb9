/* See held.h. */
#include "tests/box/held.h"
#include "lib/die.h"
#include "tests/patience.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t first_of(const char *path)
{
	int first = 0;
	FILE *f = fopen(path, "re");
	if (f != NULL && fscanf(f, "%d", &first) != 1)
		first = 0;
	if (f != NULL)
		fclose(f);
	return first;
}

pid_t held_first(const char *group)
{
	char path[600], byte = 0;
	int ends[2];
	pid_t victim = 0;
	snprintf(path, sizeof path, "%s/cgroup.procs", group);
	if (!WAIT_FOR((victim = first_of(path)) != 0) || pipe2(ends, O_CLOEXEC) != 0)
		fatal("nobody is in %s", group);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		byte = ptrace(PTRACE_SEIZE, victim, 0, 0) == 0;
		if (write(ends[1], &byte, 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	if (read(ends[0], &byte, 1) != 1 || byte != 1)
		fatal("%d cannot be traced", victim);
	close(ends[0]);
	close(ends[1]);
	return pid;
}

void held_no_more(pid_t tracer)
{
	kill(tracer, SIGKILL);
	waitpid(tracer, NULL, 0);
}
