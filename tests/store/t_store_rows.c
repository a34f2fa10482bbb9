/*
 * A real stored against promised.tab: every message from every role in every state of a connection, every cell of a
 * run's states and phases through the operation that causes it, every reason of its end, and every audit event by
 * whoever may cause it, its fields as promised. The log is a redacted one.
 */
#include <ctype.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "gen/audit.h"
#include "gen/limits.h"
#include "lib/chan.h"
#include "lib/json.h"
#include "lib/own.h"
#include "tests/store/steps.h"
#include "tests/unit/codec_table.h"
#include "tests/unit/promised.h"

static const struct {
	const char *name;
	enum rig_role role;
} roles[] = {{"fcgi", RIG_FCGI}, {"gateway", RIG_GATEWAY}, {"steward", RIG_STEWARD},
	     {"push", RIG_PUSH}, {"admin", RIG_ADMIN},     {"nobody", RIG_NOBODY}};

static unsigned failures;

/* Once the store has ended by itself, every further question would only wait: the test is over. */
static void ended(int sig)
{
	static const char say[] = "the store ended\n";
	(void)sig;
	if (seteuid(0) != 0 || waitpid(rig.pid, NULL, WNOHANG) != rig.pid)
		return;
	(void)!write(STDOUT_FILENO, say, sizeof say - 1);
	rig.pid = 0;
	rig_close(&rig);
	_exit(1);
}

__attribute__((format(printf, 1, 2))) static void fail_at(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	failures++;
}

static uint8_t frame[ST_MAXFRAME], answer[ST_MAXFRAME];

/* The sample of the message of this name in frame; 0: there is none. */
static size_t sample(const char *name)
{
	char low[64] = "";
	for (size_t i = 0; name[i] != '\0'; i++)
		low[i] = (char)tolower((unsigned char)name[i]);
	for (const struct codec_row *r = st_codecs; r->name != NULL; r++)
		if (strcmp(r->name, low) == 0)
			return r->fill(frame, sizeof frame, false);
	return 0;
}

/* The number of the answer to n bytes of frame; 0: the connection was closed instead. */
static unsigned told(int fd, size_t n, unsigned nfds)
{
	int fds[WIRE_MAX_FDS] = {-1, -1, -1, -1}, got = 0;
	uint16_t number;
	uint64_t op;
	for (unsigned i = 0; i < nfds; i++)
		fds[i] = rig_memfd("x", 1);
	(void)chan_send(fd, frame, n, fds, (int)nfds);
	chan_close_fds(fds, (int)nfds);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	ssize_t m = poll(&p, 1, PATIENCE_MS) == 1 ? chan_recv(fd, answer, sizeof answer, fds, &got) : 0;
	chan_close_fds(fds, got);
	return m > 0 && wire_peek(answer, (size_t)m, &number, &op) ? number : 0;
}

static size_t hello(void)
{
	struct st_hello h = {.version = ST_VERSION};
	return st_put_hello(frame, sizeof frame, 1, &h);
}

static unsigned asked(enum rig_role role, bool ready, const char *name, unsigned nfds)
{
	own_fd int fd = rig_connect(&rig, role);
	if (fd < 0)
		return 0;
	if (ready && told(fd, hello(), 0) != ST_WELCOME)
		return 0;
	size_t n = strcmp(name, "HELLO") == 0 ? hello() : sample(name);
	return n == 0 ? 0 : told(fd, n, nfds);
}

static unsigned number_of(const char *name)
{
	size_t at = 0;
	for (char *line; (line = promised_next(&at, "store")) != NULL;)
		if (strcasecmp(promised_word(&line), name) == 0)
			return (unsigned)strtoul(line, NULL, 10);
	return 0;
}

static void every_message(void **state)
{
	(void)state;
	unsigned messages = 0;
	size_t at = 0;
	for (char *line; (line = promised_next(&at, "store")) != NULL;) {
		char name[64], from[64] = "", in[64] = "", reply[64] = "";
		unsigned nfds = 0;
		char *has = strstr(line, " has ");
		if (has == NULL || strncmp(line, "struct ", 7) == 0)
			continue;
		*has = '\0';
		snprintf(name, sizeof name, "%s", promised_word(&line));
		while (*line != '\0') {
			char *w = promised_word(&line);
			if (strcmp(w, "from") == 0)
				snprintf(from, sizeof from, "%s", promised_word(&line));
			else if (strcmp(w, "in") == 0)
				snprintf(in, sizeof in, "%s", promised_word(&line));
			else if (strcmp(w, "replies") == 0)
				snprintf(reply, sizeof reply, "%s", promised_word(&line));
			else if (strcmp(w, "fds") == 0)
				nfds = (unsigned)strtoul(promised_word(&line), NULL, 10);
		}
		messages++;
		for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++)
			for (int ready = 0; ready < 2; ready++) {
				bool may = promised_in(from, roles[i].name) && promised_in(in, ready ? "READY" : "NEW");
				unsigned got = asked(roles[i].role, ready, name, nfds);
				if (may ? got != ST_FAIL && got != number_of(reply) : got != 0)
					fail_at("%s from %s, %s: answered by %u", name, roles[i].name,
						ready ? "READY" : "NEW", got);
			}
	}
	assert_int_equal(failures, 0);
	assert_true(messages > 20);
}

