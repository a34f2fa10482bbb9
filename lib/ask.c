/*
 * One caller's connection to an answerer: connect, HELLO, then question and answer by operation id.
 * Trusts no answer further than its header; descriptors that come with a bad one are closed.
 * Never blocks longer than the caller's patience and never raises SIGPIPE.
 */
#include "lib/ask.h"
#include "gen/store_msg.h"
#include "lib/chan.h"
#include "lib/num.h"
#include "lib/secret.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAUSE_FIRST = 20, PAUSE_LAST = 500, PATH_ROOM = 108 };

struct ask {
	char path[PATH_ROOM];
	unsigned patience;
	int fd;
	uint64_t client, next_op, asked;
	bool repeat;
	void (*waits)(void *ctx);
	void *ctx;
	char field[129], detail[257];
	uint32_t retry_after;
	uint8_t out[ASK_BUFFER], in[ASK_BUFFER];
};

struct ask *ask_new(const char *path, unsigned patience_ms)
{
	size_t n = strlen(path);
	struct ask *a = n < PATH_ROOM ? calloc(1, sizeof *a) : NULL;
	if (a == NULL)
		return NULL;
	memcpy(a->path, path, n + 1);
	a->patience = patience_ms;
	a->fd = -1;
	/* A random start: a restarted caller must not reuse the ids of its former life. */
	random_bytes(&a->next_op, sizeof a->next_op);
	random_bytes(&a->client, sizeof a->client);
	return a;
}

static void hang_up(struct ask *a)
{
	if (a->fd >= 0)
		close(a->fd);
	a->fd = -1;
}

void ask_free(struct ask *a)
{
	if (a == NULL)
		return;
	hang_up(a);
	wipe(a, sizeof *a);
	free(a);
}

void ask_on_wait(struct ask *a, void (*waits)(void *ctx), void *ctx)
{
	a->waits = waits;
	a->ctx = ctx;
}

static void waits(struct ask *a)
{
	if (a->waits != NULL)
		a->waits(a->ctx);
}

uint8_t *ask_buffer(struct ask *a)
{
	return a->out;
}

uint64_t ask_op(struct ask *a)
{
	if (!a->repeat)
		a->asked = a->next_op++;
	a->repeat = false;
	return a->asked;
}

void ask_repeat(struct ask *a)
{
	a->repeat = true;
}

const char *ask_field(const struct ask *a)
{
	return a->field;
}

const char *ask_detail(const struct ask *a)
{
	return a->detail;
}

uint32_t ask_retry_after(const struct ask *a)
{
	return a->retry_after;
}

int ask_fd(const struct ask *a)
{
	return a->fd;
}

void ask_close_fds(struct ask_answer *answer)
{
	chan_close_fds(answer->fds, answer->nfds);
	answer->nfds = 0;
}

void ask_drop(struct ask *a, struct ask_answer *answer)
{
	ask_close_fds(answer);
	hang_up(a);
}

static int left_of(uint64_t deadline)
{
	uint64_t now = timer_ms();
	if (now >= deadline)
		return 0;
	return deadline - now > INT32_MAX ? INT32_MAX : (int)(deadline - now);
}

/* Waits for the event. 1 ready (or broken: the next call will tell), 0 too late. */
static int wait_for(struct ask *a, short events, uint64_t deadline)
{
	waits(a);
	for (;;) {
		struct pollfd p = {.fd = a->fd, .events = events};
		int r = poll(&p, 1, left_of(deadline));
		if (r > 0)
			return 1;
		if (r == 0 || errno != EINTR)
			return 0;
	}
}

static bool send_packet(struct ask *a, const uint8_t *p, size_t n, const int *fds, int nfds, uint64_t deadline)
{
	while (chan_send(a->fd, p, n, fds, nfds) != 0)
		if (errno != EAGAIN || wait_for(a, POLLOUT, deadline) == 0)
			return false;
	return true;
}

static void forget_fds(struct ask_answer *answer)
{
	for (int i = 0; i < WIRE_MAX_FDS; i++)
		answer->fds[i] = -1;
	answer->nfds = 0;
}

/* Takes one packet. 1 got it, 0 too late, -1 the connection is of no use any more. */
static int take_packet(struct ask *a, uint64_t deadline, struct ask_answer *answer)
{
	for (;;) {
		forget_fds(answer);
		ssize_t n = chan_recv(a->fd, a->in, sizeof a->in, answer->fds, &answer->nfds);
		if (n > 0) {
			answer->frame = a->in;
			answer->len = (size_t)n;
			return 1;
		}
		if (n == 0 || errno != EAGAIN)
			return -1;
		if (wait_for(a, POLLIN, deadline) == 0)
			return 0;
	}
}

