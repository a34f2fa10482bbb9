/*
 * What "pinfold agent test" needs for the time of the test: the scripted model as a process of nobody's, a file that
 * names it as the provider of a tenant of the test's own, its made-up key, and a token of that tenant. All of it is
 * taken away again, whatever came of the test, and what a test that was killed left is taken away by the next.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/admin.h"
#include "cli/agent_test.h"
#include "cli/reload.h"
#include "lib/digest.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/place.h"

enum { NOBODY = 65534, LOG_FD = 3 };

/* How its file of the configuration begins. */
#define MARK "# Of \"pinfold agent test\", which takes it away again"

static bool failed(const char *what)
{
	say_wrong(what, strerror(errno));
	return false;
}

static void path_of(char path[STAGE_PATH], const char *where)
{
	snprintf(path, STAGE_PATH, "%s/%s/" AGENT_TEST, place_dir(PLACE_SYSCONF), where);
}

/* The child's side. */
static void become(const struct stage *s, int out) __attribute__((noreturn));
static void become(const struct stage *s, int out)
{
	char program[STAGE_PATH], key[sizeof s->key + 32];
	char self[] = "pinfold-scripted-model", where[] = "--listen", at[] = "127.0.0.1:0", with[] = "--scenario",
	     agent[] = "agent", log[] = "--log", fd[] = "-3", expect[] = "--expect-key-env", name[] = "AGENT_TEST_KEY";
	char *argv[] = {self, where, at, with, agent, log, fd, expect, name, NULL}, *env[] = {key, NULL};

	snprintf(program, sizeof program, "%s/%s", place_dir(PLACE_LIBEXEC), self);
	snprintf(key, sizeof key, "%s=%s", name, s->key);
	/* Out of the way of each other first. */
	int o = fcntl(out, F_DUPFD, 64), l = fcntl(s->log, F_DUPFD, 64), null = open("/dev/null", O_RDWR);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 2) < 0 || dup2(o, 1) < 0 || dup2(l, LOG_FD) < 0 ||
	    close_range(LOG_FD + 1, ~0u, 0) != 0 || setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
	    setresuid(NOBODY, NOBODY, NOBODY) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
		_exit(1);
	execve(program, argv, env);
	_exit(1);
}

/* The scripted model; its first line says where it listens. */
static bool model_start(struct stage *s)
{
	char line[64] = "";
	int said[2];
	size_t n = 0;

	s->log = memfd_create("requests", MFD_CLOEXEC);
	if (s->log < 0 || pipe2(said, O_CLOEXEC) != 0)
		return failed("pinfold-scripted-model");
	s->model = fork();
	if (s->model == 0)
		become(s, said[1]);
	close(said[1]);
	for (ssize_t got; n < sizeof line - 1 && strchr(line, '\n') == NULL &&
			  (got = read(said[0], line + n, sizeof line - 1 - n)) > 0;)
		n += (size_t)got;
	close(said[0]);
	if (s->model < 0 || sscanf(line, "listening %u", &s->port) != 1) {
		fprintf(stderr, "pinfold: the scripted model does not start: is %s/pinfold-scripted-model there?\n",
			place_dir(PLACE_LIBEXEC));
		return false;
	}
	return true;
}

static bool put_file(const char *path, mode_t mode, const struct buf *text)
{
	own_fd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	return (fd >= 0 && fchmod(fd, mode) == 0 && !buf_failed(text) && write_all(fd, text->p, text->n)) ||
	       failed(path);
}

