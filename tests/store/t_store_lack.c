/*
 * What passes is never called a bug. A stored whose system calls can be made to fail (tests/fault/shim.c) is asked each
 * question again and again, with want of memory, descriptors or room, or a disk that does not read or write, at its
 * first such call, its second, and so on until there is none left. It may refuse, and die where it must, but what it
 * says is that it passes: an error of 503 or 507.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/fault/shim.h"
#include "tests/store/push_steps.h"
#include "tests/store/steps.h"

/* A death is seen when this is over: short, and too short an answer is one that passes, too. */
enum { ANSWER_MS = 300, MOST = 2000, LARGE = 40000 };

static char control_file[] = "/tmp/pinfold-lack-XXXXXX";
static struct fault_control *control;
static unsigned made, deaths;

static int setup(void **state)
{
	int fd = mkstemp(control_file);
	if (fd < 0 || ftruncate(fd, sizeof *control) != 0 || fchmod(fd, 0666) != 0)
		return -1;
	control = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (control == MAP_FAILED)
		return -1;
	control->magic = FAULT_MAGIC;
	char told[64];
	(void)snprintf(told, sizeof told, "stored:%s", control_file);
	return setenv("PINFOLD_STORED", "./tests/fault/faulty-stored", 1) == 0 &&
		       setenv("PINFOLD_TEST_FAULT", told, 1) == 0
		   ? steps_setup(state)
		   : -1;
}

static int teardown(void **state)
{
	(void)unlink(control_file);
	return steps_teardown(state);
}

/* --- the questions -------------------------------------------------------------------------------- */

/* A run that is going on, one that has ended with a small and a large artifact, and one more for each question. */
static void prepare(void)
{
	static char bytes[LARGE];
	struct st_run_state s;
	struct st_ok ok;
	struct st_events_taken taken;
	memset(bytes, 'x', sizeof bytes);
	assert_int_equal(rig_running(fcgi, steward, "acme", "live", 1000000), ERR_OK);
	assert_int_equal(rig_running(fcgi, steward, "acme", "asks", 4), ERR_OK);
	assert_int_equal(rig_running(fcgi, steward, "acme", "done", 4), ERR_OK);
	assert_int_equal(append("done", "agent.note", 100, 5, &taken), ERR_OK);
	for (int large = 0; large <= 1; large++) {
		struct st_artifact_put m = {.tenant = "acme", .run = "done", .name = large ? ART_PATCH : ART_TEST_LOG};
		int fd = rig_memfd(bytes, large ? LARGE : 10);
		assert_int_equal(STEWARD(st_call_artifact_put(steward, &m, &fd, &ok, NULL)), ERR_OK);
		close(fd);
	}
	assert_int_equal(finish("done", RUN_EV_COMPLETE, true, "", &s), ERR_OK);
	deciding_device("dev");
}

static enum err whose(struct ask *a, unsigned n)
{
	static const uint8_t hash[32] = {9};
	struct st_principal m = {.token_id = "lackedlackedlack", .hash = {hash, 32}};
	struct st_principal_is is;
	(void)n;
	return FCGI(st_call_principal(a, &m, NULL, &is, NULL));
}

static enum err create(struct ask *a, unsigned n)
{
	char id[32], key[32];
	(void)snprintf(id, sizeof id, "r%u", n);
	(void)snprintf(key, sizeof key, "k%u", n);
	struct st_run_create m = rig_run("acme", id);
	m.idempotency = key;
	return rig_create(a, &m, NULL);
}

static enum err show(struct ask *a, unsigned n)
{
	struct st_run_get m = {.tenant = "acme", .run = "done"};
	struct st_run_is is;
	int fd = -1;
	(void)n;
	enum err e = FCGI(st_call_run_get(a, &m, NULL, &is, &fd));
	if (e == ERR_OK)
		close(fd);
	return e;
}

static enum err list(struct ask *a, unsigned n)
{
	struct st_run_list m = {.tenant = "acme", .limit = (uint16_t)(1 + n % 3)};
	struct st_run_page page;
	enum err e = FCGI(st_call_run_list(a, &m, NULL, &page, NULL));
	assert_true(e != ERR_OK || !page.more || page.next_run[0] != '\0');
	return e;
}

