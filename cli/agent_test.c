/*
 * The test itself: a run of the test's own tenant, over the public API, as anybody's is. The agent is to mend a shell
 * script by the one command that the scripted model has it run. What comes back from the box is foreign, and only
 * compared; what an agent printed is shown where it failed, a line at a time.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/admin.h"
#include "cli/agent_test.h"
#include "lib/conf.h"
#include "lib/num.h"
#include "lib/own.h"

enum { SEEN_MAX = 12, DETAIL = 300, PAUSE_US = 100000, WALL_SECONDS = 200, PATIENCE_MS = 600000, SHOWN_LINES = 12 };

static const char broken[] = "# Prints the sum of two numbers.\necho $(($1 - $2))\n",
		  mend[] =
		      "# What the model has the agent run: it mends sum.sh, and looks whether anything that it can "
		      "read\n# holds the key, which the gateway alone should have.\n"
		      "sed 's/ - / + /' sum.sh >sum.new && cat sum.new >sum.sh\nrm sum.new\n"
		      "if grep -rlsE '" STAGE_KEY_PATTERN "' /proc/[0-9]*/environ /proc/[0-9]*/cmdline "
		      "/workspace /tmp >/dev/null 2>&1; then echo yes >key-found.txt; fi\n",
		  test[] = "# Fails unless sum.sh adds.\ntest \"$(sh sum.sh 20 22)\" = 42\n";

struct seen {
	const char *id, *remedy;
	bool ok;
	char detail[DETAIL];
};

struct trial {
	struct cli *cli;
	struct stage stage;
	const struct cf_agent *agent;
	char run[129];
	struct arena arena;
	const struct json *end; /* the run's snapshot; NULL: it did not end */
	struct seen seen[SEEN_MAX];
	size_t nseen;
	/* of the model's own log */
	unsigned calls, keyed, streamed;
	int64_t in, out;
	char path[128];
};

static volatile sig_atomic_t stopped; /* by a signal: what was made is taken away all the same */

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

static void saw(struct trial *t, const char *id, bool ok, const char *remedy, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
static void saw(struct trial *t, const char *id, bool ok, const char *remedy, const char *fmt, ...)
{
	struct seen *s = &t->seen[t->nseen++];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->detail, sizeof s->detail, fmt, ap);
	va_end(ap);
	s->id = id;
	s->ok = ok;
	s->remedy = remedy;
}

/* The HTTP status, or -1 after saying why; the answer is the caller's to free unless -1. */
static long call(struct trial *t, const char *method, const char *path, const char *body, struct http_answer *answer)
{
	return http_raw(t->cli, &t->stage.token, method, path, body, answer) == 0 ? answer->status : -1;
}

static long call_run(struct trial *t, const char *method, const char *tail, const char *body,
		     struct http_answer *answer)
{
	char path[300];
	snprintf(path, sizeof path, "/v1/runs/%s%s", t->run, tail);
	return call(t, method, path, body, answer);
}

static void put_file(struct jw *w, const char *path, const char *content)
{
	jw_open(w, '{');
	jw_kstr(w, "path", path);
	jw_kstr(w, "content", content);
	jw_close(w, '}');
}

static bool start(struct trial *t)
{
	static const char *const allowed[] = {"sum.sh", "key-found.txt"}, *const check[] = {"sh", "test.sh"};
	own_buf struct buf b;
	struct http_answer answer;
	struct jw w;

	buf_init(&b, 1 << 16);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "instruction", "Mend sum.sh so that test.sh passes.");
	jw_kstr(&w, "agent", t->agent->name);
	jw_key(&w, "files");
	jw_open(&w, '[');
	put_file(&w, "sum.sh", broken);
	put_file(&w, "test.sh", test);
	put_file(&w, "mend.sh", mend);
	put_file(&w, "key-found.txt", "no\n");
	jw_close(&w, ']');
	jw_kstrs(&w, "allowedPaths", allowed, 2);
	jw_key(&w, "checks");
	jw_open(&w, '[');
	jw_kstrs(&w, NULL, check, 2);
	jw_close(&w, ']');
	jw_key(&w, "limits");
	jw_open(&w, '{');
	jw_kint(&w, "wallTimeSeconds", WALL_SECONDS);
	jw_kint(&w, "approvalWaitSeconds", 1);
	jw_close(&w, '}');
	jw_close(&w, '}');
	long status = buf_failed(&b) ? -1 : call(t, NULL, "/v1/runs", buf_cstr(&b), &answer);
	if (status < 0)
		return false;
	const struct json *v = json_parse(&t->arena, answer.body.p, answer.body.n, JSON_DEPTH, 1000, NULL);
	if (status == 202 && id_valid(member(v, "runId")))
		snprintf(t->run, sizeof t->run, "%s", member(v, "runId"));
	else {
		fprintf(stderr, "pinfold: the run of the test is refused: %ld ", status);
		say_foreign(stderr, member(v, "error"), strlen(member(v, "error")));
		fputs(" (docs/errors.md); \"pinfold doctor\" says what is wrong with the service\n", stderr);
	}
	buf_free(&answer.body);
	return *t->run != '\0';
}

