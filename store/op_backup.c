/*
 * A backup is read by its asker, part by part, while the service goes on; what this keeps is that nothing goes away
 * meanwhile. Whoever asks is root. The parts become a store again by recovery (restore.c).
 */
#include "lib/die.h"
#include "lib/num.h"
#include "store/blobs.h"
#include "store/op.h"
#include "store/upgrade.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PART = 196608, IDLE_MS = 120000, NAMES = 2000 };

void backup_over(struct server *sv)
{
	sv->backup = NULL;
	store_hold(sv->store, false);
}

void backup_turn(struct server *sv)
{
	if (sv->backup == NULL)
		return;
	bool idle = timer_ms() - sv->backup_at > IDLE_MS;
	if (!idle && store_roomy(sv->store))
		return;
	log_warn("a backup was cut off: %s", idle ? "nobody went on with it" : "the disk is full");
	backup_over(sv);
}

static enum err mine(struct st_from *from)
{
	if (from->server->backup != from)
		return ERR_BACKUP_OVER;
	from->server->backup_at = timer_ms();
	return ERR_OK;
}

void st_on_backup_begin(struct st_from *from, uint64_t op, const struct st_backup_begin *m, int *fds)
{
	struct server *sv = from->server;
	struct st_backup_is a = {.at = store_now(sv->store)};
	struct audit_mark mark = {0};
	struct meta meta;
	struct txn t;
	enum err e = ERR_OK;
	(void)m;
	(void)fds;
	if (sv->backup != NULL && sv->backup != from)
		e = ERR_BACKUP_BUSY;
	else if (!store_roomy(sv->store))
		e = ERR_STORAGE_FULL;
	txn_init(&t, sv->store, NULL);
	if (e == ERR_OK && !meta_get(&t, &meta))
		e = ERR_INTERNAL_ERROR;
	if (e == ERR_OK) {
		(void)audit_mark_get(&t, &mark);
		a.schema = meta.schema;
		a.generation = meta.generation;
		a.audit_seq = mark.seq;
		/* What was committed in this batch is in the checkpoint. */
		store_flush(sv->store);
		store_hold(sv->store, false);
		store_hold(sv->store, true);
		sv->backup = from;
		sv->backup_at = timer_ms();
	}
	e = txn_end(&t, e);
	op_done(from, op, &t, e, e == ERR_OK ? st_put_backup_is(sv->frame, ST_MAXFRAME, op, &a) : 0, NULL, 0);
}

/* A file that cannot be opened: the asker's mistake, unless it is for a want. */
static enum err refusal(void)
{
	enum err e = store_error(errno);
	return e == ERR_INTERNAL_ERROR ? ERR_INVALID_REQUEST : e;
}

struct names {
	struct wire_list list;
	bool full;
};

static bool add_name(struct names *n, const char *name)
{
	struct st_text item = {.text = name};
	n->full = !LIST_PUT(&n->list, text, ST_MAX_TEXT, &item);
	return !n->full;
}

static bool add_log(void *with, const char *name, uint64_t size)
{
	(void)size;
	return add_name(with, name);
}

static void answer_names(struct st_from *from, uint64_t op, enum err e, const struct names *n)
{
	struct st_backup_names a = {.more = n->full, .names = wire_list_done(&n->list)};
	server_answer(from, op, e, e == ERR_OK ? st_put_backup_names(from->server->frame, ST_MAXFRAME, op, &a) : 0,
		      NULL, 0);
}

void st_on_backup_logs(struct st_from *from, uint64_t op, const struct st_backup_logs *m, int *fds)
{
	struct server *sv = from->server;
	struct names n = {.list = {.p = sv->page, .cap = STORE_PAGE}};
	enum err e = mine(from);
	(void)m;
	(void)fds;
	if (e == ERR_OK) {
		store_flush(sv->store);
		e = store_logs(sv->store, add_log, &n) ? ERR_OK : store_error(errno);
	}
	answer_names(from, op, e, &n);
}

void st_on_backup_read(struct st_from *from, uint64_t op, const struct st_backup_read *m, int *fds)
{
	struct server *sv = from->server;
	static uint8_t part[PART];
	struct st_backup_part a = {.data = {part, 0}};
	enum err e = mine(from);
	int fd = e == ERR_OK ? store_file(sv->store, m->name) : -1;
	(void)fds;
	if (e == ERR_OK && fd < 0)
		e = refusal();
	while (e == ERR_OK && a.data.n < PART) {
		ssize_t n = pread(fd, part + a.data.n, PART - a.data.n, (off_t)(m->offset + a.data.n));
		if (n < 0)
			e = store_error(errno);
		if (n <= 0)
			break;
		a.data.n += (uint32_t)n;
	}
	if (fd >= 0)
		close(fd);
	server_answer(from, op, e, e == ERR_OK ? st_put_backup_part(sv->frame, ST_MAXFRAME, op, &a) : 0, NULL, 0);
}

static bool hex_name(const char *s, size_t n)
{
	return strlen(s) == n && strspn(s, "0123456789abcdef") == n;
}

static int plain(const struct dirent *d)
{
	return hex_name(d->d_name, 2 * BLOB_SHA);
}

void st_on_backup_blobs(struct st_from *from, uint64_t op, const struct st_backup_blobs *m, int *fds)
{
	struct server *sv = from->server;
	struct names names = {.list = {.p = sv->page, .cap = STORE_PAGE}};
	struct dirent **list;
	enum err e = mine(from);
	(void)fds;
	if (e == ERR_OK && !hex_name(m->folder, 2))
		e = ERR_INVALID_REQUEST;
	int n = e == ERR_OK ? scandirat(store_blobs(sv->store)->dir, m->folder, &list, plain, alphasort) : -1;
	if (e == ERR_OK && n < 0 && errno != ENOENT)
		e = store_error(errno);
	for (int i = 0; i < n; i++) {
		if (!names.full && strcmp(list[i]->d_name, m->after) > 0)
			(void)add_name(&names, list[i]->d_name);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	answer_names(from, op, e, &names);
}

void st_on_backup_blob(struct st_from *from, uint64_t op, const struct st_backup_blob *m, int *fds)
{
	struct server *sv = from->server;
	struct st_backup_file a = {0};
	char name[2 * BLOB_SHA + 4];
	enum err e = mine(from);
	int fd[WIRE_MAX_FDS] = {-1, -1, -1, -1};
	(void)fds;
	if (e == ERR_OK && !hex_name(m->name, 2 * BLOB_SHA))
		e = ERR_INVALID_REQUEST;
	if (e == ERR_OK) {
		(void)snprintf(name, sizeof name, "%.2s/%s", m->name, m->name);
		fd[0] = openat(store_blobs(sv->store)->dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		e = fd[0] < 0 ? refusal() : ERR_OK;
	}
	server_answer(from, op, e, e == ERR_OK ? st_put_backup_file(sv->frame, ST_MAXFRAME, op, &a) : 0, fd,
		      e == ERR_OK ? 1 : 0);
}

void st_on_backup_end(struct st_from *from, uint64_t op, const struct st_backup_end *m, int *fds)
{
	struct st_ok a = {0};
	enum err e = mine(from);
	(void)m;
	(void)fds;
	if (e == ERR_OK)
		backup_over(from->server);
	server_answer(from, op, e, e == ERR_OK ? st_put_ok(from->server->frame, ST_MAXFRAME, op, &a) : 0, NULL, 0);
}
