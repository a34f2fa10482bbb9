/*
 * pinfold-gateway --test PROVIDER: one tiny call to a provider, as the gateway makes its calls, by a process of its own
 * that is started for this by "pinfold provider test": with the gateway's uid, confinement and key, and nothing else.
 * It says on standard output, in one line, what came of it: a word of probe_words, the provider's status, milliseconds,
 * and libcurl's fixed phrase. Neither key nor answer is ever said.
 */
#include "gateway/upstream_way.h"
#include "lib/held.h"
#include "lib/place.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { OUTPUT_TOKENS = 16, ANSWER_MAX = 1000000, CONNECT_MS = 10000 };
/* What was wrong with a certificate, as OpenSSL numbers it; libcurl leaves NOT_SAID where the name alone was wrong. */
enum { CERTIFICATE_OK = 0, NOT_SAID = 1, NOT_YET_VALID = 9, EXPIRED = 10, OTHER_HOST = 62, OTHER_ADDRESS = 64 };

static int say(const char *word, long status, long ms, const char *phrase)
{
	printf("%s %ld %ld %s\n", word, status, ms, phrase);
	return fflush(stdout) == 0 ? 0 : 1;
}

/* The same in Gemini's words. */
static void put_contents(struct buf *b, const struct format *f)
{
	struct jw w;

	jw_init(&w, b);
	jw_open(&w, '{');
	jw_key(&w, f->says);
	jw_open(&w, '[');
	jw_open(&w, '{');
	jw_kstr(&w, "role", "user");
	jw_key(&w, "parts");
	jw_open(&w, '[');
	jw_open(&w, '{');
	jw_kstr(&w, "text", "Say ok.");
	jw_close(&w, '}');
	jw_close(&w, ']');
	jw_close(&w, '}');
	jw_close(&w, ']');
	jw_key(&w, "generationConfig");
	jw_open(&w, '{');
	jw_kint(&w, f->cap, OUTPUT_TOKENS);
	jw_close(&w, '}');
	jw_close(&w, '}');
}

static void put_request(struct buf *b, const struct format *f, const char *model, const char *cap)
{
	struct jw w;

	if (f->family == FAMILY_GEMINI) {
		put_contents(b, f);
		return;
	}

	jw_init(&w, b);
	jw_open(&w, '{');
	jw_kstr(&w, "model", model);
	jw_key(&w, "messages");
	jw_open(&w, '[');
	jw_open(&w, '{');
	jw_kstr(&w, "role", "user");
	jw_kstr(&w, "content", "Say ok.");
	jw_close(&w, '}');
	jw_close(&w, ']');
	jw_kint(&w, f->id == FORMAT_CHAT && *cap ? cap : f->cap, OUTPUT_TOKENS);
	jw_close(&w, '}');
}

static size_t on_answer(char *from, size_t size, size_t count, void *arg)
{
	buf_add(arg, from, size * count);
	return buf_failed(arg) ? 0 : size * count;
}

/* What it was that failed: where nobody answered at all. */
static const char *failure(CURL *h, CURLcode c)
{
	long verified = 0;

	switch ((int)c) {
	case CURLE_COULDNT_RESOLVE_HOST:
		return "name";
	case CURLE_COULDNT_CONNECT:
		return "refused";
	case CURLE_OPERATION_TIMEDOUT:
		return "timeout";
	case CURLE_SSL_CACERT_BADFILE:
		return "ca_file";
	case CURLE_SSL_CONNECT_ERROR:
		return "tls";
	case CURLE_PEER_FAILED_VERIFICATION:
		curl_easy_getinfo(h, CURLINFO_SSL_VERIFYRESULT, &verified);
		return verified == EXPIRED || verified == NOT_YET_VALID ? "tls_expired"
		       : verified == CERTIFICATE_OK || verified == NOT_SAID || verified == OTHER_HOST ||
			       verified == OTHER_ADDRESS
			   ? "tls_host"
			   : "tls_authority";
	case CURLE_WRITE_ERROR:
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_UNSUPPORTED_PROTOCOL:
		return "not_http";
	default:
		return "closed";
	}
}

