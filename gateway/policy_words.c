/* See policy_words.h. No input or output, and nothing that an agent says is trusted. */
#include "gateway/policy_words.h"
#include <string.h>
#include <strings.h>

static const char *const efforts[EFFORT__COUNT] = {"none", "minimal", "low", "medium", "high", "xhigh", "max"};
static const char *const kinds[] = {"strict", "agent", "passthrough"};
static const char *const levels[] = {"MINIMAL", "LOW", "MEDIUM", "HIGH"};

bool policy_kind_named(const char *name, enum policy_kind *kind)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(kinds[i], name) == 0) {
			*kind = (enum policy_kind)i;
			return true;
		}
	return false;
}

bool effort_named(const char *name, size_t n, enum effort *effort)
{
	for (size_t i = 0; i < EFFORT__COUNT; i++)
		if (strlen(efforts[i]) == n && memcmp(efforts[i], name, n) == 0) {
			*effort = (enum effort)i;
			return true;
		}
	return false;
}

const char *effort_name(enum effort effort)
{
	return efforts[effort];
}

bool level_named(const char *name, size_t n, enum effort *effort)
{
	for (unsigned i = 0; i < sizeof levels / sizeof *levels; i++)
		if (strlen(levels[i]) == n && strncasecmp(levels[i], name, n) == 0) {
			*effort = (enum effort)(EFFORT_MINIMAL + i);
			return true;
		}
	return false;
}

const char *level_name(enum effort effort)
{
	return levels[effort < EFFORT_MINIMAL ? 0
		      : effort > EFFORT_HIGH  ? EFFORT_HIGH - EFFORT_MINIMAL
					      : effort - EFFORT_MINIMAL];
}

/* Where a_b goes on as aB. */
static bool joint(const char *s)
{
	return *s == '_' && s[1] >= 'a' && s[1] <= 'z';
}

static char capital(char c)
{
	return (char)(c - ('a' - 'A'));
}

bool spells(bool two, const char *field, const char *key)
{
	if (strcmp(field, key) == 0)
		return true;
	if (!two)
		return false;
	for (; *field && *key; field++, key++) {
		bool up = joint(field);
		field += up;
		if (*key != (up ? capital(*field) : *field))
			return false;
	}
	return *field == *key;
}

const char *spelling(const char *key, char out[KEY_SHOWN])
{
	size_t n = 0;

	for (const char *s = key; *s && n + 1 < KEY_SHOWN; s++) {
		bool up = joint(s);
		s += up;
		out[n++] = up ? capital(*s) : *s;
	}
	out[n] = 0;
	return out;
}
