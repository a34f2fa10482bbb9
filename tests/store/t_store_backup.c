/*
 * "pinfold store" check, backup, compact and restore. What is restored is what was backed up, less every right that was
 * taken away or used since.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/audit.h"
#include "lib/names.h"
#include "tests/store/cli.h"
#include "tests/store/old_form.h"
#include "tests/store/steps.h"

static const uint8_t hash[32] = {4};

static int setup(void **state)
{
	(void)state;
	/* Hundreds of durable files: where they cost nothing. */
	rig_open(&rig, access("/dev/shm", W_OK) == 0 ? "/dev/shm" : NULL);
	cli_open(&rig);
	rig_start(&rig);
	return steps_connect();
}

static void stop(void)
{
	assert_true(run_is("anchor").max_requests > 0); /* it has begun to listen to signals */
	assert_int_equal(rig_stop(&rig, SIGTERM), 0);
}

/* The service has the store: from now on "pinfold store check" asks it. */
static void start(void)
{
	struct st_ping m = {0};
	struct st_ok ok;
	rig_start(&rig);
	assert_int_equal(st_call_ping(admin, &m, NULL, &ok, NULL), ERR_OK);
}

/* What was killed with its lock may still be dying. */
static void wait_free(void)
{
	char path[300];
	(void)snprintf(path, sizeof path, "%s/store/lock", rig.state);
	for (int i = 0; i < 500; i++) {
		int fd = open(path, O_RDWR);
		bool is_free = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
		close(fd);
		if (is_free)
			return;
		(void)usleep(20000);
	}
	fail_msg("the store is locked for ever");
}