/* Until it has ended, or somebody has had enough. */
static void attend(struct trial *t)
{
	uint64_t until = timer_ms() + PATIENCE_MS;
	bool terminal = isatty(STDERR_FILENO) == 1;
	char phase[40] = "";

	while (t->end == NULL && !stopped && timer_ms() < until) {
		struct http_answer answer;
		own_arena struct arena a;
		arena_init(&a, 1 << 24);
		if (call_run(t, NULL, "", NULL, &answer) < 0)
			return;
		const struct json *v = json_parse(&a, answer.body.p, answer.body.n, JSON_DEPTH, 100000, NULL);
		if (is_terminal(member(v, "status")))
			t->end = json_parse(&t->arena, answer.body.p, answer.body.n, JSON_DEPTH, 100000, NULL);
		if (terminal && strcmp(phase, member(v, "phase")) != 0) {
			snprintf(phase, sizeof phase, "%s", member(v, "phase"));
			fputs("\r\033[K", stderr);
			say_foreign(stderr, phase, strlen(phase));
		}
		buf_free(&answer.body);
		usleep(PAUSE_US);
	}
	if (terminal)
		fputs("\r\033[K", stderr);
}

static int64_t number(const struct json *o, const char *key)
{
	int64_t n = 0;
	json_int(json_get(o, key), 0, INT64_MAX, &n);
	return n;
}

static bool yes(const struct json *o, const char *key)
{
	const struct json *v = json_get(o, key);
	return v != NULL && v->type == JSON_BOOL && v->truth;
}

/* What the model was asked, by its own log. */
static void read_log(struct trial *t)
{
	size_t n;
	own_free char *text = stage_log(&t->stage, &n);

	for (char *line = text, *stop; line != NULL && (stop = strchr(line, '\n')) != NULL; line = stop + 1) {
		own_arena struct arena a;
		arena_init(&a, 64 << 20);
		const struct json *v = json_parse(&a, line, (size_t)(stop - line), JSON_DEPTH, 1000, NULL);
		const struct json *usage = json_get(v, "usage");
		if (strcmp(member(v, "method"), "POST") != 0)
			continue;
		t->calls++;
		t->keyed += yes(v, "key_match");
		t->in += number(usage, "prompt");
		t->out += number(usage, "completion");
		own_arena struct arena b;
		arena_init(&b, 64 << 20);
		const char *body = member(v, "body");
		const struct json *asked = json_parse(&b, body, strlen(body), JSON_DEPTH_MODEL, 200000, NULL);
		t->streamed += yes(asked, "stream") || strstr(member(v, "path"), ":streamGenerateContent") != NULL;
		snprintf(t->path, sizeof t->path, "%s", member(v, "path"));
	}
}

/* In how much of what the run left the key is. */
static unsigned sweep(struct trial *t)
{
	static const char *const left[] = {"",
					   "/events",
					   "/artifacts/request",
					   "/artifacts/events",
					   "/artifacts/checkpoint",
					   "/artifacts/patch",
					   "/artifacts/test_log",
					   "/artifacts/result",
					   "/artifacts/transcript"};
	unsigned found = 0;

	for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
		struct http_answer answer;
		if (call_run(t, NULL, left[i], NULL, &answer) < 0)
			continue;
		found += answer.body.n > 0 &&
			 memmem(answer.body.p, answer.body.n, t->stage.key, strlen(t->stage.key)) != NULL;
		buf_free(&answer.body);
	}
	return found;
}

