/*
 * Doctor: real boxes, made by the running service for ordinary runs. In the first the agent only sleeps, and its walls
 * are looked at from outside, in /proc, as root: nothing that is in the box has a say. In the second the program of
 * "pinfold attack" tries what it can from inside. A wall stands when neither finds a hole. Nothing of the runs is left.
 */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/attack.h"
#include "cli/doctor_seen.h"
#include "lib/num.h"
#include "lib/own.h"

enum {
	PATIENCE_MS = 90000,
	END_MS = 30000,
	ASK_EVERY = 25,
	PAUSE_MS = 20,
	SLEEP_MS = 50000 /* of the 60 s for which the profile sleeps */
};

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
}

static const struct json *call(struct doctor *d, struct arena *a, const char *method, const char *body,
			       const char *path, long *status)
{
	struct doctor_call c = {.method = method, .path = path, .body = body};
	const struct json *v = NULL;

	*status = doctor_http(d, &c) == 0 ? c.status : 0;
	if (*status != 0)
		v = json_parse(a, c.answer.p, c.answer.n, JSON_DEPTH, 10000, NULL);
	buf_free(&c.answer);
	return v != NULL && v->type == JSON_OBJECT ? v : NULL;
}

/* A request that this tenant may make: one file of a type it may upload, one check it may have. */
static bool write_request(struct doctor *d, struct buf *b)
{
	own_arena struct arena a;
	struct jw w;
	char file[80];
	long status;

	arena_init(&a, 1 << 20);
	const struct json *v = call(d, &a, NULL, NULL, "/v1/limits", &status);
	const struct json *types = v != NULL ? json_get(v, "extensions") : NULL;
	const struct json *checks = v != NULL ? json_get(v, "checks") : NULL;
	if (types == NULL || types->child == NULL || checks == NULL || checks->child == NULL)
		return false;
	const char *type = types->child->text;
	snprintf(file, sizeof file, "doctor%s", type == NULL || strcmp(type, "*") == 0 ? ".txt" : type);
	jw_init(&w, b);
	jw_open(&w, '{');
	jw_kstr(&w, "instruction", "pinfold doctor looks at this box.");
	jw_kstr(&w, "agent", d->agent);
	jw_key(&w, "files");
	jw_open(&w, '[');
	jw_open(&w, '{');
	jw_kstr(&w, "path", file);
	jw_kstr(&w, "content", "\n");
	jw_close(&w, '}');
	jw_close(&w, ']');
	jw_key(&w, "allowedPaths");
	jw_open(&w, '[');
	jw_str(&w, file);
	jw_close(&w, ']');
	jw_key(&w, "checks");
	jw_open(&w, '[');
	buf_addc(b, '[');
	for (const struct json *word = checks->child->child; word != NULL; word = word->next) {
		json_write(b, word);
		if (word->next != NULL)
			buf_addc(b, ',');
	}
	buf_addc(b, ']');
	jw_close(&w, ']');
	jw_close(&w, '}');
	return !buf_failed(b);
}

/* What became of a run: "" while it goes on. */
static bool ended(struct doctor *d, const char *run, char reason[128])
{
	own_arena struct arena a;
	char path[200];
	long status;

	arena_init(&a, 1 << 20);
	snprintf(path, sizeof path, "/v1/runs/%s", run);
	const struct json *v = call(d, &a, NULL, NULL, path, &status);
	const char *s = v != NULL ? member(v, "status") : "";
	snprintf(reason, 128, "%s %s", s, v != NULL ? member(v, "error") : "");
	return status != 200 || (strcmp(s, "queued") != 0 && strcmp(s, "running") != 0);
}

static struct seen box; /* large; of the one box that is looked at */
static char run[129];
static uint64_t started;
static bool is_over;
static struct finding ended_so;

