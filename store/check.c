/*
 * Reads only. A row that cannot be decoded is a finding and its references are not followed. What is written between
 * two steps does no harm: every row is compared with what its own transaction left.
 */
#include "gen/records.h"
#include "lib/digest.h"
#include "lib/names.h"
#include "store/blobs.h"
#include "store/check_row.h"
#include "store/push_clock.h"
#include "store/run_gone.h"
#include "store/t_approval.h"
#include "store/t_artifact.h"
#include "store/t_capability.h"
#include "store/t_event.h"
#include "store/t_tenant.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TEXT = 400, CONTENT_COST = 20, ARENA_ENOUGH = 1 << 20 };

void check_finding(struct check *c, const char *fmt, ...)
{
	char text[TEXT];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	c->findings++;
	c->says(c->with, text);
}

void check_settle(struct check *c, const char *what)
{
	if (c->t->failed == ERR_OK)
		return;
	c->t->failed = ERR_OK;
	if (what != NULL)
		check_finding(c, "%s cannot be read", what);
}

static bool run_of(struct check *c, const char *tenant, const char *run, struct rec_run *r)
{
	enum err e = run_load(c->t, tenant, run, r);
	check_settle(c, NULL);
	return e == ERR_OK;
}

bool check_has(struct check *c, enum table which, const struct key *k)
{
	bool yes = table_has(c->t, which, k);
	check_settle(c, table_names[which]);
	return yes;
}

/* --- blobs ---------------------------------------------------------------------------------------- */

static void named(struct check *c, struct wire_bytes sha, const char *tenant, const char *run, const char *use)
{
	char h[2 * BLOB_SHA + 1];
	struct key blob, named_by;
	if (sha.n != BLOB_SHA) {
		check_finding(c, "run %s/%s: the digest of \"%s\" is none", tenant, run, use);
		return;
	}
	hex(sha.p, BLOB_SHA, h);
	blob.n = rec_key_blob(blob.p, sizeof blob.p, h);
	named_by.n = rec_key_blob_use(named_by.p, sizeof named_by.p, h, tenant, run, use);
	if (!check_has(c, T_BLOB, &blob))
		check_finding(c, "run %s/%s: there is no blob %s for \"%s\"", tenant, run, h, use);
	if (!check_has(c, T_BLOB_USE, &named_by))
		check_finding(c, "run %s/%s: the blob of \"%s\" does not say that it is used so", tenant, run, use);
}

static void a_blob(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_blob r;
	uint8_t sha[BLOB_SHA], is[SHA256_SIZE];
	uint64_t size_read;
	const char *h = key_part(&key);
	if (!rec_get_blob(value.p, value.n, &r) || !unhex(h, strlen(h), sha, BLOB_SHA)) {
		check_finding(c, "the record of blob %s cannot be read", h);
		return;
	}
	bool used = blob_used(c->t, sha);
	check_settle(c, "a blob's use");
	if (!used)
		check_finding(c, "blob %s is used by nobody", h);
	int fd = blob_read(c->t, (struct wire_bytes){sha, BLOB_SHA});
	check_settle(c, NULL);
	if (fd < 0) {
		check_finding(c, "blob %s is not there", h);
		return;
	}
	off_t size = lseek(fd, 0, SEEK_END);
	if (size < 0 || (uint64_t)size != r.size)
		check_finding(c, "blob %s has %lld bytes instead of %llu", h, (long long)size,
			      (unsigned long long)r.size);
	else if (c->contents && (!sha256_fd(fd, is, &size_read) || memcmp(is, sha, sizeof is) != 0))
		check_finding(c, "blob %s holds something else", h);
	close(fd);
	c->left -= c->contents ? CONTENT_COST : 0;
}

static void a_content(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_blob_content r;
	struct key k;
	memcpy(k.p, key.p, key.n);
	k.n = key.n;
	const char *h = key_part(&key);
	if (!rec_get_blob_content(value.p, value.n, &r))
		check_finding(c, "the content of blob %s cannot be read", h);
	if (!check_has(c, T_BLOB, &k))
		check_finding(c, "there is content of blob %s, and no such blob", h);
}

