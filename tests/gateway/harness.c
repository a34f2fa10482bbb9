/*
 * Command lines, one answer line each ("ok ...", "err CODE"), before start:
 *   provider NAME URL CA|- SECRET|- PLAIN [PROTOCOL [OUTPUT_CAP]]
 *   agent NAME POLICY FORMAT STREAM TOKENS EFFORT    the last four as in conf.msg; "built-in" is there, with policy
 * strict profile NAME PROVIDER MODEL    secret NAME VALUE    timeout MS masks N mask_secrets, also for the gateway that
 * is restarted next missing SECRET                           is configured and never handed over start DIR BINDIR
 * whole SECONDS BYTES of a stream    beat SECONDS    memory BYTES
 * answers the gateway's pid and after it: tenant T     run T R PROFILE MAX [AGENT]     begin T R LIFE_MS     revoke T R
 * finish T R renew T R LIFE_MS open T R     answers the port of the box's listener        close R        cancel T R
 *   restart      the gateway is killed and started             restart_store  the same for stored
 *   pids         of gateway and stored
 *   abort        the gateway gets SIGABRT: answers its signal and whether it left a core
 *   token model|events|approvals T R MODEL [SECONDS_AGO]       kid
 *   show T R     state used prompt completion last_sequence
 *   events T R   lines "event SEQUENCE TYPE DATA", then "ok"
 */
#include "tests/gateway/harness.h"
#include "gen/bundle_msg.h"
#include "gen/conf_msg.h"
#include "gen/run_fsm.h"
#include "gen/store_msg.h"
#include "lib/buf.h"
#include "lib/chan.h"
#include "lib/conf.h"
#include "lib/die.h"
#include "lib/num.h"
#include "lib/token.h"
#include "tests/patience.h"
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 10, ITEMS = 32 };

/* Configuration collected before start. */
static struct {
	struct cf_provider providers[ITEMS];
	struct cf_profile profiles[ITEMS];
	struct cf_secret secrets[ITEMS];
	struct cf_agent agents[ITEMS];
	uint32_t nproviders, nprofiles, nsecrets, nagents, timeout_ms, idle_seconds, stream_seconds, stream_bytes,
	    beat_seconds, memory_bytes;
	uint8_t masks;
	bool next;
} given;

static void answer(enum err e)
{
	if (e == ERR_OK)
		printf("ok\n");
	else
		printf("err %s\n", err_code(e));
}

static const char *keep(const char *s)
{
	return strdup(strcmp(s, "-") == 0 ? "" : s);
}

static void add_secret(struct harness *h, const char *name, const char *value)
{
	size_t n = strlen(value);
	uint8_t size[2] = {(uint8_t)(n >> 8), (uint8_t)n};

	buf_addc(h->secrets, (char)strlen(name));
	buf_adds(h->secrets, name);
	buf_add(h->secrets, size, 2);
	buf_add(h->secrets, value, n);
	if (strcmp(name, "signing") == 0)
		secret_set(&h->run_key, value, n);
	given.next = given.next || strcmp(name, "signing-next") == 0;
	given.secrets[given.nsecrets++] = (struct cf_secret){.name = keep(name), .role = "gateway"};
}

