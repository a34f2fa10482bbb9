/*
 * pinfold provider list|test: for root. The test is one tiny call that the gateway's own program makes, with the
 * gateway's uid, confinement and key: the key goes from its file through a pipe to that process and is never in this
 * one.
 */
#include "cli/cli.h"
#include "cli/conf_read.h"
#include "lib/chan.h"
#include "lib/conf.h"
#include "lib/own.h"
#include "lib/place.h"
#include "lib/provider_url.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECRET_BYTES = 4096, LINE = 300 };

/* What the test comes to: the gateway's word (gateway/probe.c), what it means, and what to do. */
static const struct verdict {
	const char *word;
	int status;
	const char *what, *remedy;
} verdicts[] = {
    {"ok", EXIT_COMPLETED, "it answers", ""},
    {"no_provider", EXIT_USAGE, "the configuration has no such provider", "pinfold provider list"},
    {"no_model", EXIT_FAILED, "no model_profile names it, so there is no model to ask",
     "write a model_profile with this provider and a model"},
    {"address", EXIT_FAILED, "its base_url is none that may be used",
     "pinfold config check says what is wrong with it"},
    {"key_missing", EXIT_FAILED, "its key is missing, empty or not one line",
     "write the key to the file of its secret below secrets, 0600, root's"},
    {"name", EXIT_UNREACHABLE, "the host's name does not resolve",
     "correct base_url; or look at /etc/resolv.conf: getent hosts NAME asks as the gateway does"},
    {"refused", EXIT_UNREACHABLE, "nobody takes connections there",
     "correct host and port in base_url; or open the firewall"},
    {"timeout", EXIT_UNREACHABLE, "no answer came in time",
     "look at the way there (firewall, routes); or try again later"},
    {"closed", EXIT_UNREACHABLE, "the connection was cut off before an answer",
     "try again; then ask whoever runs the provider"},
    {"tls_authority", EXIT_UNREACHABLE, "its certificate is from an authority that is not trusted here",
     "name the authority's certificates as ca_file of this provider; or install ca-certificates"},
    {"tls_expired", EXIT_UNREACHABLE, "its certificate has expired, or is not good yet",
     "look at this machine's clock (timedatectl); then whoever runs the provider must renew it"},
    {"tls_host", EXIT_UNREACHABLE, "its certificate is for another host",
     "write the host in base_url as the certificate has it"},
    {"tls", EXIT_UNREACHABLE, "no TLS is spoken there, or only what is too old",
     "correct the port in base_url; TLS 1.2 is the least"},
    {"ca_file", EXIT_FAILED, "its ca_file cannot be read by the gateway or holds no certificate",
     "pinfold doctor says which (config.providers)"},
    {"not_http", EXIT_FAILED, "what answers there is no HTTP", "correct host and port in base_url"},
    {"redirect", EXIT_FAILED, "it redirects, which is never followed",
     "write the address that it leads to as base_url"},
    {"key_refused", EXIT_FAILED, "it refuses the key",
     "write a valid key to the file of its secret, then: systemctl reload pinfold"},
    {"not_found", EXIT_FAILED, "it knows no such model or path",
     "correct model in the model_profile; base_url ends in /v1 for most, in /v1beta for Gemini; protocol says which "
     "path is asked"},
    {"busy", EXIT_FAILED, "it asks to come again later, or the account has no credit left",
     "wait; or look at the account's limits"},
    {"provider_error", EXIT_FAILED, "it has a fault of its own", "try again later"},
    {"request_refused", EXIT_FAILED, "it refuses the request",
     "correct model, protocol and output_cap; the status is the provider's"},
    {"not_json", EXIT_FAILED, "it answers, but no JSON", "correct base_url: this is somebody's web page, or a proxy"},
};

static const struct verdict *verdict_of(const char *word)
{
	for (size_t i = 0; i < sizeof verdicts / sizeof *verdicts; i++)
		if (strcmp(verdicts[i].word, word) == 0)
			return &verdicts[i];
	return NULL;
}

/* The configuration as the service would read it, and the memory file with it. */
static bool configuration(struct conf *conf, int *fd)
{
	*fd = bundle_new("pinfold-conf");
	if (*fd < 0 || !conf_read(*fd) || !bundle_seal(*fd))
		return false;
	const char *why = conf_load(conf, *fd);
	if (why != NULL)
		fprintf(stderr, "pinfold: the configuration does not fit together: %s\n", why);
	return why == NULL;
}

