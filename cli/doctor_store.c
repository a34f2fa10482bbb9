/* Doctor: the store, its disk, the audit log and their clock. With the service where it runs, else from the files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "cli/audit.h"
#include "cli/doctor.h"
#include "cli/store.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/place.h"

enum { MB = 1 << 20, LOGS_MANY = 64, INODES_LEAST = 200, INODES_GOOD = 5000, SLACK_S = 5, LINES = 3, CHECK_CPU_S = 45 };

static bool store_path(struct doctor *d, char path[700], const char *name)
{
	snprintf(path, 700, "%s/store%s%s", place_dir(PLACE_STATE), name[0] != '\0' ? "/" : "", name);
	if (access(path, F_OK) == 0)
		return true;
	found(d, DOCTOR_SKIPPED, "%s: %s", path, strerror(errno));
	return false;
}

static void kind(struct doctor *d)
{
	static const struct {
		unsigned long magic;
		enum verdict verdict;
		const char *why;
	} rows[] = {{0x6969, DOCTOR_ERROR, "NFS: its locks and flushes are not what a store needs"},
		    {0xff534d42, DOCTOR_ERROR, "CIFS: its locks and flushes are not what a store needs"},
		    {0xfe534d42, DOCTOR_ERROR, "SMB: its locks and flushes are not what a store needs"},
		    {0x517b, DOCTOR_ERROR, "SMB: its locks and flushes are not what a store needs"},
		    {0x65735546, DOCTOR_ERROR, "FUSE: nobody knows what its flushes do"},
		    {0x01021997, DOCTOR_ERROR, "9p: its flushes are the host's business"},
		    {0x794c7630, DOCTOR_WARN, "an overlay: gone with the container"},
		    {0x01021994, DOCTOR_WARN, "a tmpfs: gone when the machine stops"},
		    {0x858458f6, DOCTOR_WARN, "a ramfs: gone when the machine stops, and it has no bound"}};
	char path[700];
	struct statfs s;

	if (!store_path(d, path, ""))
		return;
	if (statfs(path, &s) != 0) {
		found(d, DOCTOR_ERROR, "%s: %s", path, strerror(errno));
		return;
	}
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (((unsigned long)s.f_type & 0xffffffff) == rows[i].magic)
			found(d, rows[i].verdict, "%s is on %s", path, rows[i].why);
}

/* As store/floor.c does. */
static uint64_t floor_of(const struct statvfs *v)
{
	uint64_t eighth = (uint64_t)v->f_blocks * v->f_frsize / 8;

	return eighth < 3 * MB ? 3 * MB : eighth > 64 * MB ? 64 * MB : eighth;
}

static void space_of(struct doctor *d, const char *path, bool has_floor)
{
	struct statvfs v;

	if (statvfs(path, &v) != 0)
		return;
	uint64_t left = (uint64_t)v.f_bavail * v.f_frsize, floor = floor_of(&v);
	if ((v.f_flag & ST_RDONLY) != 0) {
		found(d, DOCTOR_ERROR, "%s is on a file system that is read-only", path);
		remedy(d, "mount it read-write; after an error of the disk, check that first");
	} else if (left < floor) {
		found(d, has_floor ? DOCTOR_ERROR : DOCTOR_WARN, "%s: %" PRIu64 " MB free%s", path, left / MB,
		      has_floor ? ", below the floor: new work is refused" : "");
	} else if (left < 2 * floor) {
		found(d, DOCTOR_WARN, "%s: %" PRIu64 " MB free; new work is refused below %" PRIu64, path, left / MB,
		      floor / MB);
	} else {
		found(d, DOCTOR_OK, "%s: %" PRIu64 " MB free", path, left / MB);
	}
}

static void space(struct doctor *d)
{
	char path[700];

	if (store_path(d, path, ""))
		space_of(d, path, true);
	space_of(d, place_dir(PLACE_LOG), false);
	if (d->sandboxd != 0)
		space_of(d, place_dir(PLACE_RUN), false);
}

static void inodes(struct doctor *d)
{
	char path[700];
	struct statvfs v;

	if (!store_path(d, path, "") || statvfs(path, &v) != 0 || v.f_files == 0)
		return; /* file systems that make them as needed say 0 */
	uint64_t left = v.f_favail;
	if (left < INODES_GOOD)
		found(d, left < INODES_LEAST ? DOCTOR_ERROR : DOCTOR_WARN, "%s: room for %" PRIu64 " more files", path,
		      left);
}

