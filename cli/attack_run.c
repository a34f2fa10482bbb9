/*
 * The runs of "pinfold attack": ordinary ones over the public API. What comes back from a box is an attacker's word and
 * is only looked at: a line that is no known attack's, or says something else than three words, is passed over.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/attack.h"
#include "lib/conf.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/place.h"

enum { TRY_SECONDS = 200, PLANT_SECONDS = 40, SHORT_SECONDS = 3, PAUSE_US = 100000 };
#define ATTACKER "/opt/pinfold/pinfold-attacker"
#define BRIDGED "attack-bridged"

void attack_note(struct attack_result *r, enum attack_end end, const char *run, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->detail, sizeof r->detail, fmt, ap);
	va_end(ap);
	r->end = end;
	snprintf(r->run, sizeof r->run, "%s", run);
}

long attack_call(struct suite *s, enum attack_who who, const char *method, const char *path, const char *body,
		 struct http_answer *answer)
{
	return http_raw(s->cli, &s->token[who], method, path, body, answer) == 0 ? answer->status : -1;
}

static void file(struct jw *w, const char *path, const char *content)
{
	jw_open(w, '{');
	jw_kstr(w, "path", path);
	jw_kstr(w, "content", content);
	jw_close(w, '}');
}

static bool bridged(const struct attack *a)
{
	return strcmp(a->class, "bridge") == 0;
}

/* Creates a run whose agent does what text says. 0, or an exit status after saying why. */
static int start(struct suite *s, enum attack_who who, const char *text, const struct attack *plant, unsigned seconds,
		 char run[ATTACK_RUN])
{
	static const char *const own[] = {ATTACKER, "check"}, *const spoil[] = {ATTACKER, "spoil"},
				 *const git[] = {"git", "diff", "--check"};
	bool planted = plant != NULL && plant->how == ATTACK_PLANT;
	own_buf struct buf b;
	struct http_answer answer;
	struct jw w;

	buf_init(&b, 1 << 20);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "instruction", "Attack the sandbox.");
	jw_kstr(&w, "agent", plant != NULL && bridged(plant) ? BRIDGED : "attack");
	jw_key(&w, "files");
	jw_open(&w, '[');
	file(&w, "attack.txt", text);
	file(&w, "report.txt", "-\n");
	file(&w, "a.md", "clean\n");
	file(&w, "b.md", "clean\n");
	file(&w, "sub/c.md", "clean\n");
	jw_close(&w, ']');
	static const char *const reported[] = {"report.txt"}, *const changed[] = {"a.md", "sub/c.md"};
	jw_kstrs(&w, "allowedPaths", planted ? changed : reported, planted ? 2 : 1);
	jw_key(&w, "checks");
	jw_open(&w, '[');
	if (plant != NULL && planted && strcmp(plant->id, "check-next") == 0)
		jw_kstrs(&w, NULL, spoil, 2);
	if (plant != NULL && planted && (strcmp(plant->class, "checks") == 0 || strcmp(plant->class, "collector") == 0))
		jw_kstrs(&w, NULL, git, 3);
	else
		jw_kstrs(&w, NULL, own, 2);
	jw_close(&w, ']');
	jw_key(&w, "limits");
	jw_open(&w, '{');
	jw_kint(&w, "maxSteps", 1);
	jw_kint(&w, "wallTimeSeconds", seconds);
	jw_close(&w, '}');
	jw_close(&w, '}');
	long status = buf_failed(&b) ? -1 : attack_call(s, who, NULL, "/v1/runs", buf_cstr(&b), &answer);
	if (status < 0)
		return EXIT_UNREACHABLE;
	own_arena struct arena a;
	arena_init(&a, 1 << 20);
	const struct json *v = json_parse(&a, answer.body.p, answer.body.n, JSON_DEPTH, 1000, NULL);
	snprintf(run, ATTACK_RUN, "%s", member(v, "runId"));
	if (status != 202 || !id_valid(run)) {
		fprintf(stderr, "pinfold: an attack's run is refused: %ld ", status);
		say_foreign(stderr, member(v, "error"), strlen(member(v, "error")));
		fputs(". \"pinfold setup\" makes the profile and the tenants of the attacks; the service must be "
		      "started anew "
		      "after it.\n",
		      stderr);
		run[0] = '\0';
	}
	buf_free(&answer.body);
	return run[0] != '\0' ? 0 : EXIT_FAILED;
}

