/* What no model request may hold, wherever it stands: names, types of tools, addresses that a provider would fetch. */
#ifndef GATEWAY_DENIED_H
#define GATEWAY_DENIED_H
#include "gen/fields.h"
#include "lib/json.h"
#include <stdbool.h>

enum { KEY_SHOWN = 64 };

/* Lower case, without "_" and "-": there are readers of JSON that do not tell these apart. False: it is longer than any
 * name in the table, or has letters that some of them fold. */
bool key_plain(const char *s, char out[KEY_SHOWN]);
/* The row of spec/fields.tab that denies this plain name everywhere; NULL: none. */
const struct field_denied *key_denied(const char *plain_key);
/* Does the plain name say that an address is meant, or several? */
bool key_names_address(const char *plain_key);
/* Is it an address that holds what it stands for? */
bool address_is_data(const struct json *v);
/* Below such a name: a text that is no data, a list with one, or an object with an address in it. */
bool value_fetched(const struct json *v);
/* A value that the table does not describe: is nothing in it that no request may hold? */
bool value_harmless(const struct json *v);
#endif
