/* Reads a query string once, without ever decoding twice. Refuses what it does not know. */
#include "handlers/query.h"
#include "lib/lack.h"
#include "lib/num.h"
#include <stdio.h>
#include <string.h>

/* Printable ASCII only comes out; '+' stays a plus, since no value of ours holds a blank. */
static bool decode(const char *s, size_t n, char *out)
{
	size_t k = 0;
	if (n > QUERY_VALUE)
		return false;
	for (size_t i = 0; i < n; i++) {
		int c = (unsigned char)s[i];
		if (c == '%') {
			int hi = i + 2 < n ? num_hex(s[i + 1]) : -1, lo = hi >= 0 ? num_hex(s[i + 2]) : -1;
			if (hi < 0 || lo < 0)
				return false;
			c = hi * 16 + lo;
			i += 2;
		}
		if (c <= 0x20 || c >= 0x7f)
			return false;
		out[k++] = (char)c;
	}
	out[k] = '\0';
	return true;
}

enum err query_read(struct request *rq, struct query_pair *pairs, char field[65])
{
	const char *p = rq->in->query;
	field[0] = '\0';
	if (p == NULL || *p == '\0')
		return ERR_OK;
	for (;;) {
		size_t n = strcspn(p, "&");
		const char *eq = memchr(p, '=', n);
		size_t name = eq != NULL ? (size_t)(eq - p) : n;
		struct query_pair *found = NULL;
		for (struct query_pair *q = pairs; q->name != NULL; q++)
			if (strlen(q->name) == name && memcmp(q->name, p, name) == 0)
				found = q;
		if (found == NULL || eq == NULL || found->value != NULL) {
			/* Only a name of ours is repeated to the caller. */
			if (found != NULL)
				snprintf(field, 65, "%s", found->name);
			return ERR_INVALID_QUERY;
		}
		char *value = arena_get(rq->arena, n + 1);
		if (value == NULL)
			return lack_error();
		if (!decode(eq + 1, n - name - 1, value)) {
			snprintf(field, 65, "%s", found->name);
			return ERR_INVALID_QUERY;
		}
		found->value = value;
		if (p[n] == '\0')
			return ERR_OK;
		p += n + 1;
	}
}

enum err query_none(struct request *rq, char field[65])
{
	struct query_pair none = {NULL, NULL};
	return query_read(rq, &none, field);
}