static void judge(struct trial *t)
{
	const struct json *v = t->end, *usage = json_get(v, "usage"), *execution = json_get(v, "execution"),
			  *changed = json_get(v, "changedFiles"), *checks = json_get(v, "verification");
	const struct json *first = changed ? changed->child : NULL, *decided = json_get(v, "approvalDecisions");
	bool asks = decided && decided->child, mended = first && !first->next && strcmp(first->text, "sum.sh") == 0;
	bool dirty = false, same = strcmp(member(v, "status"), member(v, "terminalReason")) == 0;
	int64_t calls = number(usage, "modelRequests"), in = number(usage, "promptTokens"),
		out = number(usage, "completionTokens");

	read_log(t);
	for (; first; first = first->next)
		dirty = dirty || strcmp(first->text, "key-found.txt") == 0;
	saw(t, "run", strcmp(member(v, "status"), "completed") == 0,
	    asks                ? "it asks people, and nobody answers here: test the profile that does not ask"
	    : execution == NULL ? "sudo pinfold doctor: it did not come to its agent"
	    : t->calls == 0     ? "it never asked its model: what it printed is below; compare profiles.d with "
				  "/usr/share/pinfold/agents"
				: "what it printed is below, and what is wrong with the rows below this one",
	    "%.40s%s%.60s%s%.60s", member(v, "status"), same ? "" : " ", same ? "" : member(v, "terminalReason"),
	    *member(v, "error") != '\0' ? " " : "", member(v, "error"));
	saw(t, "exit", yes(execution, "success"), "what it printed is below", "%lld, its own word",
	    (long long)number(execution, "exitCode"));
	saw(t, "patch", mended,
	    "it did not run the command that the model named, or changed more; of tools for commands the model knows "
	    "those that pinfold(1) names",
	    "%s",
	    mended                      ? "sum.sh alone"
	    : changed && changed->child ? "other files"
					: "nothing changed");
	saw(t, "check", checks && checks->child && yes(checks->child, "ok"), "it follows from the patch",
	    "sh test.sh: %.20s", checks && checks->child ? member(checks->child, "outcome") : "not run");
	saw(t, "calls", calls > 0 && calls == t->calls,
	    "a profile's base URL must be {gateway_url} or {gateway_root}; its model_format must be its agent's",
	    "%lld by the run, %u by the model, %u of them streams, %s", (long long)calls, t->calls, t->streamed,
	    t->calls > 0 ? t->path : "none");
	saw(t, "tokens", in == t->in && out == t->out, "report this: what a run is charged must be what it used",
	    "%lld in and %lld out by the run, %lld and %lld by the model", (long long)in, (long long)out,
	    (long long)t->in, (long long)t->out);
	saw(t, "key shown", t->calls > 0 && t->keyed == t->calls,
	    t->calls > 0 ? "report this: the gateway alone adds the key" : "it follows from the calls",
	    "to the model in %u of %u calls", t->keyed, t->calls);
	unsigned found = sweep(t);
	saw(t, "key nowhere", found == 0 && !dirty, "report this: no key may be in a box, or in what comes from it",
	    "%s%s", dirty ? "it is in the box; " : "not in the box; ",
	    found > 0 ? "it is in what the run left" : "not in events, artifacts and result");
}

/* The end of what the agent printed. */
static void show_transcript(struct trial *t)
{
	struct http_answer answer;

	if (call_run(t, NULL, "/artifacts/transcript", NULL, &answer) < 0)
		return;
	if (answer.status == 200) {
		size_t from = answer.body.n, lines = 0;
		while (from > 0 && lines <= SHOWN_LINES)
			lines += answer.body.p[--from] == '\n';
		fputs("What it printed ends so:\n", stderr);
		say_lines(stderr, "  ", "  ", (const char *)answer.body.p + from, answer.body.n - from);
	}
	buf_free(&answer.body);
}

