/* The small commands on runs: ps, show, events, cancel, rm, artifacts. */
#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "lib/num.h"

enum { PAGE = 50 };

/* The run id of a command line that has at most most arguments left; NULL after saying what is wrong. */
static const char *one_run(int argc, char **argv, int most)
{
	if (argc - optind < 1 || !id_valid(argv[optind])) {
		usage("%s needs a run id", argv[0]);
		return NULL;
	}
	if (argc - optind > most) {
		usage("%s does not take %s", argv[0], argv[optind + most]);
		return NULL;
	}
	return argv[optind];
}

int cmd_ps(struct cli *cli, int argc, char **argv)
{
	static const struct option options[] = {{"status", required_argument, NULL, 's'}, {0}};
	static const char *const states[] = {"queued", "running", "completed", "failed", "cancelled"};
	struct http_answer answer;
	char path[256] = "";
	int opt, status;

	while ((opt = getopt_long(argc, argv, "s:", options, NULL)) != -1) {
		bool known = false;
		for (size_t i = 0; opt == 's' && i < sizeof states / sizeof *states; i++)
			known = known || strcmp(states[i], optarg) == 0;
		if (!known)
			return usage("ps takes --status queued|running|completed|failed|cancelled");
		snprintf(path, sizeof path, "/v1/runs?limit=%d&status=%s", PAGE, optarg);
	}
	if (path[0] == '\0')
		snprintf(path, sizeof path, "/v1/runs?limit=%d", PAGE);
	if (optind < argc)
		return usage("ps takes no argument %s", argv[optind]);
	if ((status = http_call(cli, path, NULL, &answer)) != 0)
		return status;
	if (cli->json) {
		say_json((const char *)answer.body.p, answer.body.n);
		buf_free(&answer.body);
		return 0;
	}
	own_arena struct arena a;
	arena_init(&a, 16 << 20);
	const struct json *v = json_parse(&a, answer.body.p, answer.body.n, JSON_DEPTH, 100000, NULL);
	const struct json *runs = v != NULL ? json_get(v, "runs") : NULL;
	printf("%-36s  %-10s %-18s %-20s %s\n", "RUN", "STATUS", "PHASE", "CREATED", "REASON");
	for (const struct json *r = runs != NULL ? runs->child : NULL; r != NULL; r = r->next) {
		char at[32];
		say_time(at, json_get(r, "createdAt"), true);
		say_cell(member(r, "runId"), 38);
		say_cell(member(r, "status"), 11);
		say_cell(member(r, "phase"), 19);
		printf("%-20s ", at);
		say_foreign(stdout, member(r, "terminalReason"), strlen(member(r, "terminalReason")));
		fputc('\n', stdout);
	}
	if (member(v, "next")[0] != '\0')
		fprintf(stderr, "These are the newest %d; there are more.\n", PAGE);
	buf_free(&answer.body);
	return 0;
}

int cmd_show(struct cli *cli, int argc, char **argv)
{
	struct arena a;
	struct buf b;
	int status;

	optind = 1;
	const char *run = one_run(argc, argv, 1);
	if (run == NULL)
		return EXIT_USAGE;
	arena_init(&a, 16 << 20);
	const struct json *v = fetch_run(cli, run, &a, &status);
	if (v != NULL && cli->json) {
		buf_init(&b, 16 << 20);
		json_write(&b, v);
		say_json((const char *)b.p, b.n);
		buf_free(&b);
	} else if (v != NULL) {
		for (const struct json *m = v->child; m != NULL; m = m->next) {
			char at[32] = "";
			size_t len = strlen(m->key);
			if (len > 2 && strcmp(m->key + len - 2, "At") == 0)
				say_time(at, m, true);
			buf_init(&b, 16 << 20);
			if (at[0] != '\0')
				buf_adds(&b, at);
			else if (m->type == JSON_STRING)
				buf_add(&b, m->text, m->len);
			else
				json_write(&b, m);
			say_cell(m->key, 19);
			say_foreign(stdout, (const char *)b.p, b.n);
			fputc('\n', stdout);
			buf_free(&b);
		}
	}
	arena_free(&a);
	return status;
}