static void ballast(struct doctor *d)
{
	if (need_service(d) && !d->stats.ballast)
		found(d, DOCTOR_WARN, "the ballast was given up on a full disk, or there was never room for it");
}

static void checkpoint(struct doctor *d)
{
	if (!need_service(d))
		return;
	uint64_t now = clock_ms(), at = d->stats.checkpoint_at;
	if (d->stats.log_files_bytes > (uint64_t)LOGS_MANY * MB)
		found(d, DOCTOR_WARN, "the logs have %" PRIu64 " MB in %" PRIu64 " files: they are not removed",
		      d->stats.log_files_bytes / MB, d->stats.log_files);
	else if (at == 0)
		found(d, DOCTOR_OK, "none was needed since the start");
	else
		found(d, DOCTOR_OK, "%" PRIu64 " s ago; logs have %" PRIu64 " MB", at < now ? (now - at) / 1000 : 0,
		      d->stats.log_files_bytes / MB);
}

static void online(struct doctor *d)
{
	uint8_t after[600];
	struct st_store_checked got;
	struct st_store_check m = {.after = {after, 0}};
	uint64_t rows = 0, n = 0;

	do {
		struct wire_bytes part;
		struct st_text text;
		bool bad = false;
		enum err e = st_call_store_check(d->admin, &m, NULL, &got, NULL);
		if (e != ERR_OK) {
			found(d, DOCTOR_WARN, "could not be looked at to the end: %s", err_code(e));
			return;
		}
		while (n < LINES && wire_list_next(&got.texts, &part, &bad) && st_get_text(part.p, part.n, &text))
			found(d, n++ < LINES ? DOCTOR_ERROR : DOCTOR_OK, "%s", text.text);
		rows += got.rows;
		if (got.findings > 0)
			found(d, DOCTOR_ERROR, "%u findings", got.findings);
		memcpy(after, got.after.p, got.after.n);
		m.after.n = got.after.n;
		m.table = got.table;
	} while (!got.done);
	found(d, DOCTOR_OK, "%" PRIu64 " rows fit together", rows);
}

static void offline_line_(void *with, const char *line)
{
	struct doctor *d = with;

	if (strncmp(line, "rows ", 5) == 0)
		found(d, DOCTOR_OK, "%s fit together", line);
	else
		found(d, DOCTOR_ERROR, "%s", strncmp(line, "finding ", 8) == 0 ? line + 8 : line);
}

/* A damaged store can keep its recovery busy for ever: whoever looks at it gets so much of the processor, and no more.
 */
static int offline(struct doctor *d)
{
	const char *args[] = {"--check", place_dir(PLACE_STATE), NULL};
	struct rlimit was, some;

	if (getrlimit(RLIMIT_CPU, &was) != 0)
		return -1;
	some = (struct rlimit){.rlim_cur = CHECK_CPU_S, .rlim_max = was.rlim_max};
	if (setrlimit(RLIMIT_CPU, &some) != 0)
		return -1;
	int status = offline_run(args, offline_line_, d);
	setrlimit(RLIMIT_CPU, &was);
	return status;
}

static void records(struct doctor *d)
{
	char path[700];

	if (d->admin != NULL) {
		online(d);
	} else if (store_path(d, path, "pinfold.db") && need_conf(d)) {
		if (store_locked() != STORE_LOCK_FREE)
			found(d, DOCTOR_SKIPPED, "something holds the store, and does not answer");
		else if (offline(d) != 0)
			found(d, DOCTOR_ERROR, "it is refused, or could not be looked at within %d s of the processor",
			      CHECK_CPU_S);
	}
}

