/*
 * Foreign text made harmless by the rules of spec/text.tab: what every text loses, what one line loses besides, then
 * the cut. Body text loses exactly the listed code points; one line also loses whatever Unicode says shows nothing,
 * as libunistring's tables tell. Trusts nothing: what is no UTF-8 goes, too.
 */
#include "lib/text.h"
#include "lib/die.h"
#include "lib/json.h"
#include <stdint.h>
#include <string.h>
#include <unictype.h>

static const char ellipsis[] = "\xe2\x80\xa6";
enum { ELLIPSIS = sizeof ellipsis - 1 };

static const struct text_row rows[TEXT_F__COUNT] = {
#define FIELD(constant, name_, kind_, cap_, of_) \
	[constant] = {.name = (name_), .kind = (kind_), .of = (of_), .cap = (cap_)},
    TEXT_FIELDS(FIELD)
#undef FIELD
};

/* c - first <= last - first is one comparison and holds for a range that begins with 0, too. */
#define RANGE(first, last) || (c - (first) <= (uint32_t)(last) - (first))
#define PROPERTY(name) || uc_is_property_##name(c)

static bool dropped(uint32_t c, enum text_kind kind)
{
	if (c >= 0x20 && c < 0x7f)
		return false;
	if (false TEXT_TAKEN(RANGE, PROPERTY))
		return kind != TEXT_BODY || !(false TEXT_BODY_KEPT(RANGE, PROPERTY));
	return kind == TEXT_LINE && (false TEXT_LINE_TAKEN(RANGE, PROPERTY));
}

static bool blank(uint32_t c)
{
	return false TEXT_BLANK(RANGE, PROPERTY);
}

const struct text_row *text_row(enum text_field f)
{
	return &rows[f];
}

enum text_field text_field_of(const char *key, bool question)
{
	for (size_t i = 0; i < TEXT_F__COUNT; i++)
		if ((rows[i].of == TEXT_OF_ANY || (rows[i].of == TEXT_OF_QUESTION && question)) &&
		    strcmp(rows[i].name, key) == 0)
			return (enum text_field)i;
	return TEXT_F_EVENT;
}

/* A mark without its letter would be shown on the "…". */
static void drop_marks(struct buf *out, size_t start)
{
	while (out->n > start) {
		size_t at = out->n - 1;
		uint32_t c = 0;
		while (at > start && (out->p[at] & 0xc0) == 0x80)
			at--;
		if (utf8_next((const char *)out->p + at, out->n - at, &c) == 0 || !uc_is_property_combining(c))
			return;
		out->n = at;
	}
}

bool text_clean(struct buf *out, const char *s, size_t n, enum text_kind kind, size_t cap)
{
	size_t start = out->n, length = 0, keep = 0;
	size_t keep_most = cap < ELLIPSIS ? cap : cap - ELLIPSIS;
	bool changed = false;
	for (size_t i = 0; i < n;) {
		uint32_t code = 0;
		size_t len = utf8_next(s + i, n - i, &code);
		if (len == 0 || dropped(code, kind)) {
			/* A byte that is no UTF-8 should not get here; it goes no further. */
			changed = true;
			i += len == 0 ? 1 : len;
			continue;
		}
		if (length + len > cap) {
			if (buf_failed(out))
				return true;
			out->n = start + keep;
			drop_marks(out, start);
			if (cap >= ELLIPSIS)
				buf_adds(out, ellipsis);
			return true;
		}
		buf_add(out, s + i, len);
		length += len;
		if (length <= keep_most)
			keep = length;
		i += len;
	}
	return changed;
}

bool text_field(struct buf *out, enum text_field f, const char *s, size_t n)
{
	return text_clean(out, s, n, rows[f].kind, rows[f].cap);
}

bool text_words(const char *s, size_t n)
{
	for (size_t i = 0; i < n;) {
		uint32_t c = 0;
		size_t len = utf8_next(s + i, n - i, &c);
		if (len > 0 && !blank(c))
			return true;
		i += len == 0 ? 1 : len;
	}
	return false;
}

/* How many bytes from s on are a character that shows; 0: none. */
static size_t showing(const char *s, size_t n, bool utf8, uint32_t *code)
{
	size_t len = utf8_next(s, n, code);
	if (len == 0)
		*code = (uint8_t)*s;
	if (len > 1)
		return utf8 && !dropped(*code, TEXT_LINE) ? len : 0;
	return len == 1 && !dropped(*code, TEXT_LINE) ? 1 : 0;
}

void text_screen(struct buf *out, const char *s, size_t n, bool utf8)
{
	for (size_t i = 0; i < n;) {
		char shown[LOG_BYTE];
		uint32_t code;
		size_t len = showing(s + i, n - i, utf8, &code);
		if (len > 0 || code == '\t')
			buf_add(out, s + i, len > 0 ? len : 1);
		else
			buf_add(out, shown, log_byte(shown, (unsigned char)s[i]));
		i += len > 0 ? len : 1;
	}
}

void text_json(struct buf *out, const char *json, size_t n, bool utf8)
{
	for (size_t i = 0; i < n;) {
		uint32_t code;
		size_t len = showing(json + i, n - i, utf8, &code), whole = utf8_next(json + i, n - i, &code);
		if (len > 0)
			buf_add(out, json + i, len);
		else if (code == '\n' || code == '\r' || code == '\t')
			buf_addc(out, ' '); /* never in a string */
		else if (code > 0xffff)
			buf_addf(out, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
		else
			buf_addf(out, "\\u%04x", whole > 0 ? code : 0xfffd);
		i += whole > 0 ? whole : 1;
	}
}