/* Makes a run that is in this state. */
static bool made(const char *run, const char *state)
{
	struct st_run_state a;
	struct st_run_create m = rig_run("acme", run);
	bool waits = strcmp(state, "queued") == 0 || strcmp(state, "cancelled") == 0;
	if ((waits ? rig_create(fcgi, &m, &a) : rig_running(fcgi, steward, "acme", run, 5)) != ERR_OK)
		return false;
	if (strcmp(state, "cancelled") == 0 || strcmp(state, "cancelling") == 0)
		return cancel(run, &a) == ERR_OK;
	if (strcmp(state, "completed") == 0)
		return finish(run, RUN_EV_COMPLETE, true, "", &a) == ERR_OK;
	if (strcmp(state, "failed") == 0)
		return finish(run, RUN_EV_FAIL, false, "sandbox_agent_failed", &a) == ERR_OK;
	return true;
}

static enum run_event named(const char *event)
{
	int ev = 0;
	while (ev < RUN_EVENT__COUNT && strcmp(run_event_name((enum run_event)ev), event) != 0)
		ev++;
	return (enum run_event)ev;
}

static enum err caused(const char *run, const char *event, bool fresh)
{
	struct st_run_state a;
	struct st_run_work w;
	struct st_ok ok;
	struct st_cap_revoke v = {.tenant = "acme", .run = run};
	struct st_run_start s = {.tenant = "acme", .run = run, .expires_at = clock_ms() + 3600000};
	if (strcmp(event, "cancel") == 0)
		return cancel(run, &a);
	if (strcmp(event, "start") != 0)
		return finish(run, named(event), false, "memory_exceeded", &a);
	/* What has a capability is refused for that, before its state is asked. */
	if (!fresh)
		(void)STEWARD(st_call_cap_revoke(steward, &v, NULL, &ok, NULL));
	return STEWARD(st_call_run_start(steward, &s, NULL, &w, NULL));
}

static void every_cell(void **state)
{
	(void)state;
	unsigned cells = 0, states = 0;
	size_t at = 0;
	for (char *line; (line = promised_next(&at, "run")) != NULL;) {
		char from[32], event[32], want[64], run[80];
		snprintf(from, sizeof from, "%s", promised_word(&line));
		snprintf(event, sizeof event, "%s", promised_word(&line));
		snprintf(want, sizeof want, "%s", promised_word(&line));
		snprintf(run, sizeof run, "%s-%s", from, event);
		if (!made(run, from)) {
			fail_at("no run can be %s", from);
			continue;
		}
		struct st_run_is before = run_is(run);
		if (strcmp(event, "is") == 0) {
			struct st_run_delete d = {.tenant = "acme", .run = run, .by = "tests"};
			struct st_ok ok;
			enum err e = FCGI(st_call_run_delete(fcgi, &d, NULL, &ok, NULL));
			states++;
			if ((e == ERR_OK) != (strstr(line, ", final") != NULL) || before.finished != (e == ERR_OK))
				fail_at("%s is not %s: %s", from, line, err_code(e));
			continue;
		}
		cells++;
		enum err e = caused(run, event, strcmp(from, "queued") == 0);
		const char *now = run_state_name((enum run_state)run_is(run).state);
		bool refused = strcmp(want, err_code(e)) == 0 && strcmp(now, from) == 0;
		bool moved = e == ERR_OK && strcmp(now, want) == 0;
		if (!refused && !moved)
			fail_at("%s %s: %s, now %s, not %s", from, event, err_code(e), now, want);
	}
	assert_int_equal(failures, 0);
	assert_true(cells >= 30 && states >= 6);
}

