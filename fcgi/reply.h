/* The only writer of HTTP: an answer's head as CGI header lines, then its body, through libfcgi. */
#ifndef FCGI_REPLY_H
#define FCGI_REPLY_H
#include "handlers/reply.h"
#include <fcgiapp.h>

struct reply_out reply_fcgi(FCGX_Stream *out);
#endif
