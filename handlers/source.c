/*
 * Theory of operation. A row is an address and its minute; a set of four rows is found by a hash with a key of this
 * process. In a full set the row goes whose minute is over, or else that with the fewest failures: many addresses that
 * fail once push out each other, and not the one that fails all the time. A row that is lost forgives, it never blames.
 */
#include "handlers/source.h"
#include "lib/secret.h"
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARDS = 16, SETS = 64, WAYS = 4, MINUTE_MS = 60000 };

struct row {
	uint8_t key[SOURCE_KEY];
	uint64_t since; /* timer_ms of the first failure of its minute */
	uint32_t n;     /* 0: free */
};

struct sources {
	_Atomic uint32_t most;
	uint64_t seed;
	struct shard {
		pthread_mutex_t lock;
		struct row sets[SETS][WAYS];
	} shards[SHARDS];
};

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
/* No other key has all of this: of an IPv6 address the second half is 0. */
static const uint8_t unknown[SOURCE_KEY] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
					    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

void source_key(const char *address, uint8_t out[SOURCE_KEY])
{
	struct in_addr four;
	memcpy(out, unknown, SOURCE_KEY);
	if (address == NULL)
		return;
	if (inet_pton(AF_INET, address, &four) == 1) {
		memcpy(out, mapped, sizeof mapped);
		memcpy(out + sizeof mapped, &four, 4);
	} else if (inet_pton(AF_INET6, address, out) != 1) {
		memcpy(out, unknown, SOURCE_KEY);
	} else if (memcmp(out, mapped, sizeof mapped) != 0) {
		/* A household's network, of which each device has as many addresses as it likes. */
		memset(out + SOURCE_KEY / 2, 0, SOURCE_KEY / 2);
	}
}

void source_text(const char *address, char out[SOURCE_TEXT])
{
	uint8_t key[SOURCE_KEY];
	char text[INET6_ADDRSTRLEN] = "";
	source_key(address, key);
	bool four = memcmp(key, mapped, sizeof mapped) == 0;
	if (four)
		(void)inet_ntop(AF_INET, key + sizeof mapped, text, sizeof text);
	else if (memcmp(key, unknown, sizeof unknown) != 0)
		(void)inet_ntop(AF_INET6, key, text, sizeof text);
	(void)snprintf(out, SOURCE_TEXT, "%s%s", text[0] != '\0' ? text : "an unknown address",
		       text[0] != '\0' && !four ? "/64" : "");
}

void sources_most(struct sources *s, uint32_t per_minute)
{
	atomic_store(&s->most, per_minute > 0 ? per_minute : SOURCE_FAILURES);
}

struct sources *sources_new(uint32_t per_minute)
{
	struct sources *s = calloc(1, sizeof *s);
	if (s == NULL)
		return NULL;
	sources_most(s, per_minute);
	random_bytes(&s->seed, sizeof s->seed);
	for (unsigned i = 0; i < SHARDS; i++)
		(void)pthread_mutex_init(&s->shards[i].lock, NULL);
	return s;
}

static uint64_t hash_of(const struct sources *s, const uint8_t key[SOURCE_KEY])
{
	uint64_t h = s->seed;
	for (unsigned i = 0; i < SOURCE_KEY; i++) {
		h = (h ^ key[i]) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	return h;
}

/* Its row, or the one that makes room for it, empty. */
static struct row *row_of(struct row set[WAYS], const uint8_t key[SOURCE_KEY], uint64_t now)
{
	struct row *out = NULL;
	for (unsigned i = 0; i < WAYS; i++) {
		struct row *r = &set[i];
		if (r->n > 0 && now - r->since >= MINUTE_MS)
			r->n = 0;
		if (r->n > 0 && memcmp(r->key, key, SOURCE_KEY) == 0)
			return r;
		if (out == NULL || r->n < out->n)
			out = r;
	}
	*out = (struct row){.since = now};
	memcpy(out->key, key, SOURCE_KEY);
	return out;
}

struct source_verdict sources_failed(struct sources *s, const char *address, uint64_t now)
{
	struct source_verdict v = {0};
	uint8_t key[SOURCE_KEY];
	if (s == NULL)
		return v;
	source_key(address, key);
	uint64_t h = hash_of(s, key);
	struct shard *shard = &s->shards[h % SHARDS];
	(void)pthread_mutex_lock(&shard->lock);
	struct row *r = row_of(shard->sets[h / SHARDS % SETS], key, now);
	if (r->n <= s->most)
		v.first = ++r->n > s->most;
	v.over = r->n > s->most;
	v.seconds = (unsigned)((MINUTE_MS - (now - r->since) + 999) / 1000);
	(void)pthread_mutex_unlock(&shard->lock);
	return v;
}
