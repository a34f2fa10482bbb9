/*
 * What others wrote, on the way to a terminal: a run's texts, a server's answers, names of files. Nothing in it can
 * move the cursor, forge a line or hide. The only place of this program where such text is written.
 */
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
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

/* All zero: it is no terminal, or does not say. */
static struct winsize screen(FILE *to)
{
	struct winsize w = {0};

	if (!isatty(fileno(to)) || ioctl(fileno(to), TIOCGWINSZ, &w) != 0)
		w = (struct winsize){0};
	return w;
}

size_t say_rows(FILE *to)
{
	return screen(to).ws_row;
}

/* How many bytes of s, which can be shown as it is, surely fit between these columns. A terminal has its own mind of
 * how wide a character is; two is the most. */
static size_t fits(const char *s, size_t n, size_t from, size_t to)
{
	size_t i = 0;

	while (i < n) {
		uint32_t code;
		size_t len = utf8_next(s + i, n - i, &code);
		from += s[i] == '\t' ? 8 - from % 8 : len > 1 ? 2 : 1;
		if (from > to && i > 0)
			break;
		i += len > 0 ? len : 1;
	}
	return i;
}

void say_fit(FILE *to, const char *text, size_t n, size_t columns)
{
	own_buf struct buf b;

	buf_init(&b, 4 * n + 64);
	text_screen(&b, text, n, utf8_here());
	if (!buf_failed(&b) && b.n > 0 && columns > 1)
		fwrite(b.p, 1, fits((const char *)b.p, b.n, 0, columns), to);
}

void say_colour(FILE *to, enum colour colour)
{
	static const char *const codes[] = {
	    [COLOUR_NONE] = "0", [COLOUR_GOOD] = "32", [COLOUR_BAD] = "31", [COLOUR_NOTE] = "33"};
	const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

	if (isatty(fileno(to)) && term != NULL && strcmp(term, "dumb") != 0 && (no == NULL || no[0] == '\0'))
		fprintf(to, "\033[%sm", codes[colour]);
}

size_t say_margin(FILE *to, const char *first, const char *more, const char *text, size_t n)
{
	size_t width = screen(to).ws_col, margin = strlen(first), rows = 1;
	own_buf struct buf b;

	buf_init(&b, 4 * n + 64);
	text_screen(&b, text, n, utf8_here());
	fputs(first, to);
	for (size_t at = 0, part; !buf_failed(&b) && at < b.n; at += part) {
		const char *p = (const char *)b.p + at;
		if (at > 0) {
			fprintf(to, "\n%s", more);
			margin = strlen(more);
			rows++;
		}
		part = width > margin && margin > 0 ? fits(p, b.n - at, margin, width) : b.n - at;
		fwrite(p, 1, part, to);
	}
	fputc('\n', to);
	return rows;
}

size_t say_lines(FILE *to, const char *margin, const char *more, const char *text, size_t n)
{
	size_t rows = 0;

	for (const char *p = text, *end = text + n; p < end;) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		size_t len = (size_t)((stop != NULL ? stop : end) - p);
		rows += say_margin(to, margin, more, p, len);
		p += len + 1;
	}
	return rows;
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
