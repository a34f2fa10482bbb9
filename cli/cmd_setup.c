/*
 * pinfold setup: what a first start needs, and nothing that is there already. Files first (secrets,
 * configuration); then, when the service runs, the tenant's first tokens. Idempotent: an existing file
 * is never changed, a token file that exists is left alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/admin.h"
#include "cli/cli.h"
#include "cli/conf_example.h"
#include "lib/bridged.h"
#include "lib/digest.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/place.h"
#include "lib/provider_url.h"
#include "lib/secret.h"

struct setup {
	const char *tenant, *base_url, *model, *ca_file, *key_env, *web_group;
	uint64_t uid_base; /* 0: the package's users; else numeric ids from here on (a private instance) */
	bool scripted, url_asked, model_asked;
	const char *token_file, *device_token_file;
};

static bool failed(const char *what)
{
	fprintf(stderr, "pinfold: %s: %s\n", what, strerror(errno));
	return false;
}

bool make_file(const char *path, mode_t mode, const void *text, size_t n)
{
	char temp[PATH_MAX];

	if (access(path, F_OK) == 0)
		return true;
	snprintf(temp, sizeof temp, "%s.new", path);
	unlink(temp);
	own_fd int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0 || fchmod(fd, mode) != 0 || !write_all(fd, text, n) || fsync(fd) != 0 || rename(temp, path) != 0) {
		(void)failed(path);
		if (fd >= 0)
			unlink(temp);
		return false;
	}
	fprintf(stderr, "made %s\n", path);
	return true;
}

/* A file that stays as it is does not say what was asked for now: who asked has to know. */
static void tell_kept(const char *path, const char *asked, const char *then)
{
	size_t n;
	own_free char *is = asked != NULL ? file_read(AT_FDCWD, path, 1 << 20, &n) : NULL;

	if (is == NULL)
		return;
	if (memmem(is, n, asked, strlen(asked)) == NULL)
		fprintf(stderr, "pinfold: %s is there already and stays as it is: %s\n", path, then);
	wipe(is, n);
}

/* asked: what was named on the command line, and the file holds, or NULL. */
static bool make_text(const char *folder, const char *name, struct buf *b, const char *asked)
{
	char path[PATH_MAX];
	bool ok;

	snprintf(path, sizeof path, "%s/%s%s%s", place_dir(PLACE_SYSCONF), folder, folder[0] != '\0' ? "/" : "", name);
	tell_kept(path, asked, "change it there, then pinfold config check and systemctl reload pinfold");
	ok = !buf_failed(b) && make_file(path, 0644, b->p, b->n);
	buf_free(b);
	return ok;
}

static bool make_secrets(const struct setup *s)
{
	static const char *const made[] = {"run-token", "vapid"};
	char path[PATH_MAX], text[64];
	uint8_t key[32];
	const char *value = s->key_env != NULL ? getenv(s->key_env) : NULL;

	snprintf(path, sizeof path, "%s/secrets", place_dir(PLACE_SYSCONF));
	if (!folders_make(path, 0700) || chmod(path, 0700) != 0)
		return failed(path);
	bool ok = true;
	for (size_t i = 0; i < sizeof made / sizeof *made && ok; i++) {
		do /* as a private key of P-256, whose order begins with these four bytes: it is then below it */
			random_bytes(key, sizeof key);
		while (memcmp(key, "\xff\xff\xff\xff", 4) == 0);
		size_t n = b64url_encode(key, sizeof key, text, sizeof text);
		wipe(key, sizeof key);
		snprintf(path, sizeof path, "%s/secrets/%s", place_dir(PLACE_SYSCONF), made[i]);
		ok = make_file(path, 0600, text, n);
		wipe(text, sizeof text);
	}
	snprintf(path, sizeof path, "%s/secrets/provider-default", place_dir(PLACE_SYSCONF));
	if (ok && value != NULL) {
		tell_kept(path, value, "pinfold secret rotate provider-default changes it");
		ok = make_file(path, 0600, value, strlen(value));
	} else if (ok && access(path, F_OK) != 0)
		fprintf(stderr, "pinfold: %s%sput the provider's key into %s (0600) before the first run\n",
			s->key_env != NULL ? s->key_env : "", s->key_env != NULL ? " is not set: " : "", path);
	return ok;
}

