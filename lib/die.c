/*
 * Log lines: one write(2) each, so that lines of several processes sharing a log do not mix.
 * Trusts nobody's text: every byte outside printable ASCII is shown as \xNN.
 * Never allocates, so that it still works when memory is out.
 */
#include "lib/die.h"
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOG_TEXT = 2048, LOG_LINE = 4 * LOG_TEXT + 128 };

/* Set once at the start of main; a log line without a name would be useless, so it is kept here. */
static const char *program_name = "pinfold";
static bool at_journal; /* standard error is its stream: systemd.exec(5) */
/* Here, since who cannot log has nobody to tell: NULL, or set once before there are threads (lib/log_to.c). */
void (*log_sink)(const char *kind, const char *line, size_t n);

void log_open(const char *program)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char ours[64];
	struct stat st;
	program_name = program;
	at_journal = stream != NULL && fstat(STDERR_FILENO, &st) == 0 &&
		     snprintf(ours, sizeof ours, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino) > 0 &&
		     strcmp(stream, ours) == 0;
}

void log_write(const char *line, size_t n)
{
	for (size_t done = at_journal ? 0 : LOG_LEVEL; done < n;) {
		ssize_t w = write(STDERR_FILENO, line + done, n - done);
		if (w > 0)
			done += (size_t)w;
		else if (w == 0 || errno != EINTR)
			break;
	}
}

unsigned log_byte(char out[LOG_BYTE], unsigned char c)
{
	static const char digits[] = "0123456789abcdef";
	unsigned n = c >= 0x20 && c <= 0x7e ? 1 : LOG_BYTE;
	memcpy(out, (char[]){n == 1 ? (char)c : '\\', 'x', digits[c >> 4], digits[c & 15]}, n);
	return n;
}

__attribute__((format(printf, 2, 0))) static void log_line(const char *severity, const char *fmt, va_list ap)
{
	int saved = errno;
	char text[LOG_TEXT], line[LOG_LINE];
	int n = vsnprintf(text, sizeof text, fmt, ap);
	size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
	int head = snprintf(line, 120, "%.3s%.60s: %s: ", severity, program_name, severity + LOG_LEVEL);
	size_t at = head > 0 ? (size_t)head : 0;
	for (size_t i = 0; i < len; i++)
		at += log_byte(line + at, (unsigned char)text[i]);
	line[at++] = '\n';
	if (log_sink != NULL)
		log_sink(fmt, line, at);
	else
		log_write(line, at);
	errno = saved;
}

#define LOG_AS(name, severity, then)         \
	void name(const char *fmt, ...)      \
	{                                    \
		va_list ap;                  \
		va_start(ap, fmt);           \
		log_line(severity, fmt, ap); \
		va_end(ap);                  \
		then;                        \
	}
LOG_AS(log_info, "<6>info", )
LOG_AS(log_warn, "<4>warn", )
LOG_AS(log_error, "<3>error", )
LOG_AS(fatal, "<2>fatal", exit(1))
LOG_AS(unfit, "<2>fatal", exit(UNFIT))
LOG_AS(panic, "<2>panic", abort())
