/*
 * Composes the lines and keeps their chain. Every text comes from outside or may hold what does: it becomes
 * printable ASCII on one line, cut at 120 characters. An event says only what audit.tab lets it say.
 * Never blocks an operation but where the table says "required".
 */
#include "store/audit.h"
#include "lib/audit_chain.h"
#include "lib/die.h"
#include "lib/digest.h"
#include "lib/json.h"
#include "lib/num.h"
#include "lib/text.h"
#include "store/audit_file.h"
#include "store/env.h"
#include "store/txn.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEFAULT_BYTES = 5 << 20, DEFAULT_GENERATIONS = 5, TEXT_MAX = 120, ID_MAX = 128, OWED_MOST = 256 };
static const char redacted[] = "(redacted)";

struct audit {
	struct audit_file file;
	bool redact;
	uint64_t max_bytes;
	uint64_t seq; /* of the last line */
	char hash[AUDIT_HASH + 1];
	uint64_t lost, unsaid; /* lines: since the start, and since the last audit.lost */
	/* Lines of which it must still be said that they are undone: what is written stays untrue otherwise. */
	uint64_t owed[OWED_MOST];
	size_t nowed;
	bool complained;
	struct buf text; /* lines being composed */
};

static void put_text(struct jw *w, const char *key, const char *s, size_t cap)
{
	own_buf struct buf clean;
	buf_init(&clean, cap + 1);
	if (s != NULL)
		text_log(&clean, s, strlen(s), cap);
	jw_key(w, key);
	jw_buf(w, &clean);
}

static void put_value(const struct audit *a, struct jw *w, const struct audit_row *row, const struct audit_value *v)
{
	const struct audit_field_row *field = &audit_fields[v->field];
	if ((row->fields >> v->field & 1) == 0)
		panic("an audit line %s may not have the field %s", row->name, field->name);
	if (field->number)
		jw_kint(w, field->name, (int64_t)v->number);
	else
		put_text(w, field->name, a->redact && !field->keep ? redacted : v->text, TEXT_MAX);
}

/* Appends one line. False: it could not be composed, and nothing was appended. */
static bool compose(struct audit *a, uint64_t now, const struct audit_line *l, uint64_t seq, char hash[AUDIT_HASH + 1])
{
	const struct audit_row *row = audit_row(l->event);
	size_t start = a->text.n;
	struct jw w;
	if (row == NULL)
		panic("there is no audit event %d", (int)l->event);
	jw_init(&w, &a->text);
	jw_open(&w, '{');
	jw_kint(&w, "ts", (int64_t)now);
	jw_kint(&w, "seq", (int64_t)seq);
	jw_kstr(&w, "event", row->name);
	put_text(&w, "tenant", l->tenant, ID_MAX);
	put_text(&w, "actor", l->actor, TEXT_MAX);
	put_text(&w, "requestId", l->request_id, TEXT_MAX);
	put_text(&w, "run", l->run, ID_MAX);
	for (size_t i = 0; i < AUDIT_VALUES && l->v[i].field != AUDIT_F_NONE; i++)
		put_value(a, &w, row, &l->v[i]);
	if (audit_seal(&a->text, start, hash, hash))
		return true;
	if (!buf_failed(&a->text))
		a->text.n = start;
	return false;
}

/* Writes the n lines in one piece, or none of them. */
static bool write_lines(struct audit *a, uint64_t now, const struct audit_line *lines, size_t n, bool durable)
{
	char hash[AUDIT_HASH + 1];
	buf_reset(&a->text);
	memcpy(hash, a->hash, sizeof hash);
	for (size_t i = 0; i < n; i++) {
		if (!compose(a, now, &lines[i], a->seq + 1 + i, hash)) {
			errno = ENOMEM;
			return false;
		}
	}
	if (!audit_file_add(&a->file, a->text.p, a->text.n, durable))
		return false;
	a->seq += n;
	memcpy(a->hash, hash, sizeof hash);
	return true;
}

static void rotate(struct audit *a, uint64_t now)
{
	uint64_t bytes = a->file.size;
	if (!audit_file_rotate(&a->file))
		return;
	struct audit_line l = {.event = AUDIT_AUDIT_ROTATE, .actor = "system", .v = {{AUDIT_F_BYTES, .number = bytes}}};
	(void)write_lines(a, now, &l, 1, false); /* the chain goes on without it, too */
}

static bool say_undone(struct audit *a, uint64_t now, uint64_t of)
{
	struct audit_line l = {.event = AUDIT_AUDIT_UNDONE, .actor = "system", .v = {{AUDIT_F_OF, .number = of}}};
	return write_lines(a, now, &l, 1, false);
}

