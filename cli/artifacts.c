/*
 * pinfold artifacts: what an ended run left. A file is written under another name first, so that one that has its name
 * is whole; nothing that exists is replaced. A patch is applied by git, which is asked first whether all of it fits,
 * and which refuses paths outside of the folder.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/collect.h"
#include "lib/num.h"
#include "lib/own.h"

static int fetch(const struct cli *cli, const char *run, const char *name, struct http_answer *answer)
{
	char path[300];

	snprintf(path, sizeof path, "/v1/runs/%s/artifacts%s%s", run, name != NULL ? "/" : "",
		 name != NULL ? name : "");
	return http_call(cli, path, NULL, answer);
}

/* Without an argument that can be foreign: dir is the caller's own, name was looked at. */
static int not_saved(const char *dir, const char *name)
{
	char path[600];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	say_wrong(path, errno == EEXIST ? "is there already: remove it, or name another folder" : strerror(errno));
	return EXIT_FAILED;
}

static int save(const struct cli *cli, const char *run, const char *name, const char *dir, int at)
{
	struct http_answer answer;
	char part[160];
	int status = fetch(cli, run, name, &answer);

	if (status != 0)
		return status;
	snprintf(part, sizeof part, ".%s.part", name);
	own_fd int fd = openat(at, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
	bool ok = fd >= 0 && write_all(fd, answer.body.p, answer.body.n) && fsync(fd) == 0 &&
		  linkat(at, part, at, name, 0) == 0;
	int why = errno;
	if (fd >= 0)
		(void)unlinkat(at, part, 0);
	errno = why;
	if (!ok)
		status = not_saved(dir, name);
	else if (!cli->json)
		printf("%s/%s, %zu bytes\n", dir, name, answer.body.n);
	buf_free(&answer.body);
	return status;
}

/* name NULL: each of the list. */
static int save_all(const struct cli *cli, const char *run, const char *name, const char *dir)
{
	struct http_answer answer;
	own_arena struct arena a = {0};

	if (mkdir(dir, 0777) != 0 && errno != EEXIST)
		return not_saved(dir, "");
	own_fd int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return not_saved(dir, "");
	if (name != NULL)
		return save(cli, run, name, dir, at);
	int status = fetch(cli, run, NULL, &answer);
	if (status != 0)
		return status;
	arena_init(&a, 1 << 20);
	const struct json *v = json_parse(&a, answer.body.p, answer.body.n, JSON_DEPTH, 1000, NULL);
	const struct json *list = v != NULL && v->type == JSON_OBJECT ? json_get(v, "artifacts") : NULL;
	if (cli->json)
		say_json((const char *)answer.body.p, answer.body.n);
	buf_free(&answer.body);
	for (const struct json *m = list != NULL ? list->child : NULL; m != NULL && status == 0; m = m->next)
		if (id_valid(member(m, "name"))) /* no path is */
			status = save(cli, run, member(m, "name"), dir, at);
	return status;
}

/* git apply, in dir, with the patch as its input; 0 or its exit status. */
static int git_apply(const char *dir, int patch, bool only_look)
{
	/* Without a repository, whose settings could name programs (filters) and whose top the paths would be of; what
	 * was uploaded is what files are, not what a repository would make of them. */
	char git[] = "git", apply[] = "apply", look[] = "--check", none[] = "GIT_DIR=/dev/null";
	own_free char **env = git_environment(none);
	char *argv[] = {git, apply, only_look ? look : NULL, NULL};
	posix_spawn_file_actions_t acts;
	pid_t pid;
	int status = -1;

	if (env == NULL || lseek(patch, 0, SEEK_SET) != 0 || posix_spawn_file_actions_init(&acts) != 0)
		return -1;
	if (posix_spawn_file_actions_adddup2(&acts, patch, 0) == 0 &&
	    posix_spawn_file_actions_addchdir_np(&acts, dir) == 0 &&
	    posix_spawnp(&pid, "git", &acts, NULL, argv, env) == 0 && waitpid(pid, &status, 0) == pid)
		status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	posix_spawn_file_actions_destroy(&acts);
	return status;
}

static int apply(const struct cli *cli, const char *run, const char *dir)
{
	struct http_answer answer;
	int status = fetch(cli, run, "patch", &answer);

	if (status != 0)
		return status;
	size_t n = answer.body.n;
	own_fd int fd = memfd_create("patch", MFD_CLOEXEC);
	bool ok = fd >= 0 && write_all(fd, answer.body.p, n);
	buf_free(&answer.body);
	if (n == 0) {
		fputs("the run changed nothing\n", stderr);
		return 0;
	}
	status = ok ? git_apply(dir, fd, true) : -1;
	if (status == 0 && git_apply(dir, fd, false) == 0) {
		printf("the patch of run %s is applied\n", run);
		return 0;
	}
	say_wrong(dir, status < 0 || status == 127 ? "git could not be run: is it installed?"
						   : "the patch does not fit here, and nothing was changed: is it the "
						     "folder that was uploaded, as it was then?");
	return EXIT_FAILED;
}

static void list(const struct http_answer *answer)
{
	own_arena struct arena a;

	arena_init(&a, 1 << 20);
	const struct json *v = json_parse(&a, answer->body.p, answer->body.n, JSON_DEPTH, 1000, NULL);
	const struct json *rows = v != NULL ? json_get(v, "artifacts") : NULL;
	for (const struct json *m = rows != NULL ? rows->child : NULL; m != NULL; m = m->next) {
		int64_t size = 0;
		const struct json *s = json_get(m, "size");
		bool known = s != NULL && json_int(s, 0, INT64_MAX, &size);
		say_cell(member(m, "name"), known ? 13 : 0);
		if (known)
			printf("%lld bytes", (long long)size);
		putchar('\n');
	}
}

int cmd_artifacts(struct cli *cli, int argc, char **argv)
{
	static const struct option options[] = {{"apply", required_argument, NULL, 'a'}, {0}};
	struct http_answer answer;
	const char *dir = NULL, *tree = NULL;
	int opt;

	optind = 1;
	while ((opt = getopt_long(argc, argv, "o:", options, NULL)) != -1) {
		if (opt == 'o')
			dir = optarg;
		else if (opt == 'a')
			tree = optarg;
		else
			return usage("artifacts takes -o DIR and --apply DIR");
	}
	const char *run = one_run(argc, argv, 2);
	if (run == NULL)
		return EXIT_USAGE;
	const char *name = argc - optind > 1 ? argv[optind + 1] : NULL;
	if (name != NULL && !id_valid(name))
		return usage("an artifact is one of request events checkpoint patch test_log result transcript");
	if (tree != NULL && (dir != NULL || name != NULL))
		return usage("--apply takes the patch, and nothing else");
	if (tree != NULL)
		return apply(cli, run, tree);
	if (dir != NULL)
		return save_all(cli, run, name, dir);
	int status = fetch(cli, run, name, &answer);
	if (status != 0)
		return status;
	if (name == NULL && cli->json)
		say_json((const char *)answer.body.p, answer.body.n);
	else if (name != NULL && isatty(STDOUT_FILENO))
		say_lines(stdout, "", "", (const char *)answer.body.p,
			  answer.body.n); /* an agent or its program wrote some of it */
	else if (name != NULL)
		fwrite(answer.body.p, 1, answer.body.n, stdout); /* as it is: for files and pipes */
	else
		list(&answer);
	buf_free(&answer.body);
	return 0;
}
