/*
 * The fuzz targets' check over fixed mutations of every sample, so that a build without libFuzzer (the
 * sanitizer build above all) also runs it. The same numbers come each time: a failure can be repeated.
 */
#include "tests/fuzz/fuzz_codecs.h"
#include <stdlib.h>
#include <string.h>

enum { SAMPLE = 65536, ROUNDS = 300 };

static uint64_t seed = 0x9e3779b97f4a7c15u;

static uint64_t next(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* A few bytes changed, with a taste for the small numbers and the extremes that lengths are made of. */
static size_t mutate(uint8_t *p, size_t n)
{
	static const uint8_t odd[] = {0, 1, 2, 3, 4, 127, 128, 129, 255};
	for (uint64_t k = next() % 4; k > 0; k--) {
		size_t at = next() % n;
		p[at] = next() % 2 ? odd[next() % sizeof odd] : (uint8_t)next();
	}
	if (next() % 4 == 0)
		n = next() % n;
	return n;
}

int main(void)
{
	static const struct codec_row *const tables[] = {st_codecs, sbx_codecs, bn_codecs, cf_codecs, rec_codecs};
	uint8_t *sample = malloc(SAMPLE);
	if (sample == NULL)
		return 1;
	for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
		for (const struct codec_row *row = tables[t]; row->name != NULL; row++) {
			size_t n = row->fill(sample, SAMPLE, true);
			for (int i = 0; n > 0 && i < ROUNDS; i++) {
				uint8_t *p = malloc(n);
				if (p == NULL)
					return 1;
				memcpy(p, sample, n);
				fuzz_codecs(tables[t], p, mutate(p, n));
				free(p);
			}
		}
	free(sample);
	return 0;
}
