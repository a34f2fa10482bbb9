/*
 * Configuration files in, typed messages out. Trusts nothing in them: every value is bounded here,
 * again by the codec, and again by conf_load() in each process.
 */
#include "cli/conf_read.h"

#include <confuse.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/conf_msg.h"
#include "lib/buf.h"
#include "lib/chan.h"
#include "lib/conf.h"
#include "lib/contact.h"
#include "lib/endpoint.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/place.h"
#include "lib/text.h"
#include "lib/token.h"

struct out {
	int fd;
	bool bad;
	const char *file;
	unsigned tenants, providers, profiles, agents;
	/* The secrets that were written: several providers may have one key. */
	struct told {
		char name[130];
		const char *role;
		bool signs;
	} told[CONF_SECRETS];
	unsigned ntold;
};

/* Both may hold what stands in a file. */
static void complain_of(const char *place, const char *text)
{
	own_buf struct buf b;

	buf_init(&b, 16384);
	text_log(&b, place, strlen(place), 2400);
	buf_adds(&b, ": ");
	text_log(&b, text, strlen(text), 8192);
	fprintf(stderr, "%s\n", buf_cstr(&b) != NULL ? buf_cstr(&b) : "");
}

static void complain(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void complain(struct out *o, const char *fmt, ...)
{
	va_list ap;
	char text[2048];

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	complain_of(o->file, text);
	o->bad = true;
}

/* libconfuse's error callback has no place for our own data. */
static const char *file_now;

static void report(cfg_t *cfg, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
static void report(cfg_t *cfg, const char *fmt, va_list ap)
{
	char text[512], place[600];

	vsnprintf(text, sizeof text, fmt, ap);
	snprintf(place, sizeof place, "%s:%d", file_now, cfg->line);
	if (strstr(text, "end_of_file") == NULL) /* our own last line, in a section that was left open */
		complain_of(place, text);
}

static uint8_t frame[CF_MAXFRAME];

static void emit(struct out *o, size_t n, const char *what)
{
	if (n == 0)
		complain(o,
			 "%s: a value is longer than permitted, or a name has other characters than A-Z a-z 0-9 . _ -",
			 what);
	else if (!bundle_add(o->fd, frame, n))
		complain(o, "cannot write: %s", strerror(errno));
}

#define EMIT(o, message, ...) \
	emit((o), cf_put_##message(frame, sizeof frame, 0, &(struct cf_##message){__VA_ARGS__}), #message)

/* A number of the file within bounds; complains and gives the lower bound otherwise. */
static uint64_t number(struct out *o, cfg_t *c, const char *name, long min, long max)
{
	long v = cfg_getint(c, name);

	if (v < min || v > max) {
		complain(o, "%s must be a number from %ld to %ld, not %ld", name, min, max, v);
		return (uint64_t)min;
	}
	return (uint64_t)v;
}

/* "name" of a user, or "UID:GID". */
static void role(struct out *o, cfg_t *c, const char *name)
{
	const char *v = cfg_getstr(c, name);
	const char *colon = strchr(v, ':');
	uint64_t uid, gid;

	if (colon != NULL && num_u64(v, (size_t)(colon - v), 1, 4294967294u, &uid) &&
	    num_u64(colon + 1, strlen(colon + 1), 1, 4294967294u, &gid)) {
		EMIT(o, role, .name = name, .uid = (uint32_t)uid, .gid = (uint32_t)gid);
		return;
	}
	const struct passwd *pw = getpwnam(v);
	if (pw == NULL) {
		complain(o, "users.%s: there is no user \"%s\": create it (see pinfold-sandboxd(8)) or write UID:GID",
			 name, v);
		return;
	}
	EMIT(o, role, .name = name, .uid = pw->pw_uid, .gid = pw->pw_gid);
}

static uint32_t group(struct out *o, const char *name, const char *v)
{
	uint64_t gid;

	if (num_u64(v, strlen(v), 1, 4294967294u, &gid))
		return (uint32_t)gid;
	const struct group *gr = getgrnam(v);
	if (gr == NULL) {
		complain(o, "%s: there is no group \"%s\"", name, v);
		return 0;
	}
	return gr->gr_gid;
}

static uint32_t strings(struct out *o, cfg_t *c, const char *name, const char **v, unsigned max)
{
	unsigned n = cfg_size(c, name);

	if (n > max) {
		complain(o, "%s has %u values, at most %u are possible", name, n, max);
		n = max;
	}
	for (unsigned i = 0; i < n; i++)
		v[i] = cfg_getnstr(c, name, i);
	return n;
}

static void secret(struct out *o, const char *name, const char *role_name, uint32_t least)
{
	if (strchr(name, '/') != NULL || name[0] == '.' || strlen(name) >= sizeof o->told->name) {
		complain(o, "secret \"%s\": a secret is named by its file's name alone", name);
		return;
	}
	/* A signing secret is nobody else's. */
	if (strcmp(name, "vapid") == 0 && strcmp(role_name, "push") != 0)
		complain(o, "secret \"%s\" is named for two purposes: each signing secret has a file of its own", name);
	for (unsigned i = 0; i < o->ntold; i++) {
		struct told *t = &o->told[i];
		if (strcmp(t->name, name) != 0 || strcmp(t->role, role_name) != 0)
			continue;
		/* What signs tokens must not be what a provider is sent, nor both the old secret and the next. */
		if (t->signs || least > 0)
			complain(o,
				 "secret \"%s\" is named for two purposes: each signing secret has a file of its own",
				 name);
		return;
	}
	if (o->ntold == CONF_SECRETS) {
		complain(o, "more than %d secrets are named", CONF_SECRETS);
		return;
	}
	struct told *t = &o->told[o->ntold++];
	snprintf(t->name, sizeof t->name, "%s", name);
	t->role = role_name;
	t->signs = least > 0;
	EMIT(o, secret, .name = name, .role = role_name, .least = least);
}

/*
 * libconfuse takes the end of a file for the end of any section, so that a file cut short would pass.
 * The text is therefore parsed with one more setting behind it that only the top level knows.
 */
#define LAST_LINE "\nend_of_file = yes\n"

static cfg_t *parse(struct out *o, cfg_opt_t *opts, const char *file)
{
	own_buf struct buf text;
	size_t n;
	own_free char *read = file_read(AT_FDCWD, file, 1000000, &n);

	o->file = file_now = file;
	buf_init(&text, 1100000);
	if (read == NULL) {
		complain(o, "cannot be read: %s: run \"pinfold setup\" or restore the file", strerror(errno));
		return NULL;
	}
	bool binary = memchr(read, '\0', n) != NULL;
	conf_plain(read);
	buf_add(&text, read, n);
	buf_adds(&text, LAST_LINE);
	if (binary || buf_failed(&text)) {
		complain(o, "is not a text file");
		return NULL;
	}
	cfg_t *cfg = cfg_init(opts, CFGF_NONE);
	cfg_set_error_function(cfg, report);
	if (cfg_parse_buf(cfg, buf_cstr(&text)) == CFG_SUCCESS && cfg_getbool(cfg, "end_of_file") == cfg_true)
		return cfg;
	complain(o, "has an error or ends in the middle of a section");
	cfg_free(cfg);
	return NULL;
}

/* As browsers write it: no path, no user, and no port that is the scheme's own. Empty is none. */
static bool origin_plain(const char *s)
{
	bool tls = strncmp(s, "https://", 8) == 0;
	if (*s == '\0')
		return true;
	if (!tls && strncmp(s, "http://", 7) != 0)
		return false;
	const char *host = s + (tls ? 8 : 7), *port;
	size_t n = *host == '[' ? strspn(host + 1, "0123456789abcdef:") + 2
				: strspn(host, "0123456789abcdefghijklmnopqrstuvwxyz.-");
	if (n == 0 || (*host == '[' && host[n - 1] != ']'))
		return false;
	port = host + n;
	if (*port == '\0')
		return true;
	uint64_t v;
	return *port == ':' && num_u64(port + 1, strlen(port + 1), 1, 65535, &v) && v != (tls ? 443 : 80);
}

/* Where an agent's text is masked. */
static uint8_t masks(struct out *o, const char *word)
{
	static const char *const words[] = {
	    [MASK_QUESTIONS] = "questions", [MASK_EVENTS] = "events", [MASK_NONE] = "none"};

	for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
		if (strcmp(word, words[i]) == 0)
			return (uint8_t)i;
	complain(o, "mask_secrets must be questions, events or none");
	return MASK_QUESTIONS;
}

static void take_global(struct out *o, cfg_t *c)
{
	static const char *const roles[] = {"stored", "fcgi", "gateway", "steward", "push"};
	cfg_t *u = cfg_getsec(c, "users");

	struct cf_global m = {.run_dir = place_dir(PLACE_RUN),
			      .state_dir = place_dir(PLACE_STATE),
			      .log_dir = place_dir(PLACE_LOG),
			      .libexec_dir = place_dir(PLACE_LIBEXEC),
			      .web_gid = group(o, "web_group", cfg_getstr(c, "web_group")),
			      .gateway_port = (uint16_t)number(o, c, "gateway_port", 1024, 65535),
			      .box_uid_base = (uint32_t)number(o, c, "box_uid_base", 65536, 4294900000),
			      .max_boxes = (uint32_t)number(o, c, "max_boxes", 1, 512),
			      .max_concurrent_runs = (uint32_t)number(o, c, "max_concurrent_runs", 0, 512),
			      .queue_seconds = (uint32_t)number(o, c, "queue_seconds", 1, 30 * 86400),
			      .fcgi_threads = (uint32_t)number(o, c, "fcgi_threads", 2, 512),
			      .fcgi_threads_max = (uint32_t)number(o, c, "fcgi_threads_max", 2, 512),
			      .request_deadline_ms = (uint32_t)number(o, c, "request_deadline_ms", 500, 600000),
			      .model_timeout_ms = (uint32_t)number(o, c, "model_timeout_ms", 100, 600000),
			      .audit_redact = strcmp(cfg_getstr(c, "audit_content"), "none") == 0,
			      .mask_secrets = masks(o, cfg_getstr(c, "mask_secrets")),
			      .audit_max_bytes = (uint32_t)number(o, c, "audit_max_bytes", 4096, 1 << 30),
			      .audit_generations = (uint32_t)number(o, c, "audit_generations", 1, 99),
			      .keep_artifacts_days = (uint32_t)number(o, c, "keep_artifacts_days", 0, 36500),
			      .keep_runs_days = (uint32_t)number(o, c, "keep_runs_days", 0, 36500),
			      .keep_tokens_days = (uint32_t)number(o, c, "keep_tokens_days", 0, 36500),
			      .max_streams = (uint32_t)number(o, c, "max_streams", 1, 100000),
			      .auth_failures_per_minute =
				  (uint32_t)number(o, c, "auth_failures_per_minute", 1, 1000000),
			      .log_path = cfg_getstr(c, "log_path"),
			      .public_url = cfg_getstr(c, "public_url"),
			      .run_token_secret = cfg_getstr(c, "run_token_secret"),
			      .run_token_secret_next = cfg_getstr(c, "run_token_secret_next"),
			      .push_per_minute = (uint32_t)number(o, c, "push_per_minute", 1, 1000),
			      .push_per_hour = (uint32_t)number(o, c, "push_per_hour", 1, 1000)};
	m.push_hosts_n = strings(o, c, "push_hosts", m.push_hosts, 32);
	for (uint32_t i = 0; i < m.push_hosts_n; i++)
		if (!endpoint_pattern(m.push_hosts[i]))
			complain(o, "push_hosts: \"%s\" is neither a host's name nor \"*.name\" nor \"*\"",
				 m.push_hosts[i]);
	static const char *const places[] = {"stderr", "journal", "syslog", "file"}; /* in the order of enum log_to */
	while (m.log_to < 4 && strcmp(places[m.log_to], cfg_getstr(c, "log_to")) != 0)
		m.log_to++;
	if (m.log_to == 4)
		complain(o, "log_to must be stderr, journal, syslog or file");
	emit(o, cf_put_global(frame, sizeof frame, 0, &m), "global");
	if (!origin_plain(cfg_getstr(c, "public_url")))
		complain(o, "public_url must be an origin, as \"https://host\" or \"https://host:port\"");
	if (cfg_getstr(c, "run_token_secret")[0] == '\0')
		complain(o, "run_token_secret must name a secret");
	if (strcmp(cfg_getstr(c, "audit_content"), "none") != 0 && strcmp(cfg_getstr(c, "audit_content"), "full") != 0)
		complain(o, "audit_content must be full or none");
	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
		role(o, u, roles[i]);
	EMIT(o, shared_gid, .gid = group(o, "users.shared_group", cfg_getstr(u, "shared_group")));
	secret(o, cfg_getstr(c, "run_token_secret"), "steward", TOKEN_SECRET_MIN);
	secret(o, cfg_getstr(c, "run_token_secret"), "gateway", TOKEN_SECRET_MIN);
	if (cfg_getstr(c, "run_token_secret_next")[0] != '\0')
		secret(o, cfg_getstr(c, "run_token_secret_next"), "gateway", TOKEN_SECRET_MIN);
}

static void take_push(struct out *o, cfg_t *c)
{
	struct cf_push m = {.contact = cfg_getstr(c, "push_contact"),
			    .ca_file = cfg_getstr(c, "push_ca_file"),
			    .unsafe_loopback_port = (uint16_t)number(o, c, "push_unsafe_loopback_port", 0, 65535)};
	if (m.contact[0] != '\0' && !contact_valid(m.contact))
		complain(o, "push_contact must be as \"mailto:name@host\" or \"https://host/page\"");
	emit(o, cf_put_push(frame, sizeof frame, 0, &m), "push");
	secret(o, "vapid", "push", 0);
}

static void take_provider(struct out *o, cfg_t *p)
{
	if (strcmp(cfg_getstr(p, "protocol"), "openai") != 0)
		complain(o, "provider %s: protocol must be openai", cfg_title(p));
	if (cfg_getstr(p, "base_url")[0] == '\0')
		complain(o, "provider %s: base_url is missing", cfg_title(p));
	if (cfg_getstr(p, "secret")[0] != '\0')
		secret(o, cfg_getstr(p, "secret"), "gateway", 0);
	EMIT(o, provider, .name = cfg_title(p), .protocol = cfg_getstr(p, "protocol"),
	     .base_url = cfg_getstr(p, "base_url"), .ca_file = cfg_getstr(p, "ca_file"),
	     .secret = cfg_getstr(p, "secret"),
	     .allow_plain_loopback = cfg_getbool(p, "allow_plain_loopback") == cfg_true,
	     .scripted = cfg_getbool(p, "scripted") == cfg_true);
	o->providers++;
}

static void take_profile(struct out *o, cfg_t *p)
{
	if (cfg_getstr(p, "model")[0] == '\0')
		complain(o, "model_profile %s: model is missing", cfg_title(p));
	EMIT(o, profile, .name = cfg_title(p), .provider = cfg_getstr(p, "provider"), .model = cfg_getstr(p, "model"));
	o->profiles++;
}

static void take_agent(struct out *o, cfg_t *a)
{
	struct cf_agent m = {.name = cfg_title(a),
			     .policy = cfg_getstr(a, "policy"),
			     .model_token_file = cfg_getstr(a, "model_token_file"),
			     .event_token_file = cfg_getstr(a, "event_token_file"),
			     .approval_token_file = cfg_getstr(a, "approval_token_file"),
			     .memory_bytes = number(o, a, "memory_mb", 32, 1 << 20) * 1000000,
			     .pids = (uint32_t)number(o, a, "pids", 4, 4096),
			     .workspace_bytes = number(o, a, "workspace_mb", 4, 1 << 16) * 1000000,
			     .workspace_inodes = (uint32_t)number(o, a, "workspace_inodes", 200, 10000000),
			     .output_bytes = (uint32_t)number(o, a, "output_bytes", 1000, 1000000),
			     .extra_requests = (uint32_t)number(o, a, "extra_requests", 2, 1000),
			     .cpu_seconds = (uint32_t)number(o, a, "cpu_seconds", 0, 7 * 86400),
			     .file_bytes = number(o, a, "file_mb", 0, 1 << 16) * 1000000,
			     .open_files = (uint32_t)number(o, a, "open_files", 16, 1024)};

	m.token_wire = strcmp(cfg_getstr(a, "token_delivery"), "wire") == 0;
	if (!m.token_wire && strcmp(cfg_getstr(a, "token_delivery"), "files") != 0)
		complain(o, "agent %s: token_delivery must be files or wire", m.name);
	m.upload_always = strcmp(cfg_getstr(a, "upload_tests"), "always") == 0;
	if (!m.upload_always && strcmp(cfg_getstr(a, "upload_tests"), "doubt") != 0)
		complain(o, "agent %s: upload_tests must be doubt or always", m.name);
	if (m.file_bytes == 0 || m.file_bytes > m.workspace_bytes)
		m.file_bytes = m.workspace_bytes;

	m.argv_n = strings(o, a, "command", m.argv, 16);
	m.env_n = strings(o, a, "environment", m.env, 32);
	if (m.argv_n == 0 || m.argv[0][0] != '/')
		complain(o, "agent %s: command must begin with an absolute path inside the sandbox", m.name);
	if (strcmp(m.policy, "strict") != 0)
		complain(o, "agent %s: policy must be strict", m.name);
	for (uint32_t i = 0; i < m.env_n; i++)
		if (strchr(m.env[i], '=') == NULL)
			complain(o, "agent %s: environment holds NAME=value, not \"%s\"", m.name, m.env[i]);
	emit(o, cf_put_agent(frame, sizeof frame, 0, &m), "agent");
	o->agents++;
}

static void take_tenant(struct out *o, cfg_t *t)
{
	/* What a tenant may run where its file names no check. */
	static const struct cf_tenant_check defaults[] = {
	    {.argv_n = 3, .argv = {"git", "diff", "--check"}},
	    {.argv_n = 4, .argv = {"python3", "-m", "pytest", "-q"}},
	    {.argv_n = 5, .argv = {"python3", "-m", "compileall", "-q", "."}},
	    {.argv_n = 4, .argv = {"python3", "-m", "unittest", "discover"}},
	};
	struct cf_tenant m = {.name = cfg_title(t),
			      .default_agent = cfg_getstr(t, "agent"),
			      .default_profile = cfg_getstr(t, "model_profile"),
			      .max_steps = (uint32_t)number(o, t, "max_steps", 1, 1000),
			      .max_wall_seconds = (uint32_t)number(o, t, "max_wall_seconds", 1, 86400),
			      .check_seconds = (uint32_t)number(o, t, "check_seconds", 1, 3600),
			      .max_concurrent_runs = (uint32_t)number(o, t, "max_concurrent_runs", 1, 512),
			      .max_queued_runs = (uint32_t)number(o, t, "max_queued_runs", 1, 100000),
			      .max_streams = (uint32_t)number(o, t, "max_streams", 1, 100000),
			      .max_runs_hour = (uint32_t)number(o, t, "max_runs_hour", 0, 1000000),
			      .max_stored_bytes = number(o, t, "max_stored_mb", 0, 1 << 20) * 1000000,
			      .max_model_requests_day = number(o, t, "max_model_requests_day", 0, 1000000000),
			      .max_tokens_day = number(o, t, "max_tokens_day", 0, 1000000000000)};
	m.profiles_n = strings(o, t, "model_profiles", m.profiles, 32);
	m.agents_n = strings(o, t, "agents", m.agents, 32);
	m.extensions_n = strings(o, t, "extensions", m.extensions, 64);
	size_t n = cf_put_tenant(frame, sizeof frame, 0, &m);
	emit(o, n, "tenant");
	if (n == 0)
		return; /* its checks would only say the same again */
	unsigned checks = cfg_size(t, "check");
	for (unsigned k = 0; k < checks; k++) {
		struct cf_tenant_check e = {.tenant = m.name};
		e.argv_n = strings(o, cfg_getnsec(t, "check", k), "argv", e.argv, 16);
		if (e.argv_n == 0)
			complain(o, "tenant %s: a check without argv", m.name);
		emit(o, cf_put_tenant_check(frame, sizeof frame, 0, &e), "check");
	}
	for (size_t k = 0; checks == 0 && k < sizeof defaults / sizeof *defaults; k++) {
		struct cf_tenant_check e = defaults[k];
		e.tenant = m.name;
		emit(o, cf_put_tenant_check(frame, sizeof frame, 0, &e), "check");
	}
	o->tenants++;
}

/* What every file may hold, and pinfold.conf besides its own settings. */
static void read_file(struct out *o, const char *file, bool global)
{
	cfg_opt_t users[] = {CFG_STR("stored", "pinfold-store", CFGF_NONE),
			     CFG_STR("fcgi", "pinfold", CFGF_NONE),
			     CFG_STR("gateway", "pinfold-gateway", CFGF_NONE),
			     CFG_STR("steward", "pinfold-steward", CFGF_NONE),
			     CFG_STR("push", "pinfold-push", CFGF_NONE),
			     CFG_STR("shared_group", "pinfold", CFGF_NONE),
			     CFG_END()};
	cfg_opt_t provider[] = {CFG_STR("protocol", "openai", CFGF_NONE),
				CFG_STR("base_url", "", CFGF_NONE),
				CFG_STR("ca_file", "", CFGF_NONE),
				CFG_STR("secret", "", CFGF_NONE),
				CFG_BOOL("allow_plain_loopback", cfg_false, CFGF_NONE),
				CFG_BOOL("scripted", cfg_false, CFGF_NONE),
				CFG_END()};
	cfg_opt_t profile[] = {CFG_STR("provider", "default", CFGF_NONE), CFG_STR("model", "", CFGF_NONE), CFG_END()};
	cfg_opt_t agent[] = {CFG_STR_LIST("command", "{}", CFGF_NONE),
			     CFG_STR_LIST("environment", "{}", CFGF_NONE),
			     CFG_STR("policy", "strict", CFGF_NONE),
			     CFG_STR("model_token_file", ".pinfold-run-token", CFGF_NONE),
			     CFG_STR("event_token_file", ".pinfold-event-token", CFGF_NONE),
			     CFG_STR("approval_token_file", ".pinfold-approval-token", CFGF_NONE),
			     CFG_INT("memory_mb", 1024, CFGF_NONE),
			     CFG_INT("pids", 256, CFGF_NONE),
			     CFG_INT("workspace_mb", 256, CFGF_NONE),
			     CFG_INT("workspace_inodes", 20000, CFGF_NONE),
			     CFG_INT("output_bytes", 200000, CFGF_NONE),
			     CFG_INT("extra_requests", 2, CFGF_NONE),
			     CFG_STR("token_delivery", "files", CFGF_NONE),
			     CFG_STR("upload_tests", "doubt", CFGF_NONE),
			     CFG_INT("cpu_seconds", 0, CFGF_NONE),
			     CFG_INT("file_mb", 0, CFGF_NONE),
			     CFG_INT("open_files", 1024, CFGF_NONE),
			     CFG_END()};
	cfg_opt_t check[] = {CFG_STR_LIST("argv", "{}", CFGF_NONE), CFG_END()};
	cfg_opt_t tenant[] = {
	    CFG_STR("agent", "builtin", CFGF_NONE),
	    CFG_STR("model_profile", "default", CFGF_NONE),
	    CFG_STR_LIST("extensions", "{.py, .toml, .md, .txt, .json, .yaml, .yml, .ini, .cfg}", CFGF_NONE),
	    CFG_INT("max_steps", 20, CFGF_NONE),
	    CFG_INT("max_wall_seconds", 220, CFGF_NONE),
	    CFG_INT("check_seconds", 60, CFGF_NONE),
	    CFG_INT("max_concurrent_runs", 4, CFGF_NONE),
	    CFG_INT("max_queued_runs", 100, CFGF_NONE),
	    CFG_INT("max_streams", 200, CFGF_NONE),
	    CFG_INT("max_runs_hour", 2000, CFGF_NONE),
	    CFG_INT("max_stored_mb", 4000, CFGF_NONE),
	    CFG_INT("max_model_requests_day", 50000, CFGF_NONE),
	    CFG_INT("max_tokens_day", 0, CFGF_NONE),
	    CFG_STR_LIST("model_profiles", "{}", CFGF_NONE),
	    CFG_STR_LIST("agents", "{}", CFGF_NONE),
	    CFG_SEC("check", check, CFGF_MULTI),
	    CFG_END()};
	cfg_opt_t opts[] = {
	    CFG_SEC("provider", provider, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES),
	    CFG_SEC("model_profile", profile, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES),
	    CFG_SEC("agent", agent, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES),
	    CFG_SEC("tenant", tenant, CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES),
	    CFG_BOOL("end_of_file", cfg_false, CFGF_NONE),
	    /* Only pinfold.conf has what follows; elsewhere the list ends here. */
	    global ? (cfg_opt_t)CFG_SEC("users", users, CFGF_NONE) : (cfg_opt_t)CFG_END(),
	    CFG_STR("web_group", "www-data", CFGF_NONE),
	    CFG_INT("gateway_port", 9797, CFGF_NONE),
	    CFG_INT("box_uid_base", 1879048192, CFGF_NONE),
	    CFG_INT("max_boxes", 16, CFGF_NONE),
	    CFG_INT("max_concurrent_runs", 0, CFGF_NONE),
	    CFG_INT("queue_seconds", 3600, CFGF_NONE),
	    CFG_INT("fcgi_threads", 16, CFGF_NONE),
	    CFG_INT("fcgi_threads_max", 256, CFGF_NONE),
	    CFG_INT("request_deadline_ms", 20000, CFGF_NONE),
	    CFG_INT("model_timeout_ms", 120000, CFGF_NONE),
	    CFG_STR("audit_content", "full", CFGF_NONE),
	    CFG_STR("mask_secrets", "questions", CFGF_NONE),
	    CFG_INT("audit_max_bytes", 5 << 20, CFGF_NONE),
	    CFG_INT("audit_generations", 5, CFGF_NONE),
	    CFG_INT("keep_artifacts_days", 7, CFGF_NONE),
	    CFG_INT("keep_runs_days", 90, CFGF_NONE),
	    CFG_INT("keep_tokens_days", 90, CFGF_NONE),
	    CFG_INT("max_streams", 4000, CFGF_NONE),
	    CFG_INT("auth_failures_per_minute", 60, CFGF_NONE),
	    CFG_STR("log_to", "stderr", CFGF_NONE),
	    CFG_STR("log_path", "", CFGF_NONE),
	    CFG_STR("public_url", "", CFGF_NONE),
	    CFG_STR("run_token_secret", "run-token", CFGF_NONE),
	    CFG_STR("run_token_secret_next", "", CFGF_NONE),
	    CFG_STR_LIST("push_hosts",
			 "{\"fcm.googleapis.com\", \"*.push.services.mozilla.com\", \"*.notify.windows.com\", "
			 "\"web.push.apple.com\", \"*.push.apple.com\"}",
			 CFGF_NONE),
	    CFG_INT("push_per_minute", 10, CFGF_NONE),
	    CFG_INT("push_per_hour", 30, CFGF_NONE),
	    CFG_STR("push_contact", "", CFGF_NONE),
	    CFG_STR("push_ca_file", "", CFGF_NONE),
	    CFG_INT("push_unsafe_loopback_port", 0, CFGF_NONE),
	    CFG_END(),
	};
	static const struct {
		const char *section;
		void (*take)(struct out *, cfg_t *);
	} sections[] = {{"provider", take_provider},
			{"model_profile", take_profile},
			{"agent", take_agent},
			{"tenant", take_tenant}};
	cfg_t *c = parse(o, opts, file);

	if (c == NULL)
		return;
	if (global) {
		take_global(o, c);
		take_push(o, c);
	}
	for (size_t k = 0; k < sizeof sections / sizeof *sections; k++)
		for (unsigned i = 0; i < cfg_size(c, sections[k].section); i++)
			sections[k].take(o, cfg_getnsec(c, sections[k].section, i));
	cfg_free(c);
}

static int is_conf(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return d->d_name[0] != '.' && n > 5 && strcmp(d->d_name + n - 5, ".conf") == 0;
}

static void read_folder(struct out *o, const char *folder)
{
	char dir[512], file[1024];
	struct dirent **list;
	int n;

	snprintf(dir, sizeof dir, "%s/%s", place_dir(PLACE_SYSCONF), folder);
	n = scandir(dir, &list, is_conf, alphasort);
	if (n < 0) {
		o->file = dir;
		complain(o, "cannot be read: %s", strerror(errno));
		o->file = folder;
		return;
	}
	for (int i = 0; i < n; i++) {
		snprintf(file, sizeof file, "%s/%s", dir, list[i]->d_name);
		read_file(o, file, false);
		free(list[i]);
	}
	free(list);
	o->file = folder; /* not the names above, which end here */
}

bool conf_read(int fd)
{
	static const char *const folders[] = {"providers.d", "profiles.d", "tenants.d"};
	struct out o = {.fd = fd};
	char file[512];

	snprintf(file, sizeof file, "%s/pinfold.conf", place_dir(PLACE_SYSCONF));
	read_file(&o, file, true);
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
		read_folder(&o, folders[i]);
	o.file = place_dir(PLACE_SYSCONF);
	if (!o.bad && (o.tenants == 0 || o.providers == 0 || o.profiles == 0 || o.agents == 0))
		complain(&o, "needs at least one provider, model_profile, agent and tenant: run \"pinfold setup\"");
	EMIT(&o, end, .nothing = 0);
	return !o.bad;
}
