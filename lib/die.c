/*
 * Log lines: one write(2) each, so that lines of several processes sharing a log do not mix.
 * Trusts nobody's text: every byte outside printable ASCII is shown as \xNN.
 * Never allocates, so that it still works when memory is out.
 */
#include "lib/die.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOG_TEXT = 2048, LOG_LINE = 4 * LOG_TEXT + 128 };

/* Set once at the start of main; a log line without a name would be useless, so it is kept here. */
static const char *program_name = "pinfold";

void log_open(const char *program)
{
	program_name = program;
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
	errno = saved;
	int n = vsnprintf(text, sizeof text, fmt, ap);
	size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
	int head = snprintf(line, 120, "%.60s: %s: ", program_name, severity);
	size_t at = head > 0 ? (size_t)head : 0;
	for (size_t i = 0; i < len; i++)
		at += log_byte(line + at, (unsigned char)text[i]);
	line[at++] = '\n';
	for (size_t done = 0; done < at;) {
		ssize_t w = write(STDERR_FILENO, line + done, at - done);
		if (w > 0)
			done += (size_t)w;
		else if (w == 0 || errno != EINTR)
			break;
	}
	errno = saved;
}

#define LOG_AS(severity)                     \
	do {                                 \
		va_list ap;                  \
		va_start(ap, fmt);           \
		log_line(severity, fmt, ap); \
		va_end(ap);                  \
	} while (0)

void log_info(const char *fmt, ...)
{
	LOG_AS("info");
}

void log_warn(const char *fmt, ...)
{
	LOG_AS("warn");
}

void log_error(const char *fmt, ...)
{
	LOG_AS("error");
}

void fatal(const char *fmt, ...)
{
	LOG_AS("fatal");
	exit(1);
}

void unfit(const char *fmt, ...)
{
	LOG_AS("fatal");
	exit(UNFIT);
}

void panic(const char *fmt, ...)
{
	LOG_AS("panic");
	abort();
}
