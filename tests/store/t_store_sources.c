/*
 * Sources: whole or not at all, however their parts come, wherever they break off and whenever stored dies; each
 * tenant's own; bounded by their tenant's quotas; and what a run was made from stays the run's.
 */
#include <dirent.h>
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

#include "gen/limits.h"
#include "lib/digest.h"
#include "tests/store/sending.h"
#include "tests/store/steps.h"

enum { MOST = 400000, ROUNDS = 12, KINDS = 40 };

static uint8_t bytes[MOST];

/* Others for each seed, and each length another archive. */
static void fill(uint32_t seed, size_t n)
{
	memcpy(bytes, &seed, sizeof seed);
	for (size_t i = sizeof seed; i < n; i++) {
		seed = seed * 1664525 + 1013904223;
		bytes[i] = (uint8_t)(seed >> 24);
	}
}

static bool nothing_comes(void)
{
	char path[300];
	bool none = true;
	(void)snprintf(path, sizeof path, "%s/store/blobs/in", rig.state);
	DIR *d = opendir(path);
	assert_non_null(d);
	for (struct dirent *f; (f = readdir(d)) != NULL;)
		none = none && f->d_name[0] == '.';
	closedir(d);
	return none;
}

/* All of the store fits together, each blob read. */
static void sound(void)
{
	static uint8_t at[600];
	struct st_store_check m = {.rows = 10000, .contents = true};
	struct st_store_checked a;
	do {
		assert_int_equal(st_call_store_check(admin, &m, NULL, &a, NULL), ERR_OK);
		if (a.findings != 0)
			print_message("%.*s\n", (int)a.texts.n, (const char *)a.texts.p);
		assert_int_equal(a.findings, 0);
		memcpy(at, a.after.p, a.after.n);
		m.table = a.table;
		m.after = (struct wire_bytes){at, a.after.n};
	} while (!a.done);
}

static enum err look(const char *tenant, const uint8_t sha[32], struct st_source_is *is)
{
	struct st_source_get m = {.tenant = tenant, .sha256 = {sha, 32}};
	return FCGI(st_call_source_get(fcgi, &m, NULL, is, NULL));
}

static enum err erase(const char *tenant, const uint8_t sha[32])
{
	struct st_source_delete m = {.tenant = tenant, .sha256 = {sha, 32}, .by = "tests", .request_id = "r"};
	struct st_ok ok;
	return FCGI(st_call_source_delete(fcgi, &m, NULL, &ok, NULL));
}

static enum err run_of(const char *tenant, const char *run, const uint8_t sha[32], const char *key)
{
	struct st_run_create m = rig_run(tenant, run);
	struct st_run_state s;
	m.source = (struct wire_bytes){sha, 32};
	m.idempotency = key;
	return rig_create(fcgi, &m, &s);
}

/* The steward gets the archive as it came, and is told that it is one. */
static void works_on(const char *run, size_t n)
{
	struct st_run_start m = {.tenant = "acme", .run = run, .expires_at = UINT64_MAX};
	struct st_run_work work;
	static uint8_t got[MOST];
	int fds[2];
	assert_int_equal(STEWARD(st_call_run_start(steward, &m, NULL, &work, fds)), ERR_OK);
	assert_true(work.archive);
	assert_int_equal(pread(fds[1], got, sizeof got, 0), n);
	assert_memory_equal(got, bytes, n);
	close(fds[0]);
	close(fds[1]);
}