/* What "pinfold attack" runs: small limits, so that going beyond them costs little. */
static bool make_attack(void)
{
	struct buf b;

	buf_init(&b, 1 << 16);
	buf_adds(&b, "# The attacks of \"pinfold attack\": an agent like any other, with little to use.\n"
		     "agent \"attack\" {\n\tcommand = {\"/opt/pinfold/pinfold-attacker\"}\n"
		     "\tenvironment = {\"PATH=/usr/local/bin:/usr/bin:/bin\", \"HOME=/tmp\", \"LANG=C.UTF-8\",\n"
		     "\t\t\"PINFOLD_MODEL_ID={model}\", \"PINFOLD_MODEL_GATEWAY_URL={gateway_url}\", "
		     "\"PINFOLD_RUN_ID={run_id}\"}\n"
		     "\tmemory_mb = 64\n\tpids = 32\n\tworkspace_mb = 16\n\tworkspace_inodes = 1500\n}\n"
		     "# The same behind a bridge, of which it says nothing.\n"
		     "agent \"attack-bridged\" {\n"
		     "\tcommand = {\"" BRIDGE_PATH "\", \"opencode\", \"--\", \"/opt/pinfold/pinfold-attacker\"}\n"
		     "\tenvironment = {\"PATH=/usr/local/bin:/usr/bin:/bin\", \"HOME=/tmp\", \"LANG=C.UTF-8\",\n"
		     "\t\t\"PINFOLD_MODEL_GATEWAY_URL={gateway_url}\", \"PINFOLD_RUN_ID={run_id}\"}\n"
		     "\ttoken_delivery = \"wire\"\n}\n");
	if (!make_text("profiles.d", "attack.conf", &b, NULL))
		return false;
	buf_init(&b, 1 << 16);
	buf_adds(&b, "# Who attacks, and who is attacked. Neither has a token but while \"pinfold attack\" runs.\n"
		     "tenant \"attack\" {\n\tagent = \"attack\"\n\tagents = {\"attack-bridged\"}\n"
		     "\tmax_queued_runs = 200\n"
		     "\tcheck {\n\t\targv = {\"git\", \"diff\", \"--check\"}\n\t}\n"
		     "\tcheck {\n\t\targv = {\"/opt/pinfold/pinfold-attacker\", \"check\"}\n\t}\n"
		     "\tcheck {\n\t\targv = {\"/opt/pinfold/pinfold-attacker\", \"spoil\"}\n\t}\n}\n"
		     "tenant \"attack-neighbour\" {\n\tagent = \"attack\"\n"
		     "\tcheck {\n\t\targv = {\"/opt/pinfold/pinfold-attacker\", \"check\"}\n\t}\n}\n");
	return make_text("tenants.d", "attack.conf", &b, NULL);
}

/* A value of the file that is written: text in quotes, or whatever fmt makes. */
static const char *quoted(struct arena *a, const char *v)
{
	const char *text = arena_printf(a, "\"%s\"", v);

	return text != NULL ? text : "";
}

static const char *id_pair(struct arena *a, unsigned long long id)
{
	const char *text = arena_printf(a, "\"%llu:%llu\"", id, id);

	return text != NULL ? text : "";
}

static const char *number(struct arena *a, unsigned long long v)
{
	const char *text = arena_printf(a, "%llu", v);

	return text != NULL ? text : "";
}

