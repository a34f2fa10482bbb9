/* Retention: what is older than its setting goes while the service goes on, and nothing else does. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/names.h"
#include "lib/num.h"
#include "lib/token.h"
#include "tests/store/cli.h"
#include "tests/store/push_steps.h"
#include "tests/store/sending.h"
#include "tests/store/steps.h"

static const long long HOUR = 3600000, DAY = 24 * HOUR;
enum { KEEP_ARTIFACTS = 2, KEEP_RUNS = 4, KEEP_TOKENS = 3, EVENTS = 1200, RECEIPTS = 150, DEVICES = 430 };

static char clock_file[] = "/tmp/pinfold-clock-XXXXXX";
static long long offset;

static void set_clock(long long to)
{
	/* In one piece: stored may look at any moment. */
	char text[32];
	int fd = open(clock_file, O_WRONLY);
	int n = snprintf(text, sizeof text, "%-24lld\n", to);
	assert_true(fd >= 0 && write(fd, text, (size_t)n) == n);
	close(fd);
	offset = to;
}

/* As time goes by: in steps that are no leap. */
static void later(long long by)
{
	char name[32];
	static unsigned n;
	for (long long end = offset + by; offset < end;) {
		set_clock(end - offset < 20 * HOUR ? end : offset + 20 * HOUR);
		(void)snprintf(name, sizeof name, "day-%u", n++);
		rig_tenant(&rig, name); /* something is written */
	}
}

static int setup(void **state)
{
	int fd = mkstemp(clock_file);
	if (fd < 0 || fchmod(fd, 0644) != 0)
		return -1;
	close(fd);
	if (setenv("PINFOLD_STORED", "./tests/store/stored-clock", 1) != 0 ||
	    setenv("PINFOLD_TEST_CLOCK", clock_file, 1) != 0)
		return -1;
	(void)state;
	/* Hundreds of durable files: where they cost nothing. */
	rig_open(&rig, access("/dev/shm", W_OK) == 0 ? "/dev/shm" : NULL);
	rig.keep_artifacts_days = KEEP_ARTIFACTS;
	rig.keep_runs_days = KEEP_RUNS;
	rig.keep_tokens_days = KEEP_TOKENS;
	cli_open(&rig);
	rig_start(&rig);
	return steps_connect();
}

static int teardown(void **state)
{
	(void)unlink(clock_file);
	return steps_teardown(state);
}

static struct st_store_pruned prune(void)
{
	struct st_store_prune m = {0};
	struct st_store_pruned a, all = {0};
	do {
		assert_int_equal(st_call_store_prune(admin, &m, NULL, &a, NULL), ERR_OK);
		all.artifacts += a.artifacts;
		all.runs += a.runs;
		all.keys += a.keys;
		all.tokens += a.tokens;
		all.settled = a.settled;
	} while (a.more);
	return all;
}

static enum err artifact(const char *run)
{
	struct st_artifact_get m = {.tenant = "acme", .run = run, .name = ART_PATCH};
	struct st_artifact_is a;
	return FCGI(st_call_artifact_get(fcgi, &m, NULL, &a, NULL));
}

static enum err look(const char *run)
{
	struct st_run_get m = {.tenant = "acme", .run = run};
	struct st_run_is a;
	return FCGI(st_call_run_get(fcgi, &m, NULL, &a, NULL));
}

/* A run with an artifact, large sources and a file of its own. */
static void ended(const char *run)
{
	static char sources[40000];
	struct st_run_create m = rig_run("acme", run);
	struct st_run_state a;
	struct st_ok ok;
	struct st_run_work work;
	struct st_artifact_put put = {.tenant = "acme", .run = run, .name = ART_PATCH};
	memset(sources, run[0], sizeof sources);
	int fds[2] = {rig_memfd("{}", 2), rig_memfd(sources, sizeof sources)}, patch = rig_memfd(run, strlen(run));
	m.idempotency = run;
	assert_int_equal(FCGI(st_call_run_create(fcgi, &m, fds, &a, NULL)), ERR_OK);
	struct st_run_start s = {.tenant = "acme", .run = run, .expires_at = UINT64_MAX};
	assert_int_equal(STEWARD(st_call_run_start(steward, &s, NULL, &work, NULL)), ERR_OK);
	assert_int_equal(STEWARD(st_call_artifact_put(steward, &put, &patch, &ok, NULL)), ERR_OK);
	for (int i = 0; i < EVENTS / 100; i++) {
		struct st_events_taken taken;
		assert_int_equal(append(run, "t", 20, 100, &taken), ERR_OK);
	}
	assert_int_equal(finish(run, RUN_EV_COMPLETE, true, "", &a), ERR_OK);
	assert_int_equal(artifact(run), ERR_OK);
	close(fds[0]);
	close(fds[1]);
	close(patch);
}

