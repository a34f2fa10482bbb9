/* See denied.h. The words are those of spec/fields.tab. */
#include "gateway/denied.h"
#include <string.h>

bool key_plain(const char *s, char out[KEY_SHOWN])
{
	size_t n = 0;

	for (; *s; s++) {
		if (*s == '_' || *s == '-')
			continue;
		if ((unsigned char)*s >= 0x80 || n + 1 >= KEY_SHOWN)
			return false;
		out[n++] = *s >= 'A' && *s <= 'Z' ? (char)(*s + ('a' - 'A')) : *s;
	}
	out[n] = 0;
	return true;
}

const struct field_denied *key_denied(const char *plain_key)
{
	for (const struct field_denied *d = fields_denied; d->field; d++)
		if (strcmp(d->field, plain_key) == 0)
			return d;
	return NULL;
}

static bool type_denied(const char *type)
{
	char name[KEY_SHOWN];

	if (!key_plain(type, name))
		return true;
	for (const char *const *t = types_denied; *t; t++) {
		size_t n = strlen(*t);
		if ((*t)[n - 1] == '*' ? strncmp(*t, name, n - 1) == 0 : strcmp(*t, name) == 0)
			return true;
	}
	return false;
}

static bool ends_in(const char *s, const char *tail)
{
	size_t n = strlen(s), t = strlen(tail);
	return n >= t && strcmp(s + n - t, tail) == 0;
}

bool address_is_data(const struct json *v)
{
	return v->type == JSON_STRING && strncmp(v->text, "data:", 5) == 0;
}

bool key_names_address(const char *plain_key)
{
	return ends_in(plain_key, "url") || ends_in(plain_key, "uri") || ends_in(plain_key, "urls") ||
	       ends_in(plain_key, "uris");
}

/* Under an address's name an object may say by any other where it is. */
static bool leads_out(const struct json *v)
{
	bool out = v->type == JSON_STRING && !address_is_data(v) && strstr(v->text, "://") != NULL;

	for (const struct json *m = v->child; m && !out; m = m->next)
		out = leads_out(m);
	return out;
}

bool value_fetched(const struct json *v)
{
	bool one = v->type == JSON_STRING && !address_is_data(v);

	for (const struct json *m = v->type == JSON_ARRAY ? v->child : NULL; m && !one; m = m->next)
		one = value_fetched(m);
	return one || (v->type == JSON_OBJECT && leads_out(v));
}

bool value_harmless(const struct json *v)
{
	for (const struct json *m = v->child; m; m = m->next) {
		char key[KEY_SHOWN];
		if (m->key) {
			if (!key_plain(m->key, key) || key_denied(key))
				return false;
			if (key_names_address(key) && value_fetched(m))
				return false;
			if (strcmp(key, "type") == 0 && m->type == JSON_STRING && type_denied(m->text))
				return false;
		}
		if (!value_harmless(m))
			return false;
	}
	return true;
}
