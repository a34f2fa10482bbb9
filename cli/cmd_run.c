/* pinfold run: upload a folder, follow the run, print what it came to. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/upload.h"
#include "lib/num.h"
#include "lib/own.h"

static const struct option options[] = {{"instruction", required_argument, NULL, 'i'},
					{"file", required_argument, NULL, 'f'},
					{"agent", required_argument, NULL, 'a'},
					{"model-profile", required_argument, NULL, 'm'},
					{"allow", required_argument, NULL, 'w'},
					{"check", required_argument, NULL, 'c'},
					{"ask", required_argument, NULL, 'q'},
					{"deny", required_argument, NULL, 'n'},
					{"idempotency-key", required_argument, NULL, 'k'},
					{"detach", no_argument, NULL, 'd'},
					{"patch", no_argument, NULL, 'p'},
					{0}};

/* Creates the run and copies its id. 0, or an exit status. */
static int create(const struct cli *cli, struct upload *u, char run[129])
{
	struct buf body;
	struct http_answer answer;
	unsigned files, skipped;
	int status = EXIT_USAGE;
	char key[UUID_LEN + 1];
	struct cli once = *cli;

	uuid4(key);
	if (once.idempotency_key == NULL)
		once.idempotency_key = key;
	buf_init(&body, 8 << 20);
	if (upload_write(u, &body, &files, &skipped)) {
		fprintf(stderr, "uploading %u files (%zu bytes)%s\n", files, body.n,
			skipped != 0 ? "; links and files that are no text of the known types are left out" : "");
		status = http_call(&once, "/v1/runs", buf_cstr(&body), &answer);
	}
	buf_free(&body);
	if (status == EXIT_UNREACHABLE)
		fprintf(stderr,
			"Whether the run was made is not known: the same command with --idempotency-key %s makes no "
			"second one.\n",
			once.idempotency_key);
	if (status != 0)
		return status;
	own_arena struct arena a;
	arena_init(&a, 1 << 20);
	const struct json *v = json_parse(&a, answer.body.p, answer.body.n, JSON_DEPTH, 1000, NULL);
	snprintf(run, 129, "%s", member(v, "runId"));
	buf_free(&answer.body);
	if (!id_valid(run)) {
		fputs("pinfold: the server's answer names no run\n", stderr);
		return EXIT_UNREACHABLE;
	}
	return 0;
}

/* False: too many, or the tool was named before. */
static bool permit(struct upload *u, const char *tool, const char *word)
{
	for (unsigned i = 0; i < u->npermits; i++)
		if (strcmp(u->permit[i].tool, tool) == 0)
			return false;
	if (u->npermits == UPLOAD_WORDS)
		return false;
	u->permit[u->npermits].tool = tool;
	u->permit[u->npermits++].word = word;
	return true;
}

int cmd_run(struct cli *cli, int argc, char **argv)
{
	struct upload u = {.dir = "."};
	bool detach = false, patch = false, twice = false;
	own_free char *text = NULL;
	char run[129];
	size_t n;
	int opt, status;

	optind = 1;
	while ((opt = getopt_long(argc, argv, "i:f:", options, NULL)) != -1) {
		switch (opt) {
		case 'i':
			twice = twice || u.instruction != NULL;
			u.instruction = optarg;
			break;
		case 'f':
			twice = twice || u.instruction != NULL;
			free(text);
			text = file_read(AT_FDCWD, optarg, 128000, &n);
			if (text == NULL)
				return usage("%s: %s", optarg,
					     errno == EFBIG ? "longer than 128,000 bytes" : strerror(errno));
			u.instruction = text;
			break;
		case 'a':
			u.agent = optarg;
			break;
		case 'm':
			u.profile = optarg;
			break;
		case 'w':
		case 'c':
			if ((opt == 'w' ? u.nallow : u.nchecks) == UPLOAD_WORDS)
				return usage("at most %d of --allow and of --check", UPLOAD_WORDS);
			if (opt == 'w')
				u.allow[u.nallow++] = optarg;
			else
				u.check[u.nchecks++] = optarg;
			break;
		case 'q':
		case 'n':
			if (!permit(&u, optarg, opt == 'q' ? "ask" : "deny"))
				return usage("--ask and --deny name at most %d tools, each once", UPLOAD_WORDS);
			break;
		case 'k':
			if (!id_valid(optarg))
				return usage("--idempotency-key takes up to 128 characters of A-Z a-z 0-9 . _ -");
			cli->idempotency_key = optarg;
			break;
		case 'd':
			detach = true;
			break;
		case 'p':
			patch = true;
			break;
		default:
			return usage("run does not know that option, or it lacks its value");
		}
	}
	if (twice)
		return usage("run takes one instruction: one -i TEXT or one -f FILE");
	if (u.instruction == NULL)
		return usage("run needs -i TEXT or -f FILE: what shall the agent do?");
	if (argc - optind > 1)
		return usage("run takes one folder");
	if (optind < argc)
		u.dir = argv[optind];
	if ((status = create(cli, &u, run)) != 0)
		return status;
	cli->idempotency_key = NULL; /* the run's, and of nothing else that is posted */
	if (detach) {
		printf("%s\n", run);
		return 0;
	}
	fprintf(stderr, "run %s\n", run);
	if ((status = attend_run(cli, run)) != 0)
		return status;
	return print_outcome(cli, run, patch);
}
