/* The store's rig. Runs as root and makes stored and its callers into unprivileged uids. */
#include "tests/store/harness.h"
#include "gen/conf_msg.h"
#include "lib/chan.h"
#include "lib/die.h"
#include "lib/num.h"
#include "lib/place.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

uid_t rig_uid(enum rig_role role)
{
	return role == RIG_ADMIN ? 0 : RIG_UID + 1 + (uid_t)role;
}

void rig_become(enum rig_role role)
{
	if (seteuid(0) != 0 || seteuid(rig_uid(role)) != 0)
		fatal("seteuid: %m");
}

static void frame(int fd, const uint8_t *buf, size_t n)
{
	if (n == 0 || !bundle_add(fd, buf, n))
		fatal("the configuration could not be written");
}

static void put_quotas(const struct rig *r, int fd)
{
	uint8_t buf[4096];
	struct cf_provider provider = {
	    .name = "p", .protocol = "openai", .base_url = "https://host/v1", .ca_file = "", .secret = ""};
	struct cf_profile profile = {.name = "main", .provider = "p", .model = "m"};
	struct cf_agent agent = {.name = "builtin",
				 .argv = {"/a"},
				 .argv_n = 1,
				 .policy = "strict",
				 .model_token_file = "",
				 .event_token_file = "",
				 .approval_token_file = "",
				 .max_tokens_run = r->agent_tokens_run};
	struct cf_tenant tenant = {.name = "acme",
				   .default_agent = "builtin",
				   .default_profile = "main",
				   .max_runs_hour = r->max_runs_hour,
				   .max_stored_bytes = r->max_stored_bytes,
				   .max_model_requests_day = r->max_model_requests_day,
				   .max_tokens_day = r->max_tokens_day,
				   .max_tokens_run = r->max_tokens_run,
				   .max_model_calls_minute = r->max_model_calls_minute};
	frame(fd, buf, cf_put_provider(buf, sizeof buf, 0, &provider));
	frame(fd, buf, cf_put_profile(buf, sizeof buf, 0, &profile));
	frame(fd, buf, cf_put_agent(buf, sizeof buf, 0, &agent));
	frame(fd, buf, cf_put_tenant(buf, sizeof buf, 0, &tenant));
}

static int make_conf(const struct rig *r)
{
	static const char *const names[] = {"fcgi", "gateway", "steward", "push"};
	uint8_t buf[4096];
	int fd = bundle_new("conf");
	struct cf_global g = {.run_dir = r->dir,
			      .state_dir = r->state,
			      .log_dir = r->logs,
			      .libexec_dir = r->dir,
			      .audit_redact = r->audit_redact,
			      .audit_max_bytes = r->audit_max_bytes,
			      .audit_generations = r->audit_generations,
			      .keep_artifacts_days = r->keep_artifacts_days,
			      .keep_runs_days = r->keep_runs_days,
			      .keep_tokens_days = r->keep_tokens_days,
			      .push_per_minute = r->push_per_minute,
			      .push_per_hour = r->push_per_hour};
	if (fd < 0)
		fatal("memfd: %m");
	frame(fd, buf, cf_put_global(buf, sizeof buf, 0, &g));
	struct cf_role stored = {.name = "stored", .uid = RIG_UID, .gid = RIG_UID};
	frame(fd, buf, cf_put_role(buf, sizeof buf, 0, &stored));
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct cf_role m = {.name = names[i], .uid = rig_uid((enum rig_role)i), .gid = RIG_UID};
		frame(fd, buf, cf_put_role(buf, sizeof buf, 0, &m));
	}
	struct cf_shared_gid gid = {.gid = RIG_UID};
	frame(fd, buf, cf_put_shared_gid(buf, sizeof buf, 0, &gid));
	if (r->max_runs_hour + r->max_stored_bytes + r->max_model_requests_day + r->max_tokens_day + r->max_tokens_run +
		r->agent_tokens_run + r->max_model_calls_minute >
	    0)
		put_quotas(r, fd);
	struct cf_end end = {0};
	frame(fd, buf, cf_put_end(buf, sizeof buf, 0, &end));
	if (!bundle_seal(fd))
		fatal("sealing the configuration: %m");
	return fd;
}