static void sh(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void sh(const char *fmt, ...)
{
	char command[600];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(command, sizeof command, fmt, ap);
	va_end(ap);
	assert_int_equal(system(command), 0);
}

static void expect(const char *text)
{
	if (strstr(cli_said(), text) == NULL)
		print_message("said: %s", cli_said());
	assert_non_null(strstr(cli_said(), text));
}

#define STORE(wanted, text, ...)                               \
	do {                                                   \
		int status_ = cli_store(__VA_ARGS__);          \
		if (status_ != (wanted))                       \
			print_message("said: %s", cli_said()); \
		assert_int_equal(status_, wanted);             \
		expect(text);                                  \
	} while (0)

static enum err principal(const char *id)
{
	struct st_principal m = {.token_id = id, .hash = {hash, 32}};
	struct st_principal_is is;
	return FCGI(st_call_principal(fcgi, &m, NULL, &is, NULL));
}

static void token(const char *id)
{
	struct st_token_create m = {.tenant = "acme", .kind = 1, .token_id = id, .hash = {hash, 32}, .label = ""};
	struct st_ok ok;
	assert_int_equal(st_call_token_create(admin, &m, NULL, &ok, NULL), ERR_OK);
}

static void revoke_token(const char *id)
{
	struct st_token_revoke m = {.tenant = "acme", .token_id = id};
	struct st_ok ok;
	assert_int_equal(st_call_token_revoke(admin, &m, NULL, &ok, NULL), ERR_OK);
}

/* A run that has ended, with sources and a patch that are files. */
static void ended(const char *run)
{
	static char bytes[40000];
	struct st_run_create m = rig_run("acme", run);
	struct st_run_state a;
	struct st_ok ok;
	struct st_run_work work;
	struct st_events_taken taken;
	struct st_artifact_put put = {.tenant = "acme", .run = run, .name = ART_PATCH};
	struct st_run_start s = {.tenant = "acme", .run = run, .expires_at = UINT64_MAX};
	memset(bytes, 'u', sizeof bytes);
	memcpy(bytes, run, strlen(run));
	int fds[2] = {rig_memfd("{}", 2), rig_memfd(bytes, sizeof bytes)}, patch = rig_memfd(bytes, 30000);
	assert_int_equal(FCGI(st_call_run_create(fcgi, &m, fds, &a, NULL)), ERR_OK);
	assert_int_equal(STEWARD(st_call_run_start(steward, &s, NULL, &work, NULL)), ERR_OK);
	assert_int_equal(append(run, "t", 3000, 20, &taken), ERR_OK);
	assert_int_equal(STEWARD(st_call_artifact_put(steward, &put, &patch, &ok, NULL)), ERR_OK);
	assert_int_equal(finish(run, RUN_EV_COMPLETE, true, "", &a), ERR_OK);
	close(fds[0]);
	close(fds[1]);
	close(patch);
}

static struct st_stats_are stats(void)
{
	struct st_stat m = {0};
	struct st_stats_are a;
	assert_int_equal(st_call_stat(admin, &m, NULL, &a, NULL), ERR_OK);
	return a;
}

static enum err look(const char *run, struct st_run_is *a)
{
	struct st_run_get m = {.tenant = "acme", .run = run};
	return FCGI(st_call_run_get(fcgi, &m, NULL, a, NULL));
}

static void first(void **state)
{
	(void)state;
	assert_int_equal(rig_running(fcgi, steward, "acme", "anchor", 3), ERR_OK);
	for (int i = 0; i < 30; i++) {
		char run[32];
		(void)snprintf(run, sizeof run, "run-%d", i);
		ended(run);
	}
	token("lasting");
	/* As an instance has it: the folder above the store is root's. */
	sh("chown root:root %s && chmod 711 %s", rig.state, rig.state);
	STORE(0, "the store is whole", "check --contents");
	STORE(0, "generation           1", "stat");
	STORE(2, "store stat", "nonsense");
}

/* Each thing that can be wrong is found, named, and makes the check fail; nothing else is said then. */
static void findings(void **state)
{
	(void)state;
	static const struct {
		const char *table, *prefix;
		size_t n;
		bool drop;
		const char *says;
	} cases[] = {
	    {"event", "acme\0run-3\0", 11, true, "run acme/run-3: its events are not 1 to"},
	    {"event", "acme\0run-3\0\0\0\0\0\0\0\0\5", 19, true, "run acme/run-3: its events are not 1 to"},
	    {"run", "acme\0run-4\0", 11, true, "which is no run"},
	    {"run", "acme\0run-4\0", 11, false, "the record of run acme/run-4 cannot be read"},
	    {"run_by_age", "acme\0", 5, true, "is not in the index by age"},
	    {"run_open", "acme\0anchor\0", 12, true, "is not in the index of open runs"},
	    {"run_ended", "0\0", 2, true, "is not in the index of ended runs"},
	    {"capability", "acme\0anchor\0", 12, false, "run acme/anchor used"},
	    {"artifact", "acme\0run-5\0", 11, true, "artifact patch is in its record and not there"},
	    {"blob", "", 0, true, "there is no blob"},
	    {"blob_use", "", 0, true, "does not say that it is used so"},
	    {"token", "lasting\0", 8, false, ""},
	    {"tenant", "acme\0", 5, true, "has no tenant"},
	};
	stop();
	sh("cp -a %s/store %s/kept", rig.state, rig.state);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		if (cases[i].drop)
			row_drop(rig.state, cases[i].table, cases[i].prefix, cases[i].n);
		else
			row_spoil(rig.state, cases[i].table, cases[i].prefix, cases[i].n);
		if (cases[i].says[0] != '\0')
			STORE(1, cases[i].says, "check");
		sh("rm -rf %s/store && cp -a %s/kept %s/store", rig.state, rig.state, rig.state);
	}
	/* A file that is not there, one cut, one with other bytes. */
	sh("rm $(find %s/store/blobs -type f | sort | head -1)", rig.state);
	STORE(1, "is not there", "check");
	sh("truncate -s 10 $(find %s/store/blobs -type f | sort | tail -1)", rig.state);
	STORE(1, "has 10 bytes instead of", "check");
	sh("rm -rf %s/store && cp -a %s/kept %s/store", rig.state, rig.state, rig.state);
	sh("printf x | dd of=$(find %s/store/blobs -type f | sort | tail -1) conv=notrunc bs=1 seek=100 2>/dev/null",
	   rig.state);
	STORE(0, "the store is whole", "check");
	STORE(1, "holds something else", "check --contents");
	/* A copy without its logs is named, and so is a page that was overwritten. */
	sh("rm -rf %s/store && cp -a %s/kept %s/store && rm %s/store/log.*", rig.state, rig.state, rig.state,
	   rig.state);
	STORE(1, "the store's logs are missing", "check");
	sh("rm -rf %s/store && cp -a %s/kept %s/store", rig.state, rig.state, rig.state);
	STORE(0, "the store is whole", "check --contents");
	sh("rm -rf %s/kept", rig.state);
	start();
	STORE(0, "the store is whole", "check");
}