static bool add(struct audit *a, uint64_t now, const struct audit_line *lines, size_t n, bool durable)
{
	size_t paid = 0;
	while (paid < a->nowed && say_undone(a, now, a->owed[paid]))
		paid++;
	a->nowed -= paid;
	memmove(a->owed, a->owed + paid, a->nowed * sizeof *a->owed);
	if (a->unsaid > 0) {
		struct audit_line l = {
		    .event = AUDIT_AUDIT_LOST, .actor = "system", .v = {{AUDIT_F_COUNT, .number = a->unsaid}}};
		if (write_lines(a, now, &l, 1, false)) {
			log_info("the audit log can be written again; %llu lines are missing from it",
				 (unsigned long long)a->unsaid);
			a->unsaid = 0;
			a->complained = false;
		}
	}
	/* A line is about 400 bytes: what a batch overshoots by does not matter. */
	if (a->file.size > 0 && a->file.size + 512 * n > a->max_bytes)
		rotate(a, now);
	if (write_lines(a, now, lines, n, durable))
		return true;
	if (!a->complained)
		log_error("the audit log cannot be written: %m");
	a->complained = true;
	return false;
}

static void lose(struct audit *a, size_t n)
{
	a->lost += n;
	a->unsaid += n;
}

bool audit_ahead(struct audit *a, uint64_t now, const struct audit_line *lines, size_t n, uint64_t *last, bool *synced)
{
	bool required = false;
	for (size_t i = 0; i < n; i++) {
		const struct audit_row *row = audit_row(lines[i].event);
		required = required || (row != NULL && row->required);
	}
	*last = 0;
	*synced = false;
	if (add(a, now, lines, n, required)) {
		*last = a->seq;
		*synced = required;
		return true;
	}
	/* Refused is not lost: it did not happen. */
	if (!required)
		lose(a, n);
	return !required;
}

static void write_one(struct audit *a, uint64_t now, const struct audit_line *line)
{
	if (!add(a, now, line, 1, false))
		lose(a, 1);
}

void audit_note(struct audit *a, uint64_t now, const struct audit_line *line)
{
	write_one(a, now, line);
}

void audit_undone(struct audit *a, uint64_t now, uint64_t last, size_t n)
{
	for (uint64_t of = last - n + 1; last != 0 && of <= last; of++) {
		if (a->nowed == 0 && say_undone(a, now, of))
			continue;
		if (a->nowed < OWED_MOST)
			a->owed[a->nowed++] = of;
		else
			lose(a, 1);
	}
}

void audit_place(const struct audit *a, struct audit_mark *mark)
{
	mark->seq = a->seq;
	memcpy(mark->hash, a->hash, sizeof mark->hash);
}

uint64_t audit_lost(const struct audit *a)
{
	return a->lost;
}

void audit_set(struct audit *a, const struct audit_settings *s)
{
	a->redact = s->redact;
	a->max_bytes = s->max_bytes != 0 ? s->max_bytes : DEFAULT_BYTES;
	a->file.generations = s->generations != 0 ? s->generations : DEFAULT_GENERATIONS;
}

struct audit *audit_open(const char *log_dir, const struct audit_settings *s)
{
	struct audit *a = calloc(1, sizeof *a);
	if (a == NULL)
		fatal("no memory for the audit log");
	buf_init(&a->text, 16 * AUDIT_LINE_MAX);
	audit_no_hash(a->hash);
	audit_file_open(&a->file, log_dir, s->generations != 0 ? s->generations : DEFAULT_GENERATIONS);
	audit_set(a, s);
	return a;
}

void audit_close(struct audit *a)
{
	write_one(a, clock_ms(), &(struct audit_line){.event = AUDIT_STORE_STOP, .actor = "system"});
	audit_leave(a);
}

void audit_leave(struct audit *a)
{
	(void)fdatasync(a->file.fd);
	audit_file_close(&a->file);
	buf_free(&a->text);
	free(a);
}

/* --- the start ------------------------------------------------------------------------------------ */

/* What the end of the log says. */
struct found {
	char *text;
	size_t n, torn; /* bytes of a last line that has no end */
	uint64_t seq;   /* of the last sound line */
};

/* Calls back for each whole line; the first may be cut off by the look at the end alone. */
static void each_line(const struct found *f, void (*row)(void *with, const char *line, size_t n), void *with)
{
	for (size_t at = 0; at < f->n;) {
		const char *end = memchr(f->text + at, '\n', f->n - at);
		if (end == NULL)
			return;
		row(with, f->text + at, (size_t)(end - f->text) - at);
		at = (size_t)(end - f->text) + 1;
	}
}

static void take_last(void *with, const char *line, size_t n)
{
	struct audit *a = with;
	struct audit_seen seen;
	if (!audit_read(line, n, &seen) || !seen.sound)
		return;
	a->seq = seen.seq;
	memcpy(a->hash, seen.hash, sizeof a->hash);
}

static void look(struct audit *a, struct found *f)
{
	bool current = false;
	*f = (struct found){0};
	f->text = audit_file_tail(&a->file, &f->n, &current);
	if (f->text == NULL)
		return;
	each_line(f, take_last, a);
	const char *last = memrchr(f->text, '\n', f->n);
	f->torn = current ? f->n - (last == NULL ? 0 : (size_t)(last - f->text) + 1) : 0;
	f->seq = a->seq;
	if (a->seq == 0)
		log_error("the end of the audit log holds no sound line; see pinfold audit verify");
}

