/* Following a run: its events as lines for people, and what it came to. */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "lib/num.h"

enum { PAUSE_US = 250000 };

/* "12:00:01  tool.call            {...}" */
static void print_event(const struct json *e)
{
	const struct json *data = json_get(e, "data");
	const struct json *at = json_get(e, "created_at");
	char clock[16] = "";
	int64_t ms;

	if (at != NULL && json_int(at, 0, INT64_MAX, &ms)) {
		time_t t = (time_t)(ms / 1000);
		struct tm tm;
		strftime(clock, sizeof clock, "%H:%M:%S", localtime_r(&t, &tm));
	}
	printf("%s  ", clock);
	say_foreign(stdout, member(e, "event_type"), strlen(member(e, "event_type")));
	if (data != NULL && data->count > 0) {
		struct buf b;
		buf_init(&b, 1 << 20);
		json_write(&b, data);
		fputs("  ", stdout);
		size_t most = utf8_fit((const char *)b.p, b.n, 300);
		say_foreign(stdout, (const char *)b.p, most);
		if (most < b.n)
			fputs(" ...", stdout);
		buf_free(&b);
	}
	fputc('\n', stdout);
	fflush(stdout);
}

static bool is_terminal(const char *status)
{
	return strcmp(status, "completed") == 0 || strcmp(status, "failed") == 0 || strcmp(status, "cancelled") == 0;
}

/* Prints each line of an NDJSON body and moves *after on; *ended when a terminal event was seen. */
static void print_lines(const struct cli *cli, struct buf *body, int64_t *after, bool *ended)
{
	const char *p = buf_cstr(body);

	for (const char *end; p != NULL && (end = strchr(p, '\n')) != NULL; p = end + 1) {
		struct arena a;
		arena_init(&a, 4 << 20);
		const struct json *e = json_parse(&a, p, (size_t)(end - p), 64, 100000, NULL);
		const struct json *seq = e != NULL ? json_get(e, "sequence") : NULL;
		if (seq != NULL && json_int(seq, 0, INT64_MAX, after)) {
			const char *type = member(e, "event_type");
			if (cli->json)
				say_json(p, (size_t)(end - p));
			else
				print_event(e);
			*ended = strncmp(type, "run.", 4) == 0 && is_terminal(type + 4);
		}
		arena_free(&a);
	}
	fflush(stdout);
}

int follow_events(const struct cli *cli, const char *run, bool follow)
{
	int64_t after = 0;

	for (bool ended = false;;) {
		struct http_answer answer;
		char path[256];
		snprintf(path, sizeof path, "/v1/runs/%s/events?after=%lld", run, (long long)after);
		int status = http_call(cli, path, NULL, &answer);
		if (status != 0)
			return status;
		print_lines(cli, &answer.body, &after, &ended);
		buf_free(&answer.body);
		if (ended || !follow)
			return 0;
		usleep(PAUSE_US);
	}
}

const struct json *fetch_run(const struct cli *cli, const char *run, struct arena *a, int *status)
{
	struct http_answer answer;
	char path[256];

	snprintf(path, sizeof path, "/v1/runs/%s", run);
	*status = http_call(cli, path, NULL, &answer);
	if (*status != 0)
		return NULL;
	const struct json *v = json_parse(a, answer.body.p, answer.body.n, 64, 100000, NULL);
	if (v == NULL) {
		fputs("pinfold: the server's answer is not JSON\n", stderr);
		*status = EXIT_UNREACHABLE;
	}
	buf_free(&answer.body);
	return v;
}

/* ": 5 run, 1 failed, 2 skipped" */
static void print_counts(const struct json *counts)
{
	static const char *const names[] = {"run", "failed", "skipped"};
	const char *before = ": ";
	int64_t n;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const struct json *v = json_get(counts, names[i]);
		if (v == NULL || !json_int(v, 0, UINT32_MAX, &n) || (n == 0 && i > 0))
			continue;
		printf("%s%lld %s", before, (long long)n, names[i]);
		before = ", ";
	}
}

/* What should make one look twice, a line each. */
static void print_flags(const struct json *flags)
{
	for (const struct json *f = flags->child; f != NULL; f = f->next) {
		fputs("         note: ", stdout);
		say_foreign(stdout, member(f, "flag"), strlen(member(f, "flag")));
		if (member(f, "path")[0] != '\0') {
			fputc(' ', stdout);
			say_foreign(stdout, member(f, "path"), strlen(member(f, "path")));
		}
		fputc('\n', stdout);
	}
}

