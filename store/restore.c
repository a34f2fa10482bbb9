/*
 * A backup becomes the store. It is older than what happened since, so nothing in it may give a right that was taken
 * away meanwhile, nor have done again what was done:
 *  - every run that had not ended ends as failed, controller_restarted; no capability is left, so no budget;
 *  - a token is revoked unless it is known that it was not revoked since: by the store that is replaced, where that
 *    can still be read and is the one that was backed up, or else by its audit log, without a gap since the backup.
 *    What either of them revoked stays so. Where neither can tell, all tokens are revoked, unless the operator
 *    keeps them;
 *  - what tenants used lately is what the store that is replaced says, where that can still be read; else what the
 *    backup says, for nobody knows more;
 *  - nothing that was to be pushed is: it was, or it is about what is over;
 *  - the latest moment ever acted upon is that of both stores, so what had expired stays expired.
 * Here the backup becomes a store of its own beside the one in use. Root, whose folder that is, exchanges the two
 * (cli/store_restore.c).
 */
#include "gen/records.h"
#include "lib/audit_chain.h"
#include "lib/die.h"
#include "lib/digest.h"
#include "lib/num.h"
#include "lib/own.h"
#include "store/audit.h"
#include "store/env.h"
#include "store/offline.h"
#include "store/pushes.h"
#include "store/run_end.h"
#include "store/spent.h"
#include "store/t_capability.h"
#include "store/t_pairing.h"
#include "store/t_token.h"
#include "store/upgrade.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TOKENS_AT_ONCE = 64, SECRET_LINE = STORE_ID + SHA256_HEX };

/* What the store that is replaced says. A token that it does not have was revoked and forgotten, or it never was. */
struct old {
	bool read;
	uint64_t highest, generation;
	char id[2 * META_ID + 1]; /* of that store: only its own backup's tokens does it know */
	struct buf good;          /* "id hash" of each secret that is not taken away there, a NUL behind each */
	struct buf spent;         /* lines of spent_line, a NUL behind each */
};

/* A token's secret as one word of a list. */
static const char *secret_line(char out[SECRET_LINE], const char *token_id, struct wire_bytes hash)
{
	char digits[SHA256_HEX] = "";
	if (hash.n == SHA256_SIZE)
		hex(hash.p, hash.n, digits);
	(void)snprintf(out, SECRET_LINE, "%s %s", token_id, digits);
	return out;
}

static bool good_token(void *with, const char *token_id, const struct rec_token *r)
{
	FILE *to = with;
	char line[SECRET_LINE];
	if (!r->revoked) {
		fprintf(to, "token %s\n", secret_line(line, token_id, r->hash));
		if (r->next_hash.n > 0)
			fprintf(to, "token %s\n", secret_line(line, token_id, r->next_hash));
	}
	return true;
}

static void spent_line(void *with, const char *tenant, const char *what, uint64_t age, uint64_t n)
{
	FILE *to = with;
	fprintf(to, "spent %s %s %llu %llu\n", tenant, what, (unsigned long long)age, (unsigned long long)n);
}

/* In a process of its own: a store that is damaged must not take this one along. */
static void tell_old(const char *state_dir, FILE *to)
{
	offline_confine(state_dir, NULL);
	struct store *s = store_open(state_dir);
	struct txn t;
	struct meta m;
	char id[2 * META_ID + 1];
	txn_init(&t, s, NULL);
	if (!meta_get(&t, &m))
		_exit(1);
	fprintf(to, "highest %llu\n", (unsigned long long)store_now(s));
	hex(m.id, META_ID, id);
	fprintf(to, "id %s\n", id);
	fprintf(to, "generation %llu\n", (unsigned long long)m.generation);
	token_each(&t, good_token, to);
	spent_each(&t, spent_line, to);
	if (txn_end(&t, ERR_OK) != ERR_OK)
		_exit(1);
	txn_free(&t);
	store_close(s);
	fputs("whole\n", to);
	(void)fflush(to);
	_exit(ferror(to) ? 1 : 0);
}

static void take_line(struct old *o, const char *line)
{
	if (strncmp(line, "token ", 6) == 0)
		buf_add(&o->good, line + 6, strlen(line + 6) + 1);
	else if (strncmp(line, "spent ", 6) == 0)
		buf_add(&o->spent, line + 6, strlen(line + 6) + 1);
	else if (strncmp(line, "highest ", 8) == 0)
		(void)num_u64(line + 8, strlen(line + 8), 0, UINT64_MAX, &o->highest);
	else if (strncmp(line, "generation ", 11) == 0)
		(void)num_u64(line + 11, strlen(line + 11), 0, UINT64_MAX, &o->generation);
	else if (strncmp(line, "id ", 3) == 0)
		(void)snprintf(o->id, sizeof o->id, "%s", line + 3);
	else if (strcmp(line, "whole") == 0)
		o->read = true;
}

