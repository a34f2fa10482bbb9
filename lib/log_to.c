/* See log_to.h. Never allocates; what a line says was cleaned before. */
#include "lib/log_to.h"
#include "lib/die.h"
#include "lib/num.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { LINE = 8400, FACILITY_DAEMON = 3 };

/* Of the process, as standard error is: log_sink has no other place. */
static struct {
	pthread_mutex_t lock;
	enum log_to where;
	int fd;
	struct sockaddr_un to;
	struct log_rows rows;
} out = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

static uint64_t key_of(const void *p, size_t n, uint64_t h)
{
	for (const unsigned char *s = p; n > 0; s++, n--)
		h = (h ^ *s) * UINT64_C(1099511628211);
	return h != 0 ? h : 1;
}

/* Its row, or a new one instead of the oldest that keeps nothing back; NULL: all do. */
static struct log_row *row_of(struct log_rows *r, uint64_t key, uint64_t now)
{
	struct log_row *free_one = NULL;

	for (size_t i = 0; i < LOG_ROWS; i++) {
		struct log_row *w = &r->row[i];
		if (w->key == key && (now - w->since < LOG_MINUTE_MS || w->kept > 0))
			return w;
		if (w->kept == 0 &&
		    (free_one == NULL || w->key == 0 || (free_one->key != 0 && w->since < free_one->since)))
			free_one = w;
	}
	if (free_one != NULL)
		*free_one = (struct log_row){.key = key, .since = now};
	return free_one;
}

bool log_may(struct log_rows *r, uint64_t now, const char *kind, const char *line, size_t n)
{
	const struct {
		uint64_t key;
		uint32_t most;
	} bounds[] = {{key_of(line, n, 14695981039346656037u), LOG_SAME}, {key_of(&kind, sizeof kind, 1), LOG_ALIKE}};
	char level = n > 1 ? line[1] : '6';

	for (size_t i = 0; i < (level == '3' || level == '4' ? 2 : 1) && level > '2'; i++) {
		struct log_row *w = row_of(r, bounds[i].key, now);
		if (w == NULL || w->said++ < bounds[i].most)
			continue;
		w->kept++;
		snprintf(w->text, sizeof w->text, "%.*s", (int)(n > 0 ? n - 1 : 0), line);
		return false;
	}
	return true;
}

size_t log_due(struct log_rows *r, uint64_t now, bool all, char told[LOG_TOLD + 64])
{
	for (size_t i = 0; i < LOG_ROWS; i++) {
		struct log_row *w = &r->row[i];
		if (w->kept == 0 || (!all && now - w->since < LOG_MINUTE_MS))
			continue;
		/* "<4>pinfold-fcgi: warn: ... 37 more times: accept: ..." */
		const char *colon = strstr(w->text, ": "), *second = colon != NULL ? strstr(colon + 2, ": ") : NULL;
		int head = second != NULL ? (int)(second + 2 - w->text) : 0;
		int n = snprintf(told, LOG_TOLD + 64, "%.*s... %u more time%s: %s\n", head, w->text, w->kept,
				 w->kept == 1 ? "" : "s", w->text + head);
		*w = (struct log_row){.key = 0};
		return n > 0 && n < LOG_TOLD + 64 ? (size_t)n : 0;
	}
	return 0;
}

/* As the place wants it; true: somebody took it. */
static bool sent(const char *line, size_t n)
{
	char text[LINE + 128];
	int len, name = (int)strcspn(line + LOG_LEVEL, ":");

	if (out.fd < 0 || n < LOG_LEVEL + 2 || n > LINE)
		return false;
	if (out.where == LOG_TO_SYSLOG) /* "<30>pinfold-fcgi[12]: warn: ..." */
		len = snprintf(text, sizeof text, "<%d>%.*s[%d]%.*s", FACILITY_DAEMON * 8 + line[1] - '0', name,
			       line + LOG_LEVEL, (int)getpid(), (int)n - 1 - LOG_LEVEL - name, line + LOG_LEVEL + name);
	else
		len = snprintf(text, sizeof text,
			       "PRIORITY=%c\nSYSLOG_FACILITY=%d\nSYSLOG_IDENTIFIER=%.*s\nMESSAGE=%.*s\n", line[1],
			       FACILITY_DAEMON, name, line + LOG_LEVEL, (int)n - 1 - LOG_LEVEL, line + LOG_LEVEL);
	if (len <= 0 || (size_t)len >= sizeof text)
		return false;
	ssize_t w;
	do
		w = sendto(out.fd, text, (size_t)len, MSG_NOSIGNAL, (struct sockaddr *)&out.to, sizeof out.to);
	while (w < 0 && errno == EINTR);
	return w == len;
}

static void say(const char *line, size_t n)
{
	if (!sent(line, n))
		log_write(line, n);
}

static void say_due(uint64_t now, bool all)
{
	char told[LOG_TOLD + 64];

	for (size_t n; (n = log_due(&out.rows, now, all, told)) > 0;)
		say(told, n);
}

static void take(const char *kind, const char *line, size_t n)
{
	uint64_t now = timer_ms();

	pthread_mutex_lock(&out.lock);
	say_due(now, n > 1 && line[1] <= '2'); /* before the last words */
	if (log_may(&out.rows, now, kind, line, n))
		say(line, n);
	pthread_mutex_unlock(&out.lock);
}

static void at_end(void)
{
	if (pthread_mutex_trylock(&out.lock) == 0)
		say_due(timer_ms(), true);
}

void log_to(enum log_to where, const char *path)
{
	out.where = where;
	out.to = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (where == LOG_TO_JOURNAL || where == LOG_TO_SYSLOG) {
		(void)snprintf(out.to.sun_path, sizeof out.to.sun_path, "%s",
			       path[0] != '\0'          ? path
			       : where == LOG_TO_SYSLOG ? "/dev/log"
							: "/run/systemd/journal/socket");
		/* It does not wait: a log that nobody reads must not stop the service. */
		out.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (out.fd < 0)
			log_warn("no socket for the log (%m); it stays on standard error");
	}
	log_sink = take;
	(void)atexit(at_end);
}
