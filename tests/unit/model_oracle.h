/*
 * What must hold of a model request that is sent on under the policies agent and passthrough, said once more and
 * without the table: for the tests of random bodies and the fuzz target. Independent of gateway/policy.c on purpose.
 */
#ifndef TESTS_UNIT_MODEL_ORACLE_H
#define TESTS_UNIT_MODEL_ORACLE_H
#include "gateway/policy.h"

/* NULL, or what is wrong with what is sent. */
const char *oracle(const struct policy_rules *rules, const struct model_request *rq, const struct json *sent);
#endif
