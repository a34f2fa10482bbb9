/* Attacks on the gateway: tokens, paths, budgets, events. It is all that a box may talk to. */
#include "attack/know.h"
#include "attack/neighbour.h"
#include "attack/talk.h"
#include "attack/tried.h"
#include "gen/attacks_inside.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODEL ".pinfold-run-token"
#define EVENTS ".pinfold-event-token"
#define APPROVALS ".pinfold-approval-token"
#define MODELS "/internal/v1/models"
#define EVENTS_AUDIENCE "/internal/v1/runs/events"
#define MODEL_AUDIENCE "/internal/v1/chat/completions"
#define CHAT "/internal/v1/chat/completions"

static struct tried answered(int status, int wanted)
{
	if (status == wanted || (wanted == 0 && status >= 400 && status < 500))
		return held("%d", status);
	return status < 0 ? held("no answer") : open_("answer %d", status);
}

/* Without one's own token being taken nothing that is refused says anything. */
static bool talks(void)
{
	char token[TOKEN_MAX];
	return talk_token(MODEL, token) && talk("GET", MODELS, token, NULL, NULL, 0) == 200;
}

static const char *own_run(void)
{
	const char *run = getenv("PINFOLD_RUN_ID");
	return run != NULL ? run : "";
}

static struct tried asks(const char *method, const char *path, const char *token, const char *body, int wanted)
{
	if (!talks())
		return skipped("one's own token is not taken either");
	if (token != NULL && token[0] == '\0')
		return skipped("no token to try");
	return answered(talk(method, path, token, body, NULL, 0), wanted);
}

static struct tried asks_as(const char *method, const char *path, const char *file, const char *body, int wanted)
{
	char token[TOKEN_MAX];
	return talk_token(file, token) ? asks(method, path, token, body, wanted) : skipped("no token to try");
}

static const char *events_path(const char *run)
{
	static char path[300];
	snprintf(path, sizeof path, "/internal/v1/runs/%.200s/events", run);
	return path;
}

static const char *event_body(const char *run)
{
	static char body[1000];
	snprintf(body, sizeof body,
		 "{\"lines\":[\"{\\\"event_type\\\":\\\"stolen\\\",\\\"run_id\\\":\\\"%.200s\\\",\\\"task_id\\\":\\\"%."
		 "200s\\\","
		 "\\\"sequence\\\":1,\\\"data\\\":{}}\\n\"]}",
		 run, run);
	return body;
}

struct tried attack_near_model_token(void)
{
	return asks("GET", MODELS, know("near-model-token"), NULL, 401);
}

struct tried attack_near_event_token(void)
{
	const char *run = know("near-run");
	return asks("POST", events_path(run), know("near-event-token"), event_body(run), 401);
}

struct tried attack_near_approval_token(void)
{
	char path[300];
	snprintf(path, sizeof path, "/internal/v1/runs/%.200s/approvals/a", know("near-run"));
	return asks("GET", path, know("near-approval-token"), NULL, 401);
}

struct tried attack_near_event_path(void)
{
	const char *run = know("near-run");
	return run[0] == '\0' ? skipped("no run to try")
			      : asks_as("POST", events_path(run), EVENTS, event_body(run), 0);
}

struct tried attack_gate_no_token(void)
{
	return asks("GET", MODELS, NULL, NULL, 401);
}

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static size_t decode(const char *from, size_t n, char *to)
{
	unsigned bits = 0, held_bits = 0;
	size_t k = 0;
	for (size_t i = 0; i < n; i++) {
		const char *at = strchr(alphabet, from[i]);
		bits = bits << 6 | (unsigned)(at != NULL ? at - alphabet : 0);
		held_bits += 6;
		if (held_bits >= 8) {
			held_bits -= 8;
			to[k++] = (char)(bits >> held_bits);
		}
	}
	to[k] = '\0';
	return k;
}

