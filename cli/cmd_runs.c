/* The small commands on runs: ps, show, events, cancel, rm. */
#include <getopt.h>
#include <stdint.h>
#include <string.h>

#include "cli/cli.h"
#include "lib/num.h"

enum { PAGE = 100 };

const char *one_run(int argc, char **argv, int most)
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

static void ps_row(const struct json *r)
{
	char at[32];

	say_time(at, json_get(r, "createdAt"), true);
	say_cell(member(r, "runId"), 38);
	say_cell(member(r, "status"), 11);
	say_cell(member(r, "phase"), 19);
	printf("%-20s ", at);
	say_foreign(stdout, member(r, "terminalReason"), strlen(member(r, "terminalReason")));
	fputc('\n', stdout);
}

/* One page. *left is made smaller by its runs; next: where the following one begins, "" at the end. */
static int ps_page(const struct cli *cli, const char *status, uint64_t *left, char next[600])
{
	struct http_answer answer;
	own_arena struct arena a = {0};
	char path[800];
	bool more = next[0] != '\0';

	snprintf(path, sizeof path, "/v1/runs?limit=%u%s%s%s%s", (unsigned)(*left < PAGE ? *left : PAGE),
		 status != NULL ? "&status=" : "", status != NULL ? status : "", more ? "&after=" : "", next);
	int e = http_call(cli, path, NULL, &answer);
	if (e != 0)
		return e;
	if (cli->json)
		say_json((const char *)answer.body.p, answer.body.n);
	arena_init(&a, 16 << 20);
	const struct json *v = json_parse(&a, answer.body.p, answer.body.n, JSON_DEPTH, 100000, NULL);
	const struct json *runs = v != NULL && v->type == JSON_OBJECT ? json_get(v, "runs") : NULL;
	buf_free(&answer.body);
	if (runs == NULL) {
		fputs("pinfold: the server's answer is no list of runs: is that the address?\n", stderr);
		return EXIT_UNREACHABLE;
	}
	if (!cli->json && !more)
		printf("%-36s  %-10s %-18s %-20s %s\n", "RUN", "STATUS", "PHASE", "CREATED", "REASON");
	for (const struct json *r = runs->child; r != NULL; r = r->next)
		if (!cli->json)
			ps_row(r);
	*left -= runs->count < *left ? runs->count : *left;
	snprintf(next, 600, "%s", runs->count > 0 ? member(v, "next") : "");
	if (strspn(next, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != strlen(next))
		next[0] = '\0';
	return 0;
}

int cmd_ps(struct cli *cli, int argc, char **argv)
{
	static const struct option options[] = {{"status", required_argument, NULL, 's'},
						{"limit", required_argument, NULL, 'l'},
						{"all", no_argument, NULL, 'a'},
						{0}};
	static const char *const states[] = {"queued", "running", "completed", "failed", "cancelled"};
	const char *only = NULL;
	char next[600] = "";
	uint64_t left = 0;
	bool all = false;
	int opt, status;

	optind = 1;
	while ((opt = getopt_long(argc, argv, "s:", options, NULL)) != -1) {
		bool known = false;
		for (size_t i = 0; opt == 's' && i < sizeof states / sizeof *states; i++)
			known = known || strcmp(states[i], optarg) == 0;
		if (opt == 's' && known)
			only = optarg;
		else if (opt == 'a')
			all = true;
		else if (opt != 'l' || !num_u64(optarg, strlen(optarg), 1, 1000000, &left))
			return usage("ps takes --status queued|running|completed|failed|cancelled, and --limit 1 to "
				     "1000000 or --all");
	}
	if (optind < argc)
		return usage("ps takes no argument %s", argv[optind]);
	if (all && left != 0)
		return usage("ps takes --limit or --all");
	bool asked = all || left != 0;
	left = all ? UINT64_MAX : left != 0 ? left : 50;
	do
		status = ps_page(cli, only, &left, next);
	while (status == 0 && left > 0 && next[0] != '\0' && !ferror(stdout));
	if (status == 0 && next[0] != '\0' && !asked && !cli->json) /* where "next" says it */
		fputs("These are the newest 50; there are more: --all, or --limit N.\n", stderr);
	return status;
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