static bool told(struct trial *t)
{
	own_buf struct buf b;
	bool ok = t->nseen > 0;
	struct jw w;

	buf_init(&b, 1 << 16);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "agent", t->agent->name);
	jw_key(&w, "seen");
	jw_open(&w, '[');
	for (size_t i = 0; i < t->nseen; i++) {
		const struct seen *s = &t->seen[i];
		ok = ok && s->ok;
		jw_open(&w, '{');
		jw_kstr(&w, "id", s->id);
		jw_kbool(&w, "ok", s->ok);
		jw_kstr(&w, "detail", s->detail);
		if (s->ok) {
			jw_key(&w, "remedy");
			jw_null(&w);
		} else
			jw_kstr(&w, "remedy", s->remedy);
		jw_close(&w, '}');
		if (t->cli->json)
			continue;
		say_colour(stdout, s->ok ? COLOUR_GOOD : COLOUR_BAD);
		printf("%-5s", s->ok ? "ok" : "no");
		say_colour(stdout, COLOUR_NONE);
		printf(" %-12s ", s->id);
		say_foreign(stdout, s->detail, strlen(s->detail));
		putchar('\n');
		if (!s->ok)
			printf("                   %s\n", s->remedy);
	}
	jw_close(&w, ']');
	jw_kbool(&w, "ok", ok);
	jw_close(&w, '}');
	if (t->cli->json && !buf_failed(&b))
		say_json((const char *)b.p, b.n);
	else if (!t->cli->json)
		printf("%s: %s\n", t->agent->name, ok ? "it works here" : "it does not work here");
	return fflush(stdout) == 0 && ok;
}

/* Nothing of the run is left. */
static void forget(struct trial *t)
{
	struct http_answer answer;
	uint64_t until = timer_ms() + PATIENCE_MS / 10;

	if (t->end == NULL && call_run(t, NULL, "/cancel", "{}", &answer) >= 0)
		buf_free(&answer.body);
	for (long status = 409; status == 409 && timer_ms() < until; usleep(PAUSE_US))
		if ((status = call_run(t, "DELETE", "", NULL, &answer)) >= 0)
			buf_free(&answer.body);
}

/* What its provider has to speak. A profile that does not say it is known by what it sets. */
static const char *protocol_of(const struct cf_agent *a)
{
	/* As in spec/conf.tab: any, chat_completions, responses, messages, gemini. */
	static const char *const spoken[] = {NULL, "openai", "openai", "anthropic", "gemini"};
	static const struct {
		const char *variable, *protocol;
	} known[] = {{"ANTHROPIC_BASE_URL=", "anthropic"}, {"GOOGLE_GEMINI_BASE_URL=", "gemini"}};

	if (a->model_format > 0 && a->model_format < sizeof spoken / sizeof *spoken)
		return spoken[a->model_format];
	for (uint32_t i = 0; i < a->env_n; i++)
		for (size_t k = 0; k < sizeof known / sizeof *known; k++)
			if (strncmp(a->env[i], known[k].variable, strlen(known[k].variable)) == 0)
				return known[k].protocol;
	return "openai";
}

static int try_it(struct trial *t)
{
	bool ok = false;

	fprintf(stderr, "pinfold: %s runs once in a sandbox of this service, against the scripted model (no AI)\n",
		t->agent->name);
	arena_init(&t->arena, 32 << 20);
	if (stage_open(&t->stage, t->agent->name, protocol_of(t->agent)) && !stopped && start(t)) {
		attend(t);
		if (t->end != NULL) {
			judge(t);
			ok = told(t);
			if (!ok)
				show_transcript(t);
		} else
			fprintf(stderr, "pinfold: %s\n", stopped ? "stopped" : "the run did not end in time");
		forget(t);
	}
	if (!stage_close(&t->stage)) {
		fputs("pinfold: something of the test is left: remove tenants.d/" AGENT_TEST
		      ".conf and secrets/" AGENT_TEST ", then \"pinfold config reload\"\n",
		      stderr);
		ok = false;
	}
	arena_free(&t->arena);
	return ok ? EXIT_COMPLETED : EXIT_FAILED;
}

int agent_test(struct cli *cli, const char *name, const char *hint)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
	struct trial t = {.cli = cli};
	struct conf conf;
	int status = EXIT_FAILED;

	if (!http_named(cli) || !admin_configuration(&conf))
		return EXIT_FAILED;
	t.agent = conf_agent(&conf, name);
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		signal(ends[i], on_signal);
	if (t.agent == NULL)
		fprintf(stderr, "pinfold: %s: the configuration has no agent profile of that name: %s\n", name, hint);
	else if (t.agent->env_mode)
		fputs("pinfold: this agent is given real keys (credential_mode = env), which a test has none of\n",
		      stderr);
	else
		status = try_it(&t);
	conf_free(&conf);
	return status;
}