int attack_start_waiting(struct suite *s, char run[ATTACK_RUN])
{
	return start(s, ATTACK_OWN, "mode neighbour\n", NULL, TRY_SECONDS, run);
}

const struct json *attack_wait(struct suite *s, enum attack_who who, const char *run, unsigned seconds, struct arena *a)
{
	char path[200];
	uint64_t end = timer_ms() + 1000ull * seconds;

	snprintf(path, sizeof path, "/v1/runs/%s", run);
	while (timer_ms() < end) {
		struct http_answer answer;
		arena_free(a);
		arena_init(a, 16 << 20);
		if (attack_call(s, who, NULL, path, NULL, &answer) < 0)
			return NULL;
		const struct json *v = json_parse(a, answer.body.p, answer.body.n, JSON_DEPTH, 100000, NULL);
		buf_free(&answer.body);
		if (v != NULL && json_get(v, "terminalReason") != NULL)
			return v;
		usleep(PAUSE_US);
	}
	return NULL;
}

static void take_neighbour(struct attack_neighbour *n, const struct json *data)
{
	static const char *const known[] = {"mnt", "pid", "net", "ipc", "uts", "cgroup", "user", "uid"};
	size_t at = 0;

	snprintf(n->model, sizeof n->model, "%s", member(data, "model"));
	snprintf(n->events, sizeof n->events, "%s", member(data, "events"));
	snprintf(n->approvals, sizeof n->approvals, "%s", member(data, "approvals"));
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		at += (size_t)snprintf(n->know + at, sizeof n->know - at, "know near-%s %.60s\n", known[i],
				       member(data, known[i]));
}

int attack_neighbour_start(struct suite *s)
{
	char path[200];
	uint64_t end = timer_ms() + 60000;
	int status = start(s, ATTACK_NEAR, "mode neighbour\n", NULL, TRY_SECONDS, s->near.run);

	if (status != 0)
		return status;
	snprintf(path, sizeof path, "/v1/runs/%s/events", s->near.run);
	while (s->near.model[0] == '\0' && timer_ms() < end) {
		struct http_answer answer;
		if (attack_call(s, ATTACK_NEAR, NULL, path, NULL, &answer) < 0)
			return EXIT_UNREACHABLE;
		const char *p = buf_cstr(&answer.body);
		for (const char *stop; p != NULL && (stop = strchr(p, '\n')) != NULL; p = stop + 1) {
			own_arena struct arena a;
			arena_init(&a, 1 << 20);
			const struct json *e = json_parse(&a, p, (size_t)(stop - p), JSON_DEPTH, 1000, NULL);
			if (strcmp(member(e, "event_type"), "neighbour") == 0)
				take_neighbour(&s->near, json_get(e, "data"));
		}
		buf_free(&answer.body);
		usleep(PAUSE_US);
	}
	if (s->near.model[0] != '\0')
		return 0;
	fprintf(stderr, "pinfold: the run that is to be attacked did not come up: pinfold show %s\n", s->near.run);
	return EXIT_FAILED;
}

/* The first name server of this machine that has an IPv4 address. */
static void add_nameserver(struct buf *b)
{
	size_t n;
	own_free char *text = file_read(AT_FDCWD, "/etc/resolv.conf", 100000, &n);
	char address[16];

	for (char *line = text; line != NULL; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "nameserver %15[0-9.]", address) == 1) {
			buf_addf(b, "know nameserver %s\n", address);
			return;
		}
	}
}

