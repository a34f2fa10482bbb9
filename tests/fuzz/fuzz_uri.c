/*
 * libFuzzer target: any bytes as a request target. An accepted path is canonical, stays so and finds at most
 * what its text says; a query that is read gives printable values, each name once.
 */
#include "fcgi/ingress.h"
#include "gen/routes.h"
#include "handlers/query.h"
#include "lib/own.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static bool printable(const char *s)
{
	while (*s > 0x20 && *s < 0x7f)
		s++;
	return *s == '\0';
}

static void check_query(const char *text)
{
	own_arena struct arena a;
	arena_init(&a, 1 << 20);
	struct arrival in = {.query = text};
	struct request rq = {.in = &in, .arena = &a};
	struct query_pair pairs[] = {{"after", NULL}, {"limit", NULL}, {"status", NULL}, {NULL, NULL}};
	char field[65];
	if (query_read(&rq, pairs, field) != ERR_OK) {
		must(strlen(field) < sizeof field && printable(field));
		return;
	}
	size_t sent = 0;
	for (const struct query_pair *p = pairs; p->name != NULL; p++)
		if (p->value != NULL) {
			must(printable(p->value) && strlen(p->value) <= QUERY_VALUE);
			sent += strlen(p->name) + 1 + strlen(p->value);
		}
	must(text == NULL || sent <= strlen(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[INGRESS_PATH], again[INGRESS_PATH];
	const char *query, *none;
	own_free char *uri = malloc(size + 1);
	must(uri != NULL);
	memcpy(uri, data, size);
	uri[size] = '\0';
	enum uri_verdict verdict = uri_parse(uri, path, &query);
	if (verdict == URI_ODD) {
		/* Text, of which a {label} may be made: whole segments of it. */
		must(path[0] == '/' && utf8_valid(path, strlen(path), NULL) && strchr(path, '\\') == NULL);
		must(strstr(path, "//") == NULL && strstr(path, "/../") == NULL && strstr(path, "/./") == NULL);
		for (const char *p = path; *p != '\0'; p++)
			must((unsigned char)*p >= 0x20 && *p != 0x7f);
	}
	if (verdict != URI_OK)
		return 0;
	must(uri_parse(path, again, &none) == URI_OK && none == NULL && strcmp(path, again) == 0);
	must(path[0] == '/' && printable(path) && strpbrk(path, "%?#\\") == NULL);
	must(strstr(path, "//") == NULL && strstr(path, "/../") == NULL && strstr(path, "/./") == NULL);
	must(query == NULL || query[-1] == '?');
	struct route_found found = {0};
	route_find(routes_public, "GET", path, &found);
	for (int i = 0; found.path_known && i < ROUTE_ARGS; i++)
		must(strstr(path, found.arg[i]) != NULL && strchr(found.arg[i], '/') == NULL);
	check_query(query);
	return 0;
}
