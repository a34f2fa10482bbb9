/* Is the caller anybody who may decide? */
#ifndef HANDLERS_CALLER_H
#define HANDLERS_CALLER_H
#include "handlers/reply.h"
#include "handlers/request.h"

/* Every route that decides something for a person asks this first. False: answered with caller_refused. */
bool caller_known(struct request *rq, struct reply *rp);
#endif