static void a_backup(const char *name)
{
	sh("rm -rf %s/%s", rig.dir, name);
	STORE(0, "files", "backup %s/%s", rig.dir, name);
}

/* While others write, the parts fit together; its folder is root's alone; nothing is written over. */
static void while_others_write(void **state)
{
	(void)state;
	struct stat st;
	char path[200];
	pid_t writer = fork();
	if (writer == 0) {
		uid_t uid = rig_uid(RIG_FCGI);
		if (setresuid(uid, uid, uid) != 0)
			_exit(1);
		struct ask *a = ask_new(rig.sock, 10000);
		for (unsigned i = 0;; i++) {
			char id[32];
			static char bytes[50000];
			struct st_run_state s;
			(void)snprintf(id, sizeof id, "load-%u", i);
			memcpy(bytes, id, sizeof id);
			struct st_run_create m = rig_run("other", id);
			int fds[2] = {rig_memfd("{}", 2), rig_memfd(bytes, sizeof bytes)};
			struct st_run_cancel c = {.tenant = "other", .run = id, .by = ""};
			struct st_run_delete d = {.tenant = "other", .run = id, .by = ""};
			struct st_ok ok;
			if (st_call_run_create(a, &m, fds, &s, NULL) != ERR_OK ||
			    st_call_run_cancel(a, &c, NULL, &s, NULL) != ERR_OK ||
			    (i % 3 != 0 && st_call_run_delete(a, &d, NULL, &ok, NULL) != ERR_OK))
				_exit(1);
			close(fds[0]);
			close(fds[1]);
			(void)usleep(3000);
		}
	}
	for (int round = 0; round < 4; round++) {
		a_backup("b");
		STORE(0, "a whole backup of", "check %s/b", rig.dir);
		(void)snprintf(path, sizeof path, "%s/b", rig.dir);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0700);
		assert_int_equal(st.st_uid, 0);
		STORE(1, "is there already", "backup %s/b", rig.dir);
		/* It is a store: put where one is, it recovers and is whole. */
		sh("rm -rf %s/try && mkdir -p %s/try/store && cp -a %s/b/. %s/try/store/ && chown -R %d:%d %s/try",
		   rig.dir, rig.dir, rig.dir, rig.dir, RIG_UID, RIG_UID, rig.dir);
		sh("setpriv --reuid %d --regid %d --clear-groups %s --check %s/try --contents >%s/out || { cat %s/out; "
		   "false; }",
		   RIG_UID, RIG_UID, rig.program, rig.dir, rig.dir, rig.dir);
	}
	(void)kill(writer, SIGKILL);
	(void)waitpid(writer, NULL, 0);
	sh("rm -rf %s/try", rig.dir);
}