static size_t encode(const char *from, size_t n, char *to)
{
	unsigned bits = 0, held_bits = 0;
	size_t k = 0;
	for (size_t i = 0; i < n; i++) {
		bits = bits << 8 | (unsigned char)from[i];
		held_bits += 8;
		while (held_bits >= 6) {
			held_bits -= 6;
			to[k++] = alphabet[bits >> held_bits & 63];
		}
	}
	if (held_bits > 0)
		to[k++] = alphabet[bits << (6 - held_bits) & 63];
	to[k] = '\0';
	return k;
}

struct tried attack_gate_forged(void)
{
	char token[TOKEN_MAX];
	if (!talk_token(MODEL, token))
		return skipped("no token to try");
	char *dot = strchr(token, '.');
	if (dot == NULL || dot[1] == '\0')
		return skipped("the token is of another form");
	dot[1] = dot[1] == 'A' ? 'B' : 'A';
	return asks("GET", MODELS, token, NULL, 401);
}

/* The token for events, said to be one for the model, with the signature it had. */
struct tried attack_gate_claims(void)
{
	char token[TOKEN_MAX], claims[TOKEN_MAX], other[2 * TOKEN_MAX], forged[4 * TOKEN_MAX];
	if (!talk_token(EVENTS, token))
		return skipped("no token to try");
	char *dot = strchr(token, '.');
	if (dot == NULL)
		return skipped("the token is of another form");
	decode(token, (size_t)(dot - token), claims);
	char *word = strstr(claims, "\"" EVENTS_AUDIENCE "\"");
	if (word == NULL)
		return skipped("the token is of another form");
	int n = snprintf(other, sizeof other, "%.*s\"" MODEL_AUDIENCE "\"%s", (int)(word - claims), claims,
			 word + sizeof EVENTS_AUDIENCE + 1);
	size_t k = encode(other, (size_t)n, forged);
	snprintf(forged + k, sizeof forged - k, "%s", dot);
	return asks("GET", MODELS, forged, NULL, 401);
}

struct tried attack_gate_unsigned(void)
{
	char token[TOKEN_MAX];
	if (!talk_token(MODEL, token))
		return skipped("no token to try");
	char *dot = strchr(token, '.');
	if (dot != NULL)
		dot[1] = '\0';
	struct tried t = asks("GET", MODELS, token, NULL, 401);
	if (t.outcome != TRIED_HELD || dot == NULL)
		return t;
	*dot = '\0';
	return asks("GET", MODELS, token, NULL, 401);
}

struct tried attack_gate_audience_model(void)
{
	return asks_as("GET", MODELS, EVENTS, NULL, 0);
}

struct tried attack_gate_audience_events(void)
{
	return asks_as("POST", events_path(own_run()), MODEL, event_body(own_run()), 0);
}

struct tried attack_gate_audience_approvals(void)
{
	char path[300];
	char token[TOKEN_MAX];
	snprintf(path, sizeof path, "/internal/v1/runs/%.200s/approvals/a", own_run());
	if (!talk_token(EVENTS, token) || !talks())
		return skipped("no token to try");
	/* 404 would be the answer to one who may ask, about a question that does not exist. */
	int status = talk("GET", path, token, NULL, NULL, 0);
	return status == 401 || status == 403 ? held("%d", status) : open_("answer %d", status);
}

static const char *question(const char *model, const char *more)
{
	static char body[1000];
	snprintf(body, sizeof body,
		 "{\"model\":\"%.200s\",\"messages\":[{\"role\":\"user\",\"content\":\"Say ok.\"}]%s}", model, more);
	return body;
}

static const char *own_model(void)
{
	const char *model = getenv("PINFOLD_MODEL_ID");
	return model != NULL ? model : "";
}

struct tried attack_gate_other_model(void)
{
	return asks_as("POST", CHAT, MODEL, question("another-model", ""), 0);
}

struct tried attack_gate_unknown_field(void)
{
	return asks_as("POST", CHAT, MODEL, question(own_model(), ",\"webhook\":\"http://192.0.2.1/\""), 0);
}

