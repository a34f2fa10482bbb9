/*
 * A crowd on few runs, on one processor and on all: nobody hangs, nothing is refused but what the budget and the states
 * refuse. Meanwhile clients are killed in the middle of whatever they ask, and others try to open the same store. And
 * 100,000 units of one budget leave no more log than any other minute.
 */
#include <dirent.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/num.h"
#include "lib/secret.h"
#include "tests/store/cli.h"
#include "tests/store/steps.h"

enum { CROWD = 16, RUNS = 4, TURNS = 600, VICTIMS = 50, UNITS = 100000, SPENDERS = 8, LOG_BOUND = 9 << 20 };

struct tally {
	volatile bool go;
	volatile uint32_t consumed[RUNS], refused[CROWD], worst_ms[CROWD];
};
static struct tally *tally;

static int setup(void **state)
{
	(void)state;
	rig_open(&rig, access("/dev/shm", W_OK) == 0 ? "/dev/shm" : NULL);
	cli_open(&rig);
	rig_start(&rig);
	return steps_connect();
}

static struct st_stats_are stats(void)
{
	struct st_stat m = {0};
	struct st_stats_are a;
	assert_int_equal(st_call_stat(admin, &m, NULL, &a, NULL), ERR_OK);
	return a;
}

/* One question of a gateway about one of the runs. False: an answer that nobody may get. */
static bool ask_gateway(struct ask *a, const char *run, int turn, int which)
{
	struct st_run_create like = rig_run("acme", run);
	enum err e;
	if (turn % 2 == 0) {
		struct st_cap_consume m = {
		    .tenant = "acme", .run = run, .model = like.model, .fingerprint = like.fingerprint};
		struct st_cap_is is;
		e = st_call_cap_consume(a, &m, NULL, &is, NULL);
		if (e == ERR_OK)
			(void)__sync_fetch_and_add(&tally->consumed[which], 1);
		return e == ERR_OK || e == ERR_MODEL_REQUEST_BUDGET_EXHAUSTED || e == ERR_INACTIVE_RUN_TOKEN;
	}
	uint8_t list[256];
	struct wire_list l = {.p = list, .cap = sizeof list};
	struct st_agent_event ev = {.type = "t", .data = BYTES("{}")};
	wire_list_add(&l, st_put_agent_event(wire_list_room(&l, 100), 100, &ev));
	struct st_events_append m = {.tenant = "acme", .run = run, .events = wire_list_done(&l)};
	struct st_events_taken taken;
	e = st_call_events_append(a, &m, NULL, &taken, NULL);
	return e == ERR_OK || e == ERR_INACTIVE_RUN_TOKEN || e == ERR_RUN_SESSION_EVENTS_REJECTED;
}

/* And of fcgi: creates, looks, cancels at the end. */
static bool ask_fcgi(struct ask *a, const char *run, int index, int turn)
{
	enum err e;
	if (turn % 3 == 0) {
		char id[32];
		struct st_run_state s;
		(void)snprintf(id, sizeof id, "new-%d-%d-%d", (int)getpid(), index, turn);
		struct st_run_create m = rig_run("acme", id);
		int fds[2] = {rig_memfd("{}", 2), rig_memfd(id, strlen(id))};
		e = st_call_run_create(a, &m, fds, &s, NULL);
		close(fds[0]);
		close(fds[1]);
		return e == ERR_OK;
	}
	if (turn > TURNS - 20) {
		struct st_run_cancel m = {.tenant = "acme", .run = run, .by = "crowd"};
		struct st_run_state s;
		return st_call_run_cancel(a, &m, NULL, &s, NULL) == ERR_OK;
	}
	struct st_run_list m = {.tenant = "acme", .before_run = "", .limit = 20};
	struct st_run_page page;
	return st_call_run_list(a, &m, NULL, &page, NULL) == ERR_OK;
}

static void crowd_work(struct ask *a, int index)
{
	char run[32];
	for (int turn = 0; turn < TURNS; turn++) {
		int which = (index + turn) % RUNS;
		(void)snprintf(run, sizeof run, "shared-1-%d", which);
		uint64_t at = timer_ms();
		bool ok = index % 4 == 3 ? ask_fcgi(a, run, index, turn) : ask_gateway(a, run, turn, which);
		uint64_t took = timer_ms() - at;
		if (!ok)
			_exit(1);
		if (took > tally->worst_ms[index])
			tally->worst_ms[index] = (uint32_t)took;
	}
}

static cpu_set_t all_processors;

static void on_processors(pid_t pid, bool one)
{
	cpu_set_t set = all_processors;
	for (unsigned i = 0; one && i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all_processors)) {
			CPU_ZERO(&set);
			CPU_SET(i, &set);
			break;
		}
	assert_int_equal(sched_setaffinity(pid, sizeof set, &set), 0);
}

/* Clients that are killed in the middle of what they ask. */
static void victim_work(struct ask *a, int index)
{
	char run[32];
	for (int turn = 0;; turn++) {
		(void)snprintf(run, sizeof run, "shared-1-%d", turn % RUNS);
		if (index % 2 == 0)
			(void)ask_gateway(a, run, 1, 0);
		else
			(void)ask_fcgi(a, run, 1000 + index, 3 * turn);
	}
}

