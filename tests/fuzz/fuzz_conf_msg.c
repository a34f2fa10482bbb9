/* libFuzzer target: every decoder of gen/conf_msg over one input. */
#include "tests/fuzz/fuzz_codecs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_codecs(cf_codecs, data, size);
	return 0;
}