static void add_namespaces(struct buf *b)
{
	static const char *const known[] = {"mnt", "pid", "net", "ipc", "uts", "cgroup", "user"};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		char path[64], at[64] = "";
		snprintf(path, sizeof path, "/proc/self/ns/%s", known[i]);
		if (readlink(path, at, sizeof at - 1) > 0)
			buf_addf(b, "know ns-%s %s\n", known[i], at);
	}
}

static void add_known(const struct suite *s, struct buf *b)
{
	const char *server = s->cli->server != NULL ? s->cli->server : "";
	const char *colon = strrchr(server, ':');
	int port = colon != NULL ? atoi(colon + 1) : 0;

	buf_addf(b,
		 "know port %d\nknow listener %u\nknow abstract %s\nknow datagrams %s\nknow key %d\nknow host-pid %d\n",
		 port > 0                            ? port
		 : strncmp(server, "https:", 6) == 0 ? 443
						     : 80,
		 s->offer.port, s->offer.name, s->offer.datagrams_name, s->offer.key, (int)getpid());
	buf_addf(b, "know state %s\nknow run %s\nknow config %s\n", place_dir(PLACE_STATE), place_dir(PLACE_RUN),
		 place_dir(PLACE_SYSCONF));
	buf_addf(b, "know pids %u\nknow memory %llu\nknow workspace %llu\nknow inodes %u\nknow budget %u\n",
		 s->agent->pids, (unsigned long long)s->agent->memory_bytes,
		 (unsigned long long)s->agent->workspace_bytes, s->agent->workspace_inodes,
		 1 + s->agent->extra_requests);
	buf_addf(
	    b, "know near-run %s\nknow near-model-token %s\nknow near-event-token %s\nknow near-approval-token %s\n%s",
	    s->near.run, s->near.model, s->near.events, s->near.approvals, s->near.know);
	buf_addf(b, "know near-port 18789\n");
	add_namespaces(b);
	add_nameserver(b);
}

/* "ID held|open|skipped DETAIL" of a report. */
static void take_line(struct suite *s, const char *run, const char *line, size_t n)
{
	static const struct {
		const char *word;
		enum attack_end end;
	} words[] = {{"held", ATTACK_HELD}, {"open", ATTACK_OPEN}, {"skipped", ATTACK_SKIPPED}};
	char id[64], word[16], text[400];
	int used = 0;

	snprintf(text, sizeof text, "%.*s", (int)(n < sizeof text ? n : sizeof text - 1), line);
	if (sscanf(text, "%63s %15s %n", id, word, &used) != 2)
		return;
	for (size_t i = 0; i < ATTACKS; i++)
		for (size_t k = 0; k < sizeof words / sizeof *words; k++)
			if (s->result[i].wanted && s->result[i].end == ATTACK_UNKNOWN &&
			    strcmp(attacks[i].id, id) == 0 && strcmp(words[k].word, word) == 0)
				attack_note(&s->result[i], words[k].end, run, "%s", text + used);
}

/* What was added to report.txt. */
static bool take_report(struct suite *s, const char *run)
{
	char path[200];
	struct http_answer answer;

	snprintf(path, sizeof path, "/v1/runs/%s/artifacts/patch", run);
	if (attack_call(s, ATTACK_OWN, NULL, path, NULL, &answer) < 0)
		return false;
	bool found = answer.status == 200;
	const char *p = found ? buf_cstr(&answer.body) : NULL;
	for (const char *stop; p != NULL && (stop = strchr(p, '\n')) != NULL; p = stop + 1)
		if (p[0] == '+' && p[1] != '+')
			take_line(s, run, p + 1, (size_t)(stop - p - 1));
	buf_free(&answer.body);
	return found;
}

static void ending(const struct json *v, char *to, size_t size)
{
	snprintf(to, size, "%.30s/%.80s", v != NULL ? member(v, "status") : "running",
		 v != NULL ? member(v, "error") : "");
}

