/*
 * The audit log of a real stored: every event once and in order, nothing forged, chained across rotations,
 * kills, a full disk and missing lines.
 */
#include <dirent.h>
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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/audit.h"
#include "gen/audit.h"
#include "lib/own.h"
#include "lib/secret.h"
#include "tests/store/steps.h"

static char *path_of(unsigned k)
{
	static char path[128];
	(void)snprintf(path, sizeof path, k == 0 ? "%s/audit.log" : "%s/audit.log.%u", rig.logs, k);
	return path;
}

/* Everything, oldest first. The caller frees. */
static char *whole_log(void)
{
	char *all = calloc(1, 8 << 20);
	size_t at = 0;
	for (int k = 99; k >= 0; k--) {
		size_t n;
		char *p = file_read(AT_FDCWD, path_of((unsigned)k), 8 << 20, &n);
		if (p == NULL)
			continue;
		memcpy(all + at, p, n);
		at += n;
		free(p);
	}
	return all;
}

static struct audit_walk walked(void)
{
	struct audit_walk w = {0};
	bool ok = true;
	for (int k = 99; k >= 0 && ok; k--) {
		FILE *f = fopen(path_of((unsigned)k), "r");
		if (f == NULL)
			continue;
		ok = audit_walk_file(&w, f);
		fclose(f);
	}
	if (ok)
		(void)audit_walk_end(&w);
	return w;
}

static struct audit_walk sound(void)
{
	struct audit_walk w = walked();
	if (w.why[0] != '\0')
		print_message("line %llu: %s\n", (unsigned long long)w.at, w.why);
	assert_string_equal(w.why, "");
	return w;
}

/* Calls for each line that holds text; returns their number, the last of them in line (may be NULL). */
static unsigned lines_with(const char *text, char line[4096])
{
	own_free char *all = whole_log();
	unsigned n = 0;
	char *save = NULL;
	for (char *l = strtok_r(all, "\n", &save); l != NULL; l = strtok_r(NULL, "\n", &save)) {
		if (strstr(l, text) == NULL)
			continue;
		n++;
		if (line != NULL)
			(void)snprintf(line, 4096, "%s", l);
	}
	return n;
}

static bool has(const char *text)
{
	return lines_with(text, NULL) > 0;
}

/* The names of the events from line number first on, each with a space behind. */
static const char *names_from(uint64_t first)
{
	static char names[16384];
	own_free char *all = whole_log();
	char *save = NULL;
	names[0] = '\0';
	for (char *l = strtok_r(all, "\n", &save); l != NULL; l = strtok_r(NULL, "\n", &save)) {
		struct audit_seen s;
		assert_true(audit_read(l, strlen(l), &s));
		if (s.seq >= first)
			(void)snprintf(names + strlen(names), sizeof names - strlen(names), "%.*s ", (int)s.event_len,
				       s.event);
	}
	return names;
}

static enum err issue(const char *id, const char *label)
{
	uint8_t hash[32] = {1};
	struct st_token_create m = {.tenant = "acme", .kind = 1, .token_id = id, .hash = {hash, 32}, .label = label};
	struct st_ok ok;
	return st_call_token_create(admin, &m, NULL, &ok, NULL);
}

static enum err revoke_token(const char *id)
{
	struct st_token_revoke m = {.tenant = "acme", .token_id = id};
	struct st_ok ok;
	return st_call_token_revoke(admin, &m, NULL, &ok, NULL);
}

static void restart(int sig)
{
	(void)rig_stop(&rig, sig);
	rig_start(&rig);
	struct st_stat m = {0};
	struct st_stats_are are;
	assert_int_equal(st_call_stat(admin, &m, NULL, &are, NULL), ERR_OK);
}