static void a_use(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_blob_use u;
	struct rec_run r;
	struct key blob;
	const char *h = key_part(&key), *tenant = key_part(&key), *run = key_part(&key), *use = key_part(&key);
	if (!rec_get_blob_use(value.p, value.n, &u))
		check_finding(c, "the use of blob %s by %s/%s cannot be read", h, tenant, run);
	blob.n = rec_key_blob(blob.p, sizeof blob.p, h);
	if (!check_has(c, T_BLOB, &blob))
		check_finding(c, "blob %s is used by %s/%s as \"%s\" and is not there", h, tenant, run, use);
	if (check_source_use(c, h, tenant, run, use))
		return;
	if (!run_of(c, tenant, run, &r))
		check_finding(c, "blob %s is used by %s/%s, which is no run", h, tenant, run);
}

/* --- runs ----------------------------------------------------------------------------------------- */

struct dense {
	uint64_t first, last, n;
	bool gap;
};

static bool next_event(void *with, uint64_t sequence, const struct rec_event *r)
{
	struct dense *d = with;
	(void)r;
	if (d->n == 0)
		d->first = sequence;
	else if (sequence != d->last + 1)
		d->gap = true;
	d->last = sequence;
	d->n++;
	return true;
}

static void events_of(struct check *c, const char *tenant, const char *run, const struct rec_run *r)
{
	struct dense d = {0};
	event_each(c->t, tenant, run, 0, next_event, &d);
	check_settle(c, "a run's events");
	c->left -= (int64_t)d.n;
	/* Retention takes the oldest first, in steps. */
	bool begins = d.first == 1 || r->artifacts_gone;
	if (d.gap || d.last != r->last_sequence || !begins || (d.n == 0 && !r->artifacts_gone))
		check_finding(c, "run %s/%s: its events are not 1 to %llu without a gap (%llu, from %llu to %llu)",
			      tenant, run, (unsigned long long)r->last_sequence, (unsigned long long)d.n,
			      (unsigned long long)d.first, (unsigned long long)d.last);
}

struct asked {
	uint32_t all, pending;
};

static bool count_question(void *with, const char *request, const struct rec_approval *r)
{
	struct asked *a = with;
	(void)request;
	a->all++;
	a->pending += r->status == APPROVAL_PENDING;
	return true;
}

static void questions_of(struct check *c, const char *tenant, const char *run, const struct rec_run *r)
{
	struct asked a = {0, 0};
	approval_each(c->t, tenant, run, "", count_question, &a);
	check_settle(c, "a run's questions");
	c->left -= (int64_t)a.all;
	/* Of before questions could wait none is counted. */
	if (a.pending != r->pending || (a.all != r->approvals && r->approvals != 0))
		check_finding(c, "run %s/%s: %u questions are there, of which %u wait, not %u and %u", tenant, run,
			      (unsigned)a.all, (unsigned)a.pending, (unsigned)r->approvals, (unsigned)r->pending);
}

static void artifacts_of(struct check *c, const char *tenant, const char *run, const struct rec_run *r)
{
	struct rec_artifact a;
	for (enum artifact name = 0; name < ART__COUNT; name++) {
		bool there = artifact_get(c->t, tenant, run, name, &a), said = (r->artifacts >> name & 1) != 0;
		check_settle(c, "an artifact's record");
		if (there != said)
			check_finding(c, "run %s/%s: artifact %s is %s", tenant, run, artifact_names[name],
				      there ? "there and not in its record" : "in its record and not there");
		if (there)
			named(c, a.sha256, tenant, run, artifact_use(name));
	}
}

static void indexes_of(struct check *c, const char *tenant, const char *run, const struct rec_run *r)
{
	struct key age, open, ended = run_ended_key(tenant, run, r);
	struct wire_bytes v;
	struct rec_run_by_age by_age;
	bool final = run_is_final(r);
	age.n = rec_key_run_by_age(age.p, sizeof age.p, tenant, ~r->created_at, run);
	open.n = rec_key_run_open(open.p, sizeof open.p, tenant, run);
	bool there = table_get(c->t, T_RUN_BY_AGE, &age, &v);
	check_settle(c, "the index of runs by age");
	if (!there)
		check_finding(c, "run %s/%s is not in the index by age", tenant, run);
	else if (!rec_get_run_by_age(v.p, v.n, &by_age) || by_age.state != r->state)
		check_finding(c, "run %s/%s has another state in the index by age", tenant, run);
	if (check_has(c, T_RUN_OPEN, &open) == final)
		check_finding(c, "run %s/%s %s the index of open runs", tenant, run,
			      final ? "has ended and is in" : "has not ended and is not in");
	if (check_has(c, T_RUN_ENDED, &ended) != final)
		check_finding(c, "run %s/%s %s the index of ended runs", tenant, run,
			      final ? "has ended and is not in" : "has not ended and is in");
}