/* Says that the run is in this phase. */
static enum err phase(const char *run, unsigned which)
{
	struct st_run_phase m = {.tenant = "acme", .run = run, .phase = (uint8_t)which};
	struct st_run_state a;
	return STEWARD(st_call_run_phase(steward, &m, NULL, &a, NULL));
}

static void every_phase(void **state)
{
	(void)state;
	static const char *const events[PHASE__COUNT] = {"", "stage", "execute", "ask", "collect", "verify", "clean"};
	unsigned cells = 0;
	size_t at = 0;
	for (char *line; (line = promised_next(&at, "course")) != NULL; cells++) {
		char from[32], event[32], run[80];
		snprintf(from, sizeof from, "%s", promised_word(&line));
		snprintf(event, sizeof event, "%s", promised_word(&line));
		snprintf(run, sizeof run, "phase-%s-%s", from, event);
		unsigned is = 0, to = 0;
		while (is < PHASE__COUNT && strcmp(phase_names[is], from) != 0)
			is++;
		while (to < PHASE__COUNT && strcmp(events[to], event) != 0)
			to++;
		/* The first one is left by RUN_START, which is a cell of the run itself. */
		if (strcmp(event, "is") == 0 || is == PHASE_WAITING)
			continue;
		bool there = rig_running(fcgi, steward, "acme", run, 5) == ERR_OK;
		for (unsigned p = PHASE_STAGING + 1; there && p <= is; p++)
			there = (p == PHASE_AWAITING_APPROVAL && is != p) || phase(run, p) == ERR_OK;
		enum err e = phase(run, to);
		const char *now = phase_names[run_is(run).phase];
		if (!there ||
		    (strcmp(line, err_code(e)) == 0 ? strcmp(now, from) != 0 : e != ERR_OK || strcmp(now, line) != 0))
			fail_at("%s %s: %s, now %s, not %s", from, event, err_code(e), now, line);
	}
	assert_int_equal(failures, 0);
	assert_true(cells > 40);
}

/* A run ends with a reason of the status that the event leads to, and with no other. */
static void every_reason(void **state)
{
	(void)state;
	static const struct {
		enum run_event event;
		const char *status;
	} ends[] = {{RUN_EV_COMPLETE, "completed"}, {RUN_EV_FAIL, "failed"}};
	unsigned reasons = 0;
	size_t at = 0;
	for (char *line; (line = promised_next(&at, "reason")) != NULL; reasons++) {
		char name[80];
		snprintf(name, sizeof name, "%s", promised_word(&line));
		for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
			struct st_run_state a;
			struct st_run_finish m = {.tenant = "acme",
						  .run = name,
						  .event = (uint8_t)ends[i].event,
						  .success = i == 0,
						  .terminal_reason = name,
						  .error = i == 0 ? "" : "internal_error"};
			char run[100];
			snprintf(run, sizeof run, "%s-%zu", name, i);
			m.run = run;
			bool there = rig_running(fcgi, steward, "acme", run, 5) == ERR_OK;
			enum err e = STEWARD(st_call_run_finish(steward, &m, NULL, &a, NULL));
			if (!there || (e == ERR_OK) != (strcmp(line + strlen("of "), ends[i].status) == 0))
				fail_at("%s with %s: %s", run_event_name(ends[i].event), name, err_code(e));
		}
	}
	assert_int_equal(failures, 0);
	assert_true(reasons > 10);
}

static enum err note(size_t i, unsigned event, const char *subject)
{
	struct ask *const asks[] = {fcgi, gateway, steward};
	struct st_ok ok;
	struct st_audit_note m = {.event = (uint8_t)event,
				  .tenant = "acme",
				  .run = "",
				  .actor = "somebody",
				  .request_id = "r-1",
				  .subject = subject,
				  .code = ERR_UNAUTHORIZED};
	return RIG_AS(roles[i].role, st_call_audit_note(asks[i], &m, NULL, &ok, NULL));
}

static char *whole_log(void)
{
	char path[128];
	size_t n;
	(void)snprintf(path, sizeof path, "%s/audit.log", rig.logs);
	char *all = file_read(AT_FDCWD, path, 8 << 20, &n);
	assert_non_null(all);
	return all;
}

