/* What the command tells the attacker about the machine outside: lines "know NAME VALUE" of attack.txt. An attacker
 * that knows names, numbers and paths has no need to guess them. */
#ifndef ATTACK_KNOW_H
#define ATTACK_KNOW_H
#include <stdbool.h>

/* Reads attack.txt. False: it cannot be read. */
bool know_read(const char *path);
/* The value, or "". */
const char *know(const char *name);
/* The same as a number, 0 where there is none. */
long know_number(const char *name);
/* The k-th line "try ID", or NULL. */
const char *know_try(unsigned k);
/* What the first line says: try, plant or neighbour. */
const char *know_mode(void);
#endif
