/*
 * Log lines on standard error and the ways to end. Severity words have one meaning each:
 * info (worth knowing), warn (handled, look at it), error (something failed), fatal (the world is
 * broken: exit 1, or UNFIT), panic (our code is broken: abort). Control bytes in the text are escaped.
 */
#ifndef LIB_DIE_H
#define LIB_DIE_H
#include <stddef.h>

/* Names this program in each line; keeps the pointer. Where standard error is the journal's stream, lines say to it how
 * grave they are. */
void log_open(const char *program);
/* log_to of pinfold.conf; the file is opened by sandboxd, and is standard error. */
enum log_to { LOG_TO_STDERR, LOG_TO_JOURNAL, LOG_TO_SYSLOG, LOG_TO_FILE };
/* A line as it is made, "<N>" of syslog(3), the text, its end; to standard error without the first LOG_LEVEL bytes
 * where nobody there reads them. */
enum { LOG_LEVEL = 3 };
void log_write(const char *line, size_t n);
/* Gets each line instead, if it is set; kind: the same for lines that differ in their figures alone. */
extern void (*log_sink)(const char *kind, const char *line, size_t n);
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Ends the program with status 1; a failing system call's errno text is the caller's %m. */
void fatal(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/* The same with status UNFIT (EX_CONFIG, known to pinfold.service): only mending what it names would help, no new
 * start. */
enum { UNFIT = 78 };
void unfit(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
void panic(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
enum { LOG_BYTE = 4 };
/* One byte as a log line shows it: itself if it is printable ASCII, otherwise \xNN. Returns how many were written. */
unsigned log_byte(char out[LOG_BYTE], unsigned char c);
#endif