static struct st_stats_are stats(void)
{
	struct st_stat m = {0};
	struct st_stats_are a;
	assert_int_equal(st_call_stat(admin, &m, NULL, &a, NULL), ERR_OK);
	return a;
}

static void whole(void)
{
	int status = cli_store("check --contents");
	if (status != 0)
		print_message("%s", cli_said());
	assert_int_equal(status, 0);
}

static void ages(void **state)
{
	(void)state;
	struct st_run_create m = rig_run("acme", "waits");
	assert_int_equal(rig_create(fcgi, &m, NULL), ERR_OK);
	ended("old");
	later(DAY);
	ended("young");
	assert_int_equal(prune().artifacts, 0);
	assert_int_equal(stats().blobs,
			 7); /* two sources of a file each, two patches, {} twice, and those of "waits" */
	later(DAY + HOUR);
	struct st_store_pruned p = prune();
	assert_true(p.settled);
	assert_true(p.artifacts <= 1); /* or it was the turn of stored itself */
	assert_int_equal(p.runs, 0);
	assert_int_equal(artifact("old"), ERR_ARTIFACT_NOT_FOUND);
	assert_int_equal(artifact("young"), ERR_OK);
	struct st_run_is is = run_is("old");
	assert_true(is.finished && is.success && is.artifacts == 0);
	assert_int_equal(is.last_sequence, EVENTS + 4);
	(void)events_of("old", NULL); /* dense */
	whole();
	later(2 * DAY);
	p = prune();
	assert_true(p.runs <= 1);
	assert_int_equal(look("old"), ERR_RUN_NOT_FOUND);
	assert_int_equal(look("young"), ERR_OK);
	assert_int_equal(artifact("young"), ERR_ARTIFACT_NOT_FOUND);
	assert_int_equal(look("waits"), ERR_OK);
	whole();
	later(30 * DAY);
	assert_true(prune().runs <= 1);
	/* What has not ended is never too old. */
	assert_int_equal(look("waits"), ERR_OK);
	assert_int_equal(stats().runs, 1);
	assert_int_equal(stats().blobs, 2);
	whole();
}

static void token_of(uint8_t kind, const char *id, uint64_t expires_at)
{
	static const uint8_t hash[32] = {4};
	struct st_token_create m = {.tenant = "acme",
				    .kind = kind,
				    .token_id = id,
				    .hash = {hash, 32},
				    .label = kind == PRINCIPAL_DEVICE ? id : "",
				    .expires_at = expires_at};
	struct st_ok ok;
	assert_int_equal(st_call_token_create(admin, &m, NULL, &ok, NULL), ERR_OK);
}

static void token(const char *id, uint64_t expires_at)
{
	token_of(PRINCIPAL_API, id, expires_at);
}

static void tokens_and_keys(void **state)
{
	(void)state;
	uint64_t now = clock_ms() + (uint64_t)offset;
	struct st_token_revoke m = {.tenant = "acme", .token_id = "revoked"};
	struct st_ok ok;
	(void)prune();
	uint64_t before = stats().tokens;
	token("lasting", 0);
	token("revoked", 0);
	token("expires", now + (uint64_t)DAY);
	assert_int_equal(st_call_token_revoke(admin, &m, NULL, &ok, NULL), ERR_OK);
	assert_int_equal(stats().tokens, before + 3);
	for (int i = 0; i < 30; i++) {
		char run[32], key[32];
		struct st_run_state a;
		(void)snprintf(run, sizeof run, "keyed-%d", i);
		(void)snprintf(key, sizeof key, "key-%d", i);
		struct st_run_create c = rig_run("other", run);
		c.idempotency = key;
		assert_int_equal(rig_create(fcgi, &c, &a), ERR_OK);
	}
	later(23 * HOUR);
	assert_int_equal(prune().keys, 0);
	later(2 * HOUR);
	assert_true(prune().keys <= 30);
	assert_int_equal(stats().keys, 0);
	assert_int_equal(stats().tokens, before + 3);
	later(2 * DAY);
	assert_true(prune().tokens <= 1);
	assert_int_equal(stats().tokens, before + 2);
	later(DAY);
	assert_true(prune().tokens <= 1);
	assert_int_equal(stats().tokens, before + 1);
	whole();
}