static enum err events(struct ask *a, unsigned n)
{
	struct st_events_read m = {.tenant = "acme", .run = "done"};
	struct st_events_are are;
	(void)n;
	return FCGI(st_call_events_read(a, &m, NULL, &are, NULL));
}

static enum err artifact(struct ask *a, enum artifact name)
{
	struct st_artifact_get m = {.tenant = "acme", .run = "done", .name = (uint8_t)name};
	struct st_artifact_is is;
	int fd = -1;
	enum err e = FCGI(st_call_artifact_get(a, &m, NULL, &is, &fd));
	if (e == ERR_OK)
		close(fd);
	return e;
}

static enum err small(struct ask *a, unsigned n)
{
	(void)n;
	return artifact(a, ART_TEST_LOG);
}

static enum err large(struct ask *a, unsigned n)
{
	(void)n;
	return artifact(a, ART_PATCH);
}

/* One that was made for it, or is unknown where making it failed. */
static enum err stop(struct ask *a, unsigned n)
{
	char id[32];
	struct st_run_state s;
	(void)snprintf(id, sizeof id, "r%u", n);
	struct st_run_cancel m = {.tenant = "acme", .run = id, .by = "tests"};
	return FCGI(st_call_run_cancel(a, &m, NULL, &s, NULL));
}

static enum err erase(struct ask *a, unsigned n)
{
	char id[32];
	struct st_ok ok;
	(void)snprintf(id, sizeof id, "r%u", n);
	struct st_run_delete m = {.tenant = "acme", .run = id, .by = "tests"};
	return FCGI(st_call_run_delete(a, &m, NULL, &ok, NULL));
}

static enum err spend(struct ask *a, unsigned n)
{
	struct st_run_create like = rig_run("acme", "live");
	struct st_cap_consume m = {
	    .tenant = "acme", .run = "live", .model = like.model, .fingerprint = like.fingerprint};
	struct st_cap_is is;
	(void)n;
	return GATEWAY(st_call_cap_consume(a, &m, NULL, &is, NULL));
}

static enum err put(struct ask *a, unsigned n)
{
	char bytes[LARGE];
	struct st_artifact_put m = {.tenant = "acme", .run = "live", .name = ART_PATCH};
	struct st_ok ok;
	memset(bytes, 'a' + (int)(n % 26), sizeof bytes);
	int fd = rig_memfd(bytes, n % 2 ? LARGE : 100);
	enum err e = STEWARD(st_call_artifact_put(a, &m, &fd, &ok, NULL));
	close(fd);
	return e;
}

static enum err figures(struct ask *a, unsigned n)
{
	struct st_metrics m = {0};
	struct st_metrics_are are;
	(void)n;
	return FCGI(st_call_metrics(a, &m, NULL, &are, NULL));
}

static const uint8_t code[32] = {5};

static enum err offer(struct ask *a, unsigned n)
{
	struct st_pair_begin m = {.tenant = "acme", .hash = {code, sizeof code}};
	struct st_pair_begun begun;
	(void)n;
	(void)a;
	return st_call_pair_begin(admin, &m, NULL, &begun, NULL);
}

static enum err pair(struct ask *a, unsigned n)
{
	char label[32], id[32];
	uint8_t hash[32] = {6};
	struct st_paired paired;
	(void)snprintf(label, sizeof label, "d%u", n);
	(void)snprintf(id, sizeof id, "device%u", n);
	struct st_pair_claim m = {.hash = {code, sizeof code},
				  .tenant = "",
				  .label = label,
				  .token_id = id,
				  .token_hash = {hash, sizeof hash},
				  .request_id = "rq"};
	return FCGI(st_call_pair_claim(a, &m, NULL, &paired, NULL));
}

static enum err both(struct ask *a, unsigned n)
{
	enum err e = offer(a, n);
	return e != ERR_OK ? e : pair(a, n);
}

static enum err devices(struct ask *a, unsigned n)
{
	struct st_device_list m = {.tenant = "acme"};
	struct st_devices_are are;
	(void)n;
	return FCGI(st_call_device_list(a, &m, NULL, &are, NULL));
}

