/*
 * The server of bench/engine.h: one thread, one epoll, as stored is, but without its batches: a commit, then its
 * answer. The operation writes what stored's writes: capability, run and the kept answer, in one transaction.
 */
#include "bench/engine.h"
#include "gen/records.h"
#include "gen/store_msg.h"
#include "lib/chan.h"
#include "lib/die.h"
#include "lib/num.h"
#include "tests/store/harness.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RECORD = 4096, KEY = 600, EVENTS = 64, BACKLOG = 128 };
static const char tenant[] = "bench", role[] = "1";

/* One connection; its client id is known from HELLO on. */
struct peer {
	int fd;
	uint64_t client;
};

static void fill(const struct engine *e, unsigned runs)
{
	uint8_t key[KEY], value[RECORD];
	struct st_run_create like = rig_run(tenant, "b");
	static const uint8_t sha[32] = {4};
	e->begin();
	for (unsigned i = 0; i < runs; i++) {
		char run[32];
		(void)snprintf(run, sizeof run, "b%u", i);
		struct rec_capability cap = {.model = like.model,
					     .fingerprint = like.fingerprint,
					     .expires_at = clock_ms() + 3600 * 1000,
					     .max_requests = UINT32_MAX};
		struct rec_run r = {.agent = like.agent,
				    .profile = like.profile,
				    .provider = like.provider,
				    .model = like.model,
				    .fingerprint = like.fingerprint,
				    .created_at = clock_ms(),
				    .max_requests = UINT32_MAX,
				    .terminal_reason = "",
				    .error = "",
				    .request_sha = {sha, sizeof sha},
				    .upload_sha = {sha, sizeof sha},
				    .created_by = like.created_by};
		size_t n = rec_put_capability(value, sizeof value, &cap);
		e->put(ENGINE_CAPABILITY, key, rec_key_capability(key, sizeof key, tenant, run), value, n);
		n = rec_put_run(value, sizeof value, &r);
		e->put(ENGINE_RUN, key, rec_key_run(key, sizeof key, tenant, run), value, n);
	}
	e->commit();
}

static bool same(struct wire_bytes a, struct wire_bytes b)
{
	return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

/* As store/op_capability.c; the answer's length. */
static size_t consume(const struct engine *e, uint64_t client, uint64_t op, const struct st_cap_consume *m,
		      uint8_t answer[ST_MAX_CAP_IS])
{
	uint8_t kept[RECORD], capability[RECORD], record[RECORD], key[KEY], value[RECORD];
	struct rec_operation last;
	struct rec_capability cap;
	struct rec_run r;
	e->begin();
	size_t nkey = rec_key_operation(key, sizeof key, role, client);
	size_t n = e->get(ENGINE_OPERATION, key, nkey, kept, sizeof kept);
	if (n > 0 && (!rec_get_operation(kept, n, &last) || (int64_t)(op - last.op) <= 0))
		fatal("an operation id came twice");
	n = e->get(ENGINE_RUN, key, rec_key_run(key, sizeof key, m->tenant, m->run), record, sizeof record);
	if (n == 0 || !rec_get_run(record, n, &r))
		fatal("there is no run %s", m->run);
	nkey = rec_key_capability(key, sizeof key, m->tenant, m->run);
	n = e->get(ENGINE_CAPABILITY, key, nkey, capability, sizeof capability);
	if (n == 0 || !rec_get_capability(capability, n, &cap) || strcmp(cap.model, m->model) != 0 ||
	    !same(cap.fingerprint, m->fingerprint) || cap.expires_at <= clock_ms() ||
	    cap.used_requests >= cap.max_requests)
		fatal("a consume was refused");
	cap.used_requests++;
	e->put(ENGINE_CAPABILITY, key, nkey, value, rec_put_capability(value, sizeof value, &cap));
	r.used_requests = cap.used_requests;
	r.updated_at = clock_ms();
	n = rec_put_run(value, sizeof value, &r);
	e->put(ENGINE_RUN, key, rec_key_run(key, sizeof key, m->tenant, m->run), value, n);
	struct st_cap_is is = {.remaining = cap.max_requests - cap.used_requests};
	size_t nanswer = st_put_cap_is(answer, ST_MAX_CAP_IS, op, &is);
	struct rec_operation now = {.op = op, .at = clock_ms(), .answer = {answer, (uint32_t)nanswer}};
	n = rec_put_operation(value, sizeof value, &now);
	e->put(ENGINE_OPERATION, key, rec_key_operation(key, sizeof key, role, client), value, n);
	e->commit();
	return nanswer;
}

/* One packet. False: the peer has left. */
static bool one(const struct engine *e, struct peer *c)
{
	static uint8_t frame[ST_MAXFRAME], answer[ST_MAX_CAP_IS + ST_MAX_WELCOME];
	int fds[WIRE_MAX_FDS], nfds = 0;
	uint16_t number;
	uint64_t op;
	union {
		struct st_hello hello;
		struct st_cap_consume consume;
	} m;
	ssize_t got = chan_recv(c->fd, frame, sizeof frame, fds, &nfds);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (got <= 0 || !wire_peek(frame, (size_t)got, &number, &op))
		return false;
	size_t n = 0;
	if (number == ST_HELLO && st_get_hello(frame, (size_t)got, &m.hello)) {
		struct st_welcome w = {.version = ST_VERSION};
		c->client = m.hello.client;
		n = st_put_welcome(answer, sizeof answer, op, &w);
	} else if (number == ST_CAP_CONSUME && st_get_cap_consume(frame, (size_t)got, &m.consume)) {
		n = consume(e, c->client, op, &m.consume, answer);
	}
	return n > 0 && chan_send(c->fd, answer, n, NULL, 0) == 0;
}

static void watch(int epoll, int fd, void *who)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = who};
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &ev) != 0)
		fatal("epoll: %m");
}

void engine_serve(const struct engine *e, const char *sock, const char *dir, unsigned runs)
{
	e->open(dir);
	fill(e, runs);
	int listener = chan_listen(sock, SOCK_SEQPACKET, 0666, 0, 0, BACKLOG), epoll = epoll_create1(EPOLL_CLOEXEC);
	if (listener < 0 || epoll < 0)
		fatal("%s: %m", sock);
	watch(epoll, listener, &listener);
	for (;;) {
		struct epoll_event ev[EVENTS];
		int n = epoll_wait(epoll, ev, EVENTS, -1);
		for (int i = 0; i < n; i++) {
			struct peer *c = ev[i].data.ptr;
			if (ev[i].data.ptr == &listener) {
				c = calloc(1, sizeof *c);
				if (c == NULL)
					fatal("no memory");
				c->fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
				if (c->fd >= 0)
					watch(epoll, c->fd, c);
				else
					free(c);
			} else if (!one(e, c)) {
				close(c->fd);
				free(c);
			}
		}
	}
}
