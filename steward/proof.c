/*
 * See proof.h. One box at a time, each of the ordinary kind; what it leaves is looked at as bytes alone, once nobody
 * writes it any more. The results live in memory: another start looks anew, and so does another version of an agent.
 */
#include "steward/proof.h"
#include "gen/bundle_msg.h"
#include "gen/store_msg.h"
#include "lib/chan.h"
#include "lib/die.h"
#include "lib/keymask.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/text.h"
#include "lib/wire.h"
#include "steward/control.h"
#include "steward/launch.h"
#include "steward/pack.h"
#include "steward/tell.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEST_SECONDS = 60, TEST_OUTPUT = 1000000, VALUE_BYTES = 80, AGAIN = 500, LATE = 30000 };
enum trial { TRIAL_VERSION, TRIAL_SET, TRIAL_UNSET, TRIAL_EMPTY, TRIAL_ODD, TRIAL__COUNT };
static const char *const trial_names[TRIAL__COUNT] = {"its version", "a key", "no key", "an empty key",
						      "a key with quotes"};

struct found {
	enum proof_state state;
	bool odd;
	char version[101], why[201];
};

struct proving {
	struct found found[CONF_AGENTS]; /* by the configuration's order */
	uint32_t at;                     /* which agent is looked at */
	enum trial trial;
	unsigned round;    /* each box has a name of its own */
	struct run *probe; /* the box; NULL: none is there */
	bool spawned, exited;
	uint64_t deadline, again; /* timer_ms, 0: none */
	char value[VALUE_BYTES], set[VALUE_BYTES];
	bool due; /* the store does not know it yet */
};

static int at_of(const struct app *app, const char *agent)
{
	for (uint32_t i = 0; app->proving != NULL && i < app->conf->nagents; i++)
		if (strcmp(app->conf->agents[i].name, agent) == 0)
			return (int)i;
	return -1;
}

enum proof_state proof_of(const struct app *app, const char *agent)
{
	int i = at_of(app, agent);
	return i < 0 ? PROOF_NONE : app->proving->found[i].state;
}

bool proof_odd(const struct app *app, const char *agent)
{
	int i = at_of(app, agent);
	return i >= 0 && app->proving->found[i].state == PROOF_DONE && app->proving->found[i].odd;
}

size_t proof_boxes(const struct app *app)
{
	return app->proving != NULL && app->proving->probe != NULL;
}

static void probe_free(struct proving *p)
{
	if (p->probe == NULL)
		return;
	if (p->probe->work_fd >= 0)
		close(p->probe->work_fd);
	free(p->probe);
	p->probe = NULL;
	p->spawned = p->exited = false;
	p->deadline = 0;
}

void proof_tell_again(struct app *app)
{
	if (app->proving != NULL)
		app->proving->due = true;
}

void proof_begin(struct app *app)
{
	if (app->proving == NULL)
		app->proving = calloc(1, sizeof *app->proving);
	struct proving *p = app->proving;
	if (p == NULL)
		fatal("no memory");
	if (p->probe != NULL) {
		control_stray(app, p->probe->run, BOX_WORK);
		control_kill(app, p->probe->run, BOX_WORK, 0);
		probe_free(p);
	}
	memset(p->found, 0, sizeof p->found);
	for (uint32_t i = 0; i < app->conf->nagents; i++) {
		const struct cf_agent *a = &app->conf->agents[i];
		p->found[i].state = a->env_mode && a->self_test_n > 0 ? PROOF_ON : PROOF_NONE;
	}
	p->at = 0;
	p->trial = TRIAL_VERSION;
	p->again = timer_ms();
	p->due = true;
}

/* --- one trial ------------------------------------------------------------------------------------ */

/* Nobody's key, and another each time. */
static struct pack_key make_up(struct proving *p)
{
	uint8_t random[8];
	char digits[2 * sizeof random + 1];
	random_bytes(random, sizeof random);
	for (size_t i = 0; i < sizeof random; i++)
		snprintf(digits + 2 * i, 3, "%02x", random[i]);
	snprintf(p->value, sizeof p->value, p->trial == TRIAL_ODD ? "made-up-\"'%s\\n\n\\\"}{x" : "made-up-%s", digits);
	if (p->trial == TRIAL_SET)
		memcpy(p->set, p->value, sizeof p->set);
	bool none = p->trial == TRIAL_UNSET || p->trial == TRIAL_EMPTY;
	return (struct pack_key){.unset = p->trial == TRIAL_UNSET,
				 .value = {(const uint8_t *)p->value, none ? 0 : (uint32_t)strlen(p->value)}};
}

