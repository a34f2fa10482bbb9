/* libFuzzer target: every decoder of gen/records over one input. */
#include "tests/fuzz/fuzz_codecs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_codecs(rec_codecs, data, size);
	return 0;
}
