/* For the files that speak HTTP themselves. */
#ifndef CLI_HTTP_H
#define CLI_HTTP_H
#include <curl/curl.h>

#include "cli/cli.h"

/*
 * A handle for one GET of path with this token, to the named server alone. more: a header besides, or NULL. *headers is
 * what it sends, for http_end() with the handle. NULL after saying what is wrong: no server, no memory.
 */
CURL *http_begin(const struct cli *cli, const struct secret *token, const char *path, const char *more,
		 struct curl_slist **headers);
/* cli/explain.c: what went wrong, and what to do, as "pinfold: WHAT (CODE): WHAT TO DO". Of an error that a server
 * answered, and of one that cannot be asked; why: as libcurl says it. */
void explain_answer(const struct cli *cli, const struct http_answer *answer);
void explain_unreachable(const struct cli *cli, CURLcode rc, const char *why);
/* A file as the body of a POST, from where its descriptor stands. */
struct http_file {
	int fd;
	uint64_t bytes;
	const char *type;                                 /* its Content-Type */
	void (*came_on)(uint64_t bytes, uint64_t of_all); /* called now and then; NULL: nobody wants to know */
};
/* As http_ask. */
int http_send(const struct cli *cli, const struct secret *token, const char *path, const struct http_file *file,
	      struct http_answer *answer);
void http_end(CURL *c, struct curl_slist *headers);
#endif
