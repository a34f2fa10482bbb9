/* See stage.h. */
#include "tests/steward/stage.h"
#include "gen/conf_msg.h"
#include "gen/run_fsm.h"
#include "lib/buf.h"
#include "lib/chan.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/place.h"
#include "tests/steward/bundles.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

const char stage_secret[] = "0123456789012345678901234567890123456789";
static const char request_text[] =
    "{\"instruction\":\"repair it\",\"allowedPaths\":[\"a.py\"],\"checks\":[[\"git\",\"diff\",\"--check\"],"
    "[\"python3\",\"-m\",\"unittest\",\"discover\"]],\"permissions\":{\"bash\":\"ask\"}}";

static void frame(int fd, const uint8_t *buf, size_t n)
{
	assert_true(n > 0 && bundle_add(fd, buf, n));
}

static int make_conf(const struct stage *s)
{
	const struct rig *r = &s->rig;
	static uint8_t buf[CF_MAXFRAME];
	static const char *const roles[] = {"fcgi", "gateway", "steward"};
	static const char *const tenants[] = {"acme", "beta"};
	int fd = bundle_new("conf");
	assert_true(fd >= 0);
	struct cf_global g = {.run_dir = r->dir,
			      .state_dir = r->state,
			      .log_dir = r->dir,
			      .libexec_dir = r->dir,
			      .gateway_port = STAGE_PORT,
			      .max_concurrent_runs = s->max_concurrent_runs,
			      .queue_seconds = s->queue_seconds,
			      .run_token_secret = "signing"};
	frame(fd, buf, cf_put_global(buf, sizeof buf, 0, &g));
	struct cf_role stored = {.name = "stored", .uid = RIG_UID, .gid = RIG_UID};
	frame(fd, buf, cf_put_role(buf, sizeof buf, 0, &stored));
	for (size_t i = 0; i < 3; i++) {
		struct cf_role m = {.name = roles[i], .uid = rig_uid((enum rig_role)i), .gid = RIG_UID};
		frame(fd, buf, cf_put_role(buf, sizeof buf, 0, &m));
	}
	struct cf_shared_gid gid = {.gid = RIG_UID};
	frame(fd, buf, cf_put_shared_gid(buf, sizeof buf, 0, &gid));
	struct cf_secret secret = {.name = "signing", .role = "steward"};
	frame(fd, buf, cf_put_secret(buf, sizeof buf, 0, &secret));
	struct cf_provider provider = {.name = "scripted", .protocol = "openai", .base_url = "https://localhost/v1"};
	frame(fd, buf, cf_put_provider(buf, sizeof buf, 0, &provider));
	struct cf_profile profile = {.name = "default", .provider = "scripted", .model = "model-1"};
	frame(fd, buf, cf_put_profile(buf, sizeof buf, 0, &profile));
	struct cf_agent agent = {.name = "builtin",
				 .argv_n = 1,
				 .argv = {"/opt/pinfold/agent"},
				 .env_n = 3,
				 .env = {"PINFOLD_MODEL_ID={model}", "PINFOLD_MODEL_GATEWAY_URL={gateway_url}",
					 "PINFOLD_RUN_ID={run_id}{x}"},
				 .policy = "strict",
				 .model_token_file = ".pinfold-run-token",
				 .event_token_file = ".pinfold-event-token",
				 .approval_token_file = ".pinfold-approval-token",
				 .memory_bytes = 1 << 28,
				 .pids = 100,
				 .workspace_bytes = 1 << 26,
				 .workspace_inodes = 5000,
				 .output_bytes = 100000,
				 .token_wire = s->token_wire};
	frame(fd, buf, cf_put_agent(buf, sizeof buf, 0, &agent));
	for (size_t i = 0; i < 2; i++) {
		struct cf_tenant t = {.name = tenants[i],
				      .default_agent = "builtin",
				      .default_profile = "default",
				      .extensions_n = 2,
				      .extensions = {".py", ".txt"},
				      .max_steps = 20,
				      .max_wall_seconds = 220,
				      .check_seconds = 7,
				      .max_concurrent_runs = s->tenant_runs != 0 ? s->tenant_runs : 4};
		frame(fd, buf, cf_put_tenant(buf, sizeof buf, 0, &t));
	}
	struct cf_end end = {0};
	frame(fd, buf, cf_put_end(buf, sizeof buf, 0, &end));
	assert_true(bundle_seal(fd));
	return fd;
}