int cmd_events(struct cli *cli, int argc, char **argv)
{
	bool follow = false;
	int opt;

	optind = 1;
	while ((opt = getopt(argc, argv, "f")) != -1) {
		if (opt != 'f')
			return usage("events takes -f and a run id");
		follow = true;
	}
	const char *run = one_run(argc, argv, 1);
	return run == NULL ? EXIT_USAGE : follow_events(cli, run, follow);
}

int cmd_cancel(struct cli *cli, int argc, char **argv)
{
	struct http_answer answer;
	char path[256];

	optind = 1;
	const char *run = one_run(argc, argv, 1);
	if (run == NULL)
		return EXIT_USAGE;
	snprintf(path, sizeof path, "/v1/runs/%s/cancel", run);
	int status = http_call(cli, path, "", &answer);
	if (status != 0)
		return status;
	own_arena struct arena a;
	arena_init(&a, 1 << 20);
	const struct json *v = json_parse(&a, answer.body.p, answer.body.n, JSON_DEPTH, 1000, NULL);
	if (cli->json) {
		say_json((const char *)answer.body.p, answer.body.n);
	} else {
		printf("run %s: ", run);
		say_cell(member(v, "status"), 0);
		puts(answer.status == 202 ? ", end requested" : "");
	}
	buf_free(&answer.body);
	return 0;
}

int cmd_rm(struct cli *cli, int argc, char **argv)
{
	char path[256];

	optind = 1;
	if (one_run(argc, argv, argc) == NULL)
		return EXIT_USAGE;
	for (int i = optind; i < argc; i++)
		if (!id_valid(argv[i]))
			return usage("%s is no run id", argv[i]);
	for (int i = optind; i < argc; i++) {
		snprintf(path, sizeof path, "/v1/runs/%s", argv[i]);
		int status = http_delete(cli, path);
		if (status != 0)
			return status;
		if (!cli->json)
			printf("run %s is removed\n", argv[i]);
	}
	return 0;
}

int cmd_artifacts(struct cli *cli, int argc, char **argv)
{
	struct http_answer answer;
	char path[256];

	optind = 1;
	const char *run = one_run(argc, argv, 2);
	if (run == NULL)
		return EXIT_USAGE;
	const char *name = argc - optind > 1 ? argv[optind + 1] : NULL;
	if (name != NULL && !id_valid(name))
		return usage("an artifact is one of request events checkpoint patch test_log result");
	snprintf(path, sizeof path, "/v1/runs/%s/artifacts%s%s", run, name != NULL ? "/" : "",
		 name != NULL ? name : "");
	int status = http_call(cli, path, NULL, &answer);
	if (status != 0)
		return status;
	if (name == NULL && cli->json) {
		say_json((const char *)answer.body.p, answer.body.n);
	} else if (name != NULL && isatty(STDOUT_FILENO)) {
		say_lines(stdout, "", "", (const char *)answer.body.p,
			  answer.body.n); /* an agent or its program wrote some of it */
	} else if (name != NULL) {
		/* As it is: for files and pipes. */
		fwrite(answer.body.p, 1, answer.body.n, stdout);
	} else {
		own_arena struct arena a;
		arena_init(&a, 1 << 20);
		const struct json *v = json_parse(&a, answer.body.p, answer.body.n, JSON_DEPTH, 1000, NULL);
		const struct json *list = v != NULL ? json_get(v, "artifacts") : NULL;
		for (const struct json *m = list != NULL ? list->child : NULL; m != NULL; m = m->next) {
			int64_t size = 0;
			const struct json *s = json_get(m, "size");
			bool known = s != NULL && json_int(s, 0, INT64_MAX, &size);
			say_cell(member(m, "name"), known ? 13 : 0);
			if (known)
				printf("%lld bytes", (long long)size);
			putchar('\n');
		}
	}
	buf_free(&answer.body);
	return 0;
}