#define PUT(kind, ...)                                                  \
	do {                                                            \
		struct cf_##kind m_ = {__VA_ARGS__};                    \
		size_t n_ = cf_put_##kind(frame, sizeof frame, 0, &m_); \
		if (n_ == 0 || !bundle_add(fd, frame, n_))              \
			fatal("cannot write " #kind);                   \
	} while (0)

static int make_conf(const struct harness *h)
{
	static uint8_t frame[CF_MAXFRAME];
	static const char *const roles[] = {"stored", "fcgi", "gateway", "steward"};
	char run[260], state[260], log[260];
	int fd = bundle_new("conf");

	snprintf(run, sizeof run, "%s/run", h->dir);
	snprintf(state, sizeof state, "%s/state", h->dir);
	snprintf(log, sizeof log, "%s/state", h->dir);
	PUT(global, .run_dir = run, .state_dir = state, .log_dir = log, .libexec_dir = h->bin, .gateway_port = 9797,
	    .box_uid_base = 2000002000, .max_boxes = HARNESS_BOXES, .fcgi_threads = 2, .fcgi_threads_max = 4,
	    .request_deadline_ms = 20000, .model_timeout_ms = given.timeout_ms,
	    .model_idle_seconds = given.idle_seconds, .model_stream_seconds = given.stream_seconds,
	    .model_stream_bytes = given.stream_bytes, .model_heartbeat_seconds = given.beat_seconds,
	    .model_memory_bytes = given.memory_bytes, .web_gid = 33, .mask_secrets = given.masks,
	    .run_token_secret = "signing", .run_token_secret_next = given.next ? "signing-next" : "");
	for (uint32_t i = 0; i < 4; i++)
		PUT(role, .name = roles[i], .uid = HARNESS_UID + i, .gid = HARNESS_UID + i);
	PUT(shared_gid, .gid = HARNESS_UID + 100);
	for (uint32_t i = 0; i < given.nsecrets; i++)
		PUT(secret, .name = given.secrets[i].name, .role = given.secrets[i].role);
	for (uint32_t i = 0; i < given.nproviders; i++) {
		size_t n = cf_put_provider(frame, sizeof frame, 0, &given.providers[i]);
		if (n == 0 || !bundle_add(fd, frame, n))
			fatal("cannot write a provider");
	}
	for (uint32_t i = 0; i < given.nprofiles; i++) {
		size_t n = cf_put_profile(frame, sizeof frame, 0, &given.profiles[i]);
		if (n == 0 || !bundle_add(fd, frame, n))
			fatal("cannot write a profile");
	}
	struct cf_agent agent = {.name = "built-in",
				 .argv = {"/opt/pinfold/pinfold-agent"},
				 .argv_n = 1,
				 .policy = "strict",
				 .model_token_file = ".a",
				 .event_token_file = ".b",
				 .approval_token_file = ".c",
				 .memory_bytes = 1 << 28,
				 .pids = 64,
				 .workspace_bytes = 1 << 26,
				 .workspace_inodes = 4096,
				 .output_bytes = 100000,
				 .extra_requests = 2};
	for (uint32_t i = 0; i <= given.nagents; i++) {
		if (i > 0) {
			const struct cf_agent *a = &given.agents[i - 1];
			agent.name = a->name;
			agent.policy = a->policy;
			agent.model_format = a->model_format;
			agent.model_stream = a->model_stream;
			agent.max_output_tokens = a->max_output_tokens;
			agent.reasoning_effort_max = a->reasoning_effort_max;
			agent.request_bytes = 8000000;
		}
		size_t n = cf_put_agent(frame, sizeof frame, 0, &agent);
		if (n == 0 || !bundle_add(fd, frame, n))
			fatal("cannot write an agent");
	}
	for (const char *const *t = (const char *const[]){"acme", "other", "narrow", NULL}; *t; t++)
		PUT(tenant, .name = *t, .default_agent = "built-in", .default_profile = given.profiles[0].name,
		    .extensions = {".py"}, .extensions_n = 1, .max_steps = 60, .max_wall_seconds = 220,
		    .check_seconds = 60, .max_concurrent_runs = 8, .max_queued_runs = 64,
		    .max_model_calls_run = strcmp(*t, "narrow") == 0 ? 2 : 0,
		    .max_model_calls = strcmp(*t, "narrow") == 0 ? 3 : 0);
	PUT(end, .nothing = 0);
	if (!bundle_seal(fd))
		fatal("cannot seal the configuration: %m");
	return fd;
}

/* A call in the name of a role: the store looks at the uid that connects. */
#define AS(h, who, call)                               \
	({                                             \
		if (seteuid(HARNESS_UID + (who)) != 0) \
			fatal("seteuid: %m");          \
		enum err e_ = (call);                  \
		if (seteuid(0) != 0)                   \
			fatal("seteuid: %m");          \
		e_;                                    \
	})

static enum err run_create(struct harness *h, char **w, const char *agent)
{
	static struct conf conf;
	uint8_t route[32], fingerprint[32], frame[64];
	int fds[2] = {bundle_new("request"), bundle_new("upload")};
	struct bn_source_end end = {.files = 0};
	struct st_run_state state;

	if (!conf.storage) {
		const char *why = conf_load(&conf, h->conf_fd);
		if (why)
			fatal("own configuration: %s", why);
	}
	const struct cf_profile *p = conf_profile(&conf, w[3]);
	const struct cf_agent *a = conf_agent(&conf, agent);
	if (!p || !a || !conf_fingerprint(&conf, p, route) || !conf_capability(a, route, fingerprint) ||
	    !write_all(fds[0], "{}", 2) ||
	    !bundle_add(fds[1], frame, bn_put_source_end(frame, sizeof frame, 0, &end)) || !bundle_seal(fds[0]) ||
	    !bundle_seal(fds[1]))
		fatal("cannot prepare a run");
	struct st_run_create m = {.tenant = w[1],
				  .run = w[2],
				  .agent = agent,
				  .profile = p->name,
				  .provider = p->provider,
				  .model = p->model,
				  .fingerprint = {fingerprint, 32},
				  .max_steps = 20,
				  .wall_seconds = 200,
				  .max_requests = (uint32_t)atoi(w[4]),
				  .created_by = "harness"};
	enum err e = AS(h, ROLE_FCGI, st_call_run_create(h->fcgi, &m, fds, &state, NULL));
	close(fds[0]);
	close(fds[1]);
	return e;
}

static enum err run_begin(struct harness *h, char **w)
{
	struct st_run_start m = {.tenant = w[1], .run = w[2], .expires_at = clock_ms() + (uint64_t)atoll(w[3])};
	struct st_run_work work;
	return AS(h, ROLE_STEWARD, st_call_run_start(h->steward, &m, NULL, &work, NULL));
}

static enum err run_finish(struct harness *h, char **w)
{
	struct st_run_finish m = {.tenant = w[1],
				  .run = w[2],
				  .event = RUN_EV_FAIL,
				  .terminal_reason = "agent_failed",
				  .error = "sandbox_agent_failed"};
	struct st_run_state state;
	return AS(h, ROLE_STEWARD, st_call_run_finish(h->steward, &m, NULL, &state, NULL));
}

static void show(struct harness *h, char **w)
{
	struct st_run_get m = {.tenant = w[1], .run = w[2]};
	struct st_run_is is;
	int fd = -1;
	enum err e = AS(h, ROLE_FCGI, st_call_run_get(h->fcgi, &m, NULL, &is, &fd));
	if (e != ERR_OK) {
		answer(e);
		return;
	}
	if (fd >= 0)
		close(fd);
	printf("ok %s %u %llu %llu %llu\n", run_state_name((enum run_state)is.state), is.used_requests,
	       (unsigned long long)is.prompt_tokens, (unsigned long long)is.completion_tokens,
	       (unsigned long long)is.last_sequence);
}

static void events(struct harness *h, char **w)
{
	struct st_events_read m = {.tenant = w[1], .run = w[2]};
	struct st_events_are are = {.more = true};
	enum err e = ERR_OK;

	while (e == ERR_OK && are.more) {
		e = AS(h, ROLE_FCGI, st_call_events_read(h->fcgi, &m, NULL, &are, NULL));
		struct wire_bytes rest = are.events, part;
		struct st_event ev;
		bool bad = false;
		while (e == ERR_OK && wire_list_next(&rest, &part, &bad) && st_get_event(part.p, part.n, &ev))
			printf("event %llu %s %.*s\n", (unsigned long long)ev.sequence, ev.type, (int)ev.data.n,
			       (const char *)ev.data.p);
		m.after = are.last;
	}
	answer(e);
}

static void open_box(struct harness *h, char **w)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof at;
	int box = 0;

	while (box < HARNESS_BOXES && h->boxes[box].fd >= 0)
		box++;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (box == HARNESS_BOXES || fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 ||
	    listen(fd, 128) != 0 || getsockname(fd, (struct sockaddr *)&at, &size) != 0)
		fatal("cannot make a listener: %m");
	h->boxes[box].fd = fd;
	snprintf(h->boxes[box].tenant, 129, "%s", w[1]);
	snprintf(h->boxes[box].run, 129, "%s", w[2]);
	if (harness_open(h, box))
		printf("ok %u\n", (unsigned)ntohs(at.sin_port));
	else
		printf("err gateway_gone\n");
}

