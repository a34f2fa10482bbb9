/*
 * Secrets have a type: wiped on scope exit, compared in constant time, never printed.
 */
#ifndef LIB_SECRET_H
#define LIB_SECRET_H
#include "lib/wipe.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct secret {
	uint8_t *p; /* locked against swapping and kept out of core dumps where the system allows */
	size_t n;
};

/* Takes a copy. False: no memory or n > SECRET_MAX. */
bool secret_set(struct secret *s, const void *p, size_t n);
void secret_wipe(struct secret *s);
#define own_secret __attribute__((cleanup(secret_wipe)))
/* Constant time for a given pair of lengths. */
bool secret_equal(const void *a, size_t an, const void *b, size_t bn);
/* n random bytes from the kernel; ends the program if there are none. */
void random_bytes(void *p, size_t n);
/*
 * Secrets arrive in a sealed memfd, at start and with another configuration: u8 name length, name, u16 length, bytes,
 * repeated to the end. secrets_read takes them all; secrets_find gives one by name (trailing line end removed) or NULL.
 */
struct secrets {
	struct {
		char name[65];
		struct secret value;
	} v[64];
	size_t n;
};
bool secrets_read(struct secrets *s, int fd);
const struct secret *secrets_find(const struct secrets *s, const char *name);
void secrets_wipe(struct secrets *s);
#endif