static void a_run(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_run r;
	struct rec_capability cap;
	const char *tenant = key_part(&key), *run = key_part(&key);
	if (!rec_get_run(value.p, value.n, &r) || r.state >= RUN_STATE__COUNT || r.phase >= PHASE__COUNT) {
		check_finding(c, "the record of run %s/%s cannot be read", tenant, run);
		return;
	}
	if (!tenant_exists(c->t, tenant))
		check_finding(c, "run %s/%s has no tenant", tenant, run);
	indexes_of(c, tenant, run, &r);
	events_of(c, tenant, run, &r);
	questions_of(c, tenant, run, &r);
	named(c, r.request_sha, tenant, run, run_use_request);
	if (!r.artifacts_gone)
		named(c, r.upload_sha, tenant, run, run_use_upload);
	artifacts_of(c, tenant, run, &r);
	bool may_ask = capability_get(c->t, tenant, run, &cap);
	check_settle(c, "a capability");
	if (may_ask && r.state != RUN_RUNNING)
		check_finding(c, "run %s/%s has a capability and is not running", tenant, run);
	if (may_ask && (cap.used_requests != r.used_requests || cap.used_requests > cap.max_requests))
		check_finding(c, "run %s/%s used %u requests of %u, its capability says %u", tenant, run,
			      (unsigned)r.used_requests, (unsigned)cap.max_requests, (unsigned)cap.used_requests);
}

/* A row that belongs to a run which must be there, in a state that fits. */
static void of_run(struct check *c, const char *tenant, const char *run, const char *what, bool open, bool ended)
{
	struct rec_run r;
	if (!run_of(c, tenant, run, &r))
		check_finding(c, "%s of %s/%s, which is no run", what, tenant, run);
	else if (run_is_final(&r) ? !ended : !open)
		check_finding(c, "%s of %s/%s, which has %s", what, tenant, run, open ? "ended" : "not ended");
}

static void by_age(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_run r;
	(void)value;
	const char *tenant = key_part(&key);
	uint64_t created = ~key_u64(&key);
	const char *run = key_part(&key);
	if (!run_of(c, tenant, run, &r) || r.created_at != created)
		check_finding(c, "the index by age names %s/%s wrongly", tenant, run);
}

static void open_row(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_run_open v;
	const char *tenant = key_part(&key), *run = key_part(&key);
	if (!rec_get_run_open(value.p, value.n, &v))
		check_finding(c, "the row of %s/%s in the index of open runs cannot be read", tenant, run);
	of_run(c, tenant, run, "the index of open runs: a row", true, false);
}

static void ended_row(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_run r;
	(void)value;
	bool gone = strcmp(key_part(&key), "1") == 0;
	uint64_t ended = key_u64(&key);
	const char *tenant = key_part(&key), *run = key_part(&key);
	if (!run_of(c, tenant, run, &r) || !run_is_final(&r) || r.finished_at != ended || r.artifacts_gone != gone)
		check_finding(c, "the index of ended runs names %s/%s wrongly", tenant, run);
}

static void a_capability(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_capability r;
	const char *tenant = key_part(&key), *run = key_part(&key);
	if (!rec_get_capability(value.p, value.n, &r))
		check_finding(c, "the capability of %s/%s cannot be read", tenant, run);
	of_run(c, tenant, run, "a capability", true, false);
}

static void an_event(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_event r;
	struct key k;
	const char *tenant = key_part(&key), *run = key_part(&key);
	uint64_t sequence = key_u64(&key);
	if (!rec_get_event(value.p, value.n, &r))
		check_finding(c, "event %llu of %s/%s cannot be read", (unsigned long long)sequence, tenant, run);
	k.n = rec_key_run(k.p, sizeof k.p, tenant, run);
	if (!check_has(c, T_RUN, &k))
		check_finding(c, "event %llu of %s/%s, which is no run", (unsigned long long)sequence, tenant, run);
}