static void start(struct doctor *d)
{
	own_buf struct buf body;
	own_arena struct arena a;
	char reason[128];
	long status = 0;

	buf_init(&body, 1 << 16);
	arena_init(&a, 1 << 20);
	if (!d->box) {
		found(d, DOCTOR_SKIPPED, "not with --no-box");
		return;
	}
	if (!need_conf(d))
		return;
	if (conf_agent(&d->conf, d->agent) == NULL) {
		found(d, DOCTOR_WARN, "there is no agent profile \"%s\" to look at a box with", d->agent);
		return;
	}
	doctor_need_token(d);
	if (d->token.n == 0)
		return;
	const struct json *v =
	    write_request(d, &body) ? call(d, &a, "POST", buf_cstr(&body), "/v1/runs", &status) : NULL;
	if (status != 202 || !id_valid(member(v, "runId"))) {
		found(d, DOCTOR_ERROR, "a run is refused: %ld %s", status, v != NULL ? member(v, "error") : "");
		remedy(d, "see web.ready, web.authorization and disk.space above; journalctl -u pinfold");
		return;
	}
	snprintf(run, sizeof run, "%s", member(v, "runId"));
	uint64_t from = timer_ms();
	started = from;
	for (unsigned i = 1; box.pid == 0; i++) {
		pid_t pid = seen_program(&d->conf, d->sandboxd, conf_agent(&d->conf, d->agent)->argv[0]);
		if (pid != 0 && seen_take(d, &box, pid))
			break;
		if (i % ASK_EVERY == 0 && (ended(d, run, reason) || timer_ms() - from > PATIENCE_MS)) {
			found(d, DOCTOR_ERROR, "no box was seen; the run is %s", reason);
			remedy(d, "pinfold show %s and journalctl -u pinfold say why", run);
			return;
		}
		nap();
	}
	found(d, DOCTOR_OK, "profile %s, uid %u, process %d, %llu ms after it was asked for", d->agent, box.uid,
	      (int)box.pid, (unsigned long long)(timer_ms() - from));
}

/* The end of the first box. */
static void finish(struct doctor *d)
{
	const struct finding mine = d->now;
	own_arena struct arena a;
	char path[200], reason[128];
	long status;
	uid_t uid;
	bool over = false;
	uint64_t from = timer_ms();

	arena_init(&a, 1 << 20);
	d->now = (struct finding){.verdict = DOCTOR_OK};
	if (d->kill_service && box.pid != 0) {
		box.died = seen_outlive(box.parent, &box.outlived);
		for (status = 0; status != 200 && timer_ms() - from < PATIENCE_MS; nap())
			call(d, &a, NULL, NULL, "/readyz", &status);
		from = timer_ms();
	} else {
		snprintf(path, sizeof path, "/v1/runs/%s/cancel", run);
		call(d, &a, "POST", "{}", path, &status);
	}
	while (!(over = ended(d, run, reason)) && timer_ms() - from < END_MS)
		nap();
	if (!over)
		found(d, DOCTOR_ERROR, "the run does not end: %s", reason);
	else if (box.outlived != NULL)
		found(d, DOCTOR_OK, "pinfold-sandboxd was killed; the run is %s", reason);
	else if (strncmp(reason, "cancelled", 9) != 0 && box.pid != 0 && from - started < SLEEP_MS)
		found(d, DOCTOR_WARN, "the run is %s, not cancelled", reason);
	else
		found(d, DOCTOR_OK, "%s and gone after %llu ms", strtok(reason, " "),
		      (unsigned long long)(timer_ms() - from));
	if (over && box.pid != 0 && seen_uid(box.pid, &uid) && uid == box.uid)
		found(d, DOCTOR_ERROR, "process %d of the box is still there", (int)box.pid);
	snprintf(path, sizeof path, "/v1/runs/%s", run);
	if (over)
		call(d, &a, "DELETE", NULL, path, &status);
	ended_so = d->now;
	d->now = mine;
	is_over = true;
}

static void end(struct doctor *d)
{
	if (run[0] == '\0') {
		found(d, DOCTOR_SKIPPED, "there was no box");
		return;
	}
	if (!is_over)
		finish(d);
	d->now = ended_so;
}

/* What the attacks on each wall came to. */
static struct {
	unsigned held, open;
	char detail[200];
} inside[STEP__COUNT];
static unsigned tried;

static void told(void *with, const struct attack *a, const struct attack_result *r)
{
	struct doctor *d = with;
	uid_t uid;

	/* What it was compared with must be there still. */
	if (strncmp(a->id, "near-", 5) == 0 && (is_over || !seen_uid(box.pid, &uid) || uid != box.uid))
		return;
	for (int i = STEP_NONE + 1; i < STEP__COUNT; i++) {
		if (strcmp(walls[i].name, a->wall) != 0)
			continue;
		tried += r->end == ATTACK_HELD || r->end == ATTACK_OPEN;
		inside[i].held += r->end == ATTACK_HELD;
		if (r->end != ATTACK_OPEN)
			continue;
		inside[i].open++;
		snprintf(inside[i].detail, sizeof inside[i].detail, "the attack %s succeeds: %.140s", a->id, r->detail);
		found(d, DOCTOR_ERROR, "%s", a->id);
	}
}

