/* Attacks on what was inherited: descriptors, folder, environment. */
#include "attack/neighbour.h"
#include "attack/tried.h"
#include "gen/attacks_inside.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

extern char **environ;

/* The pipe to the attacker's own main and its report are close-on-exec: what an exec passes on is what counts. */
struct tried attack_fd_extra(void)
{
	for (int fd = 3; fd < 65536; fd++) {
		int flags = fcntl(fd, F_GETFD);
		if (flags >= 0 && (flags & FD_CLOEXEC) == 0) {
			char path[64], at[80] = "";
			snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
			if (readlink(path, at, sizeof at - 1) < 0)
				at[0] = '\0';
			return open_("%d is %s", fd, at);
		}
	}
	return held("none");
}

struct tried attack_fd_stdin(void)
{
	struct stat st;
	if (fstat(0, &st) != 0)
		return held("closed");
	return S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3) ? held("/dev/null") : open_("mode %o", st.st_mode);
}

struct tried attack_fd_output(void)
{
	for (int fd = 1; fd < 3; fd++) {
		struct stat st;
		if (fstat(fd, &st) != 0 || !S_ISFIFO(st.st_mode))
			return open_("%d is no pipe", fd);
	}
	return held("a pipe");
}

static char at[200];

void descriptors_first(void)
{
	if (getcwd(at, sizeof at) == NULL)
		at[0] = '\0';
	if (chdir("/workspace/source") != 0)
		perror("/workspace/source");
}

struct tried attack_fd_cwd(void)
{
	return strcmp(at, "/workspace/source") == 0 ? held("it") : open_("%.100s", at);
}

struct tried attack_fd_environment(void)
{
	static const char *const known[] = {
	    "PATH", "HOME", "LANG", "PINFOLD_MODEL_ID", "PINFOLD_MODEL_GATEWAY_URL", "PINFOLD_RUN_ID", NULL};
	for (char **e = environ; *e != NULL; e++) {
		const char *const *k = known;
		while (*k != NULL && (strncmp(*k, *e, strlen(*k)) != 0 || (*e)[strlen(*k)] != '='))
			k++;
		if (*k == NULL)
			return open_("%.60s", *e);
	}
	return held("nothing else");
}
