/* The tables of sources: archives from which runs can be made. */
#ifndef STORE_T_SOURCE_H
#define STORE_T_SOURCE_H
#include "gen/records.h"
#include "lib/digest.h"
#include "store/txn.h"

/* The name by which a source uses its blob; its run is "". */
extern const char source_use[];

/* sha: its digest as text, of lower case. False: there is none, or the transaction has failed. */
bool source_get(struct txn *t, const char *tenant, const char *sha, struct rec_source *out);
/* Writes it as used now, in place of old (NULL: there was none). */
void source_put(struct txn *t, const char *tenant, const char *sha, const struct rec_source *old,
		struct rec_source *now);
/* Removes it with its use of the blob, and says so in the audit log; by and request_id as there. */
void source_remove(struct txn *t, const char *tenant, const char *sha, const struct rec_source *r, const char *by,
		   const char *request_id);
/* Are there so many, or more? */
bool sources_reach(struct txn *t, const char *tenant, unsigned most);
/* Removes some that were not used since before, at most so many; how many. */
unsigned sources_prune(struct txn *t, const char *tenant, uint64_t before, unsigned most);
/* The key of its row in the index. */
struct key source_use_key(const char *tenant, uint64_t used_at, const char *sha);
struct key source_key(const char *tenant, const char *sha);
#endif
