/* The query string, strictly: name=value pairs, each name once, known names only. */
#ifndef HANDLERS_QUERY_H
#define HANDLERS_QUERY_H
#include "handlers/request.h"

struct query_pair {
	const char *name;  /* accepted name */
	const char *value; /* set by query_read, NULL when absent; decoded, in the request's arena */
};
enum { QUERY_VALUE = 512 };
/* pairs ends with name NULL; pairs may hold no name at all. ERR_OK, or ERR_INVALID_QUERY with the name at
 * fault in field ("" where it has none). */
enum err query_read(struct request *rq, struct query_pair *pairs, char field[65]);
/* The same for a route without any. */
enum err query_none(struct request *rq, char field[65]);
#endif
