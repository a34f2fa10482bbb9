/* See pack.h. Tokens exist in clear only here, in a buffer that is wiped, and in the bundle. */
#include "steward/pack.h"
#include "gen/bundle_msg.h"
#include "lib/bridged.h"
#include "lib/chan.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/token.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a profile's words may come to, with the instruction in one of them; the longest path of a bundle. */
enum { WORDS_BYTES = 1000000, PATH_BYTES = 161 };

static void add(int out, const uint8_t *frame, size_t n, bool *ok)
{
	*ok = *ok && n > 0 && bundle_add(out, frame, n);
}

void pack_sources(int out, int upload, bool *ok)
{
	struct bundle b;
	const uint8_t *frame;
	size_t n;
	int got = -1;
	uint16_t number = 0;
	uint64_t op;
	if (!*ok || !bundle_open(&b, upload, BN_MAXFRAME)) {
		*ok = false;
		return;
	}
	while (*ok && (got = bundle_next(&b, &frame, &n)) > 0) {
		bool source = wire_peek(frame, n, &number, &op) &&
			      (number == BN_SOURCE || number == BN_PROGRAM || number == BN_SOURCE_END);
		*ok = source && bundle_add(out, frame, n);
	}
	*ok = *ok && got == 0 && number == BN_SOURCE_END;
	bundle_close(&b);
}

void pack_request(int out, const struct run *r, unsigned gateway_port, bool *ok)
{
	own_buf struct buf text;
	buf_init(&text, REQUEST_BYTES);
	struct request_facts facts = {.run = r->run,
				      .model = r->model,
				      .max_steps = r->max_steps,
				      .wall_seconds = r->wall_seconds,
				      .tool_output_bytes = TOOL_OUTPUT_BYTES,
				      .patch_bytes = JUDGE_PATCH_BYTES,
				      .gateway_port = gateway_port};
	request_write(&text, &r->rq, &facts);
	own_free uint8_t *frame = malloc(BN_MAX_REQUEST);
	if (frame == NULL || buf_failed(&text)) {
		*ok = false;
		return;
	}
	struct bn_request m = {.json = {text.p, (uint32_t)text.n}};
	add(out, frame, bn_put_request(frame, BN_MAX_REQUEST, 0, &m), ok);
}

static bool mint(const struct run *r, const struct secret *key, enum token_audience a, char token[TOKEN_MAX + 1])
{
	return token_mint(key, a, r->run, r->tenant, r->model, (int64_t)(clock_ms() / 1000), token);
}

void pack_tokens(int out, const struct run *r, const struct secret *key, bool *ok)
{
	const char *const files[TOKEN_AUDIENCE__COUNT] = {[TOKEN_MODEL] = r->agent->model_token_file,
							  [TOKEN_EVENTS] = r->agent->event_token_file,
							  [TOKEN_APPROVALS] = r->agent->approval_token_file};
	bool bridged = bridged_words(r->agent->argv, r->agent->argv_n) > 0;
	for (int a = 0; a < (bridged ? TOKEN_EVENTS : TOKEN_AUDIENCE__COUNT) && !r->agent->token_wire; a++) {
		char token[TOKEN_MAX + 1] = "";
		uint8_t frame[BN_MAX_TOKEN];
		*ok = *ok && mint(r, key, (enum token_audience)a, token);
		struct bn_token m = {.file = files[a], .token = {(const uint8_t *)token, (uint32_t)strlen(token)}};
		add(out, frame, bn_put_token(frame, sizeof frame, 0, &m), ok);
		wipe(token, sizeof token);
		wipe(frame, sizeof frame);
	}
}

void pack_bridge(int out, const struct run *r, const struct secret *key, bool *ok)
{
	uint32_t words = bridged_words(r->agent->argv, r->agent->argv_n);
	char events[TOKEN_MAX + 1] = "", approvals[TOKEN_MAX + 1] = "";
	uint8_t frame[BN_MAX_BRIDGE];
	if (words == 0)
		return;
	struct bn_bridge m = {.argv_n = words - 1};
	/* One of more words is told so by the bridge itself. */
	m.argv_n = m.argv_n < sizeof m.argv / sizeof *m.argv ? m.argv_n : sizeof m.argv / sizeof *m.argv;
	memcpy(m.argv, r->agent->argv, sizeof m.argv[0] * m.argv_n);
	*ok = *ok && mint(r, key, TOKEN_EVENTS, events) && mint(r, key, TOKEN_APPROVALS, approvals);
	m.events = (struct wire_bytes){(const uint8_t *)events, (uint32_t)strlen(events)};
	m.approvals = (struct wire_bytes){(const uint8_t *)approvals, (uint32_t)strlen(approvals)};
	add(out, frame, bn_put_bridge(frame, sizeof frame, 0, &m), ok);
	wipe(events, sizeof events);
	wipe(approvals, sizeof approvals);
	wipe(frame, sizeof frame);
}

