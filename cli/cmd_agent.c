/*
 * pinfold agent: installs agents that npm distributes into a folder of root's that every sandbox sees read-only, at the
 * versions and digests of lock files that came with Pinfold. Nothing is fetched when a run starts, and no script of a
 * package ever runs.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/agent.h"
#include "cli/agent_test.h"
#include "cli/cli.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/place.h"

/* A sandbox has the machine's /usr, so this needs nothing of sandboxd. */
#define AGENTS_FOLDER "/usr/local/lib/pinfold/agents"
/* 2 GB of files: four times what the largest of them needs. */
enum { UNPACKED_MAX = 2000000000, PROFILE_MAX = 100000, OPEN_FOLDERS = 16 };

static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

static bool failed(const char *what)
{
	say_wrong(what, strerror(errno));
	return false;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static bool remove_tree(const char *path)
{
	return nftw(path, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) == 0 || errno == ENOENT;
}

/* Everything into the working directory. */
static bool fetch_all(const struct agent_lock *l, const char *registry)
{
	struct agent_source *s = agent_source_open(registry, &stopped);
	unsigned long long left = UNPACKED_MAX;
	bool ok = s != NULL, terminal = isatty(STDERR_FILENO) == 1;

	for (size_t i = 0; i < l->npackages && ok && !stopped; i++) {
		const struct agent_package *p = &l->packages[i];
		if (terminal)
			fprintf(stderr, "\r\033[K%zu of %zu: %s %s", i + 1, l->npackages, p->name, p->version);
		own_fd int file = agent_fetch(s, p);
		ok = file >= 0 && agent_unpack(file, p->place, &left);
	}
	if (terminal)
		fputs("\r\033[K", stderr);
	if (s != NULL)
		agent_source_close(s);
	if (stopped)
		fputs("pinfold: stopped: nothing was installed\n", stderr);
	return ok && !stopped;
}

/* Where this version is, and what its program and Node.js are called there. */
struct installed {
	char folder[PATH_MAX / 2], program[PATH_MAX], node[PATH_MAX];
	bool there;
};

static struct installed installed(const struct agent_lock *l, const char *folder)
{
	struct installed i;

	snprintf(i.folder, sizeof i.folder, "%s/%s-%s", folder, l->name, l->version);
	snprintf(i.program, sizeof i.program, "%s/%s", i.folder, l->program);
	snprintf(i.node, sizeof i.node, "%s%s%s", i.folder, l->node[0] != '\0' ? "/" : "", l->node);
	i.there = access(i.program, R_OK) == 0;
	return i;
}

static bool may_run(const char *path)
{
	return chmod(path, 0755) == 0 || failed(path);
}

/* Whole or not at all: into a folder of another name, which gets its own when everything is on the disk. A signal is
 * obeyed before that, and what was fetched goes. */
static bool install(const struct agent_lock *l, const char *folder, const char *registry)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
	struct installed to = installed(l, folder);
	char temp[PATH_MAX];
	int keep = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	own_fd int back = keep;

	snprintf(temp, sizeof temp, "%s.new", to.folder);
	if (back < 0)
		return failed(".");
	if (!folders_make(folder, 0755))
		return failed(folder);
	own_fd int lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	if (lock >= 0 && (fstat(lock, &st) != 0 || st.st_uid != 0 || (st.st_mode & 022) != 0)) {
		say_wrong(folder, "must be root's and writable by nobody else: every sandbox runs what is there");
		return false;
	}
	if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) != 0) {
		say_wrong(folder, lock >= 0 ? "another \"pinfold agent\" is at work there" : strerror(errno));
		return false;
	}
	if (!remove_tree(temp) || mkdir(temp, 0755) != 0 || chdir(temp) != 0)
		return failed(temp);
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		signal(ends[i], on_signal);
	bool ok = fetch_all(l, registry) && may_run(l->program) && (l->node[0] == '\0' || may_run(l->node));
	if (ok) {
		sync();
		ok = rename(temp, to.folder) == 0 || failed(to.folder);
	}
	if (fchdir(back) != 0 || (!ok && !remove_tree(temp)))
		failed(temp);
	return ok;
}

/* The text of a profile with where things are. */
static void put_places(struct buf *b, const char *text, const struct installed *at)
{
	const struct {
		const char *mark, *value;
	} places[] = {{"@program@", at->program}, {"@node@", at->node}, {"@folder@", at->folder}};

	while (*text != '\0') {
		size_t i = 0, n = sizeof places / sizeof *places;
		while (i < n && strncmp(text, places[i].mark, strlen(places[i].mark)) != 0)
			i++;
		if (i < n) {
			buf_adds(b, places[i].value);
			text += strlen(places[i].mark);
		} else
			buf_addc(b, *text++);
	}
}

