/*
 * What a person is shown of an action: all on which it depends, in words that no title can stand for. Lines of ours
 * begin with a letter, those of a file with a sign, so that no text can pass for a line of ours.
 */
#ifndef BRIDGE_SHOW_H
#define BRIDGE_SHOW_H
#include "lib/json.h"

enum { SHOWN = 200000, CALLS = 64, CALL_ID = 128 };

/* "WORD PATH", before's lines with "-" and after's with "+"; NULL: it has none. False: the path is not one line, and
 * nothing was written. */
bool show_change(struct buf *out, const char *word, const char *path, const char *before, const char *after);
/* "WORD PATH" and a unified diff as it is. False: one of them is not what it should be, and nothing was written. */
bool show_diff(struct buf *out, const char *word, const char *path, const char *diff);
/* All members of an object but those named (NULL ends the names) and nulls, as one line of JSON; nothing where none is
 * left. */
void show_rest(struct buf *out, const struct json *object, const char *const *but);

/* What was said of calls by their ids, which a question about one need not repeat. */
struct call {
	char id[CALL_ID], kind[32];
	struct buf shown;
	bool doubtful; /* the same id was given to two: neither may be shown for the other */
};
struct calls {
	struct call all[CALLS];
	unsigned next;
};
struct call *call_find(struct calls *c, const char *id);
/* A new one, or NULL: the id is empty or too long, or there is no room. push: in place of the oldest then. */
struct call *call_new(struct calls *c, const char *id, bool push);
void call_drop(struct call *call);
void calls_free(struct calls *c);
#endif