/* In parts of any size, each perhaps twice; small ones that are records, and files. */
static void parts(void **state)
{
	(void)state;
	static const size_t sizes[] = {4, 15999, 16000, 16001, 180000, 180001, MOST};
	srandom(8);
	for (unsigned i = 0; i < 3 * sizeof sizes / sizeof *sizes; i++) {
		size_t n = sizes[i % (sizeof sizes / sizeof *sizes)], at = 0;
		struct sent sent;
		char run[32];
		uint8_t sum[32];
		fill(i, n);
		assert_int_equal(FCGI(source_begin(fcgi, "acme", i % 2 == 0 ? n : 0, MOST)), ERR_OK);
		while (at < n) {
			size_t part = i < 7 ? 180000 : 1 + (size_t)random() % 90000;
			part = part < n - at ? part : n - at;
			assert_int_equal(FCGI(source_part(fcgi, "acme", at, bytes + at, part)), ERR_OK);
			if (random() % 3 == 0)
				assert_int_equal(FCGI(source_part(fcgi, "acme", at, bytes + at, part)), ERR_OK);
			at += part;
		}
		assert_int_equal(FCGI(source_end(fcgi, "acme", n, &sent)), ERR_OK);
		assert_true(sent.made);
		assert_true(sha256(bytes, n, sum));
		assert_memory_equal(sum, sent.sha, 32);
		struct st_source_is is;
		assert_int_equal(look("acme", sent.sha, &is), ERR_OK);
		assert_int_equal(is.bytes, n);
		assert_int_equal(is.expires_at - is.created_at, 24ULL * 3600 * 1000);
		assert_int_equal(is.expires_at, sent.expires_at);
		(void)snprintf(run, sizeof run, "parts-%u", i);
		assert_int_equal(run_of("acme", run, sent.sha, ""), ERR_OK);
		works_on(run, n);
		/* The same again is the same. */
		assert_int_equal(source_send(fcgi, "acme", bytes, n, 50000, &sent), ERR_OK);
		assert_false(sent.made);
		assert_memory_equal(sum, sent.sha, 32);
	}
	assert_true(nothing_comes());
	sound();
}

static void wrong_parts(void **state)
{
	(void)state;
	struct sent sent;
	fill(100, 1000);
	/* Without a beginning, of another tenant, out of order, more than may be, another length than was said. */
	assert_int_equal(FCGI(source_part(fcgi, "acme", 0, bytes, 10)), ERR_STORE_UNAVAILABLE);
	assert_int_equal(FCGI(source_end(fcgi, "acme", 0, &sent)), ERR_STORE_UNAVAILABLE);
	assert_int_equal(FCGI(source_begin(fcgi, "nobody", 0, MOST)), ERR_TENANT_NOT_FOUND);
	assert_int_equal(FCGI(source_begin(fcgi, "acme", 0, MOST)), ERR_OK);
	assert_int_equal(FCGI(source_part(fcgi, "other", 0, bytes, 10)), ERR_STORE_UNAVAILABLE);
	static const struct {
		uint64_t at, n, end;
		enum err part, whole;
	} cases[] = {
	    {1, 10, 10, ERR_INVALID_REQUEST, ERR_STORE_UNAVAILABLE},
	    {UINT64_MAX, 10, 10, ERR_INVALID_REQUEST, ERR_STORE_UNAVAILABLE},
	    {0, 501, 501, ERR_SOURCE_ARCHIVE_TOO_LARGE, ERR_STORE_UNAVAILABLE},
	    {0, 500, 499, ERR_OK, ERR_INVALID_REQUEST},
	    {0, 500, 501, ERR_OK, ERR_INVALID_REQUEST},
	    {0, 0, 0, ERR_OK, ERR_INVALID_REQUEST},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(FCGI(source_begin(fcgi, "acme", 0, 500)), ERR_OK);
		assert_int_equal(FCGI(source_part(fcgi, "acme", cases[i].at, bytes, cases[i].n)), cases[i].part);
		assert_int_equal(FCGI(source_end(fcgi, "acme", cases[i].end, &sent)), cases[i].whole);
		assert_true(nothing_comes());
	}
	assert_int_equal(FCGI(source_begin(fcgi, "acme", 501, 500)), ERR_SOURCE_ARCHIVE_TOO_LARGE);
	assert_int_equal(FCGI(source_begin(fcgi, "acme", 300, 500)), ERR_OK);
	assert_int_equal(FCGI(source_part(fcgi, "acme", 0, bytes, 200)), ERR_OK);
	assert_int_equal(FCGI(source_part(fcgi, "acme", 100, bytes + 100, 200)), ERR_INVALID_REQUEST);
	assert_int_equal(FCGI(source_begin(fcgi, "acme", 300, 500)), ERR_OK);
	assert_int_equal(FCGI(source_part(fcgi, "acme", 0, bytes, 200)), ERR_OK);
	assert_int_equal(FCGI(source_end(fcgi, "acme", 200, &sent)), ERR_INVALID_REQUEST);
	assert_true(nothing_comes());
	sound();
}