static void every_note(void **state)
{
	(void)state;
	size_t at = 0;
	for (char *line; (line = promised_next(&at, "audit")) != NULL;) {
		char by[100] = "", name[64], *says = strstr(line, " says");
		unsigned number = (unsigned)strtoul(promised_word(&line), NULL, 10);
		if (says == NULL)
			continue; /* a field */
		snprintf(name, sizeof name, "%s", promised_word(&line));
		char *p = strstr(line, " by ");
		assert_non_null(p);
		*says = '\0';
		for (p += strlen(" by "); *p != '\0';) {
			char *w = promised_word(&p);
			snprintf(by + strlen(by), sizeof by - strlen(by), "%s%s", by[0] ? "," : "", w);
		}
		for (size_t i = 0; i < 3; i++) {
			char subject[80], said[100];
			snprintf(subject, sizeof subject, "row %u of %s", number, roles[i].name);
			snprintf(said, sizeof said, "\"event\":\"%s\"", name);
			enum err e = note(i, number, subject);
			if (e != (promised_in(by, roles[i].name) ? ERR_OK : ERR_INVALID_REQUEST))
				fail_at("%s from %s: %s", name, roles[i].name, err_code(e));
			own_free char *all = whole_log();
			if (e == ERR_OK && strstr(all, said) == NULL)
				fail_at("%s from %s is not written", name, roles[i].name);
		}
	}
	assert_int_equal(failures, 0);
}

/* The line of an event as promised, or of a field. */
static bool promised_audit(const char *name, bool field, char out[2000])
{
	size_t at = 0;
	for (char *line; (line = promised_next(&at, "audit")) != NULL;) {
		char *first = promised_word(&line);
		if ((strcmp(first, "field") == 0) == field && strcmp(promised_word(&line), name) == 0) {
			snprintf(out, 2000, " %s ", line);
			return true;
		}
	}
	return false;
}

static void one_line(const char *text)
{
	static const char own[] = ",ts,seq,event,tenant,actor,requestId,run,prev,hash,";
	own_arena struct arena a;
	char event[2000], field[2000], word[100];
	arena_init(&a, 1 << 20);
	const struct json *v = json_parse(&a, text, strlen(text), JSON_DEPTH, 1000, NULL), *name;
	assert_non_null(v);
	name = json_get(v, "event");
	if (!promised_audit(name->text, false, event)) {
		fail_at("no event %s is promised", name->text);
		return;
	}
	for (const struct json *f = v->child; f != NULL; f = f->next) {
		snprintf(word, sizeof word, ",%s,", f->key);
		if (strstr(own, word) != NULL)
			continue;
		snprintf(word, sizeof word, " %s ", f->key);
		bool number = f->type == JSON_NUMBER;
		if (strstr(strstr(event, " says"), word) == NULL || !promised_audit(f->key, true, field))
			fail_at("%s says %s", name->text, f->key);
		else if (number != (strstr(field, " int ") != NULL))
			fail_at("%s: %s is of another type", name->text, f->key);
		else if (!number && (strcmp(f->text, "(redacted)") == 0) != (strstr(field, " redact ") != NULL))
			fail_at("%s: %s is \"%s\"", name->text, f->key, f->text);
	}
	/* And everything that it is to say; how many were left out only where there were any. */
	char *save = NULL, *says = strstr(event, " says");
	for (char *w = strtok_r(says + strlen(" says"), " ", &save); w != NULL; w = strtok_r(NULL, " ", &save))
		if (w[0] != '(' && strcmp(w, "suppressed") != 0 && json_get(v, w) == NULL)
			fail_at("%s does not say %s", name->text, w);
}