void stage_open(struct stage *s)
{
	char link[160];
	*s = (struct stage){.control = -1};
	rig_open(&s->rig, NULL);
	/* The rig's folder is the run directory, and its own "store" in it. */
	snprintf(link, sizeof link, "%s/store", s->rig.dir);
	assert_int_equal(symlink(".", link), 0);
	rig_start(&s->rig);
	rig_tenant(&s->rig, "acme");
	rig_tenant(&s->rig, "beta");
	s->fcgi = rig_ask(&s->rig, RIG_FCGI);
	s->gateway = rig_ask(&s->rig, RIG_GATEWAY);
	assert_true(s->fcgi != NULL && s->gateway != NULL);
}

void stage_close(struct stage *s)
{
	if (s->pid > 0)
		(void)stage_stop(s, SIGKILL);
	ask_free(s->fcgi);
	ask_free(s->gateway);
	rig_close(&s->rig);
}

static void child(const struct stage *s, int control, int secrets)
{
	const char *program = getenv("PINFOLD_STEWARD");
	int from[] = {control, make_conf(s), secrets};
	char log[160];
	snprintf(log, sizeof log, "%s/steward.log", s->rig.dir);
	int err = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
	int null = open("/dev/null", O_RDWR);
	gid_t gid = RIG_UID;
	for (int i = 0; i < 3; i++)
		from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 100);
	if (dup2(null, 0) < 0 || dup2(err, 1) < 0 || dup2(err, 2) < 0)
		_exit(126);
	for (int i = 0; i < 3; i++)
		if (dup2(from[i], CHILD_FD_CONTROL + i) < 0)
			_exit(126);
	for (int fd = CHILD_FD_SECRETS + 1; fd < 100; fd++)
		close(fd);
	if (setgroups(1, &gid) != 0 || setgid(RIG_UID) != 0 || setuid(rig_uid(RIG_STEWARD)) != 0)
		_exit(126);
	execl(program != NULL ? program : "./pinfold-steward", "pinfold-steward", (char *)NULL);
	_exit(127);
}

void stage_fork(struct stage *s, const char *secret)
{
	int pair[2], pipes[2];
	uint8_t n = (uint8_t)strlen("signing");
	uint8_t len[2] = {0, (uint8_t)strlen(secret)};
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_true(write_all(pipes[1], &n, 1) && write_all(pipes[1], "signing", n) && write_all(pipes[1], len, 2) &&
		    write_all(pipes[1], secret, strlen(secret)));
	close(pipes[1]);
	s->pid = fork();
	assert_true(s->pid >= 0);
	if (s->pid == 0)
		child(s, pair[1], pipes[0]);
	close(pair[1]);
	close(pipes[0]);
	s->control = pair[0];
}

static void say(struct stage *s, const uint8_t *p, size_t n, const int *fds, int nfds)
{
	assert_true(n > 0);
	if (chan_send(s->control, p, n, fds, nfds) != 0)
		fail_msg("the steward is gone: %s", strerror(errno));
}

static size_t hear(struct stage *s, uint8_t frame_[SBX_MAXFRAME], int fds[4], int *nfds, uint16_t *number)
{
	struct pollfd p = {.fd = s->control, .events = POLLIN};
	uint64_t op;
	if (poll(&p, 1, PATIENCE_MS) != 1)
		fail_msg("the steward sends nothing");
	ssize_t n = chan_recv(s->control, frame_, SBX_MAXFRAME, fds, nfds);
	if (n <= 0)
		fail_msg("the steward is gone");
	assert_true(wire_peek(frame_, (size_t)n, number, &op));
	return (size_t)n;
}

void stage_greet_with(struct stage *s, uint32_t slots, const struct stage_box *boxes, size_t n)
{
	uint8_t in[SBX_MAXFRAME], out[SBX_MAXFRAME];
	int fds[4], nfds;
	uint16_t number;
	(void)hear(s, in, fds, &nfds, &number);
	assert_int_equal(number, SBX_HELLO);
	struct sbx_welcome w = {.version = SBX_VERSION, .slots = slots};
	say(s, out, sbx_put_welcome(out, sizeof out, 0, &w), NULL, 0);
	(void)hear(s, in, fds, &nfds, &number);
	assert_int_equal(number, SBX_LIST);
	for (size_t i = 0; i < n; i++) {
		own_fd int result = bundle_new("old");
		struct sbx_box b = {.run = boxes[i].run, .tenant = "acme", .kind = boxes[i].kind, .phase = 1};
		say(s, out, sbx_put_box(out, sizeof out, 0, &b), &result, 1);
	}
	struct sbx_listed l = {.count = (uint32_t)n};
	say(s, out, sbx_put_listed(out, sizeof out, 0, &l), NULL, 0);
}

