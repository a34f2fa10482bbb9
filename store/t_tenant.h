/* Tenants that exist. */
#ifndef STORE_T_TENANT_H
#define STORE_T_TENANT_H
#include "store/txn.h"
bool tenant_exists(struct txn *t, const char *tenant);
void tenant_put(struct txn *t, const char *tenant); /* now, unless it exists */
#endif
