/*
 * pinfold store restore: brings a backup beside the store, whose own program then makes it the store. For root, while
 * the service does not run. This part only copies; what a restore takes away is decided in store/restore.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/conf_read.h"
#include "cli/store.h"
#include "lib/chan.h"
#include "lib/conf.h"
#include "lib/digest.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/place.h"

#define NEW "store.new"

bool store_user(uid_t *uid, gid_t *gid)
{
	static struct conf conf;
	own_fd int fd = bundle_new("pinfold-conf");

	if (fd < 0 || !conf_read(fd) || !bundle_seal(fd))
		return false;
	const char *why = conf_load(&conf, fd);
	const struct cf_role *role = why == NULL ? conf_role(&conf, "stored") : NULL;
	if (role == NULL)
		fprintf(stderr, "pinfold: the configuration does not fit together: %s\n", why != NULL ? why : "");
	else
		*uid = role->uid, *gid = role->gid;
	conf_free(&conf);
	return role != NULL;
}

static void become(const char *program, const char *const *args, int out)
{
	const char *argv[8] = {"pinfold-stored"};
	uid_t uid;
	gid_t gid;
	size_t n = 1;

	for (; *args != NULL && n < 7; args++)
		argv[n++] = *args;
	if (!store_user(&uid, &gid))
		_exit(1);
	if (dup2(out, 1) < 0 || setgroups(0, NULL) != 0 || setgid(gid) != 0 || setuid(uid) != 0) {
		fprintf(stderr, "pinfold: cannot become the store's user: %s\n", strerror(errno));
		_exit(1);
	}
	execv(program, (char *const *)(uintptr_t)argv);
	fprintf(stderr, "pinfold: %s: %s\n", program, strerror(errno));
	_exit(1);
}

int offline_run(const char *const *args, offline_line *row, void *with)
{
	char program[512], *line = NULL;
	int ends[2], status = 0;
	size_t room = 0;
	ssize_t n;

	snprintf(program, sizeof program, "%s/pinfold-stored", place_dir(PLACE_LIBEXEC));
	if (geteuid() != 0) {
		fprintf(stderr, "pinfold: only root can do this while the service does not run\n");
		return -1;
	}
	(void)fflush(NULL);
	if (pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0)
		become(program, args, ends[1]);
	close(ends[1]);
	FILE *f = fdopen(ends[0], "r");
	while (f != NULL && (n = getline(&line, &room, f)) > 0) {
		line[n - 1] = '\0';
		row(with, line);
	}
	free(line);
	if (f != NULL)
		fclose(f);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

enum store_lock store_locked(void)
{
	char path[512];

	snprintf(path, sizeof path, "%s/store/lock", place_dir(PLACE_STATE));
	own_fd int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return STORE_LOCK_UNKNOWN;
	return flock(fd, LOCK_EX | LOCK_NB) == 0 ? STORE_LOCK_FREE : STORE_LOCK_HELD;
}

struct copy {
	int from, to;
	uid_t uid;
	gid_t gid;
	const char *path;
	bool failed;
};

static bool fault(struct copy *c, const char *name)
{
	fprintf(stderr, "pinfold: %s/%s: %s\n", c->path, name, strerror(errno));
	c->failed = true;
	return false;
}

static bool folder(struct copy *c, const char *name)
{
	if (mkdirat(c->to, name, 0700) != 0)
		return errno == EEXIST ? true : fault(c, name);
	return fchownat(c->to, name, c->uid, c->gid, AT_SYMLINK_NOFOLLOW) == 0 ? true : fault(c, name);
}

/* Nothing of a backup is believed that was not compared: what was looked at before may be another file by now. */
static bool copy_bytes(struct copy *c, int from, int to, const char *name, uint64_t size, const char *sha256_hex)
{
	char block[65536], is_hex[SHA256_HEX];
	uint8_t is[SHA256_SIZE];
	uint64_t copied = 0;
	ssize_t n = 0;

	while (copied <= size && (n = read(from, block, sizeof block)) > 0) {
		if (!write_all(to, block, (size_t)n))
			return fault(c, name);
		copied += (uint64_t)n;
	}
	if (n < 0 || !sha256_fd(to, is, &copied))
		return fault(c, name);
	hex(is, sizeof is, is_hex);
	errno = ESTALE;
	return (copied == size && strcmp(is_hex, sha256_hex) == 0) || fault(c, name);
}

