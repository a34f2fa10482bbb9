/*
 * Finds given secret values in bytes that must not hold them, as they are and as tools spell them on the way: in base64
 * (both alphabets, from any of three offsets, wrapped or not), in hex, with JSON's escapes and in percent form. Knows
 * no other disguise: who has a value can always hide it better.
 */
#ifndef LIB_KEYMASK_H
#define LIB_KEYMASK_H
#include "lib/secret.h"

/* Of a value that is looked for: a shorter one would be found where nobody wrote it. */
enum { KEYMASK_LEAST = 16, KEYMASK_MOST = 2000, KEYMASK_VALUES = 64, KEYMASK_FORMS = 5 };

struct keymask {
	struct {
		struct secret text;
		unsigned char form;
	} v[KEYMASK_VALUES * KEYMASK_FORMS];
	size_t n;
	bool begins[256]; /* may a form begin with this byte? */
};

/* Adds a value, of which it takes copies. False: no memory, no room, or not of a length that is looked for. */
bool keymask_add(struct keymask *k, const void *value, size_t n);
/* Puts "[masked]" in the place of each value. Returns how many bytes are left: never more. */
size_t keymask_hide(const struct keymask *k, void *p, size_t n);
bool keymask_holds(const struct keymask *k, const void *p, size_t n);
void keymask_wipe(struct keymask *k);
#endif
