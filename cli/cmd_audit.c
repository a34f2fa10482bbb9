/* pinfold audit verify|tail: for root, with or without the service running. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/audit.h"
#include "cli/cli.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/place.h"

enum { PAUSE_MS = 300, TAIL_LINES = 20, TAIL_MOST = 100000 };

/* Files of the service's user are opened as what they should be, whatever that user made of them. */
static FILE *open_file(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		errno = EINVAL;
		return NULL;
	}
	FILE *f = fdopen(fd, "r");
	if (f == NULL)
		close(fd);
	return f;
}

static int not_opened(const char *path)
{
	const char *why = errno == EACCES   ? ": only root reads the audit log"
			  : errno == ENOENT ? ": the log begins when the service first runs; "
					      "a private instance is named by PINFOLD_ROOT"
					    : "";

	fprintf(stderr, "pinfold: %s: %s%s\n", path, strerror(errno), why);
	return EXIT_FAILED;
}

static void name_of(char path[512], unsigned k)
{
	snprintf(path, 512, k == 0 ? "%s/%s" : "%s/%s.%u", place_dir(PLACE_LOG), AUDIT_FILE, k);
}

static int print_fault(const struct cli *cli, const struct audit_walk *w)
{
	if (cli->json)
		printf("{\"ok\":false,\"file\":\"%s\",\"line\":%" PRIu64 ",\"why\":\"%s\"}\n", w->path, w->at, w->why);
	else
		fprintf(stderr, "%s:%" PRIu64 ": %s\n", w->path, w->at, w->why);
	return EXIT_FAILED;
}

static int walk(struct audit_walk *w, const char *path, bool may_lack, unsigned *files)
{
	FILE *f = open_file(path);

	if (f == NULL && may_lack && errno == ENOENT)
		return 0;
	if (f == NULL)
		return not_opened(path);
	++*files;
	snprintf(w->path, sizeof w->path, "%s", path);
	bool ok = audit_walk_file(w, f);
	fclose(f);
	return ok ? 0 : EXIT_FAILED;
}

/* Whole as long as the log was not rotated under our eyes. */
static ino_t newest(void)
{
	char path[512];
	struct stat st;

	name_of(path, 0);
	return stat(path, &st) == 0 ? st.st_ino : 0;
}

/* Every file of the log, oldest first, once more when it was rotated meanwhile. */
static int walk_log(struct audit_walk *w, unsigned *files, bool again)
{
	ino_t before = newest();
	char path[512];
	int status = 0;

	for (unsigned k = AUDIT_GENERATIONS_MAX + 1; k > 0 && status == 0; k--) {
		name_of(path, k - 1);
		status = walk(w, path, k > 1, files);
	}
	if (again && newest() != before) {
		*w = (struct audit_walk){0};
		*files = 0;
		return walk_log(w, files, false);
	}
	return status == 0 && !audit_walk_end(w) ? EXIT_FAILED : status;
}

int audit_walk_log(struct audit_walk *w, unsigned *files)
{
	return walk_log(w, files, true);
}

static int verify(const struct cli *cli, int argc, char **argv)
{
	struct audit_walk w = {0};
	unsigned files = 0;
	int status = argc == 0 ? audit_walk_log(&w, &files) : 0;

	for (int i = 0; i < argc && status == 0; i++)
		status = walk(&w, argv[i], false, &files);
	if (argc > 0 && status == 0 && !audit_walk_end(&w))
		status = EXIT_FAILED;
	if (status != 0)
		return w.why[0] != '\0' ? print_fault(cli, &w) : status;
	if (cli->json)
		printf("{\"ok\":true,\"files\":%u,\"lines\":%" PRIu64 ",\"first\":%" PRIu64 ",\"last\":%" PRIu64
		       ",\"torn\":%" PRIu64 ",\"undone\":%" PRIu64 ",\"lost\":%" PRIu64 "}\n",
		       files, w.lines, w.first_seq, w.seq, w.torn, w.gone, w.lost);
	else
		printf("the audit log is whole: %" PRIu64 " lines in %u files, numbers %" PRIu64 " to %" PRIu64
		       "%s; %" PRIu64 " cut short by a crash, %" PRIu64 " undone, %" PRIu64 " never written\n",
		       w.lines, files, w.first_seq, w.seq, w.first_seq > 1 ? " (older ones are gone)" : "", w.torn,
		       w.gone, w.lost);
	return 0;
}

/* The offset of the n-th last line. */
static off_t start_of(FILE *f, uint64_t n)
{
	char block[65536];
	off_t end = fseeko(f, 0, SEEK_END) == 0 ? ftello(f) : 0;

	for (off_t at = end; at > 0;) {
		size_t part = at > (off_t)sizeof block ? sizeof block : (size_t)at;
		at -= (off_t)part;
		if (fseeko(f, at, SEEK_SET) != 0 || fread(block, 1, part, f) != part)
			break;
		for (size_t i = part; i > 0; i--)
			if (block[i - 1] == '\n' && at + (off_t)i < end && n-- <= 1)
				return at + (off_t)i;
	}
	return 0;
}

/* Whole lines from where f stands; one without its end is left for the next time. */
static void print_lines(FILE *f)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	off_t at = ftello(f);

	while ((n = getline(&line, &room, f)) > 0 && line[n - 1] == '\n') {
		say_foreign(stdout, line, (size_t)n - 1);
		fputc('\n', stdout);
		at = ftello(f);
	}
	free(line);
	fflush(stdout);
	clearerr(f);
	(void)fseeko(f, at, SEEK_SET);
}

/* Goes on in the new file when the one at hand was rotated away. */
static void follow(FILE *f, const char *path)
{
	struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
	struct stat held, named;

	while (!ferror(stdout)) {
		nanosleep(&pause, NULL);
		/* First the look, then the rest of the old one: so nothing between is missed. */
		bool moved = stat(path, &named) == 0 && fstat(fileno(f), &held) == 0 && named.st_ino != held.st_ino;
		print_lines(f);
		FILE *next = moved ? open_file(path) : NULL;
		if (next == NULL)
			continue;
		fclose(f);
		f = next;
		print_lines(f);
	}
	fclose(f);
}

static int tail(int argc, char **argv)
{
	uint64_t lines = TAIL_LINES;
	bool on = false;
	char path[512];
	int opt;

	optind = 1;
	while ((opt = getopt(argc, argv, "n:f")) != -1) {
		if (opt == 'f')
			on = true;
		else if (opt != 'n' || !num_u64(optarg, strlen(optarg), 1, TAIL_MOST, &lines))
			return usage("audit tail takes -n NUMBER and -f");
	}
	if (optind < argc)
		return usage("audit tail takes -n NUMBER and -f");
	name_of(path, 0);
	FILE *f = open_file(path);
	if (f == NULL)
		return not_opened(path);
	(void)fseeko(f, start_of(f, lines), SEEK_SET);
	print_lines(f);
	if (on)
		follow(f, path);
	else
		fclose(f);
	return 0;
}

int cmd_audit(struct cli *cli, int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (strcmp(what, "verify") == 0 && (argc < 3 || argv[2][0] != '-'))
		return verify(cli, argc - 2, argv + 2);
	if (strcmp(what, "tail") == 0)
		return tail(argc - 1, argv + 1);
	return usage("audit verify [FILE...], or audit tail [-n N] [-f]");
}
