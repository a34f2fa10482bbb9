/*
 * See tail.h. The events come as server-sent events over one connection, begun again behind the last event that was
 * taken whenever it is cut; where that is not to be had (an older service, a web server in between that will not, too
 * many streams, or nothing that makes sense) they are asked for again and again instead. Either way the sequence
 * decides: what was taken is not taken twice, and nothing is taken behind a gap.
 */
#include "cli/tail.h"

#include <curl/curl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/http.h"
#include "cli/sse.h"
#include "lib/num.h"

enum {
	POLL_MS = 250,
	PATIENCE_MS = 30000, /* how long a server that was there may be away */
	SILENCE_S = 45,      /* three heartbeats */
	TRIES = 5,           /* connections without an event before the other way is taken */
	RETRY_MS = 500,
	EVENT_ARENA = 8 << 20
};

struct tail {
	const struct cli *cli;
	struct cli hushed; /* the same, quiet */
	char run[129];
	struct secret token;
	tail_take *take;
	void *user;
	uint64_t after; /* the sequence of the last event that was taken */
	bool ended, polling, broken, answered, progress;
	unsigned tries;
	uint64_t next;  /* when to connect or ask next, by timer_ms() */
	uint64_t alive; /* when the server last answered */
	int status;
	CURLM *multi;
	CURL *c; /* the stream, while there is one */
	struct curl_slist *headers;
	struct sse sse;
};

/* False: it cannot be the next event, nor one from before. */
static bool take_line(struct tail *t, const char *line, size_t n, const char *id)
{
	own_arena struct arena a;
	int64_t sequence = 0;
	uint64_t named;

	arena_init(&a, EVENT_ARENA);
	const struct json *e = json_parse(&a, line, n, JSON_DEPTH_MODEL, 100000, NULL);
	const struct json *v = e != NULL && e->type == JSON_OBJECT ? json_get(e, "sequence") : NULL;
	if (v == NULL || !json_int(v, 1, INT64_MAX, &sequence))
		return false;
	if (id != NULL && (!num_u64(id, strlen(id), 1, INT64_MAX, &named) || named != (uint64_t)sequence))
		return false;
	if ((uint64_t)sequence <= t->after || t->ended)
		return true;
	if ((uint64_t)sequence != t->after + 1)
		return false;
	t->after = (uint64_t)sequence;
	t->progress = true;
	const char *type = member(e, "event_type");
	t->ended = strncmp(type, "run.", 4) == 0 && is_terminal(type + 4);
	t->take(t->user, line, n, e);
	return true;
}

static void take_event(void *user, const struct sse_event *e)
{
	struct tail *t = user;
	t->broken = t->broken || !take_line(t, e->data, e->n, e->id);
}

