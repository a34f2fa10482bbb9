/*
 * Event streams: connections that a worker has answered the head of and that one thread goes on with, so that a stream
 * costs a row of a table and no thread. Safe to call from every thread.
 */
#ifndef FCGI_STREAMS_H
#define FCGI_STREAMS_H
#include "handlers/request.h"
#include "lib/held.h"

struct pool;
struct streams;
struct stream;

/* most: how many there may be, whatever the configuration says. Place and path are used later. NULL with errno. */
struct streams *streams_new(struct held_place *place, const char *store_path, uint32_t most);
/* Starts the thread. kept connections go back to p at a stream's end. False with errno. */
bool streams_start(struct streams *s, struct pool *p);
/* A place for one more. Behind ERR_OK it must come to streams_take or streams_cancel. */
enum err streams_reserve(struct streams *s, const struct stream_order *order, struct stream **out);
void streams_cancel(struct streams *s, struct stream *st);
/* fd, on which the head and the first line were written, becomes the streams'. request: the FastCGI request's number;
 * keep: the web server wants to use the connection again. */
void streams_take(struct streams *s, struct stream *st, int fd, uint16_t request, bool keep);
void streams_figures(void *s, struct stream_figures *out);
#endif
