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
void http_end(CURL *c, struct curl_slist *headers);
#endif
