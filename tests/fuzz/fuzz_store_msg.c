/* libFuzzer target: every decoder of gen/store_msg over one input. */
#include "tests/fuzz/fuzz_codecs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_codecs(st_codecs, data, size);
	return 0;
}