/* Killed: there is no backup of that name, and the service holds nothing back any more. */
static void killed_backups(void **state)
{
	(void)state;
	char dir[200];
	(void)snprintf(dir, sizeof dir, "%s/k", rig.dir);
	unsigned partial = 0, done = 0;
	for (unsigned us = 1000; us < 400000; us += us < 40000 ? 5000 : 60000) {
		sh("rm -rf %s %s.partial", dir, dir);
		pid_t pid = fork();
		if (pid == 0) {
			execl("./cli/pinfold", "pinfold", "store", "backup", dir, (char *)NULL);
			_exit(127);
		}
		(void)usleep(us);
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		if (access(dir, F_OK) == 0) {
			STORE(0, "a whole backup", "check %s", dir);
			done++;
		} else if (access(strcat(dir, ".partial"), F_OK) == 0) {
			STORE(1, "manifest", "check %s", dir);
			*strrchr(dir, '.') = '\0';
			STORE(1, "left by a backup that was not finished", "backup %s", dir);
			partial++;
		} else {
			*strrchr(dir, '.') = '\0';
		}
	}
	print_message("%u were cut off, %u finished\n", partial, done);
	sh("rm -rf %s %s.partial", dir, dir);
	assert_true(partial > 0);
	/* Only one at a time, and it is over when its connection is. */
	struct ask *other = rig_ask(&rig, RIG_ADMIN);
	struct st_backup_begin begin = {0};
	struct st_backup_is is;
	struct st_backup_read read = {.name = "pinfold.db"};
	struct st_backup_part part;
	assert_int_equal(st_call_backup_begin(other, &begin, NULL, &is, NULL), ERR_OK);
	assert_int_equal(st_call_backup_read(other, &read, NULL, &part, NULL), ERR_OK);
	read.name = "../../etc/passwd";
	assert_int_equal(st_call_backup_read(other, &read, NULL, &part, NULL), ERR_INVALID_REQUEST);
	STORE(1, "backup_busy", "backup %s", dir);
	STORE(1, "backup_busy", "compact");
	assert_int_equal(st_call_backup_read(admin, &read, NULL, &part, NULL), ERR_BACKUP_OVER);
	ask_free(other);
	a_backup("k");
	sh("rm -rf %s", dir);
	for (int i = 0; i < 20; i++) {
		char run[32];
		struct st_cap_is cap;
		(void)snprintf(run, sizeof run, "log-%d", i);
		ended(run);
		(void)consume(run, &cap);
	}
	for (int i = 0; i < 3000 && stats().log_files > 2; i++)
		(void)usleep(20000);
	assert_true(stats().log_files <= 2);
}

static bool first_log(struct ask *a, char name[80])
{
	struct st_backup_logs m = {0};
	struct st_backup_names got;
	struct wire_bytes part;
	struct st_text text;
	bool bad = false;
	if (st_call_backup_logs(a, &m, NULL, &got, NULL) != ERR_OK || !wire_list_next(&got.names, &part, &bad) ||
	    !st_get_text(part.p, part.n, &text))
		return false;
	(void)snprintf(name, 80, "%s", text.text);
	return true;
}

static bool have_log(const char *name)
{
	char path[300];
	(void)snprintf(path, sizeof path, "%s/store/%s", rig.state, name);
	return access(path, F_OK) == 0;
}

