/*
 * Idempotency keys, deletion and the figures: one key makes one run whatever is tried and killed, a deleted run
 * leaves nothing but what others name, and what METRICS says is what happened.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/digest.h"
#include "lib/secret.h"
#include "tests/store/steps.h"

enum { RACERS = 16, ROUNDS = 12, LARGE = 16001, LARGE_ROOM = LARGE + 128 };

/* The text, and spaces behind it, so that its blob is a file. */
static size_t padded(char to[LARGE_ROOM], const char *text)
{
	return (size_t)snprintf(to, LARGE_ROOM, "%-*s", LARGE, text);
}

static int large_memfd(const char *text)
{
	char large[LARGE_ROOM];
	return rig_memfd(large, padded(large, text));
}

static enum err create_as(struct ask *a, const char *tenant, const char *run, const char *key, const char *body,
			  char made[129])
{
	struct st_run_create m = rig_run(tenant, run);
	struct st_run_state s = {0};
	char upload[128];
	(void)snprintf(upload, sizeof upload, "upload of %s", body);
	int fds[2] = {large_memfd(body), large_memfd(upload)};
	m.idempotency = key;
	enum err e = st_call_run_create(a, &m, fds, &s, NULL);
	(void)snprintf(made, 129, "%s", e == ERR_OK ? s.run : "");
	close(fds[0]);
	close(fds[1]);
	return e;
}

static enum err create(const char *tenant, const char *run, const char *key, const char *body, char made[129])
{
	return FCGI(create_as(fcgi, tenant, run, key, body, made));
}

static enum err erase(const char *tenant, const char *run)
{
	struct st_run_delete m = {.tenant = tenant, .run = run, .by = "tests", .request_id = "r-1"};
	struct st_ok ok;
	return FCGI(st_call_run_delete(fcgi, &m, NULL, &ok, NULL));
}

/* Is the file of this content there? */
static bool blob_there(const char *content)
{
	uint8_t sum[SHA256_SIZE];
	char h[SHA256_HEX], path[300], large[LARGE_ROOM];
	assert_true(sha256(large, padded(large, content), sum));
	hex(sum, sizeof sum, h);
	(void)snprintf(path, sizeof path, "%s/store/blobs/%.2s/%s", rig.state, h, h);
	return access(path, F_OK) == 0;
}

static void keys(void **state)
{
	(void)state;
	char made[129];
	assert_int_equal(create("acme", "key-1", "k", "{\"a\":1}", made), ERR_OK);
	assert_string_equal(made, "key-1");
	assert_int_equal(create("acme", "key-2", "k", "{\"a\":1}", made), ERR_OK);
	assert_string_equal(made, "key-1");
	struct st_run_get g = {.tenant = "acme", .run = "key-2"};
	struct st_run_is is;
	assert_int_equal(FCGI(st_call_run_get(fcgi, &g, NULL, &is, NULL)), ERR_RUN_NOT_FOUND);
	assert_int_equal(create("acme", "key-3", "k", "{\"a\":2}", made), ERR_IDEMPOTENCY_CONFLICT);
	assert_false(blob_there("{\"a\":2}"));
	/* Another tenant's key is another key; no key is none. */
	assert_int_equal(create("other", "key-4", "k", "{\"a\":2}", made), ERR_OK);
	assert_string_equal(made, "key-4");
	assert_int_equal(create("acme", "key-5", "", "{\"a\":1}", made), ERR_OK);
	assert_string_equal(made, "key-5");
	assert_int_equal(create("acme", "key-6", "no/key", "{}", made), ERR_INVALID_IDEMPOTENCY_KEY);
	assert_int_equal(create("acme", "key-6", ".k", "{}", made), ERR_INVALID_IDEMPOTENCY_KEY);
	/* A repeat is answered although the queue is full by now: it makes nothing. */
	struct st_run_create m = rig_run("acme", "key-7");
	struct st_run_state s;
	int fds[2] = {large_memfd("{\"a\":1}"), rig_memfd("upload", 6)};
	m.idempotency = "k";
	m.max_queued = 1;
	assert_int_equal(FCGI(st_call_run_create(fcgi, &m, fds, &s, NULL)), ERR_OK);
	assert_string_equal(s.run, "key-1");
	assert_false(s.changed);
	m.idempotency = "k-full";
	assert_int_equal(FCGI(st_call_run_create(fcgi, &m, fds, &s, NULL)), ERR_RUN_QUEUE_FULL);
	/* A refused creation leaves no key that would swallow the next one. */
	m.max_queued = 0;
	assert_int_equal(FCGI(st_call_run_create(fcgi, &m, fds, &s, NULL)), ERR_OK);
	assert_string_equal(s.run, "key-7");
	close(fds[0]);
	close(fds[1]);
	struct st_run_state c;
	assert_int_equal(cancel("key-7", &c), ERR_OK);
	/* The key outlives its run: a late repeat does not run again. */
	assert_int_equal(erase("acme", "key-7"), ERR_OK);
	assert_int_equal(create("acme", "key-8", "k-full", "{\"a\":1}", made), ERR_OK);
	assert_string_equal(made, "key-7");
}

