/* Foreign text for a log line or a terminal; apart from the cleaning, so that who only logs links no Unicode tables. */
#include "lib/die.h"
#include "lib/text.h"
#include <stdint.h>

void text_log(struct buf *out, const char *s, size_t n, size_t cap)
{
	size_t start = out->n, keep = 0;
	size_t keep_most = cap < 3 ? 0 : cap - 3;
	for (size_t i = 0; i < n; i++) {
		uint8_t c = (uint8_t)s[i];
		char shown[LOG_BYTE];
		size_t len = log_byte(shown, c);
		if (out->n - start + len > cap) {
			if (!buf_failed(out))
				out->n = start + keep;
			if (cap >= 3)
				buf_adds(out, "...");
			return;
		}
		buf_add(out, shown, len);
		if (buf_failed(out))
			return;
		if (out->n - start <= keep_most)
			keep = out->n - start;
	}
}
