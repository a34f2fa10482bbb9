/*
 * pinfold secret list|rotate|promote|drop: what providers are sent and what signs run tokens, changed while the service
 * runs. The next value of NAME is the file NAME.next beside it. A value comes by standard input, a private file or an
 * environment variable, never by an argument, and is never printed.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "cli/admin.h"
#include "cli/cli.h"
#include "cli/conf_read.h"
#include "cli/reload.h"
#include "gen/store_msg.h"
#include "lib/chan.h"
#include "lib/conf.h"
#include "lib/digest.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/place.h"
#include "lib/token.h"

enum { GENERATED = 48 };

struct want {
	const char *name, *env, *file;
	bool force;
	struct conf conf;
	int dir; /* of secrets */
};

static int wrong(const char *name, const char *why)
{
	say_wrong(name, why);
	return EXIT_FAILED;
}

static bool read_conf(struct conf *c)
{
	own_fd int fd = bundle_new("conf");
	const char *why = fd < 0 ? "no memory" : NULL;

	if (why == NULL && !conf_read(fd))
		return false;
	if (why == NULL)
		why = bundle_seal(fd) ? conf_load(c, fd) : "it cannot be sealed";
	if (why != NULL)
		(void)wrong("the configuration", why);
	return why == NULL;
}

static bool signs(const struct want *w)
{
	return strcmp(w->name, conf_run_secret(&w->conf)) == 0;
}

static void next_of(char out[128], const char *name)
{
	snprintf(out, 128, "%.100s" SECRET_NEXT, name);
}

/* Is it sent to a provider, or given to an agent? */
static bool is_key(const struct want *w, const char *name)
{
	static const char agents[] = "agent/"; /* the role of those */

	for (uint32_t i = 0; i < w->conf.nproviders && *name != '\0'; i++)
		if (strcmp(w->conf.providers[i].secret, name) == 0)
			return true;
	for (uint32_t i = 0; i < w->conf.nsecrets; i++)
		if (strcmp(w->conf.secrets[i].name, name) == 0 &&
		    strncmp(w->conf.secrets[i].role, agents, sizeof agents - 1) == 0)
			return true;
	return false;
}

/* One that this command may change. */
static bool changeable(const struct want *w)
{
	char next[128];
	const char *what = w->name, *why = NULL;

	next_of(next, w->name);
	if (is_key(w, next)) {
		/* What somebody uses under its own name is no next value to be made, exchanged and removed. */
		what = next;
		why = "is what a provider or an agent names as its own: give that another name first";
	} else if (signs(w) && strlen(next) >= sizeof((struct secrets *)NULL)->v[0].name) {
		why = "has too long a name for a next value";
	} else if (!signs(w) && !is_key(w, w->name)) {
		why = strcmp(w->name, "vapid") == 0
			  ? "cannot be changed while browsers are subscribed: each of them knows us by it"
			  : "is no secret that the configuration names (pinfold secret list)";
	}
	if (why != NULL)
		(void)wrong(what, why);
	return why == NULL;
}

/* As the terminal was; a signal handler cannot be given anything else. */
static struct termios as_it_was;

/* Who gives up while typing gets a terminal that shows what is typed; then the signal does what it always does. */
static void give_up(int sig)
{
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &as_it_was);
	(void)raise(sig);
}

/* Nothing typed is shown from here on, or it is again. False: standard input is no terminal. */
static bool show_typing(bool shown)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction restore = {.sa_handler = shown ? SIG_DFL : give_up,
				    .sa_flags = (int)(SA_RESETHAND | SA_NODEFER)};
	struct termios quiet;

	if (!shown && tcgetattr(STDIN_FILENO, &as_it_was) != 0)
		return false;
	quiet = as_it_was;
	quiet.c_lflag &= ~(tcflag_t)ECHO;
	quiet.c_cc[VSUSP] = _POSIX_VDISABLE; /* a stopped command would leave a shell without an echo */
	for (size_t i = 0; !shown && i < sizeof ends / sizeof *ends; i++)
		(void)sigaction(ends[i], &restore, NULL);
	(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, shown ? &as_it_was : &quiet);
	for (size_t i = 0; shown && i < sizeof ends / sizeof *ends; i++)
		(void)sigaction(ends[i], &restore, NULL);
	return true;
}

