/*
 * Following a run's events. Who carries a stream (fcgi/stream.c) is asked for a place before anything is said; the
 * answer's head and first line are the handler's, everything behind them the carrier's.
 */
#ifndef HANDLERS_STREAM_H
#define HANDLERS_STREAM_H
#include "handlers/reply.h"
#include "handlers/request.h"

/* Does this request want a stream? stream: the query's value, or NULL. */
bool stream_wanted(const struct arrival *in, const char *stream);
/* The sequence behind which to begin; 0: everything. last_id, if not NULL, counts, else after. Whatever is no sequence
 * is 0. */
uint64_t stream_cursor(const char *last_id, const char *after);
/* Answers with a stream, or says why not. */
void stream_answer(struct request *rq, struct reply *rp, const char *after);
#endif
