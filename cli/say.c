/*
 * What others wrote, on the way to a terminal: a run's texts, a server's answers, names of files. Nothing in it can
 * move the cursor, forge a line or hide. The only place of this program where such text is written.
 */
#include <langinfo.h>
#include <locale.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "lib/text.h"

/* Does this terminal read UTF-8? */
static bool utf8_here(void)
{
	static int known = -1;

	if (known < 0)
		known = setlocale(LC_CTYPE, "") != NULL && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	return known != 0;
}

void say_foreign(FILE *to, const char *text, size_t n)
{
	own_buf struct buf b;

	buf_init(&b, 4 * n + 64);
	text_screen(&b, text, n, utf8_here());
	if (!buf_failed(&b) && b.n > 0)
		fwrite(b.p, 1, b.n, to);
}

void say_wrong(const char *what, const char *why)
{
	fputs("pinfold: ", stderr);
	say_foreign(stderr, what, strlen(what));
	fprintf(stderr, ": %s\n", why);
}

void say_cell(const char *text, size_t width)
{
	size_t n = strlen(text);

	say_foreign(stdout, text, n);
	printf("%*s", (int)(utf8_count(text, n) < width ? width - utf8_count(text, n) : 0), "");
}

void say_lines(FILE *to, const char *margin, const char *text, size_t n)
{
	for (const char *p = text, *end = text + n; p < end;) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		size_t len = (size_t)((stop != NULL ? stop : end) - p);
		fputs(margin, to);
		say_foreign(to, p, len);
		fputc('\n', to);
		p += len + 1;
	}
}

void say_time(char out[32], const struct json *ms, bool day)
{
	int64_t at = 0;
	struct tm tm;

	out[0] = '\0';
	if (ms != NULL && json_int(ms, 0, INT64_MAX, &at)) {
		time_t t = (time_t)(at / 1000);
		size_t n = localtime_r(&t, &tm) == NULL ? 0
			   : day                        ? strftime(out, 32, "%Y-%m-%d %H:%M:%S", &tm)
							: strftime(out, 32, "%H:%M:%S", &tm);
		if (n == 0)
			out[0] = '\0';
	}
}

void say_json(const char *json, size_t n)
{
	own_buf struct buf b;

	buf_init(&b, 6 * n + 64);
	if (isatty(STDOUT_FILENO))
		text_json(&b, json, n, utf8_here());
	else
		buf_add(&b, json, n);
	buf_addc(&b, '\n');
	if (!buf_failed(&b))
		fwrite(b.p, 1, b.n, stdout);
}