void rig_open(struct rig *r, const char *parent)
{
	if (geteuid() != 0) {
		fprintf(stderr, "the store's tests make uids and must run as root: skipped\n");
		exit(77);
	}
	memset(r, 0, sizeof *r);
	const char *program = getenv("PINFOLD_STORED");
	(void)snprintf(r->program, sizeof r->program, "%s", program != NULL ? program : "./pinfold-stored");
	(void)snprintf(r->dir, sizeof r->dir, "%s/pinfold-rig-XXXXXX", parent != NULL ? parent : "/tmp");
	if (mkdtemp(r->dir) == NULL || chmod(r->dir, 0755) != 0)
		fatal("%s: %m", r->dir);
	(void)snprintf(r->sock, sizeof r->sock, "%s/store.sock", r->dir);
	(void)snprintf(r->admin, sizeof r->admin, "%s/admin.sock", r->dir);
	(void)snprintf(r->state, sizeof r->state, "%s/state", r->dir);
	(void)snprintf(r->log, sizeof r->log, "%s/log", r->dir);
	(void)snprintf(r->logs, sizeof r->logs, "%s/audit", r->dir);
	if (mkdir(r->state, 0700) != 0 || chown(r->state, RIG_UID, RIG_UID) != 0 || mkdir(r->logs, 0700) != 0 ||
	    chown(r->logs, RIG_UID, RIG_UID) != 0)
		fatal("%s: %m", r->state);
	/* Wider than sandboxd makes them, so that the wrong uid gets as far as the check of its uid. */
	r->listen_fd = chan_listen(r->sock, SOCK_SEQPACKET, 0666, 0, 0, 64);
	r->admin_fd = chan_listen(r->admin, SOCK_SEQPACKET, 0666, 0, 0, 16);
	if (r->listen_fd < 0 || r->admin_fd < 0)
		fatal("sockets: %m");
	r->control = -1;
}

static void child(struct rig *r, int control)
{
	int from[5] = {control, make_conf(r), open("/dev/null", O_RDONLY), r->listen_fd, r->admin_fd};
	int log = open(r->log, O_WRONLY | O_CREAT | O_APPEND, 0644);
	/* First out of the way of the numbers they are to have. */
	for (int i = 0; i < 5; i++)
		from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 100);
	int null = open("/dev/null", O_RDWR);
	if (dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
		_exit(126);
	for (int i = 0; i < 5; i++)
		if (dup2(from[i], CHILD_FD_CONTROL + i) < 0)
			_exit(126);
	for (int fd = CHILD_FD__FIRST_FREE; fd < 100; fd++)
		close(fd);
	gid_t gid = RIG_UID;
	if (setgroups(1, &gid) != 0 || setgid(RIG_UID) != 0 || setuid(RIG_UID) != 0)
		_exit(126);
	execl(r->program, "pinfold-stored", (char *)NULL);
	dprintf(2, "%s cannot be started: %m\n", r->program);
	_exit(127);
}

void rig_start(struct rig *r)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		fatal("socketpair: %m");
	r->pid = fork();
	if (r->pid < 0)
		fatal("fork: %m");
	if (r->pid == 0)
		child(r, pair[1]);
	close(pair[1]);
	r->control = pair[0];
}