static void kill_some(void)
{
	uint8_t jitter;
	for (int i = 0; i < VICTIMS; i++) {
		pid_t pid = rig_member(&rig, i % 2 == 0 ? RIG_GATEWAY : RIG_FCGI, &tally->go, victim_work, i);
		random_bytes(&jitter, 1);
		(void)usleep(3000 + 40u * jitter);
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
}

/* Another owner is sent away each time, and the first one does not notice. */
static void second_owners(void)
{
	for (int i = 0; i < 5; i++) {
		struct rig second = rig;
		second.pid = 0;
		second.control = -1;
		rig_start(&second);
		int status = rig_stop(&second, 0);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	}
}

static void crowd(void **state)
{
	bool one = *state != NULL;
	pid_t pids[CROWD];
	char run[32];
	uint32_t worst = 0;
	memset(tally, 0, sizeof *tally);
	assert_int_equal(sched_getaffinity(0, sizeof all_processors, &all_processors), 0);
	for (int i = 0; i < RUNS; i++) {
		(void)snprintf(run, sizeof run, "shared-1-%d", i);
		if (one) {
			struct st_run_delete d = {.tenant = "acme", .run = run, .by = ""};
			struct st_run_state s;
			struct st_ok ok;
			assert_int_equal(finish(run, RUN_EV_FAIL, false, "x", &s), ERR_OK);
			assert_int_equal(FCGI(st_call_run_delete(fcgi, &d, NULL, &ok, NULL)), ERR_OK);
		}
		assert_int_equal(rig_running(fcgi, steward, "acme", run, 1000), ERR_OK);
	}
	on_processors(0, one);
	on_processors(rig.pid, one);
	for (int i = 0; i < CROWD; i++)
		pids[i] = rig_member(&rig, i % 4 == 3 ? RIG_FCGI : RIG_GATEWAY, &tally->go, crowd_work, i);
	tally->go = true;
	kill_some();
	second_owners();
	for (int i = 0; i < CROWD; i++) {
		int status;
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		worst = worst > tally->worst_ms[i] ? worst : tally->worst_ms[i];
	}
	on_processors(0, false);
	on_processors(rig.pid, false);
	for (int i = 0; i < RUNS; i++) {
		(void)snprintf(run, sizeof run, "shared-1-%d", i);
		struct st_run_is is = run_is(run);
		assert_int_equal(is.used_requests, tally->consumed[i]);
		assert_true(is.used_requests <= is.max_requests);
		(void)events_of(run, NULL); /* dense */
	}
	assert_int_equal(cli_store("check --contents"), 0);
	print_message("%s: the longest question took %u ms\n", one ? "one processor" : "all processors",
		      (unsigned)worst);
}

static void spend_work(struct ask *a, int index)
{
	struct st_run_create like = rig_run("acme", "purse");
	struct st_cap_consume m = {
	    .tenant = "acme", .run = "purse", .model = like.model, .fingerprint = like.fingerprint};
	struct st_cap_is is;
	for (int i = 0; i < UNITS / SPENDERS; i++)
		if (st_call_cap_consume(a, &m, NULL, &is, NULL) != ERR_OK)
			_exit(1);
	(void)index;
}

static void logs_of_a_long_budget(void **state)
{
	(void)state;
	pid_t pids[SPENDERS];
	struct st_cap_is is;
	uint64_t most = 0, written = stats().log_bytes;
	int left = SPENDERS, status;
	memset(tally, 0, sizeof *tally);
	assert_int_equal(rig_running(fcgi, steward, "acme", "purse", UNITS), ERR_OK);
	for (int i = 0; i < SPENDERS; i++)
		pids[i] = rig_member(&rig, RIG_GATEWAY, &tally->go, spend_work, i);
	tally->go = true;
	while (left > 0) {
		struct st_stats_are s = stats();
		most = s.log_files_bytes > most ? s.log_files_bytes : most;
		for (int i = 0; i < SPENDERS; i++)
			if (pids[i] > 0 && waitpid(pids[i], &status, WNOHANG) == pids[i]) {
				assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
				pids[i] = 0;
				left--;
			}
		(void)usleep(20000);
	}
	written = stats().log_bytes - written;
	assert_int_equal(run_is("purse").used_requests, UNITS);
	assert_int_equal(consume("purse", &is), ERR_MODEL_REQUEST_BUDGET_EXHAUSTED);
	print_message("%llu bytes of log were written, at most %llu were there\n", (unsigned long long)written,
		      (unsigned long long)most);
	assert_true(written > 3 * LOG_BOUND);
	assert_true(most < LOG_BOUND);
}

int main(void)
{
	static bool one = true;
	const struct CMUnitTest tests[] = {cmocka_unit_test(crowd), cmocka_unit_test_prestate(crowd, &one),
					   cmocka_unit_test(logs_of_a_long_budget)};
	tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return tally == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, setup, steps_teardown);
}