/* The newest of the files that only the service writes. */
static void newest(const char *dir, const char *begin, time_t *at, char name[300])
{
	DIR *list = opendir(dir);
	struct stat st;

	for (struct dirent *e; list != NULL && (e = readdir(list)) != NULL;)
		if (strncmp(e->d_name, begin, strlen(begin)) == 0 &&
		    fstatat(dirfd(list), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_mtim.tv_sec > *at) {
			*at = st.st_mtim.tv_sec;
			snprintf(name, 300, "%s", e->d_name);
		}
	if (list != NULL)
		closedir(list);
}

static void clock_(struct doctor *d)
{
	char dir[700], name[300] = "";
	time_t now = time(NULL), at = 0;

	snprintf(dir, sizeof dir, "%s/store", place_dir(PLACE_STATE));
	newest(dir, "log.", &at, name);
	newest(dir, "pinfold.db", &at, name);
	newest(place_dir(PLACE_LOG), AUDIT_FILE, &at, name);
	if (at > now + SLACK_S)
		found(d, DOCTOR_ERROR, "the clock is %lld s behind what was written to %s", (long long)(at - now),
		      name);
	if (d->admin != NULL && d->stats.checkpoint_at > clock_ms() + SLACK_S * 1000)
		found(d, DOCTOR_ERROR, "the clock is behind the last checkpoint");
}

/* May the store's user write there? By mode and owner: root could always. */
static void log_writable(struct doctor *d)
{
	const struct cf_role *r = d->have_conf ? conf_role(&d->conf, "stored") : NULL;
	char path[700];
	struct stat st;
	struct statvfs v;
	uint64_t lost = 0;

	if (!need_conf(d) || r == NULL)
		return;
	snprintf(path, sizeof path, "%s/%s", place_dir(PLACE_LOG), AUDIT_FILE);
	if (doctor_metric(d, "pinfold_audit_lost_total", &lost) && lost > 0) {
		found(d, DOCTOR_ERROR, "%" PRIu64 " lines could not be written since the start", lost);
		remedy(d, "make room on the disk of %s; what was lost is said in the log itself", place_dir(PLACE_LOG));
	}
	if (lstat(path, &st) != 0) {
		found(d, errno == ENOENT ? DOCTOR_WARN : DOCTOR_ERROR, "%s: %s", path, strerror(errno));
		remedy(d, "it is made when the service first writes to it");
		return;
	}
	if (!S_ISREG(st.st_mode) || st.st_uid != r->uid || (st.st_mode & 0600) != 0600) {
		found(d, DOCTOR_ERROR, "%s: uid %u, mode %04o: the store's user (%u) cannot write to it", path,
		      st.st_uid, st.st_mode & 07777u, r->uid);
		remedy(d, "chown %u:%u %s; chmod 600 %s", r->uid, r->gid, path, path);
	} else if ((st.st_mode & 077) != 0) {
		found(d, DOCTOR_ERROR, "%s is open to others (mode %04o)", path, st.st_mode & 07777u);
		remedy(d, "chmod 600 %s", path);
	}
	if (statvfs(place_dir(PLACE_LOG), &v) == 0 && (v.f_flag & ST_RDONLY) != 0)
		found(d, DOCTOR_ERROR, "%s is on a file system that is read-only", place_dir(PLACE_LOG));
}

static void chain(struct doctor *d)
{
	struct audit_walk w = {0};
	char path[700];
	unsigned files = 0;

	snprintf(path, sizeof path, "%s/%s", place_dir(PLACE_LOG), AUDIT_FILE);
	if (access(path, F_OK) != 0)
		found(d, DOCTOR_SKIPPED, "%s: %s", path, strerror(errno));
	else if (audit_walk_log(&w, &files) == 0)
		found(d, DOCTOR_OK, "%" PRIu64 " lines in %u files, numbers %" PRIu64 " to %" PRIu64, w.lines, files,
		      w.first_seq, w.seq);
	else if (w.why[0] != '\0')
		found(d, DOCTOR_ERROR, "%s:%" PRIu64 ": %s", w.path, w.at, w.why);
	else
		found(d, DOCTOR_ERROR, "%s cannot be read", path);
}

const struct doctor_check doctor_store[] = {
    {"store.filesystem", "the store is on a file system of this machine that keeps what it is told",
     "systemctl stop pinfold, mv the store's folder to a disk of this machine (ext4, xfs, btrfs), mount that there by "
     "/etc/fstab",
     kind},
    {"disk.space", "free space is well above the floor", "make room: pinfold store prune, pinfold rm, or a larger disk",
     space},
    {"disk.inodes", "there is room for more files",
     "df -i and du --inodes show who has them: remove files, or mkfs with more inodes", inodes},
    {"disk.ballast", "the ballast for a full disk is there",
     "make room (pinfold store prune): the service makes new ballast by itself", ballast},
    {"store.checkpoint", "checkpoints come and logs are removed",
     "journalctl -u pinfold; is a pinfold store backup under way that does not end?", checkpoint},
    {"store.records", "the records of the store fit together",
     "pinfold store check names what; pinfold store restore the last backup", records},
    {"clock.store", "the clock is not before what was written last",
     "set the clock right: timedatectl set-ntp true; what had expired stays expired", clock_},
    {"log.writable", "the audit log can be written, and nothing was lost", "chown and chmod it as said", log_writable},
    {"audit.chain", "the chain of the audit log is whole",
     "keep the files as they are, and find out who changed them: pinfold audit verify", chain},
    {0}};
