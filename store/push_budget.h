/*
 * How much may be pushed (C-11, C-12, D-51): of a run in a minute, of a tenant and of all in a minute and in an hour.
 * What would be the next in the hour is one summary; then nothing is pushed for an hour. Logs of moments of the push
 * clock, kept in the store: neither a restart nor a step of the clock gives anything back.
 */
#ifndef STORE_PUSH_BUDGET_H
#define STORE_PUSH_BUDGET_H
#include "store/txn.h"

enum push_verdict { PUSH_ALLOWED, PUSH_HELD, PUSH_SUMMED };
/* Charges one push about a question of this run. PUSH_SUMMED: *count questions had none, this one included. */
enum push_verdict push_budget_take(struct txn *t, const char *tenant, const char *run, uint32_t *count);
#endif
