/* The only writer of HTTP: an answer's head as CGI header lines, then its body, through libfcgi. */
#ifndef FCGI_REPLY_H
#define FCGI_REPLY_H
#include "handlers/reply.h"
#include <fcgiapp.h>

struct reply_fcgi {
	FCGX_Stream *out;
	size_t written;
	/* Called before writing may have to wait for the peer. */
	void (*waits)(void *ctx);
	void *ctx;
};

/* r stays the caller's, and must live as long as what is returned. */
struct reply_out reply_fcgi(struct reply_fcgi *r);
#endif