/* Where one upload breaks off, nothing of it stays. */
static void cut(void **state)
{
	(void)state;
	fill(200, MOST);
	for (size_t at = 0; at < MOST; at += 70001) {
		struct ask *a = rig_ask(&rig, RIG_FCGI);
		assert_non_null(a);
		assert_int_equal(source_begin(a, "acme", MOST, MOST), ERR_OK);
		if (at > 0)
			assert_int_equal(source_part(a, "acme", 0, bytes, at < 180000 ? at : 180000), ERR_OK);
		assert_false(nothing_comes());
		if (at % 2 == 0)
			assert_int_equal(source_drop(a, "acme"), ERR_OK);
		ask_free(a);
		WAIT_FOR(nothing_comes());
	}
}

struct tally {
	volatile bool go, stop;
	volatile uint32_t begun, stored;
};
static struct tally *tally;

static size_t size_of(uint32_t i)
{
	return 4 + i * 7919U % (MOST - 4);
}

/* Sends one after the other, and then again; what was answered is counted. */
static void send_all(struct ask *a, int index)
{
	(void)index;
	for (uint32_t i = 0; !tally->stop; i++) {
		struct sent sent;
		size_t n = size_of(i % KINDS), at = 0;
		uint8_t sum[32];
		fill(1000 + i % KINDS, n);
		tally->begun = i + 1;
		enum err e = source_begin(a, "acme", n, MOST);
		for (; e == ERR_OK && at < n; at += 40000)
			e = source_part(a, "acme", at, bytes + at, n - at < 40000 ? n - at : 40000);
		if (e == ERR_OK)
			e = source_end(a, "acme", n, &sent);
		if (e != ERR_OK)
			_exit(e == ERR_STORE_UNAVAILABLE ? 0 : 1);
		if (!sha256(bytes, n, sum) || memcmp(sum, sent.sha, sizeof sum) != 0)
			_exit(1);
		tally->stored = i + 1;
	}
}

static void killed(void **state)
{
	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		int status;
		memset(tally, 0, sizeof *tally);
		pid_t pid = rig_member(&rig, RIG_FCGI, &tally->go, send_all, 0);
		tally->go = true;
		WAIT_FOR(tally->begun > 2 + round);
		usleep(round * 700);
		assert_true(WIFSIGNALED(rig_stop(&rig, SIGKILL)));
		tally->stop = true;
		rig_start(&rig);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		assert_true(nothing_comes());
		/* Each that was answered is there, and of one that was not all or nothing. */
		for (uint32_t i = 0; i < tally->begun && i < KINDS; i++) {
			struct st_source_is is;
			uint8_t sum[32];
			fill(1000 + i, size_of(i));
			assert_true(sha256(bytes, size_of(i), sum));
			enum err e = look("acme", sum, &is);
			assert_true(e == ERR_OK || (i >= tally->stored && e == ERR_SOURCE_NOT_FOUND));
			if (e == ERR_OK)
				assert_int_equal(is.bytes, size_of(i));
		}
		sound();
	}
}

