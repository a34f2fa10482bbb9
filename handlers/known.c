/* A small table, in which a later token takes an earlier one's place: who is not found asks stored first. */
#include "handlers/known.h"
#include "lib/secret.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 256 };

struct known {
	pthread_mutex_t lock;
	struct row {
		struct proof proof;
		struct principal who;
	} rows[ROWS];
};

struct known *known_new(void)
{
	struct known *k = calloc(1, sizeof *k);
	if (k != NULL)
		pthread_mutex_init(&k->lock, NULL);
	return k;
}

/* By the hash, which nobody chooses. */
static struct row *row_of(struct known *k, const struct proof *proof)
{
	return &k->rows[proof->hash[0] % ROWS];
}

static bool is_of(const struct row *r, const struct proof *proof)
{
	return r->who.kind != 0 && strcmp(r->proof.id, proof->id) == 0 &&
	       secret_equal(r->proof.hash, sizeof r->proof.hash, proof->hash, sizeof proof->hash);
}

bool known_find(struct known *k, const struct proof *proof, struct principal *who)
{
	if (k == NULL)
		return false;
	(void)pthread_mutex_lock(&k->lock);
	const struct row *r = row_of(k, proof);
	bool found = is_of(r, proof);
	if (found)
		*who = r->who;
	(void)pthread_mutex_unlock(&k->lock);
	return found;
}

void known_keep(struct known *k, const struct proof *proof, const struct principal *who)
{
	if (k == NULL)
		return;
	(void)pthread_mutex_lock(&k->lock);
	*row_of(k, proof) = (struct row){.proof = *proof, .who = *who};
	(void)pthread_mutex_unlock(&k->lock);
}

void known_drop(struct known *k, const struct proof *proof)
{
	if (k == NULL)
		return;
	(void)pthread_mutex_lock(&k->lock);
	struct row *r = row_of(k, proof);
	if (is_of(r, proof))
		wipe(r, sizeof *r);
	(void)pthread_mutex_unlock(&k->lock);
}
