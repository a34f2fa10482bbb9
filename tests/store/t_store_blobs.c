/*
 * Small blobs are records and large ones files: both are read back as they came, shared, given back by the last
 * deletion, and whole or gone after a kill. What an earlier version kept as a file is still found.
 */
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
#include <db.h>

#include "lib/digest.h"
#include "tests/store/steps.h"

enum { SMALL = 16000, ROOM = 40000 };

/* n bytes that no other name has. */
static void fill(char p[ROOM], const char *name, size_t n)
{
	size_t len = strlen(name);
	for (size_t i = 0; i < n; i++)
		p[i] = name[i % len];
}

static enum err create_by(struct ask *a, const char *run, const char *request, size_t nrequest, const char *upload,
			  size_t nupload)
{
	char bytes[2][ROOM];
	struct st_run_create m = rig_run("acme", run);
	struct st_run_state s;
	fill(bytes[0], request, nrequest);
	fill(bytes[1], upload, nupload);
	int fds[2] = {rig_memfd(bytes[0], nrequest), rig_memfd(bytes[1], nupload)};
	enum err e = st_call_run_create(a, &m, fds, &s, NULL);
	close(fds[0]);
	close(fds[1]);
	return e;
}

static enum err create(const char *run, const char *request, size_t nrequest, const char *upload, size_t nupload)
{
	return FCGI(create_by(fcgi, run, request, nrequest, upload, nupload));
}

static enum err erase_by(struct ask *a, const char *run)
{
	struct st_run_delete m = {.tenant = "acme", .run = run, .by = "tests", .request_id = "r-1"};
	struct st_ok ok;
	return st_call_run_delete(a, &m, NULL, &ok, NULL);
}

static void cancel_and_erase(const char *run)
{
	struct st_run_state s;
	assert_int_equal(cancel(run, &s), ERR_OK);
	assert_int_equal(FCGI(erase_by(fcgi, run)), ERR_OK);
}

/* Reads from where the descriptor stands, as a reader may that knows nothing of its history. */
static void expect(int fd, const char *name, size_t n)
{
	char want[ROOM], got[ROOM];
	fill(want, name, n);
	struct stat st;
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, n);
	assert_int_equal(read(fd, got, sizeof got), n);
	assert_memory_equal(got, want, n);
	assert_int_equal(write(fd, "x", 1), -1);
	assert_int_equal(ftruncate(fd, (off_t)n + 1), -1);
	close(fd);
}

static void path_of(char path[300], const char *name, size_t n)
{
	char p[ROOM], h[SHA256_HEX];
	uint8_t sum[SHA256_SIZE];
	fill(p, name, n);
	assert_true(sha256(p, n, sum));
	hex(sum, sizeof sum, h);
	(void)snprintf(path, 300, "%s/store/blobs/%.2s/%s", rig.state, h, h);
}

static bool is_file(const char *name, size_t n)
{
	char path[300];
	path_of(path, name, n);
	return access(path, F_OK) == 0;
}

static bool request_is(const char *run, const char *name, size_t n)
{
	struct st_run_get g = {.tenant = "acme", .run = run};
	struct st_run_is is;
	int fd;
	enum err e = FCGI(st_call_run_get(fcgi, &g, NULL, &is, &fd));
	if (e == ERR_RUN_NOT_FOUND)
		return false;
	assert_int_equal(e, ERR_OK);
	/* A small one is in the answer, and the descriptor of nothing. */
	bool small = n > 0 && !is_file(name, n);
	char want[ROOM];
	fill(want, name, n);
	assert_int_equal(is.request.n, small ? n : 0);
	assert_memory_equal(is.request.p, want, is.request.n);
	expect(fd, name, small ? 0 : n);
	return true;
}

/* It is past its start, sweep included. */
static void serves(void)
{
	struct st_stat m = {0};
	struct st_stats_are are;
	assert_int_equal(st_call_stat(admin, &m, NULL, &are, NULL), ERR_OK);
}

/* Stops the store and looks into its table of contents: how many, and with name, takes that one out. */
static unsigned contents(const char *name, size_t n)
{
	DB_ENV *env;
	DB *db;
	DBC *c;
	DBT k = {0}, v = {0};
	char home[200], path[300] = "";
	unsigned found = 0, out = 0;
	serves();
	int status = rig_stop(&rig, SIGTERM);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	(void)snprintf(home, sizeof home, "%s/store", rig.state);
	if (name != NULL)
		path_of(path, name, n);
	const char *h = name != NULL ? strrchr(path, '/') + 1 : "";
	assert_int_equal(seteuid(RIG_UID), 0); /* what it makes must be the store's */
	assert_int_equal(db_env_create(&env, 0), 0);
	assert_int_equal(env->open(env, home, DB_CREATE | DB_INIT_MPOOL | DB_INIT_LOG | DB_INIT_TXN | DB_PRIVATE, 0600),
			 0);
	assert_int_equal(db_create(&db, env, 0), 0);
	assert_int_equal(db->open(db, NULL, "pinfold.db", "blob_content", DB_BTREE, DB_AUTO_COMMIT, 0600), 0);
	assert_int_equal(db->cursor(db, NULL, &c, 0), 0);
	while (c->get(c, &k, &v, DB_NEXT) == 0)
		found++;
	assert_int_equal(c->close(c), 0);
	if (name != NULL) {
		DBT key = {.data = (void *)(uintptr_t)h, .size = (uint32_t)strlen(h) + 1};
		out = db->del(db, NULL, &key, 0) == 0;
		assert_int_equal(out, 1);
	}
	assert_int_equal(env->txn_checkpoint(env, 0, 0, DB_FORCE), 0);
	assert_int_equal(db->close(db, 0), 0);
	assert_int_equal(env->close(env, 0), 0);
	assert_int_equal(seteuid(0), 0);
	rig_start(&rig);
	return found - out;
}