/* As long as a backup goes on: no checkpoint, no log and no blob's file removed, whatever is written and deleted. */
static void held_back(void **state)
{
	(void)state;
	char log[80], run[32], folder[3], name[65] = "";
	struct ask *a = rig_ask(&rig, RIG_ADMIN);
	struct st_backup_begin begin = {0};
	struct st_backup_is is;
	struct st_events_taken taken;
	struct st_ok ok;
	ended("goes");
	assert_int_equal(st_call_backup_begin(a, &begin, NULL, &is, NULL), ERR_OK);
	assert_true(first_log(a, log));
	uint64_t checkpoint = stats().checkpoint_at, blobs = stats().blobs;
	for (int i = 0; i < 8; i++) {
		(void)snprintf(run, sizeof run, "held-%d", i);
		assert_int_equal(rig_running(fcgi, steward, "acme", run, 3), ERR_OK);
		for (int k = 0; k < 7; k++)
			assert_int_equal(append(run, "t", 60000, 2, &taken), ERR_OK);
		(void)usleep(200000); /* longer than a checkpoint waits */
	}
	assert_true(stats().log_files > 2);
	struct st_run_delete d = {.tenant = "acme", .run = "goes", .by = ""};
	assert_int_equal(FCGI(st_call_run_delete(fcgi, &d, NULL, &ok, NULL)), ERR_OK);
	assert_true(stats().blobs < blobs);
	assert_int_equal(stats().checkpoint_at, checkpoint);
	assert_true(have_log(log));
	/* Each file that is listed can be read, the deleted run's too. */
	unsigned files = 0;
	for (unsigned i = 0; i < 256; i++) {
		struct st_backup_names got;
		struct wire_bytes part;
		struct st_text text;
		bool bad = false;
		(void)snprintf(folder, sizeof folder, "%02x", i);
		assert_int_equal(
		    st_call_backup_blobs(a, &(struct st_backup_blobs){.folder = folder, .after = ""}, NULL, &got, NULL),
		    ERR_OK);
		while (wire_list_next(&got.names, &part, &bad) && st_get_text(part.p, part.n, &text)) {
			(void)snprintf(name, sizeof name, "%s", text.text);
			files++;
		}
	}
	struct st_backup_file file;
	assert_int_equal(st_call_backup_blob(a, &(struct st_backup_blob){.name = name}, NULL, &file, NULL), ERR_OK);
	struct st_backup_end end = {0};
	assert_int_equal(st_call_backup_end(a, &end, NULL, &ok, NULL), ERR_OK);
	ask_free(a);
	for (int i = 0; i < 3000 && (have_log(log) || stats().log_files > 2); i++) {
		struct st_run_state s;
		(void)snprintf(run, sizeof run, "held-%d", i % 8);
		(void)cancel(run, &s);
		(void)usleep(20000);
	}
	assert_false(have_log(log));
	assert_true(stats().checkpoint_at > checkpoint);
	sh("test $(find %s/store/blobs -type f | wc -l) -lt %u", rig.state, files);
	STORE(0, "the store is whole", "check --contents");
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
	(void)snprintf(id, sizeof id, "later-%s", suffix);
	token(id);
	assert_int_equal(principal(id), ERR_OK);
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
	a_backup("r");
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
	stop();
	unsigned gone = sound_audit();
	STORE(0, "known from the store that was replaced", "restore %s/r", rig.dir);
	assert_non_null(strstr(cli_said(), "The store that was replaced is now store.before-"));
	start();
	afterwards("a", true);
	assert_int_equal(stats().generation, 2);
	assert_true(stats().restored_at > 0);
	/* What the replaced store did is not said to be undone. */
	assert_int_equal(sound_audit(), gone);
}

/* The replaced store cannot be read: the audit log knows the revocations. */
static void the_log_knows(void **state)
{
	(void)state;
	before("b");
	stop();
	sh("rm %s/store/log.*", rig.state);
	STORE(0, "known from the audit log", "restore %s/r", rig.dir);
	start();
	afterwards("b", true);
}

/* There is another store at its place, which knows nothing of those tokens: it is no witness. */
static void another_store(void **state)
{
	(void)state;
	before("c");
	stop();
	sh("rm -rf %s/store && install -d -m 700 -o %d -g %d %s/store", rig.state, RIG_UID, RIG_UID, rig.state);
	start();
	rig_tenant(&rig, "acme");
	assert_int_equal(rig_stop(&rig, SIGTERM), 0);
	STORE(0, "known from the audit log", "restore %s/r", rig.dir);
	start();
	afterwards("c", true);
}

