/* See push_budget.h. */
#include "store/push_budget.h"
#include "gen/limits.h"
#include "gen/records.h"
#include "lib/digest.h"
#include "store/bdb.h"
#include "store/push_clock.h"
#include <endian.h>
#include <errno.h>
#include <string.h>

enum { ENTRY = 16, RUN_PART = 8, LOG_BYTES = 16000, MINUTE = 60000, HOUR = 3600000 };
static const uint64_t silence = LIMIT_PUSH_SILENCE_SECONDS * UINT64_C(1000);

/* One tenant's, or that of all under the empty name. */
struct budget {
	struct rec_push_budget r;
	uint8_t *log; /* of the last hour; room for one more */
	size_t n;     /* entries */
	size_t minute, run;
};

static struct key budget_key(const char *tenant)
{
	struct key k;
	k.n = rec_key_push_budget(k.p, sizeof k.p, tenant);
	return k;
}

static uint64_t entry_tick(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof v);
	return be64toh(v);
}

/* False: the transaction has failed. */
static bool load(struct txn *t, const char *tenant, const uint8_t run[RUN_PART], struct budget *b)
{
	struct key k = budget_key(tenant);
	struct wire_bytes v;
	uint64_t now = push_tick(t);
	*b = (struct budget){.log = arena_get(&t->arena, LOG_BYTES + ENTRY)};
	if (b->log == NULL) {
		txn_fail(t, store_error(errno));
		return false;
	}
	if (!table_get(t, T_PUSH_BUDGET, &k, &v))
		return t->failed == ERR_OK;
	if (!rec_get_push_budget(v.p, v.n, &b->r)) {
		txn_fail(t, ERR_INTERNAL_ERROR);
		return false;
	}
	for (const uint8_t *p = b->r.log.p, *end = p + b->r.log.n; end - p >= ENTRY; p += ENTRY) {
		/* What is not older than now counts: this clock does not go back. */
		uint64_t at = entry_tick(p), age = at < now ? now - at : 0;
		if (age >= HOUR)
			continue;
		memcpy(b->log + b->n++ * ENTRY, p, ENTRY);
		b->minute += age < MINUTE;
		b->run += age < MINUTE && memcmp(p + 8, run, RUN_PART) == 0;
	}
	return true;
}

static void add(struct txn *t, struct budget *b, const uint8_t run[RUN_PART])
{
	uint64_t at = htobe64(push_tick(t));
	/* Only where a limit was lowered meanwhile is it ever so full. */
	if (b->n * ENTRY >= LOG_BYTES)
		memmove(b->log, b->log + ENTRY, --b->n * ENTRY);
	memcpy(b->log + b->n * ENTRY, &at, sizeof at);
	memcpy(b->log + b->n * ENTRY + 8, run, RUN_PART);
	b->n++;
}

static void save(struct txn *t, const char *tenant, struct budget *b)
{
	struct key k = budget_key(tenant);
	uint8_t *p = txn_scratch(t);
	b->r.log = (struct wire_bytes){b->log, (uint32_t)(b->n * ENTRY)};
	table_put(t, T_PUSH_BUDGET, &k, p, rec_put_push_budget(p, STORE_SCRATCH, &b->r));
}

enum push_verdict push_budget_take(struct txn *t, const char *tenant, const char *run, uint32_t *count)
{
	uint8_t hash[SHA256_SIZE];
	struct budget own, all;
	uint64_t now = push_tick(t);
	*count = 1;
	if (!sha256(run, strlen(run), hash)) {
		txn_fail(t, store_error(errno));
		return PUSH_HELD;
	}
	if (!load(t, tenant, hash, &own) || !load(t, "", hash, &all))
		return PUSH_HELD;
	enum push_verdict verdict = PUSH_ALLOWED;
	bool own_full = own.n >= LIMIT_PUSH_TENANT_HOUR, all_full = all.n >= t->store->push_hour;
	if (own.r.silent_until > now || all.r.silent_until > now || own.run >= LIMIT_PUSH_RUN_MINUTE ||
	    own.minute >= LIMIT_PUSH_TENANT_MINUTE || all.minute >= t->store->push_minute)
		verdict = PUSH_HELD;
	else if (own_full || all_full)
		verdict = PUSH_SUMMED;
	if (verdict == PUSH_HELD) {
		own.r.unpushed++;
		t->adds.pushes_held++;
		save(t, tenant, &own);
		return verdict;
	}
	if (verdict == PUSH_SUMMED) {
		uint64_t n = own.r.unpushed + 1;
		*count = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
		own.r.unpushed = 0;
		if (own_full)
			own.r.silent_until = now + silence;
		if (all_full)
			all.r.silent_until = now + silence;
	}
	/* The summary is a push, too. Where its own log is full, the silence outlasts every entry. */
	if (!own_full)
		add(t, &own, hash);
	if (!all_full)
		add(t, &all, hash);
	save(t, tenant, &own);
	save(t, "", &all);
	push_clock_record(t);
	return verdict;
}