void stage_greet(struct stage *s, uint32_t slots)
{
	stage_greet_with(s, slots, NULL, 0);
}

int stage_stop(struct stage *s, int sig)
{
	int status = 0;
	if (sig != 0)
		kill(s->pid, sig);
	else
		close(s->control);
	assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
	if (sig != 0)
		close(s->control);
	s->control = -1;
	s->pid = 0;
	return status;
}

static void send_source(struct stage *s, const char *tenant, const char *archive, uint8_t sha256[32])
{
	struct st_ok ok;
	struct st_source_stored stored;
	size_t n = strlen(archive);
	struct st_source_begin begin = {.tenant = tenant, .most = 1000000};
	struct st_source_part part = {.tenant = tenant, .data = {(const uint8_t *)archive, (uint32_t)n}};
	struct st_source_end end = {.tenant = tenant, .bytes = n, .by = "tests"};
	assert_int_equal(RIG_AS(RIG_FCGI, st_call_source_begin(s->fcgi, &begin, NULL, &ok, NULL)), ERR_OK);
	assert_int_equal(RIG_AS(RIG_FCGI, st_call_source_part(s->fcgi, &part, NULL, &ok, NULL)), ERR_OK);
	assert_int_equal(RIG_AS(RIG_FCGI, st_call_source_end(s->fcgi, &end, NULL, &stored, NULL)), ERR_OK);
	memcpy(sha256, stored.sha256.p, 32);
}

static const char *new_run(struct stage *s, const char *tenant, const char *archive)
{
	static char run[64][64];
	static unsigned slot;
	static const struct given files[] = {{"a.py", "one\ntwo\n"}, {"b.py", "bee\n"}};
	char *id = run[slot++ % 64];
	uint8_t sha256[32];
	struct st_run_state state;
	snprintf(id, 64, "%s-%u", tenant, ++s->serial);
	own_fd int upload = bundle_new("upload");
	own_fd int request = rig_memfd(request_text, strlen(request_text));
	bundles_sources(upload, files, 2);
	struct st_run_create m = rig_run(tenant, id);
	if (archive != NULL) {
		send_source(s, tenant, archive, sha256);
		m.source = (struct wire_bytes){sha256, sizeof sha256};
	}
	m.wall_seconds = s->run_wall_seconds != 0 ? s->run_wall_seconds : m.wall_seconds;
	m.approval_wait_seconds = s->run_wait_seconds != 0 ? s->run_wait_seconds : m.approval_wait_seconds;
	int fds[] = {request, upload};
	assert_int_equal(RIG_AS(RIG_FCGI, st_call_run_create(s->fcgi, &m, fds, &state, NULL)), ERR_OK);
	return id;
}

const char *stage_run(struct stage *s, const char *tenant)
{
	return new_run(s, tenant, NULL);
}

const char *stage_archive_run(struct stage *s, const char *tenant, const char *archive)
{
	return new_run(s, tenant, archive);
}

void stage_cancel(struct stage *s, const char *tenant, const char *run)
{
	struct st_run_cancel m = {.tenant = tenant, .run = run, .by = "tests"};
	struct st_run_state state;
	assert_int_equal(RIG_AS(RIG_FCGI, st_call_run_cancel(s->fcgi, &m, NULL, &state, NULL)), ERR_OK);
}