static enum err unpair(struct ask *a, unsigned n)
{
	char label[32];
	struct st_ok ok;
	(void)snprintf(label, sizeof label, "d%u", n);
	struct st_device_revoke m = {.tenant = "acme", .label = label, .by = "tests", .request_id = "rq"};
	return FCGI(st_call_device_revoke(a, &m, NULL, &ok, NULL));
}

static enum err ask_in(struct ask *a, const char *run, unsigned n)
{
	char id[32];
	uint8_t digest[32] = {7}; /* another action each time: what was allowed is not asked */
	memcpy(digest + 1, &n, sizeof n);
	(void)snprintf(id, sizeof id, "q%u", n);
	struct st_agent_event m = {
	    .request = id, .digest = {digest, sizeof digest}, .data = BYTES("{}"), .preview = "make"};
	return ask_person(a, run, &m);
}

static enum err put_question(struct ask *a, unsigned n)
{
	return ask_in(a, "live", n);
}

static enum err asked(struct ask *a, unsigned n)
{
	(void)a;
	return put_question(gateway, n);
}

static enum err tap(struct ask *a, unsigned n)
{
	char id[32];
	struct st_approval_nonce nonce;
	(void)snprintf(id, sizeof id, "q%u", n);
	struct st_approval_confirm m = {
	    .tenant = "acme", .run = "live", .request = id, .by = "dev", .request_id = "rq"};
	return FCGI(st_call_approval_confirm(a, &m, NULL, &nonce, NULL));
}

static enum err decide(struct ask *a, unsigned n)
{
	char id[32];
	struct st_approval_decided done;
	(void)snprintf(id, sizeof id, "q%u", n);
	struct st_approval_decide m = {.tenant = "acme",
				       .run = "live",
				       .request = id,
				       .decision = DECISION_DENY,
				       .device = "phone",
				       .by = "dev",
				       .actor = "device:dev",
				       .request_id = "rq"};
	return FCGI(st_call_approval_decide(a, &m, NULL, &done, NULL));
}

/* What was allowed for the rest of the run is taken back. */
static enum err allowed(struct ask *a, unsigned n)
{
	char id[32], nonce[65];
	(void)a;
	struct st_approval_nonce first;
	struct st_approval_decided done;
	(void)snprintf(id, sizeof id, "q%u", n);
	enum err e = ask_in(gateway, "asks", n);
	if (e != ERR_OK)
		return e;
	struct st_approval_confirm c = {
	    .tenant = "acme", .run = "asks", .request = id, .by = "dev", .request_id = "rq"};
	e = FCGI(st_call_approval_confirm(fcgi, &c, NULL, &first, NULL));
	if (e != ERR_OK)
		return e;
	(void)snprintf(nonce, sizeof nonce, "%s", first.nonce);
	struct st_approval_decide m = {.tenant = "acme",
				       .run = "asks",
				       .request = id,
				       .decision = DECISION_ALLOW_SESSION,
				       .confirm = nonce,
				       .device = "phone",
				       .by = "dev",
				       .actor = "device:dev",
				       .request_id = "rq"};
	return FCGI(st_call_approval_decide(fcgi, &m, NULL, &done, NULL));
}

static enum err take_back(struct ask *a, unsigned n)
{
	char id[32];
	struct st_ok ok;
	(void)snprintf(id, sizeof id, "q%u", n);
	struct st_grant_revoke m = {.tenant = "acme",
				    .run = "asks",
				    .request = id,
				    .device = "phone",
				    .by = "dev",
				    .actor = "device:dev",
				    .request_id = "rq"};
	return FCGI(st_call_grant_revoke(a, &m, NULL, &ok, NULL));
}

static enum err inbox(struct ask *a, unsigned n)
{
	struct st_inbox_get m = {.tenant = "acme", .after_run = "", .after_request = ""};
	struct st_inbox_is is;
	(void)n;
	return FCGI(st_call_inbox_get(a, &m, NULL, &is, NULL));
}

static enum err receipts(struct ask *a, unsigned n)
{
	struct st_receipt_list m = {.tenant = "acme", .before_receipt = ""};
	struct st_receipts_are are;
	(void)n;
	return FCGI(st_call_receipt_list(a, &m, NULL, &are, NULL));
}