/* A device goes by retention with what it was told of. */
static void devices(void **state)
{
	(void)state;
	push_ready('a');
	token_of(PRINCIPAL_DEVICE, "old-phone", clock_ms() + (uint64_t)(offset + DAY));
	assert_int_equal(push_put_at("acme", "old-phone", NULL), ERR_OK);
	assert_int_equal(figure("pinfold_push_subscriptions"), 1);
	(void)prune();
	assert_int_equal(figure("pinfold_push_subscriptions"), 1);
	later((KEEP_TOKENS + 2) * DAY);
	(void)WAIT_FOR((prune(), figure("pinfold_push_subscriptions") == 0));
	assert_int_equal(figure("pinfold_push_subscriptions"), 0);
	whole();
}

static void cancelled_by_device(const char *tenant, const char *run)
{
	struct st_run_create m = rig_run(tenant, run);
	struct st_run_cancel c = {.tenant = tenant, .run = run, .by = "device:gone", .request_id = ""};
	struct st_run_state a;
	assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
	assert_int_equal(FCGI(st_call_run_cancel(fcgi, &c, NULL, &a, NULL)), ERR_OK);
}

static unsigned receipts_of(const char *tenant)
{
	struct st_receipt_list m = {.tenant = tenant, .before_receipt = ""};
	struct st_receipts_are a;
	struct wire_bytes part;
	bool bad = false;
	unsigned n = 0;
	assert_int_equal(FCGI(st_call_receipt_list(fcgi, &m, NULL, &a, NULL)), ERR_OK);
	while (wire_list_next(&a.items, &part, &bad))
		n++;
	assert_false(bad || a.more);
	return n;
}

static unsigned after_pruning(const char *tenant)
{
	(void)prune();
	return receipts_of(tenant);
}

/* As long as their runs, and no less where those were deleted before. */
static void receipts(void **state)
{
	(void)state;
	struct st_run_delete d = {.tenant = "acme", .run = "r-0", .by = "x", .request_id = ""};
	struct st_ok ok;
	char run[32];
	cancelled_by_device("acme", "r-first");
	cancelled_by_device("other", "r-first");
	later(DAY);
	for (int i = 0; i < RECEIPTS; i++) {
		(void)snprintf(run, sizeof run, "r-%d", i);
		cancelled_by_device("acme", run);
	}
	assert_int_equal(FCGI(st_call_run_delete(fcgi, &d, NULL, &ok, NULL)), ERR_OK);
	later((KEEP_RUNS - 1) * DAY - HOUR);
	assert_int_equal(after_pruning("acme"), RECEIPTS + 1);
	later(2 * HOUR);
	assert_true(WAIT_FOR(after_pruning("acme") == RECEIPTS && after_pruning("other") == 0));
	assert_int_equal(after_pruning("acme"), RECEIPTS);
	whole();
	later(DAY);
	assert_true(WAIT_FOR(after_pruning("acme") == 0));
	whole();
}

/* By itself, while others work, and killed at any moment. */
static void by_itself(void **state)
{
	(void)state;
	struct st_events_taken taken;
	for (int i = 0; i < 12; i++) {
		char run[32];
		(void)snprintf(run, sizeof run, "%c-run", 'a' + i);
		ended(run);
	}
	struct st_run_create c = rig_run("acme", "going");
	struct st_run_start start = {.tenant = "acme", .run = "going", .expires_at = UINT64_MAX};
	struct st_run_work work;
	assert_int_equal(rig_create(fcgi, &c, NULL), ERR_OK);
	assert_int_equal(STEWARD(st_call_run_start(steward, &start, NULL, &work, NULL)), ERR_OK);
	later(5 * DAY);
	for (int i = 0; i < 12; i++) {
		assert_true(WIFSIGNALED(rig_stop(&rig, SIGKILL)));
		rig_start(&rig);
		assert_int_equal(append("going", "t", 2, 1, &taken), ERR_OK);
		(void)usleep(20000 * (useconds_t)i);
	}
	whole();
	assert_true(WAIT_FOR(stats().oldest_ended == 0));
	assert_int_equal(look("a-run"), ERR_RUN_NOT_FOUND);
	assert_int_equal(look("going"), ERR_OK);
	whole();
}

