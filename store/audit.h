/*
 * The audit log: DIR/audit.log, JSON lines with a hash chain, written by stored alone. A transaction's lines
 * are written before it commits (txn.c), so that whatever was answered has its line, even when this process
 * is killed between the two and the question comes again; what then did not commit is said by a later line.
 */
#ifndef STORE_AUDIT_H
#define STORE_AUDIT_H
#include "gen/audit.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct audit;
struct store;

struct audit_value {
	enum audit_field field;
	const char *text; /* of a str field; any bytes, NULL is "" */
	uint64_t number;  /* of an int field */
};

/* One line. Texts are foreign: they are cleaned and cut here. NULL is "". */
struct audit_line {
	enum audit_event event;
	const char *tenant, *run, *actor, *request_id;
	struct audit_value v[AUDIT_VALUES]; /* ends with AUDIT_F_NONE */
};

struct audit_settings {
	bool redact;
	uint32_t max_bytes, generations; /* 0: the defaults */
};

/* Opens or makes the file in log_dir, or ends the program with a sentence that names what is wrong with it. */
struct audit_mark;
struct audit *audit_open(const char *log_dir, const struct audit_settings *s);
/* The same settings anew. */
void audit_set(struct audit *a, const struct audit_settings *s);
/* Another configuration is in force: written, with a line where it differs. */
void audit_config(struct audit *a, struct store *store, const uint8_t config[32]);
/* Compares the log with what the store committed, says what differs, and that we started. config: its digest. */
void audit_start(struct audit *a, struct store *store, const uint8_t config[32]);
void audit_close(struct audit *a);
/* The place of the last line that was written. */
void audit_place(const struct audit *a, struct audit_mark *mark);
/* After a restore: the store is older than the log. From here on they belong together; nothing before counts as undone.
 */
void audit_adopt(struct audit *a, struct store *store);
/* Ends without the line that the service stops. */
void audit_leave(struct audit *a);

/*
 * Lines of a transaction that is about to commit, n > 0. False: a required one could not be written, and the
 * transaction must be undone. *last is the sequence of the last line, 0 where none could be written (which is
 * counted); *synced says whether it is durable.
 */
bool audit_ahead(struct audit *a, uint64_t now, const struct audit_line *lines, size_t n, uint64_t *last, bool *synced);
/* The transaction of the n lines that end with last did not commit after all. */
void audit_undone(struct audit *a, uint64_t now, uint64_t last, size_t n);
/* A line by itself. */
void audit_note(struct audit *a, uint64_t now, const struct audit_line *line);
/* How many lines could not be written since the start. */
uint64_t audit_lost(const struct audit *a);
#endif
