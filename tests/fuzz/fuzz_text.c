/*
 * libFuzzer target: any bytes as foreign text. What comes out is UTF-8, within its cap, and holds nothing
 * that C-61 and C-62 take out, nor in one line what D-57 does, read here from a list of its own; what is cut ends in
 * its mark and begins as what is not cut; what is masked stays so. What is a link is one that no two readers read
 * differently. A log line is printable ASCII.
 */
#include "lib/json.h"
#include "lib/text.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static bool hides(uint32_t c)
{
	return c == 0xad || c == 0x34f || c == 0x115f || c == 0x1160 || c == 0x17b4 || c == 0x17b5 ||
	       (c >= 0x180b && c <= 0x180f) || c == 0x2028 || c == 0x2029 || (c >= 0x2061 && c <= 0x206f) ||
	       c == 0x3164 || (c >= 0xfdd0 && c <= 0xfdef) || (c >= 0xfe00 && c <= 0xfe0f) || c == 0xffa0 ||
	       (c >= 0xfff9 && c <= 0xfffb) || (c & 0xfffe) == 0xfffe || (c >= 0x1d173 && c <= 0x1d17a) ||
	       (c >= 0xe0100 && c <= 0xe01ef);
}

static bool forbidden(uint32_t c, enum text_kind kind)
{
	if (kind == TEXT_LINE && hides(c))
		return true;
	if (c < 0x20)
		return kind != TEXT_BODY || (c != '\n' && c != '\t');
	return (c >= 0x7f && c <= 0x9f) || c == 0x200e || c == 0x200f || c == 0x61c || (c >= 0x202a && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069) || (c >= 0x200b && c <= 0x200d) || c == 0x2060 || c == 0xfeff ||
	       (c >= 0xe0000 && c <= 0xe007f);
}

static void clean(const char *s, size_t n, enum text_kind kind, size_t cap)
{
	own_buf struct buf one, two;
	buf_init(&one, 1 << 20);
	buf_init(&two, 1 << 20);
	bool changed = text_clean(&one, s, n, kind, cap);
	must(!buf_failed(&one) && one.n <= cap);
	must(changed || (one.n == n && (n == 0 || memcmp(one.p, s, n) == 0)));
	for (size_t i = 0; i < one.n;) {
		uint32_t c;
		size_t len = utf8_next((const char *)one.p + i, one.n - i, &c);
		must(len > 0 && !forbidden(c, kind));
		i += len;
	}
	if (one.n < n && cap >= 3) {
		own_buf struct buf all;
		buf_init(&all, 1 << 20);
		(void)text_clean(&all, s, n, kind, n);
		bool cut = all.n > cap;
		must(cut ? memcmp(one.p + one.n - 3, "\xe2\x80\xa6", 3) == 0 : all.n == one.n);
		must(memcmp(all.n > 0 ? (char *)all.p : "", one.n > 0 ? (char *)one.p : "", cut ? one.n - 3 : one.n) ==
		     0);
	}
	/* Clean text stays as it is. */
	must(!text_clean(&two, (const char *)one.p, one.n, kind, cap) && one.n == two.n);
}

/* What is masked is not longer, is UTF-8 where that was, and holds nothing more to mask; without a mark it is the text.
 */
static void mask(const char *s, size_t n)
{
	own_buf struct buf one, two;
	size_t at;
	buf_init(&one, 1 << 20);
	buf_init(&two, 1 << 20);
	bool masked = text_mask(&one, s, n);
	must(!buf_failed(&one) && one.n <= n);
	must(masked ? memmem(one.p, one.n, "[masked]", 8) != NULL : one.n == n && (n == 0 || memcmp(one.p, s, n) == 0));
	must(!utf8_valid(s, n, &at) || utf8_valid(one.p, one.n, &at));
	must(!text_mask(&two, (const char *)one.p, one.n) && one.n == two.n);
}

static void check_link(const char *s, size_t n)
{
	own_buf struct buf url, host, again;
	buf_init(&url, 1 << 20);
	buf_init(&host, 1 << 20);
	buf_init(&again, 1 << 20);
	if (!text_link(&url, &host, s, n)) {
		must(url.n == 0 && host.n == 0);
		return;
	}
	must(n >= 9 && host.n > 0 && url.n >= 8 + host.n && memcmp(url.p, "https://", 8) == 0);
	must(memcmp(url.p + 8, host.p, host.n) == 0);
	size_t end = 8 + host.n;
	for (; end < url.n && url.p[end] != '/' && url.p[end] != '?' && url.p[end] != '#'; end++)
		must(end == 8 + host.n ? url.p[end] == ':' : url.p[end] >= '0' && url.p[end] <= '9');
	for (size_t i = 0; i < host.n; i++)
		must(host.p[i] > 0x20 && host.p[i] < 0x7f && strchr("@%/?#\\", host.p[i]) == NULL);
	for (size_t i = 0; i < url.n;) {
		uint32_t c = 0;
		size_t len = utf8_next((const char *)url.p + i, url.n - i, &c);
		must(len > 0 && c != ' ' && c != 0xa0 && c != 0x3000 && !forbidden(c, TEXT_LINE));
		i += len;
	}
	must(text_link(&again, NULL, (const char *)url.p, url.n) && again.n == url.n &&
	     memcmp(again.p, url.p, url.n) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *s = (const char *)data;
	size_t cap = size == 0 ? 0 : data[0] % 64u;
	for (int kind = TEXT_LINE; kind <= TEXT_BODY; kind++) {
		clean(s, size, (enum text_kind)kind, cap);
		clean(s, size, (enum text_kind)kind, size);
	}
	mask(s, size);
	check_link(s, size);
	own_buf struct buf words;
	buf_init(&words, 1 << 20);
	(void)text_field(&words, TEXT_F_OPTION, s, size);
	/* A choice that is shown has more than blanks. */
	bool some = false;
	for (size_t i = 0; i < words.n; i++)
		some = some || (words.p[i] > 0x20 && words.p[i] < 0x7f);
	must(!some || text_words((const char *)words.p, words.n));
	own_buf struct buf line;
	buf_init(&line, 1 << 20);
	text_log(&line, s, size, cap);
	must(line.n <= cap);
	for (size_t i = 0; i < line.n; i++)
		must(line.p[i] >= 0x20 && line.p[i] < 0x7f);
	return 0;
}
