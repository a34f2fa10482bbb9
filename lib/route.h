/*
 * Finds the row of a generated route table (gen/routes.h) for a method and a path that is already
 * canonical (no query, no percent-encoding left, no empty or dot segments).
 */
#ifndef LIB_ROUTE_H
#define LIB_ROUTE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum route_method { METHOD_GET, METHOD_POST, METHOD_DELETE, METHOD_PUT, METHOD__COUNT };
enum { ROUTE_NONE = 1, ROUTE_API = 2, ROUTE_DEVICE = 4, ROUTE_RUN = 8 }; /* principals */
/* BODY_ARCHIVE: an archive's type, and its handler reads it, in parts. */
enum route_body { BODY_NONE, BODY_JSON, BODY_ANY, BODY_ARCHIVE };
enum { ROUTE_ARGS = 2 };

struct request;
struct reply;
struct gate_call;

struct route {
	const char *name; /* of the handler */
	enum route_method method;
	const char *path; /* with {x} segments, or {x}:verb */
	unsigned principals;
	int audience;    /* enum token_audience, -1 none */
	unsigned rights; /* RIGHT_* of lib/token.h that an API token needs */
	uint32_t body_limit;
	enum route_body body;
	void (*handle)(struct request *rq, struct reply *rp); /* public: handle_NAME */
	void (*gate)(struct gate_call *call);                 /* internal: gate_NAME */
};

struct route_found {
	const struct route *route; /* NULL: no row of this method */
	bool path_known;           /* some row has this path: 405 rather than 404 */
	bool labelled;             /* and a {label} in it, which may be any text */
	char allow[64];            /* for the Allow header, such as "GET, POST" */
	char arg[ROUTE_ARGS][161]; /* the {x} segments in order */
};

/* table ends with a row whose path is NULL. */
void route_find(const struct route *table, const char *method, const char *path, struct route_found *found);
#endif
