/*
 * GET /v1/limits as promised.tab has it: the real handler's answer, where every setting has a value of its own, holds
 * exactly the limits that are promised, from exactly those places.
 */
#include "gen/routes.h"
#include "handlers/reply.h"
#include "handlers/request.h"
#include "lib/wire.h"
#include "tests/unit/promised.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETTINGS = 100, FRAME = 65536 };

static unsigned passed, failed;
static struct setting {
	char place[16], name[64];
	int64_t value;
} settings[SETTINGS];
static size_t nsettings;
static struct buf said;

static void check(bool ok, const char *group, const char *name, int64_t got)
{
	passed += ok, failed += !ok;
	if (!ok)
		printf("FAIL %s.%s: %" PRId64 "\n", group, name, got);
}

/* A message of the configuration in which each number is another one, remembered under its name. */
static size_t frame(uint8_t *p, const char *message, const char *place)
{
	unsigned number = 0, version = 0;
	struct wire_w w = {0};
	size_t at = 0;
	for (char *line; (line = promised_next(&at, "conf")) != NULL;) {
		char *has = strstr(line, " has ");
		if (has == NULL)
			version = (unsigned)strtoul(line + strlen("is version "), NULL, 10);
		if (strncmp(line, message, strlen(message)) != 0 || line[strlen(message)] != ' ')
			continue;
		if (number == 0) {
			number = (unsigned)strtoul(line + strlen(message), NULL, 10);
			w = wire_begin(p, FRAME, (uint16_t)number, (uint8_t)version, 0, 0);
		}
		has += strlen(" has ");
		char *type = promised_word(&has), *name = promised_word(&has);
		int64_t value = 1000 + (int64_t)nsettings;
		if (strcmp(type, "u64") == 0)
			wire_put_u64(&w, (uint64_t)value);
		else if (strcmp(type, "u32") == 0)
			wire_put_u32(&w, (uint32_t)value);
		else if (strcmp(type, "u16") == 0)
			wire_put_u16(&w, (uint16_t)value);
		else if (strcmp(type, "u8") == 0)
			wire_put_u8(&w, 0);
		else if (strcmp(type, "bool") == 0)
			wire_put_bool(&w, false);
		else if (strcmp(type, "strs") == 0)
			wire_put_u32(&w, 0);
		else
			wire_put_str(&w, "name", 4);
		snprintf(settings[nsettings].place, sizeof settings[0].place, "%s", place);
		snprintf(settings[nsettings].name, sizeof settings[0].name, "%s", name);
		settings[nsettings].value = value;
		if (++nsettings == SETTINGS)
			exit(1);
	}
	return wire_end(&w);
}

static bool head(void *ctx, const struct reply_head *h)
{
	(void)ctx;
	return h->status == 200;
}

static bool body(void *ctx, const void *p, size_t n)
{
	(void)ctx;
	buf_add(&said, p, n);
	return true;
}

static int64_t want(const char *value, const char *field)
{
	for (size_t i = 0; i < nsettings; i++)
		if (strcmp(settings[i].place, value) == 0 && strcmp(settings[i].name, field) == 0)
			return settings[i].value;
	return field[0] == '\0' ? strtoll(value, NULL, 10) : -1;
}

static void answer(void)
{
	static uint8_t global[FRAME], tenant[FRAME], agent[FRAME];
	static struct conf_tenant t;
	static struct cf_agent a;
	static struct conf conf = {.tenants = &t, .ntenants = 1, .agents = &a, .nagents = 1};
	size_t n = frame(global, "GLOBAL", "global");
	check(cf_get_global(global, n, &conf.global), "conf", "GLOBAL", (int64_t)n);
	n = frame(tenant, "TENANT", "tenant");
	check(cf_get_tenant(tenant, n, &t.t), "conf", "TENANT", (int64_t)n);
	n = frame(agent, "AGENT", "agent");
	check(cf_get_agent(agent, n, &a), "conf", "AGENT", (int64_t)n);
	struct app app = {.conf = &conf};
	struct arrival in = {.query = "", .path = "/v1/limits", .method = "GET"};
	struct request rq = {.app = &app, .conf = &conf, .in = &in, .tenant = &t};
	struct reply rp;
	reply_init(&rp, (struct reply_out){.head = head, .body = body}, "r-1");
	handle_limits(&rq, &rp);
}

int main(void)
{
	own_arena struct arena arena;
	size_t at = 0, promises = 0, shown = 0;
	arena_init(&arena, 1 << 20);
	buf_init(&said, 1 << 20);
	answer();
	struct json *all = json_parse(&arena, (const char *)said.p, said.n, JSON_DEPTH, 10000, NULL);
	if (all == NULL) {
		puts("FAIL no JSON");
		return 1;
	}
	for (char *line; (line = promised_next(&at, "limit")) != NULL; promises++) {
		char *group = promised_word(&line), *name = promised_word(&line), *value = promised_word(&line);
		const struct json *g = json_get(all, group), *v = g != NULL ? json_get(g, name) : NULL;
		int64_t got = -2;
		check(v != NULL && json_int(v, 0, INT64_MAX, &got) && got == want(value, line), group, name, got);
	}
	for (const struct json *g = all->child; g != NULL; g = g->next)
		for (const struct json *v = g->type == JSON_OBJECT ? g->child : NULL; v != NULL; v = v->next)
			shown++;
	check(shown == promises && promises > 0, "limits", "in all", (int64_t)shown);
	buf_free(&said);
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
