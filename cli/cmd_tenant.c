/*
 * pinfold tenant list|show: the tenants of the configuration, what each may and what it has used. Over the admin
 * socket; no secret is there to be shown.
 */
#include <string.h>

#include "cli/admin.h"
#include "cli/cli.h"
#include "gen/store_msg.h"
#include "lib/num.h"

/* All steps of one tenant, added up. */
static enum err used_of(struct ask *a, const char *tenant, struct st_tenant_used *sum)
{
	struct st_tenant_use m = {.tenant = tenant, .before_run = ""};
	char next[129] = "";

	memset(sum, 0, sizeof *sum);
	for (bool more = true; more;) {
		struct st_tenant_used got;
		enum err e = st_call_tenant_use(a, &m, NULL, &got, NULL);
		if (e != ERR_OK)
			return e;
		if (m.before_created == 0)
			*sum = got;
		else {
			sum->queued += got.queued;
			sum->running += got.running;
			sum->completed += got.completed;
			sum->failed += got.failed;
			sum->cancelled += got.cancelled;
		}
		more = got.more;
		snprintf(next, sizeof next, "%s", got.next_run);
		m.before_created = got.next_created;
		m.before_run = next;
	}
	return ERR_OK;
}

/* What is limited: its name here, the setting's, how much there may be (0: any), how much there is. */
struct quota {
	const char *name, *setting;
	uint64_t most, used;
	bool counted; /* else only the limit is known here */
};
enum { QUOTAS = 14 };

static void quotas(struct quota q[QUOTAS], const struct cf_tenant *t, const struct st_tenant_used *u)
{
	const struct quota rows[QUOTAS] = {
	    {"concurrentRuns", "max_concurrent_runs", t->max_concurrent_runs, u->running, true},
	    {"queuedRuns", "max_queued_runs", t->max_queued_runs, u->queued, true},
	    {"runsHour", "max_runs_hour", t->max_runs_hour, u->runs_hour, true},
	    {"storedBytes", "max_stored_mb", t->max_stored_bytes, u->stored_bytes, true},
	    {"modelRequestsDay", "max_model_requests_day", t->max_model_requests_day, u->requests_day, true},
	    {"tokensDay", "max_tokens_day", t->max_tokens_day, u->tokens_day, true},
	    {"modelCalls", "max_model_calls", t->max_model_calls, 0, false},
	    {"modelCallsRun", "max_model_calls_run", t->max_model_calls_run, 0, false},
	    {"tokensRun", "max_tokens_run", t->max_tokens_run, 0, false},
	    {"modelCallsMinute", "max_model_calls_minute", t->max_model_calls_minute, 0, false},
	    {"openStreams", "max_streams", t->max_streams, 0, false},
	    {"maxApprovalWaitSeconds", "max_approval_wait_seconds", t->max_approval_wait_seconds, 0, false},
	    {"maxSteps", "max_steps", t->max_steps, 0, false},
	    {"maxWallTimeSeconds", "max_wall_seconds", t->max_wall_seconds, 0, false}};

	memcpy(q, rows, sizeof rows);
}

static void json_list(struct jw *w, const char *key, const char *first, const char *const *v, uint32_t n)
{
	jw_key(w, key);
	jw_open(w, '[');
	if (first != NULL)
		jw_str(w, first);
	for (uint32_t i = 0; i < n; i++)
		if (first == NULL || strcmp(v[i], first) != 0)
			jw_str(w, v[i]);
	jw_close(w, ']');
}

static void json_one(const struct conf_tenant *t, const struct st_tenant_used *u)
{
	own_buf struct buf b;
	struct quota q[QUOTAS];
	struct jw w;

	quotas(q, &t->t, u);
	buf_init(&b, 1 << 18);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "tenant", t->t.name);
	jw_key(&w, "known");
	jw_bool(&w, u->known);
	jw_kstr(&w, "agent", t->t.default_agent);
	jw_kstr(&w, "modelProfile", t->t.default_profile);
	/* Empty: all that there are. */
	json_list(&w, "agents", t->t.agents_n > 0 ? t->t.default_agent : NULL, t->t.agents, t->t.agents_n);
	json_list(&w, "modelProfiles", t->t.profiles_n > 0 ? t->t.default_profile : NULL, t->t.profiles,
		  t->t.profiles_n);
	json_list(&w, "extensions", NULL, t->t.extensions, t->t.extensions_n);
	jw_key(&w, "checks");
	jw_open(&w, '[');
	for (uint32_t i = 0; i < t->nchecks; i++) {
		jw_open(&w, '[');
		for (uint32_t k = 0; k < t->checks[i].argv_n; k++)
			jw_str(&w, t->checks[i].argv[k]);
		jw_close(&w, ']');
	}
	jw_close(&w, ']');
	jw_kint(&w, "tokens", u->tokens);
	jw_kint(&w, "devices", u->devices);
	jw_key(&w, "runs");
	jw_open(&w, '{');
	jw_kint(&w, "queued", u->queued);
	jw_kint(&w, "running", u->running);
	jw_kint(&w, "completed", u->completed);
	jw_kint(&w, "failed", u->failed);
	jw_kint(&w, "cancelled", u->cancelled);
	jw_close(&w, '}');
	jw_key(&w, "quotas");
	jw_open(&w, '{');
	for (size_t i = 0; i < QUOTAS; i++) {
		jw_key(&w, q[i].name);
		jw_open(&w, '{');
		jw_kint(&w, "most", (int64_t)q[i].most);
		if (q[i].counted)
			jw_kint(&w, "used", (int64_t)q[i].used);
		jw_close(&w, '}');
	}
	jw_close(&w, '}');
	jw_close(&w, '}');
	if (!buf_failed(&b))
		say_json((const char *)b.p, b.n);
}

