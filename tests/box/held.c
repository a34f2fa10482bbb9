/* See held.h. */
#include "tests/box/held.h"
#include "lib/die.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t held_first(const char *group)
{
	char path[600], byte = 0;
	int victim = 0, ends[2];
	snprintf(path, sizeof path, "%s/cgroup.procs", group);
	for (int i = 0; i < 2000 && victim == 0; i++, usleep(10000)) {
		FILE *f = fopen(path, "re");
		if (f != NULL && fscanf(f, "%d", &victim) != 1)
			victim = 0;
		if (f != NULL)
			fclose(f);
	}
	if (victim == 0 || pipe2(ends, O_CLOEXEC) != 0)
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