/* A trailing end of line is nobody's; what is left must be one line. */
static int take_value(const struct want *w, uint8_t value[SECRET_MAX + 1], size_t *n)
{
	struct stat st;
	const char *from_env = w->env != NULL ? getenv(w->env) : NULL;
	own_fd int file = w->file != NULL ? open(w->file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
	int fd = w->file != NULL ? file : STDIN_FILENO;
	size_t got = 0;

	if (w->env != NULL && from_env == NULL)
		return wrong(w->env, "is not set");
	if (from_env != NULL) {
		got = strnlen(from_env, SECRET_MAX + 1);
		memcpy(value, from_env, got);
	} else {
		if (w->file != NULL && (fd < 0 || fstat(fd, &st) != 0))
			return wrong(w->file, strerror(errno));
		if (w->file != NULL && (!S_ISREG(st.st_mode) || (st.st_mode & 077) != 0))
			return wrong(w->file, "must be a regular file that nobody else can read (chmod 600)");
		bool typed = w->file == NULL && show_typing(false);
		if (typed)
			fputs("the new value, and Enter: ", stderr);
		for (ssize_t r; got <= SECRET_MAX && (r = read(fd, value + got, SECRET_MAX + 1 - got)) > 0;) {
			got += (size_t)r;
			if (typed && memchr(value, '\n', got) != NULL)
				break;
		}
		if (typed) {
			(void)show_typing(true);
			fputc('\n', stderr);
		}
	}
	while (got > 0 && got <= SECRET_MAX && (value[got - 1] == '\n' || value[got - 1] == '\r'))
		got--;
	*n = got;
	if (got == 0)
		return wrong(w->name, "its new value is empty");
	if (got > SECRET_MAX)
		return wrong(w->name, "its new value is too long");
	if (memchr(value, '\n', got) != NULL || memchr(value, '\r', got) != NULL || memchr(value, '\0', got) != NULL)
		return wrong(w->name, "its new value is not one line");
	return 0;
}

static int write_next(const struct want *w, const uint8_t *value, size_t n)
{
	char next[128], temp[140];
	struct stat st;

	next_of(next, w->name);
	snprintf(temp, sizeof temp, "%s.new", next);
	if (fstatat(w->dir, next, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return wrong(next, "is there already: promote or drop it first");
	(void)unlinkat(w->dir, temp, 0);
	own_fd int fd = openat(w->dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || fchmod(fd, 0600) != 0 || !write_all(fd, value, n) || fsync(fd) != 0 ||
	    renameat2(w->dir, temp, w->dir, next, RENAME_NOREPLACE) != 0 || fsync(w->dir) != 0)
		return wrong(next, strerror(errno));
	return 0;
}

/* What was done to the files comes into force. */
static int in_force(const struct want *w, enum audit_event event, const char *what)
{
	enum reload_end end = config_reload(true);

	if (end == RELOAD_REFUSED) {
		fprintf(
		    stderr,
		    "pinfold: the files have changed: mend what is named, and then run \"pinfold config reload\"\n");
		return EXIT_FAILED;
	}
	if (end == RELOAD_APPLIED)
		reload_note(event, w->name);
	printf("secret %s %s%s\n", w->name, what,
	       end == RELOAD_NOT_RUNNING ? " (the service does not run: from its start on)" : "");
	return 0;
}

static int rotate(struct want *w)
{
	uint8_t value[SECRET_MAX + 1], bytes[32];
	size_t n;
	int status;

	if (!changeable(w))
		return EXIT_FAILED;
	if (signs(w) && (w->env != NULL || w->file != NULL))
		return wrong(w->name, "signs run tokens and is generated: give no value");
	if (signs(w) && *w->conf.global.run_token_secret_next != '\0')
		return wrong(
		    w->name,
		    "the configuration names run_token_secret_next: take that out, or change the files by hand");
	if (signs(w)) {
		random_bytes(bytes, sizeof bytes);
		n = b64url_encode(bytes, sizeof bytes, (char *)value, GENERATED);
		wipe(bytes, sizeof bytes);
		status = 0;
	} else {
		status = take_value(w, value, &n);
	}
	if (status == 0)
		status = write_next(w, value, n);
	wipe(value, sizeof value);
	return status != 0 ? status
			   : in_force(w, AUDIT_SECRET_ROTATE,
				      signs(w) ? "has a next value, which is accepted too; it signs once it is promoted"
					       : "has a next value; it is used once it is promoted");
}

static bool there(const struct want *w, const char *name, struct stat *st)
{
	return fstatat(w->dir, name, st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st->st_mode);
}

static int promote(struct want *w)
{
	char next[128];
	struct stat st;
	struct timespec now[2];

	if (!changeable(w))
		return EXIT_FAILED;
	next_of(next, w->name);
	if (!there(w, next, &st))
		return wrong(next, "is missing: run \"pinfold secret rotate\" first");
	if (st.st_size < (signs(w) ? TOKEN_SECRET_MIN : 1))
		return wrong(next, "is empty or too short: drop it and rotate anew");
	int done = there(w, w->name, &st) ? renameat2(w->dir, next, w->dir, w->name, RENAME_EXCHANGE)
					  : renameat(w->dir, next, w->dir, w->name);
	if (done != 0)
		return wrong(next, strerror(errno));
	/* Both get one time, by which drop knows that the one that is next now was in use, and until when at the
	 * latest; until that is known it is no time at all. */
	(void)utimensat(w->dir, w->name, NULL, 0);
	(void)utimensat(w->dir, next, (struct timespec[2]){{0}}, 0);
	(void)fsync(w->dir);
	int status = in_force(
	    w, AUDIT_SECRET_PROMOTE,
	    signs(w) ? "is what was its next value; the one before is next, and still accepted until it is dropped"
		     : "is what was its next value, from the next call on; the one before is kept as next");
	if (status == 0) {
		(void)clock_gettime(CLOCK_REALTIME, &now[0]);
		now[1] = now[0];
		(void)utimensat(w->dir, w->name, now, 0);
		(void)utimensat(w->dir, next, now, 0);
	}
	return status;
}

/* A run keeps the tokens that it was given at its start: those of an older secret must stay good until it ends. */
static bool still_used(const struct want *w, const struct stat *next)
{
	struct stat name;
	struct st_stat m = {0};
	struct st_stats_are a;
	if (w->force || !signs(w) || !there(w, w->name, &name) || next->st_mtime > name.st_mtime ||
	    (next->st_mtime == name.st_mtime && next->st_mtim.tv_nsec > name.st_mtim.tv_nsec))
		return false;
	struct ask *ask = admin_open();
	/* Who cannot be asked has runs, unless there is nobody. */
	bool used =
	    st_call_stat(ask, &m, NULL, &a, NULL) != ERR_OK
		? service_there(NULL)
		: a.open_runs > 0 && (next->st_mtime == 0 || a.oldest_open <= (uint64_t)next->st_mtime * 1000 + 1000);
	ask_free(ask);
	return used;
}

static int drop(struct want *w)
{
	char next[128];
	struct stat st;

	if (!changeable(w))
		return EXIT_FAILED;
	next_of(next, w->name);
	if (!there(w, next, &st))
		return wrong(next, "is not there: nothing is dropped");
	if (still_used(w, &st))
		return wrong(w->name, "runs that began before the promotion still hold tokens that it signed: wait for "
				      "their end (pinfold ps), or say --force");
	if (unlinkat(w->dir, next, 0) != 0 || fsync(w->dir) != 0)
		return wrong(next, strerror(errno));
	return in_force(w, AUDIT_SECRET_DROP, "has no next value any more");
}

/* "(set, N bytes)"; the value is read by nobody. */
static void describe(const struct want *w, const char *name, char out[64])
{
	struct stat st;

	if (fstatat(w->dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		snprintf(out, 64, "(missing)");
	else
		snprintf(out, 64, "(%s, %lld bytes%s)", S_ISREG(st.st_mode) && st.st_size > 0 ? "set" : "unusable",
			 (long long)st.st_size, (st.st_mode & 077) != 0 ? ", others may read it" : "");
}

static int list(struct want *w)
{
	char text[64], next[128];
	struct stat st;

	for (uint32_t i = 0; i < w->conf.nsecrets; i++) {
		const char *name = w->conf.secrets[i].name;
		bool seen = false;
		size_t n = strlen(name), end = sizeof SECRET_NEXT - 1;
		for (uint32_t j = 0; j < i; j++)
			seen = seen || strcmp(w->conf.secrets[j].name, name) == 0;
		if (seen || (n > end && strcmp(name + n - end, SECRET_NEXT) == 0))
			continue;
		describe(w, name, text);
		printf("%-24s %s\n", name, text);
		next_of(next, name);
		if (there(w, next, &st)) {
			describe(w, next, text);
			printf("%-24s %s\n", next, text);
		}
	}
	return 0;
}

int cmd_secret(struct cli *cli, int argc, char **argv)
{
	static const struct {
		const char *name;
		bool named;
		int (*act)(struct want *w);
	} acts[] = {{"list", false, list}, {"rotate", true, rotate}, {"promote", true, promote}, {"drop", true, drop}};
	static struct want w; /* large */
	char path[600];

	(void)cli;
	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--force") == 0)
			w.force = true;
		else if (strcmp(argv[i], "--from-env") == 0 && i + 1 < argc)
			w.env = argv[++i];
		else if (strcmp(argv[i], "--file") == 0 && i + 1 < argc)
			w.file = argv[++i];
		else if (w.name == NULL && argv[i][0] != '-')
			w.name = argv[i];
		else
			return usage(
			    "secret does not take this argument, and no value: it is read from standard input, "
			    "--file FILE or --from-env NAME");
	}
	for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
		if (argc < 2 || strcmp(argv[1], acts[i].name) != 0)
			continue;
		if (acts[i].named != (w.name != NULL))
			break;
		if (!read_conf(&w.conf))
			return EXIT_FAILED;
		snprintf(path, sizeof path, "%s/secrets", place_dir(PLACE_SYSCONF));
		w.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		int status = EXIT_FAILED;
		if (w.dir < 0)
			(void)wrong(path, strerror(errno));
		else if (w.name != NULL && flock(w.dir, LOCK_EX | LOCK_NB) != 0)
			(void)wrong(path, errno == EWOULDBLOCK ? "another \"pinfold secret\" is at work there"
							       : strerror(errno));
		else
			status = acts[i].act(&w);
		if (w.dir >= 0)
			close(w.dir);
		conf_free(&w.conf);
		return status;
	}
	return usage("secret takes list, rotate NAME, promote NAME or drop NAME");
}
