/* Pairing codes: 8 characters that nobody mistakes for each other, 29 to choose from. */
#ifndef LIB_PAIRING_H
#define LIB_PAIRING_H
#include <stdbool.h>
#include <stdint.h>

enum { PAIRING_CODE = 8 };
void pairing_mint(char out[PAIRING_CODE + 1]);
/* The SHA-256 of what was typed, without blanks and hyphens and in capitals. False: it could not be made. */
bool pairing_hash(const char *typed, uint8_t hash[32]);
#endif
