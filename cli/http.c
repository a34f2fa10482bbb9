/*
 * Calls to the public API over libcurl. The token is sent to the named server only: no redirects, no
 * proxy, and it is wiped after use.
 */
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "lib/num.h"
#include "lib/secret.h"

enum { ANSWER_MAX = 64 << 20 };

/* The caller's token, from where the command line says. False after saying what is wrong. */
static bool find_token(const struct cli *cli, struct secret *token)
{
	const char *value = NULL;
	struct stat st;
	size_t n;

	if (cli->token_file != NULL) {
		char *text = file_read(AT_FDCWD, cli->token_file, 256, &n);
		if (text == NULL || stat(cli->token_file, &st) != 0) {
			fprintf(stderr, "pinfold: %s: %s\n", cli->token_file,
				errno == EINVAL || errno == EFBIG || errno == ELOOP
				    ? "not a regular file with one token"
				    : strerror(errno));
			free(text);
			return false;
		}
		if ((st.st_mode & 077) != 0) {
			fprintf(stderr, "pinfold: %s: others may read this token: chmod 600 it\n", cli->token_file);
			wipe(text, n);
			free(text);
			return false;
		}
		while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
			n--;
		if (n == 0)
			fprintf(stderr, "pinfold: %s: empty; a token is wanted there\n", cli->token_file);
		bool ok = n > 0 && secret_set(token, text, n);
		wipe(text, n);
		free(text);
		return ok;
	}
	if (cli->token_env != NULL)
		value = getenv(cli->token_env);
	else if ((value = getenv("PINFOLD_TOKEN")) == NULL)
		value = getenv("PINFOLD_DEVICE_TOKEN");
	if (value == NULL || value[0] == '\0') {
		fprintf(stderr, "pinfold: no token: set %s or name a file with --token-file\n",
			cli->token_env != NULL ? cli->token_env : "PINFOLD_TOKEN");
		return false;
	}
	return secret_set(token, value, strlen(value));
}

static size_t take(char *p, size_t size, size_t n, void *user)
{
	buf_add(user, p, size * n);
	return buf_failed(user) ? 0 : size * n;
}

/* Prints an error answer's sentence and field. */
static void explain(const struct cli *cli, long status, struct buf *body)
{
	struct arena a;
	struct json *v;

	arena_init(&a, 1 << 20);
	v = json_parse(&a, body->p, body->n, JSON_DEPTH, 1000, NULL);
	if (v == NULL || v->type != JSON_OBJECT) {
		fprintf(stderr, "pinfold: %s answered %ld without a reason\n", cli->server, status);
	} else {
		const char *field = member(v, "field");
		fprintf(stderr, "pinfold: %ld ", status);
		say_foreign(stderr, member(v, "error"), strlen(member(v, "error")));
		if (field[0] != '\0') {
			fputs(" at ", stderr);
			say_foreign(stderr, field, strlen(field));
		}
		fputs(": ", stderr);
		say_foreign(stderr, member(v, "message"), strlen(member(v, "message")));
		fputc('\n', stderr);
	}
	arena_free(&a);
}

int http_raw(const struct cli *cli, const struct secret *token, const char *method, const char *path, const char *body,
	     struct http_answer *answer)
{
	struct curl_slist *headers = NULL;
	char url[2048], bearer[1200];
	CURLcode rc;

	buf_init(&answer->body, ANSWER_MAX);
	if (cli->server == NULL) {
		fputs("pinfold: no server: set PINFOLD_URL or give --server URL\n", stderr);
		return EXIT_USAGE;
	}
	size_t base = strlen(cli->server);
	while (base > 0 && cli->server[base - 1] == '/')
		base--;
	snprintf(url, sizeof url, "%.*s%s", (int)base, cli->server, path);
	snprintf(bearer, sizeof bearer, "Authorization: Bearer %.*s", (int)token->n, (const char *)token->p);
	CURL *c = curl_easy_init();
	if (c == NULL)
		return EXIT_UNREACHABLE;
	headers = curl_slist_append(headers, bearer);
	headers = curl_slist_append(headers, "Expect:");
	if (body != NULL)
		headers = curl_slist_append(headers, "Content-Type: application/json");
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c, CURLOPT_PROXY, "");
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, &answer->body);
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, 10L);
	curl_easy_setopt(c, CURLOPT_TIMEOUT, 120L);
	if (method != NULL)
		curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, method);
	if (body != NULL) {
		curl_easy_setopt(c, CURLOPT_POSTFIELDS, body);
		curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body));
	}
	rc = curl_easy_perform(c);
	curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &answer->status);
	for (struct curl_slist *h = headers; h != NULL; h = h->next)
		wipe(h->data, strlen(h->data));
	curl_slist_free_all(headers);
	curl_easy_cleanup(c);
	wipe(bearer, sizeof bearer);
	if (rc == CURLE_OK)
		return 0;
	fprintf(stderr, "pinfold: %s cannot be reached: %s. Is this the address, and does the service run?\n",
		cli->server, curl_easy_strerror(rc));
	buf_free(&answer->body);
	return EXIT_UNREACHABLE;
}

static int call(const struct cli *cli, const char *method, const char *path, const char *body,
		struct http_answer *answer)
{
	own_secret struct secret token = {0};

	buf_init(&answer->body, ANSWER_MAX);
	if (cli->server == NULL) {
		fputs("pinfold: no server: set PINFOLD_URL or give --server URL\n", stderr);
		return EXIT_USAGE;
	}
	if (!find_token(cli, &token))
		return EXIT_USAGE;
	int status = http_raw(cli, &token, method, path, body, answer);
	if (status == 0 && (answer->status < 200 || answer->status > 299)) {
		explain(cli, answer->status, &answer->body);
		buf_free(&answer->body);
		return answer->status >= 500 ? EXIT_UNREACHABLE : EXIT_FAILED;
	}
	return status;
}

int http_call(const struct cli *cli, const char *path, const char *body, struct http_answer *answer)
{
	return call(cli, NULL, path, body, answer);
}

int http_delete(const struct cli *cli, const char *path)
{
	struct http_answer answer;
	int status = call(cli, "DELETE", path, NULL, &answer);
	if (status == 0)
		buf_free(&answer.body);
	return status;
}