static bool make_machine(const struct setup *s, struct arena *a)
{
	static const char *const roles[] = {"stored", "fcgi", "gateway", "steward", "push"};
	static const char *const names[] = {"pinfold-store", "pinfold", "pinfold-gateway", "pinfold-steward",
					    "pinfold-push"};
	enum { ROLES = sizeof roles / sizeof roles[0] };
	unsigned long long base = s->uid_base;
	struct conf_given given[ROLES + 7] = {{NULL, NULL, NULL}};
	size_t n = 0;
	struct buf b;

	for (size_t i = 0; i < ROLES; i++)
		given[n++] =
		    (struct conf_given){"users", roles[i], base != 0 ? id_pair(a, base + 1 + i) : quoted(a, names[i])};
	given[n++] = (struct conf_given){"users", "shared_group", quoted(a, base != 0 ? number(a, base) : "pinfold")};
	given[n++] = (struct conf_given){"machine", "box_uid_base", number(a, base != 0 ? base + 100 : 1879048192)};
	given[n++] = (struct conf_given){"machine", "max_boxes", base != 0 ? "8" : "16"};
	given[n++] = (struct conf_given){"machine", "web_group", quoted(a, s->web_group)};
	given[n++] = (struct conf_given){"machine", "gateway_port", "9797"};
	given[n++] = (struct conf_given){"machine", "run_token_secret", "\"run-token\""};
	buf_init(&b, 1 << 18);
	buf_adds(
	    &b,
	    "# pinfold.conf: see pinfold.conf(5). Secrets are named here, never written here. What is commented out is "
	    "the default.\n\n");
	conf_example(&b, "users", NULL, given);
	buf_addc(&b, '\n');
	conf_example(&b, "machine", NULL, given);
	return make_text("", "pinfold.conf", &b, NULL);
}

static bool make_provider(const struct setup *s, struct arena *a)
{
	struct conf_given given[7] = {{"provider", "protocol", "\"openai\""},
				      {"provider", "base_url", quoted(a, s->base_url)},
				      {"provider", "secret", "\"provider-default\""}};
	size_t n = 3;
	struct buf b;

	if (s->ca_file != NULL)
		given[n++] = (struct conf_given){"provider", "ca_file", quoted(a, s->ca_file)};
	if (strncmp(s->base_url, "http://", 7) == 0)
		given[n++] = (struct conf_given){"provider", "allow_plain_loopback", "yes"};
	if (s->scripted)
		given[n++] = (struct conf_given){"provider", "scripted", "yes"};
	buf_init(&b, 1 << 18);
	conf_example(&b, "provider", "default", given);
	return make_text("providers.d", "default.conf", &b, s->url_asked ? quoted(a, s->base_url) : NULL);
}

static bool make_profiles(const struct setup *s, struct arena *a)
{
	const struct conf_given given[] = {
	    {"model_profile", "provider", "\"default\""},
	    {"model_profile", "model", quoted(a, s->model)},
	    {"agent", "command", "{\"/opt/pinfold/pinfold-agent\"}"},
	    {"agent", "environment",
	     "{\"PATH=/usr/local/bin:/usr/bin:/bin\", \"HOME=/tmp\", \"LANG=C.UTF-8\",\n"
	     "\t\t\"PINFOLD_MODEL_ID={model}\", \"PINFOLD_MODEL_GATEWAY_URL={gateway_url}\", "
	     "\"PINFOLD_RUN_ID={run_id}\"}"},
	    {NULL, NULL, NULL}};
	struct buf b;

	buf_init(&b, 1 << 18);
	conf_example(&b, "model_profile", "default", given);
	buf_adds(&b, "\n# The agent that comes with Pinfold. Its environment is exactly this list.\n");
	conf_example(&b, "agent", "builtin", given);
	return make_text("profiles.d", "default.conf", &b, s->model_asked ? quoted(a, s->model) : NULL);
}

static bool make_tenant(const struct setup *s)
{
	static const struct conf_given given[] = {
	    {"tenant", "agent", "\"builtin\""}, {"tenant", "model_profile", "\"default\""}, {NULL, NULL, NULL}};
	struct buf b;

	buf_init(&b, 1 << 18);
	conf_example(&b, "tenant", s->tenant, given);
	return make_text("tenants.d", "default.conf", &b, NULL);
}

static bool make_probe(void)
{
	struct buf b;

	buf_init(&b, 1 << 16);
	buf_adds(&b, "# For \"pinfold doctor\": an agent that does nothing, while its box is looked at from outside.\n"
		     "agent \"probe\" {\n\tcommand = {\"/usr/bin/sleep\", \"60\"}\n\tmemory_mb = 32\n\tpids = 8\n"
		     "\tworkspace_mb = 4\n\tworkspace_inodes = 200\n}\n");
	return make_text("profiles.d", "probe.conf", &b, NULL);
}

static bool make_conf(const struct setup *s)
{
	own_arena struct arena a;

	arena_init(&a, 1 << 16);
	return make_machine(s, &a) && make_provider(s, &a) && make_profiles(s, &a) && make_attack() && make_probe() &&
	       make_tenant(s);
}