/* The packet with this operation id. Others are answers to questions that were given up, and wake-ups. */
static bool take_answer(struct ask *a, uint64_t op, uint64_t deadline, struct ask_answer *answer)
{
	/* It is never there at once. */
	if (wait_for(a, POLLIN, deadline) == 0)
		return false;
	while (take_packet(a, deadline, answer) == 1) {
		uint16_t number;
		uint64_t of;
		if (!wire_peek(answer->frame, answer->len, &number, &of))
			break;
		if (of == op)
			return true;
		ask_close_fds(answer);
	}
	ask_close_fds(answer);
	return false;
}

static bool shake_hands(struct ask *a, uint64_t deadline)
{
	uint8_t frame[ST_MAX_HELLO];
	struct st_hello hello = {.version = ST_VERSION, .client = a->client};
	struct st_welcome welcome;
	struct ask_answer answer;
	uint64_t op = a->next_op++;
	size_t n = st_put_hello(frame, sizeof frame, op, &hello);
	if (n == 0 || !send_packet(a, frame, n, NULL, 0, deadline) || !take_answer(a, op, deadline, &answer))
		return false;
	bool ok =
	    answer.nfds == 0 && st_get_welcome(answer.frame, answer.len, &welcome) && welcome.version == ST_VERSION;
	ask_close_fds(&answer);
	return ok;
}

static bool connected(struct ask *a, uint64_t deadline)
{
	if (a->fd >= 0)
		return true;
	waits(a);
	a->fd = chan_connect(a->path);
	if (a->fd < 0)
		return false;
	int flags = fcntl(a->fd, F_GETFL);
	if (flags >= 0 && fcntl(a->fd, F_SETFL, flags | O_NONBLOCK) == 0 && shake_hands(a, deadline))
		return true;
	hang_up(a);
	return false;
}

/* A FAIL becomes its error; anything else is the caller's to decode. */
static enum err judge(struct ask *a, int want_fds, struct ask_answer *answer)
{
	uint16_t number;
	uint64_t op;
	struct st_fail fail;
	if (!wire_peek(answer->frame, answer->len, &number, &op) ||
	    (number == ST_FAIL && !st_get_fail(answer->frame, answer->len, &fail)) ||
	    answer->nfds != (number == ST_FAIL ? 0 : want_fds)) {
		ask_drop(a, answer);
		return ERR_STORE_UNAVAILABLE;
	}
	if (number != ST_FAIL)
		return ERR_OK;
	memcpy(a->field, fail.field, strlen(fail.field) + 1);
	memcpy(a->detail, fail.detail, strlen(fail.detail) + 1);
	a->retry_after = fail.retry_after;
	/* Numbers that this build does not know become internal_error. */
	enum err e = (enum err)fail.code;
	return e == ERR_OK ? ERR_INTERNAL_ERROR : err_find(err_code(e));
}

enum err ask_call(struct ask *a, size_t n, const int *fds, int nfds, int want_fds, struct ask_answer *answer)
{
	uint64_t deadline = timer_ms() + a->patience, op;
	int pause = PAUSE_FIRST;
	uint16_t number;
	a->field[0] = a->detail[0] = 0;
	a->retry_after = 0;
	forget_fds(answer);
	if (n > sizeof a->out || !wire_peek(a->out, n, &number, &op))
		return ERR_INTERNAL_ERROR;
	for (;;) {
		if (connected(a, deadline)) {
			if (send_packet(a, a->out, n, fds, nfds, deadline)) {
				if (take_answer(a, op, deadline, answer))
					return judge(a, want_fds, answer);
			}
			hang_up(a);
		}
		int left = left_of(deadline);
		if (left == 0)
			return ERR_STORE_UNAVAILABLE;
		waits(a);
		poll(NULL, 0, pause < left ? pause : left);
		pause = pause * 2 < PAUSE_LAST ? pause * 2 : PAUSE_LAST;
	}
}

int ask_wait(struct ask *a, int timeout_ms, struct ask_answer *answer)
{
	forget_fds(answer);
	if (a->fd < 0)
		return -1;
	uint64_t deadline = timeout_ms < 0 ? UINT64_MAX : timer_ms() + (uint64_t)timeout_ms;
	for (;;) {
		int r = take_packet(a, deadline, answer);
		if (r < 0)
			hang_up(a);
		if (r != 0 || timeout_ms >= 0)
			return r;
	}
}
