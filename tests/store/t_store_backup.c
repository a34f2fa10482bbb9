/* "pinfold store" check, backup and compact. What is backed up is of one moment, whatever others write meanwhile. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/store/care.h"
#include "tests/store/old_form.h"
#include "tests/store/push_steps.h"
#include "tests/store/sending.h"

static void first(void **state)
{
	(void)state;
	care_first(30);
	STORE(0, "the store is whole", "check --contents");
	STORE(0, "generation           1", "stat");
	STORE(2, "store stat", "nonsense");
}

/* Each thing that can be wrong is found, named, and makes the check fail; nothing else is said then. */
static void findings(void **state)
{
	(void)state;
	static uint8_t archive[20000];
	/* Of 20,000 times "z". */
	static const char archive_use[] =
	    "09ef7eb5c2cd6571647475fd220c7b88426cf645dd18a063ad27b4c8f1f180a6\0acme\0\0source";
	memset(archive, 'z', sizeof archive);
	static const struct {
		const char *table, *prefix;
		size_t n;
		void (*change)(const char *state, const char *table, const char *prefix, size_t n);
		const char *says;
	} cases[] = {
	    {"event", "acme\0run-3\0", 11, row_drop, "run acme/run-3: its events are not 1 to"},
	    {"event", "acme\0run-3\0\0\0\0\0\0\0\0\5", 19, row_drop, "run acme/run-3: its events are not 1 to"},
	    {"run", "acme\0run-4\0", 11, row_drop, "which is no run"},
	    {"run", "acme\0run-4\0", 11, row_cut, "the record of run acme/run-4 cannot be read"},
	    {"run", "acme\0run-4\0", 11, row_spoil_pending,
	     "run acme/run-4: 0 questions are there, of which 0 wait, not 0 and 85"},
	    {"run_by_age", "acme\0", 5, row_drop, "is not in the index by age"},
	    {"run_open", "acme\0anchor\0", 12, row_drop, "is not in the index of open runs"},
	    {"run_ended", "0\0", 2, row_drop, "is not in the index of ended runs"},
	    {"capability", "acme\0anchor\0", 12, row_spoil_used, "run acme/anchor used"},
	    {"artifact", "acme\0run-5\0", 11, row_drop, "artifact patch is in its record and not there"},
	    {"blob", "", 0, row_drop, "there is no blob"},
	    {"blob_use", "", 0, row_drop, "does not say that it is used so"},
	    {"token", "lasting\0", 8, row_cut, "the record of token lasting cannot be read"},
	    {"pairing", "acme\0", 5, row_cut, "the pairing code of acme cannot be read"},
	    {"tenant", "acme\0", 5, row_drop, "has no tenant"},
	    {"tenant", "acme\0", 5, row_cut, "the record of tenant acme cannot be read"},
	    {"capability", "acme\0anchor\0", 12, row_cut, "the capability of acme/anchor cannot be read"},
	    {"artifact", "acme\0run-5\0", 11, row_cut, "of acme/run-5 cannot be read"},
	    {"event", "acme\0run-3\0", 11, row_cut, "event 1 of acme/run-3 cannot be read"},
	    {"blob", "", 0, row_cut, "the record of blob"},
	    {"blob_content", "", 0, row_cut, "the content of blob"},
	    {"run_open", "acme\0anchor\0", 12, row_cut, "in the index of open runs cannot be read"},
	    {"meta", "", 0, row_cut, "the store's own record cannot be read"},
	    {"waiting", "acme\0", 5, row_drop, "question q1 of acme/anchor waits and is not in the index"},
	    {"waiting", "acme\0", 5, row_spoil, "question q1 of acme/anchor ends at another time"},
	    {"waiting", "acme\0", 5, row_cut, "question q1 of acme/anchor ends at another time"},
	    {"approval", "acme\0anchor\0", 12, row_drop, "names q1 of acme/anchor wrongly"},
	    {"approval", "acme\0anchor\0", 12, row_cut, "an approval of acme/anchor cannot be read"},
	    {"receipt", "acme\0", 5, row_cut, "a receipt of acme cannot be read"},
	    {"push_subscription", "acme\0phone\0", 11, row_drop, "a push to phone of acme, which has no subscription"},
	    {"push_subscription", "acme\0phone\0", 11, row_cut,
	     "the push subscription of phone of acme cannot be read"},
	    {"token", "phone\0", 6, row_drop, "the push subscription of phone of acme, which is no device"},
	    {"push", "acme\0phone\0", 11, row_cut, "a push to phone of acme cannot be read"},
	    {"push_due", "", 0, row_drop, "phone of acme is not in the index of those due"},
	    {"push_subscription", "acme\0phone\0", 11, row_drop, "the index of pushes due names phone of acme wrongly"},
	    {"push_budget", "acme\0", 5, row_cut, "the push budget of \"acme\" cannot be read"},
	    {"spent", "acme\0runs\0", 10, row_cut, "what acme used of runs cannot be read"},
	    {"source", "acme\0", 5, row_drop, "is used by a source of acme that is not there"},
	    {"source", "acme\0", 5, row_drop, "the index by use names the source"},
	    {"source", "acme\0", 5, row_cut, "of acme cannot be read"},
	    {"source", "acme\0", 5, row_spoil, "is not in the index by use"},
	    {"source_by_use", "acme\0", 5, row_drop, "is not in the index by use"},
	    {"source_by_use", "acme\0", 5, row_cut, "the index by use names the source"},
	    {"blob_use", archive_use, sizeof archive_use - 1, row_drop, "has no blob"},
	};
	static const uint8_t hash[32];
	struct st_pair_begin code = {.tenant = "acme", .hash = {hash, 32}};
	struct st_pair_begun begun;
	assert_int_equal(st_call_pair_begin(admin, &code, NULL, &begun, NULL), ERR_OK);
	/* A question that waits, and a receipt. */
	struct st_agent_event q = {.request = "q1",
				   .digest = {hash, 32},
				   .data = BYTES("{\"request_id\":\"q1\"}"),
				   .effect = "execute",
				   .preview = "make"};
	struct st_run_create m = rig_run("acme", "called-off");
	struct st_run_cancel c = {.tenant = "acme", .run = "called-off", .by = "device:gone", .request_id = ""};
	struct st_run_state a;
	/* It is pushed. */
	struct st_token_create phone = {
	    .tenant = "acme", .kind = 2, .token_id = "phone", .hash = {hash, 32}, .label = "phone"};
	struct st_ok ok;
	struct sent sent;
	assert_int_equal(source_send(fcgi, "acme", archive, sizeof archive, sizeof archive, &sent), ERR_OK);
	assert_int_equal(st_call_token_create(admin, &phone, NULL, &ok, NULL), ERR_OK);
	push_ready('a');
	assert_int_equal(push_put_at("acme", "phone", NULL), ERR_OK);
	assert_int_equal(ask_person(gateway, "anchor", &q), ERR_OK);
	assert_int_equal(rig_create(fcgi, &m, &a), ERR_OK);
	assert_int_equal(FCGI(st_call_run_cancel(fcgi, &c, NULL, &a, NULL)), ERR_OK);
	care_stop();
	sh("cp -a %s/store %s/kept", rig.state, rig.state);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		cases[i].change(rig.state, cases[i].table, cases[i].prefix, cases[i].n);
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
	care_start();
	STORE(0, "the store is whole", "check");
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
		struct ask *a = ask_new(rig.sock, PATIENCE_MS);
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
			/* Killed between the last byte and the name, it is whole. */
			int whole = cli_store("check %s", dir);
			assert_true(whole == 0 || whole == 1);
			expect(whole == 0 ? "a whole backup" : "manifest");
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
	assert_true(WAIT_FOR(stats().log_files <= 2));
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
	care_start();
	STORE(0, "the store is whole", "check --contents");
	care_stop();
	STORE(0, "the store is whole", "check --contents");
	care_start();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(first),          cmocka_unit_test(findings),  cmocka_unit_test(while_others_write),
	    cmocka_unit_test(killed_backups), cmocka_unit_test(held_back), cmocka_unit_test(compaction),
	};
	return cmocka_run_group_tests(tests, care_setup, steps_teardown);
}