static void read_old(const char *state_dir, struct old *o)
{
	int ends[2], status;
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	*o = (struct old){0};
	buf_init(&o->good, 64 << 20);
	buf_init(&o->spent, 64 << 20);
	(void)fflush(stdout);
	if (pipe2(ends, O_CLOEXEC) != 0)
		fatal("pipe: %m");
	pid_t pid = fork();
	if (pid < 0)
		fatal("fork: %m");
	FILE *f = fdopen(ends[pid == 0 ? 1 : 0], pid == 0 ? "w" : "r");
	close(ends[pid == 0 ? 0 : 1]);
	if (f == NULL)
		fatal("no memory");
	if (pid == 0)
		tell_old(state_dir, f);
	while ((n = getline(&line, &room, f)) > 0) {
		line[n - 1] = '\0';
		take_line(o, line);
	}
	free(line);
	fclose(f);
	if (waitpid(pid, &status, 0) != pid || status != 0 || buf_failed(&o->good) || buf_failed(&o->spent))
		o->read = false;
}

static bool among(const struct buf *list, const char *id)
{
	size_t n = strlen(id) + 1;
	for (size_t at = 0; at < list->n; at += strlen((const char *)list->p + at) + 1)
		if (list->n - at >= n && memcmp(list->p + at, id, n) == 0)
			return true;
	return false;
}

/*
 * What the audit log says since the backup. It may be another store's: that of the machine on which a backup is
 * restored because its own was lost. So it tells something only where it holds the very line after which the backup
 * was made, or the one behind that, which names it.
 */
struct log {
	uint64_t since, next;      /* next: the line's number that must come */
	char prev[AUDIT_HASH + 1]; /* the hash of the line before that */
	bool ours;                 /* that line was seen */
	bool whole;                /* no line is missing, and none was lost */
	struct buf revoked;
	struct buf changed; /* tokens of which a secret was taken away since */
};

static void log_line(struct log *l, const char *line, size_t n)
{
	static const char key[] = ",\"tokenId\":\"";
	struct audit_seen seen;
	if (!audit_read(line, n, &seen) || !seen.sound)
		return;
	if (seen.seq == l->since && strcmp(seen.hash, l->prev) == 0)
		l->ours = true;
	if (seen.seq > l->since) {
		bool follows = seen.seq == l->next && strcmp(seen.prev, l->prev) == 0;
		l->whole = l->whole && follows;
		l->ours = l->ours || (follows && seen.seq == l->since + 1);
		l->next = seen.seq + 1;
		memcpy(l->prev, seen.hash, sizeof l->prev);
	}
	if (seen.event_len == 10 && memcmp(seen.event, "audit.lost", 10) == 0 && seen.seq > l->since)
		l->whole = false;
	bool token = seen.event_len == 12 && memcmp(seen.event, "token.revoke", 12) == 0;
	bool device = seen.event_len == 13 && memcmp(seen.event, "device.revoke", 13) == 0;
	bool promote = seen.event_len == 13 && memcmp(seen.event, "token.promote", 13) == 0;
	bool drop = seen.event_len == 10 && memcmp(seen.event, "token.drop", 10) == 0;
	struct buf *to = token || device ? &l->revoked : &l->changed;
	/* A revocation counts whenever it was: a revoked token is never issued again. */
	if (!token && !device && ((!promote && !drop) || seen.seq <= l->since))
		return;
	const char *p = memmem(line, n, key, sizeof key - 1);
	const char *q = p == NULL ? NULL : memchr(p + sizeof key - 1, '"', (size_t)(line + n - p) - (sizeof key - 1));
	if (q == NULL)
		return;
	buf_add(to, p + sizeof key - 1, (size_t)(q - p) - (sizeof key - 1));
	buf_addc(to, '\0');
}

