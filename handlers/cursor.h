/* Where a list goes on: opaque to callers. */
#ifndef HANDLERS_CURSOR_H
#define HANDLERS_CURSOR_H
#include "handlers/query.h"
#include "handlers/reply.h"

enum { CURSOR_ID = 129, CURSOR_IDS = 2 };
/* A moment and one or two ids; nothing of it is trusted. */
struct cursor {
	uint64_t at;
	char id[CURSOR_IDS][CURSOR_ID];
};

/* Reads the query of a list: after, limit, and what more names (ends with name NULL; may be NULL), whose values it
 * sets. *after is NULL where the list begins. False: answered. */
bool list_asked(struct request *rq, struct reply *rp, struct query_pair *more, const char **after, uint16_t *limit);
/* The answer to a value of the query that is none. */
void list_bad(struct reply *rp, const char *name);
/* after (NULL: 0 and "") as a moment and so many ids. False: answered. */
bool cursor_read(struct reply *rp, const char *after, unsigned ids, struct cursor *out);
/* The member "next": null where there is no more. */
void cursor_put(struct jw *w, bool more, const struct cursor *next, unsigned ids);
/* The same of a text. out: LIST_TEXT bytes. */
enum { LIST_TEXT = 361 };
bool cursor_text(struct reply *rp, const char *after, char out[LIST_TEXT]);
void cursor_put_text(struct jw *w, bool more, const char *text);
#endif
