/* See reload.h. sandboxd made the pipe and is trusted; every packet goes through the bounded codec all the same. */
#include "lib/reload.h"
#include "gen/sandbox_msg.h"
#include "lib/chan.h"
#include "lib/die.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>

static void put(const struct reload *r, const uint8_t *frame, size_t n)
{
	if (n == 0 || chan_send(r->control, frame, n, NULL, 0) != 0)
		log_warn("sandboxd cannot be told: %m"); /* it is gone, or ends us */
}

void reload_start(struct reload *r, int control)
{
	uint8_t frame[SBX_MAX_HELLO];
	const struct sbx_hello m = {.version = SBX_VERSION};
	r->control = control;
	put(r, frame, sbx_put_hello(frame, sizeof frame, 0, &m));
}

/* NULL: it is the next one, and waits for the decision. */
static const char *load(struct reload *r, const int fds[2], char why[400])
{
	const struct conf *now = &r->place.now->conf;
	const char *no;
	held_done(r->next);
	r->next = held_load(fds[0], fds[1], &no);
	if (r->next == NULL)
		return no;
	no = conf_restart_needed(now, &r->next->conf);
	if (no != NULL) {
		(void)snprintf(why, 400, "%s needs a restart", no);
		return why;
	}
	return r->fits != NULL ? r->fits(r->arg, r->next, fds[0]) : NULL;
}

static void answer(struct reload *r, const int fds[2])
{
	uint8_t frame[SBX_MAX_LOADED];
	char why[400];
	const char *no = load(r, fds, why);
	const struct sbx_loaded m = {.number = r->number, .fits = no == NULL, .why = no};
	if (no != NULL) {
		log_error("another configuration is refused: %s", no);
		held_done(r->next);
		r->next = NULL;
	}
	put(r, frame, sbx_put_loaded(frame, sizeof frame, 0, &m));
}

static void decide(struct reload *r, const struct sbx_decided *m)
{
	struct held *next = r->next;
	r->next = NULL;
	if (m->commit && (next == NULL || m->number != r->number))
		fatal("another configuration is in force that this process has not: it starts again");
	if (!m->commit) {
		held_done(next);
		return;
	}
	struct held *before = held_swap(&r->place, next);
	if (r->taken != NULL)
		r->taken(r->arg, next, before);
	held_done(before);
}

bool reload_packet(struct reload *r, const uint8_t *frame, size_t n, int *fds, int nfds)
{
	uint16_t number;
	uint64_t op;
	union {
		struct sbx_welcome welcome;
		struct sbx_load load;
		struct sbx_decided decided;
	} m;
	if (!wire_peek(frame, n, &number, &op))
		fatal("sandboxd sent a broken message");
	if (number == SBX_WELCOME && nfds == 0 && sbx_get_welcome(frame, n, &m.welcome)) {
		if (m.welcome.version != SBX_VERSION)
			fatal("sandboxd speaks version %u, this program %d: restart everything after an upgrade",
			      m.welcome.version, SBX_VERSION);
		return true;
	}
	if (number == SBX_LOAD && nfds == 2 && sbx_get_load(frame, n, &m.load)) {
		r->number = m.load.number;
		answer(r, fds);
		chan_close_fds(fds, nfds);
		return true;
	}
	if (number == SBX_DECIDED && nfds == 0 && sbx_get_decided(frame, n, &m.decided)) {
		decide(r, &m.decided);
		return true;
	}
	return false;
}

bool reload_hear(struct reload *r, void (*other)(void *arg, uint16_t number, const uint8_t *frame, size_t n))
{
	uint8_t frame[SBX_MAXFRAME];
	int fds[WIRE_MAX_FDS], nfds = 0;
	uint16_t number = 0;
	uint64_t op;
	struct pollfd p = {.fd = r->control, .events = POLLIN};
	if (poll(&p, 1, 0) <= 0)
		return true;
	ssize_t n = chan_recv(r->control, frame, sizeof frame, fds, &nfds);
	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return false;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n < 0)
		fatal("sandboxd's pipe: %m");
	if (reload_packet(r, frame, (size_t)n, fds, nfds))
		return true;
	if (other == NULL || nfds != 0 || !wire_peek(frame, (size_t)n, &number, &op))
		fatal("sandboxd sent an unexpected message (%u)", number);
	other(r->arg, number, frame, (size_t)n);
	return true;
}
