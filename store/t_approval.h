/* An agent's questions and their answers. */
#ifndef STORE_T_APPROVAL_H
#define STORE_T_APPROVAL_H
#include "gen/records.h"
#include "store/txn.h"
bool approval_get(struct txn *t, const char *tenant, const char *run, const char *request, struct rec_approval *out);
void approval_put(struct txn *t, const char *tenant, const char *run, const char *request,
		  const struct rec_approval *r);
/* The run ends: what is pending becomes expired. */
void approvals_end(struct txn *t, const char *tenant, const char *run);
void approvals_del(struct txn *t, const char *tenant, const char *run);
#endif
