/* "pinfold store restore". What is restored is what was backed up, less every right that was taken away or used since.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/audit.h"
#include "tests/store/care.h"
#include "tests/store/push_steps.h"

static bool is_free(const char *path)
{
	int fd = open(path, O_RDWR);
	bool got = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
	close(fd);
	return got;
}

/* What was killed with its lock may still be dying. */
static void wait_free(void)
{
	char path[300];
	(void)snprintf(path, sizeof path, "%s/store/lock", rig.state);
	if (!WAIT_FOR(is_free(path)))
		fail_msg("the store is locked for ever");
}

static void first(void **state)
{
	(void)state;
	care_first(10);
}

static unsigned sound_audit(void)
{
	char path[300];
	struct audit_walk w = {0};
	(void)snprintf(path, sizeof path, "%s/audit.log", rig.logs);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	if (!audit_walk_file(&w, f))
		fail_msg("%s", w.why);
	fclose(f);
	return (unsigned)w.gone;
}

static const uint8_t code_hash[2][32] = {{1}, {2}}, device_hash[32] = {3};

static void pairing_code(int which)
{
	struct st_pair_begin m = {.tenant = "acme", .hash = {code_hash[which], 32}};
	struct st_pair_begun a;
	assert_int_equal(st_call_pair_begin(admin, &m, NULL, &a, NULL), ERR_OK);
}

static enum err claim(int which, const char *id)
{
	struct st_pair_claim m = {.hash = {code_hash[which], 32},
				  .tenant = "",
				  .label = id,
				  .token_id = id,
				  .token_hash = {device_hash, 32},
				  .request_id = ""};
	struct st_paired a;
	return FCGI(st_call_pair_claim(fcgi, &m, NULL, &a, NULL));
}

static enum err device(const char *id)
{
	struct st_principal m = {.token_id = id, .hash = {device_hash, 32}};
	struct st_principal_is is;
	return FCGI(st_call_principal(fcgi, &m, NULL, &is, NULL));
}

static const uint8_t old_hash[32] = {0x51}, new_hash[32] = {0x52}, third_hash[32] = {0x53};

/* Is this secret of that token valid? */
static enum err secret_of(const char *id, const uint8_t *hash)
{
	struct st_principal m = {.token_id = id, .hash = {hash, 32}};
	struct st_principal_is is;
	return FCGI(st_call_principal(fcgi, &m, NULL, &is, NULL));
}

static void rotate(const char *id, const uint8_t *hash)
{
	struct st_token_rotate m = {.tenant = "acme", .kind = 1, .token_id = id, .hash = {hash, 32}};
	struct st_ok ok;
	assert_int_equal(st_call_token_rotate(admin, &m, NULL, &ok, NULL), ERR_OK);
}

/* One whose secret is replaced after the backup; one whose NEXT becomes the token then, and one whose NEXT goes. */
static const char *const turning[] = {"turned", "promoted", "dropped"};

static void turning_before(const char *suffix)
{
	char id[64];
	struct st_ok ok;
	for (int i = 0; i < 3; i++) {
		(void)snprintf(id, sizeof id, "%s-%s", turning[i], suffix);
		struct st_token_create m = {
		    .tenant = "acme", .kind = 1, .token_id = id, .hash = {old_hash, 32}, .label = id};
		assert_int_equal(st_call_token_create(admin, &m, NULL, &ok, NULL), ERR_OK);
		if (i > 0)
			rotate(id, new_hash);
	}
}

static void turning_meanwhile(const char *suffix)
{
	char id[64];
	struct st_ok ok;
	for (int i = 0; i < 3; i++) {
		(void)snprintf(id, sizeof id, "%s-%s", turning[i], suffix);
		if (i == 0)
			rotate(id, third_hash);
		struct st_token_promote p = {.tenant = "acme", .token_id = id};
		struct st_token_drop d = {.tenant = "acme", .token_id = id};
		assert_int_equal(i < 2 ? st_call_token_promote(admin, &p, NULL, &ok, NULL)
				       : st_call_token_drop(admin, &d, NULL, &ok, NULL),
				 ERR_OK);
	}
}

