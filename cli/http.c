/*
 * Calls to the public API over libcurl. The token is sent to the named server only: no redirects, no
 * proxy, and it is wiped after use.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/http.h"
#include "lib/num.h"
#include "lib/secret.h"

enum { ANSWER_MAX = 64 << 20 };

/* The one token of a file that only its owner may read. False after saying what is wrong. */
static bool token_read(const char *path, struct secret *token)
{
	struct stat st;
	size_t n;
	char *text = file_read(AT_FDCWD, path, 256, &n);

	if (text == NULL || stat(path, &st) != 0) {
		say_wrong(path, errno == EINVAL || errno == EFBIG || errno == ELOOP
				    ? "not a regular file with one token"
				    : strerror(errno));
		free(text);
		return false;
	}
	if ((st.st_mode & 077) != 0) {
		say_wrong(path, "others may read this token: chmod 600 it");
		wipe(text, n);
		free(text);
		return false;
	}
	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	if (n == 0)
		say_wrong(path, "empty; a token is wanted there");
	bool ok = n > 0 && secret_set(token, text, n);
	wipe(text, n);
	free(text);
	return ok;
}

/* From a variable. False after saying that it is not set. */
static bool token_take(const char *name, struct secret *token)
{
	const char *value = getenv(name);

	if (value != NULL && value[0] != '\0')
		return secret_set(token, value, strlen(value));
	fputs("pinfold: no token: set ", stderr);
	say_foreign(stderr, name, strlen(name));
	fputs(", or name another variable with --token-env or a file of mode 0600 with --token-file\n", stderr);
	return false;
}

bool token_is_set(const char *name)
{
	const char *value = getenv(name);
	return value != NULL && value[0] != '\0';
}

bool token_find(const struct cli *cli, struct secret *token)
{
	if (cli->token_file != NULL)
		return token_read(cli->token_file, token);
	if (cli->token_env != NULL)
		return token_take(cli->token_env, token);
	return token_is_set("PINFOLD_TOKEN") || !token_device_named(cli) ? token_take("PINFOLD_TOKEN", token)
									 : token_device(cli, token);
}

bool token_device_named(const struct cli *cli)
{
	return cli->device_file != NULL || cli->device_env != NULL || token_is_set("PINFOLD_DEVICE_TOKEN");
}

bool token_device(const struct cli *cli, struct secret *token)
{
	if (cli->device_file != NULL)
		return token_read(cli->device_file, token);
	return token_take(cli->device_env != NULL ? cli->device_env : "PINFOLD_DEVICE_TOKEN", token);
}

static size_t take(char *p, size_t size, size_t n, void *user)
{
	buf_add(user, p, size * n);
	return buf_failed(user) ? 0 : size * n;
}

CURL *http_begin(const struct cli *cli, const struct secret *token, const char *path, const char *more,
		 struct curl_slist **headers)
{
	char url[2048], bearer[1200];

	*headers = NULL;
	if (!http_named(cli))
		return NULL;
	size_t base = strlen(cli->server);
	while (base > 0 && cli->server[base - 1] == '/')
		base--;
	snprintf(url, sizeof url, "%.*s%s", (int)base, cli->server, path);
	snprintf(bearer, sizeof bearer, "Authorization: Bearer %.*s", (int)token->n, (const char *)token->p);
	CURL *c = curl_easy_init();
	if (c != NULL) {
		*headers = curl_slist_append(*headers, bearer);
		*headers = curl_slist_append(*headers, "Expect:");
		if (more != NULL)
			*headers = curl_slist_append(*headers, more);
		curl_easy_setopt(c, CURLOPT_URL, url);
		curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
		curl_easy_setopt(c, CURLOPT_PROXY, "");
		curl_easy_setopt(c, CURLOPT_HTTPHEADER, *headers);
		curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, 10L);
		if (cli->ca_file != NULL)
			curl_easy_setopt(c, CURLOPT_CAINFO, cli->ca_file);
	}
	wipe(bearer, sizeof bearer);
	return c;
}

void http_end(CURL *c, struct curl_slist *headers)
{
	for (struct curl_slist *h = headers; h != NULL; h = h->next)
		wipe(h->data, strlen(h->data));
	curl_slist_free_all(headers);
	curl_easy_cleanup(c);
}

/* "Retry-After: 30" */
static size_t take_header(char *p, size_t size, size_t n, void *user)
{
	static const char name[] = "retry-after:";
	struct http_answer *answer = user;
	size_t at = sizeof name - 1, end = size * n;

	if (end > at && strncasecmp(p, name, at) == 0) {
		while (at < end && p[at] == ' ')
			at++;
		while (end > at && (p[end - 1] == '\r' || p[end - 1] == '\n' || p[end - 1] == ' '))
			end--;
		if (!num_u64(p + at, end - at, 0, 10000000, &answer->retry_after))
			answer->retry_after = 0;
	}
	return size * n;
}