static void print_check(const struct json *check)
{
	const struct json *ok = json_get(check, "ok");
	const struct json *argv = json_get(check, "argv");

	printf("  %s ", ok != NULL && ok->type == JSON_BOOL && ok->truth ? "passed" : "FAILED");
	say_foreign(stdout, member(check, "name"), strlen(member(check, "name")));
	fputc(':', stdout);
	for (const struct json *w = argv != NULL ? argv->child : NULL; w != NULL; w = w->next)
		if (w->type == JSON_STRING) {
			fputc(' ', stdout);
			say_foreign(stdout, w->text, w->len);
		}
	const char *outcome = member(check, "outcome");
	const struct json *tests = json_get(check, "tests"), *upload = json_get(check, "uploadTests");
	if (outcome[0] != '\0' && strcmp(outcome, "passed") != 0 && strcmp(outcome, "failed") != 0) {
		fputs(" (", stdout);
		say_foreign(stdout, outcome, strlen(outcome));
		fputc(')', stdout);
	}
	if (tests != NULL)
		print_counts(tests);
	if (upload != NULL) {
		fputs("; on the upload", stdout);
		print_counts(upload);
	}
	fputc('\n', stdout);
	if (json_get(check, "flags") != NULL)
		print_flags(json_get(check, "flags"));
}

/* A patch is many lines; each is made safe by itself. */
static void print_patch(const struct cli *cli, const char *run)
{
	struct http_answer answer;
	char path[256];

	snprintf(path, sizeof path, "/v1/runs/%s/artifacts/patch", run);
	if (http_call(cli, path, NULL, &answer) != 0)
		return;
	const char *p = buf_cstr(&answer.body);
	puts("patch:");
	for (const char *end; p != NULL && *p != '\0'; p = end[0] == '\n' ? end + 1 : end) {
		end = strchrnul(p, '\n');
		fputs("  ", stdout);
		say_foreign(stdout, p, (size_t)(end - p));
		fputc('\n', stdout);
	}
	buf_free(&answer.body);
}

int print_outcome(const struct cli *cli, const char *run, bool with_patch)
{
	own_arena struct arena a;
	int status;

	arena_init(&a, 16 << 20);
	const struct json *v = fetch_run(cli, run, &a, &status);
	if (v == NULL)
		return status;
	const char *word = member(v, "status");
	status = strcmp(word, "completed") == 0   ? EXIT_COMPLETED
		 : strcmp(word, "cancelled") == 0 ? EXIT_CANCELLED
						  : EXIT_FAILED;
	if (cli->json) {
		struct buf b;
		buf_init(&b, 16 << 20);
		json_write(&b, v);
		say_json((const char *)b.p, b.n);
		buf_free(&b);
		return status;
	}
	const struct json *changed = json_get(v, "changedFiles");
	const struct json *checks = json_get(v, "verification");
	if (with_patch && is_terminal(word))
		print_patch(cli, run);
	if (changed != NULL && changed->count > 0) {
		puts("changed files:");
		for (const struct json *f = changed->child; f != NULL; f = f->next) {
			fputs("  ", stdout);
			say_foreign(stdout, f->type == JSON_STRING ? f->text : member(f, "path"),
				    strlen(f->type == JSON_STRING ? f->text : member(f, "path")));
			fputc('\n', stdout);
		}
	}
	if (checks != NULL && checks->count > 0) {
		puts("checks, run by the control plane in a clean tree:");
		for (const struct json *c = checks->child; c != NULL; c = c->next)
			print_check(c);
	}
	printf("run %s: ", run);
	say_cell(word, 0);
	const char *why = member(v, "terminalReason");
	const char *error = member(v, "error");
	if (why[0] != '\0' && strcmp(why, word) != 0) {
		fputs(" (", stdout);
		say_foreign(stdout, why, strlen(why));
		if (error[0] != '\0') {
			fputs(", ", stdout);
			say_foreign(stdout, error, strlen(error));
		}
		fputc(')', stdout);
	}
	fputc('\n', stdout);
	return status;
}