/* Neither can tell: no token is valid, unless they are kept on purpose. */
static void nobody_knows(void **state)
{
	(void)state;
	for (int keep = 0; keep < 2; keep++) {
		const char *name = keep ? "e" : "d";
		before(name);
		stop();
		sh("rm -rf %s/store", rig.state);
		/* A line in the middle is missing; with the next one the log is gone altogether. */
		sh(keep ? "rm %s/audit.log" : "sed -i '/run.finish/d' %s/audit.log", rig.logs);
		STORE(0, keep ? "is NOT known, and --keep-tokens" : "so all tokens were revoked", "restore %s %s/r",
		      keep ? "--keep-tokens" : "", rig.dir);
		start();
		if (keep) {
			assert_int_equal(principal("good-e"), ERR_OK);
			assert_int_equal(principal("stolen-e"), ERR_OK); /* as was said */
		} else {
			assert_int_equal(principal("good-d"), ERR_UNAUTHORIZED);
			assert_int_equal(principal("stolen-d"), ERR_UNAUTHORIZED);
			sh("rm %s/audit.log", rig.logs); /* it is not sound any more */
			assert_true(WIFSIGNALED(rig_stop(&rig, SIGKILL)));
			start();
		}
		(void)rig_running(fcgi, steward, "acme", "anchor", 3);
	}
}

static void bad_backups(void **state)
{
	(void)state;
	a_backup("x");
	stop();
	sh("cp -a %s/x %s/y && printf x | dd of=%s/y/pinfold.db conv=notrunc bs=1 seek=5000 2>/dev/null", rig.dir,
	   rig.dir, rig.dir);
	STORE(1, "has other contents than the manifest says", "restore %s/y", rig.dir);
	sh("rm -rf %s/y && cp -a %s/x %s/y && rm $(find %s/y/blobs -type f | head -1)", rig.dir, rig.dir, rig.dir,
	   rig.dir);
	STORE(1, "No such file", "restore %s/y", rig.dir);
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
	start();
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
		stop();
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
		start();
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
	stop();
	STORE(0, "restored", "restore %s", dir);
	start();
	STORE(0, "the store is whole", "check --contents");
	(void)rig_running(fcgi, steward, "acme", "anchor", 3);
}

static void compaction(void **state)
{
	(void)state;
	char id[32];
	struct st_ok ok;
	uint64_t before_, after;
	for (int i = 0; i < 40; i++) {
		(void)snprintf(id, sizeof id, "bulk-%d", i);
		ended(id);
	}
	for (int i = 0; i < 40; i++) {
		(void)snprintf(id, sizeof id, "bulk-%d", i);
		struct st_run_delete d = {.tenant = "acme", .run = id, .by = ""};
		assert_int_equal(FCGI(st_call_run_delete(fcgi, &d, NULL, &ok, NULL)), ERR_OK);
	}
	before_ = stats().data_bytes;
	STORE(0, "pages were freed", "compact");
	after = stats().data_bytes;
	print_message("%llu bytes, then %llu\n", (unsigned long long)before_, (unsigned long long)after);
	assert_true(after < before_);
	STORE(0, "the store is whole", "check --contents");
	assert_true(WIFSIGNALED(rig_stop(&rig, SIGKILL)));
	start();
	STORE(0, "the store is whole", "check --contents");
	stop();
	STORE(0, "the store is whole", "check --contents");
	start();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(first),
	    cmocka_unit_test(findings),
	    cmocka_unit_test(while_others_write),
	    cmocka_unit_test(killed_backups),
	    cmocka_unit_test(held_back),
	    cmocka_unit_test(compaction),
	    cmocka_unit_test(nothing_comes_back),
	    cmocka_unit_test(the_log_knows),
	    cmocka_unit_test(another_store),
	    cmocka_unit_test(bad_backups),
	    cmocka_unit_test(killed_restores),
	    cmocka_unit_test(nobody_knows),
	};
	return cmocka_run_group_tests(tests, setup, steps_teardown);
}
