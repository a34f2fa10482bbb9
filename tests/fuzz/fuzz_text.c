/*
 * libFuzzer target: any bytes as foreign text. What comes out is UTF-8, within its cap, and holds nothing
 * that C-61 and C-62 take out, read here from a list of its own; a log line is printable ASCII.
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

static bool forbidden(uint32_t c, enum text_kind kind)
{
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
	/* Clean text stays as it is. */
	must(!text_clean(&two, (const char *)one.p, one.n, kind, cap) && one.n == two.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *s = (const char *)data;
	size_t cap = size == 0 ? 0 : data[0] % 64u;
	for (int kind = TEXT_LINE; kind <= TEXT_BODY; kind++) {
		clean(s, size, (enum text_kind)kind, cap);
		clean(s, size, (enum text_kind)kind, size);
	}
	own_buf struct buf line;
	buf_init(&line, 1 << 20);
	text_log(&line, s, size, cap);
	must(line.n <= cap);
	for (size_t i = 0; i < line.n; i++)
		must(line.p[i] >= 0x20 && line.p[i] < 0x7f);
	return 0;
}