static int secret_file(const char *name)
{
	char path[900];

	snprintf(path, sizeof path, "%s/secrets/%s", place_dir(PLACE_SYSCONF), name);
	return open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

static bool key_there(const char *name)
{
	struct stat st;
	own_fd int fd = secret_file(name);
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
}

static void models_of(const struct conf *conf, const char *provider, struct jw *w)
{
	jw_open(w, '[');
	for (uint32_t i = 0; i < conf->nprofiles; i++)
		if (strcmp(conf->profiles[i].provider, provider) == 0)
			jw_str(w, conf->profiles[i].model);
	jw_close(w, ']');
}

static void tell_models(const struct conf *conf, const char *provider)
{
	const char *between = ", ";

	for (uint32_t i = 0; i < conf->nprofiles; i++)
		if (strcmp(conf->profiles[i].provider, provider) == 0) {
			fputs(between, stdout);
			say_cell(conf->profiles[i].model, 0);
			between = " ";
		}
	puts(*between == ',' ? ", no model profile names it" : "");
}

static int list(const struct cli *cli, const struct conf *conf)
{
	own_buf struct buf b;
	struct jw w;

	buf_init(&b, 1 << 20);
	jw_init(&w, &b);
	jw_open(&w, '[');
	for (uint32_t i = 0; i < conf->nproviders; i++) {
		const struct cf_provider *p = &conf->providers[i];
		const char *fault = provider_url_fault(p->base_url, p->allow_plain_loopback);
		const char *key = *p->secret == '\0' ? "none needed" : key_there(p->secret) ? "there" : "missing";
		if (!cli->json) {
			say_cell(p->name, 20);
			say_cell(p->protocol, 10);
			say_cell(p->base_url, 40);
			printf(" key %s%s%s%s", key, p->scripted ? ", scripted" : "",
			       fault != NULL ? ", base_url " : "", fault != NULL ? fault : "");
			tell_models(conf, p->name);
			continue;
		}
		jw_open(&w, '{');
		jw_kstr(&w, "name", p->name);
		jw_kstr(&w, "protocol", p->protocol);
		jw_kstr(&w, "baseUrl", p->base_url);
		jw_kstr(&w, "secret", p->secret);
		jw_kstr(&w, "key", key);
		jw_kbool(&w, "scripted", p->scripted);
		jw_key(&w, "fault");
		if (fault != NULL)
			jw_str(&w, fault);
		else
			jw_null(&w);
		jw_key(&w, "models");
		models_of(conf, p->name, &w);
		jw_close(&w, '}');
	}
	jw_close(&w, ']');
	if (cli->json && !buf_failed(&b))
		say_json((const char *)b.p, b.n);
	return ferror(stdout) ? EXIT_FAILED : 0;
}

/* The key from its file into the pipe as sandboxd passes secrets on, without being looked at here. */
static bool pass_key(int pipe_in, const char *name)
{
	struct stat st;
	uint8_t head[70];
	size_t n = strlen(name);
	own_fd int fd = *name != '\0' ? secret_file(name) : -1;

	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > SECRET_BYTES || n > 64)
		return true; /* the gateway says that it is missing */
	head[0] = (uint8_t)n;
	memcpy(head + 1, name, n);
	head[n + 1] = (uint8_t)(st.st_size >> 8);
	head[n + 2] = (uint8_t)st.st_size;
	return write(pipe_in, head, n + 3) == (ssize_t)(n + 3) &&
	       sendfile(pipe_in, fd, NULL, (size_t)st.st_size) == st.st_size;
}

/* The child's side: the gateway's program with what sandboxd would give it, but no boxes and no store. */
static void become(const struct conf *conf, const char *name, int conf_fd, int secrets, int out)
    __attribute__((noreturn));
