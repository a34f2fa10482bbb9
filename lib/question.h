/* What a person's answer is bound to. */
#ifndef LIB_QUESTION_H
#define LIB_QUESTION_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* SHA-256 of the effect, a NUL and the preview, as the agent has them: before anything is cleaned or cut for a person's
 * eyes. False with errno. */
bool question_digest(const char *effect, size_t effect_n, const char *preview, size_t preview_n, uint8_t out[32]);
#endif
