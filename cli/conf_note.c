/* What is wrong with a configuration: kept, printed, and guessed at. Prints nothing of a secret, since it reads none.
 */
#include "cli/conf_note.h"

#include <string.h>

#include "lib/text.h"

enum { LONGEST_NAME = 64 };

static void keep(struct conf_notes *n, struct conf_place at, bool error, const char *fmt, va_list ap)
    __attribute__((format(printf, 4, 0)));
static void keep(struct conf_notes *n, struct conf_place at, bool error, const char *fmt, va_list ap)
{
	char text[2048];

	vsnprintf(text, sizeof text, fmt, ap);
	n->errors += error;
	if (n->n < CONF_NOTES) {
		const char *file = arena_dup(n->arena, at.file, strlen(at.file));
		const char *kept = arena_dup(n->arena, text, strlen(text));
		n->v[n->n] = (struct conf_note){
		    .at = {file != NULL ? file : "", at.line}, .error = error, .text = kept != NULL ? kept : ""};
	}
	n->n++;
}

void conf_vwrong(struct conf_notes *n, struct conf_place at, const char *fmt, va_list ap)
{
	keep(n, at, true, fmt, ap);
}

void conf_wrong(struct conf_notes *n, struct conf_place at, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	keep(n, at, true, fmt, ap);
	va_end(ap);
}

void conf_worth(struct conf_notes *n, struct conf_place at, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	keep(n, at, false, fmt, ap);
	va_end(ap);
}

void conf_print(const struct conf_notes *n, FILE *to)
{
	size_t kept = n->n < CONF_NOTES ? n->n : CONF_NOTES;

	for (size_t i = 0; i < kept; i++) {
		const struct conf_note *v = &n->v[i];
		own_buf struct buf b;
		buf_init(&b, 16384);
		text_log(&b, v->at.file, strlen(v->at.file), 2400);
		if (v->at.line > 0)
			buf_addf(&b, ":%u", v->at.line);
		buf_adds(&b, v->error ? ": " : ": warning: ");
		text_log(&b, v->text, strlen(v->text), 8192);
		fprintf(to, "%s\n", buf_cstr(&b) != NULL ? buf_cstr(&b) : "");
	}
	if (kept < n->n)
		fprintf(to, "and %zu more\n", n->n - kept);
}

/* How many letters must be changed, added, left out or exchanged with the next to make one of the other. */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][LONGEST_NAME + 1], n = strlen(a), m = strlen(b);

	for (size_t j = 0; j <= m; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t *now = rows[i % 3], *one = rows[(i + 2) % 3], *two = rows[(i + 1) % 3];
		now[0] = i;
		for (size_t j = 1; j <= m; j++) {
			size_t best = one[j - 1] + (a[i - 1] != b[j - 1]);
			best = one[j] + 1 < best ? one[j] + 1 : best;
			best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && two[j - 2] + 1 < best)
				best = two[j - 2] + 1;
			now[j] = best;
		}
	}
	return rows[n % 3][m];
}

const char *conf_nearest(const char *name, const char *const *names, size_t n)
{
	const char *found = NULL;
	size_t least = strlen(name) / 3 + 1;

	if (strlen(name) > LONGEST_NAME)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		size_t d = strlen(names[i]) > LONGEST_NAME ? least + 1 : distance(name, names[i]);
		if (d <= least && (found == NULL || d < least)) {
			found = names[i];
			least = d;
		}
	}
	return found;
}