static int bundle(const struct app *app, struct proving *p, const struct cf_agent *a)
{
	own_fd int fd = bundle_new("upload");
	static const struct wire_bytes empty = {(const uint8_t *)"{}", 2};
	uint8_t frame[BN_MAX_SOURCE_END], request[64];
	struct cf_agent test = *a;
	size_t n = bn_put_source_end(frame, sizeof frame, 0, &(struct bn_source_end){.files = 0});
	size_t rn = bn_put_request(request, sizeof request, 0, &(struct bn_request){.json = empty});
	bool version = p->trial == TRIAL_VERSION;
	struct pack_key key = make_up(p);
	const char *const *argv = version ? a->version_command : a->self_test;
	test.argv_n = version ? a->version_command_n : a->self_test_n;
	memcpy(test.argv, argv, sizeof(char *) * test.argv_n);
	test.output_bytes = TEST_OUTPUT;
	p->probe->agent = &test;
	bool ok = fd >= 0 && bundle_add(fd, frame, n) && bundle_add(fd, request, rn);
	pack_keys(fd, a, &key, false, &ok);
	pack_agent(fd, p->probe, app->conf->global.gateway_port, &ok);
	pack_go(fd, p->probe, BOX_WORK, &ok);
	p->probe->agent = a;
	return ok && bundle_seal(fd) ? steal_fd(&fd) : -1;
}

/* The box of this trial gets no real key: what sandboxd is told to pass on, is named by control_spawn for runs alone.
 */
static void start(struct app *app, struct proving *p)
{
	const struct cf_agent *a = &app->conf->agents[p->at];
	p->probe = calloc(1, sizeof *p->probe);
	if (p->probe == NULL)
		fatal("no memory");
	struct run *r = p->probe;
	snprintf(r->run, sizeof r->run, "self-test-%u", ++p->round);
	snprintf(r->tenant, sizeof r->tenant, "self-test");
	snprintf(r->model, sizeof r->model, "self-test");
	r->wall_seconds = TEST_SECONDS;
	r->rq.instruction = "self-test";
	r->work_fd = launch_result();
	own_fd int upload = r->work_fd < 0 ? -1 : bundle(app, p, a);
	r->agent = a;
	if (upload < 0) {
		log_error("agent %s: its self-test could not be made: %m", a->name);
		probe_free(p);
		p->again = timer_ms() + LATE;
		return;
	}
	p->deadline = timer_ms() + LATE;
	control_spawn_test(app, r, TEST_SECONDS + BACKSTOP_SECONDS, upload, r->work_fd);
}

static void next_agent(struct app *app, struct proving *p)
{
	struct found *f = &p->found[p->at];
	const char *name = app->conf->agents[p->at].name;
	if (f->state == PROOF_FAILED)
		log_error("agent %s (version %s): it is not proven that it reads its keys: %s; its runs are refused",
			  name, f->version[0] != '\0' ? f->version : "not known", f->why);
	else
		log_info("agent %s: it reads its keys as they are given, proven for version %s%s", name,
			 f->version[0] != '\0' ? f->version : "not known",
			 f->odd ? "" : "; keys with quotes or backslashes are refused");
	p->at++;
	p->trial = TRIAL_VERSION;
	p->due = true;
}

static void failed(struct app *app, struct proving *p, const char *why)
{
	struct found *f = &p->found[p->at];
	f->state = PROOF_FAILED;
	snprintf(f->why, sizeof f->why, "%s: %s", trial_names[p->trial], why);
	next_agent(app, p);
}

/* The agent's own words, on one line. */
static void take_version(struct found *f, const struct bn_ran *m)
{
	own_buf struct buf b;
	size_t n = 0;
	while (n < m->output.n && m->output.p[n] != '\n')
		n++;
	buf_init(&b, sizeof f->version);
	text_log(&b, (const char *)m->output.p, n, sizeof f->version - 1);
	const char *text = buf_cstr(&b);
	snprintf(f->version, sizeof f->version, "%s", text != NULL ? text : "");
}

static bool holds(const struct bn_ran *m, const char *value)
{
	struct keymask k = {.n = 0};
	bool found = keymask_add(&k, value, strlen(value)) && keymask_holds(&k, m->output.p, m->output.n);
	keymask_wipe(&k);
	return found;
}

/* Does the output still hold a reference that the agent should have resolved? */
static bool left_over(const struct cf_agent *a, const struct bn_ran *m)
{
	struct conf_key keys[CONF_KEYS];
	char reference[80];
	bool left = conf_keys(a, keys) != NULL;
	for (uint32_t i = 0; i < a->credentials_n && !left; i++) {
		snprintf(reference, sizeof reference, "{env:%s}", keys[i].variable);
		left = memmem(m->output.p, m->output.n, reference, strlen(reference)) != NULL ||
		       memmem(m->output.p, m->output.n, CONF_KEY_FILE, sizeof CONF_KEY_FILE - 1) != NULL;
	}
	return left;
}

/* What the trial came to: NULL, or why the agent is not proven. */
static const char *judge(struct proving *p, const struct cf_agent *a, const struct bn_ran *m)
{
	struct found *f = &p->found[p->at];
	bool well = m->status == 0 && !m->timed_out;
	if (!m->started)
		return p->trial == TRIAL_VERSION ? "version_command could not be started"
						 : "self_test could not be started";
	if (m->timed_out)
		return "it did not end";
	switch (p->trial) {
	case TRIAL_VERSION:
		take_version(f, m);
		return well && f->version[0] != '\0' ? NULL : "version_command failed, or printed nothing";
	case TRIAL_SET:
		return !well                 ? "self_test failed"
		       : !holds(m, p->value) ? "self_test does not print what was set"
		       : left_over(a, m)     ? "self_test prints the reference itself"
					     : NULL;
	case TRIAL_UNSET:
	case TRIAL_EMPTY:
		return holds(m, p->set)          ? "self_test prints a key of before"
		       : well && left_over(a, m) ? "self_test prints the reference itself, as if it were the key"
						 : NULL;
	case TRIAL_ODD:
	case TRIAL__COUNT:
	default:
		/* An agent that fails at it is none that uses something else in its place. Such keys are then refused.
		 */
		f->odd = well && holds(m, p->value);
		return NULL;
	}
}

