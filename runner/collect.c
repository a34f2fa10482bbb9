/*
 * Walks what the agent left and copies it. Trusts no name, type, size or depth in it.
 * No process of the agent's exists any more, so nothing moves; even so every step starts from an open
 * folder, follows no link, and an opened file must be the one that was looked at. Two folders are open
 * at a time however deep the tree is; names are kept on the heap, within NAMES_MAX bytes for all levels.
 * It never opens a FIFO, socket or device, and never reads what it does not report.
 */
#include "runner/collect.h"
#include "lib/own.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum {
	NAMES_MAX = 16 << 20,
	PATH_BYTES = 4096,
	DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
};
enum entry_type {
	ENTRY_FILE = 1,
	ENTRY_LINK = 3,
	ENTRY_OTHER = 4,
	ENTRY_TOO_LARGE = 5,
	ENTRY_UNREADABLE = 6,
	ENTRY_CREDENTIAL = 7
};

/* One folder between the root and the current one. */
struct level {
	struct level *up;
	char *names;  /* NUL-terminated, one behind the other */
	char **order; /* of them, sorted */
	size_t bytes, count, next, path_n;
	dev_t dev;
	ino_t ino;
};

struct walk {
	const struct warden *w;
	struct result *r;
	const struct bn_go *limits;
	const struct keymask *mask;
	struct level *top;
	int fd; /* the current folder */
	char path[PATH_BYTES + 1];
	size_t names_held;
	uint64_t content_bytes, frame_bytes;
	uint32_t entries, folders;
	uint8_t *content;
	bool full; /* a limit was reached */
};

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void level_free(struct walk *k, struct level *v)
{
	k->names_held -= v->bytes;
	free(v->names);
	free(v->order);
	free(v);
}

/* Adds one name, within the limit for all names. */
static bool level_name(struct walk *k, struct level *v, size_t *room, const char *name)
{
	size_t n = strlen(name) + 1, grown = *room ? *room * 2 : 1024;
	if (k->names_held + n + sizeof(char *) > NAMES_MAX)
		return false;
	if (v->bytes + n > *room) {
		char *more = realloc(v->names, grown);
		if (!more)
			return false;
		v->names = more;
		*room = grown;
	}
	memcpy(v->names + v->bytes, name, n);
	v->bytes += n;
	v->count++;
	k->names_held += n;
	return true;
}

/* Reads the names of an open folder. A folder that cannot be held whole sets full. */
static bool level_read(struct walk *k, struct level *v, int fd)
{
	char buf[32768] __attribute__((aligned(8)));
	size_t room = 0;
	ssize_t n;
	while (!k->full && (n = getdents64(fd, buf, sizeof buf)) != 0) {
		if (n < 0)
			return false;
		for (ssize_t at = 0; at < n && !k->full;) {
			const struct dirent64 *d = (const void *)(buf + at);
			at += d->d_reclen;
			bool dots = !strcmp(d->d_name, ".") || !strcmp(d->d_name, "..");
			/* The repository the runner made: the judge makes its own patch, nobody reads this one. */
			bool repository = !v->up && !strcmp(d->d_name, ".git");
			if (!dots && !repository && !level_name(k, v, &room, d->d_name))
				k->full = true;
		}
	}
	v->order = malloc((v->count + 1) * sizeof *v->order);
	if (!v->order)
		return false;
	char *p = v->names;
	for (size_t i = 0; i < v->count; i++, p += strlen(p) + 1)
		v->order[i] = p;
	if (v->count)
		qsort(v->order, v->count, sizeof *v->order, by_bytes);
	return true;
}

