/*
 * A configuration with the secrets that came with it, counted: who uses it takes it at the beginning and gives it back
 * at the end, so that no pointer into it is left when another one is in force. Safe to call from every thread.
 */
#ifndef LIB_HELD_H
#define LIB_HELD_H
#include "lib/conf.h"
#include "lib/secret.h"
#include <pthread.h>
#include <stdatomic.h>

struct held {
	struct conf conf;
	struct secrets secrets; /* of this role; wiped with the last use */
	void *own;              /* what its process made of it; free_own frees it. NULL: nothing */
	void (*free_own)(void *own);
	atomic_uint uses;
};

/* Which one is in force; its use is counted too. */
struct held_place {
	pthread_mutex_t lock;
	struct held *now;
};

/* Reads both descriptors, which stay the caller's; secrets -1: there are none. One use is the caller's. NULL, and *why
 * is a phrase that stays until the next call. */
struct held *held_load(int conf, int secrets, const char **why);
struct held *held_use(struct held *h);
/* h may be NULL. */
void held_done(struct held *h);
void held_init(struct held_place *p, struct held *first);
/* The one in force, used once more. */
struct held *held_now(struct held_place *p);
/* The place takes over the use of next. Returns the one before, whose use is now the caller's. */
struct held *held_swap(struct held_place *p, struct held *next);
#endif
