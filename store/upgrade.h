/*
 * Which form the store's tables have, and how an older one becomes the present one. Records that only got fields
 * need nothing here: their old versions are read (since= in spec/records.rec).
 */
#ifndef STORE_UPGRADE_H
#define STORE_UPGRADE_H
#include "gen/errors.h"
#include <stdbool.h>
#include <stdint.h>

struct store;
struct txn;

enum { SCHEMA = 6, META_ID = 16 };

struct meta {
	uint32_t schema;
	uint64_t generation, restored_at;
	uint8_t id[META_ID]; /* 0: none yet */
};
/* A store without that record has form 1, from before there were any. False: it cannot be read. */
bool meta_get(struct txn *t, struct meta *out);
void meta_put(struct txn *t, const struct meta *m);
/* Ends the program with a sentence where a newer program wrote this store. Only the table of meta need be open. */
void schema_check(struct store *s);
/* All steps that are missing. Killed at any moment it begins again where it stood at the next start. */
void schema_upgrade(struct store *s);
#endif