/* The name is one of the configuration, so of plain letters. */
static bool files_put(const struct stage *s, const char *agent, const char *protocol)
{
	char conf[STAGE_PATH], secret[STAGE_PATH];
	own_buf struct buf b, key;

	buf_init(&b, 1 << 16);
	buf_init(&key, 1 << 10);
	buf_adds(&key, s->key);
	buf_addf(&b,
		 MARK
		 "; what is left of one that was killed may be removed.\n"
		 "provider \"" AGENT_TEST "\" {\n\tprotocol = \"%s\"\n\tbase_url = \"http://127.0.0.1:%u/v1\"\n"
		 "\tsecret = \"" AGENT_TEST "\"\n\tallow_plain_loopback = yes\n\tscripted = yes\n}\n"
		 "model_profile \"" AGENT_TEST "\" {\n\tprovider = \"" AGENT_TEST "\"\n\tmodel = \"scripted-1\"\n}\n"
		 "tenant \"" AGENT_TEST "\" {\n\tagent = \"%s\"\n\tmodel_profile = \"" AGENT_TEST "\"\n"
		 "\tagents = {\"%s\"}\n\tmodel_profiles = {\"" AGENT_TEST "\"}\n\textensions = {\".sh\", \".txt\"}\n"
		 "\tcheck {\n\t\targv = {\"sh\", \"test.sh\"}\n\t}\n}\n",
		 protocol, s->port, agent, agent);
	path_of(secret, "secrets");
	path_of(conf, "tenants.d");
	strcat(conf, ".conf");
	return put_file(secret, 0600, &key) && put_file(conf, 0644, &b);
}

/* Only what begins as the test's does, as far as that was written: an administrator may have a file of this name. */
static bool drop(const char *path, const char *mark)
{
	char begins[128];
	own_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, begins, strlen(mark)) : -1;

	if (fd < 0 && errno == ENOENT)
		return true;
	if (n < 0)
		return failed(path);
	if (memcmp(begins, mark, (size_t)n) != 0) {
		say_wrong(path, "it is no file of a test, which needs this name and would remove it");
		return false;
	}
	return unlink(path) == 0 || failed(path);
}

static bool files_drop(void)
{
	char conf[STAGE_PATH], secret[STAGE_PATH];

	path_of(secret, "secrets");
	path_of(conf, "tenants.d");
	strcat(conf, ".conf");
	bool gone = drop(conf, MARK);
	return drop(secret, STAGE_KEY) && gone;
}

/* One test at a time: its files have one name. */
static bool alone(struct stage *s)
{
	char path[STAGE_PATH];

	snprintf(path, sizeof path, "%s/tenants.d", place_dir(PLACE_SYSCONF));
	s->lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->lock < 0)
		return failed(path);
	if (flock(s->lock, LOCK_EX | LOCK_NB) == 0)
		return true;
	say_wrong("agent test", "another one goes on");
	return false;
}

bool stage_open(struct stage *s, const char *agent, const char *protocol)
{
	uint8_t some[16];

	*s = (struct stage){.log = -1, .lock = -1};
	random_bytes(some, sizeof some);
	memcpy(s->key, STAGE_KEY, sizeof STAGE_KEY);
	hex(some, sizeof some, s->key + sizeof STAGE_KEY - 1);
	if (!alone(s) || !files_drop() || !model_start(s))
		return false;
	s->put = true;
	if (!files_put(s, agent, protocol))
		return false;
	switch (config_reload(false)) {
	case RELOAD_APPLIED:
		break;
	case RELOAD_REFUSED:
		fputs("pinfold: the test needs the configuration as it stands in the files to be in force: pinfold "
		      "config check\n",
		      stderr);
		return false;
	default:
		return false;
	}
	return admin_token_take(AGENT_TEST, "pinfold agent test", 1, &s->token);
}

bool stage_close(struct stage *s)
{
	bool ok = true;

	admin_token_drop(AGENT_TEST, &s->token);
	if (s->model > 0) {
		kill(s->model, SIGKILL);
		waitpid(s->model, NULL, 0);
	}
	if (s->put) {
		ok = files_drop();
		ok = config_reload(true) != RELOAD_REFUSED && ok;
	}
	if (s->log >= 0)
		close(s->log);
	if (s->lock >= 0)
		close(s->lock);
	wipe(s->key, sizeof s->key);
	return ok;
}

char *stage_log(const struct stage *s, size_t *n)
{
	struct stat st;

	*n = 0;
	if (fstat(s->log, &st) != 0 || st.st_size > STAGE_LOG_MAX)
		return NULL;
	char *text = malloc((size_t)st.st_size + 1);
	ssize_t got = text != NULL ? pread(s->log, text, (size_t)st.st_size, 0) : -1;
	if (got >= 0) {
		text[got] = '\0';
		*n = (size_t)got;
	}
	return text;
}