static void abort_gateway(struct harness *h)
{
	int status = 0;

	if (kill(h->gateway, SIGABRT) != 0 || waitpid(h->gateway, &status, 0) != h->gateway)
		fatal("cannot abort the gateway: %m");
	h->gateway = 0;
	close(h->gateway_control);
	printf("ok %d %s\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0, WCOREDUMP(status) ? "core" : "none");
}

static enum err cancel(struct harness *h, char **w)
{
	struct st_run_cancel m = {.tenant = w[1], .run = w[2], .by = "harness", .request_id = ""};
	struct st_run_state state;
	return AS(h, ROLE_FCGI, st_call_run_cancel(h->fcgi, &m, NULL, &state, NULL));
}

static void token(struct harness *h, char **w, int n)
{
	char text[TOKEN_MAX + 1];
	enum token_audience aud = strcmp(w[1], "model") == 0    ? TOKEN_MODEL
				  : strcmp(w[1], "events") == 0 ? TOKEN_EVENTS
								: TOKEN_APPROVALS;
	int64_t now = (int64_t)(clock_ms() / 1000) - (n > 5 ? atoll(w[5]) : 0);

	if (token_mint(&h->run_key, aud, w[3], w[2], w[4], now, text))
		printf("ok %s\n", text);
	else
		printf("err mint\n");
}

static bool before_start(struct harness *h, char **w, int n)
{
	if (strcmp(w[0], "provider") == 0 && n >= 6)
		given.providers[given.nproviders++] = (struct cf_provider){.name = keep(w[1]),
									   .protocol = n > 6 ? keep(w[6]) : "openai",
									   .output_cap = n > 7 ? keep(w[7]) : "",
									   .base_url = keep(w[2]),
									   .ca_file = keep(w[3]),
									   .secret = keep(w[4]),
									   .allow_plain_loopback = w[5][0] == '1',
									   .scripted = true};
	else if (strcmp(w[0], "agent") == 0 && n == 7)
		given.agents[given.nagents++] = (struct cf_agent){.name = keep(w[1]),
								  .policy = keep(w[2]),
								  .model_format = (uint8_t)atoi(w[3]),
								  .model_stream = (uint8_t)atoi(w[4]),
								  .max_output_tokens = (uint32_t)atoi(w[5]),
								  .reasoning_effort_max = (uint8_t)atoi(w[6])};
	else if (strcmp(w[0], "profile") == 0 && n == 4)
		given.profiles[given.nprofiles++] =
		    (struct cf_profile){.name = keep(w[1]), .provider = keep(w[2]), .model = keep(w[3])};
	else if (strcmp(w[0], "secret") == 0 && n == 3)
		add_secret(h, w[1], w[2]);
	else if (strcmp(w[0], "missing") == 0 && n == 2)
		given.secrets[given.nsecrets++] = (struct cf_secret){.name = keep(w[1]), .role = "gateway"};
	else if (strcmp(w[0], "timeout") == 0 && n == 2)
		given.timeout_ms = (uint32_t)atoi(w[1]);
	else if (strcmp(w[0], "idle") == 0 && n == 2)
		given.idle_seconds = (uint32_t)atoi(w[1]);
	else if (strcmp(w[0], "whole") == 0 && n == 3) {
		given.stream_seconds = (uint32_t)atoi(w[1]);
		given.stream_bytes = (uint32_t)atoi(w[2]);
	} else if (strcmp(w[0], "beat") == 0 && n == 2)
		given.beat_seconds = (uint32_t)atoi(w[1]);
	else if (strcmp(w[0], "memory") == 0 && n == 2)
		given.memory_bytes = (uint32_t)atoi(w[1]);
	else
		return false;
	printf("ok\n");
	return true;
}

static void obey(struct harness *h, char **w, int n)
{
	struct st_ok ok;

	if (before_start(h, w, n))
		return;
	if (strcmp(w[0], "start") == 0 && n == 3) {
		snprintf(h->dir, sizeof h->dir, "%s", w[1]);
		snprintf(h->bin, sizeof h->bin, "%s", w[2]);
		h->conf_fd = make_conf(h);
		harness_start(h);
	} else if (strcmp(w[0], "masks") == 0 && n == 2) {
		given.masks = (uint8_t)atoi(w[1]);
		close(h->conf_fd);
		h->conf_fd = make_conf(h);
		printf("ok\n");
	} else if (strcmp(w[0], "restart") == 0)
		harness_start_gateway(h);
	else if (strcmp(w[0], "restart_store") == 0) {
		harness_start_stored(h);
		printf("ok %d\n", (int)h->stored);
	} else if (strcmp(w[0], "pids") == 0)
		printf("ok %d %d\n", (int)h->gateway, (int)h->stored);
	else if (strcmp(w[0], "abort") == 0)
		abort_gateway(h);
	else if (strcmp(w[0], "cancel") == 0 && n == 3)
		answer(cancel(h, w));
	else if (strcmp(w[0], "tenant") == 0 && n == 2) {
		struct st_tenant_put m = {.tenant = w[1]};
		answer(st_call_tenant_put(h->admin, &m, NULL, &ok, NULL));
	} else if (strcmp(w[0], "run") == 0 && (n == 5 || n == 6))
		answer(run_create(h, w, n == 6 ? w[5] : "built-in"));
	else if (strcmp(w[0], "begin") == 0 && n == 4)
		answer(run_begin(h, w));
	else if (strcmp(w[0], "finish") == 0 && n == 3)
		answer(run_finish(h, w));
	else if (strcmp(w[0], "revoke") == 0 && n == 3) {
		struct st_cap_revoke m = {.tenant = w[1], .run = w[2]};
		answer(AS(h, ROLE_STEWARD, st_call_cap_revoke(h->steward, &m, NULL, &ok, NULL)));
	} else if (strcmp(w[0], "renew") == 0 && n == 4) {
		struct st_cap_renew m = {
		    .tenant = w[1], .run = w[2], .expires_at = clock_ms() + strtoull(w[3], NULL, 10)};
		answer(AS(h, ROLE_STEWARD, st_call_cap_renew(h->steward, &m, NULL, &ok, NULL)));
	} else if (strcmp(w[0], "open") == 0 && n == 3)
		open_box(h, w);
	else if (strcmp(w[0], "close") == 0 && n == 2) {
		harness_close(h, w[1]);
		printf("ok\n");
	} else if (strcmp(w[0], "show") == 0 && n == 3)
		show(h, w);
	else if (strcmp(w[0], "events") == 0 && n == 3)
		events(h, w);
	else if (strcmp(w[0], "token") == 0 && n >= 5)
		token(h, w, n);
	else if (strcmp(w[0], "kid") == 0) {
		char kid[9];
		token_kid(&h->run_key, kid);
		printf("ok %s\n", kid);
	} else
		printf("err unknown_command\n");
}

/* Lets a program end by itself, so that what it counts and finds at its end is said; not for ever. */
static void end(pid_t pid)
{
	if (pid <= 0)
		return;
	kill(pid, SIGTERM);
	(void)WAIT_FOR(waitpid(pid, NULL, WNOHANG) != 0);
}

int main(void)
{
	static struct harness h;
	static struct buf secrets;
	char *line = NULL, *words[WORDS];
	size_t room = 0;

	log_open("harness");
	signal(SIGPIPE, SIG_IGN);
	if (geteuid() != 0)
		fatal("needs root: the store tells roles by uid");
	/* Cores are allowed where they can be: that there is none is then the program's own doing. */
	struct rlimit core;
	if (getrlimit(RLIMIT_CORE, &core) == 0) {
		core.rlim_cur = core.rlim_max;
		setrlimit(RLIMIT_CORE, &core);
	}
	buf_init(&secrets, 100000);
	h.secrets = &secrets;
	for (int i = 0; i < HARNESS_BOXES; i++)
		h.boxes[i].fd = -1;
	while (getline(&line, &room, stdin) > 0) {
		int n = 0;
		for (char *w = strtok(line, " \n"); w && n < WORDS; w = strtok(NULL, " \n"))
			words[n++] = w;
		if (n == 0)
			continue;
		obey(&h, words, n);
		fflush(stdout);
	}
	free(line);
	end(h.gateway);
	end(h.stored);
	return 0;
}
