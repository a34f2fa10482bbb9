/* pinfold run: upload a folder, follow the run, print what it came to. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/http.h"
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

/* What the tenant may. NULL where the server does not say so: then it refuses what may not be, as it does in any case.
 */
static const struct json *limits(const struct cli *cli, const struct secret *token, struct arena *a)
{
	struct http_answer answer;
	struct cli still = *cli;
	const struct json *v = NULL;

	still.idempotency_key = NULL;
	still.quiet = true;
	if (http_raw(&still, token, NULL, "/v1/limits", NULL, &answer) != 0)
		return NULL;
	if (answer.status == 200)
		v = json_parse(a, answer.body.p, answer.body.n, JSON_DEPTH, 10000, NULL);
	buf_free(&answer.body);
	return v;
}

static const struct json *list_of(const struct json *may, const char *name)
{
	const struct json *v = may != NULL && may->type == JSON_OBJECT ? json_get(may, name) : NULL;

	return v != NULL && v->type == JSON_ARRAY ? v : NULL;
}

static void say_uploading(const struct collected *told, size_t files, uint64_t bytes, bool archive)
{
	fprintf(stderr, "uploading %zu file%s (%" PRIu64 " bytes%s)", files, files == 1 ? "" : "s", bytes,
		archive ? ", as an archive" : "");
	for (unsigned i = 0; i < told->left_out && i < COLLECT_NAMES; i++) {
		fputs(i == 0 ? "; left out: " : ", ", stderr);
		say_foreign(stderr, told->names[i], strlen(told->names[i]));
	}
	if (told->left_out > COLLECT_NAMES)
		fprintf(stderr, " and %u more", told->left_out - COLLECT_NAMES);
	fputs(told->left_out > 0 ? " (links, or no text of the types that the tenant may upload)\n" : "\n", stderr);
}

static bool same_check(const char *line, const struct json *argv)
{
	for (const struct json *w = argv->child; w != NULL; w = w->next) {
		line += strspn(line, " ");
		size_t n = strcspn(line, " ");
		if (w->type != JSON_STRING || n != w->len || memcmp(line, w->text, n) != 0)
			return false;
		line += n;
	}
	return line[strspn(line, " ")] == '\0';
}

/* Of a run that was refused: where one of its checks is none that the tenant may run, those that it may. */
static void say_checks(const struct upload *u, const struct json *may)
{
	bool strange = false;

	for (unsigned i = 0; may != NULL && i < (u->nchecks > 0 ? u->nchecks : 1); i++) {
		const struct json *c = may->child;
		while (c != NULL && !same_check(u->nchecks > 0 ? u->check[i] : UPLOAD_CHECK, c))
			c = c->next;
		strange = strange || c == NULL;
	}
	if (!strange)
		return;
	fputs("The checks that this tenant may run:\n", stderr);
	for (const struct json *c = may->child; c != NULL; c = c->next) {
		fputs("  --check \"", stderr);
		for (const struct json *w = c->child; w != NULL; w = w->next) {
			say_foreign(stderr, w->text, w->type == JSON_STRING ? w->len : 0);
			fputs(w->next != NULL ? " " : "", stderr);
		}
		fputs("\"\n", stderr);
	}
}

/* A number of the answer to GET /v1/limits; 0 where it is not there. */
static uint64_t limit_of(const struct json *may, const char *group, const char *name)
{
	const struct json *g = may != NULL && may->type == JSON_OBJECT ? json_get(may, group) : NULL;
	const struct json *v = g != NULL && g->type == JSON_OBJECT ? json_get(g, name) : NULL;
	int64_t n = 0;

	return v != NULL && json_int(v, 0, INT64_MAX, &n) ? (uint64_t)n : 0;
}

/* At a terminal, where it is a matter of more than a moment. */
static void say_progress(uint64_t bytes, uint64_t of_all)
{
	static uint64_t said;
	unsigned percent = of_all > 0 ? (unsigned)(100 * (bytes < of_all ? bytes : of_all) / of_all) : 100;

	if (percent == said)
		return;
	said = percent;
	fprintf(stderr, "\rsending %u of %u MB (%u%%)%s", (unsigned)(bytes / 1000000), (unsigned)(of_all / 1000000),
		percent, percent == 100 ? "\n" : "");
	fflush(stderr);
}