/* store: the replaced one was read, and knows secrets; the log alone knows only whose were taken away. */
static void turning_afterwards(const char *suffix, bool store)
{
	char id[64];
	const enum err known = store ? ERR_OK : ERR_UNAUTHORIZED;
	(void)snprintf(id, sizeof id, "turned-%s", suffix);
	assert_int_equal(secret_of(id, old_hash), ERR_UNAUTHORIZED);
	assert_int_equal(secret_of(id, third_hash), ERR_UNAUTHORIZED);
	(void)snprintf(id, sizeof id, "promoted-%s", suffix);
	assert_int_equal(secret_of(id, old_hash), ERR_UNAUTHORIZED);
	assert_int_equal(secret_of(id, new_hash), known);
	(void)snprintf(id, sizeof id, "dropped-%s", suffix);
	assert_int_equal(secret_of(id, old_hash), known);
	assert_int_equal(secret_of(id, new_hash), ERR_UNAUTHORIZED);
}

/* What happens after every backup below. */
static void meanwhile(const char *suffix)
{
	char id[64];
	struct st_cap_is cap;
	struct st_run_state a;
	/* The run that goes on spends all it may, the queued one is started and ends. */
	(void)snprintf(id, sizeof id, "spent-%s", suffix);
	assert_int_equal(consume(id, &cap), ERR_OK);
	assert_int_equal(consume(id, &cap), ERR_OK);
	assert_int_equal(consume(id, &cap), ERR_MODEL_REQUEST_BUDGET_EXHAUSTED);
	(void)snprintf(id, sizeof id, "queued-%s", suffix);
	struct st_run_start s = {.tenant = "acme", .run = id, .expires_at = UINT64_MAX};
	struct st_run_work work;
	assert_int_equal(STEWARD(st_call_run_start(steward, &s, NULL, &work, NULL)), ERR_OK);
	assert_int_equal(finish(id, RUN_EV_COMPLETE, true, "", &a), ERR_OK);
	(void)snprintf(id, sizeof id, "stolen-%s", suffix);
	revoke_token(id);
	(void)snprintf(id, sizeof id, "lost-%s", suffix);
	struct st_device_revoke d = {.tenant = "acme", .label = id, .by = "operator", .request_id = ""};
	struct st_ok ok;
	assert_int_equal(FCGI(st_call_device_revoke(fcgi, &d, NULL, &ok, NULL)), ERR_OK);
	(void)snprintf(id, sizeof id, "later-%s", suffix);
	token(id);
	assert_int_equal(principal(id), ERR_OK);
}

/* Is there anything to push? */
static bool to_push(void)
{
	struct st_push_next m = {0};
	struct st_push_is a;
	assert_int_equal(PUSHING(st_call_push_next(push, &m, NULL, &a, NULL)), ERR_OK);
	return a.id != 0 || a.wait_ms != 0;
}

/* Both devices have push; a question was pushed to one and is on its way to the other. */
static void pushed(const char *suffix)
{
	char id[64];
	struct st_push_next next = {0};
	struct st_push_is a;
	struct st_ok ok;
	struct st_agent_event q = {.request = "q1",
				   .digest = {device_hash, 32},
				   .data = BYTES("{\"request_id\":\"q\"}"),
				   .effect = "execute",
				   .preview = "make"};
	push_ready('a');
	(void)snprintf(id, sizeof id, "lost-%s", suffix);
	assert_int_equal(push_put_at("acme", id, NULL), ERR_OK);
	(void)snprintf(id, sizeof id, "kept-%s", suffix);
	assert_int_equal(push_put_at("acme", id, NULL), ERR_OK);
	(void)snprintf(id, sizeof id, "spent-%s", suffix);
	assert_int_equal(ask_person(gateway, id, &q), ERR_OK);
	assert_int_equal(PUSHING(st_call_push_next(push, &next, NULL, &a, NULL)), ERR_OK);
	assert_true(a.id != 0);
	struct st_push_done done = {.tenant = "acme", .id = a.id, .outcome = PUSH_SENT};
	assert_int_equal(PUSHING(st_call_push_done(push, &done, NULL, &ok, NULL)), ERR_OK);
	assert_int_equal(PUSHING(st_call_push_next(push, &next, NULL, &a, NULL)), ERR_OK);
	assert_true(a.id != 0);
}

