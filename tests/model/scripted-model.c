/*
 * pinfold-scripted-model: a server of chat completions, responses and messages that gives canned answers. There is no
 * AI in it. The quickstart uses it where no real provider is configured; tests use it to lie on the wire.
 *
 *   pinfold-scripted-model --listen 127.0.0.1:PORT [--self-signed DIR | --tls-cert F --tls-key F]
 *                          [--scenario FILE|repair|agent] [--log FILE|-N] [--expect-key-env NAME] [--cert-name NAME]
 *
 * PORT 0 takes any; the line "listening PORT" on standard output says which. --self-signed makes (or reuses)
 * DIR/ca.pem, cert.pem and key.pem, valid for localhost and 127.0.0.1, or for NAME only with --cert-name.
 * --log (-N: to the descriptor N, that it was started with) appends one JSON line a request: n method path headers
 * authorization_sha256 key_match usage body_size body.
 * --expect-key-env answers 401 unless the bearer key, or x-api-key, is the value of that environment variable.
 * Serves POST .../chat/completions, .../responses, .../messages, .../messages/count_tokens and GET .../models;
 * scenario.c and answer.c describe scenario files.
 */
#include "lib/die.h"
#include "lib/digest.h"
#include "lib/own.h"
#include "tests/model/model.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Shared by all connection threads; written before the first of them starts, but for the counters. */
struct app {
	struct scenario scenario;
	SSL_CTX *tls;
	const char *expected; /* whole Authorization value, or NULL */
	int log_fd;
	atomic_uint requests, chats;
};

struct visit {
	struct app *app;
	int fd;
};

/* usage: what the answer says that it cost, or NULL. */
static void log_request(struct app *app, const struct http_request *rq, unsigned n, bool key_match,
			const struct json *usage)
{
	struct buf b own_buf = {0};
	struct jw w;
	uint8_t digest[SHA256_SIZE];
	char text[SHA256_HEX];

	if (app->log_fd < 0)
		return;
	buf_init(&b, 2 * BODY_MAX + HEAD_MAX);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kint(&w, "n", n);
	jw_kstr(&w, "method", rq->method);
	jw_kstr(&w, "path", rq->path);
	jw_key(&w, "headers");
	jw_open(&w, '[');
	for (size_t i = 0; i < rq->nnames; i++)
		jw_str(&w, rq->names[i]);
	jw_close(&w, ']');
	if (rq->authorization && sha256(rq->authorization, strlen(rq->authorization), digest)) {
		hex(digest, sizeof digest, text);
		jw_kstr(&w, "authorization_sha256", text);
	}
	if (app->expected)
		jw_kbool(&w, "key_match", key_match);
	if (rq->version)
		jw_kstr(&w, "version", rq->version);
	if (rq->beta)
		jw_kstr(&w, "beta", rq->beta);
	if (usage) {
		jw_key(&w, "usage");
		jw_json(&w, usage);
	}
	jw_kint(&w, "body_size", (int64_t)rq->body_len);
	jw_key(&w, "body");
	jw_strn(&w, rq->body, rq->body_len);
	jw_close(&w, '}');
	buf_addc(&b, '\n');
	/* One write in append mode: lines of several threads do not mix. */
	if (!buf_failed(&b) && write(app->log_fd, b.p, b.n) < 0)
		log_warn("cannot write the log: %m");
}

static bool ends_with(const char *s, const char *tail)
{
	size_t n = strlen(s), t = strlen(tail);
	return n >= t && strcmp(s + n - t, tail) == 0;
}

/* False: the connection ends. */
static bool serve(struct app *app, struct peer *p, struct http_request *rq)
{
	unsigned n = atomic_fetch_add(&app->requests, 1) + 1;
	bool match = !app->expected || (rq->authorization && strcmp(rq->authorization, app->expected) == 0) ||
		     (rq->api_key && strcmp(rq->api_key, app->expected + strlen("Bearer ")) == 0);
	enum dialect d = DIALECT_CHAT;
	const struct json *body = NULL, *answer = NULL;
	struct json_fault fault = {0};

	bool asks = match && strcmp(rq->method, "POST") == 0 && dialect_of(rq->path, &d);
	if (asks)
		body = json_parse(&rq->arena, rq->body, rq->body_len, JSON_DEPTH_MODEL, 100000, &fault);
	bool object = body && body->type == JSON_OBJECT;
	struct conversation c = {.dialect = d, .body = body};
	if (object) {
		c.streams = dialect_streams(rq->path, body);
		c.turn = dialect_turns(d, body);
		c.results = dialect_results(d, body);
		c.nth = atomic_fetch_add(&app->chats, 1) + 1;
		answer = scenario_choose(&app->scenario, &c);
		if (answer && answer->type == JSON_OBJECT)
			answer = shell_answer(&rq->arena, answer, body, rq->body_len);
	}
	log_request(app, rq, n, match, json_get(answer, "usage"));
	if (!match)
		return answer_json(p, 401,
				   "{\"error\":{\"message\":\"wrong key\",\"type\":\"invalid_request_error\"}}");
	if (strcmp(rq->method, "GET") == 0 && ends_with(rq->path, "/models")) {
		char list[400];
		snprintf(list, sizeof list, "{\"object\":\"list\",\"data\":[{\"id\":\"%.200s\",\"object\":\"model\"}]}",
			 app->scenario.model);
		return answer_json(p, 200, list);
	}
	if (!asks)
		return answer_json(p, 404, "{\"error\":{\"message\":\"no such address\"}}");
	if (!object)
		return answer_json(p, 400, "{\"error\":{\"message\":\"the body is no JSON object\"}}");
	if (!answer || answer->type != JSON_OBJECT)
		return answer_json(p, 500, "{\"error\":{\"message\":\"no rule of the scenario matches\"}}");
	return answer_send(p, &app->scenario, answer, &c);
}

