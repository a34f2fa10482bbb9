/*
 * Writes frames of event streams. Trusts no text to have no end of line in it, though what is stored has none: a line
 * of data that an event's text could begin would be a frame of its own making.
 */
#include "handlers/sse.h"
#include "handlers/runs.h"
#include <string.h>

void sse_field(struct buf *b, const char *name, const void *text, size_t n)
{
	const char *p = text;
	for (;;) {
		size_t k = 0;
		while (k < n && p[k] != '\n' && p[k] != '\r')
			k++;
		buf_adds(b, name);
		buf_adds(b, ": ");
		buf_add(b, p, k);
		buf_addc(b, '\n');
		if (k == n)
			return;
		k += k + 1 < n && p[k] == '\r' && p[k + 1] == '\n' ? 2 : 1;
		p += k;
		n -= k;
	}
}

/* [a-z][a-z0-9_.]*, as the store has it: what else a name might be is left out, and is then called "message". */
static bool name_plain(const char *s)
{
	return s[0] >= 'a' && s[0] <= 'z' && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_.") == strlen(s);
}

bool sse_event(struct buf *b, struct buf *line, const char *run, const struct st_event *ev)
{
	if (!event_line(line, run, ev))
		return false;
	buf_addf(b, "id: %llu\n", (unsigned long long)ev->sequence);
	if (name_plain(ev->type))
		sse_field(b, "event", ev->type, strlen(ev->type));
	sse_field(b, "data", line->p, line->n - 1); /* its own end of line is not part of it */
	buf_addc(b, '\n');
	return !buf_failed(b);
}
