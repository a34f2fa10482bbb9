/*
 * Every handler of a route as a witness (gen/routes_stub.c), so that what comes before the handlers can be tested
 * alone. The test writes these two.
 */
#ifndef TESTS_UNIT_REACHED_H
#define TESTS_UNIT_REACHED_H
#include "lib/route.h"

void reached(const char *handler, struct request *rq, struct reply *rp);
void reached_inside(const char *handler, struct gate_call *call);
#endif