static void before(const char *suffix)
{
	char id[64];
	struct st_cap_is cap;
	(void)snprintf(id, sizeof id, "spent-%s", suffix);
	assert_int_equal(rig_running(fcgi, steward, "acme", id, 3), ERR_OK);
	assert_int_equal(consume(id, &cap), ERR_OK);
	(void)snprintf(id, sizeof id, "queued-%s", suffix);
	struct st_run_create m = rig_run("acme", id);
	m.idempotency = id;
	assert_int_equal(rig_create(fcgi, &m, NULL), ERR_OK);
	(void)snprintf(id, sizeof id, "done-%s", suffix);
	ended(id);
	(void)snprintf(id, sizeof id, "stolen-%s", suffix);
	token(id);
	(void)snprintf(id, sizeof id, "good-%s", suffix);
	token(id);
	pairing_code(0);
	(void)snprintf(id, sizeof id, "lost-%s", suffix);
	assert_int_equal(claim(0, id), ERR_OK);
	pairing_code(0);
	(void)snprintf(id, sizeof id, "kept-%s", suffix);
	assert_int_equal(claim(0, id), ERR_OK);
	pairing_code(1);
	pushed(suffix);
	turning_before(suffix);
	a_backup("r");
	turning_meanwhile(suffix);
	meanwhile(suffix);
}

static void afterwards(const char *suffix, bool good)
{
	char id[64];
	struct st_cap_is cap;
	struct st_run_is is;
	struct st_run_state a;
	bool terminal;
	(void)snprintf(id, sizeof id, "spent-%s", suffix);
	assert_int_equal(consume(id, &cap), ERR_INACTIVE_RUN_TOKEN);
	assert_int_equal(look(id, &is), ERR_OK);
	assert_true(is.finished && !is.success);
	assert_string_equal(is.error, "controller_restarted");
	assert_non_null(strstr(events_of(id, &terminal), "run.failed"));
	assert_true(terminal);
	/* It ran in the meantime: it must not run again, and cannot be started. */
	(void)snprintf(id, sizeof id, "queued-%s", suffix);
	assert_int_equal(look(id, &is), ERR_OK);
	assert_string_equal(is.error, "controller_restarted");
	struct st_run_start s = {.tenant = "acme", .run = id, .expires_at = UINT64_MAX};
	struct st_run_work work;
	assert_int_equal(STEWARD(st_call_run_start(steward, &s, NULL, &work, NULL)), ERR_ILLEGAL_RUN_TRANSITION);
	struct st_run_create m = rig_run("acme", "again");
	m.idempotency = id;
	assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
	assert_string_equal(a.run, id);
	(void)snprintf(id, sizeof id, "done-%s", suffix);
	assert_int_equal(look(id, &is), ERR_OK);
	assert_true(is.success);
	(void)snprintf(id, sizeof id, "stolen-%s", suffix);
	assert_int_equal(principal(id), ERR_UNAUTHORIZED);
	(void)snprintf(id, sizeof id, "later-%s", suffix);
	assert_int_equal(principal(id), ERR_UNAUTHORIZED);
	/* A device that was revoked meanwhile, one that was not, and a code that was waiting. */
	(void)snprintf(id, sizeof id, "lost-%s", suffix);
	assert_int_equal(device(id), ERR_UNAUTHORIZED);
	(void)snprintf(id, sizeof id, "kept-%s", suffix);
	assert_int_equal(device(id), good ? ERR_OK : ERR_UNAUTHORIZED);
	/* Who may still be told is; and nothing of what was to be told then. */
	push_ready('a');
	assert_int_equal(push_has("acme", id), good);
	(void)snprintf(id, sizeof id, "lost-%s", suffix);
	assert_false(push_has("acme", id));
	assert_false(to_push());
	(void)snprintf(id, sizeof id, "late-%s", suffix);
	assert_int_equal(claim(1, id), ERR_INVALID_PAIRING_CODE);
	(void)snprintf(id, sizeof id, "good-%s", suffix);
	assert_int_equal(principal(id), good ? ERR_OK : ERR_UNAUTHORIZED);
	STORE(0, "the store is whole", "check --contents");
	(void)sound_audit();
	/* The run that every test needs. */
	(void)rig_running(fcgi, steward, "acme", "anchor", 3);
}

