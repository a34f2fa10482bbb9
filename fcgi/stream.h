/*
 * What the parts of the stream thread share: the loop (stream.c), the table of streams (stream_book.c), what is asked
 * of stored (stream_feed.c) and how (stream_store.c), and what is written (stream_out.c).
 *
 * Theory of operation. A stream is a connection, a run and a cursor: the sequence up to which events were written. It
 * asks stored for the next few behind its cursor whenever it has written what it had and knows that there are more;
 * streams of one run with the same cursor share the question, and the bytes of its answer. That there are more is known
 * from one connection to stored that is subscribed to all runs. What wakes a stream is never what it writes: so a
 * wake-up that comes twice, late or never neither repeats an event nor loses one, and after an absence of stored
 * everyone just looks. Each few seconds everyone looks anyway, whether who reads may still do so.
 */
#ifndef FCGI_STREAM_H
#define FCGI_STREAM_H
#include "fcgi/streams.h"
#include "gen/store_msg.h"
#include "lib/buf.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

enum {
	STREAM_NONE = UINT32_MAX >> 1, /* no row */
	STREAM_LOOK_MS = 5000,         /* how often a token is looked at again */
	STREAM_PAGE = 16384,           /* bytes of events that a stream holds at a time; one event may be more */
	STREAM_HELD = 32 << 20,        /* of all streams; who has not read for longest is cut */
	STREAM_READS = 16,             /* questions at a time */
	STREAM_LOOKS = 64,             /* streams in one question about them */
	STREAM_TENANTS = 2 * CONF_TENANTS,
	STREAM_TOPICS = 4096 /* buckets */
};

/* Text for one or more streams. The thread's alone. */
struct chunk {
	uint32_t refs, n;
	uint8_t p[];
};

/* How many are open of one tenant; none: the row is free. Tenants come and go with the configuration. */
struct stream_tenant {
	char name[129];
	uint32_t open;
};

/* A run that is followed. */
struct topic {
	struct topic *next; /* in its bucket */
	const char *run;
	uint64_t last;  /* there are events up to this one, at least */
	uint32_t first; /* of its streams */
	uint32_t asked; /* questions that go on about it */
	bool terminal;  /* last is the last one */
	char tenant[];  /* and then run */
};

/* A row: of the free ones, a worker's, or the thread's. */
struct stream {
	struct topic *topic;
	struct chunk *chunk; /* being written */
	uint64_t cursor;     /* the last sequence that was written or is in chunk */
	int fd;
	uint32_t sent;          /* of chunk or of the end, with the headers of records */
	uint32_t next, back;    /* of the same topic; of the rows that wait to be taken, or are over, next alone */
	uint32_t after, before; /* of those that wait to ask */
	uint32_t live;          /* where it is in streams.live */
	uint32_t wrote, moved, looked; /* stream_now: last wrote whole text, any byte, was looked at */
	uint16_t request, tenant;
	bool keep, fresh /* has not asked yet */, waits /* to ask */, ending;
	char token_id[17];
	uint8_t token_hash[32];
};

enum store_state { STORE_AWAY, STORE_GREETED, STORE_SUBSCRIBING, STORE_HERE };

/* A connection to stored that never waits. */
struct store_conn {
	const char *path;
	bool subscribes;
	int fd;
	enum store_state state;
	uint64_t op, again; /* again: timer_ms at which to try next */
	uint32_t pause;
};

/* What an event of the epoll set is of; all below are rows. */
#define STREAM_EV_WAKE UINT64_MAX
#define STREAM_EV_ASK (UINT64_MAX - 1)
#define STREAM_EV_TOLD (UINT64_MAX - 2)

struct reading {
	struct topic *topic; /* NULL: free */
	uint64_t op, after, known;
};

struct looking {
	uint64_t op;                    /* 0: none */
	uint32_t n, rows[STREAM_LOOKS]; /* STREAM_NONE: over meanwhile */
	uint32_t from;                  /* place in streams.live to look from the next time */
	bool due;                       /* somebody may have to be looked at */
};

struct streams {
	struct held_place *place;
	struct pool *pool;
	int epoll, wake;
	uint32_t most;
	pthread_mutex_t lock; /* of the following */
	struct stream *rows;
	uint32_t *free, nfree; /* a stack */
	struct stream_tenant tenants[STREAM_TENANTS];
	uint32_t inbox; /* rows that wait to be taken */
	struct stream_figures figures;
	/* From here on the thread's. */
	uint32_t *live, nlive, over;
	uint32_t queue_first, queue_last;
	uint64_t next_op, pause_until, alone_at;
	size_t held;
	uint32_t slow; /* not yet in figures */
	struct topic *topics[STREAM_TOPICS];
	struct chunk *heartbeat;
	struct store_conn ask, told;
	struct reading readings[STREAM_READS];
	struct looking looking;
	struct buf text, line;
	uint8_t *in, *out;
};

/* Milliseconds that begin anew after 49 days: for differences alone. */
uint32_t stream_now(void);
struct stream *stream_row(struct streams *s, uint32_t row);
uint32_t stream_of(const struct streams *s, const struct stream *st);

/* stream_book.c. The rows that were over are free again. */
void stream_sweep(struct streams *s);
/* The thread's from now on. False: there is no memory for it. */
bool stream_enter(struct streams *s, struct stream *st);
/* It is over; fd is closed, or goes back to the pool. */
void stream_close(struct streams *s, struct stream *st, bool back);
void topic_drop(struct streams *s, struct topic *t);
struct topic *topic_find(struct streams *s, const char *tenant, const char *run);

/* stream_out.c. All of them may end the stream: what it was is not to be used afterwards but by its row. */
/* NULL: no memory. It has one reference. */
struct chunk *chunk_new(struct streams *s, const void *p, size_t n);
void chunk_drop(struct streams *s, struct chunk *c);
/* st must have none. */
void stream_put(struct streams *s, struct stream *st, struct chunk *c);
/* There may be room for more, or the end of something. */
void stream_ready(struct streams *s, struct stream *st, uint32_t events);
/* Nothing comes behind what it has. */
void stream_end(struct streams *s, struct stream *st);
/* The n bytes at sent within a chunk as FastCGI records; in at most two parts. For tests. */
size_t stream_parts(uint16_t request, const uint8_t *p, uint32_t n, uint32_t sent, uint8_t head[8],
		    struct iovec parts[2]);
uint32_t stream_framed(uint32_t n);

/* stream_feed.c */
/* Has it more to ask for, or is it done? */
void stream_kick(struct streams *s, struct stream *st);
void stream_forget(struct streams *s, struct stream *st); /* nothing is asked for it any more */
void feed_ask(struct streams *s);                         /* as many as may */
void feed_answer(struct streams *s, const uint8_t *frame, size_t n);
void feed_lost(struct streams *s); /* whatever was asked has no answer */
void feed_look(struct streams *s); /* looks at those that have not been looked at for long */
void feed_woken(struct streams *s, const uint8_t *frame, size_t n);

/* stream_store.c */
/* Connects if it is time to. */
void store_turn(struct streams *s, struct store_conn *c, uint64_t now);
void store_leave(struct store_conn *c);
/* False: not now. */
bool store_send(struct streams *s, struct store_conn *c, const uint8_t *p, size_t n);
/* Reads what is there. each gets frames once the connection serves; serves is called when it begins to. True: it was
 * lost. */
bool store_read(struct streams *s, struct store_conn *c, void (*serves)(struct streams *s),
		void (*each)(struct streams *s, const uint8_t *frame, size_t n));
#endif
