/* What the run, event and artifact handlers share. */
#ifndef HANDLERS_RUNS_H
#define HANDLERS_RUNS_H
#include "gen/run_fsm.h"
#include "gen/store_msg.h"
#include "handlers/reply.h"
#include "handlers/request.h"

/* Asks for the run of arg[0]; answers the error itself. The pointers in *run live until the next question
 * on rq->ask. *fd, if wanted, is the request summary and the caller's to close. */
bool run_fetch(struct request *rq, struct reply *rp, struct st_run_is *run, int *fd);
/* Puts the proof of who asks into the question, where there is one to give. */
void run_prove(const struct request *rq, const char **id, struct wire_bytes *hash);
/* What stored said to a question with run_prove's proof: whether it vouches for who asks. */
void run_proven(struct reply *rp, enum err e);
/* No query is taken here: answers the error itself. */
bool run_no_query(struct request *rq, struct reply *rp);
bool run_terminal(uint8_t state);
/* The artifacts that can be read: the stored ones and, since they can always be composed, the events. */
uint32_t run_artifacts(uint8_t state, uint32_t stored);
/* A key with a time, or nothing where it is 0. */
void put_time(struct jw *w, const char *key, uint64_t ms);
/* A key with a text, or nothing where it is empty. */
void put_text(struct jw *w, const char *key, const char *s);

/* Writes an event's line, with its end, over what b had. False: no memory. */
bool event_line(struct buf *b, const char *run, const struct st_event *ev);
/* Gives each event of a run after `after` as one JSON line to take(), page by page. run_state, if not NULL,
 * becomes true when the run has ended. ERR_OK, or the first question's error; later failures give
 * ERR_STORE_UNAVAILABLE after lines have already been given. */
enum err events_each(struct request *rq, uint64_t after, void (*take)(void *ctx, const void *line, size_t n),
		     void *ctx);
#endif
