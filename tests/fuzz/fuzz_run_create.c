/*
 * Any bytes as the body of POST /v1/runs: what is accepted keeps the rules, and makes a summary that parses
 * again.
 */
#include "handlers/canon_run.h"
#include "lib/buf.h"
#include "lib/path.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct cf_profile profile = {.name = "default", .provider = "p", .model = "m"};
static struct cf_agent agent = {.name = "builtin", .extra_requests = 2};
static struct cf_provider provider = {.name = "p"};
static struct conf_tenant tenant = {.t = {.name = "main",
					  .default_agent = "builtin",
					  .default_profile = "default",
					  .extensions_n = 2,
					  .extensions = {".py", ".md"},
					  .max_steps = 20,
					  .max_wall_seconds = 220},
				    .checks = {{.tenant = "main", .argv_n = 1, .argv = {"make"}}},
				    .nchecks = 1};

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void check(const struct canon_run *run)
{
	size_t total = 0;
	must(run->profile == &profile && run->agent == &agent);
	must(run->instruction_n > 0 && utf8_count(run->instruction, run->instruction_n) <= CANON_INSTRUCTION);
	must(run->nfiles <= CANON_FILES && (run->nfiles == 0) == (run->source != NULL));
	must(run->source == NULL || (strlen(run->source) == 64 && strspn(run->source, "0123456789abcdef") == 64));
	must(run->nallowed >= 1 && run->nallowed <= CANON_ALLOWED);
	for (uint32_t i = 0; i < run->nfiles; i++) {
		char ext[PATH_MAX_CHARS + 1];
		const char *path = run->files[i].path;
		must(path_valid(path, strlen(path)) && run->files[i].n <= CANON_FILE_BYTES);
		path_extension(path, ext, sizeof ext);
		must(strcmp(ext, ".py") == 0 || strcmp(ext, ".md") == 0);
		for (uint32_t j = 0; j < i; j++)
			must(strcmp(run->files[j].path, path) != 0 && !path_conflict(run->files[j].path, path));
		total += run->files[i].n;
	}
	must(total <= CANON_TREE_BYTES);
	for (uint32_t i = 0; i < run->nallowed; i++) {
		bool covers = run->source != NULL; /* what is in it is not known here */
		must(path_allow_valid(run->allowed[i], strlen(run->allowed[i])));
		for (uint32_t j = 0; j < run->nfiles; j++)
			covers = covers || path_allow_covers(run->allowed[i], run->files[j].path);
		must(covers);
	}
	must(run->nchecks == 1 && run->checks[0] == &tenant.checks[0]);
	must(run->max_steps >= 1 && run->max_steps <= 20 && run->wall_seconds >= 1 && run->wall_seconds <= 220);
	must(run->approval_wait_seconds <= 86400 && run->max_requests == run->max_steps + agent.extra_requests);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct conf conf;
	static struct canon_run run;
	char field[CANON_FIELD];
	conf.tenants = &tenant;
	conf.profiles = &profile;
	conf.agents = &agent;
	conf.providers = &provider;
	conf.ntenants = conf.nprofiles = conf.nagents = conf.nproviders = 1;
	struct arena a;
	arena_init(&a, 16 << 20);
	const struct json *body = json_parse(&a, data, size, JSON_DEPTH, 20000, NULL);
	if (body != NULL && body->type == JSON_OBJECT && canon_run(&conf, &tenant, body, &run, field) == ERR_OK) {
		struct buf b;
		check(&run);
		buf_init(&b, 1 << 20);
		canon_run_summary(&run, &b);
		if (buf_failed(&b) || json_parse(&a, b.p, b.n, JSON_DEPTH, 20000, NULL) == NULL)
			abort();
		buf_free(&b);
	}
	arena_free(&a);
	return 0;
}
