/*
 * Walls that a kernel may lack, and Landlock by itself. Run as root from the build folder; skipped otherwise.
 */
#include "lib/names.h"
#include "lib/own.h"
#include "tests/box/rig.h"
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct rig rig;

/* Which extra walls a box lacks is what the kernel says without a box. */
static void extra_walls_are_told(void **state)
{
	(void)state;
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, 1);
	int told[2];
	assert_int_equal(pipe(told), 0);
	pid_t p = fork();
	if (p == 0) {
		char no = prctl(62 /* PR_SCHED_CORE */, 1, 0, 1, 0) != 0;
		_exit(write(told[1], &no, 1) != 1);
	}
	char no_cores = 2;
	assert_int_equal(read(told[0], &no_cores, 1), 1);
	waitpid(p, NULL, 0);
	close(told[0]);
	close(told[1]);
	struct box_limits l = rig_limits();
	own_fd int result = rig_spawn(&rig, "extra", BOX_WORK, &l, "hold");
	assert_true(rig_until_says(&rig, result, "ready", PATIENCE_MS));
	const struct box *b = boxes_find(&rig.boxes, "extra", BOX_WORK);
	assert_non_null(b);
	const struct {
		enum step step;
		bool lacks;
	} rows[] = {{STEP_LANDLOCK_TRUNCATE, abi < 3},
		    {STEP_LANDLOCK_IOCTL, abi < 5},
		    {STEP_LANDLOCK_SCOPES, abi < 6},
		    {STEP_CORE_SCHEDULING, no_cores != 0}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (rows[i].lacks != ((b->lacks >> rows[i].step & 1) != 0))
			fail_msg("%s: %d", walls[rows[i].step].name, rows[i].lacks);
	for (int i = 0; i < STEP__COUNT; i++)
		assert_false((b->lacks >> i & 1) != 0 && walls[i].required);
	struct rig_told *t = rig_told(&rig, "extra");
	box_kill(&rig.boxes, 0, "extra", BOX_WORK, 0);
	assert_true(rig_until(&rig, &t->gone, PATIENCE_MS));
}

/* Landlock by itself, where nothing else of a box is: what it alone would refuse. */
static void landlock_alone(void **state)
{
	(void)state;
	bool scopes = syscall(SYS_landlock_create_ruleset, NULL, 0, 1) >= 6;
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int n = snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "pinfold-scope-%d", (int)getpid());
	socklen_t len = (socklen_t)(sizeof(sa_family_t) + 1 + (size_t)n);
	own_fd int s = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(s, (struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(s, 1), 0);
	pid_t p = fork();
	if (p == 0) {
		int c = socket(AF_UNIX, SOCK_STREAM, 0);
		bool ok = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && box_landlock();
		ok = ok && open("/var/tmp/x", O_CREAT | O_WRONLY, 0600) < 0 && errno == EACCES;
		ok = ok && open("/usr/x", O_CREAT | O_WRONLY, 0600) < 0 && errno == EACCES;
		ok = ok && open("/proc/sys/kernel/hostname", O_RDONLY) >= 0;
		errno = 0;
		bool out = connect(c, (struct sockaddr *)&a, len) == 0 || kill(getppid(), 0) == 0;
		_exit(!(ok && out == !scopes && (!scopes || errno == EPERM)));
	}
	int status = -1;
	assert_int_equal(waitpid(p, &status, 0), p);
	assert_int_equal(status, 0);
}

int main(void)
{
	if (geteuid() != 0) {
		puts("skipped: needs root");
		return 77;
	}
	umask(077);
	rig_open(&rig, "tests/box/probe_runner", 4);
	const struct CMUnitTest tests[] = {cmocka_unit_test(extra_walls_are_told), cmocka_unit_test(landlock_alone)};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	rig_close(&rig);
	return failed;
}