/* Writes a token of the running service into a new 0600 file; leaves an existing one alone. */
static int make_token(const struct setup *s, const char *file, enum principal_kind kind, const char *label)
{
	if (file == NULL || access(file, F_OK) == 0)
		return 0;
	int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		failed(file);
		return 1;
	}
	struct ask *a = admin_open();
	enum err e = admin_token(a, s->tenant, kind, label, 0, 0, fd);
	close(fd);
	if (e != ERR_OK) {
		unlink(file);
		return admin_failed(a, e);
	}
	ask_free(a);
	return 0;
}

static int setup_help(void)
{
	puts("usage: pinfold setup [--tenant NAME] [--base-url URL] [--model NAME] [--ca-file F] [--provider-key-env "
	     "NAME]\n"
	     "                     [--scripted] [--uid-base N] [--web-group G] [--token-file F] [--device-token-file "
	     "F]\n\n"
	     "Makes secrets and configuration where there are none. With --token-file (and the service running) also\n"
	     "the tenant's first API token. Run it as root; run it as often as you like.");
	return 0;
}

int cmd_setup(struct cli *cli, int argc, char **argv)
{
	static const struct option options[] = {{"tenant", required_argument, NULL, 't'},
						{"base-url", required_argument, NULL, 'b'},
						{"model", required_argument, NULL, 'm'},
						{"ca-file", required_argument, NULL, 'c'},
						{"provider-key-env", required_argument, NULL, 'k'},
						{"scripted", no_argument, NULL, 's'},
						{"uid-base", required_argument, NULL, 'u'},
						{"web-group", required_argument, NULL, 'g'},
						{"token-file", required_argument, NULL, 'T'},
						{"device-token-file", required_argument, NULL, 'D'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	struct setup s = {.tenant = "default",
			  .base_url = "https://api.openai.com/v1",
			  .model = "gpt-4.1-mini",
			  .web_group = "www-data"};
	int opt;

	(void)cli;
	optind = 1;
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		const char **text = opt == 't'   ? &s.tenant
				    : opt == 'b' ? &s.base_url
				    : opt == 'm' ? &s.model
				    : opt == 'c' ? &s.ca_file
				    : opt == 'k' ? &s.key_env
				    : opt == 'g' ? &s.web_group
				    : opt == 'T' ? &s.token_file
				    : opt == 'D' ? &s.device_token_file
						 : NULL;
		s.url_asked |= opt == 'b';
		s.model_asked |= opt == 'm';
		if (text != NULL)
			*text = optarg;
		else if (opt == 's')
			s.scripted = true;
		else if (opt == 'h')
			return setup_help();
		else if (opt != 'u' || !num_u64(optarg, strlen(optarg), 65536, 4294000000u, &s.uid_base))
			return usage(opt == 'u' ? "--uid-base takes a number from 65536 on"
						: "setup does not know that option, or it lacks its value");
	}
	if (optind < argc)
		return usage("setup does not take %s", argv[optind]);
	for (const char *const *v = (const char *const[]){s.base_url, s.model, s.tenant, s.web_group, s.ca_file, NULL};
	     *v != NULL; v++)
		if (strpbrk(*v, "\"\\\n${}") != NULL)
			return usage("setup: a value may not hold quotes, backslashes, braces or dollar signs");
	const char *fault = provider_url_fault(s.base_url, true);
	if (fault != NULL)
		return usage("--base-url %s", fault);
	if (geteuid() != 0)
		return usage("setup must be run by root");
	umask(022);
	char dir[PATH_MAX];
	static const char *const folders[] = {"", "/providers.d", "/profiles.d", "/tenants.d"};
	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		snprintf(dir, sizeof dir, "%s%s", place_dir(PLACE_SYSCONF), folders[i]);
		if (!folders_make(dir, 0755)) {
			failed(dir);
			return EXIT_FAILED;
		}
	}
	if (!make_secrets(&s) || !make_conf(&s))
		return EXIT_FAILED;
	if (make_token(&s, s.token_file, PRINCIPAL_API, "first token") != 0)
		return EXIT_FAILED;
	return make_token(&s, s.device_token_file, PRINCIPAL_DEVICE, "first device");
}