static struct tried raw(const char *request, const char *word)
{
	static char answer[TALK_MAX], whole[2000];
	char token[TOKEN_MAX];
	if (!talks() || !talk_token(MODEL, token))
		return skipped("one's own token is not taken either");
	snprintf(whole, sizeof whole, "%s\r\nAuthorization: Bearer %s\r\n\r\n", request, token);
	long n = talk_raw(whole, strlen(whole), answer, sizeof answer);
	int status = talk_status(answer, n);
	if (word != NULL && strstr(answer, word) != NULL)
		return open_("the answer holds %s", word);
	return status >= 200 && status < 400 ? open_("answer %d", status) : held("%d", status);
}

struct tried attack_gate_proxy(void)
{
	return raw("GET http://192.0.2.1/ HTTP/1.1\r\nHost: 192.0.2.1\r\nConnection: close", NULL);
}

struct tried attack_gate_connect(void)
{
	return raw("CONNECT 192.0.2.1:443 HTTP/1.1\r\nHost: 192.0.2.1:443", NULL);
}

struct tried attack_gate_public(void)
{
	return asks_as("GET", "/v1/runs", MODEL, NULL, 404);
}

struct tried attack_gate_metrics(void)
{
	return asks_as("GET", "/metrics", MODEL, NULL, 404);
}

struct tried attack_gate_dots(void)
{
	return asks_as("GET", "/internal/v1/x/../../../v1/runs", MODEL, NULL, 0);
}

/* Two lengths: one reader ends the first request where the other still reads. There may be one answer, or none. */
struct tried attack_gate_smuggle(void)
{
	static char request[8000], answer[TALK_MAX];
	char token[TOKEN_MAX];
	if (!talks() || !talk_token(MODEL, token))
		return skipped("one's own token is not taken either");
	snprintf(request, sizeof request,
		 "POST " CHAT " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
		 "Content-Length: 2\r\nContent-Length: 900\r\n\r\n{}GET " MODELS
		 " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n",
		 token, token);
	talk_raw(request, strlen(request), answer, sizeof answer);
	return strstr(answer, "\"object\"") != NULL ? open_("the second request is answered") : held("not answered");
}

struct tried attack_gate_approve(void)
{
	char path[300];
	snprintf(path, sizeof path, "/internal/v1/runs/%.200s/approvals/a", own_run());
	return asks_as("POST", path, APPROVALS, "{\"decision\":\"allow_once\"}", 0);
}

/* What listens there is made before the agent, and not by its user. */
struct tried attack_gate_port(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons((unsigned short)talk_port()),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int one = 1, s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	setsockopt(s, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
	long rc = bind(s, (struct sockaddr *)&a, sizeof a);
	struct tried t = refused(rc < 0 ? rc : listen(s, 1));
	close(s);
	return t;
}

struct tried attack_gate_token_mode(void)
{
	static const char *const files[] = {MODEL, EVENTS, APPROVALS};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		char path[100];
		struct stat st;
		snprintf(path, sizeof path, "/workspace/%s", files[i]);
		if (stat(path, &st) == 0 && (st.st_mode & 07777) != 0600)
			return open_("%s has mode %o", files[i], st.st_mode & 07777);
	}
	return held("0600");
}

/* A provider that fails has been asked all the same. */
struct tried attack_gate_budget(void)
{
	static char answer[TALK_MAX];
	char token[TOKEN_MAX];
	long asked = 0, may = know_number("budget");
	int status = 0;
	if (!talks() || !talk_token(MODEL, token) || may == 0)
		return skipped("one's own token is not taken either");
	for (int i = 0; i < may + 5; i++) {
		status = talk("POST", CHAT, token, question(own_model(), ""), answer, sizeof answer);
		asked += status == 200 || status >= 500;
	}
	if (asked == 0)
		return skipped("the gateway does not take the question: %d", status);
	return asked <= may ? held("%ld of %ld", asked, may) : open_("%ld of %ld", asked, may);
}

/* What is not judged here but by who reads the events. */
void neighbour_gestures(void)
{
	talk_event("escape", own_run(), "7", "{\"text\":\"\\u001b[2J\\u001b]52;c;QQ==\\u0007\\u009b31m\"}");
	talk_event("run.completed", own_run(), "8", "{\"forged\":true}");
	talk_event("number", own_run(), "999999", "{}");
	talk_event("stolen", know("near-run"), "9", "{}");
}
