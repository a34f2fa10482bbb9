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
/* One that waits, as a card; run: its id, or NULL where that is clear. */
void question_put(struct jw *w, const struct st_approval *q, const char *run);
/* Two members: those that wait, oldest first, and the latest decisions. */
void questions_put(struct jw *w, const char *pending, const char *decisions, const struct questions *all);
#endif
