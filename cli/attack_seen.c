/* What "pinfold attack" offers to be reached, and judges by what can be seen from outside a box. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/attack.h"
#include "cli/doctor_seen.h"
#include "lib/num.h"
#include "lib/own.h"

enum { PATIENCE_MS = 60000, PAUSE_US = 50000 };

static socklen_t abstract_size(const char *name)
{
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name) + 1);
}

void attack_offer_make(struct attack_offer *o)
{
	struct sockaddr_un u = {.sun_family = AF_UNIX};
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof a;

	snprintf(o->name, sizeof o->name, "pinfold-attack-%d", (int)getpid());
	snprintf(u.sun_path + 1, sizeof u.sun_path - 1, "%s", o->name);
	o->abstract = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(o->abstract, (struct sockaddr *)&u, abstract_size(o->name)) != 0 || listen(o->abstract, 8) != 0)
		o->name[0] = '\0';
	snprintf(o->datagrams_name, sizeof o->datagrams_name, "pinfold-attack-%d-d", (int)getpid());
	snprintf(u.sun_path + 1, sizeof u.sun_path - 1, "%s", o->datagrams_name);
	o->datagrams = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (bind(o->datagrams, (struct sockaddr *)&u, abstract_size(o->datagrams_name)) != 0)
		o->datagrams_name[0] = '\0';
	o->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(o->listener, (struct sockaddr *)&a, sizeof a) == 0 && listen(o->listener, 8) == 0 &&
	    getsockname(o->listener, (struct sockaddr *)&a, &size) == 0)
		o->port = ntohs(a.sin_port);
	o->key = 0x70670000 + (int)getpid();
	shmget(o->key, 4096, IPC_CREAT | 0666);
	msgget(o->key, IPC_CREAT | 0666);
}

void attack_offer_end(struct attack_offer *o)
{
	shmctl(shmget(o->key, 0, 0), IPC_RMID, NULL);
	msgctl(msgget(o->key, 0), IPC_RMID, NULL);
	close(o->abstract);
	close(o->datagrams);
	close(o->listener);
}

/* The wanted row of this id, or NULL. */
static struct attack_result *row(struct suite *s, const char *id)
{
	for (size_t i = 0; i < ATTACKS; i++)
		if (strcmp(attacks[i].id, id) == 0)
			return s->result[i].wanted ? &s->result[i] : NULL;
	return NULL;
}

/* One call as the attackers' tenant, or with the neighbour's run token. */
static void call(struct suite *s, const char *id, const char *method, const char *below, long wanted)
{
	struct attack_result *r = row(s, id);
	char path[300];
	struct http_answer answer;

	if (r == NULL)
		return;
	snprintf(path, sizeof path, "/v1/runs/%s%s", s->near.run, below);
	long status = attack_call(s, ATTACK_OWN, method, path,
				  method != NULL && strcmp(method, "POST") == 0 ? "" : NULL, &answer);
	if (status >= 0)
		buf_free(&answer.body);
	attack_note(r,
		    status == wanted ? ATTACK_HELD
		    : status < 0     ? ATTACK_UNKNOWN
				     : ATTACK_OPEN,
		    s->near.run, "%ld", status);
}

static void list(struct suite *s)
{
	struct attack_result *r = row(s, "api-list");
	struct http_answer answer;

	if (r == NULL || attack_call(s, ATTACK_OWN, NULL, "/v1/runs?limit=100", NULL, &answer) < 0)
		return;
	const char *text = buf_cstr(&answer.body);
	bool found = text != NULL && strstr(text, s->near.run) != NULL;
	attack_note(r,
		    found                  ? ATTACK_OPEN
		    : answer.status == 200 ? ATTACK_HELD
					   : ATTACK_UNKNOWN,
		    s->near.run, "%s", found ? "it is in it" : "it is not");
	buf_free(&answer.body);
}

static void run_token(struct suite *s)
{
	struct attack_result *r = row(s, "api-run-token");
	own_secret struct secret token = {0};
	struct http_answer answer;

	if (r == NULL || !secret_set(&token, s->near.model, strlen(s->near.model)) ||
	    http_raw(s->cli, &token, NULL, "/v1/runs", NULL, &answer) != 0)
		return;
	/* The same refusal, where others of this address were wrong too often a moment ago: a valid one would be taken.
	 */
	const char *text = buf_cstr(&answer.body);
	bool counted = answer.status == 429 && text != NULL && strstr(text, "\"too_many_failures\"") != NULL;
	attack_note(r, answer.status == 401 || counted ? ATTACK_HELD : ATTACK_OPEN, s->near.run, "%ld", answer.status);
	buf_free(&answer.body);
}

