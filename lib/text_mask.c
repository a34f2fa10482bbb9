/*
 * Secrets are masked by their shape (C-107), by the rows of spec/text.tab: so that a key that an agent read does not
 * end up on a telephone. A mask must not become a place to hide a command from who decides: what is hidden is always
 * one run of characters that no shell gives a meaning and no blank is among, and it ends where any other stands. One
 * pass; each byte is looked at by each rule a bounded number of times.
 */
#include "lib/json.h"
#include "lib/text.h"
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

static const char mark[] = "[masked]";

enum kind { PREFIX, PARTS, WORD_, BLOCK, NAME };
enum class { UPPER = 1, LOWER = 2, UNDER = 4, DASH = 8, PLUS = 16, DOT = 32, SIGN = 64 };
enum {
	CLASS_UPPER = UPPER,
	CLASS_ALNUM = UPPER | LOWER,
	CLASS_WORD = UPPER | LOWER | UNDER,
	CLASS_URL = UPPER | LOWER | UNDER | DASH,
	CLASS_BASE64 = UPPER | LOWER | PLUS,
	CLASS_BEARER = UPPER | LOWER | UNDER | DASH | PLUS | DOT,
	CLASS_VALUE = UPPER | LOWER | UNDER | DASH | PLUS | DOT | SIGN
};

static const struct row {
	enum kind kind;
	const char *what;
	size_t len;
	unsigned class;
	size_t least;
} rows[] = {
#define WORD WORD_
#define MASK(kind_, what_, class_, least_) {kind_, what_, sizeof(what_) - 1, CLASS_##class_, least_},
    TEXT_MASKS(MASK)
#undef MASK
#undef WORD
};
enum { ROWS = sizeof rows / sizeof *rows, BLANKS = 16 };

static unsigned class_of(char c)
{
	if ((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
		return UPPER;
	if (c >= 'a' && c <= 'z')
		return LOWER;
	return c == '_'                           ? UNDER
	       : c == '-'                         ? DASH
	       : c == '+' || c == '/'             ? PLUS
	       : c == '.' || c == '~'             ? DOT
	       : c != '\0' && strchr("!@#%^*", c) ? SIGN
						  : 0;
}

struct mask {
	struct buf *out;
	const char *s;
	size_t n, copied;  /* copied: what is before it has gone out */
	size_t no_parts;   /* no parts begin before it */
	size_t due, due_n; /* a value that is to be hidden when it is come to: its name may hold a secret, too */
	bool block, changed;
};

static size_t run(const struct mask *m, size_t at, unsigned class)
{
	size_t i = at;

	while (i < m->n && (class_of(m->s[i]) & class) != 0)
		i++;
	return i - at;
}

static bool starts(const struct mask *m, size_t at, const char *what, size_t len)
{
	return m->n - at >= len && memcmp(m->s + at, what, len) == 0;
}

/* Does a word begin here? What was masked ends one, as its mark will the next time. */
static bool begins(const struct mask *m, size_t at, unsigned class)
{
	return at == 0 || at == m->copied || (class_of(m->s[at - 1]) & class) == 0;
}

/* n bytes from at on are hidden. Returns what is behind them. */
static size_t hide(struct mask *m, size_t at, size_t n)
{
	buf_add(m->out, m->s + m->copied, at - m->copied);
	buf_adds(m->out, mark);
	m->copied = at + n;
	m->changed = true;
	return m->copied;
}

static size_t blanks(const struct mask *m, size_t at)
{
	size_t i = at;

	while (i < m->n && i - at < BLANKS && (m->s[i] == ' ' || m->s[i] == '\t'))
		i++;
	return i - at;
}

/* A quote, as it is or as JSON and shells write one inside another. */
static size_t quote(const struct mask *m, size_t at)
{
	size_t escaped = at < m->n && m->s[at] == '\\';

	return at + escaped < m->n && (m->s[at + escaped] == '"' || m->s[at + escaped] == '\'') ? escaped + 1 : 0;
}

/* Does the identifier of n bytes at p end with the name, case and the signs between its words aside? */
static bool ends_with(const char *p, size_t n, const struct row *r)
{
	size_t left = r->len;

	while (left > 0 && n > 0) {
		char c = p[--n];
		if (c == '_' || c == '-')
			continue;
		if ((c | 0x20) != r->what[--left])
			return false;
	}
	return left == 0;
}

static bool has_digit(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] >= '0' && p[i] <= '9')
			return true;
	return false;
}

/* NAME=VALUE; NAME: VALUE and NAME = VALUE, where the value is quoted or has a digit (else it is a sentence or a type);
 * --NAME VALUE with a digit. */