static void records_and_files(void **state)
{
	(void)state;
	static const size_t sizes[] = {0, 1, 4000, SMALL - 1, SMALL, SMALL + 1, 30000};
	char run[32], other[32];
	unsigned before = contents(NULL, 0), small = 0;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size_t n = sizes[i];
		(void)snprintf(run, sizeof run, "size-%zu", n);
		(void)snprintf(other, sizeof other, "up-%zu", n);
		assert_int_equal(create(run, run, n, other, n), ERR_OK);
		small += n == 0 ? 1 : n <= SMALL ? 2 : 0; /* two empty ones are one */
		assert_int_equal(is_file(run, n), n > SMALL);
		assert_int_equal(is_file(other, n), n > SMALL);
		assert_true(request_is(run, run, n));
	}
	/* The same bytes in the message, and descriptors that are not looked at. */
	char bytes[2][ROOM];
	struct st_run_create same = rig_run("acme", "size-4000");
	struct st_run_state s;
	int pair[2];
	assert_int_equal(pipe(pair), 0);
	fill(bytes[0], "size-4000", 4000);
	fill(bytes[1], "up-4000", 4000);
	same.request = (struct wire_bytes){(const uint8_t *)bytes[0], 4000};
	same.upload = (struct wire_bytes){(const uint8_t *)bytes[1], 4000};
	assert_int_equal(FCGI(st_call_run_create(fcgi, &same, pair, &s, NULL)), ERR_OK);
	assert_false(s.changed);
	same.run = "in-message";
	assert_int_equal(FCGI(st_call_run_create(fcgi, &same, pair, &s, NULL)), ERR_OK);
	assert_true(s.changed);
	assert_true(request_is("in-message", "size-4000", 4000));
	bytes[1][3999]++;
	assert_int_equal(FCGI(st_call_run_create(fcgi, &same, pair, &s, NULL)), ERR_RUN_SESSION_EXISTS);
	same.upload.n = 0; /* then it is looked at */
	assert_int_equal(FCGI(st_call_run_create(fcgi, &same, pair, &s, NULL)), ERR_INVALID_REQUEST);
	close(pair[0]);
	close(pair[1]);
	/* What the steward is given. */
	struct st_run_start m = {.tenant = "acme", .run = "size-4000", .expires_at = clock_ms() + 3600000};
	struct st_run_work work;
	int fds[2];
	assert_int_equal(STEWARD(st_call_run_start(steward, &m, NULL, &work, fds)), ERR_OK);
	expect(fds[0], "size-4000", 4000);
	expect(fds[1], "up-4000", 4000);
	assert_int_equal(contents(NULL, 0), before + small);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		(void)snprintf(run, sizeof run, "size-%zu", sizes[i]);
		assert_true(request_is(run, run, sizes[i]));
	}
}

static void shared(void **state)
{
	(void)state;
	unsigned before = contents(NULL, 0);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(create("share-1", "both", 100, "one", 100), ERR_OK);
		assert_int_equal(create("share-2", "both", 100, "two", 100), ERR_OK);
		assert_int_equal(contents(NULL, 0), before + 3);
		cancel_and_erase("share-1");
		assert_int_equal(contents(NULL, 0), before + 2);
		assert_true(request_is("share-2", "both", 100));
		cancel_and_erase("share-2");
		assert_int_equal(contents(NULL, 0), before);
	}
	/* A creation that is refused leaves none. */
	struct st_run_create m = rig_run("acme", "refused");
	struct st_run_state s;
	int fds[2] = {rig_memfd("refused", 7), rig_memfd("refused too", 11)};
	m.max_queued = 1;
	assert_int_equal(FCGI(st_call_run_create(fcgi, &m, fds, &s, NULL)), ERR_RUN_QUEUE_FULL);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(contents(NULL, 0), before);
}

