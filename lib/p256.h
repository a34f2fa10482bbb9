/* Points of the curve P-256 that strangers send. */
#ifndef LIB_P256_H
#define LIB_P256_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { P256_POINT = 65 };

/* An uncompressed point of P-256 that is on the curve. False with errno 0, or why it could not be found out. */
bool p256_point(const uint8_t *p, size_t n);
#endif
