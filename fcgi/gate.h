/*
 * What must be true of the bytes of a FastCGI request before libfcgi may see them: one BEGIN_REQUEST of a
 * role we know, and a PARAMS stream that is whole, exact and within bounds. libfcgi reads the very same
 * bytes afterwards.
 */
#ifndef FCGI_GATE_H
#define FCGI_GATE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GATE_PEEK = 160 * 1024, GATE_PARAMS = 96 * 1024, GATE_NAMES = 512 };

enum gate_verdict {
	GATE_WHOLE, /* everything up to the end of PARAMS is there */
	GATE_MORE,  /* well-formed so far, not whole */
	GATE_BAD,   /* not FastCGI as it is written: no answer is possible */
	GATE_ROLE   /* a role that does not exist here: END_REQUEST with UNKNOWN_ROLE is the answer */
};

struct gate_param {
	const char *name, *value; /* each with a NUL behind */
	size_t name_n, value_n;
};

struct gate {
	uint16_t id, role;
	bool keep;
	bool many;     /* more than GATE_NAMES: the first ones are in params */
	size_t used;   /* bytes up to the end of PARAMS, once whole */
	bool complete; /* the request's body, if it has any, is there to its end as well */
	size_t nparams;
	struct gate_param params[GATE_NAMES];
	char text[GATE_PARAMS + 2 * GATE_NAMES];
	uint8_t stream[GATE_PARAMS];
};

enum { GATE_RESPONDER = 1 };

enum gate_verdict gate_read(struct gate *g, const uint8_t *p, size_t n);
#endif