enum { WORD_BYTES = 9900 }; /* of an environment's word in bundle.msg, with a variable's name before it */

/* {model} {gateway_url} {gateway_root} {run_id} {instruction} in a profile's words; any other brace stays as it is, and
 * none is looked for in what was put in. */
static const char *expand(struct arena *a, const char *text, const struct run *r, unsigned gateway_port)
{
	char url[64], root[64];
	request_gateway_url(url, sizeof url, gateway_port);
	(void)snprintf(root, sizeof root, "%.*s", (int)(strrchr(url, '/') - url), url);
	const struct {
		const char *name, *value;
	} words[] = {{"{model}", r->model},
		     {"{gateway_url}", url},
		     {"{gateway_root}", root},
		     {"{run_id}", r->run},
		     {"{instruction}", r->rq.instruction}};
	own_buf struct buf out;
	buf_init(&out, 200000);
	while (*text != '\0') {
		size_t i = 0, n = sizeof words / sizeof *words;
		while (i < n && strncmp(text, words[i].name, strlen(words[i].name)) != 0)
			i++;
		if (i < n) {
			buf_adds(&out, words[i].value);
			text += strlen(words[i].name);
		} else {
			buf_addc(&out, *text++);
		}
	}
	return buf_failed(&out) ? NULL : arena_dup(a, (const char *)out.p, out.n);
}

void pack_files(int out, const struct run *r, unsigned gateway_port, bool *ok)
{
	for (uint32_t i = 0; i < r->agent->files_n; i++) {
		own_arena struct arena words;
		uint8_t frame[BN_MAX_FILE];
		char path[PATH_BYTES];
		const char *text = strchr(r->agent->files[i], '=');
		arena_init(&words, WORDS_BYTES);
		if (text == NULL ||
		    (size_t)snprintf(path, sizeof path, PACK_HOME "/%.*s", (int)(text - r->agent->files[i]),
				     r->agent->files[i]) >= sizeof path ||
		    (text = expand(&words, text + 1, r, gateway_port)) == NULL) {
			*ok = false;
			return;
		}
		struct bn_file m = {.path = path, .content = {(const uint8_t *)text, (uint32_t)strlen(text)}};
		add(out, frame, bn_put_file(frame, sizeof frame, 0, &m), ok);
	}
}

/* An inline configuration with its {file:NAME} led to where that file lies. Keys are not known here. */
static const char *lead(struct arena *a, const struct cf_agent *agent, const struct conf_key *keys)
{
	own_buf struct buf out;
	const char *text = agent->inline_config;
	buf_init(&out, WORD_BYTES);
	for (struct conf_reference r; (r = conf_reference(text)).at != NULL; text = r.at + r.n) {
		bool key = false;
		for (uint32_t i = 0; i < agent->credentials_n; i++)
			key = key || strcmp(keys[i].variable, r.name) == 0;
		buf_add(&out, text, (size_t)(r.at - text));
		if (r.file)
			buf_addf(&out, "{file:/workspace/%s%s}", key ? CONF_KEY_FILE : "", r.name);
		else
			buf_add(&out, r.at, r.n);
	}
	buf_adds(&out, text);
	return buf_failed(&out) ? NULL : arena_dup(a, (const char *)out.p, out.n);
}

/* NAME=text of the inline configuration; NULL: no memory, or it has grown too long. */
static const char *inline_config(struct arena *a, const struct run *r, unsigned gateway_port)
{
	struct conf_key keys[CONF_KEYS];
	if (conf_keys(r->agent, keys) != NULL)
		return NULL;
	const char *text = lead(a, r->agent, keys);
	text = text != NULL ? expand(a, text, r, gateway_port) : NULL;
	return text != NULL ? arena_printf(a, "%s=%s", r->agent->inline_variable, text) : NULL;
}

void pack_keys(int out, const struct cf_agent *agent, const struct pack_key *made_up, bool plain, bool *ok)
{
	struct conf_key keys[CONF_KEYS];
	*ok = *ok && conf_keys(agent, keys) == NULL;
	for (uint32_t i = 0; *ok && i < agent->credentials_n; i++) {
		uint8_t frame[BN_MAX_CREDENTIAL];
		char file[sizeof CONF_KEY_FILE + sizeof keys[i].variable];
		snprintf(file, sizeof file, CONF_KEY_FILE "%.64s", keys[i].variable);
		struct bn_credential m = {.secret = keys[i].secret,
					  .variable = keys[i].file ? "" : keys[i].variable,
					  .file = keys[i].file ? file : "",
					  .plain = plain};
		if (made_up != NULL) {
			m.made_up = made_up->unset ? 2 : 1;
			m.value = made_up->value;
		}
		add(out, frame, bn_put_credential(frame, sizeof frame, 0, &m), ok);
	}
}