static int gate[2];

/* One caller with a run id of its own; writes what it was told. */
static pid_t racer(int index, int to)
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	uid_t uid = rig_uid(RIG_FCGI);
	char run[32], made[129] = {0}, byte;
	if (setresuid(uid, uid, uid) != 0)
		_exit(1);
	struct ask *a = ask_new(rig.sock, PATIENCE_MS);
	close(gate[1]);
	(void)!read(gate[0], &byte, 1); /* the end of the gate starts all */
	(void)snprintf(run, sizeof run, "race-%d-%d", (int)getpid(), index);
	if (create_as(a, "acme", run, "one-key", "{\"race\":1}", made) != ERR_OK)
		_exit(1);
	_exit(write(to, made, sizeof made) == sizeof made ? 0 : 1);
}

static void race(bool kill_it, char told[129])
{
	pid_t pids[RACERS];
	int results[2];
	uint8_t jitter;
	assert_int_equal(pipe(results), 0);
	assert_int_equal(pipe(gate), 0);
	for (int i = 0; i < RACERS; i++)
		pids[i] = racer(i, results[1]);
	close(gate[0]);
	close(gate[1]);
	close(results[1]);
	if (kill_it) {
		random_bytes(&jitter, 1);
		(void)usleep(jitter * 40u);
		(void)rig_stop(&rig, SIGKILL);
		rig_start(&rig);
	}
	for (int i = 0; i < RACERS; i++) {
		int status;
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	char made[129];
	int n = 0;
	while (read(results[0], made, sizeof made) == sizeof made) {
		if (n++ == 0 && told[0] == '\0')
			memcpy(told, made, sizeof made);
		assert_string_equal(made, told);
	}
	assert_int_equal(n, RACERS);
	close(results[0]);
}

static void one_run_for_all(void **state)
{
	(void)state;
	char told[129] = {0};
	for (int round = 0; round < ROUNDS; round++)
		race(true, told);
	race(false, told);
	/* There is the run, it is the only one, and its events say that it was made once. */
	assert_string_equal(events_of(told, NULL), "run.queued ");
	struct st_run_list l = {.tenant = "acme", .before_run = "", .limit = 200};
	struct st_run_page page;
	struct wire_bytes part;
	bool bad = false;
	unsigned races = 0;
	assert_int_equal(FCGI(st_call_run_list(fcgi, &l, NULL, &page, NULL)), ERR_OK);
	for (struct st_run_item item; wire_list_next(&page.items, &part, &bad);) {
		assert_true(st_get_run_item(part.p, part.n, &item));
		races += strncmp(item.run, "race-", 5) == 0;
	}
	assert_int_equal(races, 1);
}

static void put_artifact(const char *run, enum artifact name, const char *content)
{
	struct st_artifact_put m = {.tenant = "acme", .run = run, .name = (uint8_t)name};
	struct st_ok ok;
	int fd = large_memfd(content);
	assert_int_equal(STEWARD(st_call_artifact_put(steward, &m, &fd, &ok, NULL)), ERR_OK);
	close(fd);
}

static void ended(const char *run, const char *body)
{
	char made[129];
	struct st_run_start start = {.tenant = "acme", .run = run, .expires_at = clock_ms() + 3600000};
	struct st_run_work work;
	int fds[2] = {-1, -1};
	struct st_run_state s;
	assert_int_equal(create("acme", run, "", body, made), ERR_OK);
	assert_int_equal(STEWARD(st_call_run_start(steward, &start, NULL, &work, fds)), ERR_OK);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(erase("acme", run), ERR_RUN_NOT_TERMINAL);
	put_artifact(run, ART_PATCH, "a patch of both");
	put_artifact(run, ART_TEST_LOG, body);
	assert_int_equal(finish(run, RUN_EV_COMPLETE, true, "", &s), ERR_OK);
}

static void deletion(void **state)
{
	(void)state;
	struct st_events_taken taken;
	struct st_run_get g = {.tenant = "acme", .run = "del-1"};
	struct st_run_is is;
	ended("del-1", "{\"d\":1}");
	ended("del-2", "{\"d\":2}");
	assert_int_equal(erase("other", "del-1"), ERR_RUN_NOT_FOUND);
	assert_int_equal(erase("acme", "none"), ERR_RUN_NOT_FOUND);
	uint64_t deleted = figure("pinfold_runs_deleted_total"),
		 completed = figure("pinfold_runs{state=\"completed\"}");
	assert_int_equal(erase("acme", "del-1"), ERR_OK);
	assert_int_equal(figure("pinfold_runs_deleted_total"), deleted + 1);
	assert_int_equal(figure("pinfold_runs{state=\"completed\"}"), completed - 1);
	assert_int_equal(erase("acme", "del-1"), ERR_RUN_NOT_FOUND);
	assert_int_equal(FCGI(st_call_run_get(fcgi, &g, NULL, &is, NULL)), ERR_RUN_NOT_FOUND);
	struct st_events_read ev = {.tenant = "acme", .run = "del-1"};
	struct st_events_are are;
	assert_int_equal(FCGI(st_call_events_read(fcgi, &ev, NULL, &are, NULL)), ERR_RUN_NOT_FOUND);
	assert_int_equal(append("del-1", "t", 10, 1, &taken), ERR_RUN_NOT_FOUND);
	/* Its own blobs went; what the other run names, and what both named, stays and can be read. */
	assert_false(blob_there("{\"d\":1}"));
	assert_false(blob_there("upload of {\"d\":1}"));
	assert_true(blob_there("upload of {\"d\":2}"));
	assert_true(blob_there("{\"d\":2}"));
	assert_true(blob_there("a patch of both"));
	struct st_artifact_get get = {.tenant = "acme", .run = "del-2", .name = ART_PATCH};
	struct st_artifact_is art;
	assert_int_equal(FCGI(st_call_artifact_get(fcgi, &get, NULL, &art, NULL)), ERR_OK);
	/* The same id again is a new run from its first event on. */
	char made[129];
	assert_int_equal(create("acme", "del-1", "", "{\"d\":3}", made), ERR_OK);
	assert_string_equal(events_of("del-1", NULL), "run.queued ");
	struct st_run_state s;
	assert_int_equal(cancel("del-1", &s), ERR_OK);
	assert_int_equal(erase("acme", "del-2"), ERR_OK);
	assert_false(blob_there("a patch of both"));
	assert_false(blob_there("{\"d\":2}"));
	/* And after a restart as well. */
	assert_int_equal(erase("acme", "del-1"), ERR_OK);
	(void)rig_stop(&rig, SIGKILL);
	rig_start(&rig);
	g.run = "del-2";
	assert_int_equal(FCGI(st_call_run_get(fcgi, &g, NULL, &is, NULL)), ERR_RUN_NOT_FOUND);
	assert_false(blob_there("{\"d\":3}"));
}

/* An artifact that is put again lets go of the bytes it named before. */
static void replaced(void **state)
{
	(void)state;
	assert_int_equal(rig_running(fcgi, steward, "acme", "again", 2), ERR_OK);
	put_artifact("again", ART_PATCH, "first try");
	put_artifact("again", ART_PATCH, "first try");
	assert_true(blob_there("first try"));
	put_artifact("again", ART_PATCH, "second try");
	assert_false(blob_there("first try"));
	assert_true(blob_there("second try"));
}

/* A full buffer of events goes in one answer's time, and the store goes on. */
static void large(void **state)
{
	(void)state;
	struct st_events_taken taken = {0};
	struct st_run_state s;
	assert_int_equal(rig_running(fcgi, steward, "acme", "large", 2), ERR_OK);
	do
		assert_int_equal(append("large", "t", 2, 128, &taken), ERR_OK);
	while (taken.accepted == 128);
	assert_true(taken.last_sequence > 4000);
	uint64_t truncated = figure("pinfold_events_truncated_total");
	assert_true(truncated >= 1);
	assert_int_equal(finish("large", RUN_EV_FAIL, false, "x", &s), ERR_OK);
	uint64_t from = timer_ms();
	assert_int_equal(erase("acme", "large"), ERR_OK);
	print_message("%llu events removed in %llu ms\n", (unsigned long long)taken.last_sequence,
		      (unsigned long long)(timer_ms() - from));
	assert_int_equal(rig_running(fcgi, steward, "acme", "large", 2), ERR_OK);
	assert_string_equal(events_of("large", NULL), "run.queued run.started run.phase ");
}

static void figures(void **state)
{
	(void)state;
	struct st_cap_is cap;
	uint64_t consumed = figure("pinfold_model_requests_total");
	uint64_t refused = figure("pinfold_store_refusals_total{code=\"model_request_budget_exhausted\"}");
	assert_int_equal(rig_running(fcgi, steward, "acme", "figures", 1), ERR_OK);
	uint64_t running = figure("pinfold_runs{state=\"running\"}"), open = figure("pinfold_runs_open");
	assert_int_equal(consume("figures", &cap), ERR_OK);
	assert_int_equal(consume("figures", &cap), ERR_MODEL_REQUEST_BUDGET_EXHAUSTED);
	assert_int_equal(figure("pinfold_model_requests_total"), consumed + 1);
	assert_int_equal(figure("pinfold_store_refusals_total{code=\"model_request_budget_exhausted\"}"), refused + 1);
	struct st_run_state s;
	assert_int_equal(finish("figures", RUN_EV_COMPLETE, true, "", &s), ERR_OK);
	assert_int_equal(figure("pinfold_runs{state=\"running\"}"), running - 1);
	assert_int_equal(figure("pinfold_runs_open"), open - 1);
	assert_int_equal(figure("pinfold_process_up{process=\"stored\"}"), 1);
	assert_int_equal(figure("pinfold_process_up{process=\"gateway\"}"), 1);
	/* What is counted from the records is the same after a restart. */
	uint64_t completed = figure("pinfold_runs{state=\"completed\"}");
	(void)rig_stop(&rig, SIGTERM);
	rig_start(&rig);
	assert_int_equal(figure("pinfold_runs{state=\"completed\"}"), completed);
	assert_int_equal(figure("pinfold_runs_open"), open - 1);
	/* Only the public side and the operator may ask. */
	struct st_metrics m = {0};
	struct st_metrics_are a;
	struct ask *hasty = rig_hasty(&rig, RIG_STEWARD);
	assert_non_null(hasty);
	assert_int_not_equal(STEWARD(st_call_metrics(hasty, &m, NULL, &a, NULL)), ERR_OK);
	ask_free(hasty);
}

/* What the gateway says it can ask is known while it is connected, and only then. */
static void profiles(void **state)
{
	(void)state;
	uint8_t prints[64] = {7, [32] = 8};
	struct st_profiles_ready said = {.fingerprints = {prints, 64}};
	struct st_profiles_get question = {0};
	struct st_profiles_are are;
	struct st_ok ok;
	assert_int_equal(FCGI(st_call_profiles_get(fcgi, &question, NULL, &are, NULL)), ERR_OK);
	assert_int_equal(are.fingerprints.n, 0);
	assert_int_equal(GATEWAY(st_call_profiles_ready(gateway, &said, NULL, &ok, NULL)), ERR_OK);
	assert_int_equal(FCGI(st_call_profiles_get(fcgi, &question, NULL, &are, NULL)), ERR_OK);
	assert_int_equal(are.fingerprints.n, 64);
	assert_memory_equal(are.fingerprints.p, prints, 64);
	said.fingerprints.n = 33;
	assert_int_equal(GATEWAY(st_call_profiles_ready(gateway, &said, NULL, &ok, NULL)), ERR_INVALID_REQUEST);
	ask_free(gateway);
	gateway = rig_ask(&rig, RIG_GATEWAY);
	assert_int_equal(FCGI(st_call_profiles_get(fcgi, &question, NULL, &are, NULL)), ERR_OK);
	assert_int_equal(are.fingerprints.n, 0);
}

static bool whole(struct ask *a, const char *run, const char *body)
{
	struct st_run_get g = {.tenant = "acme", .run = run};
	struct st_run_is is;
	char text[128] = {0};
	int fd;
	enum err e = RIG_AS(RIG_FCGI, st_call_run_get(a, &g, NULL, &is, &fd));
	if (e == ERR_RUN_NOT_FOUND)
		return false;
	assert_int_equal(e, ERR_OK);
	assert_true(pread(fd, text, sizeof text - 1, 0) > 0);
	text[strcspn(text, " ")] = '\0';
	assert_string_equal(text, body);
	close(fd);
	assert_string_equal(events_of(run, NULL), "run.queued run.cancel_requested run.cancelled ");
	return true;
}

/* Killed while it deletes: each run is there with all of it, or gone with all of it; what was answered is gone. */
static void killed_while_deleting(void **state)
{
	(void)state;
	enum { RUNS = 60 };
	char run[32], body[64], made[129];
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < RUNS; i++) {
			struct st_run_state s;
			(void)snprintf(run, sizeof run, "kd-%d-%d", round, i);
			(void)snprintf(body, sizeof body, "{\"kd\":%d%03d}", round, i);
			assert_int_equal(create("acme", run, "", body, made), ERR_OK);
			assert_int_equal(cancel(run, &s), ERR_OK);
		}
		volatile int *gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		pid_t pid = fork();
		if (pid == 0) {
			uid_t uid = rig_uid(RIG_FCGI);
			if (setresuid(uid, uid, uid) != 0)
				_exit(1);
			struct ask *a = ask_new(rig.sock, PATIENCE_MS);
			for (int i = 0; i < RUNS; i++) {
				struct st_ok ok;
				(void)snprintf(run, sizeof run, "kd-%d-%d", round, i);
				struct st_run_delete m = {.tenant = "acme", .run = run, .by = "t"};
				if (st_call_run_delete(a, &m, NULL, &ok, NULL) != ERR_OK)
					_exit(0);
				*gone = i + 1;
			}
			_exit(0);
		}
		assert_true(WAIT_CLOSELY(100, *gone >= 7 * (round + 1)));
		(void)rig_stop(&rig, SIGKILL);
		assert_int_equal(kill(pid, SIGKILL), 0); /* who would ask again and again */
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		rig_start(&rig);
		for (int i = 0; i < RUNS; i++) {
			(void)snprintf(run, sizeof run, "kd-%d-%d", round, i);
			(void)snprintf(body, sizeof body, "{\"kd\":%d%03d}", round, i);
			bool there = whole(fcgi, run, body);
			assert_true(there || i <= *gone);
			assert_false(there && i < *gone);
			assert_int_equal(there, blob_there(body));
		}
		munmap((void *)gone, 4096);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(keys),     cmocka_unit_test(one_run_for_all),
	    cmocka_unit_test(deletion), cmocka_unit_test(replaced),
	    cmocka_unit_test(large),    cmocka_unit_test(figures),
	    cmocka_unit_test(profiles), cmocka_unit_test(killed_while_deleting),
	};
	return cmocka_run_group_tests(tests, steps_setup, steps_teardown);
}