static enum err subscribe_as(struct ask *a, unsigned n)
{
	char endpoint[64];
	static const uint8_t point[65] = {4}, auth[16];
	struct st_ok ok;
	(void)snprintf(endpoint, sizeof endpoint, "https://push.example.com/%u", n);
	struct st_push_put m = {.tenant = "acme",
				.token_id = "dev",
				.endpoint = endpoint,
				.p256dh = {point, sizeof point},
				.auth = {auth, sizeof auth},
				.by = "dev",
				.request_id = "rq"};
	return FCGI(st_call_push_put(a, &m, NULL, &ok, NULL));
}

/* Whoever signs is there; also after the store's death. */
static enum err signs(struct ask *a, unsigned n)
{
	(void)a;
	(void)n;
	push_ready('a');
	return ERR_OK;
}

static enum err has_push(struct ask *a, unsigned n)
{
	(void)signs(a, n);
	return subscribe_as(fcgi, n);
}

static enum err to_push(struct ask *a, unsigned n)
{
	enum err e = has_push(a, n);
	return e != ERR_OK ? e : put_question(gateway, n);
}

static uint64_t lent; /* what was handed out last */

static enum err next_push(struct ask *a, unsigned n)
{
	struct st_push_next m = {0};
	struct st_push_is is = {.id = 0};
	(void)n;
	enum err e = PUSHING(st_call_push_next(a, &m, NULL, &is, NULL));
	lent = e == ERR_OK && is.id != 0 ? is.id : 1;
	return e;
}

static enum err lend(struct ask *a, unsigned n)
{
	(void)a;
	enum err e = to_push(a, n);
	return e != ERR_OK ? e : next_push(push, n);
}

static enum err report(struct ask *a, unsigned n)
{
	struct st_push_done m = {.tenant = "acme", .id = lent, .outcome = n % 2 != 0 ? PUSH_SENT : PUSH_FAILED};
	struct st_ok ok;
	return PUSHING(st_call_push_done(a, &m, NULL, &ok, NULL));
}

static enum err unsubscribe(struct ask *a, unsigned n)
{
	struct st_push_delete m = {.tenant = "acme", .token_id = "dev", .by = "dev", .request_id = "rq"};
	struct st_ok ok;
	(void)n;
	return FCGI(st_call_push_delete(a, &m, NULL, &ok, NULL));
}

static const struct question {
	const char *name;
	enum rig_role role;
	enum err (*ask)(struct ask *a, unsigned n);
	enum err (*before)(struct ask *a, unsigned n); /* asked first, while nothing fails */
	enum err also;                                 /* another answer that is right */
} questions[] = {
    {"whose token", RIG_FCGI, whose, NULL, ERR_UNAUTHORIZED},
    {"create", RIG_FCGI, create, NULL, ERR_OK},
    {"show", RIG_FCGI, show, NULL, ERR_OK},
    {"list", RIG_FCGI, list, NULL, ERR_OK},
    {"events", RIG_FCGI, events, NULL, ERR_OK},
    {"a small artifact", RIG_FCGI, small, NULL, ERR_OK},
    {"a large artifact", RIG_FCGI, large, NULL, ERR_OK},
    {"cancel", RIG_FCGI, stop, create, ERR_OK},
    {"delete", RIG_FCGI, erase, create, ERR_RUN_NOT_TERMINAL},
    {"pair", RIG_FCGI, pair, offer, ERR_OK},
    {"devices", RIG_FCGI, devices, NULL, ERR_OK},
    {"unpair", RIG_FCGI, unpair, both, ERR_OK},
    {"ask a person", RIG_GATEWAY, put_question, NULL, ERR_OK},
    {"the first tap", RIG_FCGI, tap, asked, ERR_ALREADY_DECIDED},
    {"decide", RIG_FCGI, decide, asked, ERR_OK},
    {"take back", RIG_FCGI, take_back, allowed, ERR_OK},
    {"inbox", RIG_FCGI, inbox, asked, ERR_OK},
    {"receipts", RIG_FCGI, receipts, NULL, ERR_OK},
    {"subscribe", RIG_FCGI, subscribe_as, signs, ERR_OK},
    {"ask a person with push", RIG_GATEWAY, put_question, has_push, ERR_OK},
    {"decide what was pushed", RIG_FCGI, decide, lend, ERR_OK},
    {"the next push", RIG_PUSH, next_push, to_push, ERR_OK},
    {"its outcome", RIG_PUSH, report, lend, ERR_OK},
    {"unsubscribe", RIG_FCGI, unsubscribe, has_push, ERR_OK},
    {"metrics", RIG_FCGI, figures, NULL, ERR_OK},
    {"consume", RIG_GATEWAY, spend, NULL, ERR_OK},
    {"put an artifact", RIG_STEWARD, put, NULL, ERR_OK},
};