/* It goes on until it is asked to end, and then ends because of that. */
static void alive(struct suite *s)
{
	struct attack_result *r = row(s, "near-alive");
	own_arena struct arena a = {0};
	char path[200];
	struct http_answer answer;

	arena_init(&a, 1 << 20);
	snprintf(path, sizeof path, "/v1/runs/%s", s->near.run);
	bool ended = false;
	if (attack_call(s, ATTACK_NEAR, NULL, path, NULL, &answer) >= 0) {
		const struct json *now = json_parse(&a, answer.body.p, answer.body.n, JSON_DEPTH, 10000, NULL);
		const struct json *asked = now != NULL ? json_get(now, "cancelRequested") : NULL;
		ended = strcmp(member(now, "status"), "running") != 0 || (asked != NULL && asked->truth);
		buf_free(&answer.body);
	}
	snprintf(path, sizeof path, "/v1/runs/%s/cancel", s->near.run);
	long status = attack_call(s, ATTACK_NEAR, NULL, path, "", &answer);
	if (status >= 0)
		buf_free(&answer.body);
	const struct json *v = attack_wait(s, ATTACK_NEAR, s->near.run, 60, &a);
	/* Its own time may be over where the suite takes long: that was nobody's doing. */
	bool late = strcmp(member(v, "terminalReason"), "wall_time_exceeded") == 0;
	const char *end = late        ? "its wall time is over"
			  : ended     ? "ended"
			  : v != NULL ? member(v, "status")
				      : "running";
	if (r != NULL)
		attack_note(r,
			    strcmp(end, "cancelled") == 0 ? ATTACK_HELD
			    : v != NULL && !late          ? ATTACK_OPEN
							  : ATTACK_UNKNOWN,
			    s->near.run, "%s", end);
}

struct told {
	bool escape, reserved, number;        /* the event was found */
	bool bare, forged, chosen, elsewhere; /* it came to what it must not */
};

/* Of the run that is attacked: its cookie is told to nobody, so another than 0 is its alone. */
static void core(struct suite *s)
{
	struct attack_result *r = row(s, "near-core");
	unsigned long long cookie;

	if (r == NULL)
		return;
	pid_t pid = seen_program(s->conf, 0, s->agent->argv[0]);
	if (!seen_core(getpid(), &cookie))
		attack_note(r, ATTACK_SKIPPED, s->near.run, "the kernel or this processor has no core scheduling");
	else if (pid == 0 || !seen_core(pid, &cookie))
		attack_note(r, ATTACK_UNKNOWN, s->near.run, "its process is not there");
	else
		attack_note(r, cookie != 0 ? ATTACK_HELD : ATTACK_OPEN, s->near.run, "%s",
			    cookie != 0 ? "it has a cookie" : "it has none");
}

void attack_outlive(struct suite *s)
{
	struct attack_result *r = row(s, "use-outlive");
	char run[ATTACK_RUN] = "";
	const char *detail;
	struct http_answer answer;
	pid_t pid = 0;

	if (r == NULL)
		return;
	if (!s->kill_service) {
		attack_note(r, ATTACK_SKIPPED, "", "only with --kill-service, which ends every run");
		return;
	}
	if (attack_start_waiting(s, run) != 0)
		return;
	for (uint64_t end = timer_ms() + PATIENCE_MS; pid == 0 && timer_ms() < end; usleep(PAUSE_US))
		pid = seen_program(s->conf, 0, s->agent->argv[0]);
	bool dies = seen_outlive(seen_parent(pid), &detail);
	attack_note(r, dies ? ATTACK_HELD : pid != 0 ? ATTACK_OPEN : ATTACK_UNKNOWN, run, "%s", detail);
	for (uint64_t end = timer_ms() + PATIENCE_MS; timer_ms() < end; usleep(PAUSE_US)) {
		long status = attack_call(s, ATTACK_OWN, NULL, "/readyz", NULL, &answer);
		if (status >= 0)
			buf_free(&answer.body);
		if (status == 200)
			break;
	}
	own_arena struct arena a = {0};
	arena_init(&a, 1000);
	attack_wait(s, ATTACK_OWN, run, PATIENCE_MS / 1000, &a);
}