/* Sends the files as an archive and copies the source's id. 0, or an exit status. */
static int send_source(const struct cli *cli, const struct secret *token, const struct upload *u,
		       const struct collected *files, const struct json *may, char source[65])
{
	enum { SHOWN = 2000000 };
	struct http_answer answer;
	struct http_file file = {0};
	uint64_t most = limit_of(may, "source", "archiveBytes");
	struct cli plain = *cli;

	if (most == 0) {
		fputs("pinfold: more files than one request may hold, and this server takes no archives; name a "
		      "smaller folder\n",
		      stderr);
		return EXIT_USAGE;
	}
	if (!upload_may(u, files, limit_of(may, "source", "files"), limit_of(may, "source", "fileBytes"),
			limit_of(may, "source", "bytes")))
		return EXIT_USAGE;
	own_fd int fd = upload_pack(u, files, &file.type, &file.bytes);
	if (fd < 0)
		return EXIT_USAGE;
	if (file.bytes > most) {
		fprintf(stderr,
			"pinfold: the archive has %" PRIu64 " bytes, and the tenant may send %" PRIu64
			": name a smaller folder\n",
			file.bytes, most);
		return EXIT_USAGE;
	}
	say_uploading(files, files->n, file.bytes, true);
	file.fd = fd;
	if (file.bytes > SHOWN && say_rows(stderr) > 0)
		file.came_on = say_progress;
	plain.idempotency_key = NULL;
	int status = http_send(&plain, token, "/v1/sources", &file, &answer);
	if (status != 0)
		return status;
	own_arena struct arena a;
	arena_init(&a, 1 << 20);
	snprintf(source, 65, "%s",
		 member(json_parse(&a, answer.body.p, answer.body.n, JSON_DEPTH, 100, NULL), "sourceId"));
	buf_free(&answer.body);
	if (strlen(source) == 64)
		return 0;
	fputs("pinfold: the server's answer names no source\n", stderr);
	return EXIT_UNREACHABLE;
}

/* What the folder holds, sent: as files of the request in body or, where they are too many or too large for it, before
 * it as an archive. 0, or an exit status. */
static int prepare(const struct cli *cli, const struct secret *token, const struct upload *u, const struct json *may,
		   struct buf *body)
{
	struct collected files;
	char source[65] = "";
	uint64_t bytes;
	size_t n;
	int status = EXIT_USAGE;

	if (collect(u->dir, u->types, &files)) {
		bool fits = upload_fits(u, &files, &bytes);
		status = fits ? 0 : send_source(cli, token, u, &files, may, source);
		if (status == 0 && !upload_write(u, &files, fits ? NULL : source, body, &n))
			status = EXIT_USAGE;
		else if (status == 0 && fits)
			say_uploading(&files, n, body->n, false);
	}
	collect_free(&files);
	return status;
}

/* Creates the run and copies its id. 0, or an exit status. */
static int create(const struct cli *cli, struct upload *u, char run[129])
{
	struct buf body;
	struct http_answer answer;
	own_arena struct arena known;
	char key[UUID_LEN + 1];
	own_secret struct secret token = {0};
	struct cli once = *cli;

	uuid4(key);
	if (once.idempotency_key == NULL)
		once.idempotency_key = key;
	arena_init(&known, 1 << 20);
	if (!http_named(cli) || !token_find(cli, &token))
		return EXIT_USAGE;
	const struct json *may = limits(cli, &token, &known);
	u->types = list_of(may, "extensions");
	buf_init(&body, 8 << 20);
	int status = prepare(cli, &token, u, may, &body);
	bool asked = status == 0;
	if (asked) {
		status = http_ask(&once, &token, NULL, "/v1/runs", buf_cstr(&body), &answer);
		if (status == EXIT_FAILED)
			say_checks(u, list_of(may, "checks"));
	}
	buf_free(&body);
	if (asked && status == EXIT_UNREACHABLE)
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

/* Where nothing else is said, the checks say what is wanted. To be freed; NULL: there are none. */
static char *by_checks(const struct upload *u)
{
	char *text = NULL;
	size_t n;
	FILE *f = u->nchecks > 0 ? open_memstream(&text, &n) : NULL;

	if (f == NULL)
		return NULL;
	fputs("Change these files so that what follows passes:", f);
	for (unsigned i = 0; i < u->nchecks; i++)
		fprintf(f, "\n%s", u->check[i]);
	if (fclose(f) != 0) {
		free(text);
		text = NULL;
	}
	return text;
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
	if (u.instruction == NULL && (u.instruction = text = by_checks(&u)) == NULL)
		return usage(
		    "run needs -i TEXT or -f FILE: what shall the agent do? Or --check: have it make that pass");
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
