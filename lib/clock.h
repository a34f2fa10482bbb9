/* Of lib/num.h, what also root's daemon needs: ids, clocks, writing. */
#ifndef LIB_CLOCK_H
#define LIB_CLOCK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* [A-Za-z0-9][A-Za-z0-9._-]{0,127}. */
bool id_valid(const char *s);
bool id_valid_n(const char *s, size_t n);
/* Milliseconds since the epoch (CLOCK_REALTIME): for records and expiry. */
uint64_t clock_ms(void);
/* Milliseconds that never step back and count sleep (CLOCK_BOOTTIME): for timers. */
uint64_t timer_ms(void);
/* All of it or false with errno; EINTR is retried. */
bool write_all(int fd, const void *p, size_t n);
#endif
