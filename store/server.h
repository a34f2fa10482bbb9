/*
 * What the loop (batch.c), the connections (client.c), the subscribers (notify.c) and the operations
 * (op_*.c) share: one server, its clients, and the batch being worked on.
 */
#ifndef STORE_SERVER_H
#define STORE_SERVER_H
#include "gen/metrics.h"
#include "gen/store_msg_on.h"
#include "lib/pace.h"
#include "lib/reload.h"
#include "lib/wire.h"
#include "store/env.h"
#include "store/prune.h"
#include "store/txn.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	CLIENTS_MAX = 512,
	CLIENTS_ADMIN = 16,    /* of these, kept for the operator */
	BATCH_REQUESTS = 128,  /* one flush for at most so many */
	BATCH_BYTES = 4 << 20, /* of answers */
	WAKES_WAITING = 1024   /* runs a slow subscriber may lag behind by before it is closed */
};

enum { PROFILES_BYTES = 2048 };

struct wake_list {
	struct wake *v;
	size_t n, room;
};

struct st_from {
	struct server *server;
	struct st_from *next;
	int fd;
	uid_t uid;
	pid_t pid;
	struct wire_conn wire;
	uint64_t client; /* from HELLO; 0: nothing is kept for it */
	bool closing;    /* freed at the end of the batch */
	bool subscribed; /* from then on it only listens */
	bool writing;    /* waits for room in its socket */
	uint64_t writing_since;
	char tenant[STORE_ID], run[STORE_ID]; /* subscribed to; "" is all */
	struct wake_list waiting;
	uint8_t ready[PROFILES_BYTES]; /* what this gateway said with PROFILES_READY */
	uint32_t nready;
	struct upload *upload; /* on its way in; NULL: none */
	uint8_t push_key[65];  /* what PUSH_READY said; begins with 0 where it did not */
};

struct answer {
	struct st_from *to;
	uint8_t *p;
	size_t n;
	int fds[WIRE_MAX_FDS];
	int nfds;
	bool early; /* does not wait for the flush */
};

/* What a role said with FIGURES. */
struct told {
	uint8_t *p;
	uint32_t n, room;
};

/* How the last attempt to bring another configuration into force went, as sandboxd says. */
struct outcome {
	bool told, going, applied;
	uint32_t number;
	char why[1001];
};

enum { REFUSALS = 256 }; /* more than the highest number of errors.tab */

struct server {
	struct store *store;
	struct prune prune;
	struct st_from *backup; /* whose backup is going on; NULL: nobody's */
	uint64_t backup_at;     /* timer_ms of its last question */
	struct audit *audit;
	struct pace violations, strangers; /* how often such lines are written */
	struct pace notes[ST_ROLE__COUNT];
	struct reload reload;
	const struct conf *conf; /* in force */
	struct outcome outcome;
	int epoll, listen_fd, admin_fd, control_fd, signal_fd;
	bool stop;
	struct st_from *clients;
	unsigned nclients, nadmin;
	struct answer answers[BATCH_REQUESTS];
	size_t nanswers, answer_bytes;
	struct wake_list wakes;
	bool owing;                 /* early answers went out since the last flush */
	uint64_t owed_since;        /* timer_ms */
	uint32_t retry_after;       /* of the refusal that is being answered; 0: not known */
	uint64_t refused[REFUSALS]; /* since the start, by enum err */
	struct told told[METRIC_BY__COUNT];
	struct told proofs; /* of op_proofs.c */
	uint8_t frame[ST_MAXFRAME], in[ST_MAXFRAME + 1], page[STORE_PAGE];
};

/* op_backup.c: ends the backup, whoever's it is. */
void backup_over(struct server *sv);
/* Ends one that was forgotten, or that holds back more log than there is room for. */
void backup_turn(struct server *sv);

/* config.c: acts by this one from here on, which is taken over; at the start, when the store is open, before the first
 * turn. */
void config_start(struct server *sv, struct held *first);
/* A packet of sandboxd. False: it is gone. */
bool config_hear(struct server *sv);
/* Reads it, with its digest; NULL: *why. */
struct held *config_load(int fd, const char **why);

/* batch.c: serves until SIGTERM or the end of the control descriptor. */
void server_run(struct server *sv);
/* Keeps the frame of n bytes in sv->frame (0: FAIL with e) for after the flush. fds become the batch's. */
void server_answer(struct st_from *to, uint64_t op, enum err e, size_t n, const int *fds, int nfds);

/* client.c */
void client_accept(struct server *sv, int listener, bool admin);
/* One packet: what else it sent waits for the next batch, so that nobody holds up the others. */
void client_read(struct st_from *c);
/* Marks it for closing and says why (NULL: it left by itself). */
void client_close(struct st_from *c, const char *why);
/* Frees the marked ones. */
void clients_sweep(struct server *sv);
const char *client_role(const struct st_from *c);

/* notify.c */
void wakes_add(struct wake_list *l, const struct wake *w);
void wakes_free(struct wake_list *l);
/* Hands this batch's wakes to the subscribers. */
void notify_all(struct server *sv);
/* A subscriber's socket has room again. */
void notify_more(struct st_from *c);
#endif