struct order stage_order(struct stage *s)
{
	uint8_t in[SBX_MAXFRAME];
	int fds[4], nfds;
	struct order o = {.upload = -1, .result = -1};
	size_t n = hear(s, in, fds, &nfds, &o.number);
	struct sbx_spawn spawn;
	struct sbx_kill kill_;
	struct sbx_pause pause_;
	if (o.number == SBX_SPAWN) {
		assert_true(sbx_get_spawn(in, n, &spawn) && nfds == 2);
		snprintf(o.run, sizeof o.run, "%s", spawn.run);
		snprintf(o.tenant, sizeof o.tenant, "%s", spawn.tenant);
		o.kind = spawn.kind;
		o.wall_seconds = spawn.wall_seconds;
		o.workspace_inodes = spawn.workspace_inodes;
		o.workspace_bytes = spawn.workspace_bytes;
		o.memory_bytes = spawn.memory_bytes;
		o.upload = fds[0];
		o.result = fds[1];
	} else if (o.number == SBX_PAUSE) {
		assert_true(sbx_get_pause(in, n, &pause_) && nfds == 0);
		snprintf(o.run, sizeof o.run, "%s", pause_.run);
		o.kind = BOX_WORK;
		o.stands = pause_.stands;
		o.frozen = pause_.frozen;
	} else {
		assert_true(o.number == SBX_KILL && sbx_get_kill(in, n, &kill_) && nfds == 0);
		snprintf(o.run, sizeof o.run, "%s", kill_.run);
		o.kind = kill_.kind;
		o.grace_ms = kill_.grace_ms;
	}
	return o;
}

struct order stage_expect(struct stage *s, uint16_t number, const char *run, enum box_kind kind)
{
	struct order o = stage_order(s);
	if (o.number != number || strcmp(o.run, run) != 0 || o.kind != kind)
		fail_msg("wanted message %u for %s box %d, got %u for %s box %u", number, run, kind, o.number, o.run,
			 o.kind);
	return o;
}

bool stage_silent(struct stage *s)
{
	struct pollfd p = {.fd = s->control, .events = POLLIN};
	return poll(&p, 1, 0) == 0;
}

/* One child of the steward's; 0: it has none. */
static pid_t child_of(pid_t steward)
{
	char path[64], text[32] = "";
	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)steward, (int)steward);
	FILE *f = fopen(path, "r");
	if (f == NULL)
		return 0;
	bool got = fgets(text, sizeof text, f) != NULL;
	fclose(f);
	return got ? atoi(text) : 0;
}

pid_t stage_hold_judge(struct stage *s)
{
	char path[64], state = '?';
	while (stage_silent(s)) {
		pid_t judge = child_of(s->pid);
		if (judge == 0 || kill(judge, SIGSTOP) != 0)
			continue;
		snprintf(path, sizeof path, "/proc/%d/stat", (int)judge);
		for (int i = 0; i < 1000; i++) {
			FILE *f = fopen(path, "r");
			bool known = f != NULL && fscanf(f, "%*d (%*[^)]) %c", &state) == 1;
			if (f != NULL)
				fclose(f);
			if (!known || state == 'Z')
				break;
			if (state == 'T')
				return judge;
		}
	}
	return 0;
}

void order_end(struct order *o)
{
	if (o->upload >= 0)
		close(o->upload);
	if (o->result >= 0)
		close(o->result);
	o->upload = o->result = -1;
}

void stage_spawned(struct stage *s, const char *run, enum box_kind kind)
{
	uint8_t out[SBX_MAXFRAME];
	struct sbx_spawned m = {.run = run, .kind = (uint8_t)kind};
	say(s, out, sbx_put_spawned(out, sizeof out, 0, &m), NULL, 0);
}

void stage_refused(struct stage *s, const char *run, enum box_kind kind, enum err code)
{
	uint8_t out[SBX_MAXFRAME];
	struct sbx_refused m = {.run = run, .kind = (uint8_t)kind, .code = (uint16_t)code, .detail = "no"};
	say(s, out, sbx_put_refused(out, sizeof out, 0, &m), NULL, 0);
}

void stage_exited(struct stage *s, const char *run, enum box_kind kind, bool oom, bool timed_out)
{
	struct sbx_exited m = {.run = run, .kind = (uint8_t)kind, .oom = oom, .timed_out = timed_out};
	stage_exited_so(s, &m);
}

void stage_exited_so(struct stage *s, const struct sbx_exited *m)
{
	uint8_t out[SBX_MAXFRAME];
	say(s, out, sbx_put_exited(out, sizeof out, 0, m), NULL, 0);
}

void stage_gone(struct stage *s, const char *run, enum box_kind kind, bool clean)
{
	uint8_t out[SBX_MAXFRAME];
	struct sbx_gone m = {.run = run, .kind = (uint8_t)kind, .clean = clean};
	say(s, out, sbx_put_gone(out, sizeof out, 0, &m), NULL, 0);
}