/* Once in the index of those that wait, and only while it does. */
static void waits_as(struct check *c, const char *tenant, const char *run, const char *request,
		     const struct rec_approval *r)
{
	struct key k = waiting_key(tenant, r->requested_at, run, request);
	struct rec_waiting w;
	struct wire_bytes v;
	bool there = table_get(c->t, T_WAITING, &k, &v), should = r->status == APPROVAL_PENDING;
	check_settle(c, "the index of questions that wait");
	if (there != should)
		check_finding(c, "question %s of %s/%s %s the index of those that wait", request, tenant, run,
			      should ? "waits and is not in" : "does not wait and is in");
	else if (there && (!rec_get_waiting(v.p, v.n, &w) || w.expires_at != r->expires_at))
		check_finding(c, "question %s of %s/%s ends at another time in the index of those that wait", request,
			      tenant, run);
}

static void an_approval(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_approval r;
	const char *tenant = key_part(&key), *run = key_part(&key), *request = key_part(&key);
	if (!rec_get_approval(value.p, value.n, &r) || r.status >= APPROVAL_STATE__COUNT ||
	    r.decision >= DECISION__COUNT)
		check_finding(c, "an approval of %s/%s cannot be read", tenant, run);
	else
		waits_as(c, tenant, run, request, &r);
	of_run(c, tenant, run, "an approval", true, true);
}

static void a_waiting(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_approval r;
	(void)value;
	const char *tenant = key_part(&key);
	uint64_t asked = key_u64(&key);
	const char *run = key_part(&key), *request = key_part(&key);
	bool there = approval_get(c->t, tenant, run, request, &r);
	check_settle(c, NULL);
	if (!there || r.requested_at != asked || r.status != APPROVAL_PENDING)
		check_finding(c, "the index of questions that wait names %s of %s/%s wrongly", request, tenant, run);
}

static void a_receipt(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_receipt r;
	const char *tenant = key_part(&key);
	if (!rec_get_receipt(value.p, value.n, &r) || r.kind >= RECEIPT__COUNT || r.decision >= DECISION__COUNT)
		check_finding(c, "a receipt of %s cannot be read", tenant);
	if (!tenant_exists(c->t, tenant))
		check_finding(c, "a receipt of %s, which is no tenant", tenant);
}

static void a_grant(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_grant r;
	const char *tenant = key_part(&key), *run = key_part(&key);
	if (!rec_get_grant(value.p, value.n, &r))
		check_finding(c, "a grant of %s/%s cannot be read", tenant, run);
	of_run(c, tenant, run, "a grant", true, true);
}

static void an_artifact(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_artifact r;
	const char *tenant = key_part(&key), *run = key_part(&key), *name = key_part(&key);
	if (!rec_get_artifact(value.p, value.n, &r) || artifact_find(name) == ART__COUNT)
		check_finding(c, "artifact %s of %s/%s cannot be read", name, tenant, run);
	of_run(c, tenant, run, "an artifact", true, true);
}

/* --- the rest ------------------------------------------------------------------------------------- */

static void a_tenant(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_tenant r;
	if (!rec_get_tenant(value.p, value.n, &r))
		check_finding(c, "the record of tenant %s cannot be read", key_part(&key));
}

static void a_token(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_token r;
	const char *id = key_part(&key);
	if (!rec_get_token(value.p, value.n, &r) || r.hash.n != SHA256_SIZE ||
	    (r.next_hash.n != 0 && r.next_hash.n != SHA256_SIZE) ||
	    (r.next_hash.n == 0 && (r.next_at != 0 || r.next_expires_at != 0)))
		check_finding(c, "the record of token %s cannot be read", id);
	else if (r.next_hash.n != 0 && memcmp(r.next_hash.p, r.hash.p, SHA256_SIZE) == 0)
		check_finding(c, "token %s has the same secret twice", id);
	else if (!tenant_exists(c->t, r.tenant))
		check_finding(c, "token %s has no tenant", id);
}

static void a_pairing(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_pairing r;
	const char *tenant = key_part(&key);
	if (!rec_get_pairing(value.p, value.n, &r) || r.hash.n != SHA256_SIZE)
		check_finding(c, "the pairing code of %s cannot be read", tenant);
	else if (!tenant_exists(c->t, tenant))
		check_finding(c, "the pairing code of %s has no tenant", tenant);
}

static void a_key(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_idempotency r;
	struct key age;
	const char *tenant = key_part(&key), *name = key_part(&key);
	if (!rec_get_idempotency(value.p, value.n, &r)) {
		check_finding(c, "idempotency key %s of %s cannot be read", name, tenant);
		return;
	}
	age.n = rec_key_idempotency_by_age(age.p, sizeof age.p, tenant, r.created_at, name);
	if (!check_has(c, T_IDEMPOTENCY_BY_AGE, &age))
		check_finding(c, "idempotency key %s of %s is not in the index by age", name, tenant);
}

