/* libFuzzer target: one frame for every decoder of gen/store_msg, or a script of frames for its dispatcher. */
#include "tests/fuzz/fuzz_codecs.h"
#include "tests/fuzz/fuzz_dispatch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 0 && data[0] == FUZZ_SCRIPT)
		fuzz_script(&st_fuzz, data + 1, size - 1);
	else
		fuzz_codecs(st_codecs, data, size);
	return 0;
}
