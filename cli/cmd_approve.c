/*
 * pinfold approve: what agents ask, listed, and answered by the person at this terminal or, with everything named on
 * the command line, by a program. What is answered is always the card that was shown: its digest goes along.
 */
#include <getopt.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "cli/asking.h"
#include "lib/num.h"

enum { LOOK_MS = 2000, PAGE = 100, PAGES = 200, CELL = 60 };

/* A device's token where one is named, since only that can answer; else the caller's, unless the caller named one. */
static bool find(const struct cli *cli, struct secret *token)
{
	bool named = cli->token_env != NULL || cli->token_file != NULL;
	bool device = cli->device_env != NULL || cli->device_file != NULL || (!named && token_device_named(cli));
	return device ? token_device(cli, token) : token_find(cli, token);
}

static void list_row(const char *run, const struct json *c)
{
	char until[32];
	const char *preview = member(c, "preview");
	size_t line = strcspn(preview, "\n"), most = utf8_fit(preview, line, CELL);

	say_time(until, json_get(c, "expiresAt"), false);
	say_cell(run, 38);
	say_cell(member(c, "requestId"), 38);
	say_cell(member(c, "effect"), 15);
	printf("%-8s  ", until);
	say_foreign(stdout, preview, most);
	fputs(preview[most] != '\0' || !card_whole(c) ? " ...\n" : "\n", stdout);
}

