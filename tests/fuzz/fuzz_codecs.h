/*
 * What every codec target does: hands the input to each reader of one table. What a reader takes must
 * be written again to the same bytes, since there is one spelling of each message.
 */
#ifndef TESTS_FUZZ_FUZZ_CODECS_H
#define TESTS_FUZZ_FUZZ_CODECS_H
#include "tests/unit/codec_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void fuzz_codecs(const struct codec_row *rows, const uint8_t *data, size_t size);
#endif