int rig_stop(struct rig *r, int sig)
{
	int status = 0;
	if (r->pid <= 0)
		return 0;
	if (sig != 0)
		(void)kill(r->pid, sig);
	if (r->control >= 0 && sig == 0)
		close(r->control);
	while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (sig != 0 && r->control >= 0)
		close(r->control);
	r->control = -1;
	r->pid = 0;
	return status;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

void rig_close(struct rig *r)
{
	(void)rig_stop(r, SIGKILL);
	close(r->listen_fd);
	close(r->admin_fd);
	(void)nftw(r->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static struct ask *ask_for(struct rig *r, enum rig_role role, unsigned patience_ms)
{
	struct st_ping m = {0};
	struct st_ok ok;
	struct ask *a = ask_new(role == RIG_ADMIN ? r->admin : r->sock, patience_ms);
	if (a == NULL)
		fatal("no memory");
	enum err e = RIG_AS(role, st_call_ping(a, &m, NULL, &ok, NULL));
	if (e == ERR_OK || e == ERR_STORAGE_FULL)
		return a;
	ask_free(a);
	return NULL;
}

struct ask *rig_ask(struct rig *r, enum rig_role role)
{
	return ask_for(r, role, role == RIG_NOBODY ? 500 : PATIENCE_MS);
}

struct ask *rig_hasty(struct rig *r, enum rig_role role)
{
	return ask_for(r, role, 3000);
}

int rig_connect(struct rig *r, enum rig_role role)
{
	rig_become(role);
	int fd = chan_connect(role == RIG_ADMIN ? r->admin : r->sock);
	rig_become(RIG_ADMIN);
	return fd;
}

int rig_memfd(const void *p, size_t n)
{
	int fd = bundle_new("content");
	if (fd < 0 || !write_all(fd, p, n))
		fatal("memfd: %m");
	return fd;
}

void rig_tenant(struct rig *r, const char *tenant)
{
	struct st_tenant_put m = {.tenant = tenant};
	struct st_ok ok;
	struct ask *a = rig_ask(r, RIG_ADMIN);
	if (a == NULL || st_call_tenant_put(a, &m, NULL, &ok, NULL) != ERR_OK) {
		fprintf(stderr, "pinfold-stored (%s) does not answer; its log says:\n", r->program);
		size_t n;
		char *log = file_read(AT_FDCWD, r->log, 1 << 20, &n);
		fprintf(stderr, "%s", log != NULL ? log : "nothing\n");
		free(log);
		rig_close(r);
		exit(1);
	}
	ask_free(a);
}

struct st_run_create rig_run(const char *tenant, const char *run)
{
	static const uint8_t fingerprint[32] = {1, 2, 3};
	return (struct st_run_create){.tenant = tenant,
				      .run = run,
				      .agent = "builtin",
				      .profile = "default",
				      .provider = "scripted",
				      .model = "model-1",
				      .fingerprint = {fingerprint, sizeof fingerprint},
				      .max_steps = 10,
				      .wall_seconds = 60,
				      .approval_wait_seconds = 600,
				      .max_requests = 12,
				      .created_by = "tests"};
}

enum err rig_create(struct ask *fcgi, const struct st_run_create *m, struct st_run_state *state)
{
	int fds[2] = {rig_memfd("{\"instruction\":\"x\"}", 19), rig_memfd("upload", 6)};
	struct st_run_state ignored;
	enum err e = RIG_AS(RIG_FCGI, st_call_run_create(fcgi, m, fds, state != NULL ? state : &ignored, NULL));
	close(fds[0]);
	close(fds[1]);
	return e;
}

enum err rig_running(struct ask *fcgi, struct ask *steward, const char *tenant, const char *run, uint32_t max_requests)
{
	struct st_run_create m = rig_run(tenant, run);
	m.max_requests = max_requests;
	struct st_run_start s = {.tenant = tenant, .run = run, .expires_at = clock_ms() + 2 * 3600 * 1000};
	struct st_run_work work;
	enum err e = rig_create(fcgi, &m, NULL);
	return e != ERR_OK ? e : RIG_AS(RIG_STEWARD, st_call_run_start(steward, &s, NULL, &work, NULL));
}

static bool log_has(struct rig *r, const char *text)
{
	size_t n;
	char *log = file_read(AT_FDCWD, r->log, 1 << 20, &n);
	bool found = log != NULL && strstr(log, text) != NULL;
	free(log);
	return found;
}

bool rig_logged(struct rig *r, const char *text)
{
	return WAIT_FOR(log_has(r, text));
}

pid_t rig_member(struct rig *r, enum rig_role role, const volatile bool *go, void (*work)(struct ask *a, int index),
		 int index)
{
	pid_t pid = fork();
	if (pid < 0)
		fatal("fork: %m"); /* a test that kills -1 kills everybody */
	if (pid > 0)
		return pid;
	uid_t uid = rig_uid(role);
	if (setresuid(uid, uid, uid) != 0)
		_exit(1);
	struct ask *a = ask_new(r->sock, PATIENCE_MS);
	while (!*go)
		(void)usleep(1000);
	work(a, index);
	_exit(0);
}
