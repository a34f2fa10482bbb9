/* Any bytes: the parser never misbehaves, and what it accepts is written in a form that it accepts again. */
#include "lib/json.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	own_arena struct arena a;
	own_buf struct buf one, two;
	arena_init(&a, 8 << 20);
	buf_init(&one, 8 << 20);
	buf_init(&two, 8 << 20);
	struct json *v = json_parse(&a, data, size, JSON_DEPTH, 5000, NULL);
	if (v == NULL)
		return 0;
	json_write(&one, v);
	if (buf_failed(&one))
		abort();
	v = json_parse(&a, one.p, one.n, JSON_DEPTH, 5000, NULL);
	if (v == NULL)
		abort();
	json_write(&two, v);
	if (buf_failed(&two) || one.n != two.n || memcmp(one.p, two.p, one.n) != 0)
		abort();
	return 0;
}
