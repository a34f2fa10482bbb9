/*
 * Packages from an npm registry. Nothing is trusted of it: a package is what the lock file's digest says, or it is not
 * taken. Addresses are those of npm's own: REGISTRY/NAME/-/LAST-PART-OF-NAME-VERSION.tgz.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/agent.h"
#include "cli/http.h"
#include "lib/integrity.h"
#include "lib/num.h"
#include "lib/own.h"

enum { PACKAGE_MAX = 1000000000, IDLE_SECONDS = 60, TRIES = 3 };

struct agent_source {
	const char *registry;
	const volatile sig_atomic_t *stopped;
	CURL *curl;
};

struct agent_source *agent_source_open(const char *registry, const volatile sig_atomic_t *stopped)
{
	struct agent_source *s = calloc(1, sizeof *s);

	if (s == NULL || (s->curl = curl_easy_init()) == NULL) {
		say_wrong("agent", "no memory");
		free(s);
		return NULL;
	}
	s->registry = registry;
	s->stopped = stopped;
	return s;
}

void agent_source_close(struct agent_source *s)
{
	curl_easy_cleanup(s->curl);
	free(s);
}

struct taking {
	int fd;
	size_t n;
};

static size_t on_body(char *from, size_t size, size_t count, void *arg)
{
	struct taking *t = arg;

	t->n += size * count;
	return t->n <= PACKAGE_MAX && write_all(t->fd, from, size * count) ? size * count : 0;
}

static int on_time(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	const struct agent_source *s = arg;

	(void)a, (void)b, (void)c, (void)d;
	return *s->stopped != 0;
}

/* One try. NULL, or why not; again: another may do better. */
static const char *take(struct agent_source *s, const char *url, struct taking *t, bool *again)
{
	static char why[CURL_ERROR_SIZE + 64];
	char error[CURL_ERROR_SIZE] = "";
	long status = 0;

	t->n = 0;
	if (ftruncate(t->fd, 0) != 0 || lseek(t->fd, 0, SEEK_SET) != 0)
		return strerror(errno);
	curl_easy_reset(s->curl);
	curl_easy_setopt(s->curl, CURLOPT_URL, url);
	curl_easy_setopt(s->curl, CURLOPT_ERRORBUFFER, error);
	curl_easy_setopt(s->curl, CURLOPT_PROTOCOLS_STR, "https,http");
	curl_easy_setopt(s->curl, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(s->curl, CURLOPT_REDIR_PROTOCOLS_STR, "https,http");
	curl_easy_setopt(s->curl, CURLOPT_MAXREDIRS, 5L);
	curl_easy_setopt(s->curl, CURLOPT_CONNECTTIMEOUT, 30L);
	curl_easy_setopt(s->curl, CURLOPT_LOW_SPEED_LIMIT, 100L);
	curl_easy_setopt(s->curl, CURLOPT_LOW_SPEED_TIME, (long)IDLE_SECONDS);
	curl_easy_setopt(s->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(s->curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(s->curl, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(s->curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(s->curl, CURLOPT_XFERINFOFUNCTION, on_time);
	curl_easy_setopt(s->curl, CURLOPT_XFERINFODATA, s);
	CURLcode code = curl_easy_perform(s->curl);
	curl_easy_getinfo(s->curl, CURLINFO_RESPONSE_CODE, &status);
	*again = code != CURLE_WRITE_ERROR && (status == 0 || status == 429 || status >= 500 || code != CURLE_OK);
	if (code == CURLE_WRITE_ERROR)
		snprintf(why, sizeof why, "%s", t->n > PACKAGE_MAX ? "it is too large" : "it cannot be written");
	else if (code != CURLE_OK)
		snprintf(why, sizeof why, "%s", error[0] != '\0' ? error : curl_easy_strerror(code));
	else if (status != 200)
		snprintf(why, sizeof why, "the registry answers %ld", status);
	else
		return NULL;
	return why;
}

/* Its address for people: without the user and password that a registry's may hold. */
static const char *shown(const char *url)
{
	static char text[2048];
	const char *host = strstr(url, "://"), *end = host != NULL ? host + 3 + strcspn(host + 3, "/") : url, *at = end;

	while (host != NULL && at > host + 3 && at[-1] != '@')
		at--;
	if (host == NULL || at == host + 3)
		return url;
	snprintf(text, sizeof text, "%.*s%s", (int)(host + 3 - url), url, at);
	return text;
}

int agent_fetch(struct agent_source *s, const struct agent_package *p)
{
	const char *last = strrchr(p->name, '/'), *why = "";
	char url[2048];
	bool again = true;
	struct taking t = {.fd = -1};
	/* In memory where there is no disk to ask: a name in /tmp would be somebody's to guess. */
	own_fd int file = memfd_create("package", MFD_CLOEXEC);

	if (file < 0 || (size_t)snprintf(url, sizeof url, "%s/%s/-/%s-%s.tgz", s->registry, p->name,
					 last != NULL ? last + 1 : p->name, p->version) >= sizeof url) {
		say_wrong(p->name, file < 0 ? strerror(errno) : "its address is too long");
		return -1;
	}
	t.fd = file;
	for (unsigned i = 0; i < TRIES && again && *s->stopped == 0; i++) {
		why = take(s, url, &t, &again);
		if (why == NULL)
			break;
	}
	if (*s->stopped != 0)
		return -1;
	if (why != NULL) {
		say_wrong(shown(url), why);
		fputs("Nothing was installed. \"npm ping --registry URL\" says whether npm gets through; where only a "
		      "mirror "
		      "can be reached, name that by --registry\n",
		      stderr);
		return -1;
	}
	if (!integrity_matches(file, p->integrity)) {
		say_wrong(shown(url),
			  errno != 0 ? strerror(errno)
				     : "this is another file than the one that was locked: nothing of it was used. Ask "
				       "whoever runs the registry, or name another by --registry");
		return -1;
	}
	return steal_fd(&file);
}