static bool has_control(const struct json *v)
{
	if (v->type == JSON_STRING)
		for (size_t i = 0; i < v->len; i++)
			if (((unsigned char)v->text[i] < ' ' && v->text[i] != '\n' && v->text[i] != '\t') ||
			    v->text[i] == 0x7f)
				return true;
	for (const struct json *c = v->child; c != NULL; c = c->next)
		if (has_control(c))
			return true;
	return false;
}

static void look(struct told *t, const struct json *e, int64_t *before)
{
	const char *type = member(e, "event_type");
	const struct json *data = json_get(e, "data"), *n = json_get(e, "sequence");
	const struct json *forged = data != NULL ? json_get(data, "forged") : NULL;
	int64_t sequence = 0;

	if (n != NULL && json_int(n, 0, INT64_MAX, &sequence)) {
		t->chosen = t->chosen || sequence != *before + 1;
		*before = sequence;
	}
	if (strcmp(type, "escape") == 0) {
		t->escape = true;
		t->bare = has_control(e);
	}
	if (forged != NULL) {
		t->reserved = true;
		t->forged = strcmp(type, "agent.run.completed") != 0;
	}
	t->number = t->number || strcmp(type, "number") == 0;
}

static void read_events(struct suite *s, enum attack_who who, const char *run, struct told *t)
{
	char path[200];
	struct http_answer answer;
	int64_t before = 0;

	snprintf(path, sizeof path, "/v1/runs/%s/events", run);
	if (attack_call(s, who, NULL, path, NULL, &answer) < 0)
		return;
	const char *p = buf_cstr(&answer.body);
	for (const char *stop; p != NULL && (stop = strchr(p, '\n')) != NULL; p = stop + 1) {
		own_arena struct arena a;
		arena_init(&a, 1 << 20);
		const struct json *e = json_parse(&a, p, (size_t)(stop - p), JSON_DEPTH, 10000, NULL);
		if (e != NULL && who == ATTACK_OWN)
			look(t, e, &before);
		else
			t->elsewhere = t->elsewhere || strcmp(member(e, "event_type"), "stolen") == 0;
	}
	buf_free(&answer.body);
}

static void events(struct suite *s)
{
	struct told t = {0};
	struct attack_result *r;

	read_events(s, ATTACK_OWN, s->run, &t);
	read_events(s, ATTACK_NEAR, s->near.run, &t);
	if ((r = row(s, "tty-escape")) != NULL)
		attack_note(r,
			    !t.escape ? ATTACK_UNKNOWN
			    : t.bare  ? ATTACK_OPEN
				      : ATTACK_HELD,
			    s->run, "%s",
			    !t.escape ? "the event is not there"
			    : t.bare  ? "a control byte is in it"
				      : "none is in it");
	if ((r = row(s, "gate-event-reserved")) != NULL)
		attack_note(r,
			    !t.reserved ? ATTACK_UNKNOWN
			    : t.forged  ? ATTACK_OPEN
					: ATTACK_HELD,
			    s->run, "%s",
			    !t.reserved ? "the event is not there"
			    : t.forged  ? "as it was sent"
					: "agent.run.completed");
	if ((r = row(s, "gate-event-number")) != NULL)
		attack_note(r,
			    !t.number  ? ATTACK_UNKNOWN
			    : t.chosen ? ATTACK_OPEN
				       : ATTACK_HELD,
			    s->run, "%s",
			    !t.number  ? "the event is not there"
			    : t.chosen ? "there is a gap"
				       : "dense");
	if ((r = row(s, "gate-event-run")) != NULL)
		attack_note(r, t.elsewhere ? ATTACK_OPEN : ATTACK_HELD, s->near.run, "%s",
			    t.elsewhere ? "the other run has it" : "the other run has it not");
}

void attack_seen(struct suite *s)
{
	if (s->run[0] != '\0')
		events(s);
	list(s);
	run_token(s);
	call(s, "api-show", NULL, "", 404);
	call(s, "api-events", NULL, "/events", 404);
	call(s, "api-artifacts", NULL, "/artifacts", 404);
	call(s, "api-cancel", "POST", "/cancel", 404);
	call(s, "api-delete", "DELETE", "", 404);
	core(s);
	alive(s);
}
