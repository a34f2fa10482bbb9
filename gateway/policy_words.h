/* The words of model requests: how a policy and an effort are called, and how a field's name may be spelt. */
#ifndef GATEWAY_POLICY_WORDS_H
#define GATEWAY_POLICY_WORDS_H
#include "gateway/denied.h"
#include "gateway/policy.h"

/* Is key how a client may spell this field of the table: as it stands there or, of two, as aB for a_b? */
bool spells(bool two, const char *field, const char *key);
/* A name as aB, whichever of the two it was; cut where it is too long to be any of the table. Returns out. */
const char *spelling(const char *key, char out[KEY_SHOWN]);
/* Gemini's four levels of thinking, as the efforts that they are. A name for each effort: the nearest that there is. */
bool level_named(const char *name, size_t n, enum effort *effort);
const char *level_name(enum effort effort);
#endif
