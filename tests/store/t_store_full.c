/*
 * A disk that fills up, on a small tmpfs in a mount namespace of its own: new work is refused, a run that
 * goes on can still end, and once there is room all is as before. And logs do not grow.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/audit.h"
#include "tests/store/steps.h"

static char disk[] = "/tmp/pinfold-disk-XXXXXX";
static char filler[160];

static int setup(void **state)
{
	if (geteuid() != 0 || mkdtemp(disk) == NULL || unshare(CLONE_NEWNS) != 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("tmpfs", disk, "tmpfs", 0, "size=24m,mode=0755") != 0) {
		fprintf(stderr, "no tmpfs of our own here: skipped\n");
		(void)rmdir(disk);
		exit(77);
	}
	(void)snprintf(filler, sizeof filler, "%s/filler", disk);
	(void)state;
	rig_open(&rig, disk);
	rig_start(&rig);
	return steps_connect();
}

static int teardown(void **state)
{
	(void)steps_teardown(state);
	(void)umount2(disk, MNT_DETACH);
	(void)rmdir(disk);
	return 0;
}

/* To the last byte. */
static void fill(void)
{
	static char block[4096];
	int fd = open(filler, O_WRONLY | O_CREAT | O_APPEND, 0600);
	assert_true(fd >= 0);
	while (write(fd, block, sizeof block) > 0)
		;
	close(fd);
}

static bool have_ballast(void)
{
	char path[200];
	(void)snprintf(path, sizeof path, "%s/store/ballast", rig.state);
	return access(path, F_OK) == 0;
}

static uint64_t log_files(void)
{
	char path[200];
	uint64_t total = 0;
	(void)snprintf(path, sizeof path, "%s/store", rig.state);
	DIR *d = opendir(path);
	assert_non_null(d);
	struct stat st;
	for (struct dirent *f; (f = readdir(d)) != NULL;)
		if (strncmp(f->d_name, "log.", 4) == 0 && fstatat(dirfd(d), f->d_name, &st, 0) == 0)
			total += (uint64_t)st.st_size;
	closedir(d);
	return total;
}

static void logs_are_bounded(void **state)
{
	(void)state;
	struct st_cap_is a;
	struct st_stat m = {0};
	struct st_stats_are are;
	assert_int_equal(rig_running(fcgi, steward, "acme", "logs", 1000000), ERR_OK);
	do {
		for (int i = 0; i < 1000; i++)
			assert_int_equal(consume("logs", &a), ERR_OK);
		assert_int_equal(st_call_stat(admin, &m, NULL, &are, NULL), ERR_OK);
	} while (are.log_bytes < (12 << 20));
	assert_true(log_files() < (9 << 20));
}

static void whole(void)
{
	static uint8_t after[600];
	struct st_store_check m = {.contents = true, .after = {after, 0}};
	struct st_store_checked got;
	do {
		assert_int_equal(st_call_store_check(admin, &m, NULL, &got, NULL), ERR_OK);
		assert_int_equal(got.findings, 0);
		memcpy(after, got.after.p, got.after.n);
		m.after.n = got.after.n;
		m.table = got.table;
	} while (!got.done);
}

static enum err issue(const char *id)
{
	uint8_t hash[32] = {1};
	struct st_token_create m = {.tenant = "acme", .kind = 1, .token_id = id, .hash = {hash, 32}, .label = "l"};
	struct st_ok ok;
	return st_call_token_create(admin, &m, NULL, &ok, NULL);
}

static enum err take_away(const char *id)
{
	struct st_token_revoke m = {.tenant = "acme", .token_id = id};
	struct st_ok ok;
	return st_call_token_revoke(admin, &m, NULL, &ok, NULL);
}

static enum err principal(const char *id)
{
	uint8_t hash[32] = {1};
	struct st_principal m = {.token_id = id, .hash = {hash, 32}};
	struct st_principal_is is;
	return FCGI(st_call_principal(fcgi, &m, NULL, &is, NULL));
}

/* What a web server's health check is told: would a run be taken? */
static enum err ping(void)
{
	struct st_ping m = {0};
	struct st_ok ok;
	assert_int_equal(st_call_ping(admin, &m, NULL, &ok, NULL), ERR_OK);
	return FCGI(st_call_ping(fcgi, &m, NULL, &ok, NULL));
}