static size_t give(char *p, size_t size, size_t n, void *user)
{
	const struct http_file *file = user;
	ssize_t got;
	do {
		got = read(file->fd, p, size * n);
	} while (got < 0 && errno == EINTR);
	return got < 0 ? CURL_READFUNC_ABORT : (size_t)got;
}

static int came_on(void *user, curl_off_t down, curl_off_t downed, curl_off_t up, curl_off_t upped)
{
	const struct http_file *file = user;
	(void)down;
	(void)downed;
	(void)up;
	file->came_on((uint64_t)upped, file->bytes);
	return 0;
}

/* A body that may be large: it has as long as it comes along. */
static void send_file(CURL *c, const struct http_file *file)
{
	curl_easy_setopt(c, CURLOPT_POST, 1L);
	curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)file->bytes);
	curl_easy_setopt(c, CURLOPT_READFUNCTION, give);
	curl_easy_setopt(c, CURLOPT_READDATA, file);
	curl_easy_setopt(c, CURLOPT_TIMEOUT, 0L);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, 120L);
	if (file->came_on == NULL)
		return;
	curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, came_on);
	curl_easy_setopt(c, CURLOPT_XFERINFODATA, file);
}

static int exchange(const struct cli *cli, const struct secret *token, const char *method, const char *path,
		    const char *body, const struct http_file *file, struct http_answer *answer)
{
	struct curl_slist *headers;
	char why[CURL_ERROR_SIZE] = "", key[200], type[100];
	snprintf(type, sizeof type, "Content-Type: %s", file != NULL ? file->type : "application/json");
	CURL *c = http_begin(cli, token, path, body != NULL || file != NULL ? type : NULL, &headers);

	answer->retry_after = 0;
	buf_init(&answer->body, ANSWER_MAX);
	if (c == NULL)
		return cli->server == NULL ? EXIT_USAGE : EXIT_UNREACHABLE;
	if (cli->idempotency_key != NULL) {
		snprintf(key, sizeof key, "Idempotency-Key: %s", cli->idempotency_key);
		headers = curl_slist_append(headers, key);
		curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
	}
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, &answer->body);
	curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, take_header);
	curl_easy_setopt(c, CURLOPT_HEADERDATA, answer);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, why);
	curl_easy_setopt(c, CURLOPT_TIMEOUT, 120L);
	if (method != NULL)
		curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, method);
	if (body != NULL) {
		curl_easy_setopt(c, CURLOPT_POSTFIELDS, body);
		curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body));
	}
	if (file != NULL)
		send_file(c, file);
	CURLcode rc = curl_easy_perform(c);
	curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &answer->status);
	http_end(c, headers);
	if (rc == CURLE_OK)
		return 0;
	if (!cli->quiet)
		explain_unreachable(cli, rc, why[0] != '\0' ? why : curl_easy_strerror(rc));
	buf_free(&answer->body);
	return EXIT_UNREACHABLE;
}

int http_raw(const struct cli *cli, const struct secret *token, const char *method, const char *path, const char *body,
	     struct http_answer *answer)
{
	return exchange(cli, token, method, path, body, NULL, answer);
}

static int judged(const struct cli *cli, int status, struct http_answer *answer)
{
	if (status != 0 || (answer->status >= 200 && answer->status <= 299))
		return status;
	status = answer->status >= 500 ? EXIT_UNREACHABLE : EXIT_FAILED;
	if (!cli->quiet || status == EXIT_FAILED)
		explain_answer(cli, answer);
	buf_free(&answer->body);
	return status;
}

int http_ask(const struct cli *cli, const struct secret *token, const char *method, const char *path, const char *body,
	     struct http_answer *answer)
{
	return judged(cli, http_raw(cli, token, method, path, body, answer), answer);
}

int http_send(const struct cli *cli, const struct secret *token, const char *path, const struct http_file *file,
	      struct http_answer *answer)
{
	return judged(cli, exchange(cli, token, NULL, path, NULL, file, answer), answer);
}

static int call(const struct cli *cli, const char *method, const char *path, const char *body,
		struct http_answer *answer)
{
	own_secret struct secret token = {0};

	buf_init(&answer->body, ANSWER_MAX);
	if (!http_named(cli) || !token_find(cli, &token))
		return EXIT_USAGE;
	return http_ask(cli, &token, method, path, body, answer);
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