static void read_log(const char *log_dir, const struct audit_mark *was, struct log *l)
{
	char path[512], *line = NULL;
	size_t room = 0;
	ssize_t n;
	*l = (struct log){.since = was->seq, .next = was->seq + 1, .whole = was->seq > 0};
	memcpy(l->prev, was->hash, sizeof l->prev);
	buf_init(&l->revoked, 64 << 20);
	buf_init(&l->changed, 64 << 20);
	for (unsigned k = AUDIT_GENERATIONS_MAX + 1; k-- > 0;) {
		(void)snprintf(path, sizeof path, k == 0 ? "%s/%s" : "%s/%s.%u", log_dir, AUDIT_FILE, k);
		FILE *f = fopen(path, "re");
		if (f == NULL) {
			l->whole = l->whole && k != 0;
			continue;
		}
		while ((n = getline(&line, &room, f)) > 0)
			log_line(l, line, (size_t)n - (line[n - 1] == '\n' ? 1 : 0));
		fclose(f);
	}
	free(line);
	l->whole = l->whole && l->ours;
	if (buf_failed(&l->revoked) || buf_failed(&l->changed))
		fatal("no memory for the revocations of the audit log");
}

/* --- the backup's store --------------------------------------------------------------------------- */

struct token_page {
	const struct old *old;
	const struct log *log;
	bool keep;
	unsigned n;
	char id[TOKENS_AT_ONCE][STORE_ID];
};

/* The log does not say which of a token's secrets was taken away: where it alone speaks, the token goes with it. */
static bool must_go(const struct token_page *p, const char *id, struct wire_bytes hash)
{
	char line[SECRET_LINE];
	if (among(&p->log->revoked, id))
		return true;
	if (p->old->read)
		return !among(&p->old->good, secret_line(line, id, hash));
	return among(&p->log->changed, id) || (!p->log->whole && !p->keep);
}

/* Takes away what must go: a secret, or the whole. False: nothing. */
static bool take_away(const struct token_page *p, const char *id, struct rec_token *r, uint64_t now)
{
	return token_lose(r, must_go(p, id, r->hash), r->next_hash.n > 0 && must_go(p, id, r->next_hash), now);
}

static bool pick_token(void *with, const char *token_id, const struct rec_token *r)
{
	struct token_page *p = with;
	struct rec_token copy = *r;
	if (take_away(p, token_id, &copy, 0))
		(void)snprintf(p->id[p->n++], STORE_ID, "%s", token_id);
	return p->n < TOKENS_AT_ONCE;
}

static void commit(struct txn *t)
{
	enum err e = txn_end(t, ERR_OK);
	if (e != ERR_OK)
		fatal("the backup cannot be made a store: %s", err_row(e)->sentence);
	txn_free(t);
}

/* Codes that were waiting when the backup was made: used since, perhaps. */
static void drop_codes(struct store *s)
{
	struct txn t;
	txn_init(&t, s, NULL);
	pairings_drop(&t);
	commit(&t);
}

static void drop_pushes(struct store *s)
{
	struct txn t;
	txn_init(&t, s, NULL);
	pushes_drop(&t);
	commit(&t);
}

/* What was used since the backup is not given back. */
static void take_spent(struct store *s, const struct old *old)
{
	char tenant[STORE_ID], what[16];
	unsigned long long age, n;
	struct txn t;
	if (!old->read)
		return;
	txn_init(&t, s, NULL);
	spent_drop(&t);
	for (size_t at = 0; at < old->spent.n; at += strlen((const char *)old->spent.p + at) + 1)
		if (sscanf((const char *)old->spent.p + at, "%128s %15s %llu %llu", tenant, what, &age, &n) == 4)
			spent_put(&t, tenant, what, age, n);
	commit(&t);
}

static unsigned revoke_tokens(struct store *s, struct token_page *p)
{
	unsigned revoked = 0;
	do {
		struct txn t;
		p->n = 0;
		txn_init(&t, s, NULL);
		token_each(&t, pick_token, p);
		for (unsigned i = 0; i < p->n; i++) {
			struct rec_token r;
			if (!token_get(&t, p->id[i], &r))
				continue;
			if (!take_away(p, p->id[i], &r, t.now))
				continue;
			token_put(&t, p->id[i], &r);
			if (!r.revoked)
				continue;
			(void)push_gone(&t, r.tenant, p->id[i]);
			revoked++;
		}
		commit(&t);
	} while (p->n == TOKENS_AT_ONCE);
	return revoked;
}

struct open_run {
	bool any;
	char tenant[STORE_ID], run[STORE_ID];
};

