/*
 * The end of a run against a store whose answers the test chooses: what passes is tried again, in whole and without
 * anything being told twice; what does not pass is told, and the run ends all the same.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "gen/run_fsm.h"
#include "gen/store_msg.h"
#include "lib/chan.h"
#include "lib/num.h"
#include "steward/launch.h"
#include "steward/run.h"
#include "steward/settle.h"

/* --- the store ---------------------------------------------------------------------------------------- */

/* What each answers from now on, and what was asked since the last try, in one string. */
static struct {
	enum err revoke, phase, finish, put[ART__COUNT];
	uint8_t state;   /* the run's, as said with its phase */
	int no_file;     /* errno of making an artifact's file; 0: it is made */
	char asked[200]; /* R revoke, P phase, 0 to 5 artifact, F finish */
	char reason[64], error[64], result[4000];
	uint8_t event;
} store;

static void asked(const char *what)
{
	(void)snprintf(store.asked + strlen(store.asked), sizeof store.asked - strlen(store.asked), "%s", what);
}

enum err __wrap_st_call_cap_revoke(struct ask *a, const struct st_cap_revoke *m, const int *fds, struct st_ok *answer,
				   int *out);
enum err __wrap_st_call_cap_revoke(struct ask *a, const struct st_cap_revoke *m, const int *fds, struct st_ok *answer,
				   int *out)
{
	(void)a;
	(void)m;
	(void)fds;
	(void)answer;
	(void)out;
	asked("R");
	return store.revoke;
}

enum err __wrap_st_call_run_phase(struct ask *a, const struct st_run_phase *m, const int *fds,
				  struct st_run_state *answer, int *out);
enum err __wrap_st_call_run_phase(struct ask *a, const struct st_run_phase *m, const int *fds,
				  struct st_run_state *answer, int *out)
{
	(void)a;
	(void)fds;
	(void)out;
	assert_int_equal(m->phase, PHASE_CLEANING);
	asked("P");
	*answer = (struct st_run_state){.state = store.state};
	return store.phase;
}

enum err __wrap_st_call_artifact_put(struct ask *a, const struct st_artifact_put *m, const int *fds,
				     struct st_ok *answer, int *out);
enum err __wrap_st_call_artifact_put(struct ask *a, const struct st_artifact_put *m, const int *fds,
				     struct st_ok *answer, int *out)
{
	(void)a;
	(void)answer;
	(void)out;
	assert_true(m->name < ART__COUNT);
	asked((const char[]){(char)('0' + m->name), '\0'});
	ssize_t n = m->name == ART_RESULT ? pread(fds[0], store.result, sizeof store.result - 1, 0) : 0;
	store.result[n] = n > 0 ? '\0' : store.result[n];
	return store.put[m->name];
}

enum err __wrap_st_call_run_finish(struct ask *a, const struct st_run_finish *m, const int *fds,
				   struct st_run_state *answer, int *out);
enum err __wrap_st_call_run_finish(struct ask *a, const struct st_run_finish *m, const int *fds,
				   struct st_run_state *answer, int *out)
{
	(void)a;
	(void)fds;
	(void)out;
	asked("F");
	(void)snprintf(store.reason, sizeof store.reason, "%s", m->terminal_reason);
	(void)snprintf(store.error, sizeof store.error, "%s", m->error);
	store.event = m->event;
	*answer = (struct st_run_state){.state = RUN_COMPLETED};
	return store.finish;
}

int __real_bundle_of(const char *name, const void *p, size_t n);
int __wrap_bundle_of(const char *name, const void *p, size_t n);
int __wrap_bundle_of(const char *name, const void *p, size_t n)
{
	errno = store.no_file;
	return store.no_file != 0 ? -1 : __real_bundle_of(name, p, n);
}

/* --- the run ------------------------------------------------------------------------------------------ */

static struct conf conf;
static struct app app;
static struct run *r;
static const char summary[] =
    "{\"instruction\":\"x\",\"allowedPaths\":[\"a.py\"],\"checks\":[[\"git\",\"diff\",\"--check\"]]}";
/* request, checkpoint, patch, test_log, result: in the order in which they are put */
#define ALL "02345"

static int setup(void **state)
{
	(void)state;
	memset(&store, 0, sizeof store);
	store.state = RUN_RUNNING;
	memset(&app, 0, sizeof app);
	app.conf = &conf;
	r = run_new(&app, "acme", "r");
	int fd = __real_bundle_of("request", summary, sizeof summary - 1);
	enum err e = r == NULL || fd < 0 ? ERR_INTERNAL_ERROR : request_read(&r->rq, fd);
	close(fd);
	r->upload_fd = __real_bundle_of("upload", "", 0);
	return e == ERR_OK && r->upload_fd >= 0 ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	run_free(&app, r);
	return 0;
}

/* One try, as the steward makes it when it is no longer quiet towards the store. */
static bool try(void)
{
	app.store_quiet_until = 0;
	store.asked[0] = '\0';
	return settle_try(&app, r);
}

static void t_at_once(void **state)
{
	(void)state;
	assert_true(try());
	assert_string_equal(store.asked, "RP" ALL "F");
	assert_string_equal(store.reason, "completed");
	assert_int_equal(store.event, RUN_EV_COMPLETE);
}