/* The box is gone and its result is whole. */
static void ended(struct app *app, struct proving *p)
{
	const uint8_t *frame;
	size_t n;
	uint16_t number;
	uint64_t op;
	struct bundle b = {0};
	struct bn_ran m;
	const char *why = "its sandbox did not work";
	if (launch_seal(p->probe->work_fd, 0) && bundle_open(&b, p->probe->work_fd, BN_MAXFRAME)) {
		while (bundle_next(&b, &frame, &n) > 0)
			if (wire_peek(frame, n, &number, &op) && number == BN_RAN && bn_get_ran(frame, n, &m)) {
				why = judge(p, &app->conf->agents[p->at], &m);
				break;
			}
		bundle_close(&b);
	}
	probe_free(p);
	p->again = timer_ms();
	if (why != NULL) {
		failed(app, p, why);
	} else if (++p->trial == TRIAL__COUNT) {
		p->found[p->at].state = PROOF_DONE;
		next_agent(app, p);
	}
}

/* --- what sandboxd says --------------------------------------------------------------------------- */

static struct proving *of(struct app *app, const char *run)
{
	struct proving *p = app->proving;
	return p != NULL && p->probe != NULL && strcmp(p->probe->run, run) == 0 ? p : NULL;
}

bool proof_spawned(struct app *app, const char *run)
{
	struct proving *p = of(app, run);
	if (p != NULL)
		p->deadline = timer_ms() + 1000 * TEST_SECONDS + WAIT_BACKSTOP;
	return p != NULL;
}

bool proof_refused(struct app *app, const struct sbx_refused *m)
{
	struct proving *p = of(app, m->run);
	if (p == NULL)
		return false;
	probe_free(p);
	p->again = timer_ms() + AGAIN;
	if (m->code != ERR_SANDBOX_CAPACITY)
		failed(app, p, "its sandbox was refused");
	return true;
}

bool proof_exited(struct app *app, const char *run)
{
	struct proving *p = of(app, run);
	if (p == NULL)
		return false;
	p->exited = true;
	p->deadline = timer_ms() + LATE;
	control_kill(app, run, BOX_WORK, 0);
	return true;
}

bool proof_gone(struct app *app, const char *run)
{
	struct proving *p = of(app, run);
	if (p != NULL)
		ended(app, p);
	return p != NULL;
}

/* --- time ----------------------------------------------------------------------------------------- */

static void tell(struct app *app, struct proving *p)
{
	uint8_t items[16000];
	struct wire_list l = {.p = items, .cap = sizeof items};
	struct st_ok answer;
	for (uint32_t i = 0; i < app->conf->nagents; i++) {
		const struct found *f = &p->found[i];
		const struct st_proof m = {.agent = app->conf->agents[i].name,
					   .state = (uint8_t)f->state,
					   .odd = f->odd,
					   .version = f->version,
					   .why = f->why};
		uint8_t *room = app->conf->agents[i].env_mode ? wire_list_room(&l, ST_MAX_PROOF) : NULL;
		size_t n = room != NULL ? st_put_proof(room, ST_MAX_PROOF, &m) : 0;
		if (n > 0)
			wire_list_add(&l, n);
	}
	const struct st_proofs m = {.items = wire_list_done(&l)};
	p->due = tell_heard(app, st_call_proofs(app->store, &m, NULL, &answer, NULL)) == ERR_STORE_UNAVAILABLE;
}

void proof_tick(struct app *app, uint64_t now)
{
	struct proving *p = app->proving;
	if (p == NULL)
		return;
	if (p->due && !tell_quiet(app))
		tell(app, p);
	if (p->probe != NULL) {
		if (p->deadline == 0 || now < p->deadline)
			return;
		control_stray(app, p->probe->run, BOX_WORK);
		control_kill(app, p->probe->run, BOX_WORK, 0);
		probe_free(p);
		failed(app, p, "its sandbox did not end in time");
	}
	if (now < p->again)
		return;
	while (p->at < app->conf->nagents && p->found[p->at].state != PROOF_ON)
		p->at++;
	if (p->at == app->conf->nagents)
		return;
	if (p->trial == TRIAL_VERSION && app->conf->agents[p->at].version_command_n == 0)
		p->trial = TRIAL_SET;
	start(app, p);
}

uint64_t proof_due(const struct app *app)
{
	const struct proving *p = app->proving;
	if (p == NULL)
		return 0;
	if (p->probe != NULL)
		return p->deadline;
	return p->at < app->conf->nagents ? p->again : 0;
}