static bool first_open(void *with, const char *tenant, const char *run, uint8_t state, uint64_t created_at)
{
	struct open_run *o = with;
	(void)state;
	(void)created_at;
	o->any = true;
	(void)snprintf(o->tenant, sizeof o->tenant, "%s", tenant);
	(void)snprintf(o->run, sizeof o->run, "%s", run);
	return false;
}

static unsigned end_runs(struct store *s)
{
	unsigned ended = 0;
	for (;;) {
		struct open_run o = {0};
		struct rec_run r;
		struct txn t;
		bool changed = false;
		txn_init(&t, s, NULL);
		run_open_each(&t, NULL, NULL, NULL, first_open, &o);
		if (!o.any) {
			commit(&t);
			return ended;
		}
		if (run_load(&t, o.tenant, o.run, &r) != ERR_OK)
			fatal("run %s/%s of the backup cannot be read", o.tenant, o.run);
		if (run_move(&t, o.tenant, o.run, &r, RUN_EV_FAIL, &changed) != ERR_OK || !changed)
			fatal("run %s/%s of the backup cannot be ended", o.tenant, o.run);
		r.terminal_reason = "controller_restarted";
		r.error = r.state == RUN_CANCELLED ? "" : "controller_restarted";
		run_end(&t, o.tenant, o.run, &r, "operator", NULL);
		run_save(&t, o.tenant, o.run, &r);
		commit(&t);
		ended++;
	}
}

static void mark(struct store *s, struct old *old)
{
	struct txn t;
	struct meta m;
	char id[2 * META_ID + 1];
	txn_init(&t, s, NULL);
	if (!meta_get(&t, &m))
		fatal("the backup's own record cannot be read");
	hex(m.id, META_ID, id);
	if (strcmp(id, old->id) != 0)
		old->read = false;
	m.generation = (old->generation > m.generation ? old->generation : m.generation) + 1;
	m.restored_at = t.now;
	meta_put(&t, &m);
	commit(&t);
}

static bool exists(const char *state_dir)
{
	char path[300];
	struct stat st;
	(void)snprintf(path, sizeof path, "%s/%s", state_dir, NAME_STORE);
	return lstat(path, &st) == 0;
}

int restore(const char *state_dir, const char *log_dir, bool keep_tokens)
{
	bool there = exists(state_dir);
	struct old old;
	struct log log;
	struct audit_mark was = {0};
	/* Refuses where a service has it open. */
	int lock = there ? store_lock(state_dir, NAME_STORE) : -1;
	if (lock >= 0)
		close(lock);
	if (there)
		read_old(state_dir, &old);
	else
		old = (struct old){0};
	offline_confine(state_dir, log_dir); /* it starts no other process any more */
	lock = there ? store_lock(state_dir, NAME_STORE) : -1;
	struct store *s = store_open_at(state_dir, NAME_NEW);
	clock_raise(s, old.highest);
	struct txn t;
	txn_init(&t, s, NULL);
	(void)audit_mark_get(&t, &was);
	commit(&t);
	read_log(log_dir, &was, &log);
	/* Nothing is rotated away here: how much is kept is the service's to say. */
	struct audit *a = audit_open(
	    log_dir, &(struct audit_settings){.max_bytes = UINT32_MAX, .generations = AUDIT_GENERATIONS_MAX});
	audit_adopt(a, s);
	store_audit(s, a);
	mark(s, &old);
	take_spent(s, &old);
	drop_pushes(s); /* before the end of the runs would have their questions retracted */
	unsigned runs = end_runs(s);
	struct token_page *p = calloc(1, sizeof *p);
	if (p == NULL)
		fatal("no memory");
	p->old = &old;
	p->log = &log;
	p->keep = keep_tokens;
	unsigned tokens = revoke_tokens(s, p);
	free(p);
	drop_codes(s);
	if (offline_check(s, false, true) > 0)
		fatal("what the backup holds does not fit together: it was not put in place");
	struct audit_line l = {.event = AUDIT_STORE_RESTORE,
			       .actor = "operator",
			       .v = {{AUDIT_F_COUNT, .number = tokens}, {AUDIT_F_OF, .number = runs}}};
	audit_note(a, store_now(s), &l);
	store_audit(s, NULL);
	audit_leave(a);
	store_close(s);
	printf("runs %u\ntokens %u\n", runs, tokens);
	printf("revocations %s\n", old.read ? "store" : log.whole ? "audit" : keep_tokens ? "kept" : "all");
	if (lock >= 0)
		close(lock);
	buf_free(&old.good);
	buf_free(&old.spent);
	buf_free(&log.revoked);
	return 0;
}