static void *visit_main(void *arg)
{
	own_free struct visit *v = arg;
	struct peer p = {v->fd, NULL};
	bool go = true;

	if (v->app->tls) {
		p.ssl = SSL_new(v->app->tls);
		go = p.ssl && SSL_set_fd(p.ssl, p.fd) == 1 && SSL_accept(p.ssl) == 1;
	}
	while (go) {
		struct http_request rq = {0};
		arena_init(&rq.arena, 64000000);
		go = http_read(&p, &rq) && serve(v->app, &p, &rq) && rq.keep_alive;
		arena_free(&rq.arena);
	}
	peer_close(&p);
	return NULL;
}

static int listen_at(const char *where)
{
	char host[64];
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t size = sizeof at;
	const char *colon = strrchr(where, ':');

	if (!colon || (size_t)(colon - where) >= sizeof host)
		fatal("--listen takes ADDRESS:PORT");
	memcpy(host, where, (size_t)(colon - where));
	host[colon - where] = 0;
	at.sin_port = htons((uint16_t)atoi(colon + 1));
	if (inet_pton(AF_INET, host, &at.sin_addr) != 1)
		fatal("--listen takes an IPv4 address, not %s", host);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
	    bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 512) != 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &size) != 0)
		fatal("cannot listen at %s: %m", where);
	printf("listening %u\n", (unsigned)ntohs(at.sin_port));
	fflush(stdout);
	return fd;
}

static SSL_CTX *tls_context(const char *cert, const char *key)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	if (!ctx || SSL_CTX_use_certificate_chain_file(ctx, cert) != 1 ||
	    SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
		fatal("cannot use the certificate %s with the key %s", cert, key);
	return ctx;
}

static void accept_loop(struct app *app, int fd)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	for (;;) {
		int on = 1;
		int conn = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		if (conn < 0) {
			usleep(1000);
			continue;
		}
		setsockopt(conn, IPPROTO_TCP, 1 /* TCP_NODELAY */, &on, sizeof on);
		struct visit *v = malloc(sizeof *v);
		if (v)
			*v = (struct visit){app, conn};
		if (!v || pthread_create(&thread, &attr, visit_main, v) != 0) {
			free(v);
			close(conn);
		}
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"listen", 1, NULL, 'l'},         {"tls-cert", 1, NULL, 'c'},
						{"tls-key", 1, NULL, 'k'},        {"self-signed", 1, NULL, 's'},
						{"scenario", 1, NULL, 'S'},       {"log", 1, NULL, 'L'},
						{"expect-key-env", 1, NULL, 'e'}, {"cert-name", 1, NULL, 'n'},
						{"help", 0, NULL, 'h'},           {NULL, 0, NULL, 0}};
	static struct app app = {.log_fd = -1};
	const char *where = "127.0.0.1:0", *cert = NULL, *key = NULL, *dir = NULL, *scenario = "repair", *name = NULL;
	char cert_path[512], key_path[512];
	int c;

	log_open("pinfold-scripted-model");
	signal(SIGPIPE, SIG_IGN);
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'l':
			where = optarg;
			break;
		case 'c':
			cert = optarg;
			break;
		case 'k':
			key = optarg;
			break;
		case 's':
			dir = optarg;
			break;
		case 'S':
			scenario = optarg;
			break;
		case 'n':
			name = optarg;
			break;
		case 'L':
			app.log_fd = *optarg == '-' ? atoi(optarg + 1)
						    : open(optarg, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
			if (app.log_fd < 0)
				fatal("cannot write %s: %m", optarg);
			break;
		case 'e': {
			const char *value = getenv(optarg);
			char *whole = NULL;
			if (!value || asprintf(&whole, "Bearer %s", value) < 0)
				fatal("the environment has no %s", optarg);
			app.expected = whole;
			break;
		}
		default:
			fputs("usage: pinfold-scripted-model --listen ADDRESS:PORT [--self-signed DIR | --tls-cert F "
			      "--tls-key F]\n"
			      "       [--scenario FILE|repair|agent] [--log FILE|-N] [--expect-key-env NAME] "
			      "[--cert-name NAME]\n"
			      "Scripted model: canned answers, no AI.\n",
			      c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : 2;
		}
	}
	if (dir) {
		cert_make(dir, name);
		snprintf(cert_path, sizeof cert_path, "%s/cert.pem", dir);
		snprintf(key_path, sizeof key_path, "%s/key.pem", dir);
		cert = cert_path;
		key = key_path;
	}
	if ((cert == NULL) != (key == NULL))
		fatal("--tls-cert and --tls-key go together");
	if (cert)
		app.tls = tls_context(cert, key);
	scenario_load(&app.scenario, scenario);
	log_info("scripted model: canned answers, no AI (scenario %s)", scenario);
	accept_loop(&app, listen_at(where));
}
