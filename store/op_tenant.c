/* What a tenant has and has used, told to the operator. Reads alone; only root's connection gets here. */
#include "lib/token.h"
#include "store/env.h"
#include "store/op.h"
#include "store/spent.h"
#include "store/t_run.h"
#include "store/t_tenant.h"
#include "store/t_token.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Rows of the index of runs in one step: some milliseconds, in which nobody else is answered. */
enum { STEP = 20000 };

struct count {
	const struct st_tenant_use *asked;
	struct st_tenant_used *a;
	uint64_t now;
	unsigned seen;
	char next_run[STORE_ID];
};

static bool count_token(void *with, const char *token_id, const struct rec_token *r)
{
	struct count *c = with;
	(void)token_id;
	if (strcmp(r->tenant, c->asked->tenant) == 0 && token_alive(r, c->now)) {
		c->a->tokens += r->kind == PRINCIPAL_API;
		c->a->devices += r->kind == PRINCIPAL_DEVICE;
	}
	return true;
}

static bool count_run(void *with, const char *tenant, const char *run, uint8_t state, uint64_t created_at)
{
	struct count *c = with;
	(void)tenant;
	if (c->seen++ == STEP) {
		c->a->more = true;
		return false;
	}
	c->a->queued += state == RUN_QUEUED;
	c->a->running += state == RUN_RUNNING || state == RUN_CANCELLING;
	c->a->completed += state == RUN_COMPLETED;
	c->a->failed += state == RUN_FAILED;
	c->a->cancelled += state == RUN_CANCELLED;
	c->a->next_created = created_at;
	(void)snprintf(c->next_run, sizeof c->next_run, "%s", run);
	return true;
}

static enum err op_tenant_use(struct txn *t, const struct st_tenant_use *m, int *fds, struct st_tenant_used *a,
			      int *out)
{
	(void)fds;
	(void)out;
	struct count c = {.asked = m, .a = a, .now = t->now};
	a->known = tenant_exists(t, m->tenant);
	if (m->before_created == 0) {
		token_each(t, count_token, &c);
		a->runs_hour = spent_now(t, m->tenant, SPENT_RUNS);
		a->requests_day = spent_now(t, m->tenant, SPENT_REQUESTS);
		a->tokens_day = spent_now(t, m->tenant, SPENT_TOKENS);
		a->stored_bytes = store_stored(t->store, m->tenant);
	}
	run_by_age_each(t, m->tenant, m->before_created, m->before_run, count_run, &c);
	a->next_run = "";
	if (a->more && (a->next_run = arena_dup(&t->arena, c.next_run, strlen(c.next_run))) == NULL)
		txn_fail(t, store_error(errno));
	return ERR_OK;
}
ST_OP(tenant_use, tenant_used, 0, 0)