static void full_and_free_again(void **state)
{
	(void)state;
	struct st_run_state a;
	struct st_cap_is cap;
	struct st_events_taken taken;
	struct st_run_create m = rig_run("acme", "new");
	assert_int_equal(rig_running(fcgi, steward, "acme", "going", 5), ERR_OK);
	assert_int_equal(rig_running(fcgi, steward, "acme", "cancelled", 5), ERR_OK);
	assert_int_equal(issue("stolen-0"), ERR_OK);
	assert_int_equal(issue("stolen-1"), ERR_OK);
	assert_true(have_ballast());
	for (int round = 0; round < 2; round++) {
		const char *id = round == 0 ? "going" : "cancelled", *stolen = round == 0 ? "stolen-0" : "stolen-1";
		assert_int_equal(ping(), ERR_OK);
		fill();
		assert_int_equal(ping(), ERR_STORAGE_FULL);
		assert_int_equal(rig_create(fcgi, &m, &a), ERR_STORAGE_FULL);
		assert_int_equal(append(id, "t", 2, 1, &taken), ERR_STORAGE_FULL);
		/* Reading goes on, and so do ends, and what takes a right away. */
		assert_int_equal(run_is(id).max_requests, 5);
		assert_int_equal(principal(stolen), ERR_OK);
		assert_int_equal(take_away(stolen), ERR_OK);
		assert_int_equal(principal(stolen), ERR_UNAUTHORIZED);
		if (round == 1) {
			assert_int_equal(cancel(id, &a), ERR_OK);
			assert_int_equal(consume(id, &cap), ERR_INACTIVE_RUN_TOKEN);
		}
		assert_int_equal(finish(id, RUN_EV_FAIL, false, "sandbox_agent_failed", &a), ERR_OK);
		assert_true(run_is(id).finished);
		assert_int_equal(rig_create(fcgi, &m, &a), ERR_STORAGE_FULL);
		/* Killed on a full disk: it starts, and nothing acknowledged is lost. */
		int status = rig_stop(&rig, SIGKILL);
		assert_true(WIFSIGNALED(status));
		fill();
		rig_start(&rig);
		assert_true(run_is(id).finished);
		assert_int_equal(principal(stolen), ERR_UNAUTHORIZED);
		fill(); /* recovery removed a log */
		assert_int_equal(rig_create(fcgi, &m, &a), ERR_STORAGE_FULL);
		assert_int_equal(unlink(filler), 0);
		/* No help needed. */
		m.run = round == 0 ? "new" : "new-2";
		assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
		assert_true(a.changed);
		assert_true(have_ballast());
		m.run = "new-2";
	}
	/* No half-made run is left. */
	struct st_runs_open o = {.after_tenant = "", .after_run = ""};
	struct st_run_page page;
	assert_int_equal(STEWARD(st_call_runs_open(steward, &o, NULL, &page, NULL)), ERR_OK);
	struct wire_bytes part;
	bool bad = false;
	unsigned n = 0;
	while (wire_list_next(&page.items, &part, &bad))
		n++;
	assert_int_equal(n, 3); /* logs new new-2 */
	whole();
}

/* What the ballast gave back is for ends: it is no room for new work. */
static void ballast_is_no_room(void **state)
{
	(void)state;
	char path[200];
	(void)snprintf(path, sizeof path, "%s/store/ballast", rig.state);
	fill();
	assert_int_equal(ping(), ERR_STORAGE_FULL);
	(void)unlink(path);
	assert_int_equal(ping(), ERR_STORAGE_FULL);
	assert_int_equal(unlink(filler), 0);
	assert_int_equal(rig_stop(&rig, SIGTERM), 0);
	rig_start(&rig);
	assert_int_equal(ping(), ERR_OK);
	assert_true(have_ballast());
}

/* Filled by nothing but its own work: refused in time, whatever takes rights away still goes, and deleting is enough.
 */
static void full_by_itself(void **state)
{
	(void)state;
	static char sources[200000];
	char id[32];
	struct st_run_state a;
	struct st_ok ok;
	enum err e = ERR_OK;
	int n = 0;
	assert_int_equal(rig_running(fcgi, steward, "acme", "inside", 5), ERR_OK);
	for (; e == ERR_OK && n < 500; n++) {
		(void)snprintf(id, sizeof id, "fills-%d", n);
		memcpy(sources, id, sizeof id);
		struct st_run_create m = rig_run("acme", id);
		int fds[2] = {rig_memfd("{}", 2), rig_memfd(sources, sizeof sources)};
		e = FCGI(st_call_run_create(fcgi, &m, fds, &a, NULL));
		close(fds[0]);
		close(fds[1]);
	}
	assert_int_equal(e, ERR_STORAGE_FULL);
	assert_true(n > 10);
	struct st_run_get g = {.tenant = "acme", .run = id};
	struct st_run_is is;
	assert_int_equal(FCGI(st_call_run_get(fcgi, &g, NULL, &is, NULL)), ERR_RUN_NOT_FOUND);
	whole();
	assert_true(have_ballast());
	assert_int_equal(finish("inside", RUN_EV_FAIL, false, "agent_failed", &a), ERR_OK);
	for (int i = 0; i < n - 1; i++) {
		(void)snprintf(id, sizeof id, "fills-%d", i);
		struct st_run_delete d = {.tenant = "acme", .run = id, .by = ""};
		assert_int_equal(cancel(id, &a), ERR_OK);
		assert_int_equal(FCGI(st_call_run_delete(fcgi, &d, NULL, &ok, NULL)), ERR_OK);
	}
	struct st_run_create m = rig_run("acme", "after");
	assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
	whole();
	print_message("full after %d runs\n", n - 1);
}

