/* See cli.h. */
#include "tests/store/cli.h"
#include "lib/die.h"
#include "lib/num.h"
#include "lib/place.h"
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char said[65536], out[200];

static void run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void run(const char *fmt, ...)
{
	char command[2000];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(command, sizeof command, fmt, ap);
	va_end(ap);
	if (system(command) != 0)
		fatal("%s", command);
}

void cli_open(struct rig *r)
{
	char program[PATH_MAX];
	if (setenv("PINFOLD_ROOT", r->dir, 1) != 0 || !place_init() || realpath(r->program, program) == NULL)
		fatal("%s: %m", r->program);
	(void)snprintf(out, sizeof out, "%s/said", r->dir);
	run("./cli/pinfold setup --uid-base 1700000000 --model m --scripted >/dev/null 2>&1");
	run("sed -i 's/stored = .*/stored = \"%d:%d\"/' %s/pinfold.conf", RIG_UID, RIG_UID, place_dir(PLACE_SYSCONF));
	/* From now on the rig's own folders are these. */
	run("rm -rf %s %s && mkdir -p $(dirname %s) $(dirname %s) && mv %s %s && mv %s %s", place_dir(PLACE_STATE),
	    place_dir(PLACE_LOG), place_dir(PLACE_STATE), place_dir(PLACE_LOG), r->state, place_dir(PLACE_STATE),
	    r->logs, place_dir(PLACE_LOG));
	(void)snprintf(r->state, sizeof r->state, "%s", place_dir(PLACE_STATE));
	(void)snprintf(r->logs, sizeof r->logs, "%s", place_dir(PLACE_LOG));
	run("mkdir -p %s %s/admin && ln -sf %s %s/pinfold-stored && ln -sf %s %s/%s", place_dir(PLACE_LIBEXEC),
	    place_dir(PLACE_RUN), program, place_dir(PLACE_LIBEXEC), r->admin, place_dir(PLACE_RUN), PLACE_ADMIN_SOCK);
}

static int pinfold(const char *what, const char *fmt, va_list ap)
{
	char args[800], command[1200];
	size_t n;
	(void)vsnprintf(args, sizeof args, fmt, ap);
	(void)snprintf(command, sizeof command, "./cli/pinfold %s %s >%s 2>&1", what, args, out);
	int status = system(command);
	char *text = file_read(AT_FDCWD, out, sizeof said - 1, &n);
	(void)snprintf(said, sizeof said, "%s", text != NULL ? text : "");
	free(text);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int cli_store(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int status = pinfold("store", fmt, ap);
	va_end(ap);
	return status;
}

int cli_device(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int status = pinfold("device", fmt, ap);
	va_end(ap);
	return status;
}

const char *cli_said(void)
{
	return said;
}
