/* The public pipeline, from an arrival to its answer. */
#ifndef HANDLERS_DISPATCH_H
#define HANDLERS_DISPATCH_H
#include "handlers/reply.h"
#include "handlers/request.h"

/* Answers exactly once. The ask is this thread's; its connection may be made here. */
void dispatch(const struct app *app, struct ask *ask, const struct arrival *in, struct reply *rp);
#endif
