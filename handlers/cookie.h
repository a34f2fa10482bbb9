/* The cookie that holds a paired browser's credential, and where it counts. */
#ifndef HANDLERS_COOKIE_H
#define HANDLERS_COOKIE_H
#include "handlers/request.h"
#include "lib/token.h"

/* False: there is none, or more than one. */
bool cookie_find(const struct arrival *in, char token[PRINCIPAL_TOKEN_LEN + 1]);
/* The Set-Cookie value, in out. seconds: its life. False: it does not fit, as none that comes in does. */
enum { COOKIE_BYTES = 512 };
bool cookie_set(const struct arrival *in, const char *token, uint64_t seconds, char out[COOKIE_BYTES]);
/* Did our own page send this? By its Host, its Origin (which all but GET must have) and Sec-Fetch-Site. */
bool origin_ours(const struct conf *conf, const struct arrival *in);
#endif