static void nothing_comes_back(void **state)
{
	(void)state;
	before("a");
	STORE(1, "stop it first", "restore %s/r", rig.dir);
	care_stop();
	unsigned gone = sound_audit();
	STORE(0, "known from the store that was replaced", "restore %s/r", rig.dir);
	assert_non_null(strstr(cli_said(), "The store that was replaced is now store.before-"));
	care_start();
	afterwards("a", true);
	turning_afterwards("a", true);
	assert_int_equal(stats().generation, 2);
	assert_true(stats().restored_at > 0);
	/* What the replaced store did is not said to be undone. */
	assert_int_equal(sound_audit(), gone);
}

/* What the tenant used since the backup is used. */
static void quotas_stay(void **state)
{
	(void)state;
	struct st_cap_is cap;
	struct st_run_create m = rig_run("acme", "after");
	char run[32];
	enum err e = ERR_TENANT_REQUEST_QUOTA_EXHAUSTED;
	for (uint64_t most = 1; e != ERR_OK && most < 1000; most++) {
		care_stop();
		rig.max_model_requests_day = most; /* one more than there were, at last */
		care_start();
		(void)snprintf(run, sizeof run, "asks-%u", (unsigned)most);
		e = rig_running(fcgi, steward, "acme", run, 9);
	}
	assert_int_equal(e, ERR_OK);
	a_backup("q");
	assert_int_equal(consume(run, &cap), ERR_OK);
	assert_int_equal(consume(run, &cap), ERR_TENANT_REQUEST_QUOTA_EXHAUSTED);
	care_stop();
	STORE(0, "known from the store that was replaced", "restore %s/q", rig.dir);
	care_start();
	assert_int_equal(rig_create(fcgi, &m, NULL), ERR_TENANT_REQUEST_QUOTA_EXHAUSTED);
	STORE(0, "the store is whole", "check --contents");
	care_stop();
	rig.max_model_requests_day = 0;
	care_start();
	(void)rig_running(fcgi, steward, "acme", "anchor", 3);
}

/* The replaced store cannot be read: the audit log knows the revocations. */
static void the_log_knows(void **state)
{
	(void)state;
	before("b");
	care_stop();
	sh("rm %s/store/log.*", rig.state);
	STORE(0, "known from the audit log", "restore %s/r", rig.dir);
	care_start();
	afterwards("b", true);
	turning_afterwards("b", false);
}

/* There is another store at its place, which knows nothing of those tokens: it is no witness. */
static void another_store(void **state)
{
	(void)state;
	before("c");
	care_stop();
	sh("rm -rf %s/store && install -d -m 700 -o %d -g %d %s/store", rig.state, RIG_UID, RIG_UID, rig.state);
	care_start();
	rig_tenant(&rig, "acme");
	assert_int_equal(rig_stop(&rig, SIGTERM), 0);
	STORE(0, "known from the audit log", "restore %s/r", rig.dir);
	care_start();
	afterwards("c", true);
}

/*
 * The machine was lost and the backup is restored on a new one, whose service has run and has a log of its own: it
 * knows nothing of the old machine's tokens, whether it is shorter than the lost one or longer.
 */
static void another_machine(void **state)
{
	(void)state;
	for (unsigned more = 0; more < 2; more++) {
		char id[32];
		const char *name = more ? "n" : "m";
		before(name);
		care_stop();
		sh("mkdir %s/lost && mv %s/store %s/lost/ && mv %s/audit.log* %s/lost/ && install -d -m 700 -o %d -g "
		   "%d "
		   "%s/store",
		   rig.dir, rig.state, rig.dir, rig.logs, rig.dir, RIG_UID, RIG_UID, rig.state);
		care_start();
		rig_tenant(&rig, "acme");
		for (unsigned i = 0; i < 1000 * more; i++) {
			(void)snprintf(id, sizeof id, "new-%u", i);
			token(id);
		}
		assert_int_equal(rig_stop(&rig, SIGTERM), 0);
		STORE(0, "so all tokens were revoked", "restore %s/r", rig.dir);
		care_start();
		afterwards(name, false);
		/* The lost log was found after all. */
		care_stop();
		sh("rm -r %s/store %s/audit.log* && mv %s/lost/audit.log* %s/", rig.state, rig.logs, rig.dir, rig.logs);
		STORE(0, "known from the audit log", "restore %s/r", rig.dir);
		care_start();
		afterwards(name, true);
		sh("rm -r %s/lost", rig.dir);
	}
}

