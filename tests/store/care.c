/* See care.h. */
#include "tests/store/care.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/names.h"

static const uint8_t hash[32] = {4};

int care_setup(void **state)
{
	(void)state;
	/* Hundreds of durable files: where they cost nothing. */
	rig_open(&rig, access("/dev/shm", W_OK) == 0 ? "/dev/shm" : NULL);
	cli_open(&rig);
	rig_start(&rig);
	return steps_connect();
}

void care_stop(void)
{
	assert_true(run_is("anchor").max_requests > 0); /* it has begun to listen to signals */
	assert_int_equal(rig_stop(&rig, SIGTERM), 0);
}

void care_start(void)
{
	struct st_ping m = {0};
	struct st_ok ok;
	rig_start(&rig);
	assert_int_equal(st_call_ping(admin, &m, NULL, &ok, NULL), ERR_OK);
}

void sh(const char *fmt, ...)
{
	char command[600];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(command, sizeof command, fmt, ap);
	va_end(ap);
	assert_int_equal(system(command), 0);
}

void expect(const char *text)
{
	if (strstr(cli_said(), text) == NULL)
		print_message("said: %s", cli_said());
	assert_non_null(strstr(cli_said(), text));
}

enum err principal(const char *id)
{
	struct st_principal m = {.token_id = id, .hash = {hash, 32}};
	struct st_principal_is is;
	return FCGI(st_call_principal(fcgi, &m, NULL, &is, NULL));
}

void token(const char *id)
{
	struct st_token_create m = {.tenant = "acme", .kind = 1, .token_id = id, .hash = {hash, 32}, .label = ""};
	struct st_ok ok;
	assert_int_equal(st_call_token_create(admin, &m, NULL, &ok, NULL), ERR_OK);
}

void revoke_token(const char *id)
{
	struct st_token_revoke m = {.tenant = "acme", .token_id = id};
	struct st_ok ok;
	assert_int_equal(st_call_token_revoke(admin, &m, NULL, &ok, NULL), ERR_OK);
}

void ended(const char *run)
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

struct st_stats_are stats(void)
{
	struct st_stat m = {0};
	struct st_stats_are a;
	assert_int_equal(st_call_stat(admin, &m, NULL, &a, NULL), ERR_OK);
	return a;
}

enum err look(const char *run, struct st_run_is *a)
{
	struct st_run_get m = {.tenant = "acme", .run = run};
	return FCGI(st_call_run_get(fcgi, &m, NULL, a, NULL));
}

void a_backup(const char *name)
{
	sh("rm -rf %s/%s", rig.dir, name);
	STORE(0, "files", "backup %s/%s", rig.dir, name);
}

void care_first(unsigned runs)
{
	assert_int_equal(rig_running(fcgi, steward, "acme", "anchor", 3), ERR_OK);
	for (unsigned i = 0; i < runs; i++) {
		char run[32];
		(void)snprintf(run, sizeof run, "run-%u", i);
		ended(run);
	}
	token("lasting");
	/* As an instance has it: the folder above the store is root's. */
	sh("chown root:root %s && chmod 711 %s", rig.state, rig.state);
}
