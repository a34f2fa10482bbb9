#include "tests/fuzz/fuzz_codecs.h"
#include "lib/wire.h"
#include <stdlib.h>
#include <string.h>

void fuzz_codecs(const struct codec_row *rows, const uint8_t *data, size_t size)
{
	uint16_t number = 0;
	uint64_t op = 0;
	bool header = wire_peek(data, size, &number, &op);
	uint8_t *out = malloc(size + 1);
	if (out == NULL)
		return;
	for (const struct codec_row *row = rows; row->name != NULL; row++) {
		if (!row->read(data, size) || (row->framed && !header))
			continue;
		size_t n = row->again(data, size, out, size + 1, op);
		if (n != size || memcmp(out, data, n) != 0)
			abort();
	}
	free(out);
}