static bool copy_file(void *with, const char *name, uint64_t size, const char *sha256_hex)
{
	struct copy *c = with;
	char sub[16];

	if (strncmp(name, "blobs/", 6) == 0) {
		snprintf(sub, sizeof sub, "%.8s", name);
		if (!folder(c, "blobs") || !folder(c, sub))
			return false;
	}
	own_fd int from = openat(c->from, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	own_fd int to = openat(c->to, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (from < 0 || to < 0)
		return fault(c, name);
	if (!copy_bytes(c, from, to, name, size, sha256_hex))
		return false;
	return (fchown(to, c->uid, c->gid) == 0 && fsync(to) == 0) || fault(c, name);
}

/* A restore that did not come to its end left this, or one that did and was killed before it had set it aside. */
static bool set_aside(int state)
{
	char to[64];
	struct stat st;

	if (fstatat(state, NEW, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT;
	for (unsigned i = 0;; i++) {
		snprintf(to, sizeof to, "store.left-%lld.%u", (long long)time(NULL), i);
		if (renameat2(state, NEW, state, to, RENAME_NOREPLACE) == 0)
			break;
		if (errno != EEXIST)
			return false;
	}
	fprintf(stderr, "pinfold: %s/%s, which an earlier restore left, is now %s\n", place_dir(PLACE_STATE), NEW, to);
	return true;
}

static bool bring(const char *dir)
{
	struct manifest m;
	struct copy c = {.path = dir};
	own_fd int from = backup_open(dir);
	own_fd int state = open(place_dir(PLACE_STATE), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* All of it is looked at before anything is touched. */
	if (from < 0 || !manifest_verify(dir, from, &m))
		return false;
	if (!store_user(&c.uid, &c.gid))
		return false;
	if (state < 0 || !set_aside(state) || mkdirat(state, NEW, 0700) != 0) {
		fprintf(stderr, "pinfold: %s/%s: %s\n", place_dir(PLACE_STATE), NEW, strerror(errno));
		return false;
	}
	own_fd int to = openat(state, NEW, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	c.from = from;
	c.to = to;
	if (to < 0)
		return fault(&c, NEW);
	/* Until all of it is there the folder is root's, and nobody changes what is done below it by name. */
	const char *why = manifest_read(from, &m, copy_file, &c);
	if (why != NULL || c.failed)
		return false;
	/* Of the folders below it, too. */
	return (fchown(to, c.uid, c.gid) == 0 && syncfs(to) == 0) || fault(&c, NEW);
}

struct outcome {
	uint64_t runs, tokens;
	char how[16], aside[80];
};

static void take(void *with, const char *line)
{
	struct outcome *o = with;

	if (strncmp(line, "runs ", 5) == 0)
		(void)num_u64(line + 5, strlen(line + 5), 0, UINT64_MAX, &o->runs);
	else if (strncmp(line, "tokens ", 7) == 0)
		(void)num_u64(line + 7, strlen(line + 7), 0, UINT64_MAX, &o->tokens);
	else if (strncmp(line, "revocations ", 12) == 0)
		snprintf(o->how, sizeof o->how, "%s", line + 12);
	else
		fprintf(stderr, "%s\n", line);
}

static bool wrong(const char *what)
{
	fprintf(stderr, "pinfold: %s: %s\n", what, strerror(errno));
	return false;
}

/*
 * In one step, so that there is a store at every moment; the replaced one is set aside and never removed. Its lock is
 * held meanwhile: no service starts with it that would then write into what is set aside.
 */
static bool exchange(char aside[80])
{
	char stamp[32];
	time_t now = time(NULL);
	struct tm tm;
	struct stat st;
	own_fd int state = open(place_dir(PLACE_STATE), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool there = state >= 0 && fstatat(state, "store", &st, AT_SYMLINK_NOFOLLOW) == 0;
	own_fd int lock = there ? openat(state, "store/lock", O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;

	if (state < 0)
		return wrong(place_dir(PLACE_STATE));
	if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) != 0)
		return wrong("the service was started meanwhile, and the backup was not put in place");
	if (renameat2(state, NEW, state, "store", there ? RENAME_EXCHANGE : RENAME_NOREPLACE) != 0)
		return wrong("the backup cannot be put in place");
	(void)strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &tm));
	for (unsigned i = 0; there; i++) {
		snprintf(aside, 80, "store.before-%s.%u", stamp, i);
		if (renameat2(state, NEW, state, aside, RENAME_NOREPLACE) == 0)
			break;
		if (errno != EEXIST)
			return wrong("the replaced store is " NEW " and cannot be set aside");
	}
	return fsync(state) == 0 ? true : wrong(place_dir(PLACE_STATE));
}

static const char *sentence(const char *how)
{
	if (strcmp(how, "store") == 0)
		return "What was revoked since the backup is known from the store that was replaced.";
	if (strcmp(how, "audit") == 0)
		return "What was revoked since the backup is known from the audit log.";
	if (strcmp(how, "kept") == 0)
		return "What was revoked since the backup is NOT known, and --keep-tokens kept the others: revoke "
		       "what should not be valid.";
	return "What was revoked since the backup is not known, so all tokens were revoked: create new ones. "
	       "(--keep-tokens keeps them.)";
}

int store_restore(const struct cli *cli, const char *dir, bool keep_tokens)
{
	const char *args[] = {"--restore", place_dir(PLACE_STATE), place_dir(PLACE_LOG),
			      keep_tokens ? "--keep-tokens" : NULL, NULL};
	struct outcome o = {0};

	if (geteuid() != 0) {
		fprintf(stderr, "pinfold: only root restores a store\n");
		return EXIT_FAILED;
	}
	/* Before anything is copied; the store's own program looks again. */
	if (store_locked() == STORE_LOCK_HELD) {
		fprintf(stderr, "pinfold: the service has the store open: stop it first\n");
		return EXIT_FAILED;
	}
	if (!bring(dir))
		return EXIT_FAILED;
	if (offline_run(args, take, &o) != 0 || !exchange(o.aside))
		return EXIT_FAILED;
	if (cli->json)
		printf("{\"ok\":true,\"runsEnded\":%" PRIu64 ",\"tokensRevoked\":%" PRIu64
		       ",\"revocations\":\"%s\",\"aside\":\"%s\"}\n",
		       o.runs, o.tokens, o.how, o.aside);
	else
		printf("restored: %" PRIu64 " runs that had not ended are failed, %" PRIu64
		       " tokens were revoked. %s\n%s%s%s",
		       o.runs, o.tokens, sentence(o.how),
		       o.aside[0] != '\0' ? "The store that was replaced is now " : "", o.aside,
		       o.aside[0] != '\0' ? ".\n" : "");
	return 0;
}