/* One page of what waits in all runs. *next: where the following one begins, "" at the end. */
static int list_page(const struct cli *cli, struct http_answer *answer, char next[600], unsigned *waits)
{
	own_arena struct arena a;

	next[0] = '\0';
	if (cli->json)
		say_json((const char *)answer->body.p, answer->body.n);
	arena_init(&a, 64 << 20);
	const struct json *v = json_parse(&a, answer->body.p, answer->body.n, JSON_DEPTH, 1000000, NULL);
	const struct json *pending = v != NULL && v->type == JSON_OBJECT ? json_get(v, "pending") : NULL;
	buf_free(&answer->body);
	if (pending == NULL) {
		fputs("pinfold: the server's answer is no list of questions\n", stderr);
		return EXIT_UNREACHABLE;
	}
	for (const struct json *c = pending->child; c != NULL; c = c->next, ++*waits)
		if (!cli->json)
			list_row(member(c, "runId"), c);
	if (strspn(member(v, "next"), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
	    strlen(member(v, "next")))
		snprintf(next, 600, "%s", member(v, "next"));
	return 0;
}

static int list_run(const struct cli *cli, const struct secret *token, const char *run, unsigned *waits)
{
	own_arena struct arena a;
	int status;

	arena_init(&a, 16 << 20);
	const struct json *all = cards_fetch(cli, token, run, &a, &status);
	const struct json *pending = all != NULL ? json_get(all, "pending") : NULL;
	for (const struct json *c = pending != NULL ? pending->child : NULL; c != NULL; c = c->next, ++*waits) {
		if (!cli->json) {
			list_row(run, c);
			continue;
		}
		own_buf struct buf b;
		buf_init(&b, 1 << 20);
		buf_addf(&b, "{\"runId\":\"%s\",\"question\":", run);
		json_write(&b, c);
		buf_addc(&b, '}');
		say_json((const char *)b.p, b.n);
	}
	return status;
}

/* Run after run, for who has no inbox. */
static int list_runs(const struct cli *cli, const struct secret *token, unsigned *waits)
{
	char path[700], next[600] = "";
	int status;

	for (unsigned page = 0; page < PAGES; page++) {
		own_arena struct arena a = {0};
		struct http_answer answer;
		snprintf(path, sizeof path, "/v1/runs?status=running&limit=%d%s%s", PAGE,
			 next[0] != '\0' ? "&after=" : "", next);
		if ((status = http_ask(cli, token, NULL, path, NULL, &answer)) != 0)
			return status;
		arena_init(&a, 16 << 20);
		const struct json *v = json_parse(&a, answer.body.p, answer.body.n, JSON_DEPTH, 100000, NULL);
		buf_free(&answer.body);
		const struct json *runs = v != NULL && v->type == JSON_OBJECT ? json_get(v, "runs") : NULL;
		for (const struct json *r = runs != NULL ? runs->child : NULL; r != NULL; r = r->next)
			if (id_valid(member(r, "runId")) && strcmp(member(r, "phase"), "awaiting_approval") == 0 &&
			    (status = list_run(cli, token, member(r, "runId"), waits)) != 0)
				return status;
		snprintf(next, sizeof next, "%s", v != NULL ? member(v, "next") : "");
		if (next[0] == '\0')
			break;
	}
	fputs("To answer takes a paired device's token (PINFOLD_DEVICE_TOKEN, --device-token-file) or one made with "
	      "--approve;\nthis one may be good for reading alone.\n",
	      stderr);
	return 0;
}

static int list(const struct cli *cli, const struct secret *token)
{
	char path[700], next[600] = "";
	unsigned waits = 0;
	int status = 0;

	if (!cli->json)
		printf("%-36s  %-36s  %-13s  %-8s  %s\n", "RUN", "REQUEST", "EFFECT", "UNTIL", "PREVIEW");
	for (unsigned page = 0; page < PAGES; page++) {
		struct http_answer answer;
		snprintf(path, sizeof path, "/v1/inbox?limit=%d%s%s", PAGE, next[0] != '\0' ? "&after=" : "", next);
		if ((status = http_raw(cli, token, NULL, path, NULL, &answer)) != 0)
			return status;
		if (answer.status != 200) {
			/* Only a device has one; what else is wrong is said where the runs are asked for. */
			buf_free(&answer.body);
			status = list_runs(cli, token, &waits);
			break;
		}
		if ((status = list_page(cli, &answer, next, &waits)) != 0 || next[0] == '\0')
			break;
	}
	if (status == 0 && waits == 0 && !cli->json)
		fputs("nothing waits\n", stderr);
	return status;
}

/* Card after card, with the person at this terminal, until none waits that was not put aside. */
static int converse(const struct cli *cli, const struct secret *token, const char *run, const char *request)
{
	struct asking a = {.cli = cli, .token = token, .run = run, .only = request};
	int status = asking_look(&a);

	a.patient = true;
	if (status == 0 && !a.open && !a.deaf)
		fputs("nothing waits\n", stderr);
	while (status == 0 && a.open) {
		struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
		if (poll(&in, 1, LOOK_MS) > 0)
			asking_read(&a);
		else
			(void)asking_look(&a); /* else the next time */
		if (!a.open)
			status = asking_look(&a);
	}
	if (status != 0)
		return status;
	return a.deaf || (request != NULL && a.answered == 0) ? EXIT_FAILED : 0;
}

/* The second step of allow_session: a person is asked again, a program has said what it wants. */
static bool sure(const struct asking *a)
{
	char line[64] = "";

	if (!asking_possible())
		return true;
	asking_prompt(a);
	return fgets(line, sizeof line, stdin) != NULL && strcmp(line, "s\n") == 0;
}

/* One answer, given on the command line, to a card that is shown all the same. */
static int decide(const struct cli *cli, const struct secret *token, const char *run, const char *request,
		  const char *decision, const char *digest)
{
	own_arena struct arena a;
	struct asking shown = {.cli = cli, .token = token, .run = run};
	int status;

	arena_init(&a, 16 << 20);
	const struct json *all = cards_fetch(cli, token, run, &a, &status);
	if (all == NULL)
		return status;
	const struct json *pending = json_get(all, "pending");
	if (request == NULL && pending != NULL && pending->count == 1)
		request = member(pending->child, "requestId");
	if (request == NULL)
		return usage("%zu questions wait in this run: name the one", pending != NULL ? pending->count : 0);
	const struct json *card = card_of(pending, request), *was = card_of(json_get(all, "decisions"), request);
	if (card == NULL) {
		fprintf(stderr, "pinfold: question %s %s", request, was != NULL ? "was decided already: " : "");
		if (was != NULL)
			decision_say(stderr, was);
		fputs(was != NULL ? "\n" : "does not wait in this run\n", stderr);
		return EXIT_FAILED;
	}
	card_say(stderr, run, card);
	/* What was read before, by whatever means, is what is meant. */
	digest = digest != NULL ? digest : member(card, "digest");
	enum answered r = card_answer(cli, token, run, request, digest, decision, shown.confirm, &status);
	if (r == ANSWERED_CONFIRM && !sure(&shown)) {
		fputs("nothing is decided\n", stderr);
		return EXIT_FAILED;
	}
	if (r == ANSWERED_CONFIRM)
		(void)card_answer(cli, token, run, request, digest, decision, shown.confirm, &status);
	return status;
}

int cmd_approve(struct cli *cli, int argc, char **argv)
{
	static const struct option options[] = {
	    {"allow-once", no_argument, NULL, 'o'},   {"allow-session", no_argument, NULL, 's'},
	    {"deny", no_argument, NULL, 'd'},         {"cancel", no_argument, NULL, 'c'},
	    {"digest", required_argument, NULL, 'D'}, {0}};
	static const char *const decisions[] = {
	    ['o'] = "allow_once", ['s'] = "allow_session", ['d'] = "deny", ['c'] = "cancel"};
	const char *decision = NULL, *digest = NULL;
	own_secret struct secret token = {0};
	int opt;

	optind = 1;
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'D')
			digest = optarg;
		else if (opt == '?' || decision != NULL)
			return usage("approve takes one of --allow-once, --allow-session, --deny and --cancel");
		else
			decision = decisions[opt];
	}
	const char *run = optind < argc ? argv[optind] : NULL;
	const char *request = optind + 1 < argc ? argv[optind + 1] : NULL;
	if (argc - optind > 2)
		return usage("approve takes a run and a question");
	if ((run != NULL && !id_valid(run)) || (request != NULL && !id_valid(request)))
		return usage("that is no id");
	if (run == NULL && (decision != NULL || digest != NULL))
		return usage("which run's question?");
	if (digest != NULL && decision == NULL)
		return usage("--digest goes with an answer on the command line: --allow-once, --allow-session, --deny "
			     "or --cancel");
	if (digest != NULL && strlen(digest) != 64)
		return usage("--digest takes all 64 characters of a card's digest");
	if (!http_named(cli))
		return EXIT_USAGE;
	bool person = asking_possible();
	if (run != NULL && !person && (decision == NULL || request == NULL) &&
	    !(cli->json && decision == NULL && request == NULL))
		return usage("nobody can be asked without a terminal: name the question and the answer");
	if (!find(cli, &token))
		return EXIT_USAGE;
	if (run == NULL)
		return list(cli, &token);
	if (decision != NULL)
		return decide(cli, &token, run, request, decision, digest);
	if (cli->json && request == NULL) {
		struct http_answer answer;
		char path[256];
		snprintf(path, sizeof path, "/v1/runs/%s/approvals", run);
		int status = http_ask(cli, &token, NULL, path, NULL, &answer);
		if (status == 0) {
			say_json((const char *)answer.body.p, answer.body.n);
			buf_free(&answer.body);
		}
		return status;
	}
	return converse(cli, &token, run, request);
}