/* Neither can tell: no token is valid, unless they are kept on purpose. */
static void nobody_knows(void **state)
{
	(void)state;
	for (int keep = 0; keep < 2; keep++) {
		const char *name = keep ? "e" : "d";
		before(name);
		care_stop();
		sh("rm -rf %s/store", rig.state);
		/* A line in the middle is missing; with the next one the log is gone altogether. */
		sh(keep ? "rm %s/audit.log" : "sed -i '/run.finish/d' %s/audit.log", rig.logs);
		STORE(0, keep ? "is NOT known, and --keep-tokens" : "so all tokens were revoked", "restore %s %s/r",
		      keep ? "--keep-tokens" : "", rig.dir);
		care_start();
		if (keep) {
			assert_int_equal(principal("good-e"), ERR_OK);
			assert_int_equal(principal("stolen-e"), ERR_OK); /* as was said */
		} else {
			assert_int_equal(principal("good-d"), ERR_UNAUTHORIZED);
			assert_int_equal(principal("stolen-d"), ERR_UNAUTHORIZED);
			sh("rm %s/audit.log", rig.logs); /* it is not sound any more */
			assert_true(WIFSIGNALED(rig_stop(&rig, SIGKILL)));
			care_start();
		}
		(void)rig_running(fcgi, steward, "acme", "anchor", 3);
	}
}

static void bad_backups(void **state)
{
	(void)state;
	a_backup("x");
	care_stop();
	sh("cp -a %s/x %s/y && printf x | dd of=%s/y/pinfold.db conv=notrunc bs=1 seek=5000 2>/dev/null", rig.dir,
	   rig.dir, rig.dir);
	STORE(1, "has other contents than the manifest says", "restore %s/y", rig.dir);
	sh("rm -rf %s/y && cp -a %s/x %s/y && rm $(find %s/y/blobs -type f | head -1)", rig.dir, rig.dir, rig.dir,
	   rig.dir);
	STORE(1, "No such file", "restore %s/y", rig.dir);
	/* Neither waited for nor read to its end. */
	sh("rm -rf %s/y && cp -a %s/x %s/y && rm %s/y/pinfold.db && mkfifo %s/y/pinfold.db", rig.dir, rig.dir, rig.dir,
	   rig.dir, rig.dir);
	STORE(1, "is not a regular file", "restore %s/y", rig.dir);
	sh("rm %s/y/pinfold.db && ln -s %s/x/pinfold.db %s/y/pinfold.db", rig.dir, rig.dir, rig.dir);
	STORE(1, "Too many levels of symbolic links", "restore %s/y", rig.dir);
	sh("rm -rf %s/y && cp -a %s/x %s/y && truncate -s 4E %s/y/pinfold.db 2>/dev/null || truncate -s 1T "
	   "%s/y/pinfold.db",
	   rig.dir, rig.dir, rig.dir, rig.dir, rig.dir);
	STORE(1, "has another size than the manifest says", "restore %s/y", rig.dir);
	sh("rm -rf %s/y && cp -a %s/x %s/y && sed -i '/pinfold.db/d' %s/y/manifest", rig.dir, rig.dir, rig.dir,
	   rig.dir);
	STORE(1, "names no pinfold.db", "restore %s/y", rig.dir);
	sh("rm -rf %s/y && cp -a %s/x %s/y && rm %s/y/manifest", rig.dir, rig.dir, rig.dir, rig.dir);
	STORE(1, "there is no manifest", "restore %s/y", rig.dir);
	sh("rm -rf %s/y && cp -a %s/x %s/y && sed -i '$d' %s/y/manifest", rig.dir, rig.dir, rig.dir, rig.dir);
	STORE(1, "the manifest is cut off", "restore %s/y", rig.dir);
	sh("sed -i '2i file 0000000000000000000000000000000000000000000000000000000000000000 1 ../../etc/x' "
	   "%s/y/manifest",
	   rig.dir);
	STORE(1, "the manifest has a bad line", "restore %s/y", rig.dir);
	/* All of that left the store alone. */
	STORE(0, "the store is whole", "check");
	assert_int_equal(system("true"), 0);
	care_start();
	assert_true(run_is("anchor").max_requests > 0);
	sh("rm -rf %s/y", rig.dir);
}

