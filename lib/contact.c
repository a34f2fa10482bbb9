/* See contact.h. */
#include "lib/contact.h"
#include <stddef.h>
#include <string.h>

bool contact_valid(const char *s)
{
	static const char mail[] = "mailto:", page[] = "https://";
	size_t n = strnlen(s, CONTACT_MAX + 1);
	bool is_mail = strncmp(s, mail, sizeof mail - 1) == 0, is_page = strncmp(s, page, sizeof page - 1) == 0;
	if (n > CONTACT_MAX || (!is_mail && !is_page))
		return false;
	const char *rest = s + (is_mail ? sizeof mail : sizeof page) - 1, *at = strchr(rest, '@');
	if (is_mail ? at == NULL || at == rest || at[1] == '\0' : *rest == '\0')
		return false;
	for (size_t i = 0; i < n; i++)
		if (s[i] <= ' ' || s[i] > '~' || strchr("\"\\<>", s[i]) != NULL)
			return false;
	return true;
}