/* What a provider that answered said. */
static const char *judged(CURL *h, const struct format *f, long status, const struct buf *answer)
{
	struct arena arena own_arena = {0};
	char *type = NULL;

	arena_init(&arena, 16 * ANSWER_MAX);
	const struct json *said = json_parse(&arena, answer->p, answer->n, JSON_DEPTH_MODEL, ANSWER_MAX / 10, NULL);
	if (status == 401 || status == 403 || (status > 0 && format_key_refused(f, (unsigned)status, said)))
		return "key_refused";
	if (status == 404)
		return "not_found";
	if (status == 429)
		return "busy";
	if (status >= 300 && status < 400)
		return "redirect";
	if (status >= 500)
		return "provider_error";
	if (status >= 400)
		return "request_refused";
	if (curl_easy_getinfo(h, CURLINFO_CONTENT_TYPE, &type) != CURLE_OK || !type ||
	    strncasecmp(type, "application/json", 16) != 0 || !said)
		return "not_json";
	return "ok";
}

static int ask(const struct upstream_target *t, const struct format *f, const char *cap, uint32_t timeout_ms)
{
	struct model_request rq = {.format = f};
	struct buf answer own_buf = {0};
	CURL *h = curl_easy_init();
	long status = 0;
	curl_off_t us = 0;

	buf_init(&rq.body, 10000);
	buf_init(&answer, ANSWER_MAX);
	put_request(&rq.body, f, t->profile->model, cap);
	format_version(NULL, rq.version);
	struct curl_slist *headers = h ? upstream_headers(t, &rq) : NULL;
	if (!headers || buf_failed(&rq.body) || !upstream_way(h, t, t->url[f->id], CONNECT_MS) ||
	    curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers) != CURLE_OK ||
	    curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, (long)timeout_ms) != CURLE_OK ||
	    curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE, (long)rq.body.n) != CURLE_OK ||
	    curl_easy_setopt(h, CURLOPT_POSTFIELDS, (const char *)rq.body.p) != CURLE_OK ||
	    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_answer) != CURLE_OK ||
	    curl_easy_setopt(h, CURLOPT_WRITEDATA, &answer) != CURLE_OK)
		return say("lack", 0, 0, "no memory");
	CURLcode c = curl_easy_perform(h);
	curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(h, CURLINFO_TOTAL_TIME_T, &us);
	const char *word = c != CURLE_OK ? failure(h, c) : judged(h, f, status, &answer);
	int done = say(word, status, (long)(us / 1000), c != CURLE_OK ? curl_easy_strerror(c) : "");
	upstream_headers_free(headers);
	curl_easy_cleanup(h);
	model_request_free(&rq);
	return done;
}

int probe(const char *name, void (*close_rest)(const struct conf *conf))
{
	const char *why = "";
	struct held *h = held_load(CHILD_FD_CONFIG, CHILD_FD_SECRETS, &why);
	const struct cf_provider *p = h ? conf_provider(&h->conf, name) : NULL;
	struct upstream_target t = {.profile = NULL};

	if (!h)
		return say("lack", 0, 0, why);
	close_rest(&h->conf);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return say("lack", 0, 0, "libcurl does not start");
	if (!p)
		return say("no_provider", 0, 0, "");
	for (uint32_t i = 0; i < h->conf.nprofiles && !t.profile; i++)
		if (strcmp(h->conf.profiles[i].provider, name) == 0)
			t.profile = &h->conf.profiles[i];
	if (!t.profile)
		return say("no_model", 0, 0, "");
	const struct format *f = format_of_protocol(p->protocol);
	t.ca_file = p->ca_file;
	t.key = *p->secret ? secrets_find(&h->secrets, p->secret) : NULL;
	if (*p->secret && !key_usable(t.key))
		return say("key_missing", 0, 0, "");
	t.url[f->id] = upstream_url(p, f, t.profile->model);
	if (!t.url[f->id])
		return say("address", 0, 0, "");
	uint32_t timeout_ms = h->conf.global.model_timeout_ms;
	int done = ask(&t, f, p->output_cap, timeout_ms > 0 && timeout_ms < 30000 ? timeout_ms : 30000);
	free(t.url[f->id]);
	return done;
}
