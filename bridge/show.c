/* See show.h. */
#include "bridge/show.h"
#include <string.h>

static bool one_line(const char *path)
{
	return *path != '\0' && strpbrk(path, "\n\r") == NULL;
}

static void lines(struct buf *out, char sign, const char *text)
{
	while (text != NULL && *text != '\0') {
		size_t n = strcspn(text, "\n");
		buf_addc(out, sign);
		buf_add(out, text, n);
		buf_addc(out, '\n');
		text += n;
		if (*text == '\0')
			buf_adds(out, "\\ no newline at its end\n");
		else
			text++;
	}
}

bool show_change(struct buf *out, const char *word, const char *path, const char *before, const char *after)
{
	if (!one_line(path))
		return false;
	buf_addf(out, "%s %s\n", word, path);
	lines(out, '-', before);
	lines(out, '+', after);
	return true;
}

/* Every line has one of the signs of a unified diff. */
static bool is_diff(const char *diff)
{
	for (const char *p = diff; *p != '\0'; p++) {
		if (strchr(" +-@\\", *p) == NULL)
			return false;
		p += strcspn(p, "\n");
		if (*p == '\0')
			break;
	}
	return true;
}

bool show_diff(struct buf *out, const char *word, const char *path, const char *diff)
{
	size_t n = strlen(diff);

	if (!one_line(path) || !is_diff(diff))
		return false;
	buf_addf(out, "%s %s\n%s%s", word, path, diff, n > 0 && diff[n - 1] != '\n' ? "\n" : "");
	return true;
}

void show_rest(struct buf *out, const struct json *object, const char *const *but)
{
	struct jw w;
	bool any = false;

	jw_init(&w, out);
	for (const struct json *m = object->child; m != NULL; m = m->next) {
		size_t i = 0;
		while (but[i] != NULL && strcmp(but[i], m->key) != 0)
			i++;
		if (but[i] != NULL || m->type == JSON_NULL)
			continue;
		if (!any)
			jw_open(&w, '{');
		any = true;
		jw_key(&w, m->key);
		jw_json(&w, m);
	}
	if (any) {
		jw_close(&w, '}');
		buf_addc(out, '\n');
	}
}

struct call *call_find(struct calls *c, const char *id)
{
	for (unsigned i = 0; i < CALLS; i++)
		if (c->all[i].id[0] != '\0' && strcmp(c->all[i].id, id) == 0)
			return &c->all[i];
	return NULL;
}

struct call *call_new(struct calls *c, const char *id, bool push)
{
	struct call *at = NULL;

	if (*id == '\0' || strlen(id) >= CALL_ID)
		return NULL;
	if (push)
		at = &c->all[c->next++ % CALLS];
	for (unsigned i = 0; at == NULL && i < CALLS; i++)
		if (c->all[i].id[0] == '\0')
			at = &c->all[i];
	if (at == NULL)
		return NULL;
	call_drop(at);
	memcpy(at->id, id, strlen(id) + 1);
	return at;
}

void call_drop(struct call *call)
{
	buf_free(&call->shown);
	*call = (struct call){0};
	buf_init(&call->shown, SHOWN);
}

void calls_free(struct calls *c)
{
	for (unsigned i = 0; i < CALLS; i++)
		buf_free(&c->all[i].shown);
}
