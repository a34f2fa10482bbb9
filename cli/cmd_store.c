/* pinfold store stat|check|prune|compact|backup|restore: for root, over the admin socket or, stopped, by hand. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/admin.h"
#include "cli/store.h"
#include "gen/store_msg.h"
#include "lib/own.h"
#include "lib/place.h"

static void moment(uint64_t ms, char out[40])
{
	time_t s = (time_t)(ms / 1000);
	struct tm tm;

	snprintf(out, 40, "none");
	if (ms != 0)
		(void)strftime(out, 40, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&s, &tm));
}

static int stat_(const struct cli *cli)
{
	struct ask *a = admin_open();
	struct st_stats_are s;
	char ended[40], open[40], checkpoint[40], restored[40];
	enum err e = st_call_stat(a, &(struct st_stat){0}, NULL, &s, NULL);

	if (e != ERR_OK)
		return admin_failed(a, e);
	moment(s.oldest_ended, ended);
	moment(s.oldest_open, open);
	moment(s.checkpoint_at, checkpoint);
	moment(s.restored_at, restored);
	const struct {
		const char *json, *name, *text;
		uint64_t number;
		bool quoted;
	} rows[] = {{"form", "form", NULL, s.schema, false},
		    {"generation", "generation", NULL, s.generation, false},
		    {"restoredAt", "restored", restored, 0, true},
		    {"tenants", "tenants", NULL, s.tenants, false},
		    {"tokens", "tokens", NULL, s.tokens, false},
		    {"runs", "runs", NULL, s.runs, false},
		    {"openRuns", "open runs", NULL, s.open_runs, false},
		    {"oldestOpen", "oldest open run", open, 0, true},
		    {"oldestEnded", "oldest end of a run", ended, 0, true},
		    {"idempotencyKeys", "idempotency keys", NULL, s.keys, false},
		    {"blobs", "blobs", NULL, s.blobs, false},
		    {"blobBytes", "bytes in blobs", NULL, s.blob_bytes, false},
		    {"dataBytes", "bytes in tables", NULL, s.data_bytes, false},
		    {"logFiles", "log files", NULL, s.log_files, false},
		    {"logBytes", "bytes in logs", NULL, s.log_files_bytes, false},
		    {"lastCheckpoint", "last checkpoint", checkpoint, 0, true},
		    {"freeBytes", "bytes free", NULL, s.free_bytes, false},
		    {"floorBytes", "new work above", NULL, s.floor_bytes, false},
		    {"ballast", "ballast", s.ballast ? "true" : "false", 0, false},
		    {"commits", "commits", NULL, s.commits, false},
		    {"flushes", "flushes", NULL, s.flushes, false},
		    {"logBytesWritten", "log bytes written", NULL, s.log_bytes, false}};
	if (cli->json)
		putchar('{');
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *quote = rows[i].quoted ? "\"" : "";
		if (cli->json)
			printf("%s\"%s\":", i > 0 ? "," : "", rows[i].json);
		else
			printf("%-20s ", rows[i].name);
		if (rows[i].text != NULL)
			printf("%s%s%s", cli->json ? quote : "", rows[i].text, cli->json ? quote : "");
		else
			printf("%" PRIu64, rows[i].number);
		if (!cli->json)
			putchar('\n');
	}
	if (cli->json)
		puts("}");
	ask_free(a);
	return 0;
}

struct findings {
	const struct cli *cli;
	uint64_t n, rows;
	bool failed;
};

static void found(struct findings *f, const char *text)
{
	/* What a record holds may be anything. */
	if (f->cli->json) {
		struct buf b;
		struct jw w;
		buf_init(&b, 4096);
		jw_init(&w, &b);
		jw_open(&w, '{');
		jw_kstr(&w, "finding", text);
		jw_close(&w, '}');
		say_json((const char *)b.p, b.n);
		buf_free(&b);
	} else {
		say_foreign(stdout, text, strlen(text));
		putchar('\n');
	}
	f->n++;
}

static void offline_found(void *with, const char *line)
{
	struct findings *f = with;

	if (strncmp(line, "rows ", 5) == 0)
		f->rows = strtoull(line + 5, NULL, 10);
	else
		found(f, strncmp(line, "finding ", 8) == 0 ? line + 8 : line);
}

static int check_end(const struct cli *cli, const struct findings *f)
{
	bool ok = f->n == 0 && !f->failed;

	if (cli->json)
		printf("{\"ok\":%s,\"rows\":%" PRIu64 ",\"findings\":%" PRIu64 "}\n", ok ? "true" : "false", f->rows,
		       f->n);
	else if (ok)
		printf("the store is whole: %" PRIu64 " rows\n", f->rows);
	else if (f->n == 0)
		fputs("pinfold: the store was not looked at to its end, and nothing is known about it\n", stderr);
	else
		fprintf(stderr, "pinfold: the store is not whole: %" PRIu64 " findings in %" PRIu64 " rows\n", f->n,
			f->rows);
	return ok ? 0 : EXIT_FAILED;
}

/* Nobody else has the store open. -1: now somebody has, so that it can be asked. */
static int check_offline(const struct cli *cli, bool contents)
{
	struct findings f = {.cli = cli};
	const char *args[] = {"--check", place_dir(PLACE_STATE), contents ? "--contents" : NULL, NULL};

	f.failed = offline_run(args, offline_found, &f) != 0;
	if (f.failed && f.n == 0 && f.rows == 0 && store_locked() == STORE_LOCK_HELD)
		return -1;
	return check_end(cli, &f);
}

