/*
 * A process in a sandbox must never decide what its own agent asks. It has no network and sees no socket of ours;
 * should one ever reach the public socket all the same, by a mistake of ours or of an administrator, whatever
 * credential it got hold of counts for nothing where something is decided. Who is not visibly somebody else is
 * treated as one: the kernel gives no process id for a peer whose namespace of processes is not below ours.
 */
#include "handlers/caller.h"
#include "gen/audit.h"
#include "gen/store_msg.h"
#include "handlers/denied.h"
#include "lib/ask.h"
#include "lib/die.h"
#include "lib/place.h"
#include <stdio.h>

static bool boxed(const struct conf *conf, uid_t uid)
{
	uint64_t base = conf->global.box_uid_base;
	return uid >= base && uid < base + BOX_UIDS * (uint64_t)conf->global.max_boxes;
}

bool caller_known(struct request *rq, struct reply *rp)
{
	uid_t uid = 0;
	pid_t pid = 0;
	bool known = rq->in->peer.who != NULL && rq->in->peer.who(rq->in->peer.ctx, &uid, &pid);
	if (known && pid > 0 && !boxed(rq->conf, uid))
		return true;
	log_warn(
	    "request %s: %s by uid %lu (pid %ld), which cannot be told apart from a process in a sandbox, was refused",
	    rq->in->id, rq->in->method, (unsigned long)uid, (long)pid);
	caller_note(rq->ask, rq->in, rq->who, uid, pid);
	reply_error(rp, ERR_CALLER_REFUSED, NULL, NULL);
	return false;
}
