/* What a run came to: its snapshot, in words. */
#include <string.h>

#include "cli/cli.h"

bool is_terminal(const char *status)
{
	return strcmp(status, "completed") == 0 || strcmp(status, "failed") == 0 || strcmp(status, "cancelled") == 0;
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

	bool passed = ok != NULL && ok->type == JSON_BOOL && ok->truth;
	fputs("  ", stdout);
	say_colour(stdout, passed ? COLOUR_GOOD : COLOUR_BAD);
	fputs(passed ? "passed" : "FAILED", stdout);
	say_colour(stdout, COLOUR_NONE);
	fputc(' ', stdout);
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
	puts("patch:");
	say_lines(stdout, "  ", "  ... ", (const char *)answer.body.p, answer.body.n);
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
	say_colour(stdout, status == EXIT_COMPLETED   ? COLOUR_GOOD
			   : status == EXIT_CANCELLED ? COLOUR_NOTE
						      : COLOUR_BAD);
	say_cell(word, 0);
	say_colour(stdout, COLOUR_NONE);
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