/* What the attackers' box must not share with the first, in the words of attack.txt. */
static void neighbour(char know[1000])
{
	unsigned runner = 0, agent = 0;
	size_t n = 0;

	for (size_t i = 0; i < SEEN_SPACES; i++) {
		char path[64], at[64] = "";
		snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)box.pid, seen_spaces[i]);
		if (readlink(path, at, sizeof at - 1) > 0)
			n += (size_t)snprintf(know + n, 1000 - n, "know near-%s %s\n", seen_spaces[i], at);
	}
	if (sscanf(box.uid_map, "%*u %u %*u %*u %u", &runner, &agent) == 2)
		snprintf(know + n, 1000 - n, "know near-uid %u,%u\n", runner, agent);
}

static void attack(struct doctor *d)
{
	struct cli cli = *d->cli;
	char near[1000] = "";

	/* The first box is the neighbour wherever there is room for two. */
	if (box.pid != 0 && d->conf.global.max_boxes < 2)
		finish(d);
	else if (box.pid != 0)
		neighbour(near);
	if (box.pid == 0) {
		found(d, DOCTOR_SKIPPED, "there is no box");
	} else if (!attack_possible(&d->conf)) {
		found(d, DOCTOR_WARN, "the configuration has not the profile and the tenants of the attacks");
		remedy(d, "run pinfold setup, which makes them, and systemctl restart pinfold");
	} else if (attack_walls(&cli, &d->conf, near, told, d) != 0 || tried == 0) {
		found(d, DOCTOR_ERROR, "the attacks could not be tried");
		remedy(d, "pinfold attack says more");
	} else {
		found(d, DOCTOR_OK, "%u attacks on walls hold; pinfold attack tries more", tried);
	}
}

/* From outside, then from inside: either may find a hole. */
static void wall(struct doctor *d, int i)
{
	bool seen = seen_wall(d, &box, (enum step)i);

	if (inside[i].open > 0)
		found(d, DOCTOR_ERROR, "%s", inside[i].detail);
	else if (d->now.verdict != DOCTOR_OK)
		return;
	else if (inside[i].held > 0 && d->now.detail[0] == '\0')
		found(d, DOCTOR_OK, "%s%u attack%s", seen ? "seen to stand; " : "", inside[i].held,
		      inside[i].held == 1 ? " holds" : "s hold");
	else if (!seen)
		found(d, DOCTOR_SKIPPED,
		      walls[i].required
			  ? "not seen from outside; no box is made without it"
			  : "not seen from outside; sandboxd says at its start whether the kernel has it");
}

static void walk(struct doctor *d)
{
	const struct finding mine = d->now;
	unsigned bad = 0, good = 0;

	if (box.pid == 0) {
		found(d, DOCTOR_SKIPPED, "there is no box to look at");
		return;
	}
	for (int i = STEP_NONE + 1; i < STEP__COUNT; i++) {
		char id[64], what[400];
		d->now = (struct finding){.verdict = DOCTOR_OK};
		wall(d, i);
		snprintf(
		    what, sizeof what,
		    "systemctl stop pinfold: a box has a hole. Is the program the installed one (service.version)? %s",
		    walls[i].without);
		doctor_say(d, doctor_wall_id(i, id), d->now.verdict,
			   d->now.detail[0] != '\0' ? d->now.detail : walls[i].why, what);
		bad += d->now.verdict == DOCTOR_ERROR;
		good += d->now.verdict == DOCTOR_OK;
	}
	d->now = mine;
	if (bad > 0)
		found(d, DOCTOR_ERROR, "%u walls of the box are open", bad);
	else
		found(d, DOCTOR_OK, "%u walls stand, none is open", good);
}

const char *doctor_wall_id(int step, char id[64])
{
	snprintf(id, 64, "wall.%s", walls[step].name);
	for (char *p = id; *p != '\0'; p++)
		*p = *p == ' ' ? '-' : *p;
	return id;
}

const struct doctor_check doctor_box[] = {
    {"box.start", "the running service makes a box for an ordinary run (a profile that only sleeps)",
     "run pinfold setup, which makes the profile \"probe\", and systemctl restart pinfold; or name one with --agent",
     start},
    {"box.attack", "what an agent can try against the walls from inside holds",
     "systemctl stop pinfold until it holds; pinfold attack says more", attack},
    {"box.end", "cancelled, the run ends, and nothing of the box is left", "journalctl -u pinfold", end},
    {"box.walls", "the walls of a box, each by its name, looked at from outside and tried from inside",
     "systemctl stop pinfold until the walls that are named stand", walk},
    {0}};