static void cell(size_t width, uint64_t used, uint64_t most)
{
	char text[64];

	if (most > 0)
		snprintf(text, sizeof text, "%llu/%llu", (unsigned long long)used, (unsigned long long)most);
	else
		snprintf(text, sizeof text, "%llu", (unsigned long long)used);
	printf(" %-*s", (int)width, text);
}

static void text_head(void)
{
	printf("%-20s %-9s %-11s %-16s %-11s %-16s %-14s %-7s %s\n", "TENANT", "RUNNING", "QUEUED", "ENDED",
	       "RUNS/HOUR", "MODEL CALLS/DAY", "STORED MB", "TOKENS", "DEVICES");
}

static void text_one(const struct cf_tenant *t, const struct st_tenant_used *u)
{
	say_cell(t->name, 20);
	cell(9, u->running, t->max_concurrent_runs);
	cell(11, u->queued, t->max_queued_runs);
	cell(16, (uint64_t)u->completed + u->failed + u->cancelled, 0);
	cell(11, u->runs_hour, t->max_runs_hour);
	cell(16, u->requests_day, t->max_model_requests_day);
	cell(14, u->stored_bytes / 1000000, t->max_stored_bytes / 1000000);
	printf(" %-7u %u\n", u->tokens, u->devices);
}

static void text_words(const char *name, const char *const *v, uint32_t n)
{
	printf("%-26s", name);
	for (uint32_t i = 0; i < n; i++) {
		putchar(' ');
		say_foreign(stdout, v[i], strlen(v[i]));
	}
	putchar('\n');
}

static void text_whole(const struct conf_tenant *t, const struct st_tenant_used *u)
{
	struct quota q[QUOTAS];
	const char *all[] = {"all"};

	quotas(q, &t->t, u);
	text_words("tenant", &t->t.name, 1);
	if (!u->known)
		puts("                           has no token yet: pinfold token create --tenant NAME");
	text_words("agent", &t->t.default_agent, 1);
	text_words("model_profile", &t->t.default_profile, 1);
	text_words("agents", t->t.agents_n > 0 ? t->t.agents : all, t->t.agents_n > 0 ? t->t.agents_n : 1);
	text_words("model_profiles", t->t.profiles_n > 0 ? t->t.profiles : all,
		   t->t.profiles_n > 0 ? t->t.profiles_n : 1);
	text_words("extensions", t->t.extensions, t->t.extensions_n);
	for (uint32_t i = 0; i < t->nchecks; i++)
		text_words(i == 0 ? "check" : "", t->checks[i].argv, t->checks[i].argv_n);
	printf("%-26s %u good tokens, %u devices\n", "principals", u->tokens, u->devices);
	printf("%-26s %u queued, %u running, %u completed, %u failed, %u cancelled\n", "runs", u->queued, u->running,
	       u->completed, u->failed, u->cancelled);
	for (size_t i = 0; i < QUOTAS; i++) {
		printf("%-26s", q[i].setting);
		if (strcmp(q[i].setting, "max_stored_mb") == 0 && q[i].most > 0) {
			printf(" %.1f of %llu MB\n", (double)q[i].used / 1e6, (unsigned long long)q[i].most / 1000000);
			continue;
		}
		if (q[i].counted)
			printf(" %llu of", (unsigned long long)q[i].used);
		if (q[i].most > 0)
			printf(" %llu\n", (unsigned long long)q[i].most);
		else
			puts(" any number");
	}
}

int cmd_tenant(struct cli *cli, int argc, char **argv)
{
	static struct conf conf;
	const char *what = argc > 1 ? argv[1] : "", *name = NULL;
	bool show = strcmp(what, "show") == 0;
	enum err e = ERR_OK;

	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0)
			cli->json = true;
		else if (show && name == NULL && argv[i][0] != '-')
			name = argv[i];
		else
			return usage("tenant %s does not take %s", what, argv[i]);
	}
	if (show != (name != NULL) || (!show && strcmp(what, "list") != 0))
		return usage("tenant list, or tenant show NAME");
	if (!admin_configuration(&conf))
		return EXIT_FAILED;
	if (show && conf_tenant(&conf, name) == NULL) {
		say_wrong(name, "no such tenant in the configuration");
		conf_free(&conf);
		return EXIT_FAILED;
	}
	struct ask *a = admin_open();
	if (!show && !cli->json)
		text_head();
	for (uint32_t i = 0; i < conf.ntenants && e == ERR_OK; i++) {
		const struct conf_tenant *t = &conf.tenants[i];
		struct st_tenant_used u;
		if (show && strcmp(t->t.name, name) != 0)
			continue;
		e = used_of(a, t->t.name, &u);
		if (e != ERR_OK)
			break;
		if (cli->json)
			json_one(t, &u);
		else if (show)
			text_whole(t, &u);
		else
			text_one(&t->t, &u);
	}
	conf_free(&conf);
	if (e != ERR_OK)
		return admin_failed(a, e);
	ask_free(a);
	return ferror(stdout) ? EXIT_FAILED : 0;
}