static void a_key_by_age(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_idempotency r;
	struct wire_bytes v;
	struct key k;
	(void)value;
	const char *tenant = key_part(&key);
	uint64_t created = key_u64(&key);
	const char *name = key_part(&key);
	k.n = rec_key_idempotency(k.p, sizeof k.p, tenant, name);
	bool there = table_get(c->t, T_IDEMPOTENCY, &k, &v);
	check_settle(c, "an idempotency key");
	if (!there || !rec_get_idempotency(v.p, v.n, &r) || r.created_at != created)
		check_finding(c, "the index by age names the idempotency key %s of %s wrongly", name, tenant);
}

/* --- the store itself ----------------------------------------------------------------------------- */

static void a_clock(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_clock r;
	struct audit_mark mark;
	const char *name = key_part(&key);
	bool sound = strcmp(name, "audit") == 0  ? audit_mark_get(c->t, &mark)
		     : strcmp(name, "push") == 0 ? push_clock_sound(c->t)
						 : rec_get_clock(value.p, value.n, &r);
	if (!sound)
		check_finding(c, "the record \"%s\" of the clock cannot be read", name);
}

static void an_operation(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_operation r;
	if (!rec_get_operation(value.p, value.n, &r))
		check_finding(c, "the record of an operation of role %s cannot be read", key_part(&key));
}

static void a_meta(struct check *c, struct wire_bytes key, struct wire_bytes value)
{
	struct rec_meta r;
	(void)key;
	if (!rec_get_meta(value.p, value.n, &r))
		check_finding(c, "the store's own record cannot be read");
}

static check_row *const rows_of[T__COUNT] = {
    [T_TENANT] = a_tenant,
    [T_TOKEN] = a_token,
    [T_PAIRING] = a_pairing,
    [T_RUN] = a_run,
    [T_RUN_BY_AGE] = by_age,
    [T_RUN_OPEN] = open_row,
    [T_RUN_ENDED] = ended_row,
    [T_CAPABILITY] = a_capability,
    [T_EVENT] = an_event,
    [T_APPROVAL] = an_approval,
    [T_GRANT] = a_grant,
    [T_WAITING] = a_waiting,
    [T_RECEIPT] = a_receipt,
    [T_ARTIFACT] = an_artifact,
    [T_BLOB] = a_blob,
    [T_BLOB_CONTENT] = a_content,
    [T_BLOB_USE] = a_use,
    [T_IDEMPOTENCY] = a_key,
    [T_IDEMPOTENCY_BY_AGE] = a_key_by_age,
    [T_CLOCK] = a_clock,
    [T_OPERATION] = an_operation,
    [T_META] = a_meta,
    [T_PUSH_SUBSCRIPTION] = check_subscription,
    [T_PUSH] = check_push,
    [T_PUSH_DUE] = check_push_due,
    [T_PUSH_BUDGET] = check_push_budget,
    [T_SPENT] = check_spent,
    [T_SOURCE] = check_source,
    [T_SOURCE_BY_USE] = check_source_by_use,
};

static bool one(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct check *c = with;
	if (c->left <= 0 && key.n <= STORE_KEY) {
		memcpy(c->next.p, key.p, key.n);
		c->next.n = key.n;
		return false;
	}
	c->next.n = 0;
	c->rows++;
	/* What earlier rows referred to is not needed any more. */
	if (c->t->arena.used > ARENA_ENOUGH) {
		size_t cap = c->t->arena.cap;
		arena_free(&c->t->arena);
		arena_init(&c->t->arena, cap);
	}
	c->left--;
	/* Every key ends its text with NUL, or key_part would read "". */
	if (rows_of[c->table] == NULL)
		check_finding(c, "the table %s is not known to the check", table_names[c->table]);
	else
		rows_of[c->table](c, key, value);
	return true;
}

bool check_step(struct check *c, uint32_t rows)
{
	struct key all = {.n = 0};
	c->left = rows;
	while (c->table < T__COUNT && c->left > 0) {
		struct key from = c->next;
		c->next.n = 0;
		table_scan(c->t, (enum table)c->table, &all, from.n > 0 ? &from : NULL, one, c);
		check_settle(c, table_names[c->table]);
		if (c->next.n == 0)
			c->table++;
	}
	return c->table < T__COUNT;
}