static void every_event_once(void **state)
{
	(void)state;
	struct st_run_state a;
	struct st_ok ok;
	struct stat st;
	assert_int_equal(stat(path_of(0), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	deciding_device("abc");
	uint64_t first = sound().seq + 1;
	struct st_run_create m = rig_run("acme", "audited");
	m.request_id = "req-create";
	assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
	assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK); /* the same again: no line */
	struct st_run_start s = {.tenant = "acme", .run = "audited", .expires_at = clock_ms() + 3600000};
	struct st_run_work work;
	assert_int_equal(STEWARD(st_call_run_start(steward, &s, NULL, &work, NULL)), ERR_OK);
	assert_int_equal(STEWARD(st_call_run_start(steward, &s, NULL, &work, NULL)), ERR_OK);
	struct st_agent_event q = {.request = "approval-1",
				   .digest = {(const uint8_t *)"01234567890123456789012345678901", 32},
				   .data = BYTES("{}")};
	assert_int_equal(ask_person(gateway, "audited", &q), ERR_OK);
	assert_int_equal(ask_person(gateway, "audited", &q), ERR_OK);
	struct st_approval_decide yes = {.tenant = "acme",
					 .run = "audited",
					 .request = "approval-1",
					 .decision = DECISION_ALLOW_ONCE,
					 .device = "phone",
					 .by = "abc",
					 .actor = "device:abc",
					 .request_id = "req-decide"};
	struct st_approval_decided decided;
	assert_int_equal(FCGI(st_call_approval_decide(fcgi, &yes, NULL, &decided, NULL)), ERR_OK);
	assert_int_equal(FCGI(st_call_approval_decide(fcgi, &yes, NULL, &decided, NULL)), ERR_OK); /* no line */
	struct st_cap_revoke v = {.tenant = "acme", .run = "audited"};
	assert_int_equal(STEWARD(st_call_cap_revoke(steward, &v, NULL, &ok, NULL)), ERR_OK);
	assert_int_equal(STEWARD(st_call_cap_revoke(steward, &v, NULL, &ok, NULL)), ERR_OK);
	assert_int_equal(finish("audited", RUN_EV_FAIL, false, "sandbox_agent_failed", &a), ERR_OK);
	assert_int_equal(finish("audited", RUN_EV_COMPLETE, true, "", &a), ERR_ILLEGAL_RUN_TRANSITION);
	struct st_run_cancel late = {.tenant = "acme", .run = "audited", .by = "api:abc", .request_id = "req-late"};
	assert_int_equal(FCGI(st_call_run_cancel(fcgi, &late, NULL, &a, NULL)), ERR_OK);
	m = rig_run("acme", "cancelled");
	assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
	struct st_run_cancel c = {.tenant = "acme", .run = "cancelled", .by = "api:abc", .request_id = "req-cancel"};
	assert_int_equal(FCGI(st_call_run_cancel(fcgi, &c, NULL, &a, NULL)), ERR_OK);
	assert_int_equal(FCGI(st_call_run_cancel(fcgi, &c, NULL, &a, NULL)), ERR_OK);
	struct st_run_delete d = {.tenant = "acme", .run = "cancelled", .by = "api:abc", .request_id = "req-delete"};
	assert_int_equal(FCGI(st_call_run_delete(fcgi, &d, NULL, &ok, NULL)), ERR_OK);
	assert_int_equal(issue("token-1", "a label"), ERR_OK);
	assert_int_equal(issue("token-1", "a label"), ERR_OK);
	assert_int_equal(revoke_token("token-1"), ERR_OK);
	assert_int_equal(revoke_token("token-1"), ERR_OK);
	assert_string_equal(names_from(first),
			    "run.create run.start approval.allow_once capability.revoke run.finish run.overruled "
			    "run.overruled run.create run.cancel run.finish run.delete token.issue token.revoke ");
	char line[4096];
	assert_int_equal(lines_with("\"requestId\":\"req-late\"", line), 1);
	assert_non_null(strstr(line, "\"event\":\"run.overruled\",\"tenant\":\"acme\",\"actor\":\"api:abc\","));
	assert_non_null(strstr(line, "\"state\":\"failed\",\"reason\":\"cancelled_by_request\""));
	assert_int_equal(lines_with("\"requestId\":\"req-create\"", line), 1);
	assert_non_null(strstr(line, "\"event\":\"run.create\",\"tenant\":\"acme\",\"actor\":\"tests\",\"requestId\":"
				     "\"req-create\",\"run\":\"audited\",\"agent\":\"builtin\""));
	assert_int_equal(lines_with("\"requestId\":\"req-cancel\"", line), 2);
	assert_non_null(strstr(line, "\"actor\":\"api:abc\""));
	assert_int_equal(lines_with("\"requestId\":\"req-decide\"", line), 1);
	assert_non_null(strstr(line, "\"actor\":\"device:abc\""));
	assert_non_null(strstr(line, "\"label\":\"phone\""));
	assert_true(has("\"tokenId\":\"token-1\",\"kind\":\"api\",\"label\":\"a label\""));
	/* What is refused leaves none. */
	assert_int_equal(issue("token-1", "another"), ERR_TOKEN_EXISTS);
	assert_int_equal(revoke_token("no-such"), ERR_TOKEN_NOT_FOUND);
	assert_false(has("no-such"));
	(void)sound();
}

static const char nasty[] = "x\"}\n{\"ts\":1,\"seq\":9}\r\x1b[2J\x1b]52;c;eA==\x07\xe2\x80\xa8\xff\\\t";

static enum err note(enum rig_role role, unsigned event, const char *subject)
{
	struct ask *a = role == RIG_FCGI ? fcgi : role == RIG_GATEWAY ? gateway : steward;
	struct st_ok ok;
	struct st_audit_note m = {.event = (uint8_t)event,
				  .tenant = "acme",
				  .run = "",
				  .actor = "somebody",
				  .request_id = "r-1",
				  .subject = subject,
				  .code = ERR_UNAUTHORIZED};
	return RIG_AS(role, st_call_audit_note(a, &m, NULL, &ok, NULL));
}

static void nothing_forged(void **state)
{
	(void)state;
	char line[4096], longest[301];
	memset(longest, 'y', sizeof longest - 1);
	longest[300] = '\0';
	uint64_t before = sound().lines;
	assert_int_equal(issue("nasty", nasty), ERR_OK);
	assert_int_equal(note(RIG_FCGI, AUDIT_AUTH_DENIED, nasty), ERR_OK);
	assert_int_equal(note(RIG_GATEWAY, AUDIT_AUTH_DENIED, longest), ERR_OK);
	assert_int_equal(sound().lines, before + 3);
	assert_int_equal(lines_with("yyyy", line), 1);
	assert_non_null(strstr(line, "yyy...\",\"code\":\"unauthorized\""));
	longest[121] = '\0';
	assert_null(strstr(line, longest));
	own_free char *all = whole_log();
	for (const char *p = all; *p != '\0'; p++)
		assert_true(*p == '\n' || (*p >= 0x20 && *p <= 0x7e));
	/* Each role its own events, and none of stored's. */
	assert_int_equal(note(RIG_GATEWAY, AUDIT_RUN_CREATE, "x"), ERR_INVALID_REQUEST);
	assert_int_equal(note(RIG_FCGI, AUDIT_SANDBOX_DESTROY, "x"), ERR_INVALID_REQUEST);
	assert_int_equal(note(RIG_STEWARD, AUDIT_AUTH_DENIED, "x"), ERR_INVALID_REQUEST);
	assert_int_equal(note(RIG_FCGI, AUDIT_STORE_START, "x"), ERR_INVALID_REQUEST);
	assert_int_equal(note(RIG_FCGI, 249, "x"), ERR_INVALID_REQUEST);
	assert_int_equal(note(RIG_FCGI, 0, "x"), ERR_INVALID_REQUEST);
	assert_int_equal(sound().lines, before + 3);
	assert_int_equal(note(RIG_STEWARD, AUDIT_SANDBOX_SPAWN, "work"), ERR_OK);
	assert_true(has("\"event\":\"sandbox.spawn\""));
}

static void floods_are_counted(void **state)
{
	(void)state;
	uint64_t before = sound().lines;
	char line[4096];
	/* Until one is written again, whatever the time: then it tells how many were not. */
	for (unsigned i = 0; i < 5000 && !has("\"suppressed\":"); i++)
		for (unsigned k = 0; k < 200; k++)
			assert_int_equal(note(RIG_FCGI, AUDIT_AUTH_DENIED, "flood"), ERR_OK);
	assert_true(lines_with("\"suppressed\":", line) >= 1);
	assert_true(sound().lines - before < 100);
	/* Others do not suffer. */
	assert_int_equal(note(RIG_GATEWAY, AUDIT_AUTH_DENIED, "not-the-flood"), ERR_OK);
	assert_true(has("not-the-flood"));
}

static void strangers_and_nonsense(void **state)
{
	(void)state;
	int fd = rig_connect(&rig, RIG_NOBODY);
	if (fd >= 0)
		close(fd);
	fd = rig_connect(&rig, RIG_FCGI);
	assert_true(fd >= 0 && send(fd, "nonsense", 8, MSG_NOSIGNAL) == 8);
	char byte;
	assert_true(recv(fd, &byte, 1, 0) <= 0);
	close(fd);
	char line[4096];
	assert_true(lines_with("\"event\":\"protocol.violation\"", line) >= 1);
	assert_non_null(strstr(line, "\"role\":\"fcgi\",\"why\":\""));
	assert_true(rig_logged(&rig, "has no role here"));
	assert_true(WAIT_FOR(has("\"event\":\"caller.refused\"")));
}

static void starts_and_stops(void **state)
{
	(void)state;
	uint64_t first = sound().seq + 1;
	restart(SIGTERM);
	assert_string_equal(names_from(first), "store.stop store.start ");
	restart(SIGKILL);
	assert_string_equal(names_from(first), "store.stop store.start store.start ");
	rig.audit_redact = true; /* another configuration: its digest is told */
	restart(SIGTERM);
	assert_string_equal(names_from(first),
			    "store.stop store.start store.start store.stop store.start config.change ");
	assert_int_equal(issue("token-2", "secret words"), ERR_OK);
	assert_false(has("secret words"));
	assert_true(has("\"tokenId\":\"token-2\",\"kind\":\"api\",\"label\":\"(redacted)\",\"rights\":0"));
	rig.audit_redact = false;
	restart(SIGTERM);
	(void)sound();
}

static void append_bytes(const char *text)
{
	int fd = open(path_of(0), O_WRONLY | O_APPEND);
	assert_true(fd >= 0 && write_all(fd, text, strlen(text)));
	close(fd);
}

static void torn_line(void **state)
{
	(void)state;
	(void)rig_stop(&rig, SIGKILL);
	append_bytes("{\"ts\":1,\"seq\":");
	assert_string_not_equal(walked().why, "");
	restart(0);
	assert_int_equal(sound().torn, 1);
	assert_true(has("\"event\":\"audit.torn\""));
	/* What is torn stays as it was: a change of it shows. */
	own_free char *all = whole_log();
	char *torn = strstr(all, "{\"ts\":1,\"seq\":\n");
	assert_non_null(torn);
	int fd = open(path_of(0), O_WRONLY);
	assert_int_equal(pwrite(fd, "[", 1, torn - all), 1);
	assert_non_null(strstr(walked().why, "cannot be read"));
	assert_int_equal(pwrite(fd, "{", 1, torn - all), 1);
	close(fd);
	(void)sound();
}

static void run_shell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void run_shell(const char *fmt, ...)
{
	char command[600];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(command, sizeof command, fmt, ap);
	va_end(ap);
	assert_int_equal(system(command), 0);
}

static void lines_without_commit(void **state)
{
	(void)state;
	/* The store of a moment ago with the log of now: as if the last commits had never been. */
	(void)rig_stop(&rig, SIGTERM);
	run_shell("cp -a %s %s.saved", rig.state, rig.state);
	rig_start(&rig);
	assert_int_equal(issue("token-lost", ""), ERR_OK);
	uint64_t seq = sound().seq;
	(void)rig_stop(&rig, SIGKILL);
	run_shell("rm -rf %s && mv %s.saved %s", rig.state, rig.state, rig.state);
	restart(0);
	char want[64];
	(void)snprintf(want, sizeof want, "\"run\":\"\",\"of\":%llu,", (unsigned long long)seq);
	assert_int_equal(lines_with(want, NULL), 1);
	assert_int_equal(sound().gone, 1);
	/* Said once. */
	restart(SIGKILL);
	assert_int_equal(sound().gone, 1);
}

static void lines_removed(void **state)
{
	(void)state;
	assert_int_equal(issue("token-3", ""), ERR_OK);
	(void)rig_stop(&rig, SIGKILL);
	own_free char *all = whole_log();
	char *last = strstr(all, "\"tokenId\":\"token-3\"");
	assert_non_null(last);
	while (last[-1] != '\n')
		last--;
	assert_int_equal(truncate(path_of(0), last - all), 0);
	(void)sound(); /* nothing to see from the files alone */
	restart(0);
	assert_true(rig_logged(&rig, "lines were removed"));
	assert_true(has("\"event\":\"audit.gap\""));
	assert_non_null(strstr(walked().why, "are missing before it"));
	/* A new log goes on behind. */
	(void)rig_stop(&rig, SIGTERM);
	assert_int_equal(unlink(path_of(0)), 0);
	restart(0);
	assert_int_equal(rig_stop(&rig, SIGTERM), 0);
	assert_int_equal(unlink(path_of(0)), 0);
	rig_start(&rig);
	assert_int_equal(issue("token-4", ""), ERR_OK);
}

static void rotation(void **state)
{
	(void)state;
	struct st_run_state a;
	struct stat st;
	char id[32];
	assert_int_equal(rig_stop(&rig, SIGTERM), 0);
	assert_int_equal(unlink(path_of(0)), 0);
	rig.audit_max_bytes = 4096;
	rig.audit_generations = 3;
	rig_start(&rig);
	for (int i = 0; i < 20; i++) {
		(void)snprintf(id, sizeof id, "rotated-%d", i);
		struct st_run_create m = rig_run("acme", id);
		assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
	}
	assert_int_equal(stat(path_of(1), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_uid, RIG_UID);
	assert_true(has("\"event\":\"audit.rotate\""));
	struct audit_walk w = sound();
	for (int i = 20; i < 80; i++) {
		(void)snprintf(id, sizeof id, "rotated-%d", i);
		struct st_run_create m = rig_run("acme", id);
		assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
		if (i % 20 == 0)
			restart(SIGKILL);
	}
	assert_true(sound().first_seq > w.first_seq);
	assert_int_equal(stat(path_of(3), &st), 0);
	assert_true(stat(path_of(4), &st) != 0);
	assert_true(st.st_size < 4096 + 1024);
	/* Killed in the middle of a rotation: a hole among the names, and no present file. */
	assert_int_equal(rig_stop(&rig, SIGTERM), 0);
	char from[128], to[128];
	(void)snprintf(from, sizeof from, "%s", path_of(3));
	assert_int_equal(unlink(from), 0);
	(void)snprintf(from, sizeof from, "%s", path_of(2));
	(void)snprintf(to, sizeof to, "%s", path_of(3));
	assert_int_equal(rename(from, to), 0);
	(void)snprintf(from, sizeof from, "%s", path_of(1));
	(void)snprintf(to, sizeof to, "%s", path_of(2));
	assert_int_equal(rename(from, to), 0);
	(void)snprintf(from, sizeof from, "%s", path_of(0));
	(void)snprintf(to, sizeof to, "%s", path_of(1));
	assert_int_equal(rename(from, to), 0);
	(void)sound();
	restart(0);
	(void)sound();
	rig.audit_max_bytes = 0;
	restart(SIGTERM);
}

/* --- kills under load ----------------------------------------------------------------------------- */

enum { ISSUERS = 3, KILLS = 15 };
static volatile struct {
	bool stop;
	uint32_t done[ISSUERS];
} * tally;

static void issue_work(int index)
{
	struct ask *a = ask_new(rig.admin, PATIENCE_MS);
	uint8_t hash[32] = {2};
	struct st_ok ok;
	char id[32];
	for (uint32_t i = 0; !tally->stop; i++) {
		(void)snprintf(id, sizeof id, "t%d-%u", index, i);
		struct st_token_create m = {
		    .tenant = "acme", .kind = 1, .token_id = id, .hash = {hash, 32}, .label = "load"};
		if (st_call_token_create(a, &m, NULL, &ok, NULL) != ERR_OK)
			_exit(1);
		tally->done[index] = i + 1;
	}
	_exit(0);
}

static void killed_under_load(void **state)
{
	(void)state;
	pid_t pids[ISSUERS];
	for (int i = 0; i < ISSUERS; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0)
			issue_work(i);
	}
	for (int k = 0; k < KILLS; k++) {
		uint32_t from = tally->done[0] + tally->done[1] + tally->done[2];
		uint8_t jitter;
		random_bytes(&jitter, 1);
		assert_true(WAIT_CLOSELY(200u + jitter,
					 tally->done[0] + tally->done[1] + tally->done[2] >= from + 10u + jitter / 8u));
		restart(SIGKILL);
	}
	tally->stop = true;
	for (int i = 0; i < ISSUERS; i++) {
		int status;
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	struct audit_walk w = sound();
	own_free char *all = whole_log();
	for (int i = 0; i < ISSUERS; i++) {
		for (uint32_t k = 0; k < tally->done[i]; k++) {
			char want[64];
			(void)snprintf(want, sizeof want, "\"tokenId\":\"t%d-%u\"", i, k);
			char *first = strstr(all, want);
			assert_non_null(first);
			/* Twice exactly where the first was undone by a kill. */
			bool twice = strstr(first + 1, want) != NULL;
			uint64_t seq;
			char gone[64];
			while (first > all && first[-1] != '\n')
				first--;
			assert_true(sscanf(first, "{\"ts\":%*u,\"seq\":%lu", &seq) == 1);
			(void)snprintf(gone, sizeof gone, "\"of\":%lu,", seq);
			assert_int_equal(strstr(all, gone) != NULL, twice);
		}
	}
	print_message("%u tokens, %d kills, %llu lines, %llu undone, %llu torn\n",
		      tally->done[0] + tally->done[1] + tally->done[2], KILLS, (unsigned long long)w.lines,
		      (unsigned long long)w.gone, (unsigned long long)w.torn);
}

/* --- a place that cannot be trusted ------------------------------------------------------------------ */

static void refuses(const char *prepare, const char *say)
{
	int status;
	run_shell("rm -rf %s/audit.log* && : >%s && cd %s && %s", rig.logs, rig.log, rig.logs, prepare);
	rig_start(&rig);
	status = rig_stop(&rig, 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	assert_true(rig_logged(&rig, say));
	run_shell("rm -rf %s/audit.log*; chown %d:%d %s; chmod 700 %s", rig.logs, RIG_UID, RIG_UID, rig.logs, rig.logs);
}

static void untrusted_places(void **state)
{
	(void)state;
	assert_int_equal(rig_stop(&rig, SIGTERM), 0);
	refuses("ln -s /etc/passwd audit.log", "cannot be used as the audit log");
	refuses("mkfifo audit.log", "cannot be used as the audit log");
	refuses("mkdir audit.log", "cannot be used as the audit log");
	refuses(": >audit.log && chown 61000 audit.log && ln audit.log other", "one name");
	refuses(": >audit.log && chmod 666 audit.log", "cannot be used as the audit log"); /* root's */
	refuses("chmod 770 .", "writable by no other");
	refuses("chown 0:0 . && chmod 755 .", "must belong to uid");
	/* Ours but too open: narrowed. */
	run_shell("cd %s && : >audit.log && chown 61000:61000 audit.log && chmod 666 audit.log", rig.logs);
	restart(0);
	struct stat st;
	assert_int_equal(stat(path_of(0), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_event_once),
					   cmocka_unit_test(nothing_forged),
					   cmocka_unit_test(floods_are_counted),
					   cmocka_unit_test(strangers_and_nonsense),
					   cmocka_unit_test(starts_and_stops),
					   cmocka_unit_test(torn_line),
					   cmocka_unit_test(lines_without_commit),
					   cmocka_unit_test(lines_removed),
					   cmocka_unit_test(rotation),
					   cmocka_unit_test(killed_under_load),
					   cmocka_unit_test(untrusted_places)};
	tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return (void *)tally == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, steps_setup, steps_teardown);
}