static size_t take_bytes(char *p, size_t size, size_t n, void *user)
{
	struct tail *t = user;
	long status = 0;
	char *type = NULL;

	curl_easy_getinfo(t->c, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(t->c, CURLINFO_CONTENT_TYPE, &type);
	if (status != 200 || type == NULL || strncasecmp(type, "text/event-stream", 17) != 0)
		return 0;
	if (!sse_feed(&t->sse, p, size * n, take_event, t))
		t->broken = true;
	return t->broken ? 0 : size * n;
}

static void disconnect(struct tail *t)
{
	if (t->c == NULL)
		return;
	curl_multi_remove_handle(t->multi, t->c);
	http_end(t->c, t->headers);
	t->c = NULL;
}

static void connect_stream(struct tail *t)
{
	char path[256], last[64];

	snprintf(path, sizeof path, "/v1/runs/%s/events?stream=1", t->run);
	snprintf(last, sizeof last, "Last-Event-ID: %llu", (unsigned long long)t->after);
	sse_begin(&t->sse);
	t->progress = t->broken = false;
	t->c = http_begin(t->cli, &t->token, path, t->after > 0 ? last : NULL, &t->headers);
	if (t->c == NULL) {
		t->polling = true;
		return;
	}
	curl_easy_setopt(t->c, CURLOPT_WRITEFUNCTION, take_bytes);
	curl_easy_setopt(t->c, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(t->c, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(t->c, CURLOPT_LOW_SPEED_TIME, (long)SILENCE_S);
	curl_multi_add_handle(t->multi, t->c);
}

/* The connection is over. Whatever the reason, what was taken stays taken, and the next one begins behind it. */
static void stream_over(struct tail *t)
{
	long status = 0;
	char *type = NULL;

	curl_easy_getinfo(t->c, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(t->c, CURLINFO_CONTENT_TYPE, &type);
	bool streamed = status == 200 && type != NULL && strncasecmp(type, "text/event-stream", 17) == 0;
	disconnect(t);
	t->tries = t->progress ? 0 : t->tries + 1;
	/* What it says of the run, of the token or of itself is heard, and said, where events are asked for. Who is
	 * away may come back. */
	if ((status != 0 && status < 500 && !streamed) || t->tries >= TRIES)
		t->polling = true;
	t->next = timer_ms() + (t->progress || t->polling ? 0 : t->sse.retry > 0 ? t->sse.retry : RETRY_MS);
}

static void stream_step(struct tail *t)
{
	int running, left;
	const CURLMsg *m;

	if (t->c == NULL && timer_ms() >= t->next)
		connect_stream(t);
	if (t->c == NULL)
		return;
	curl_multi_perform(t->multi, &running);
	while (t->c != NULL && (m = curl_multi_info_read(t->multi, &left)) != NULL)
		if (m->msg == CURLMSG_DONE)
			stream_over(t);
}

/* Asks once for what is new. False: the server is away for too long, or refuses. */
static bool poll_step(struct tail *t)
{
	struct http_answer answer;
	char path[256];

	if (timer_ms() < t->next)
		return true;
	snprintf(path, sizeof path, "/v1/runs/%s/events?after=%llu", t->run, (unsigned long long)t->after);
	bool patient = t->answered && timer_ms() - t->alive < PATIENCE_MS;
	t->status = http_ask(patient ? &t->hushed : t->cli, &t->token, NULL, path, NULL, &answer);
	t->next = timer_ms() + POLL_MS;
	if (t->status == EXIT_UNREACHABLE && patient)
		return true;
	if (t->status != 0)
		return false;
	t->answered = true;
	t->alive = timer_ms();
	const char *p = buf_cstr(&answer.body);
	bool fits = p != NULL;
	for (const char *end; fits && (end = strchr(p, '\n')) != NULL; p = end + 1)
		fits = take_line(t, p, (size_t)(end - p), NULL);
	buf_free(&answer.body);
	if (fits)
		return true;
	fputs("pinfold: the server's answer is not this run's next events\n", stderr);
	t->status = EXIT_UNREACHABLE;
	return false;
}

/* How long of ms there is nothing to be done. */
static int until(const struct tail *t, int ms)
{
	uint64_t now = timer_ms(), wait = t->next > now ? t->next - now : 0;
	return wait > (uint64_t)ms ? ms : (int)wait;
}

enum tail_state tail_step(struct tail *t, int fd, int ms, bool *readable)
{
	struct curl_waitfd extra = {.fd = fd, .events = CURL_WAIT_POLLIN};
	uint64_t before = t->after;

	*readable = false;
	if (!t->polling)
		stream_step(t);
	if (t->polling && !t->ended && !poll_step(t))
		return TAIL_FAILED;
	if (t->ended)
		return TAIL_ENDED;
	if (t->after != before)
		ms = 0;
	if (t->c != NULL) {
		curl_multi_poll(t->multi, &extra, fd >= 0 ? 1 : 0, ms, NULL);
		*readable = extra.revents != 0;
	} else {
		struct pollfd in = {.fd = fd, .events = POLLIN};
		*readable = poll(&in, 1, until(t, ms)) > 0;
	}
	return TAIL_GOES_ON;
}

struct tail *tail_open(const struct cli *cli, const char *run, tail_take *take, void *user, int *status)
{
	struct tail *t = calloc(1, sizeof *t);

	*status = EXIT_USAGE;
	if (t == NULL)
		return NULL;
	t->cli = cli;
	t->hushed = *cli;
	t->hushed.quiet = true;
	t->take = take;
	t->user = user;
	snprintf(t->run, sizeof t->run, "%s", run);
	if (http_named(cli) && token_find(cli, &t->token)) {
		t->multi = curl_multi_init();
		if (t->multi != NULL)
			return t;
		*status = EXIT_UNREACHABLE;
	}
	tail_free(t);
	return NULL;
}

int tail_status(const struct tail *t)
{
	return t->status;
}

void tail_free(struct tail *t)
{
	if (t == NULL)
		return;
	disconnect(t);
	if (t->multi != NULL)
		curl_multi_cleanup(t->multi);
	sse_free(&t->sse);
	secret_wipe(&t->token);
	free(t);
}
