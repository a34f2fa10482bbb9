/*
 * Gets the configuration without reading it: a child that has given up root parses the files and writes
 * messages into a memfd, which is sealed when the child is dead. Trusts the files' author (root) only within
 * the rules checked here. Secrets are bytes that are copied from files, never looked at.
 */
#include "sandboxd/settings.h"
#include "lib/clock.h"
#include "lib/die.h"
#include "lib/own_fd.h"
#include "lib/packet.h"
#include "lib/place.h"
#include "lib/wipe.h"
#include "lib/wire.h"
#include "sandboxd/folders.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534, PARSE_MS = 10000, BOXES_MAX = 1024, UID_LOWEST = 1000, CONF_MOST = 32 << 20 };

/* Nothing of the configuration is known yet, so the child becomes nobody; the group of the folder, unless it
 * is root's, lets it read files that others may not. */
static void become_parser(int out, gid_t reader) __attribute__((noreturn));
static void become_parser(int out, gid_t reader)
{
	char program[512], root[512];
	snprintf(program, sizeof program, "%s/pinfold-conf", place_dir(PLACE_LIBEXEC));
	snprintf(root, sizeof root, "PINFOLD_ROOT=%s", place_root());
	char *const argv[] = {(char[]){"pinfold-conf"}, NULL};
	char *const env[] = {(char[]){"PATH=/usr/bin:/bin"}, (char[]){"LANG=C.UTF-8"}, root, NULL};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (setgroups(reader != 0 ? 1 : 0, &reader) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
	    setresuid(NOBODY, NOBODY, NOBODY) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
	    (out == 3 ? fcntl(3, F_SETFD, 0) : dup2(out, 3)) < 0 || close_range(4, ~0u, 0) != 0)
		_exit(125);
	execve(program, argv, env);
	fatal("cannot run %s: %m", program);
}

static void parse(int out)
{
	const char *dir = place_dir(PLACE_SYSCONF);
	own_fd int etc = folder_check(dir);
	struct stat st;
	if (etc < 0 || fstat(etc, &st) != 0)
		unfit("%s is missing; run pinfold setup", dir);
	pid_t pid = fork();
	if (pid == 0)
		become_parser(out, st.st_gid);
	own_fd int pidfd = pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		fatal("cannot start pinfold-conf: %m");
	if (poll(&(struct pollfd){.fd = pidfd, .events = POLLIN}, 1, PARSE_MS) != 1)
		syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	siginfo_t info = {0};
	if (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) != 0 || info.si_code != CLD_EXITED)
		fatal("pinfold-conf was killed, or took longer than %d s", PARSE_MS / 1000);
	if (info.si_status != 0) /* the parser may also have lacked something that the next one has */
		(info.si_status == UNFIT ? unfit : fatal)("%s is not acceptable; run pinfold config check", dir);
}

/* One message: what root needs is kept, the rest is the daemons' business, who look at all of it. */
static bool take(struct settings *s, uint16_t number, struct wire_bytes f, bool *ended)
{
	struct cf_shared_gid shared;
	struct cf_end end;
	switch (number) {
	case CF_GLOBAL:
		return cf_get_global(f.p, f.n, &s->global);
	case CF_ROLE:
		return s->nroles < SETTINGS_ROLES && cf_get_role(f.p, f.n, &s->roles[s->nroles++]);
	case CF_SHARED_GID:
		if (!cf_get_shared_gid(f.p, f.n, &shared))
			return false;
		s->shared_gid = shared.gid;
		return true;
	case CF_SECRET:
		return s->nsecrets < SETTINGS_SECRETS && cf_get_secret(f.p, f.n, &s->secrets[s->nsecrets++]);
	case CF_END:
		*ended = cf_get_end(f.p, f.n, &end);
		return *ended;
	default:
		return true;
	}
}