void pack_agent(int out, const struct run *r, unsigned gateway_port, bool *ok)
{
	own_arena struct arena words;
	own_free uint8_t *frame = malloc(BN_MAX_AGENT);
	arena_init(&words, WORDS_BYTES);
	uint32_t before = bridged_words(r->agent->argv, r->agent->argv_n);
	struct bn_agent m = {.argv_n = r->agent->argv_n - before,
			     .env_n = r->agent->env_n,
			     .wall_seconds = r->wall_seconds,
			     .output_bytes = r->agent->output_bytes < 1000000 ? r->agent->output_bytes : 1000000,
			     .cpu_seconds = r->agent->cpu_seconds,
			     .file_bytes = r->agent->file_bytes,
			     .open_files = r->agent->open_files};
	for (uint32_t i = 0; i < m.argv_n; i++)
		*ok = (m.argv[i] = expand(&words, r->agent->argv[before + i], r, gateway_port)) != NULL && *ok;
	for (uint32_t i = 0; i < m.env_n; i++)
		*ok = (m.env[i] = expand(&words, r->agent->env[i], r, gateway_port)) != NULL && *ok;
	if (*ok && r->agent->inline_variable[0] != '\0')
		*ok = (m.env[m.env_n++] = inline_config(&words, r, gateway_port)) != NULL;
	if (frame != NULL && *ok)
		add(out, frame, bn_put_agent(frame, BN_MAX_AGENT, 0, &m), ok);
	else
		*ok = false;
}

static void pack_change(int out, const struct bn_change *c, bool *ok)
{
	size_t room = c->content.n + 1000;
	own_free uint8_t *frame = malloc(room);
	if (frame == NULL) {
		*ok = false;
	} else if (c->how == CHANGE_REMOVED) {
		struct bn_removed m = {.path = c->path};
		add(out, frame, bn_put_removed(frame, room, 0, &m), ok);
	} else {
		struct bn_changed m = {.path = c->path, .executable = c->executable, .content = c->content};
		add(out, frame, bn_put_changed(frame, room, 0, &m), ok);
	}
}

/* Only what was checked into r->changes is taken: the frames' memfd is sealed, so they are still those. */
static void pack_pass(int out, const struct run *r, bool removed, bool *ok)
{
	struct bundle b;
	const uint8_t *frame;
	size_t n;
	uint32_t count = 0;
	uint16_t number;
	uint64_t op;
	struct bn_change c;
	if (!*ok || !bundle_open(&b, r->judge.out, BN_MAXFRAME)) {
		*ok = false;
		return;
	}
	while (*ok && bundle_next(&b, &frame, &n) > 0) {
		if (!wire_peek(frame, n, &number, &op) || number != BN_CHANGE)
			continue;
		*ok = bn_get_change(frame, n, &c) && count < r->nchanges && strcmp(c.path, r->changes[count].path) == 0;
		count++;
		if (*ok && (c.how == CHANGE_REMOVED) == removed)
			pack_change(out, &c, ok);
	}
	*ok = *ok && count == r->nchanges;
	bundle_close(&b);
}

void pack_changes(int out, const struct run *r, bool *ok)
{
	/* Removals first: a file may have become a folder. */
	pack_pass(out, r, true, ok);
	pack_pass(out, r, false, ok);
}

void pack_check(int out, const struct request_check *c, const struct cf_agent *agent, uint32_t seconds, bool *ok)
{
	uint8_t frame[BN_MAX_CHECK];
	struct bn_check m = {.name = c->name,
			     .argv_n = c->argc,
			     .seconds = seconds,
			     .output_bytes = TOOL_OUTPUT_BYTES,
			     .cpu_seconds = agent->cpu_seconds,
			     .file_bytes = agent->file_bytes,
			     .open_files = agent->open_files};
	memcpy(m.argv, c->argv, sizeof c->argv);
	add(out, frame, bn_put_check(frame, sizeof frame, 0, &m), ok);
}

void pack_go(int out, const struct run *r, enum box_kind kind, bool *ok)
{
	uint8_t frame[BN_MAX_GO];
	/* Twice: of each file there may be a compiled one. */
	struct bn_go m = {.kind = (uint8_t)kind,
			  .max_files = COLLECT_FILES + 2 * r->source_files,
			  .max_bytes = COLLECT_BYTES + 2 * r->source_bytes,
			  .max_file_bytes = r->archive ? LIMIT_SOURCE_FILE_BYTES : COLLECT_FILE_BYTES};
	add(out, frame, bn_put_go(frame, sizeof frame, 0, &m), ok);
}
