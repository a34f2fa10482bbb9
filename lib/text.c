/*
 * Foreign text made harmless, in the order control characters, hidden characters, length. Body text loses
 * exactly the characters of the first two lists; one-line labels also lose whatever else shows nothing:
 * default-ignorable characters, line and paragraph separators, interlinear marks, noncharacters.
 * Code points without an assigned character are kept for now: the C library's tables do not tell them
 * apart reliably from those of a newer Unicode.
 */
#include "lib/text.h"
#include "lib/json.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct range {
	uint32_t first, last;
};

static const char ellipsis[] = "\xe2\x80\xa6";
enum { ELLIPSIS = sizeof ellipsis - 1 };

/* Direction marks and overrides, joiners, invisible spaces, tags. */
static const struct range hidden[] = {{0x061c, 0x061c}, {0x200b, 0x200f}, {0x202a, 0x202e},  {0x2060, 0x2060},
				      {0x2066, 0x2069}, {0xfeff, 0xfeff}, {0xe0000, 0xe007f}};

/* What a label loses besides: Default_Ignorable_Code_Point, U+2028, U+2029, U+FFF9 to U+FFFB, U+FDD0 to U+FDEF. */
static const struct range invisible[] = {{0x00ad, 0x00ad},   {0x034f, 0x034f},   {0x115f, 0x1160},  {0x17b4, 0x17b5},
					 {0x180b, 0x180f},   {0x2028, 0x2029},   {0x2060, 0x206f},  {0x3164, 0x3164},
					 {0xfdd0, 0xfdef},   {0xfe00, 0xfe0f},   {0xffa0, 0xffa0},  {0xfff0, 0xfffb},
					 {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};

static bool among(uint32_t c, const struct range *r, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (c >= r[i].first && c <= r[i].last)
			return true;
	return false;
}

static bool dropped(uint32_t c, enum text_kind kind)
{
	if (c < 0x20 || (c >= 0x7f && c <= 0x9f))
		return kind != TEXT_BODY || (c != '\n' && c != '\t');
	if (c < 0xad)
		return false;
	if (among(c, hidden, sizeof hidden / sizeof hidden[0]))
		return true;
	return kind == TEXT_LINE &&
	       ((c & 0xfffe) == 0xfffe || among(c, invisible, sizeof invisible / sizeof invisible[0]));
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
			if (!buf_failed(out))
				out->n = start + keep;
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

void text_log(struct buf *out, const char *s, size_t n, size_t cap)
{
	size_t start = out->n, keep = 0;
	size_t keep_most = cap < 3 ? 0 : cap - 3;
	for (size_t i = 0; i < n; i++) {
		uint8_t c = (uint8_t)s[i];
		char shown[8];
		int len = snprintf(shown, sizeof shown, c >= 0x20 && c <= 0x7e ? "%c" : "\\x%02x", c);
		if (out->n - start + (size_t)len > cap) {
			if (!buf_failed(out))
				out->n = start + keep;
			if (cap >= 3)
				buf_adds(out, "...");
			return;
		}
		buf_add(out, shown, (size_t)len);
		if (buf_failed(out))
			return;
		if (out->n - start <= keep_most)
			keep = out->n - start;
	}
}