static bool decode(struct settings *s, int fd)
{
	struct stat st;
	bool ended = false;
	if (fstat(fd, &st) != 0 || st.st_size <= 0 || st.st_size > CONF_MOST)
		return false;
	size_t n = (size_t)st.st_size;
	s->storage = malloc(n);
	if (s->storage == NULL || pread(fd, s->storage, n, 0) != st.st_size)
		return false;
	struct wire_r r = wire_open_plain(s->storage, n);
	while (r.left > 0) {
		struct wire_bytes f = wire_get_bytes(&r, CF_MAXFRAME);
		uint16_t number;
		uint64_t op;
		if (r.bad || ended || !wire_peek(f.p, f.n, &number, &op) || !take(s, number, f, &ended))
			return false;
	}
	return ended && s->global.run_dir != NULL;
}

const struct cf_role *settings_role(const struct settings *s, const char *name)
{
	for (uint32_t i = 0; i < s->nroles; i++)
		if (strcmp(s->roles[i].name, name) == 0)
			return &s->roles[i];
	return NULL;
}

static bool in_range(uint32_t id, const struct cf_global *g)
{
	return id >= g->box_uid_base && id < g->box_uid_base + BOX_UIDS * g->max_boxes;
}

static void check(const struct settings *c)
{
	const struct cf_global *g = &c->global;
	if (strcmp(g->run_dir, place_dir(PLACE_RUN)) != 0 || strcmp(g->state_dir, place_dir(PLACE_STATE)) != 0 ||
	    strcmp(g->log_dir, place_dir(PLACE_LOG)) != 0 || strcmp(g->libexec_dir, place_dir(PLACE_LIBEXEC)) != 0)
		unfit("the configuration names other folders than this program has; is it from another version?");
	if (g->max_boxes < 1 || g->max_boxes > BOXES_MAX || g->gateway_port == 0)
		unfit("the configuration must allow 1 to %d boxes and name a gateway port", BOXES_MAX);
	if (g->box_uid_base < UID_LOWEST || g->box_uid_base > (uint32_t)INT32_MAX - BOX_UIDS * BOXES_MAX)
		unfit("box_uid_base %u is out of range; the first uid of boxes is at least %d", g->box_uid_base,
		      UID_LOWEST);
	if (g->web_gid == 0 || c->shared_gid == 0 || in_range(g->web_gid, g) || in_range(c->shared_gid, g) ||
	    in_range(NOBODY, g))
		unfit("the web server's and the shared group must be neither root's nor in the range of box uids");
	for (int i = 0; i < CHILD__COUNT; i++) {
		const char *name = child_rows[i].name;
		const struct cf_role *r = settings_role(c, name);
		if (r == NULL)
			unfit("the configuration has no user for %s", name);
		if (r->uid == 0 || r->gid == 0)
			unfit("%s must not run as root; give it a user of its own", name);
		if (r->uid == NOBODY) /* what the parser is, and what other services may be */
			unfit("%s must not run as nobody; give it a user of its own", name);
		if (in_range(r->uid, g) || in_range(r->gid, g))
			unfit("the user of %s (%u) is in the range of box uids; move box_uid_base", name, r->uid);
		for (int j = 0; j < i; j++)
			if (settings_role(c, child_rows[j].name)->uid == r->uid)
				unfit("%s and %s have the same user; give each its own", child_rows[j].name, name);
	}
}

