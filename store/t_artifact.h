/* Which blob is which artifact of a run. */
#ifndef STORE_T_ARTIFACT_H
#define STORE_T_ARTIFACT_H
#include "gen/records.h"
#include "lib/names.h"
#include "store/txn.h"
bool artifact_get(struct txn *t, const char *tenant, const char *run, enum artifact name, struct rec_artifact *out);
void artifact_put(struct txn *t, const char *tenant, const char *run, enum artifact name, const struct rec_artifact *r);
/* All of a run's; their blobs lose this run's names. */
void artifacts_del(struct txn *t, const char *tenant, const char *run);
/* The name by which an artifact uses its blob. */
const char *artifact_use(enum artifact name);
#endif
