/*
 * Many at once, and SIGKILL of stored under their load: a budget is never over-spent, what was acknowledged
 * is there afterwards, and what was asked again because its answer was lost was done once.
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

#include "lib/secret.h"
#include "tests/store/steps.h"

enum { RACERS = 16, BUDGET = 200, ROUNDS = 20, CONSUMERS = 3, LOAD_BUDGET = 4000000 };

/* Shared with the workers. */
struct tally {
	volatile bool go, stop;
	volatile uint32_t acked[RACERS];
	volatile uint32_t created;
	volatile uint64_t appended, accepted, last, called;
};
static struct tally *tally;

static void wait_all(const pid_t *pids, int n)
{
	for (int i = 0; i < n; i++) {
		int status;
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
}

static enum err one_consume(struct ask *a, const char *run)
{
	struct st_run_create like = rig_run("acme", run);
	struct st_cap_consume m = {.tenant = "acme", .run = run, .model = like.model, .fingerprint = like.fingerprint};
	struct st_cap_is is;
	return st_call_cap_consume(a, &m, NULL, &is, NULL);
}

static void race_work(struct ask *a, int index)
{
	enum err e;
	while ((e = one_consume(a, "race")) == ERR_OK)
		tally->acked[index]++;
	if (e != ERR_MODEL_REQUEST_BUDGET_EXHAUSTED)
		_exit(1);
}

static void budget_race(void **state)
{
	(void)state;
	pid_t pids[RACERS];
	uint32_t total = 0;
	memset(tally, 0, sizeof *tally);
	assert_int_equal(rig_running(fcgi, steward, "acme", "race", BUDGET), ERR_OK);
	for (int i = 0; i < RACERS; i++)
		pids[i] = rig_member(&rig, RIG_GATEWAY, &tally->go, race_work, i);
	tally->go = true;
	wait_all(pids, RACERS);
	for (int i = 0; i < RACERS; i++)
		total += tally->acked[i];
	assert_int_equal(total, BUDGET);
	assert_int_equal(run_is("race").used_requests, BUDGET);
}

static void consume_work(struct ask *a, int index)
{
	while (!tally->stop) {
		if (one_consume(a, "load") != ERR_OK)
			_exit(1);
		tally->acked[index]++;
	}
}

static void create_work(struct ask *a, int index)
{
	(void)index;
	char id[32];
	for (uint32_t i = 0; !tally->stop; i++) {
		struct st_run_state s;
		(void)snprintf(id, sizeof id, "made-%u", i);
		struct st_run_create m = rig_run("acme", id);
		int fds[2] = {rig_memfd(id, strlen(id)), rig_memfd("upload", 6)};
		if (st_call_run_create(a, &m, fds, &s, NULL) != ERR_OK)
			_exit(1);
		tally->created = i + 1;
		close(fds[0]);
		close(fds[1]);
	}
}

static void append_work(struct ask *a, int index)
{
	(void)index;
	uint8_t list[256];
	while (!tally->stop) {
		struct wire_list l = {.p = list, .cap = sizeof list};
		struct st_agent_event ev = {.type = "t", .data = BYTES("{}")};
		wire_list_add(&l, st_put_agent_event(wire_list_room(&l, 100), 100, &ev));
		struct st_events_append m = {.tenant = "acme", .run = "load", .events = wire_list_done(&l)};
		struct st_events_taken taken;
		if (st_call_events_append(a, &m, NULL, &taken, NULL) != ERR_OK)
			_exit(1);
		tally->appended++;
		tally->accepted += taken.accepted;
		tally->last = taken.last_sequence;
	}
}

static void call_work(struct ask *a, int index)
{
	(void)index;
	while (!tally->stop) {
		struct st_model_called m = {
		    .tenant = "acme", .run = "load", .status = 200, .outcome = "ok", .prompt_tokens = 3};
		struct st_called_is said;
		if (st_call_model_called(a, &m, NULL, &said, NULL) != ERR_OK)
			_exit(1);
		tally->called++;
	}
}

static uint64_t progress(void)
{
	uint64_t n = tally->created + tally->appended + tally->called;
	for (int i = 0; i < CONSUMERS; i++)
		n += tally->acked[i];
	return n;
}

static unsigned count_of(const char *words, const char *word)
{
	unsigned n = 0;
	size_t len = strlen(word);
	for (const char *p = words; *p != '\0'; p += strcspn(p, " ") + 1)
		n += strncmp(p, word, len) == 0;
	return n;
}

static void killed_under_load(void **state)
{
	(void)state;
	pid_t pids[CONSUMERS + 3];
	memset(tally, 0, sizeof *tally);
	assert_int_equal(rig_running(fcgi, steward, "acme", "load", LOAD_BUDGET), ERR_OK);
	for (int i = 0; i < CONSUMERS; i++)
		pids[i] = rig_member(&rig, RIG_GATEWAY, &tally->go, consume_work, i);
	pids[CONSUMERS] = rig_member(&rig, RIG_FCGI, &tally->go, create_work, 0);
	pids[CONSUMERS + 1] = rig_member(&rig, RIG_GATEWAY, &tally->go, append_work, 0);
	pids[CONSUMERS + 2] = rig_member(&rig, RIG_GATEWAY, &tally->go, call_work, 0);
	tally->go = true;
	for (int round = 0; round < ROUNDS; round++) {
		/* Some way into the load, at an instant of its own. */
		uint64_t from = progress();
		uint8_t jitter;
		random_bytes(&jitter, 1);
		assert_true(WAIT_CLOSELY(100u + jitter, progress() >= from + 20 + jitter));
		int status = rig_stop(&rig, SIGKILL);
		assert_true(WIFSIGNALED(status));
		rig_start(&rig);
	}
	tally->stop = true;
	wait_all(pids, CONSUMERS + 3);
	uint32_t acked = 0;
	for (int i = 0; i < CONSUMERS; i++)
		acked += tally->acked[i];
	struct st_run_is is = run_is("load");
	/* Every call was answered in the end, so every effect is there exactly once. */
	assert_int_equal(is.used_requests, acked);
	assert_int_equal(is.prompt_tokens, 3 * tally->called);
	assert_true(is.last_sequence >= tally->last);
	assert_int_equal(count_of(events_of("load", NULL), "t "), tally->accepted);
	for (uint32_t i = 0; i < tally->created; i++) {
		char id[32];
		(void)snprintf(id, sizeof id, "made-%u", i);
		struct st_run_get g = {.tenant = "acme", .run = id};
		int fd;
		assert_int_equal(FCGI(st_call_run_get(fcgi, &g, NULL, &is, &fd)), ERR_OK);
		assert_int_equal(is.request.n, strlen(id));
		assert_memory_equal(is.request.p, id, is.request.n);
		assert_int_equal(is.last_sequence, 1);
		close(fd);
	}
	print_message("%u consumes acknowledged, %u runs made, %llu appends, %llu calls, %d kills\n", acked,
		      tally->created, (unsigned long long)tally->appended, (unsigned long long)tally->called, ROUNDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(budget_race), cmocka_unit_test(killed_under_load)};
	tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return tally == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, steps_setup, steps_teardown);
}