/* Copies one secret's frame; NULL, or what is wrong with its file. */
static const char *copy_secret(int dir, const struct cf_secret *s, int to)
{
	if (s->name[0] == '.' || s->name[0] == '\0' || strchr(s->name, '/') != NULL)
		return "must have a plain file name";
	own_fd int fd = openat(dir, s->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 && errno == ENOENT)
		return s->least == 0 ? NULL : "is missing";
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != 0)
		return "must be a regular file of root's";
	if ((st.st_mode & 077) != 0) {
		log_warn("secret %s could be read by others (mode %04o); narrowed to 0600", s->name,
			 st.st_mode & 07777u);
		if (fchmod(fd, 0600) != 0)
			return "cannot be narrowed to 0600";
	}
	uint8_t frame[1 + 64 + 2 + SECRET_MAX + 1];
	size_t n = strlen(s->name);
	frame[0] = (uint8_t)n;
	memcpy(frame + 1, s->name, n);
	uint8_t *value = frame + n + 3;
	ssize_t got = read(fd, value, SECRET_MAX + 1), real = got;
	frame[n + 1] = (uint8_t)(got >> 8);
	frame[n + 2] = (uint8_t)got;
	while (real > 0 && (value[real - 1] == '\n' || value[real - 1] == '\r'))
		real--; /* its user does not count them */
	bool ok = got >= 0 && got <= SECRET_MAX, sent = ok && write_all(to, frame, n + 3 + (size_t)got);
	wipe(frame, sizeof frame);
	return !ok                        ? "cannot be read, or is too long"
	       : !sent                    ? "cannot be passed on"
	       : real < (ssize_t)s->least ? "is too short"
					  : NULL;
}

/* Fills each child's. */
static void read_secrets(const struct settings *c, const struct given *g)
{
	char path[512];
	snprintf(path, sizeof path, "%s/secrets", place_dir(PLACE_SYSCONF));
	own_fd int dir = folder_check(path);
	struct stat st;
	if (dir >= 0 && fstat(dir, &st) == 0 && (st.st_mode & 077) != 0) {
		log_warn("%s was open to others (mode %04o); narrowed to 0700", path, st.st_mode & 07777u);
		if (fchmod(dir, 0700) != 0)
			unfit("%s cannot be narrowed to 0700: %m", path);
	}
	for (uint32_t i = 0; i < c->nsecrets; i++) {
		const struct cf_secret *s = &c->secrets[i];
		const char *why = NULL;
		for (int k = 0; k < CHILD__COUNT && why == NULL; k++)
			if (strcmp(s->role, child_rows[k].name) == 0)
				why = copy_secret(dir, s, g->secrets[k]);
		if (why != NULL)
			unfit("the secret %s/%s %s%s (%s needs %u bytes)", path, s->name, why,
			      s->least > 0 ? ": remove it and run pinfold setup, which makes one" : "", s->role,
			      s->least);
	}
}

int settings_keys(const struct given *g, const char *agent)
{
	struct settings now = {.nsecrets = 0};
	char path[512], role[140];
	snprintf(path, sizeof path, "%s/secrets", place_dir(PLACE_SYSCONF));
	snprintf(role, sizeof role, "agent/%s", agent);
	own_fd int dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), keys = bundle_new("secrets");
	const char *why = keys >= 0 && decode(&now, g->conf) ? NULL : "cannot be passed on";
	for (uint32_t i = 0; i < now.nsecrets && why == NULL; i++)
		if (strcmp(now.secrets[i].role, role) == 0)
			why = copy_secret(dir, &now.secrets[i], keys);
	if (why != NULL)
		log_error("a key of agent %s %s", agent, why);
	free(now.storage);
	return why == NULL && bundle_seal(keys) ? steal_fd(&keys) : -1;
}

bool given_open(struct given *g)
{
	bool ok = (g->conf = bundle_new("pinfold-conf")) >= 0;
	for (int i = 0; i < CHILD__COUNT; i++)
		ok = (g->secrets[i] = bundle_new("secrets")) >= 0 && ok;
	return ok;
}

void given_close(struct given *g)
{
	chan_close_fds(&g->conf, 1);
	chan_close_fds(g->secrets, CHILD__COUNT);
}

void settings_load(struct settings *c, const struct given *g)
{
	parse(g->conf);
	if (!decode(c, g->conf))
		unfit("pinfold-conf wrote what cannot be read; is it from another version?");
	check(c);
	read_secrets(c, g);
	bool sealed = bundle_seal(g->conf);
	for (int i = 0; i < CHILD__COUNT; i++)
		sealed = bundle_seal(g->secrets[i]) && sealed;
	if (!sealed)
		fatal("cannot seal what the daemons are given: %m");
}