/* An answer that was lost is given again, and there is one source. */
static void again(void **state)
{
	(void)state;
	struct sent first, second;
	fill(300, 20000);
	assert_int_equal(FCGI(source_begin(fcgi, "acme", 0, MOST)), ERR_OK);
	assert_int_equal(FCGI(source_part(fcgi, "acme", 0, bytes, 20000)), ERR_OK);
	assert_int_equal(FCGI(source_end(fcgi, "acme", 20000, &first)), ERR_OK);
	ask_repeat(fcgi);
	assert_int_equal(FCGI(source_end(fcgi, "acme", 20000, &second)), ERR_OK);
	assert_true(first.made && second.made);
	assert_memory_equal(first.sha, second.sha, 32);
	assert_int_equal(first.expires_at, second.expires_at);
	/* By another life, too. */
	(void)rig_stop(&rig, SIGKILL);
	rig_start(&rig);
	ask_repeat(fcgi);
	assert_int_equal(FCGI(source_end(fcgi, "acme", 20000, &second)), ERR_OK);
	assert_memory_equal(first.sha, second.sha, 32);
	ask_free(admin);
	admin = rig_ask(&rig, RIG_ADMIN);
}

static void tenants(void **state)
{
	(void)state;
	struct sent sent;
	struct st_source_is is;
	fill(400, 30000);
	assert_int_equal(source_send(fcgi, "acme", bytes, 30000, 30000, &sent), ERR_OK);
	/* Another's is as unknown as none. */
	assert_int_equal(look("other", sent.sha, &is), ERR_SOURCE_NOT_FOUND);
	assert_int_equal(erase("other", sent.sha), ERR_SOURCE_NOT_FOUND);
	assert_int_equal(run_of("other", "stolen", sent.sha, ""), ERR_SOURCE_NOT_FOUND);
	/* Who has the same bytes has a source of its own, that comes and goes by itself. */
	assert_int_equal(source_send(fcgi, "other", bytes, 30000, 30000, &sent), ERR_OK);
	assert_true(sent.made);
	assert_int_equal(erase("acme", sent.sha), ERR_OK);
	assert_int_equal(erase("acme", sent.sha), ERR_SOURCE_NOT_FOUND);
	assert_int_equal(look("other", sent.sha, &is), ERR_OK);
	assert_int_equal(run_of("other", "own", sent.sha, ""), ERR_OK);
	assert_int_equal(erase("other", sent.sha), ERR_OK);
	sound();
}

/* The run has what it was made from, whatever becomes of the source; the last to go takes it along. */
static void outlived(void **state)
{
	(void)state;
	struct sent sent;
	struct st_run_state s;
	char hexed[SHA256_HEX], path[400];
	fill(500, 50000);
	assert_int_equal(source_send(fcgi, "acme", bytes, 50000, 50000, &sent), ERR_OK);
	hex(sent.sha, 32, hexed);
	(void)snprintf(path, sizeof path, "%s/store/blobs/%.2s/%s", rig.state, hexed, hexed);
	assert_int_equal(run_of("acme", "heir", sent.sha, "heir-key"), ERR_OK);
	assert_int_equal(erase("acme", sent.sha), ERR_OK);
	sound();
	/* The same request again is the same run; another one has no source any more. */
	assert_int_equal(run_of("acme", "heir-again", sent.sha, "heir-key"), ERR_OK);
	assert_int_equal(run_of("acme", "late", sent.sha, "late-key"), ERR_SOURCE_NOT_FOUND);
	assert_int_equal(run_of("acme", "heir", sent.sha, ""), ERR_OK);
	works_on("heir", 50000);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(finish("heir", RUN_EV_COMPLETE, true, "", &s), ERR_OK);
	struct st_run_delete m = {.tenant = "acme", .run = "heir", .by = "tests", .request_id = "r"};
	struct st_ok ok;
	assert_int_equal(FCGI(st_call_run_delete(fcgi, &m, NULL, &ok, NULL)), ERR_OK);
	WAIT_FOR(access(path, F_OK) != 0);
	sound();
}

