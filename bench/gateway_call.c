/*
 * Times one model call through the gateway (plain HTTP to a box's listener, as an agent does it), the same call
 * straight to the provider (kept TLS connection) and through a web server that only passes it on, in turns, so that
 * all meet the same machine.
 *
 *   gateway_call GATEWAY_PORT PROVIDER_PORT PROXY_PORT CA_FILE MODEL CALLS THREADS   (the run token in TOKEN)
 *
 * PROXY_PORT 0: there is none. Prints one JSON object: p50 and p99 of each in microseconds, calls a second, and ratios.
 */
#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DIRECT, GATEWAY, PROXY, SIDES, MAX_THREADS = 64 };

struct side {
	char url[200];
	struct curl_slist *headers;
	double *us; /* of each call */
	unsigned long calls;
	double seconds;
};

struct worker {
	struct side *side;
	const char *ca, *body;
	unsigned long from, to;
	CURL *handle;
};

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static size_t swallow(char *p, size_t size, size_t n, void *arg)
{
	(void)p;
	(void)arg;
	return size * n;
}

static CURL *open_handle(const struct side *s, const char *ca, const char *body)
{
	CURL *h = curl_easy_init();
	curl_easy_setopt(h, CURLOPT_URL, s->url);
	curl_easy_setopt(h, CURLOPT_HTTPHEADER, s->headers);
	curl_easy_setopt(h, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, swallow);
	curl_easy_setopt(h, CURLOPT_CAINFO, ca);
	curl_easy_setopt(h, CURLOPT_CAPATH, NULL);
	curl_easy_setopt(h, CURLOPT_PROXY, "");
	curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
	return h;
}

static void call(CURL *h)
{
	long status = 0;
	CURLcode c = curl_easy_perform(h);
	curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &status);
	if (c != CURLE_OK || status != 200) {
		fprintf(stderr, "a call failed: %s, status %ld\n", curl_easy_strerror(c), status);
		exit(1);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	for (unsigned long i = w->from; i < w->to; i++) {
		double began = now_us();
		call(w->handle);
		w->side->us[i] = now_us() - began;
	}
	return NULL;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static struct worker workers[SIDES][MAX_THREADS];
	struct side sides[SIDES] = {0};
	char body[2000], pad[1300], line[1400];
	const char *token = getenv("TOKEN");

	if (argc != 8 || !token) {
		fputs(
		    "usage: TOKEN=... gateway_call GATEWAY_PORT PROVIDER_PORT PROXY_PORT CA_FILE MODEL CALLS THREADS\n",
		    stderr);
		return 2;
	}
	const char *ca = argv[4], *model = argv[5];
	unsigned long calls = strtoul(argv[6], NULL, 10), threads = strtoul(argv[7], NULL, 10), rounds = 10;
	int nsides = strcmp(argv[3], "0") == 0 ? PROXY : SIDES;
	if (threads < 1 || threads > MAX_THREADS)
		return 2;
	curl_global_init(CURL_GLOBAL_DEFAULT);
	memset(pad, 'x', sizeof pad);
	snprintf(body, sizeof body, "{\"model\":\"%s\",\"messages\":[{\"role\":\"user\",\"content\":\"%.*s\"}]}", model,
		 (int)sizeof pad, pad);
	snprintf(sides[DIRECT].url, sizeof sides[0].url, "https://127.0.0.1:%s/v1/chat/completions", argv[2]);
	snprintf(sides[GATEWAY].url, sizeof sides[0].url, "http://127.0.0.1:%s/internal/v1/chat/completions", argv[1]);
	snprintf(sides[PROXY].url, sizeof sides[0].url, "http://127.0.0.1:%s/v1/chat/completions", argv[3]);
	snprintf(line, sizeof line, "Authorization: Bearer %s", token);
	for (int s = 0; s < nsides; s++) {
		sides[s].headers = curl_slist_append(NULL, "Content-Type: application/json");
		sides[s].headers = curl_slist_append(sides[s].headers, line);
		sides[s].us = calloc(calls, sizeof(double));
		for (unsigned long t = 0; t < threads; t++) {
			workers[s][t] = (struct worker){.side = &sides[s], .ca = ca, .body = body};
			workers[s][t].handle = open_handle(&sides[s], ca, body);
			call(workers[s][t].handle); /* connected before anything is measured */
		}
	}
	unsigned long each = calls / rounds / threads;
	for (unsigned long r = 0; r < rounds; r++)
		for (int s = 0; s < nsides; s++) {
			pthread_t id[MAX_THREADS];
			double began = now_us();
			for (unsigned long t = 0; t < threads; t++) {
				struct worker *w = &workers[s][t];
				w->from = sides[s].calls;
				w->to = sides[s].calls += each;
				pthread_create(&id[t], NULL, work, w);
			}
			for (unsigned long t = 0; t < threads; t++)
				pthread_join(id[t], NULL);
			sides[s].seconds += (now_us() - began) / 1e6;
		}
	double p50[SIDES] = {0}, p99[SIDES] = {0}, rate[SIDES] = {0};
	for (int s = 0; s < nsides; s++) {
		qsort(sides[s].us, sides[s].calls, sizeof(double), by_size);
		p50[s] = sides[s].us[sides[s].calls / 2];
		p99[s] = sides[s].us[sides[s].calls * 99 / 100];
		rate[s] = (double)sides[s].calls / sides[s].seconds;
	}
	printf(
	    "{\"callers\":%lu,\"calls\":%lu,\"direct_p50_us\":%.0f,\"direct_p99_us\":%.0f,\"direct_per_second\":%.0f,"
	    "\"gateway_p50_us\":%.0f,\"gateway_p99_us\":%.0f,\"gateway_per_second\":%.0f,\"p50_ratio\":%.2f,"
	    "\"p50_added_us\":%.0f,\"rate_ratio\":%.3f",
	    threads, sides[0].calls, p50[DIRECT], p99[DIRECT], rate[DIRECT], p50[GATEWAY], p99[GATEWAY], rate[GATEWAY],
	    p50[GATEWAY] / p50[DIRECT], p50[GATEWAY] - p50[DIRECT], rate[GATEWAY] / rate[DIRECT]);
	if (nsides > PROXY)
		printf(",\"proxy_p50_us\":%.0f,\"proxy_p99_us\":%.0f,\"proxy_per_second\":%.0f,\"proxy_p50_added_us\":%"
		       ".0f,"
		       "\"rate_against_proxy\":%.3f",
		       p50[PROXY], p99[PROXY], rate[PROXY], p50[PROXY] - p50[DIRECT], rate[GATEWAY] / rate[PROXY]);
	printf("}\n");
	return 0;
}