static void become(const struct conf *conf, const char *name, int conf_fd, int secrets, int out)
{
	const struct cf_role *role = conf_role(conf, "gateway");
	char program[512], option[] = "--test", self[] = "pinfold-gateway", wanted[200];
	char *argv[] = {self, option, wanted, NULL}, path[] = "PATH=/usr/bin:/bin", *env[] = {path, NULL};

	snprintf(program, sizeof program, "%s/pinfold-gateway", place_dir(PLACE_LIBEXEC));
	snprintf(wanted, sizeof wanted, "%s", name);
	/* Out of the way of each other first. */
	int c = fcntl(conf_fd, F_DUPFD, 64), s = fcntl(secrets, F_DUPFD, 64), o = fcntl(out, F_DUPFD, 64);
	int null = open("/dev/null", O_RDWR);
	if (role == NULL || null < 0 || dup2(null, 0) < 0 || dup2(o, 1) < 0 || dup2(null, CHILD_FD_CONTROL) < 0 ||
	    dup2(c, CHILD_FD_CONFIG) < 0 || dup2(s, CHILD_FD_SECRETS) < 0 ||
	    close_range(CHILD_FD_LISTEN, ~0u, 0) != 0 || setgroups(0, NULL) != 0 ||
	    setresgid(role->gid, role->gid, role->gid) != 0 || setresuid(role->uid, role->uid, role->uid) != 0) {
		fprintf(stderr, "pinfold: cannot become the gateway: %s\n", strerror(errno));
		_exit(1);
	}
	execve(program, argv, env);
	fprintf(stderr, "pinfold: cannot run %s: %s\n", program, strerror(errno));
	_exit(1);
}

/* The gateway's line; false after saying that there is none. */
static bool ask_gateway(const struct conf *conf, const char *name, int conf_fd, char line[LINE])
{
	const struct cf_provider *p = conf_provider(conf, name);
	int keys[2], said[2], status = 0;
	size_t n = 0;

	if (pipe2(keys, O_CLOEXEC) != 0 || pipe2(said, O_CLOEXEC) != 0) {
		say_wrong("pinfold-gateway", strerror(errno));
		return false;
	}
	pid_t pid = fork();
	if (pid == 0)
		become(conf, name, conf_fd, keys[0], said[1]);
	close(keys[0]);
	close(said[1]);
	bool passed = pid > 0 && pass_key(keys[1], p != NULL ? p->secret : "");
	close(keys[1]);
	for (ssize_t got; passed && n < LINE - 1 && (got = read(said[0], line + n, LINE - 1 - n)) > 0;)
		n += (size_t)got;
	close(said[0]);
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (pid > 0)
		waitpid(pid, &status, 0);
	if (n == 0)
		fputs("pinfold: the gateway's program said nothing\n", stderr);
	return n > 0;
}

static int test(const struct cli *cli, const struct conf *conf, const char *name, int conf_fd)
{
	char line[LINE], word[40] = "";
	long status = 0, ms = 0;
	int at = 0;

	if (!ask_gateway(conf, name, conf_fd, line))
		return EXIT_FAILED;
	if (sscanf(line, "%39s %ld %ld %n", word, &status, &ms, &at) < 3)
		at = 0;
	const struct verdict *v = verdict_of(word);
	if (v == NULL) {
		say_wrong("the gateway's program", line);
		return EXIT_FAILED;
	}
	if (cli->json) {
		own_buf struct buf b;
		struct jw w;
		buf_init(&b, 10000);
		jw_init(&w, &b);
		jw_open(&w, '{');
		jw_kstr(&w, "provider", name);
		jw_kbool(&w, "ok", v->status == 0);
		jw_kstr(&w, "outcome", v->word);
		jw_kint(&w, "status", status);
		jw_kint(&w, "ms", ms);
		jw_kstr(&w, "message", v->what);
		jw_kstr(&w, "remedy", v->remedy);
		jw_kstr(&w, "detail", line + at);
		jw_close(&w, '}');
		if (!buf_failed(&b))
			say_json((const char *)b.p, b.n);
		return v->status;
	}
	FILE *to = v->status == 0 ? stdout : stderr;
	fputs("provider ", to);
	say_foreign(to, name, strlen(name));
	fprintf(to, ": %s", v->what);
	if (status > 0)
		fprintf(to, " (status %ld, %ld ms)", status, ms);
	if (at > 0 && line[at] != '\0') {
		fputs(" (", to);
		say_foreign(to, line + at, strlen(line + at));
		fputs(")", to);
	}
	fputs("\n", to);
	if (*v->remedy != '\0')
		fprintf(to, "  -> %s\n", v->remedy);
	return v->status;
}

int cmd_provider(struct cli *cli, int argc, char **argv)
{
	static struct conf conf;
	own_fd int fd = -1;
	bool lists = argc == 2 && strcmp(argv[1], "list") == 0, tests = argc == 3 && strcmp(argv[1], "test") == 0;

	if (!lists && !tests)
		return usage("provider takes: list, or test NAME");
	if (geteuid() != 0)
		return usage("provider is for root: the configuration and the keys are root's");
	if (!configuration(&conf, &fd))
		return EXIT_FAILED;
	int status = lists ? list(cli, &conf) : test(cli, &conf, argv[2], fd);
	conf_free(&conf);
	return status;
}