/* --- the sweep ------------------------------------------------------------------------------------ */

static struct ask *connection(enum rig_role role)
{
	struct ask *a = ask_new(rig.sock, ANSWER_MS);
	struct st_ping m = {0};
	struct st_ok ok;
	assert_non_null(a);
	for (int i = 0; i < 200; i++)
		if (RIG_AS(role, st_call_ping(a, &m, NULL, &ok, NULL)) == ERR_OK)
			return a;
	fail_msg("stored does not serve again");
	return NULL;
}

/* True: it had died of it, and is there again. */
static bool revived(void)
{
	int status;
	if (waitpid(rig.pid, &status, WNOHANG) != rig.pid)
		return false;
	close(rig.control);
	rig_start(&rig);
	deaths++;
	return true;
}

/* True: the fault was met. */
static bool one(const struct question *q, enum fault_class class, int err, int nth)
{
	struct fault_slot *s = &control->slot[FAULT_STORED][0];
	struct ask *a = connection(q->role);
	unsigned n = ++made;
	if (q->before != NULL)
		assert_int_equal(q->before(a, n), ERR_OK);
	*s = (struct fault_slot){.action = FAULT_ERRNO, .err = (uint32_t)err, .countdown = nth, .times = 1};
	__atomic_store_n(&s->class, (uint32_t) class, __ATOMIC_RELEASE);
	enum err e = q->ask(a, n);
	bool met = __atomic_load_n(&s->fired, __ATOMIC_SEQ_CST) > 0;
	__atomic_store_n(&s->class, FAULT_NONE, __ATOMIC_RELEASE);
	ask_free(a);
	(void)revived();
	if (e != ERR_OK && e != q->also &&
	    !(err_row(e)->retry && (err_row(e)->status == 503 || err_row(e)->status == 507)))
		fail_msg("%s: %s at call %d was told as %s", q->name, strerror(err), nth, err_code(e));
	return met;
}

static void sweep(enum fault_class class, int err)
{
	unsigned before = made, died = deaths;
	for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
		for (int nth = 1; nth < MOST && one(&questions[i], class, err, nth); nth++)
			;
	print_message("%s: %u calls failed, %u times it died of it\n", strerror(err), made - before, deaths - died);
	assert_true(made - before > sizeof questions / sizeof *questions);
}

static void no_memory(void **state)
{
	(void)state;
	prepare();
	sweep(FAULT_MEM, ENOMEM);
}

static void no_descriptors(void **state)
{
	(void)state;
	sweep(FAULT_FD, EMFILE);
	sweep(FAULT_FD, ENFILE);
	sweep(FAULT_RECV, EMFILE);
}

static void no_room(void **state)
{
	(void)state;
	sweep(FAULT_WRITE, ENOSPC);
	sweep(FAULT_WRITE, EDQUOT);
}

static void a_bad_disk(void **state)
{
	(void)state;
	sweep(FAULT_WRITE, EIO);
	sweep(FAULT_SYNC, EIO);
	sweep(FAULT_READ, EIO);
}

/* After all of it nothing is broken. */
static void whole(void **state)
{
	(void)state;
	struct st_run_state s;
	assert_int_equal(finish("live", RUN_EV_COMPLETE, true, "", &s), ERR_OK);
	assert_int_equal(run_is("done").state, RUN_COMPLETED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(no_memory),  cmocka_unit_test(no_descriptors), cmocka_unit_test(no_room),
	    cmocka_unit_test(a_bad_disk), cmocka_unit_test(whole),
	};
	return cmocka_run_group_tests_name("store: what passes is no bug", tests, setup, teardown);
}
