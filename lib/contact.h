/* Whom a push service may write to: push_contact, the "sub" of RFC 8292. */
#ifndef LIB_CONTACT_H
#define LIB_CONTACT_H
#include <stdbool.h>

enum { CONTACT_MAX = 200 };

/* "mailto:name@host" or "https://host...", of characters that need no escape in JSON. */
bool contact_valid(const char *s);
#endif