/* profiles.d/NAME.conf, unless there is one: the administrator's own is never changed. */
static bool make_profile(const struct agent_lock *l, const struct installed *at)
{
	char from[PATH_MAX], to[PATH_MAX];
	struct buf b;
	size_t n;

	snprintf(from, sizeof from, "%s/agents/%s.conf", place_dir(PLACE_DATA), l->name);
	snprintf(to, sizeof to, "%s/profiles.d/%s.conf", place_dir(PLACE_SYSCONF), l->name);
	own_free char *text = file_read(AT_FDCWD, from, PROFILE_MAX, &n);
	if (text == NULL)
		return failed(from);
	if (access(to, F_OK) == 0) {
		own_free char *mine = file_read(AT_FDCWD, to, PROFILE_MAX, &n);
		fprintf(stderr, "%s is kept as it is; %s is what this version comes with\n", to, from);
		if (mine != NULL && strstr(mine, at->folder) == NULL)
			fprintf(
			    stderr,
			    "pinfold: %s: its command does not name %s, so runs go on with what it names: correct it "
			    "there, or move it away and install again for a new one\n",
			    to, at->folder);
		return true;
	}
	buf_init(&b, 2 * PROFILE_MAX);
	put_places(&b, text, at);
	bool ok = buf_failed(&b) ? failed(to) : make_file(to, 0644, b.p, b.n);
	buf_free(&b);
	return ok;
}

/* What npm is configured for, where npm's own variable says it; an address of the machine's choice is compiled in
 * nowhere. */
static const char *registry_of(const char *named)
{
	static char address[1024];
	static const char *const variables[] = {"npm_config_registry", "NPM_CONFIG_REGISTRY"};

	for (size_t i = 0; named == NULL && i < sizeof variables / sizeof *variables; i++)
		named = getenv(variables[i]);
	if (named == NULL) {
		say_wrong("agent", "name the npm registry by --registry URL or npm_config_registry: \"npm config get "
				   "registry\" says which one npm asks");
		return NULL;
	}
	if ((strncmp(named, "https://", 8) != 0 && strncmp(named, "http://", 7) != 0) ||
	    (size_t)snprintf(address, sizeof address, "%s", named) >= sizeof address) {
		say_wrong("agent", "the registry must be an address that begins with https:// or http://");
		return NULL;
	}
	for (size_t n = strlen(address); n > 0 && address[n - 1] == '/'; n--)
		address[n - 1] = '\0';
	return address;
}

static int do_install(const char *name, const char *folder, const char *registry)
{
	struct agent_lock l;
	int status = EXIT_FAILED;

	if (agent_lock_read(&l, name)) {
		struct installed at = installed(&l, folder);
		if (at.there)
			fprintf(stderr, "%s %s is in %s\n", l.name, l.version, at.folder);
		else if ((registry = registry_of(registry)) != NULL && install(&l, folder, registry)) {
			at.there = true;
			fprintf(stderr, "installed %s %s (licence: %s) in %s\n", l.name, l.version, l.licence,
				at.folder);
		}
		if (at.there && make_profile(&l, &at)) {
			fprintf(stderr,
				"next: \"pinfold config reload\", \"pinfold agent test %s\", then \"pinfold run "
				"--agent %s ...\"; a tenant with a list of agents must have it there\n",
				l.name, l.name);
			status = EXIT_COMPLETED;
			if (strncmp(folder, "/usr/", 5) != 0)
				say_wrong(folder, "is not below /usr: sandboxes do not show it, and runs of this agent "
						  "fail until its folder and its profile's command are");
		}
	}
	agent_lock_free(&l);
	return status;
}

