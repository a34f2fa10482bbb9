/* Small parts of the steward: the queue's fairness, exit codes, request.json. */
#include "lib/chan.h"
#include "lib/own.h"
#include "steward/queue.h"
#include "steward/request.h"
#include "steward/verdict.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static bool anyone(void *arg, const char *tenant)
{
	(void)arg;
	(void)tenant;
	return true;
}

static bool but_not(void *arg, const char *tenant)
{
	return strcmp(arg, tenant) != 0;
}

static void t_queue(void **state)
{
	(void)state;
	struct queue q = {0};
	struct waiting w;
	char order[64] = "";
	for (int i = 0; i < 5; i++) {
		char run[16];
		snprintf(run, sizeof run, "a%d", i);
		queue_add(&q, "a", run, 100 - i); /* the last is the oldest */
	}
	queue_add(&q, "b", "b0", 500);
	queue_add(&q, "c", "c0", 600);
	queue_add(&q, "b", "b1", 501);
	queue_add(&q, "b", "b1", 501);
	assert_int_equal(q.n, 8);
	while (queue_take(&q, anyone, NULL, &w)) {
		strcat(order, w.run);
		strcat(order, " ");
	}
	assert_string_equal(order, "a4 b0 c0 a3 b1 a2 a1 a0 ");
	/* One that is at its limit is passed over, not waited for. */
	queue_add(&q, "a", "a9", 1);
	queue_add(&q, "b", "b9", 2);
	assert_true(queue_take(&q, but_not, (void *)(uintptr_t) "a", &w));
	assert_string_equal(w.run, "b9");
	assert_false(queue_take(&q, but_not, (void *)(uintptr_t) "a", &w));
	assert_false(queue_remove(&q, "b", "a9"));
	assert_false(queue_take_older(&q, 1, &w));
	assert_true(queue_take_older(&q, 2, &w));
	assert_int_equal(q.n, 0);
	/* Whoever was put back comes before those behind it, is not thrown out while its start is asked for, and is
	 * one. */
	queue_add(&q, "a", "a20", -7); /* from before the machine's start */
	queue_add(&q, "a", "a21", 8);
	assert_true(queue_take(&q, anyone, NULL, &w));
	assert_string_equal(w.run, "a20");
	w.expires_at = 5;
	w.asked_at = 6;
	queue_put_back(&q, &w);
	queue_add(&q, "a", "a20", 9);
	assert_int_equal(q.n, 2);
	assert_int_equal(queue_asked(&q, "a", "a20"), 6);
	assert_int_equal(queue_asked(&q, "a", "a21"), 0);
	assert_int_equal(queue_asked(&q, "b", "a20"), 0);
	assert_false(queue_take_older(&q, 8, &w));
	assert_true(queue_take(&q, anyone, NULL, &w));
	assert_string_equal(w.run, "a20");
	assert_int_equal(w.expires_at, 5);
	queue_free(&q);
}

/* However many one tenant has waiting, another's first is next, and is next but one at the latest. */
static void t_crowd(void **state)
{
	(void)state;
	struct queue q = {0};
	struct waiting w;
	char run[32];
	for (int i = 0; i < QUEUE_MAX - 3; i++) {
		snprintf(run, sizeof run, "run-%d", i);
		queue_add(&q, "crowd", run, i);
	}
	assert_true(queue_take(&q, anyone, NULL, &w));
	assert_string_equal(w.run, "run-0");
	/* Names before and behind the crowd's. */
	queue_add(&q, "aaa", "first", QUEUE_MAX);
	queue_add(&q, "zzz", "first", QUEUE_MAX + 1);
	char order[100] = "";
	for (int i = 0; i < 4; i++) {
		assert_true(queue_take(&q, anyone, NULL, &w));
		strcat(strcat(order, w.tenant), " ");
	}
	assert_string_equal(order, "zzz aaa crowd crowd ");
	/* A full queue takes no more; what is there already is no more. */
	for (int i = 0; i < 20; i++) {
		snprintf(run, sizeof run, "more-%d", i);
		queue_add(&q, "crowd", run, 1);
	}
	assert_int_equal(q.n, QUEUE_MAX);
	queue_free(&q);
}

static void t_exit_codes(void **state)
{
	(void)state;
	assert_int_equal(verdict_exit_code(true, -9), 137);
	assert_int_equal(verdict_exit_code(true, 3), 3);
	assert_int_equal(verdict_exit_code(false, 0), 127);
}

static enum err read_text(struct request *rq, const char *text)
{
	own_fd int fd = bundle_new("request");
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	return request_read(rq, fd);
}

static void t_request(void **state)
{
	(void)state;
	struct request rq;
	own_buf struct buf b;
	buf_init(&b, 100000);
	assert_int_equal(read_text(&rq,
				   "{\"instruction\":\"fix \\\"it\\\"\",\"allowedPaths\":[\"src/**\"],"
				   "\"checks\":[[\"git\",\"diff\",\"--check\"],[\"python3\",\"-m\",\"pytest\",\"-q\"]],"
				   "\"permissions\":{\"bash\":\"ask\"}}"),
			 ERR_OK);
	struct request_facts f = {.run = "r-1",
				  .model = "m",
				  .max_steps = 12,
				  .wall_seconds = 180,
				  .tool_output_bytes = 200000,
				  .patch_bytes = 100000,
				  .gateway_port = 9797};
	request_write(&b, &rq, &f);
	assert_string_equal(
	    buf_cstr(&b),
	    "{\"task_id\":\"r-1\",\"run_id\":\"r-1\",\"instruction\":\"fix \\\"it\\\"\","
	    "\"allowed_paths\":[\"src/**\"],\"verification\":[{\"name\":\"check-1\",\"argv\":[\"git\",\"diff\","
	    "\"--check\"]},{\"name\":\"check-2\",\"argv\":[\"python3\",\"-m\",\"pytest\",\"-q\"]}],"
	    "\"limits\":{\"max_steps\":12,\"wall_time_seconds\":180,\"max_tool_output_bytes\":200000,"
	    "\"max_patch_bytes\":100000},\"model\":\"m\",\"gateway_url\":\"http://127.0.0.1:9797/internal/v1\","
	    "\"permissions\":{\"bash\":\"ask\"}}");
	request_free(&rq);
	static const char *const bad[] = {
	    "",
	    "[]",
	    "{}",
	    "{\"instruction\":\"x\",\"allowedPaths\":[],\"checks\":[[\"a\"]]}",
	    "{\"instruction\":\"x\",\"allowedPaths\":[\"a\"],\"checks\":[[]]}",
	    "{\"instruction\":\"x\",\"allowedPaths\":[1],\"checks\":[[\"a\"]]}",
	    "{\"instruction\":\"x\",\"allowedPaths\":[\"a\\u0000b\"],\"checks\":[[\"a\"]]}",
	    ("{\"instruction\":\"x\",\"allowedPaths\":[\"a\"],\"checks\":[[\"a\"],[\"a\"],[\"a\"],"
	     "[\"a\"],[\"a\"]]}")};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(read_text(&rq, bad[i]), ERR_INTERNAL_ERROR);
		request_free(&rq);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_queue), cmocka_unit_test(t_crowd),
					   cmocka_unit_test(t_exit_codes), cmocka_unit_test(t_request)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