/* Whether end is one of "a|b|c". */
static bool among(const char *end, const char *list)
{
	size_t n = strlen(end);

	for (const char *p = list; p != NULL; p = strchr(p, '|')) {
		p += *p == '|';
		if (strncmp(p, end, n) == 0 && (p[n] == '|' || p[n] == '\0'))
			return true;
	}
	return false;
}

static void judge(struct suite *s, size_t i, const char *run)
{
	struct attack_result *r = &s->result[i];
	own_arena struct arena a = {0};
	char end[128];

	arena_init(&a, 1000);
	const struct json *v = attack_wait(s, ATTACK_OWN, run, PLANT_SECONDS + 60, &a);
	ending(v, end, sizeof end);
	if (attacks[i].how == ATTACK_ALONE && v != NULL && take_report(s, run) && r->end != ATTACK_UNKNOWN)
		return;
	if (among(end, attacks[i].must))
		attack_note(r, ATTACK_HELD, run, "the run is %s", end);
	else if (strcmp(end, "failed/sandbox_agent_failed") == 0 && attacks[i].how == ATTACK_PLANT)
		attack_note(r, ATTACK_SKIPPED, run, "it could not be left");
	else
		attack_note(r,
			    attacks[i].how == ATTACK_PLANT &&
				    (v != NULL || strstr(attacks[i].must, "wall_time") != NULL)
				? ATTACK_OPEN
				: ATTACK_UNKNOWN,
			    run, "the run is %s", end);
}

/* The run in which all that can be tried together is tried. */
static int start_together(struct suite *s)
{
	own_buf struct buf b;
	bool any = false;

	buf_init(&b, 60000);
	buf_adds(&b, "mode try\n");
	add_known(s, &b);
	for (size_t i = 0; i < ATTACKS; i++)
		if (s->result[i].wanted && (attacks[i].how == ATTACK_BOX || attacks[i].how == ATTACK_SEEN)) {
			any = true;
			if (attacks[i].how == ATTACK_BOX)
				buf_addf(&b, "try %s\n", attacks[i].id);
		}
	return any ? start(s, ATTACK_OWN, buf_cstr(&b), NULL, TRY_SECONDS, s->run) : 0;
}

int attack_try(struct suite *s)
{
	static char runs[ATTACKS][ATTACK_RUN];
	int status = start_together(s);

	for (size_t i = 0; status == 0 && i < ATTACKS; i++) {
		if (!s->result[i].wanted || (attacks[i].how != ATTACK_ALONE && attacks[i].how != ATTACK_PLANT))
			continue;
		if (bridged(&attacks[i]) && conf_agent(s->conf, BRIDGED) == NULL) {
			attack_note(&s->result[i], ATTACK_SKIPPED, "", "there is no profile " BRIDGED);
			continue;
		}
		own_buf struct buf b;
		buf_init(&b, 60000);
		buf_addf(&b, "mode %s\n", attacks[i].how == ATTACK_PLANT ? "plant" : "try");
		add_known(s, &b);
		buf_addf(&b, "try %s\n", attacks[i].id);
		status = start(s, ATTACK_OWN, buf_cstr(&b), &attacks[i],
			       strstr(attacks[i].must, "wall_time") != NULL ? SHORT_SECONDS : PLANT_SECONDS, runs[i]);
	}
	if (s->run[0] != '\0') {
		own_arena struct arena a = {0};
		char end[128];
		arena_init(&a, 1000);
		ending(attack_wait(s, ATTACK_OWN, s->run, TRY_SECONDS + 60, &a), end, sizeof end);
		if (strcmp(end, "completed/") != 0)
			fprintf(stderr, "pinfold: the run of most attacks is %s: pinfold show %s\n", end, s->run);
		take_report(s, s->run);
	}
	for (size_t i = 0; i < ATTACKS; i++)
		if (runs[i][0] != '\0')
			judge(s, i, runs[i]);
	return status;
}