/* A line that a crash cut short stays as it is; the next one says what it was. */
static void close_torn(struct audit *a, uint64_t now, const struct found *f)
{
	uint8_t sum[SHA256_SIZE];
	char digest[SHA256_HEX];
	if (f->torn == 0 || !sha256(f->text + f->n - f->torn, f->torn, sum))
		return;
	hex(sum, sizeof sum, digest);
	if (!audit_file_add(&a->file, "\n", 1, false))
		return;
	struct audit_line l = {.event = AUDIT_AUDIT_TORN,
			       .actor = "system",
			       .v = {{AUDIT_F_BYTES, .number = f->torn}, {AUDIT_F_DIGEST, .text = digest}}};
	write_one(a, now, &l);
	log_warn("the audit log's last line was cut short; a line says so");
}

struct uncommitted {
	uint64_t mark, seq[AUDIT_TAIL / 256];
	size_t n;
};

static void find_uncommitted(void *with, const char *line, size_t n)
{
	struct uncommitted *u = with;
	struct audit_seen seen;
	if (!audit_read(line, n, &seen) || !seen.sound || seen.seq <= u->mark)
		return;
	const struct audit_row *row = audit_row(audit_find(seen.event, (unsigned)seen.event_len));
	uint64_t of;
	if (row != NULL && row->commit && u->n < sizeof u->seq / sizeof u->seq[0])
		u->seq[u->n++] = seen.seq;
	/* Said already. */
	if (seen.event_len == 12 && memcmp(seen.event, "audit.undone", 12) == 0 && audit_number(line, n, "of", &of))
		for (size_t i = 0; i < u->n; i++)
			if (u->seq[i] == of)
				u->seq[i] = 0;
}

static void in_force(struct audit *a, struct txn *t, struct audit_mark *mark, const uint8_t config[32])
{
	char digest[SHA256_HEX];
	hex(config, 32, digest);
	struct audit_line change = {
	    .event = AUDIT_CONFIG_CHANGE, .actor = "operator", .v = {{AUDIT_F_DIGEST, .text = digest}}};
	if (memcmp(mark->config, config, 32) != 0)
		txn_audit(t, &change);
	memcpy(mark->config, config, 32);
	audit_place(a, mark);
	audit_mark_put(t, mark);
}

void audit_config(struct audit *a, struct store *store, const uint8_t config[32])
{
	struct txn t;
	struct audit_mark mark = {0};
	txn_init(&t, store, NULL);
	(void)audit_mark_get(&t, &mark);
	in_force(a, &t, &mark, config);
	if (txn_end(&t, ERR_OK) != ERR_OK)
		log_warn("that the configuration changed could not be recorded");
	txn_free(&t);
}

void audit_start(struct audit *a, struct store *store, const uint8_t config[32])
{
	struct found f;
	struct txn t;
	uint64_t now = store_now(store);
	struct audit_mark mark = {0};
	look(a, &f);
	txn_init(&t, store, NULL);
	(void)audit_mark_get(&t, &mark);
	close_torn(a, now, &f);
	struct uncommitted u = {.mark = mark.seq};
	each_line(&f, find_uncommitted, &u);
	if (mark.synced > f.seq) {
		log_error("the audit log ends at line %llu, but line %llu was written: lines were removed",
			  (unsigned long long)f.seq, (unsigned long long)mark.synced);
		a->seq = mark.seq > mark.synced ? mark.seq : mark.synced;
		struct audit_line l = {
		    .event = AUDIT_AUDIT_GAP,
		    .actor = "system",
		    .v = {{AUDIT_F_EXPECTED, .number = mark.synced}, {AUDIT_F_FOUND, .number = f.seq}}};
		write_one(a, now, &l);
	}
	for (size_t i = 0; i < u.n; i++)
		if (u.seq[i] != 0)
			audit_undone(a, now, u.seq[i], 1);
	write_one(a, now, &(struct audit_line){.event = AUDIT_STORE_START, .actor = "system"});
	/* Always a transaction of its own: from here on nothing before counts as not committed. */
	in_force(a, &t, &mark, config);
	if (txn_end(&t, ERR_OK) != ERR_OK)
		log_warn("the audit log's place could not be recorded");
	txn_free(&t);
	free(f.text);
}

void audit_adopt(struct audit *a, struct store *store)
{
	struct found f;
	struct txn t;
	struct audit_mark mark = {0};
	look(a, &f);
	txn_init(&t, store, NULL);
	(void)audit_mark_get(&t, &mark);
	close_torn(a, store_now(store), &f);
	audit_place(a, &mark);
	mark.synced = 0;
	audit_mark_put(&t, &mark);
	if (txn_end(&t, ERR_OK) != ERR_OK)
		fatal("the audit log's place could not be recorded");
	txn_free(&t);
	free(f.text);
}