/* What the rows above did not cause of themselves. */
static void cause_the_rest(void)
{
	static const uint8_t bytes[32] = {1}, other[32] = {2};
	struct st_ok ok;
	struct st_token_create c = {
	    .tenant = "acme", .kind = 1, .token_id = "token-1", .hash = {bytes, 32}, .label = "a label"};
	struct st_token_revoke r = {.tenant = "acme", .token_id = "token-1"};
	struct st_agent_event q = {.request = "a-1", .digest = {bytes, 32}, .data = BYTES("{}"), .preview = "x"};
	struct st_pair_begin code = {.tenant = "acme", .hash = {bytes, 32}};
	struct st_pair_begun begun;
	struct st_pair_claim claim = {
	    .hash = {bytes, 32}, .tenant = "acme", .label = "phone", .token_id = "d-1", .token_hash = {bytes, 32}};
	struct st_paired paired;
	struct st_device_revoke end = {.tenant = "acme", .label = "phone", .by = "operator"};
	struct st_run_state a;
	assert_int_equal(st_call_pair_begin(admin, &code, NULL, &begun, NULL), ERR_OK);
	assert_int_equal(FCGI(st_call_pair_claim(fcgi, &claim, NULL, &paired, NULL)), ERR_OK);
	assert_int_equal(st_call_device_revoke(admin, &end, NULL, &ok, NULL), ERR_OK);
	assert_int_equal(st_call_pair_begin(admin, &code, NULL, &begun, NULL), ERR_OK);
	claim.hash.p = other;
	claim.token_id = "d-2";
	for (int i = 0; i < 5; i++)
		assert_int_equal(FCGI(st_call_pair_claim(fcgi, &claim, NULL, &paired, NULL)), ERR_INVALID_PAIRING_CODE);
	assert_int_equal(st_call_token_create(admin, &c, NULL, &ok, NULL), ERR_OK);
	for (int i = 0; i < 2; i++) {
		struct st_token_rotate next = {
		    .tenant = "acme", .kind = 1, .token_id = c.token_id, .hash = {(uint8_t[32]){77, (uint8_t)i}, 32}};
		assert_int_equal(st_call_token_rotate(admin, &next, NULL, &ok, NULL), ERR_OK);
		if (i == 0)
			assert_int_equal(
			    st_call_token_promote(admin,
						  &(struct st_token_promote){.tenant = "acme", .token_id = c.token_id},
						  NULL, &ok, NULL),
			    ERR_OK);
		else
			assert_int_equal(
			    st_call_token_drop(admin, &(struct st_token_drop){.tenant = "acme", .token_id = c.token_id},
					       NULL, &ok, NULL),
			    ERR_OK);
	}
	assert_int_equal(st_call_token_revoke(admin, &r, NULL, &ok, NULL), ERR_OK);
	deciding_device("d");
	assert_int_equal(rig_running(fcgi, steward, "acme", "asks", 5), ERR_OK);
	assert_int_equal(ask_person(gateway, "asks", &q), ERR_OK);
	struct st_approval_confirm tap = {.tenant = "acme", .run = "asks", .request = "a-1", .by = "d"};
	struct st_approval_nonce nonce;
	assert_int_equal(FCGI(st_call_approval_confirm(fcgi, &tap, NULL, &nonce, NULL)), ERR_OK);
	char confirm[65];
	snprintf(confirm, sizeof confirm, "%s", nonce.nonce);
	struct st_approval_decide yes = {.tenant = "acme",
					 .run = "asks",
					 .request = "a-1",
					 .decision = DECISION_ALLOW_SESSION,
					 .confirm = confirm,
					 .device = "phone",
					 .by = "d"};
	struct st_approval_decided done;
	assert_int_equal(FCGI(st_call_approval_decide(fcgi, &yes, NULL, &done, NULL)), ERR_OK);
	q.request = "a-2"; /* granted */
	assert_int_equal(ask_person(gateway, "asks", &q), ERR_OK);
	q.digest.p = other;
	for (int i = 0; i < LIMIT_APPROVAL_PENDING + 1; i++) {
		char id[16];
		snprintf(id, sizeof id, "b-%d", i);
		q.request = id;
		assert_int_equal(ask_person(gateway, "asks", &q), ERR_OK);
	}
	static const uint8_t others[] = {DECISION_ALLOW_ONCE, DECISION_DENY, DECISION_CANCEL};
	for (size_t i = 0; i < sizeof others; i++) {
		char id[16];
		snprintf(id, sizeof id, "b-%zu", i);
		yes.request = id;
		yes.decision = others[i];
		assert_int_equal(FCGI(st_call_approval_decide(fcgi, &yes, NULL, &done, NULL)), ERR_OK);
	}
	assert_int_equal(cancel("asks", &a), ERR_OK);
	assert_int_equal(finish("asks", RUN_EV_FAIL, false, "memory_exceeded", &a), ERR_OK);
}

static void every_line(void **state)
{
	(void)state;
	cause_the_rest();
	own_free char *all = whole_log();
	char *save = NULL;
	unsigned lines = 0;
	for (char *l = strtok_r(all, "\n", &save); l != NULL; l = strtok_r(NULL, "\n", &save), lines++)
		one_line(l);
	assert_int_equal(failures, 0);
	assert_true(lines > 50);
}

static int setup(void **state)
{
	(void)state;
	rig_open(&rig, NULL);
	rig.audit_redact = true;
	(void)signal(SIGCHLD, ended);
	rig_start(&rig);
	return steps_connect();
}

static int teardown(void **state)
{
	(void)signal(SIGCHLD, SIG_DFL);
	return steps_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_message), cmocka_unit_test(every_cell),
					   cmocka_unit_test(every_phase),   cmocka_unit_test(every_reason),
					   cmocka_unit_test(every_note),    cmocka_unit_test(every_line)};
	return cmocka_run_group_tests(tests, setup, teardown);
}
