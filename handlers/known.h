/*
 * Whose a token is, of tokens that stored has vouched for. That never changes while a token is one; whether it still is
 * one does, at any moment: so who asks here has a guess, which stored must confirm in the very operation it is for
 * (struct proof). A row holds a token's hash, never the token, and is only found by who presents the token.
 */
#ifndef HANDLERS_KNOWN_H
#define HANDLERS_KNOWN_H
#include "handlers/request.h"

struct known;
/* NULL: no memory. It lives as long as the process, and is shared by its threads. */
struct known *known_new(void);
/* k may be NULL: it knows nobody. */
bool known_find(struct known *k, const struct proof *proof, struct principal *who);
void known_keep(struct known *k, const struct proof *proof, const struct principal *who);
/* stored does not vouch for it any more, or never did. */
void known_drop(struct known *k, const struct proof *proof);
#endif
