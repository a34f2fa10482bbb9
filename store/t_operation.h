/*
 * The last operation of each caller that must not be done twice, with its answer: one row a connection's owner
 * (client, from HELLO), since a caller asks one thing at a time. Old rows go in bounded steps.
 */
#ifndef STORE_T_OPERATION_H
#define STORE_T_OPERATION_H
#include "gen/records.h"
#include "store/txn.h"

/* Rows of one role: from OPERATIONS_MANY on only those stay that a caller may still ask about, and at twice
 * that even these go. A role can crowd out only its own. */
enum { OPERATIONS_MANY = 1024, OPERATION_KEEP_MS = 600000, OPERATION_ASK_MS = 20000, OPERATIONS_STEP = 8 };

struct operations {
	struct {
		uint64_t rows, at; /* at: where the next step of pruning begins */
	} role[OPERATION_ROLES];
};

/* Counts what is there. */
void operations_open(struct operations *o, struct txn *t);
bool operation_get(struct txn *t, uint8_t role, uint64_t client, struct rec_operation *out);
void operation_put(struct txn *t, uint8_t role, uint64_t client, const struct rec_operation *r);
#endif