static void replaced(void **state)
{
	(void)state;
	struct st_artifact_put m = {.tenant = "acme", .run = "put", .name = ART_PATCH};
	struct st_artifact_get g = {.tenant = "acme", .run = "put", .name = ART_PATCH};
	struct st_artifact_is is;
	struct st_ok ok;
	char bytes[ROOM];
	assert_int_equal(rig_running(fcgi, steward, "acme", "put", 2), ERR_OK);
	unsigned before = contents(NULL, 0);
	static const size_t sizes[] = {10, SMALL + 10, 20, SMALL + 20, 1, 30};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size_t n = sizes[i];
		fill(bytes, "a patch ", n);
		int fd = rig_memfd(bytes, n);
		assert_int_equal(STEWARD(st_call_artifact_put(steward, &m, &fd, &ok, NULL)), ERR_OK);
		close(fd);
		assert_int_equal(contents(NULL, 0), before + (n <= SMALL));
		assert_int_equal(is_file("a patch ", n), n > SMALL);
		assert_true(i == 0 || !is_file("a patch ", sizes[i - 1]));
	}
	struct st_run_state s;
	assert_int_equal(finish("put", RUN_EV_COMPLETE, true, "", &s), ERR_OK);
	int fd;
	assert_int_equal(FCGI(st_call_artifact_get(fcgi, &g, NULL, &is, &fd)), ERR_OK);
	assert_int_equal(is.size, 30);
	expect(fd, "a patch ", 30);
	assert_int_equal(FCGI(erase_by(fcgi, "put")), ERR_OK);
	assert_int_equal(contents(NULL, 0), before - 2); /* with request and upload */
}

static void lay_file(const char *name, size_t n)
{
	char path[300], folder[300], bytes[ROOM];
	path_of(path, name, n);
	(void)snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
	assert_int_equal(seteuid(RIG_UID), 0);
	(void)mkdir(folder, 0700);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fill(bytes, name, n);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(seteuid(0), 0);
}

/* Small blobs were files once. */
static void of_an_earlier_version(void **state)
{
	(void)state;
	assert_int_equal(create("earlier", "kept as a file", 900, "e", 1), ERR_OK);
	lay_file("kept as a file", 900);
	(void)contents("kept as a file", 900);
	assert_true(is_file("kept as a file", 900)); /* not swept */
	assert_true(request_is("earlier", "kept as a file", 900));
	assert_int_equal(create("later", "kept as a file", 900, "l", 1), ERR_OK);
	assert_true(request_is("later", "kept as a file", 900));
	cancel_and_erase("earlier");
	assert_true(request_is("later", "kept as a file", 900));
	cancel_and_erase("later");
	assert_false(is_file("kept as a file", 900));
	/* A file of which there is a record as well is nobody's. */
	assert_int_equal(create("twice", "twice there", 900, "t", 1), ERR_OK);
	lay_file("twice there", 900);
	(void)rig_stop(&rig, SIGKILL);
	rig_start(&rig);
	serves();
	assert_false(is_file("twice there", 900));
	assert_true(request_is("twice", "twice there", 900));
}

/* Each run that was answered is there with its bytes, large or small; a deleted one is gone with them. */
static void killed(void **state)
{
	(void)state;
	enum { ROUNDS = 6, RUNS = 80 };
	char run[32];
	struct tally {
		volatile int made, gone;
	} *tally = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(tally != MAP_FAILED);
	unsigned before = contents(NULL, 0);
	for (int round = 0; round < ROUNDS; round++) {
		tally->made = tally->gone = 0;
		pid_t pid = fork();
		if (pid == 0) {
			uid_t uid = rig_uid(RIG_FCGI);
			if (setresuid(uid, uid, uid) != 0)
				_exit(1);
			struct ask *a = ask_new(rig.sock, PATIENCE_MS);
			for (int i = 0; i < RUNS; i++) {
				struct st_run_state s;
				(void)snprintf(run, sizeof run, "killed-%d-%d", round, i);
				struct st_run_cancel c = {.tenant = "acme", .run = run, .by = "t", .request_id = "r"};
				if (create_by(a, run, run, i % 4 == 0 ? SMALL + 1 : 300, run, 200) != ERR_OK)
					_exit(0);
				tally->made = i + 1;
				if (i % 2 != 0)
					continue;
				if (st_call_run_cancel(a, &c, NULL, &s, NULL) != ERR_OK || erase_by(a, run) != ERR_OK)
					_exit(0);
				tally->gone = i + 1;
			}
			_exit(0);
		}
		assert_true(WAIT_CLOSELY(100, tally->made >= 10 * (round + 1)));
		(void)rig_stop(&rig, SIGKILL);
		assert_int_equal(kill(pid, SIGKILL), 0); /* who would ask again and again */
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		rig_start(&rig);
		unsigned there = 0;
		for (int i = 0; i < RUNS; i++) {
			size_t n = i % 4 == 0 ? SMALL + 1 : 300;
			(void)snprintf(run, sizeof run, "killed-%d-%d", round, i);
			bool is = request_is(run, run, n);
			assert_true(is || i >= tally->made || i % 2 == 0);
			assert_false(is && i % 2 == 0 && i < tally->gone);
			assert_int_equal(is_file(run, n), is && n > SMALL);
			there += is ? n <= SMALL ? 2u : 1u : 0u;
		}
		assert_int_equal(contents(NULL, 0), before + there);
		before += there;
	}
	munmap(tally, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(records_and_files), cmocka_unit_test(shared),
					   cmocka_unit_test(replaced), cmocka_unit_test(of_an_earlier_version),
					   cmocka_unit_test(killed)};
	return cmocka_run_group_tests(tests, steps_setup, steps_teardown);
}
