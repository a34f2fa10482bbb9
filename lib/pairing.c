/* See pairing.h. What is no code has a hash, too, and is compared like one. */
#include "lib/pairing.h"
#include "lib/digest.h"
#include "lib/secret.h"
#include <stddef.h>

/* Without 0 O, 1 I L, U V. */
static const char letters[] = "ABCDEFGHJKMNPQRSTWXYZ23456789";
enum { LETTERS = sizeof letters - 1, TYPED = 64 };

void pairing_mint(char out[PAIRING_CODE + 1])
{
	for (int i = 0; i < PAIRING_CODE;) {
		uint8_t b;
		random_bytes(&b, 1);
		if (b < 256 / LETTERS * LETTERS)
			out[i++] = letters[b % LETTERS];
	}
	out[PAIRING_CODE] = '\0';
}

bool pairing_hash(const char *typed, uint8_t hash[32])
{
	char code[TYPED];
	size_t n = 0;
	for (; *typed != '\0' && n < sizeof code; typed++)
		if (*typed != ' ' && *typed != '-')
			code[n++] = (char)(*typed >= 'a' && *typed <= 'z' ? *typed - 'a' + 'A' : *typed);
	bool ok = sha256(code, n, hash);
	wipe(code, sizeof code);
	return ok;
}
