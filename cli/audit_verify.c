/*
 * Checks one line after the other: that each is whole, that its hash is right, that it follows the one before.
 * Trusts nothing of the files; their lines are bounded.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "cli/audit.h"
#include "lib/digest.h"

static bool fault(struct audit_walk *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool fault(struct audit_walk *w, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(w->why, sizeof w->why, fmt, ap);
	va_end(ap);
	return false;
}

/* A line that cannot be read is no fault where the next one says how it came to be. */
static bool take_broken(struct audit_walk *w, const char *line, size_t n)
{
	uint8_t sum[SHA256_SIZE];

	if (w->broken)
		return fault(w, "two lines in a row cannot be read");
	if (!sha256(line, n, sum))
		return fault(w, "no memory");
	w->broken = true;
	w->broken_line = w->at;
	memcpy(w->broken_path, w->path, sizeof w->broken_path);
	w->broken_bytes = n;
	hex(sum, sizeof sum, w->broken_digest);
	return true;
}

static bool unexplained(struct audit_walk *w)
{
	w->at = w->broken_line;
	memcpy(w->path, w->broken_path, sizeof w->path);
	return fault(w, "it cannot be read, and no line says that a crash cut it short");
}

static bool explains(struct audit_walk *w, const char *line, size_t n, const struct audit_seen *s)
{
	uint64_t bytes;

	return s->event_len == 10 && memcmp(s->event, "audit.torn", 10) == 0 &&
	       audit_number(line, n, "bytes", &bytes) && bytes == w->broken_bytes &&
	       audit_text_is(line, n, "digest", w->broken_digest);
}

static bool follows(struct audit_walk *w, const struct audit_seen *s)
{
	char none[AUDIT_HASH + 1];

	audit_no_hash(none);
	if (!w->any)
		return s->seq != 1 || strcmp(s->prev, none) == 0 || fault(w, "the first line ever has a predecessor");
	if (s->seq > w->seq + 1)
		return fault(w,
			     "%" PRIu64 " line(s) are missing before it (after number %" PRIu64 " comes %" PRIu64 ")",
			     s->seq - w->seq - 1, w->seq, s->seq);
	if (s->seq <= w->seq)
		return fault(w, "it is out of order or there twice (after number %" PRIu64 " comes %" PRIu64 ")",
			     w->seq, s->seq);
	return strcmp(s->prev, w->hash) == 0 || fault(w, "it does not follow the line before it");
}

static bool take_line(struct audit_walk *w, const char *line, size_t n)
{
	struct audit_seen s;
	uint64_t count;

	if (!audit_read(line, n, &s))
		return take_broken(w, line, n);
	if (!s.sound)
		return fault(w, "it was changed: its hash does not fit");
	if (w->broken && !explains(w, line, n, &s)) {
		return unexplained(w);
	}
	if (!follows(w, &s))
		return false;
	w->torn += w->broken;
	w->broken = false;
	if (!w->any)
		w->first_seq = s.seq;
	w->any = true;
	w->seq = s.seq;
	memcpy(w->hash, s.hash, sizeof w->hash);
	w->lines++;
	if (s.event_len == 10 && memcmp(s.event, "audit.lost", 10) == 0 && audit_number(line, n, "count", &count))
		w->lost += count;
	w->gone += s.event_len == 12 && memcmp(s.event, "audit.undone", 12) == 0;
	return true;
}

bool audit_walk_file(struct audit_walk *w, FILE *f)
{
	static char line[AUDIT_LINE_MAX + 2];
	size_t n = 0;
	int c;

	w->at = 1;
	while ((c = getc_unlocked(f)) != EOF) {
		if (c == '\n') {
			if (!take_line(w, line, n))
				return false;
			n = 0;
			w->at++;
		} else if (n == AUDIT_LINE_MAX) {
			return fault(w, "it is longer than a line can be");
		} else {
			line[n++] = (char)c;
		}
	}
	if (ferror(f))
		return fault(w, "it cannot be read: %m");
	/* Cut in the middle of a line: the crash that may explain it has not been followed by a start. */
	return n == 0 || fault(w, "it has no end: it was cut, or the service died and was not started since");
}

bool audit_walk_end(struct audit_walk *w)
{
	return !w->broken || unexplained(w);
}