static int do_remove(const char *name, const char *folder)
{
	struct agent_lock l;
	int status = EXIT_FAILED;

	if (agent_lock_read(&l, name)) {
		struct installed at = installed(&l, folder);
		char gone[PATH_MAX];
		snprintf(gone, sizeof gone, "%s.new", at.folder);
		/* At once for whoever starts it now; a sandbox that has it open goes on. */
		if (!at.there)
			say_wrong(name, "it is not installed");
		else if (rename(at.folder, gone) != 0 || !remove_tree(gone))
			failed(at.folder);
		else {
			fprintf(stderr, "removed %s; its profile stays: remove %s/profiles.d/%s.conf as well\n",
				at.folder, place_dir(PLACE_SYSCONF), l.name);
			status = EXIT_COMPLETED;
		}
	}
	agent_lock_free(&l);
	return status;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_lock(const struct dirent *d)
{
	size_t n = strlen(d->d_name);
	return n > 5 && n < AGENT_NAME && strcmp(d->d_name + n - 5, ".lock") == 0;
}

static int do_list(const struct cli *cli, const char *folder)
{
	char path[PATH_MAX];
	struct dirent **found;

	snprintf(path, sizeof path, "%s/agents", place_dir(PLACE_DATA));
	int n = scandir(path, &found, is_lock, by_name);
	if (n < 0) {
		failed(path);
		return EXIT_FAILED;
	}
	fputs(cli->json ? "{\"agents\":[" : "AGENT         VERSION       INSTALLED  PROFILE  LICENCE\n", stdout);
	for (int i = 0, told = 0; i < n; i++) {
		struct agent_lock l;
		found[i]->d_name[strlen(found[i]->d_name) - 5] = '\0';
		if (agent_lock_read(&l, found[i]->d_name)) {
			struct installed at = installed(&l, folder);
			snprintf(path, sizeof path, "%s/profiles.d/%s.conf", place_dir(PLACE_SYSCONF), l.name);
			bool profile = access(path, F_OK) == 0;
			/* All of these are of plain letters: agent_lock_read() */
			if (cli->json)
				printf("%s{\"name\":\"%s\",\"version\":\"%s\",\"licence\":\"%s\",\"installed\":%s,"
				       "\"profile\":%s,\"folder\":\"%s\"}",
				       told++ > 0 ? "," : "", l.name, l.version, l.licence, at.there ? "true" : "false",
				       profile ? "true" : "false", at.folder);
			else
				printf("%-13s %-13s %-10s %-8s %s\n", l.name, l.version, at.there ? "yes" : "no",
				       profile ? "yes" : "no", l.licence);
		}
		agent_lock_free(&l);
		free(found[i]);
	}
	free(found);
	if (cli->json)
		puts("]}");
	return fflush(stdout) == 0 ? EXIT_COMPLETED : EXIT_FAILED;
}

/* Whatever profile the configuration has may be tested, also one that nobody installed by a lock. */
static int do_test(struct cli *cli, const char *name, const char *folder)
{
	char path[PATH_MAX], hint[PATH_MAX + 200] = "profiles.d has those that there are";
	struct agent_lock l;

	snprintf(path, sizeof path, "%s/agents/%s.lock", place_dir(PLACE_DATA), name);
	if (id_valid(name) && access(path, F_OK) == 0 && agent_lock_read(&l, name)) {
		struct installed at = installed(&l, folder);
		snprintf(hint, sizeof hint, "%s \"pinfold agent install %s\" makes it",
			 at.there ? "it is installed, but its profile is gone;" : "it is not installed;", l.name);
		agent_lock_free(&l);
	}
	return agent_test(cli, name, hint);
}

int cmd_agent(struct cli *cli, int argc, char **argv)
{
	const char *folder = AGENTS_FOLDER, *registry = NULL, *name = NULL, *verb = argc > 1 ? argv[1] : "";

	for (int i = 2; i < argc; i++) {
		bool address = strcmp(argv[i], "--registry") == 0, place = strcmp(argv[i], "--folder") == 0;
		if ((address || place) && i + 1 >= argc)
			return usage("%s takes a value", argv[i]);
		if (address)
			registry = argv[++i];
		else if (place) {
			folder = argv[++i];
			if (folder[0] != '/' || !agent_place_valid(folder + 1))
				return usage("--folder takes an absolute path of plain names, without .. and without a "
					     "/ at its end");
		} else if (argv[i][0] == '-')
			return usage("unknown option %s", argv[i]);
		else if (name != NULL)
			return usage("one agent at a time: %s, then %s", name, argv[i]);
		else
			name = argv[i];
	}
	if (strcmp(verb, "list") == 0 && name == NULL)
		return do_list(cli, folder);
	bool install = strcmp(verb, "install") == 0, test = strcmp(verb, "test") == 0;
	if (name == NULL || (!install && !test && strcmp(verb, "remove") != 0))
		return usage("agent list, agent install NAME, agent remove NAME or agent test NAME");
	if (geteuid() != 0) {
		say_wrong("agent", test ? "only root may: a test changes the configuration for its time"
					: "only root may: every sandbox runs what is installed there");
		return EXIT_FAILED;
	}
	if (test)
		return do_test(cli, name, folder);
	umask(022); /* every sandbox is to read it */
	return install ? do_install(name, folder, registry) : do_remove(name, folder);
}