/* Killed at any moment there is a store, the old one or the new. */
static void killed_restores(void **state)
{
	(void)state;
	char dir[200];
	unsigned old = 0, new = 0;
	(void)snprintf(dir, sizeof dir, "%s/x", rig.dir);
	token("after-x");
	for (unsigned us = 5000; us < 1200000; us += us < 200000 ? 15000 : 100000) {
		care_stop();
		pid_t pid = fork();
		if (pid == 0) {
			(void)setpgid(0, 0);
			close(1);
			execl("./cli/pinfold", "pinfold", "store", "restore", dir, (char *)NULL);
			_exit(127);
		}
		(void)setpgid(pid, pid);
		(void)usleep(us);
		(void)kill(-pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		wait_free();
		care_start();
		assert_true(run_is("anchor").max_requests > 0);
		if (principal("after-x") == ERR_OK) {
			old++;
		} else {
			new ++;
			rig_running(fcgi, steward, "acme", "anchor", 3);
			char id[32];
			(void)snprintf(id, sizeof id, "after-x");
			token(id);
		}
		STORE(0, "the store is whole", "check");
	}
	print_message("%u times the old store, %u times the new one\n", old, new);
	assert_true(old > 0);
	care_stop();
	STORE(0, "restored", "restore %s", dir);
	care_start();
	STORE(0, "the store is whole", "check --contents");
	(void)rig_running(fcgi, steward, "acme", "anchor", 3);
}

/*
 * Root copies by name into a folder that becomes the store's user's. Until all is there it is root's: a process of that
 * user, were one there, could put a link in its way and have root write and give away files elsewhere.
 */
static void nobodys_by_then(void **state)
{
	(void)state;
	char copied[320], folder[300], dir[200];
	struct stat st;
	bool held = false;
	(void)snprintf(folder, sizeof folder, "%s/store.new", rig.state);
	(void)snprintf(copied, sizeof copied, "%s/pinfold.db", folder);
	(void)snprintf(dir, sizeof dir, "%s/x", rig.dir);
	care_stop();
	for (int i = 0; i < 100 && !held; i++) {
		sh("rm -rf %s", folder);
		pid_t pid = fork();
		if (pid == 0) {
			close(1);
			execl("./cli/pinfold", "pinfold", "store", "restore", dir, (char *)NULL);
			_exit(127);
		}
		while (stat(copied, &st) != 0 && waitpid(pid, NULL, WNOHANG) == 0) {
		}
		(void)kill(pid, SIGSTOP);
		/* Its first file is there and its last is not. */
		if (access(copied, F_OK) == 0 && stat(folder, &st) == 0) {
			char blobs[320];
			(void)snprintf(blobs, sizeof blobs, "%s/blobs", folder);
			held = access(blobs, F_OK) != 0;
			if (held)
				assert_int_equal(st.st_uid, 0);
		}
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	assert_true(held);
	STORE(0, "restored", "restore %s/x", rig.dir);
	care_start();
	STORE(0, "the store is whole", "check --contents");
	(void)rig_running(fcgi, steward, "acme", "anchor", 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(first),         cmocka_unit_test(nothing_comes_back), cmocka_unit_test(quotas_stay),
	    cmocka_unit_test(the_log_knows), cmocka_unit_test(another_store),      cmocka_unit_test(another_machine),
	    cmocka_unit_test(bad_backups),   cmocka_unit_test(nobodys_by_then),    cmocka_unit_test(killed_restores),
	    cmocka_unit_test(nobody_knows),
	};
	return cmocka_run_group_tests(tests, care_setup, steps_teardown);
}