/* A clock that is suddenly weeks ahead may be wrong: nothing goes. */
static void a_leap(void **state)
{
	(void)state;
	ended("kept");
	set_clock(offset + 300 * DAY);
	struct st_store_pruned p = prune();
	assert_false(p.settled);
	assert_int_equal(p.artifacts + p.runs, 0);
	assert_int_equal(artifact("kept"), ERR_OK);
	assert_int_equal(cli_store("prune"), 1);
	assert_non_null(strstr(cli_said(), "the clock went forward"));
	assert_true(rig_logged(&rig, "nothing is pruned for a day"));
	/* Nor after a start at that moment. */
	assert_int_equal(rig_stop(&rig, SIGTERM), 0);
	set_clock(offset + 300 * DAY);
	rig_start(&rig);
	assert_int_equal(prune().artifacts, 0);
	assert_int_equal(artifact("kept"), ERR_OK);
}

/* As many as there are, though one answer of the store does not hold them. */
static void listed(void **state)
{
	(void)state;
	rig_tenant(&rig, "many");
	for (unsigned i = 0; i < DEVICES; i++) {
		char name[32];
		uint8_t hash[32] = {5, (uint8_t)i, (uint8_t)(i >> 8)};
		struct st_ok ok;
		(void)snprintf(name, sizeof name, "many-%u", i);
		struct st_token_create m = {
		    .tenant = "many", .kind = 2, .token_id = name, .hash = {hash, 32}, .label = name};
		assert_int_equal(st_call_token_create(admin, &m, NULL, &ok, NULL), ERR_OK);
	}
	assert_int_equal(cli_device("--tenant many list"), 0);
	unsigned n = 0;
	for (const char *p = cli_said(); (p = strstr(p, "many-")) != NULL; p++)
		n++;
	assert_int_equal(n, DEVICES);
}

/* A day after it came, or after a run was made from it, whichever was later. The run keeps what it was made from. */
static void sources(void **state)
{
	(void)state;
	static uint8_t archive[40000];
	struct sent used, unused;
	struct st_run_create m = rig_run("acme", "from-source");
	struct st_run_state s;
	archive[0] = 1;
	assert_int_equal(source_send(fcgi, "acme", archive, sizeof archive, 30000, &unused), ERR_OK);
	archive[0] = 2;
	assert_int_equal(source_send(fcgi, "acme", archive, sizeof archive, 30000, &used), ERR_OK);
	later(23 * HOUR);
	(void)prune();
	m.source = (struct wire_bytes){used.sha, sizeof used.sha};
	assert_int_equal(rig_create(fcgi, &m, &s), ERR_OK);
	struct st_source_get is_used = {.tenant = "acme", .sha256 = m.source},
			     is_unused = {.tenant = "acme", .sha256 = {unused.sha, sizeof unused.sha}};
	struct st_source_is is;
	assert_int_equal(FCGI(st_call_source_get(fcgi, &is_unused, NULL, &is, NULL)), ERR_OK);
	later(2 * HOUR);
	(void)prune();
	assert_int_equal(FCGI(st_call_source_get(fcgi, &is_unused, NULL, &is, NULL)), ERR_SOURCE_NOT_FOUND);
	assert_int_equal(FCGI(st_call_source_get(fcgi, &is_used, NULL, &is, NULL)), ERR_OK);
	later(23 * HOUR);
	(void)prune();
	assert_int_equal(FCGI(st_call_source_get(fcgi, &is_used, NULL, &is, NULL)), ERR_SOURCE_NOT_FOUND);
	struct st_run_start start = {.tenant = "acme", .run = "from-source", .expires_at = UINT64_MAX};
	struct st_run_work work;
	int fds[2];
	assert_int_equal(STEWARD(st_call_run_start(steward, &start, NULL, &work, fds)), ERR_OK);
	assert_int_equal(lseek(fds[1], 0, SEEK_END), sizeof archive);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(finish("from-source", RUN_EV_COMPLETE, true, "", &s), ERR_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(ages),    cmocka_unit_test(tokens_and_keys),
					   cmocka_unit_test(devices), cmocka_unit_test(receipts),
					   cmocka_unit_test(sources), cmocka_unit_test(by_itself),
					   cmocka_unit_test(a_leap),  cmocka_unit_test(listed)};
	return cmocka_run_group_tests(tests, setup, teardown);
}
