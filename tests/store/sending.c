/* See sending.h. */
#include "tests/store/sending.h"
#include <string.h>

enum err source_begin(struct ask *a, const char *tenant, uint64_t bytes, uint64_t most)
{
	struct st_source_begin m = {.tenant = tenant, .bytes = bytes, .most = most};
	struct st_ok ok;
	return st_call_source_begin(a, &m, NULL, &ok, NULL);
}

enum err source_part(struct ask *a, const char *tenant, uint64_t at, const uint8_t *p, size_t n)
{
	struct st_source_part m = {.tenant = tenant, .offset = at, .data = {p, (uint32_t)n}};
	struct st_ok ok;
	return st_call_source_part(a, &m, NULL, &ok, NULL);
}

enum err source_end(struct ask *a, const char *tenant, uint64_t bytes, struct sent *sent)
{
	struct st_source_end m = {.tenant = tenant, .bytes = bytes, .by = "api:tests", .request_id = "r"};
	struct st_source_stored is;
	enum err e = st_call_source_end(a, &m, NULL, &is, NULL);
	if (e != ERR_OK)
		return e;
	*sent = (struct sent){.expires_at = is.expires_at, .made = is.made};
	if (is.sha256.n != sizeof sent->sha)
		return ERR_INTERNAL_ERROR;
	memcpy(sent->sha, is.sha256.p, sizeof sent->sha);
	return ERR_OK;
}

enum err source_drop(struct ask *a, const char *tenant)
{
	struct st_source_drop m = {.tenant = tenant};
	struct st_ok ok;
	return st_call_source_drop(a, &m, NULL, &ok, NULL);
}

enum err source_send(struct ask *a, const char *tenant, const uint8_t *p, size_t n, size_t part, struct sent *sent)
{
	enum err e = FCGI(source_begin(a, tenant, 0, n));
	for (size_t at = 0; e == ERR_OK && at < n; at += part)
		e = FCGI(source_part(a, tenant, at, p + at, n - at < part ? n - at : part));
	return e == ERR_OK ? FCGI(source_end(a, tenant, n, sent)) : e;
}
