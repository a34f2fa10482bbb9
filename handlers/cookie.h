/* The cookie that holds a paired browser's credential, and where it counts. */
#ifndef HANDLERS_COOKIE_H
#define HANDLERS_COOKIE_H
#include "handlers/request.h"
#include "lib/token.h"

/* False: there is none, or more than one. */
bool cookie_find(const struct arrival *in, char token[PRINCIPAL_TOKEN_LEN + 1]);
/* The Set-Cookie value, in the arena; NULL without memory. seconds: its life. */
char *cookie_set(struct arena *a, const struct arrival *in, const char *token, uint64_t seconds);
/* Did our own page send this? By its Host, its Origin (which all but GET must have) and Sec-Fetch-Site. */
bool origin_ours(const struct conf *conf, const struct arrival *in);
#endif
