/* Any bytes as the body of POST /v1/runs: what is accepted makes a summary that parses again. */
#include "handlers/canon_run.h"
#include "lib/buf.h"
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
		buf_init(&b, 1 << 20);
		canon_run_summary(&run, &b);
		if (buf_failed(&b) || json_parse(&a, b.p, b.n, JSON_DEPTH, 20000, NULL) == NULL)
			abort();
		buf_free(&b);
	}
	arena_free(&a);
	return 0;
}