static int check_backup(const struct cli *cli, const char *dir)
{
	struct manifest m;
	char at[40];
	own_fd int fd = backup_open(dir);

	if (fd < 0 || !manifest_verify(dir, fd, &m))
		return EXIT_FAILED;
	moment(m.at, at);
	if (cli->json)
		printf("{\"ok\":true,\"at\":\"%s\",\"files\":%" PRIu64 ",\"bytes\":%" PRIu64 "}\n", at, m.files,
		       m.bytes);
	else
		printf("%s: a whole backup of %s: %" PRIu64 " files, %" PRIu64 " bytes\n", dir, at, m.files, m.bytes);
	return 0;
}

static int check(const struct cli *cli, int argc, char **argv)
{
	struct findings f = {.cli = cli};
	struct st_store_checked got;
	uint8_t after[600];
	struct st_store_check m = {.after = {after, 0}};

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--contents") == 0)
			m.contents = true;
		else if (argc == 2 && argv[i][0] != '-')
			return check_backup(cli, argv[i]);
		else
			return usage("store check [--contents | BACKUP]");
	}
	/* Without waiting for a service that is not there. */
	int status = store_locked() == STORE_LOCK_FREE ? check_offline(cli, m.contents) : -1;
	if (status >= 0)
		return status;
	struct ask *a = admin_open();
	do {
		struct wire_bytes part;
		struct st_text text;
		bool bad = false;
		enum err e = st_call_store_check(a, &m, NULL, &got, NULL);
		if (e == ERR_STORE_UNAVAILABLE && f.rows == 0) {
			ask_free(a);
			status = check_offline(cli, m.contents);
			return status >= 0 ? status : EXIT_FAILED;
		}
		if (e != ERR_OK)
			return admin_failed(a, e);
		uint64_t before = f.n;
		while (wire_list_next(&got.texts, &part, &bad) && st_get_text(part.p, part.n, &text))
			found(&f, text.text);
		f.n = before + got.findings;
		f.rows += got.rows;
		memcpy(after, got.after.p, got.after.n);
		m.after.n = got.after.n;
		m.table = got.table;
	} while (!got.done);
	ask_free(a);
	return check_end(cli, &f);
}

static int prune(const struct cli *cli)
{
	struct ask *a = admin_open();
	struct st_store_pruned got;
	uint64_t artifacts = 0, runs = 0, keys = 0, tokens = 0;

	do {
		enum err e = st_call_store_prune(a, &(struct st_store_prune){0}, NULL, &got, NULL);
		if (e != ERR_OK)
			return admin_failed(a, e);
		artifacts += got.artifacts;
		runs += got.runs;
		keys += got.keys;
		tokens += got.tokens;
	} while (got.more);
	ask_free(a);
	if (!got.settled)
		fprintf(stderr,
			"pinfold: the clock went forward by a day or more within the last day: nothing is taken "
			"before that day is over\n");
	if (cli->json)
		printf("{\"artifactsOfRuns\":%" PRIu64 ",\"runs\":%" PRIu64 ",\"idempotencyKeys\":%" PRIu64
		       ",\"tokens\":%" PRIu64 "}\n",
		       artifacts, runs, keys, tokens);
	else
		printf("gone: the artifacts of %" PRIu64 " runs, %" PRIu64 " runs, %" PRIu64
		       " idempotency keys, %" PRIu64 " tokens\n",
		       artifacts, runs, keys, tokens);
	return got.settled ? 0 : EXIT_FAILED;
}

static int compact(const struct cli *cli)
{
	struct ask *a = admin_open();
	struct st_store_compacted got;
	struct st_stats_are was, is;
	uint8_t after[600];
	struct st_store_compact m = {.after = {after, 0}};
	uint64_t pages = 0;
	enum err e = st_call_stat(a, &(struct st_stat){0}, NULL, &was, NULL);

	do {
		if (e == ERR_OK)
			e = st_call_store_compact(a, &m, NULL, &got, NULL);
		if (e != ERR_OK)
			return admin_failed(a, e);
		pages += got.pages;
		memcpy(after, got.after.p, got.after.n);
		m.after.n = got.after.n;
		m.table = got.table;
	} while (!got.done);
	e = st_call_stat(a, &(struct st_stat){0}, NULL, &is, NULL);
	if (e != ERR_OK)
		return admin_failed(a, e);
	ask_free(a);
	if (cli->json)
		printf("{\"pages\":%" PRIu64 ",\"bytesBefore\":%" PRIu64 ",\"bytesAfter\":%" PRIu64 "}\n", pages,
		       was.data_bytes, is.data_bytes);
	else
		printf("%" PRIu64 " pages were freed; the tables have %" PRIu64 " bytes, before %" PRIu64 "\n", pages,
		       is.data_bytes, was.data_bytes);
	return 0;
}

int cmd_store(struct cli *cli, int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (strcmp(what, "stat") == 0 && argc == 2)
		return stat_(cli);
	if (strcmp(what, "check") == 0)
		return check(cli, argc - 1, argv + 1);
	if (strcmp(what, "prune") == 0 && argc == 2)
		return prune(cli);
	if (strcmp(what, "compact") == 0 && argc == 2)
		return compact(cli);
	if (strcmp(what, "backup") == 0 && argc == 3 && argv[2][0] != '-')
		return store_backup(cli, argv[2]);
	if (strcmp(what, "restore") == 0 && argc >= 3 && argc <= 4 && argv[argc - 1][0] != '-' &&
	    (argc == 3 || strcmp(argv[2], "--keep-tokens") == 0))
		return store_restore(cli, argv[argc - 1], argc == 4);
	return usage(
	    "store stat | check [--contents | BACKUP] | prune | compact | backup DIR | restore [--keep-tokens] DIR");
}