/* Only so many at once, of one tenant; whoever leaves makes room. */
static void crowd(void **state)
{
	(void)state;
	struct ask *a[LIMIT_SOURCE_UPLOADS];
	for (unsigned i = 0; i < LIMIT_SOURCE_UPLOADS; i++) {
		a[i] = rig_ask(&rig, RIG_FCGI);
		assert_non_null(a[i]);
		assert_int_equal(source_begin(a[i], "acme", 0, MOST), ERR_OK);
	}
	assert_int_equal(FCGI(source_begin(fcgi, "acme", 0, MOST)), ERR_TOO_MANY_SOURCES);
	assert_true(ask_retry_after(fcgi) > 0);
	assert_int_equal(FCGI(source_begin(fcgi, "other", 0, MOST)), ERR_OK);
	assert_int_equal(source_begin(a[0], "acme", 0, MOST), ERR_OK); /* its own is given up for it */
	ask_free(a[0]);
	WAIT_FOR(FCGI(source_begin(fcgi, "acme", 0, MOST)) == ERR_OK);
	assert_int_equal(FCGI(source_drop(fcgi, "acme")), ERR_OK);
	for (unsigned i = 1; i < LIMIT_SOURCE_UPLOADS; i++)
		ask_free(a[i]);
	WAIT_FOR(nothing_comes());
}

/* What is stored and what comes together are no more than the tenant may store. */
static void quota(void **state)
{
	(void)state;
	struct sent sent;
	struct ask *a;
	struct st_tenant_use m = {.tenant = "acme"};
	struct st_tenant_used used;
	assert_int_equal(st_call_tenant_use(admin, &m, NULL, &used, NULL), ERR_OK);
	(void)rig_stop(&rig, SIGTERM);
	rig.max_stored_bytes = used.stored_bytes + 100000;
	rig_start(&rig);
	ask_free(admin);
	admin = rig_ask(&rig, RIG_ADMIN);
	fill(600, MOST);
	assert_int_equal(FCGI(source_begin(fcgi, "acme", 100001, MOST)), ERR_TENANT_STORAGE_FULL);
	assert_true(ask_retry_after(fcgi) > 0);
	assert_int_equal(source_send(fcgi, "acme", bytes, 100001, 60000, &sent), ERR_TENANT_STORAGE_FULL);
	assert_true(nothing_comes());
	/* Of one whose length was not said, at the part that is too much. */
	assert_int_equal(FCGI(source_begin(fcgi, "acme", 0, MOST)), ERR_OK);
	assert_int_equal(FCGI(source_part(fcgi, "acme", 0, bytes, 60000)), ERR_OK);
	assert_int_equal(FCGI(source_part(fcgi, "acme", 60000, bytes, 60000)), ERR_TENANT_STORAGE_FULL);
	assert_true(nothing_comes());
	a = rig_ask(&rig, RIG_FCGI);
	assert_non_null(a);
	assert_int_equal(source_begin(a, "acme", 60000, MOST), ERR_OK);
	assert_int_equal(FCGI(source_begin(fcgi, "acme", 50000, MOST)), ERR_TENANT_STORAGE_FULL);
	ask_free(a);
	WAIT_FOR(FCGI(source_begin(fcgi, "acme", 50000, MOST)) == ERR_OK);
	assert_int_equal(source_send(fcgi, "acme", bytes, 60000, 60000, &sent), ERR_OK);
	assert_int_equal(source_send(fcgi, "acme", bytes + 1, 60000, 60000, &sent), ERR_TENANT_STORAGE_FULL);
	/* A run counts it once more. */
	assert_int_equal(run_of("acme", "too-much", sent.sha, ""), ERR_TENANT_STORAGE_FULL);
	assert_int_equal(source_send(fcgi, "other", bytes, MOST, 180000, &sent), ERR_OK);
	sound();
}

static int setup(void **state)
{
	tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return tally == MAP_FAILED ? -1 : steps_setup(state);
}

int main(void)
{
	if (geteuid() != 0)
		return 77;
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(parts),    cmocka_unit_test(wrong_parts), cmocka_unit_test(cut),
	    cmocka_unit_test(killed),   cmocka_unit_test(again),       cmocka_unit_test(tenants),
	    cmocka_unit_test(outlived), cmocka_unit_test(crowd),       cmocka_unit_test(quota)};
	return cmocka_run_group_tests(tests, setup, steps_teardown);
}