/* An end that is refused for what passes is told again, and nothing but the end. */
static void t_end_again(void **state)
{
	static const enum err passing[] = {ERR_STORE_UNAVAILABLE, ERR_STORAGE_FULL, ERR_RESOURCES_EXHAUSTED,
					   ERR_AUDIT_UNAVAILABLE};
	(void)state;
	store.finish = passing[0];
	assert_false(try());
	assert_string_equal(store.asked, "RP" ALL "F");
	for (size_t i = 1; i < sizeof passing / sizeof *passing; i++) {
		store.finish = passing[i];
		assert_false(try());
		assert_string_equal(store.asked, "PF");
	}
	store.finish = ERR_OK;
	assert_true(try());
	assert_string_equal(store.asked, "PF");
	assert_string_equal(store.reason, "completed");
}

/* One that is refused for good is over. */
static void t_end_refused(void **state)
{
	(void)state;
	store.finish = ERR_ILLEGAL_RUN_TRANSITION;
	assert_true(try());
	assert_string_equal(store.asked, "RP" ALL "F");
}

/* No end before the capability is known to be gone. */
static void t_not_revoked(void **state)
{
	(void)state;
	store.revoke = ERR_STORE_UNAVAILABLE;
	assert_false(try());
	assert_null(strchr(store.asked, 'F'));
	store.revoke = ERR_OK;
	assert_true(try());
	assert_non_null(strchr(store.asked, 'F'));
}

/* No end while it is not known whether it was cancelled; and nothing is asked of a store that is away. */
static void t_away(void **state)
{
	(void)state;
	store.phase = ERR_STORE_UNAVAILABLE;
	assert_false(try());
	assert_string_equal(store.asked, "RP");
	store.asked[0] = '\0';
	assert_false(settle_try(&app, r));
	assert_string_equal(store.asked, "");
	store.phase = ERR_OK;
	assert_true(try());
	assert_string_equal(store.asked, "P" ALL "F");
}

/* An artifact waits for what passes, and those that are there are not put again. */
static void t_artifact_again(void **state)
{
	(void)state;
	store.put[ART_PATCH] = ERR_STORE_UNAVAILABLE;
	assert_false(try());
	assert_string_equal(store.asked, "RP023");
	store.put[ART_PATCH] = ERR_OK;
	store.no_file = EMFILE;
	assert_false(try());
	assert_string_equal(store.asked, "P");
	store.no_file = ENOMEM;
	assert_false(try());
	store.no_file = 0;
	assert_true(try());
	assert_string_equal(store.asked, "P345F");
	assert_string_equal(store.reason, "completed");
}

/* One that cannot be stored fails the run, whose end is told all the same; the result says so, too. */
static void t_artifact_refused(void **state)
{
	(void)state;
	store.put[ART_TEST_LOG] = ERR_STORAGE_FULL;
	assert_true(try());
	assert_string_equal(store.asked, "RP" ALL "45F"); /* once more, and the result, which said another end */
	assert_non_null(strstr(store.result, "\"terminalReason\":\"artifacts_not_stored\""));
	assert_string_equal(store.reason, "artifacts_not_stored");
	assert_string_equal(store.error, "storage_full");
	assert_int_equal(store.event, RUN_EV_FAIL);
}

/* A cancel that is seen between two tries changes the end, and what the result says of it. */
static void t_cancelled_between(void **state)
{
	(void)state;
	store.finish = ERR_STORAGE_FULL;
	assert_false(try());
	assert_non_null(strstr(store.result, "\"terminalReason\":\"completed\""));
	store.state = RUN_CANCELLING;
	store.finish = ERR_OK;
	assert_true(try());
	assert_string_equal(store.asked, "P5F");
	assert_string_equal(store.reason, "cancelled_by_request");
	assert_non_null(strstr(store.result, "\"terminalReason\":\"cancelled_by_request\""));
}

/* One that waited too long keeps its age where its end is refused for what passes, and its end is told later. */
static void t_waited_too_long(void **state)
{
	static const enum err passing[] = {ERR_STORE_UNAVAILABLE, ERR_STORAGE_FULL, ERR_RESOURCES_EXHAUSTED};
	(void)state;
	const int64_t since = (int64_t)timer_ms() - INT64_C(1000) * 86400 * 365;
	queue_add(&app.queue, "acme", "q", since);
	for (size_t i = 0; i < sizeof passing / sizeof *passing; i++) {
		store.finish = passing[i];
		app.store_quiet_until = app.launch_at = app.expire_at = 0;
		launch_queued(&app);
		assert_int_equal(app.queue.n, 1);
		assert_int_equal(app.queue.v[0].since, since);
	}
	store.finish = ERR_OK;
	app.store_quiet_until = app.launch_at = app.expire_at = 0;
	launch_queued(&app);
	assert_int_equal(app.queue.n, 0);
	assert_string_equal(store.reason, "queue_time_exceeded");
	queue_free(&app.queue);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    TEST(t_at_once),        TEST(t_end_again),      TEST(t_end_refused),      TEST(t_not_revoked),
	    TEST(t_away),           TEST(t_artifact_again), TEST(t_artifact_refused), TEST(t_cancelled_between),
	    TEST(t_waited_too_long)};
	return cmocka_run_group_tests_name("the end of a run", tests, NULL, NULL);
}
