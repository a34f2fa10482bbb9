/* Route look-up: a walk over the generated table, segment by segment. The path is canonical already. */
#include "lib/route.h"
#include <string.h>

static const char *const method_names[METHOD__COUNT] = {
    [METHOD_GET] = "GET", [METHOD_POST] = "POST", [METHOD_DELETE] = "DELETE", [METHOD_PUT] = "PUT"};

static size_t segment(const char *p)
{
	return strcspn(p, "/");
}

/* Matches and takes the {x} segments out; behind one there may be an ending, ":verb", which is not taken. A segment too
 * long for an argument matches nothing. */
static bool match(const char *pattern, const char *path, char arg[ROUTE_ARGS][161])
{
	size_t args = 0;
	for (;;) {
		size_t pn = segment(pattern), n = segment(path);
		if (pattern[0] == '{') {
			const char *ending = strchr(pattern, '}') + 1;
			size_t en = (size_t)(pattern + pn - ending);
			if (n <= en || n - en >= 161 || args == ROUTE_ARGS || memcmp(path + n - en, ending, en) != 0)
				return false;
			memcpy(arg[args], path, n - en);
			arg[args++][n - en] = 0;
		} else if (pn != n || memcmp(pattern, path, n) != 0) {
			return false;
		}
		pattern += pn;
		path += n;
		if (*pattern == 0 || *path == 0)
			return *pattern == *path;
		pattern++;
		path++;
	}
}

static void add_allow(char allow[64], const char *name)
{
	size_t at = strlen(allow), n = strlen(name);
	if (at + 2 + n >= 64)
		return;
	if (at > 0) {
		memcpy(allow + at, ", ", 2);
		at += 2;
	}
	memcpy(allow + at, name, n + 1);
}

void route_find(const struct route *table, const char *method, const char *path, struct route_found *found)
{
	unsigned listed = 0;
	memset(found, 0, sizeof *found);
	for (const struct route *r = table; r->path != NULL; r++) {
		char arg[ROUTE_ARGS][161] = {{0}};
		if (!match(r->path, path, arg))
			continue;
		found->path_known = true;
		found->labelled = found->labelled || strstr(r->path, "{label}") != NULL;
		const char *name = method_names[r->method];
		if ((listed & 1u << r->method) == 0)
			add_allow(found->allow, name);
		listed |= 1u << r->method;
		if (found->route == NULL && strcmp(method, name) == 0) {
			found->route = r;
			memcpy(found->arg, arg, sizeof arg);
		}
	}
}
