/*
 * libcurl's memory. Where it has none for the small table of a socket that it begins to watch, its 7.88 goes on with a
 * table of no rows and divides by that. So what is small comes from a reserve when there is no other, and what is not
 * fails as ever.
 */
#include "gateway/gateway.h"
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512, BLOCKS = 512 };

static union block {
	union block *next;
	max_align_t aligned;
	char bytes[BLOCK];
} reserve[BLOCKS], *free_blocks;
static unsigned fresh; /* those from here on were never used */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool reserved(const void *p)
{
	return (uintptr_t)p >= (uintptr_t)reserve && (uintptr_t)p < (uintptr_t)(reserve + BLOCKS);
}

static void *from_reserve(size_t n)
{
	union block *b = NULL;

	if (n > BLOCK)
		return NULL;
	pthread_mutex_lock(&lock);
	if (free_blocks) {
		b = free_blocks;
		free_blocks = b->next;
	} else if (fresh < BLOCKS)
		b = &reserve[fresh++];
	pthread_mutex_unlock(&lock);
	return b;
}

static void *get(size_t n)
{
	void *p = malloc(n);
	return p ? p : from_reserve(n);
}

static void give_back(void *p)
{
	union block *b = p;

	if (!reserved(p)) {
		free(p);
		return;
	}
	pthread_mutex_lock(&lock);
	b->next = free_blocks;
	free_blocks = b;
	pthread_mutex_unlock(&lock);
}

static void *change(void *p, size_t n)
{
	if (p && !reserved(p)) {
		void *larger = realloc(p, n);
		return larger;
	}
	if (p && n <= BLOCK)
		return p;
	void *q = get(n);
	if (q && p) {
		memcpy(q, p, BLOCK);
		give_back(p);
	}
	return q;
}

static char *copy(const char *s)
{
	size_t n = strlen(s) + 1;
	char *p = get(n);

	if (p)
		memcpy(p, s, n);
	return p;
}

static void *zeroed(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p && n > 0 && size <= BLOCK / n && (p = from_reserve(n * size)) != NULL)
		memset(p, 0, BLOCK);
	return p;
}

bool upstream_memory_start(void)
{
	return curl_global_init_mem(CURL_GLOBAL_DEFAULT, get, give_back, change, copy, zeroed) == CURLE_OK;
}
