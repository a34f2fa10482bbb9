/* See sse.h. */
#include "cli/sse.h"

#include <string.h>

#include "lib/num.h"

void sse_begin(struct sse *s)
{
	buf_free(&s->line);
	buf_free(&s->data);
	buf_init(&s->line, SSE_EVENT_MAX);
	buf_init(&s->data, SSE_EVENT_MAX);
	s->begun = s->any = s->after_cr = s->type_too_long = s->failed = false;
	s->type[0] = '\0';
	memcpy(s->next_id, s->id, sizeof s->id);
}

void sse_free(struct sse *s)
{
	buf_free(&s->line);
	buf_free(&s->data);
}

static bool is(const char *name, size_t n, const char *what)
{
	return n == strlen(what) && memcmp(name, what, n) == 0;
}

static void take_field(struct sse *s, const char *name, size_t nn, const char *value, size_t vn)
{
	uint64_t ms;

	if (is(name, nn, "data")) {
		if (s->any)
			buf_addc(&s->data, '\n');
		buf_add(&s->data, value, vn);
		s->any = true;
	} else if (is(name, nn, "event")) {
		s->type_too_long = vn > SSE_TYPE_MAX;
		memcpy(s->type, value, s->type_too_long ? 0 : vn);
		s->type[s->type_too_long ? 0 : vn] = '\0';
	} else if (is(name, nn, "id") && vn <= SSE_ID_MAX && memchr(value, '\0', vn) == NULL) {
		/* One that has a NUL is ignored by the standard; a longer one than we could send back, by us. */
		memcpy(s->next_id, value, vn);
		s->next_id[vn] = '\0';
	} else if (is(name, nn, "retry") && num_u64(value, vn, 0, 3600000, &ms)) {
		s->retry = (unsigned)ms;
	}
}

static void end_event(struct sse *s, void (*take)(void *user, const struct sse_event *e), void *user)
{
	memcpy(s->id, s->next_id, sizeof s->id);
	if (s->any) {
		const char *data = buf_cstr(&s->data);
		if (data == NULL) {
			s->failed = true;
			return;
		}
		take(user,
		     &(struct sse_event){
			 .type = s->type[0] != '\0' ? s->type : "message", .data = data, .n = s->data.n, .id = s->id});
	}
	buf_reset(&s->data);
	s->any = s->type_too_long = false;
	s->type[0] = '\0';
}

static void end_line(struct sse *s, void (*take)(void *user, const struct sse_event *e), void *user)
{
	const char *p = buf_cstr(&s->line);
	size_t n = s->line.n;

	if (p == NULL) {
		s->failed = true;
		return;
	}
	if (!s->begun && n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) {
		p += 3;
		n -= 3;
	}
	s->begun = true;
	if (n == 0) {
		end_event(s, take, user);
	} else if (p[0] != ':') {
		const char *colon = memchr(p, ':', n);
		size_t nn = colon != NULL ? (size_t)(colon - p) : n, at = colon != NULL ? nn + 1 : n;
		if (at < n && p[at] == ' ')
			at++;
		take_field(s, p, nn, p + at, n - at);
	}
	buf_reset(&s->line);
	s->failed = s->failed || buf_failed(&s->data);
}

bool sse_feed(struct sse *s, const void *bytes, size_t n, void (*take)(void *user, const struct sse_event *e),
	      void *user)
{
	const char *p = bytes;

	for (size_t i = 0; i < n && !s->failed;) {
		size_t from = i;
		if (s->after_cr && p[i] == '\n') {
			s->after_cr = false;
			i++;
			continue;
		}
		s->after_cr = false;
		while (i < n && p[i] != '\n' && p[i] != '\r')
			i++;
		buf_add(&s->line, p + from, i - from);
		s->failed = s->failed || buf_failed(&s->line);
		if (i == n || s->failed)
			break;
		s->after_cr = p[i++] == '\r';
		end_line(s, take, user);
	}
	return !s->failed;
}