/* Reports the current path. False when the result cannot be written. */
static bool report(struct walk *k, size_t path_n, const struct stat *st, enum entry_type type,
		   struct wire_bytes content)
{
	char path[PATH_BYTES];
	/* A key of the agent's, in a name or in a content: that it was there is said, and nothing of it is kept. */
	if (keymask_holds(k->mask, k->path, path_n) || keymask_holds(k->mask, content.p, content.n)) {
		memcpy(path, k->path, path_n);
		struct bn_entry found = {.type = ENTRY_CREDENTIAL,
					 .path = {(uint8_t *)path, (uint32_t)keymask_hide(k->mask, path, path_n)}};
		k->full = k->full || k->entries >= k->limits->max_files;
		k->entries += !k->full;
		return k->full || result_entry(k->r, &found);
	}
	struct bn_entry e = {.path = {(const uint8_t *)k->path, (uint32_t)path_n},
			     .type = (uint8_t)type,
			     .executable = st && S_ISREG(st->st_mode) && (st->st_mode & S_IXUSR),
			     .size = st && S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0,
			     .content = content};
	if (k->entries >= k->limits->max_files || k->content_bytes + content.n > k->limits->max_bytes ||
	    k->frame_bytes + path_n + content.n > k->limits->max_bytes + 1000000) {
		k->full = true;
		return true;
	}
	k->entries++;
	k->content_bytes += content.n;
	k->frame_bytes += path_n + content.n + 64;
	return result_entry(k->r, &e);
}

/*
 * Reads a regular file of exactly the size that was looked at. Returns what it turned out to be.
 * Opening cannot block: the type is known, and O_NONBLOCK covers a name that changed.
 */
static enum entry_type read_file(int dir, const char *name, const struct stat *seen, uint8_t *to, size_t max)
{
	struct stat st;
	own_fd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || st.st_ino != seen->st_ino || st.st_dev != seen->st_dev || !S_ISREG(st.st_mode))
		return ENTRY_UNREADABLE;
	size_t want = (size_t)seen->st_size, have = 0;
	if (seen->st_size < 0 || want > max)
		return ENTRY_TOO_LARGE;
	while (have < want) {
		ssize_t n = pread(fd, to + have, want - have, (off_t)have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return ENTRY_UNREADABLE;
		have += (size_t)n;
	}
	return ENTRY_FILE;
}

static bool do_file(struct walk *k, const char *name, size_t path_n, const struct stat *st)
{
	struct wire_bytes none = {0};
	size_t max = k->limits->max_file_bytes;
	if (S_ISLNK(st->st_mode))
		return report(k, path_n, st, ENTRY_LINK, none);
	/* A second name of a file may be one that is not ours to read. */
	if (!S_ISREG(st->st_mode) || st->st_nlink > 1)
		return report(k, path_n, st, ENTRY_OTHER, none);
	if (k->content_bytes + (uint64_t)st->st_size > k->limits->max_bytes && (uint64_t)st->st_size <= max) {
		k->full = true; /* known without reading it */
		return true;
	}
	enum entry_type type = read_file(k->fd, name, st, k->content, max);
	struct wire_bytes content = {k->content, (uint32_t)st->st_size};
	return report(k, path_n, st, type, type == ENTRY_FILE ? content : none);
}

/* Goes down into a folder, or reports it when that is impossible. False on a broken result. */
static bool enter(struct walk *k, int dir, const char *name, size_t path_n, const struct stat *st)
{
	struct wire_bytes none = {0};
	struct stat now;
	own_fd int fd = openat(dir, name, DIR_FLAGS);
	struct level *v = calloc(1, sizeof *v);
	if (!v)
		return false;
	*v = (struct level){.up = k->top, .path_n = path_n, .dev = st->st_dev, .ino = st->st_ino};
	k->folders++;
	if (fd < 0 || fstat(fd, &now) || now.st_ino != st->st_ino || now.st_dev != st->st_dev ||
	    (k->top && st->st_dev != k->top->dev) || !level_read(k, v, fd)) {
		level_free(k, v);
		return report(k, path_n, st, ENTRY_UNREADABLE, none);
	}
	k->top = v;
	if (k->fd >= 0)
		close(k->fd);
	k->fd = steal_fd(&fd);
	return true;
}

