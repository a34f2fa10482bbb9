/*
 * Connections. A peer is what its uid says (SO_PEERCRED against the configured roles); what it sends
 * goes through the generated dispatcher, and any violation closes that connection alone.
 */
#include "lib/chan.h"
#include "lib/die.h"
#include "lib/num.h"
#include "store/server.h"
#include "store/uploads.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *const role_names[ST_ROLE__COUNT] = {
    [ST_ROLE_FCGI] = "fcgi",   [ST_ROLE_GATEWAY] = "gateway", [ST_ROLE_STEWARD] = "steward",
    [ST_ROLE_ADMIN] = "admin", [ST_ROLE_PUSH] = "push",
};

const char *client_role(const struct st_from *c)
{
	return role_names[c->wire.role];
}

/* One audit line, unless there were too many of its kind lately. */
static void note(struct server *sv, struct pace *pace, struct audit_line l)
{
	uint32_t held;
	size_t n = 0;
	if (!pace_take(pace, pace_source, timer_ms(), &held))
		return;
	while (n < AUDIT_VALUES - 1 && l.v[n].field != AUDIT_F_NONE)
		n++;
	if (held > 0)
		l.v[n] = (struct audit_value){AUDIT_F_SUPPRESSED, .number = held};
	l.actor = "system";
	audit_note(sv->audit, store_now(sv->store), &l);
}

/* admin.sock is root's alone, store.sock the other roles'. False: nobody we serve. */
static bool role_of(const struct server *sv, uid_t uid, bool admin, uint8_t *role)
{
	static const uint8_t roles[] = {ST_ROLE_FCGI, ST_ROLE_GATEWAY, ST_ROLE_STEWARD, ST_ROLE_PUSH};
	*role = ST_ROLE_ADMIN;
	if (admin)
		return uid == 0;
	for (size_t i = 0; i < sizeof roles; i++) {
		const struct cf_role *r = conf_role(sv->conf, role_names[roles[i]]);
		*role = roles[i];
		if (r != NULL && r->uid == uid)
			return true;
	}
	return false;
}

static struct st_from *client_new(struct server *sv, int fd, bool admin)
{
	uid_t uid;
	pid_t pid;
	uint8_t role;
	if (!chan_peer(fd, &uid, &pid))
		return NULL;
	if (!role_of(sv, uid, admin, &role)) {
		log_warn("a connection of uid %u (pid %d) was refused: that uid has no role here", (unsigned)uid,
			 (int)pid);
		note(sv, &sv->strangers,
		     (struct audit_line){.event = AUDIT_CALLER_REFUSED,
					 .v = {{AUDIT_F_UID, .number = uid}, {AUDIT_F_PID, .number = (uint64_t)pid}}});
		return NULL;
	}
	if (admin ? sv->nadmin >= CLIENTS_ADMIN : sv->nclients - sv->nadmin >= CLIENTS_MAX - CLIENTS_ADMIN) {
		log_warn("a connection of %s was refused: too many are open", role_names[role]);
		return NULL;
	}
	struct st_from *c = calloc(1, sizeof *c);
	if (c == NULL)
		return NULL;
	*c = (struct st_from){.server = sv, .fd = fd, .uid = uid, .pid = pid, .wire.role = role};
	/* An answer may be as large as a frame; refused or capped is no harm. */
	int room = 2 * ST_MAXFRAME;
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
	if (epoll_ctl(sv->epoll, EPOLL_CTL_ADD, fd, &ev) != 0) {
		free(c);
		return NULL;
	}
	return c;
}

void client_accept(struct server *sv, int listener, bool admin)
{
	for (int i = 0; i < 16; i++) {
		int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
				log_warn("cannot take a connection: %m");
				(void)usleep(10000); /* what there is must not become a spin */
			}
			return;
		}
		struct st_from *c = client_new(sv, fd, admin);
		if (c == NULL) {
			close(fd);
			continue;
		}
		c->next = sv->clients;
		sv->clients = c;
		sv->nclients++;
		if (admin)
			sv->nadmin++;
	}
}

void client_close(struct st_from *c, const char *why)
{
	if (c->closing)
		return;
	c->closing = true;
	if (why != NULL)
		log_warn("the connection of %s (uid %u, pid %d) is closed: %s", client_role(c), (unsigned)c->uid,
			 (int)c->pid, why);
}

void clients_sweep(struct server *sv)
{
	for (struct st_from **at = &sv->clients; *at != NULL;) {
		struct st_from *c = *at;
		if (!c->closing) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		if (sv->backup == c)
			backup_over(sv);
		sv->nclients--;
		if (c->wire.role == ST_ROLE_ADMIN)
			sv->nadmin--;
		close(c->fd); /* leaves the epoll set by that */
		wakes_free(&c->waiting);
		upload_free(c->upload);
		free(c);
	}
}

void client_read(struct st_from *c)
{
	struct server *sv = c->server;
	int fds[WIRE_MAX_FDS], nfds = 0;
	ssize_t n = chan_recv(c->fd, sv->in, sizeof sv->in, fds, &nfds);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		client_close(c, n < 0 && errno == EBADMSG ? "a packet too large or with too many descriptors" : NULL);
		return;
	}
	const char *why = "a subscriber may not ask";
	if (!c->subscribed)
		why = st_dispatch(&c->wire, c, sv->in, (size_t)n, fds, nfds);
	if (why != NULL) {
		chan_close_fds(fds, nfds);
		note(sv, &sv->violations,
		     (struct audit_line){.event = AUDIT_PROTOCOL_VIOLATION,
					 .v = {{AUDIT_F_ROLE, .text = client_role(c)},
					       {AUDIT_F_WHY, .text = why},
					       {AUDIT_F_UID, .number = c->uid},
					       {AUDIT_F_PID, .number = (uint64_t)c->pid}}});
		client_close(c, why);
	}
}
