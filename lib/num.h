/* Exact numbers from text, ids, and clocks. */
#ifndef LIB_NUM_H
#define LIB_NUM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Digits only, no sign, no leading zero but "0" itself, within [min, max]. */
bool num_u64(const char *s, size_t n, uint64_t min, uint64_t max, uint64_t *out);
/* The value of one hexadecimal digit, or -1. */
int num_hex(char c);
/* [A-Za-z0-9][A-Za-z0-9._-]{0,127}. */
bool id_valid(const char *s);
bool id_valid_n(const char *s, size_t n);
enum { UUID_LEN = 36 };
void uuid4(char out[UUID_LEN + 1]);
/* Milliseconds since the epoch (CLOCK_REALTIME): for records and expiry. */
uint64_t clock_ms(void);
/* Milliseconds that never step back and count sleep (CLOCK_BOOTTIME): for timers. */
uint64_t timer_ms(void);
/* Reads a whole regular file of at most max bytes without following a final link; NULL with errno.
 * The caller frees; a NUL is added behind the *n bytes. */
char *file_read(int dirfd, const char *path, size_t max, size_t *n);
/* All of it or false with errno; EINTR is retried. */
bool write_all(int fd, const void *p, size_t n);
#endif