/* Back to the folder above, which must be the one we came from. */
static bool leave(struct walk *k)
{
	struct stat st;
	struct level *done = k->top;
	k->top = done->up;
	level_free(k, done);
	if (!k->top)
		return true;
	int up = openat(k->fd, "..", DIR_FLAGS);
	close(k->fd);
	k->fd = up;
	return up >= 0 && !fstat(up, &st) && st.st_ino == k->top->ino && st.st_dev == k->top->dev;
}

static bool do_name(struct walk *k, const char *name)
{
	struct stat st;
	struct wire_bytes none = {0};
	size_t base = k->top->path_n, n = strlen(name), path_n = base + (base ? 1 : 0) + n;
	if (path_n > PATH_BYTES) {
		/* It cannot be named: its folder is reported in its place, and left. */
		k->top->next = k->top->count;
		return report(k, base, NULL, ENTRY_UNREADABLE, none);
	}
	if (base)
		k->path[base] = '/';
	memcpy(k->path + path_n - n, name, n + 1);
	if (fstatat(k->fd, name, &st, AT_SYMLINK_NOFOLLOW))
		return report(k, path_n, NULL, ENTRY_UNREADABLE, none);
	if (!S_ISDIR(st.st_mode))
		return do_file(k, name, path_n, &st);
	if (k->folders > k->limits->max_files) {
		k->full = true; /* empty folders are not reported, but they are not free either */
		return true;
	}
	return enter(k, k->fd, name, path_n, &st);
}

static bool walk_tree(struct walk *k)
{
	while (k->top && !k->full) {
		struct level *v = k->top;
		if ((k->entries + k->folders) % 64 == 0)
			launch_check_control(k->w);
		if (!(v->next < v->count ? do_name(k, v->order[v->next++]) : leave(k)))
			return false;
	}
	return true;
}

static bool claim(struct walk *k, int workspace, int bridged)
{
	struct stat st;
	if (bridged >= 0 ? fstat(bridged, &st) || st.st_size == 0
			 : fstatat(workspace, "response.json", &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) ||
			       st.st_nlink > 1)
		return true;
	if (st.st_size > COLLECT_CLAIM_MAX)
		return true;
	own_free uint8_t *buf = malloc((size_t)st.st_size + 1);
	if (!buf)
		return false;
	if (bridged >= 0 ? pread(bridged, buf, (size_t)st.st_size, 0) != st.st_size
			 : read_file(workspace, "response.json", &st, buf, COLLECT_CLAIM_MAX) != ENTRY_FILE)
		return true;
	struct bn_claim m = {.response = {buf, (uint32_t)keymask_hide(k->mask, buf, (size_t)st.st_size)}};
	return result_claim(k->r, &m);
}

const char *collect(const struct warden *w, struct result *r, const struct bn_go *limits, const struct keymask *mask,
		    int bridged)
{
	struct bn_go within = *limits;
	struct walk k = {.w = w, .r = r, .limits = &within, .mask = mask, .fd = -1};
	struct stat st;
	if (within.max_file_bytes > 8000000)
		within.max_file_bytes = 8000000; /* what an ENTRY can carry */
	own_fd int workspace = open("/workspace", DIR_FLAGS);
	if (workspace < 0)
		return "/workspace cannot be opened";
	own_free uint8_t *content = malloc(within.max_file_bytes + 1);
	k.content = content;
	if (!content)
		return "out of memory";
	bool fine = true;
	if (fstatat(workspace, "source", &st, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(st.st_mode)) {
		/* The agent put something else in its place: there is nothing to collect, and that is said. */
		k.full = true;
	} else {
		fine = enter(&k, workspace, "source", 0, &st) && walk_tree(&k);
	}
	while (k.top) {
		struct level *v = k.top;
		k.top = v->up;
		level_free(&k, v);
	}
	if (k.fd >= 0)
		close(k.fd);
	struct bn_collected end = {.entries = k.entries, .complete = !k.full};
	return fine && claim(&k, workspace, bridged) && result_collected(r, &end) ? NULL
										  : "what was left cannot be collected";
}
