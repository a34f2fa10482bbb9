/* What a run's agent asked, and what became of it, as answers show it. */
#ifndef HANDLERS_APPROVALS_H
#define HANDLERS_APPROVALS_H
#include "gen/store_msg.h"
#include "handlers/request.h"

struct questions {
	struct st_approval *v; /* in the request's arena */
	size_t n;
};

/* All of the run of arg[0]; texts only of those that wait. ERR_OK, or the store's error. */
enum err questions_fetch(struct request *rq, struct questions *out);
/* One that waits, as a card; run: its id, with what else is said of the run, or NULL where that is clear. */
void question_put(struct jw *w, const struct st_approval *q, const char *run);
/* Three members: those that wait, oldest first, the latest decisions, and what is allowed for the rest of the run. */
void questions_put(struct jw *w, const char *pending, const char *decisions, const char *grants,
		   const struct questions *all);
/* A member "digest", in hexadecimal; empty where there is none. */
void put_digest(struct jw *w, struct wire_bytes digest);
#endif