static void mask_name(struct mask *m, size_t at, const struct row *r)
{
	size_t name = run(m, at, CLASS_URL), i = at + name;

	if (!ends_with(m->s + at, name, r))
		return;
	i += quote(m, i);
	size_t before = blanks(m, i), signs = 0;
	i += before;
	/* A ">" alone is a shell's: what is behind it is where a command writes to. */
	while (i < m->n && signs < 2 && (m->s[i] == '=' || m->s[i] == ':' || (signs > 0 && m->s[i] == '>')))
		i++, signs++;
	if (signs == 0 && !(before > 0 && m->s[at] == '-'))
		return;
	bool tight = before == 0 && signs > 0 && m->s[i - 1] == '=';
	size_t after = blanks(m, i), open = quote(m, i + after);
	i += after + open;
	size_t value = run(m, i, r->class), rest = i + value;
	if (value < r->least || (!(tight && after == 0) && open == 0 && !has_digit(m->s + i, value)))
		return;
	/* Code: what is called or looked up is no secret. */
	if (open == 0 && rest < m->n && (m->s[rest] == '(' || m->s[rest] == '['))
		return;
	m->due = i;
	m->due_n = value;
}

static size_t mask_parts(struct mask *m, size_t at, const struct row *r)
{
	size_t first = run(m, at + r->len, r->class), i = at + r->len + first, second;

	if (first < r->least)
		return 0;
	if (i == m->n || m->s[i] != '.' || (second = run(m, i + 1, r->class)) < r->least) {
		/* Whatever else begins in this part fails at the same place. */
		m->no_parts = i;
		return 0;
	}
	i += 1 + second;
	while (i < m->n && m->s[i] == '.' && (second = run(m, i + 1, r->class)) > 0)
		i += 1 + second;
	return hide(m, at + r->len, i - at - r->len);
}

/* "-----BEGIN ... PRIVATE KEY-----" */
static bool block_begins(const struct mask *m, size_t at, const struct row *r)
{
	static const char begin[] = "-----BEGIN ", end[] = "-----";
	size_t i = at + sizeof begin - 1;

	if (!starts(m, at, begin, sizeof begin - 1))
		return false;
	for (size_t k = 0; k < 40 && i < m->n && ((m->s[i] >= 'A' && m->s[i] <= 'Z') || m->s[i] == ' '); k++, i++)
		if (starts(m, i, r->what, r->len) && starts(m, i + r->len, end, sizeof end - 1))
			return true;
	return false;
}

static size_t mask_row(struct mask *m, size_t at, const struct row *r)
{
	size_t n;

	switch (r->kind) {
	case PREFIX:
		if (!starts(m, at, r->what, r->len) || !begins(m, at, CLASS_ALNUM))
			return 0;
		n = run(m, at + r->len, r->class);
		return n >= r->least ? hide(m, at + r->len, n) : 0;
	case PARTS:
		return at >= m->no_parts && starts(m, at, r->what, r->len) && begins(m, at, CLASS_ALNUM)
			   ? mask_parts(m, at, r)
			   : 0;
	case WORD_:
		if (m->n - at < r->len || strncasecmp(m->s + at, r->what, r->len) != 0 || !begins(m, at, CLASS_ALNUM))
			return 0;
		n = blanks(m, at + r->len);
		at += r->len + n;
		return n > 0 && (n = run(m, at, r->class)) >= r->least ? hide(m, at, n) : 0;
	case BLOCK:
		if (m->block || block_begins(m, at, r)) {
			m->block = !starts(m, at, "-----END", 8);
			n = m->block && begins(m, at, r->class) ? run(m, at, r->class) : 0;
			return n >= r->least ? hide(m, at, n) : 0;
		}
		return 0;
	case NAME:
		if (begins(m, at, CLASS_URL))
			mask_name(m, at, r);
		return 0;
	}
	return 0;
}

bool text_mask(struct buf *out, const char *s, size_t n)
{
	struct mask m = {.out = out, .s = s, .n = n};

	for (size_t i = 0; i < n;) {
		size_t next = m.due_n > 0 && i == m.due ? hide(&m, i, m.due_n) : 0;
		if (i >= m.due)
			m.due_n = 0;
		for (size_t r = 0; r < ROWS && next == 0; r++)
			next = mask_row(&m, i, &rows[r]);
		i = next > 0 ? next : i + 1;
	}
	if (m.copied < n)
		buf_add(out, s + m.copied, n - m.copied);
	return m.changed;
}

bool text_field_masked(struct buf *out, enum text_field f, const char *s, size_t n, bool *masked)
{
	own_buf struct buf clean = {0}, hidden = {0};

	buf_init(&clean, n + 1);
	buf_init(&hidden, n + 1);
	bool changed = text_clean(&clean, s, n, text_row(f)->kind, n);
	*masked = text_mask(&hidden, (const char *)clean.p, clean.n);
	if (buf_failed(&clean) || buf_failed(&hidden))
		buf_fail(out, errno);
	return text_field(out, f, (const char *)hidden.p, hidden.n) || changed || *masked;
}