const struct st_run_is *stage_get(struct stage *s, const char *tenant, const char *run)
{
	static struct st_run_is is;
	struct st_run_get m = {.tenant = tenant, .run = run};
	int fd = -1;
	enum err e = RIG_AS(RIG_FCGI, st_call_run_get(s->fcgi, &m, NULL, &is, &fd));
	if (e != ERR_OK)
		fail_msg("run %s: %s", run, err_code(e));
	close(fd);
	return &is;
}

const struct st_run_is *stage_final(struct stage *s, const char *tenant, const char *run)
{
	const struct st_run_is *is = NULL;
	if (!WAIT_FOR(run_final((enum run_state)(is = stage_get(s, tenant, run))->state)))
		fail_msg("run %s does not end", run);
	return is;
}

void stage_phase(struct stage *s, const char *tenant, const char *run, enum run_phase phase)
{
	if (!WAIT_FOR(stage_get(s, tenant, run)->phase == phase))
		fail_msg("run %s does not reach phase %s", run, phase_names[phase]);
}

bool stage_capable(struct stage *s, const char *tenant, const char *run)
{
	return stage_capable_until(s, tenant, run) != 0;
}

uint64_t stage_capable_until(struct stage *s, const char *tenant, const char *run)
{
	struct st_cap_check m = {.tenant = tenant, .run = run};
	struct st_cap_is is;
	enum err e = RIG_AS(RIG_GATEWAY, st_call_cap_check(s->gateway, &m, NULL, &is, NULL));
	return e == ERR_OK ? is.expires_at : 0;
}

char *stage_artifact(struct stage *s, const char *tenant, const char *run, enum artifact name)
{
	struct st_artifact_get m = {.tenant = tenant, .run = run, .name = (uint8_t)name};
	struct st_artifact_is is;
	int fd = -1;
	if (RIG_AS(RIG_FCGI, st_call_artifact_get(s->fcgi, &m, NULL, &is, &fd)) != ERR_OK)
		return NULL;
	char *text = malloc(is.size + 1);
	assert_non_null(text);
	assert_int_equal(pread(fd, text, is.size, 0), (ssize_t)is.size);
	text[is.size] = '\0';
	close(fd);
	return text;
}

unsigned stage_audited(struct stage *s, const char *event, const char *run)
{
	char path[160], name[100], of[160];
	unsigned found = 0;
	size_t n;
	snprintf(path, sizeof path, "%s/audit.log", s->rig.logs);
	snprintf(name, sizeof name, "\"event\":\"%s\"", event);
	snprintf(of, sizeof of, "\"run\":\"%s\"", run);
	own_free char *log = file_read(AT_FDCWD, path, 100000000, &n);
	assert_non_null(log);
	for (char *line = strtok(log, "\n"); line != NULL; line = strtok(NULL, "\n"))
		found += strstr(line, name) != NULL && strstr(line, of) != NULL;
	return found;
}

bool stage_has_logged(struct stage *s, const char *text)
{
	char path[160];
	size_t n;
	snprintf(path, sizeof path, "%s/steward.log", s->rig.dir);
	own_free char *log = file_read(AT_FDCWD, path, 10000000, &n);
	return log != NULL && strstr(log, text) != NULL;
}

void stage_logged(struct stage *s, const char *text)
{
	if (!WAIT_FOR(stage_has_logged(s, text)))
		fail_msg("the steward does not log: %s", text);
}

char *stage_events(struct stage *s, const char *tenant, const char *run)
{
	struct buf b;
	struct st_events_are are;
	uint64_t after = 0;
	buf_init(&b, 1000000);
	do {
		struct st_events_read m = {.tenant = tenant, .run = run, .after = after};
		struct wire_bytes part;
		struct st_event event;
		bool bad = false;
		assert_int_equal(RIG_AS(RIG_FCGI, st_call_events_read(s->fcgi, &m, NULL, &are, NULL)), ERR_OK);
		while (wire_list_next(&are.events, &part, &bad) && st_get_event(part.p, part.n, &event)) {
			buf_adds(&b, event.type);
			buf_addc(&b, '\n');
		}
		after = are.last;
	} while (are.more);
	char *text = strdup(buf_cstr(&b));
	buf_free(&b);
	return text;
}

static bool has_event(struct stage *s, const char *tenant, const char *run, const char *type)
{
	own_free char *events = stage_events(s, tenant, run);
	return strstr(events, type) != NULL;
}

void stage_event(struct stage *s, const char *tenant, const char *run, const char *type)
{
	if (!WAIT_FOR(has_event(s, tenant, run, type)))
		fail_msg("run %s has no event %s", run, type);
}