static unsigned tokens(void)
{
	struct st_token_list m = {.tenant = "acme"};
	struct st_tokens_are a;
	struct wire_bytes part;
	bool bad = false;
	unsigned n = 0;
	assert_int_equal(st_call_token_list(admin, &m, NULL, &a, NULL), ERR_OK);
	while (wire_list_next(&a.items, &part, &bad))
		n++;
	return n;
}

/* Up to the end of the last block there may be room for a few lines. Returns how many were tried. */
static unsigned issue_until_refused(const char *prefix)
{
	unsigned n = 0;
	char id[32];
	enum err e;
	do {
		(void)snprintf(id, sizeof id, "%s-%u", prefix, n++);
		e = issue(id);
	} while (e == ERR_OK);
	assert_int_equal(e, ERR_AUDIT_UNAVAILABLE);
	return n;
}

/* Where no line can be written, what requires one is not done; all else goes on and is counted. */
static void no_room_for_the_audit_log(void **state)
{
	(void)state;
	char options[64], saved[160], path[160];
	struct st_run_state a;
	size_t n;
	assert_int_equal(rig_stop(&rig, SIGTERM), 0);
	(void)snprintf(options, sizeof options, "size=64k,mode=0700,uid=%d,gid=%d", RIG_UID, RIG_UID);
	assert_int_equal(mount("tmpfs", rig.logs, "tmpfs", 0, options), 0);
	rig_start(&rig);
	assert_int_equal(issue("before"), ERR_OK);
	(void)snprintf(saved, sizeof saved, "%s", filler);
	(void)snprintf(filler, sizeof filler, "%s/filler", rig.logs);
	fill();
	char id[32];
	unsigned given = issue_until_refused("t");
	unsigned before = tokens();
	assert_int_equal(before, given + 2); /* "before", two stolen ones, and all but the last */
	/* What takes a right away is done all the same. */
	assert_int_equal(take_away("before"), ERR_OK);
	assert_int_equal(tokens(), before);
	struct st_run_create m = rig_run("acme", "unlogged");
	for (int i = 0; i < 3; i++) {
		(void)snprintf(id, sizeof id, "unlogged-%d", i);
		m.run = id;
		assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
		assert_int_equal(cancel(id, &a), ERR_OK);
	}
	assert_true(rig_logged(&rig, "the audit log cannot be written"));
	assert_int_equal(unlink(filler), 0);
	assert_int_equal(issue("after"), ERR_OK);
	(void)snprintf(path, sizeof path, "%s/audit.log", rig.logs);
	char *log = file_read(AT_FDCWD, path, 1 << 20, &n);
	assert_non_null(log);
	assert_non_null(strstr(log, "\"event\":\"audit.lost\""));
	free(log);
	FILE *f = fopen(path, "r");
	struct audit_walk w = {0};
	assert_true(audit_walk_file(&w, f));
	/* The revocation, and creation, cancel and end three times, but for what still found room. */
	assert_true(w.lost > 0 && w.lost <= 10);
	fclose(f);
	/* Started where there is no room for a line. */
	fill();
	assert_int_equal(rig_stop(&rig, SIGKILL), SIGKILL);
	rig_start(&rig);
	(void)issue_until_refused("late");
	(void)snprintf(filler, sizeof filler, "%s", saved);
	assert_int_equal(rig_stop(&rig, SIGTERM), 0);
	assert_int_equal(umount2(rig.logs, MNT_DETACH), 0);
	rig_start(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(logs_are_bounded), cmocka_unit_test(full_and_free_again),
					   cmocka_unit_test(ballast_is_no_room), cmocka_unit_test(full_by_itself),
					   cmocka_unit_test(no_room_for_the_audit_log)};
	return cmocka_run_group_tests(tests, setup, teardown);
}
