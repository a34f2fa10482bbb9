/* See question.h. */
#include "lib/question.h"
#include "lib/buf.h"
#include "lib/digest.h"

enum { QUESTION_MAX = 1000000 };

bool question_digest(const char *effect, size_t effect_n, const char *preview, size_t preview_n, uint8_t out[32])
{
	own_buf struct buf b;
	buf_init(&b, QUESTION_MAX);
	buf_add(&b, effect, effect_n);
	buf_addc(&b, '\0');
	buf_add(&b, preview, preview_n);
	return !buf_failed(&b) && sha256(b.p, b.n, out);
}
