/* Doctor: secrets. Their files are looked at from outside and counted; no byte of one is printed or kept. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "lib/own.h"
#include "lib/place.h"

enum { DAY_S = 86400, WAITS_S = DAY_S };

static void path_of(char path[700], const char *name)
{
	snprintf(path, 700, "%s/secrets%s%s", place_dir(PLACE_SYSCONF), name[0] != '\0' ? "/" : "", name);
}

static void folder(struct doctor *d)
{
	char path[700];
	struct stat st;

	path_of(path, "");
	if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
		found(d, DOCTOR_ERROR, "%s: no such folder", path);
		remedy(d, "run pinfold setup");
		return;
	}
	if (st.st_uid != 0) {
		found(d, DOCTOR_ERROR, "%s is owned by uid %u", path, st.st_uid);
		remedy(d, "chown root %s", path);
	}
	if ((st.st_mode & 077) != 0) {
		found(d, DOCTOR_ERROR, "%s is open to others (mode %04o)", path, st.st_mode & 07777u);
		remedy(d, "chmod 700 %s", path);
	}
}

/* What is to follow another one, by its name; it is there only while that is replaced. */
static bool is_next(const char *name)
{
	size_t n = strlen(name);

	return n > 5 && strcmp(name + n - 5, ".next") == 0;
}

/* Calls take for each file once, the same secret may go to two roles; and for those that are to follow, NAME.next. */
static void each(struct doctor *d,
		 void (*take)(struct doctor *d, const struct cf_secret *s, const char *path, const struct stat *st))
{
	for (uint32_t i = 0; need_conf(d) && i < d->conf.nsecrets; i++) {
		const struct cf_secret *s = &d->conf.secrets[i];
		char path[700];
		struct stat st;
		bool seen = false;
		for (uint32_t j = 0; j < i; j++)
			seen = seen || strcmp(d->conf.secrets[j].name, s->name) == 0;
		seen = seen || is_next(s->name);
		path_of(path, s->name);
		if (seen)
			continue;
		take(d, s, path, lstat(path, &st) == 0 ? &st : NULL);
		snprintf(path + strlen(path), sizeof path - strlen(path), ".next");
		if (lstat(path, &st) == 0)
			take(d, s, path, &st);
	}
}

static void mode(struct doctor *d, const struct cf_secret *s, const char *path, const struct stat *st)
{
	(void)s;
	if (st == NULL)
		return;
	if (!S_ISREG(st->st_mode) || st->st_uid != 0) {
		found(d, DOCTOR_ERROR, "%s is not a regular file of root's", path);
		remedy(d, "make %s a regular file that root owns", path);
	} else if ((st->st_mode & 077) != 0) {
		found(d, DOCTOR_ERROR, "%s can be read by others (mode %04o)", path, st->st_mode & 07777u);
		remedy(d, "chmod 600 %s, and replace the secret if somebody may have read it", path);
	}
}

static void modes(struct doctor *d)
{
	each(d, mode);
}

static void there(struct doctor *d, const struct cf_secret *s, const char *path, const struct stat *st)
{
	if (st != NULL)
		return;
	if (strcmp(s->role, "push") == 0 && d->conf.push.contact[0] == '\0')
		return; /* there is no push */
	found(d, s->least > 0 ? DOCTOR_ERROR : DOCTOR_WARN, "%s is missing", path);
	if (s->least > 0 || strcmp(s->role, "push") == 0)
		remedy(d, "run pinfold setup, which makes %s, and systemctl restart pinfold", path);
	else
		remedy(d, "write the provider's key to %s (0600), then pinfold config reload", path);
}

static void present(struct doctor *d)
{
	each(d, there);
}

static void length(struct doctor *d, const struct cf_secret *s, const char *path, const struct stat *st)
{
	uint8_t text[SECRET_MAX + 1];

	if (st == NULL || !S_ISREG(st->st_mode))
		return;
	own_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text), all = n;
	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	bool lines = n > 0 && (memchr(text, '\n', (size_t)n) != NULL || memchr(text, '\0', (size_t)n) != NULL);
	wipe(text, sizeof text);
	if (n < 0)
		found(d, DOCTOR_ERROR, "%s: %s", path, strerror(errno));
	else if (all > SECRET_MAX)
		found(d, DOCTOR_ERROR, "%s is longer than %d bytes", path, SECRET_MAX);
	else if (n < (ssize_t)s->least)
		found(d, DOCTOR_ERROR, "%s has %zd bytes, at least %u are needed", path, n, s->least);
	else if (s->least == 0 && (n == 0 || lines))
		found(d, DOCTOR_ERROR, "%s is %s", path, n == 0 ? "empty" : "not one line");
	else
		found(d, DOCTOR_OK, "%s: set, %zd bytes", strrchr(path, '/') + 1, n);
}

static void lengths(struct doctor *d)
{
	each(d, length);
}

/* A rotation that nobody has finished. */
static void follow(struct doctor *d, const struct cf_secret *s, const char *path, const struct stat *st)
{
	time_t now = time(NULL);

	if (st == NULL || !is_next(path) || now - st->st_mtime < WAITS_S)
		return;
	found(d, DOCTOR_WARN, "%s has stood beside %s for %lld days", path, s->name,
	      (long long)(now - st->st_mtime) / DAY_S);
	remedy(d, "pinfold secret promote %s, or pinfold secret drop %s", s->name, s->name);
}

static void follows(struct doctor *d)
{
	each(d, follow);
}

const struct doctor_check doctor_secrets[] = {
    {"secrets.folder", "the folder of secrets is root's alone", "chmod 700 the folder", folder},
    {"secrets.modes", "each secret is a regular file of root's with mode 0600", "chmod 600 the file", modes},
    {"secrets.present", "each secret that the configuration names is there",
     "pinfold setup makes what is no provider's key", present},
    {"secrets.length", "secrets are long enough, providers' keys are one line",
     "remove a run-token secret that is too short and run pinfold setup; write a provider's key as one line", lengths},
    {"secrets.next", "no rotation of a secret is left half done",
     "pinfold secret promote NAME, or pinfold secret drop NAME", follows},
    {0}};
