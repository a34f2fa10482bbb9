/*
 * Calls against a small answerer in a thread that can lose a connection, refuse, be late to start, and
 * answer with what nobody asked for.
 */
#include "gen/store_msg.h"
#include "lib/ask.h"
#include "lib/chan.h"
#include "tests/patience.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum act { ANSWER, REFUSE, LOSE, STALE_FIRST, GARBAGE, FDS, HANG_UP_AT_HELLO, END };

struct server {
	char dir[32], path[64];
	int listener;
	const enum act *script; /* one act a question, over all connections */
	uint64_t ops[16], clients[16];
	size_t asked, greeted;
	pthread_t thread;
};

static void reply_ok(int fd, uint64_t op, int nfds)
{
	uint8_t b[64];
	struct st_ok ok = {0};
	size_t n = st_put_ok(b, sizeof b, op, &ok);
	int fds[1] = {fd};
	chan_send(fd, b, n, fds, nfds);
}

/* False: the connection is over. */
static bool answer_one(struct server *s, int fd, const uint8_t *frame, size_t n)
{
	uint16_t number;
	uint64_t op;
	uint8_t b[1024];
	if (!wire_peek(frame, n, &number, &op))
		return false;
	if (number == ST_HELLO) {
		struct st_welcome w = {.version = ST_VERSION};
		struct st_hello h;
		if (!st_get_hello(frame, n, &h))
			return false;
		s->clients[s->greeted++ % 16] = h.client;
		if (*s->script == HANG_UP_AT_HELLO) {
			s->script++;
			return false;
		}
		return chan_send(fd, b, st_put_welcome(b, sizeof b, op, &w), NULL, 0) == 0;
	}
	s->ops[s->asked++ % 16] = op;
	switch (*s->script++) {
	case ANSWER:
		reply_ok(fd, op, 0);
		return true;
	case REFUSE: {
		struct st_fail f = {.code = ERR_RUN_NOT_FOUND, .field = "run", .detail = "no such run"};
		chan_send(fd, b, st_put_fail(b, sizeof b, op, &f), NULL, 0);
		return true;
	}
	case STALE_FIRST:
		reply_ok(fd, op - 1, 1);
		reply_ok(fd, op, 0);
		return true;
	case GARBAGE:
		chan_send(fd, "garbage", 7, NULL, 0);
		return true;
	case FDS:
		reply_ok(fd, op, 1);
		return true;
	default:
		return false;
	}
}

static void *serve(void *arg)
{
	struct server *s = arg;
	while (*s->script != END) {
		int fd = accept(s->listener, NULL, NULL), fds[WIRE_MAX_FDS], nfds;
		if (fd < 0)
			break;
		uint8_t frame[4096];
		ssize_t n;
		while ((n = chan_recv(fd, frame, sizeof frame, fds, &nfds)) > 0) {
			chan_close_fds(fds, nfds);
			if (!answer_one(s, fd, frame, (size_t)n))
				break;
		}
		close(fd);
	}
	return NULL;
}

static struct ask *start(struct server *s, const enum act *script)
{
	memset(s, 0, sizeof *s);
	snprintf(s->dir, sizeof s->dir, "/tmp/pinfold-test-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	snprintf(s->path, sizeof s->path, "%s/s", s->dir);
	s->script = script;
	s->listener = chan_listen(s->path, SOCK_SEQPACKET, 0600, (uid_t)-1, (gid_t)-1, 8);
	assert_true(s->listener >= 0);
	struct ask *a = ask_new(s->path, PATIENCE_MS);
	assert_non_null(a);
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
	return a;
}

static void end(struct server *s, struct ask *a)
{
	ask_free(a);
	shutdown(s->listener, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->listener);
	unlink(s->path);
	rmdir(s->dir);
}

static enum err ping(struct ask *a)
{
	struct st_ping m = {0};
	struct st_ok ok;
	return st_call_ping(a, &m, NULL, &ok, NULL);
}

static void t_answers(void **state)
{
	(void)state;
	static const enum act script[] = {ANSWER, REFUSE, STALE_FIRST, ANSWER, END};
	struct server s;
	struct ask *a = start(&s, script);
	assert_int_equal(ping(a), ERR_OK);
	assert_int_equal(ping(a), ERR_RUN_NOT_FOUND);
	assert_string_equal(ask_field(a), "run");
	assert_string_equal(ask_detail(a), "no such run");
	assert_int_equal(ping(a), ERR_OK);
	assert_string_equal(ask_field(a), "");
	assert_int_equal(ping(a), ERR_OK);
	assert_int_equal(s.ops[2], s.ops[1] + 1);
	end(&s, a);
}

static void t_lost(void **state)
{
	(void)state;
	static const enum act script[] = {LOSE, HANG_UP_AT_HELLO, LOSE, ANSWER, ANSWER, END};
	struct server s;
	struct ask *a = start(&s, script);
	/* Asked again under the same id until it is answered. */
	assert_int_equal(ping(a), ERR_OK);
	assert_int_equal(s.asked, 3);
	assert_true(s.ops[0] == s.ops[1] && s.ops[1] == s.ops[2]);
	assert_true(s.clients[0] != 0 && s.clients[0] == s.clients[1]);
	assert_int_equal(ping(a), ERR_OK);
	assert_true(s.ops[3] > s.ops[0]);
	end(&s, a);
}

static void t_nonsense(void **state)
{
	(void)state;
	static const enum act script[] = {GARBAGE, ANSWER, FDS, ANSWER, END};
	struct server s;
	struct ask *a = start(&s, script);
	assert_int_equal(ping(a), ERR_OK);
	assert_int_equal(ping(a), ERR_STORE_UNAVAILABLE);
	assert_int_equal(ask_fd(a), -1);
	assert_int_equal(ping(a), ERR_OK);
	end(&s, a);
}

/* Asked once more by its caller: the same operation, whatever was said to connect in between. */
static void t_repeat(void **state)
{
	(void)state;
	static const enum act script[] = {ANSWER, FDS, LOSE, ANSWER, ANSWER, END};
	struct server s;
	struct ask *a = start(&s, script);
	assert_int_equal(ping(a), ERR_OK);
	assert_int_equal(ping(a), ERR_STORE_UNAVAILABLE);
	ask_repeat(a);
	assert_int_equal(ping(a), ERR_OK);
	assert_int_equal(ping(a), ERR_OK);
	assert_true(s.ops[0] != s.ops[1] && s.ops[1] == s.ops[2] && s.ops[2] == s.ops[3] && s.ops[3] != s.ops[4]);
	end(&s, a);
}

static void t_nobody(void **state)
{
	(void)state;
	struct ask *a = ask_new("/nonexistent/socket", 50);
	assert_non_null(a);
	assert_int_equal(ping(a), ERR_STORE_UNAVAILABLE);
	struct ask_answer answer;
	assert_int_equal(ask_wait(a, 0, &answer), -1);
	ask_free(a);
	char longer[300];
	memset(longer, 'x', 299);
	longer[299] = 0;
	assert_null(ask_new(longer, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_answers), cmocka_unit_test(t_lost),
					   cmocka_unit_test(t_nonsense), cmocka_unit_test(t_repeat),
					   cmocka_unit_test(t_nobody)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
