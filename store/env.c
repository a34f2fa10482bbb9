/*
 * Opens and keeps the Berkeley DB environment: private regions (this process is the only one), no lock
 * subsystem (this thread is the only one), recovery once, explicit sizes, logs removed after
 * checkpoints. Trusts the directory that sandboxd made; never opens one that another process holds.
 */
#include "gen/records.h"
#include "lib/conf.h"
#include "lib/die.h"
#include "lib/lack.h"
#include "lib/num.h"
#include "lib/own.h"
#include "store/bdb.h"
#include "store/push_clock.h"
#include "store/upgrade.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { CACHE_BYTES = 16 << 20, LOG_FILE = 2 << 20, LOG_BUFFER = 512 << 10, TXN_MAX = 32 };
enum { PUSH_MINUTE = 10, PUSH_HOUR = 30 /* where the configuration says nothing */ };
enum { CHECKPOINT_MS = 1000, CHECKPOINT_KB = 4096, LOOK_COMMITS = 64 };
#ifndef CIFS_SUPER_MAGIC
#define CIFS_SUPER_MAGIC 0xFF534D42
#endif
#ifndef SMB2_SUPER_MAGIC
#define SMB2_SUPER_MAGIC 0xFE534D42
#endif
#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif

const char *const table_names[T__COUNT] = {"tenant",
					   "token",
					   "run",
					   "run_by_age",
					   "run_open",
					   "capability",
					   "event",
					   "approval",
					   "artifact",
					   "blob",
					   "blob_content",
					   "blob_use",
					   "idempotency",
					   "idempotency_by_age",
					   "clock",
					   "operation",
					   "run_ended",
					   "meta",
					   "pairing",
					   "grant",
					   "waiting",
					   "receipt",
					   "push_subscription",
					   "push",
					   "push_due",
					   "push_budget",
					   "spent",
					   "source",
					   "source_by_use"};

/* Berkeley DB repeats itself hundreds of times on a full disk; it calls back without our pointer,
 * hence the file-static budget: eight lines a minute. */
static struct {
	uint64_t since;
	unsigned said;
} chatter;

static void on_message(const DB_ENV *env, const char *prefix, const char *text)
{
	(void)env;
	(void)prefix;
	uint64_t now = timer_ms();
	if (now - chatter.since > 60000) {
		chatter.since = now;
		chatter.said = 0;
	}
	if (chatter.said++ < 8)
		log_warn("Berkeley DB: %s", text);
}

enum err store_error(int why)
{
	enum err e = lack_told(why);
	return e == ERR_RESOURCES_EXHAUSTED ? ERR_STORE_UNAVAILABLE : e;
}

enum err bdb_error(struct store *s, int ret, const char *doing)
{
	if (ret == 0)
		return ERR_OK;
	if (ret == DB_RUNRECOVERY)
		fatal("the store needs recovery (%s): stopping, so that the next start recovers it", doing);
	bool space = ret == ENOSPC || ret == EDQUOT;
	/* A page that could not be written for want of space is reported as EIO. */
	if (space || ret == EIO) {
		struct statfs fs;
		if (space || (fstatfs(s->dir, &fs) == 0 && fs.f_bavail * (uint64_t)fs.f_bsize < (1 << 20))) {
			floor_drop(&s->floor);
			return ERR_STORAGE_FULL;
		}
	}
	log_error("store: %s: %s", doing, db_strerror(ret));
	return store_error(ret);
}

static void must(int ret, const char *doing)
{
	if (ret != 0)
		fatal("cannot open the store: %s: %s", doing, db_strerror(ret));
}

static int open_dir(const char *state_dir, const char *name)
{
	char path[300];
	if ((size_t)snprintf(path, sizeof path, "%s/%s", state_dir, name) >= sizeof path)
		fatal("the state directory's name is too long");
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		fatal("cannot make %s: %m", path);
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	if (dir < 0 || fstat(dir, &st) != 0)
		fatal("cannot open %s: %m", path);
	if (st.st_uid != geteuid())
		fatal("%s belongs to uid %u, not to this process's uid %u", path, (unsigned)st.st_uid,
		      (unsigned)geteuid());
	if ((st.st_mode & 07777) != 0700 && fchmod(dir, 0700) != 0)
		fatal("cannot make %s private: %m", path);
	struct statfs fs;
	if (fstatfs(dir, &fs) != 0)
		fatal("cannot look at the file system of %s: %m", path);
	switch ((uint32_t)fs.f_type) {
	case NFS_SUPER_MAGIC:
	case SMB_SUPER_MAGIC:
	case CIFS_SUPER_MAGIC:
	case SMB2_SUPER_MAGIC:
	case FUSE_SUPER_MAGIC:
		fatal("%s is on a network or FUSE file system, which cannot keep the store safe; use a local disk",
		      path);
	}
	return dir;
}

static int take_lock(int dir)
{
	int fd = openat(dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		fatal("cannot open the store's lock file: %m");
	if (flock(fd, LOCK_EX | LOCK_NB) != 0)
		fatal(errno == EWOULDBLOCK ? "another process owns this store; stop it first"
					   : "cannot lock the store: %m");
	return fd;
}

int store_lock(const char *state_dir, const char *name)
{
	own_fd int dir = open_dir(state_dir, name);
	return take_lock(dir);
}

/*
 * What an earlier life wrote and did not flush when it was killed looks whole to recovery, which takes it for
 * durable: pages would be flushed before the log that they come from. Were the machine to lose power then, the
 * store could not be recovered. So it is made durable first.
 */
static void flush_earlier_life(int store_dir)
{
	int at = openat(store_dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = at < 0 ? NULL : fdopendir(at);
	if (d == NULL)
		fatal("cannot read the store's folder: %m");
	for (struct dirent *f; (f = readdir(d)) != NULL;) {
		if (strncmp(f->d_name, "log.", 4) != 0 && strcmp(f->d_name, "pinfold.db") != 0)
			continue;
		own_fd int fd = openat(at, f->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0 || fsync(fd) != 0)
			fatal("cannot flush %s, which an earlier life of the store left: %m", f->d_name);
	}
	if (fsync(at) != 0)
		fatal("cannot flush the store's folder: %m");
	closedir(d);
}

static void open_env(struct store *s, const char *home)
{
	DB_ENV *env;
	must(db_env_create(&env, 0), "making a handle");
	env->set_errcall(env, on_message);
	must(env->set_cachesize(env, 0, CACHE_BYTES, 1), "cache size");
	must(env->set_tx_max(env, TXN_MAX), "number of transactions");
	must(env->set_lg_bsize(env, LOG_BUFFER), "log buffer");
	must(env->set_lg_max(env, LOG_FILE), "log file size");
	must(env->log_set_config(env, DB_LOG_AUTO_REMOVE, 1), "log removal");
	must(env->set_flags(env, DB_TXN_WRITE_NOSYNC, 1), "durability");
	must(
	    env->open(env, home, DB_CREATE | DB_INIT_MPOOL | DB_INIT_LOG | DB_INIT_TXN | DB_PRIVATE | DB_RECOVER, 0600),
	    "recovery");
	s->env = env;
}

static void open_table(struct store *s, enum table i)
{
	must(db_create(&s->db[i], s->env, 0), "making a table's handle");
	DB *db = s->db[i];
	must(db->set_pagesize(db, 4096), "page size");
	/* One file for all tables: a checkpoint then syncs one file. */
	int ret = db->open(db, NULL, "pinfold.db", table_names[i], DB_BTREE, DB_CREATE | DB_AUTO_COMMIT, 0600);
	/* Said so when pages are newer than the log's end. */
	if (ret == EINVAL)
		fatal("the store's logs are missing or belong to another copy of it: restore its whole folder");
	must(ret, table_names[i]);
}

static void open_tables(struct store *s)
{
	/* Before anything else of a store that a newer program wrote. */
	open_table(s, T_META);
	schema_check(s);
	for (enum table i = 0; i < T__COUNT; i++)
		if (i != T_META)
			open_table(s, i);
	must(s->env->log_flush(s->env, NULL), "writing the log");
}

static bool count_row(void *with, struct wire_bytes key, struct wire_bytes value)
{
	struct figures *f = with;
	struct rec_run_by_age v;
	(void)key;
	if (rec_get_run_by_age(value.p, value.n, &v) && v.state < RUN_STATE__COUNT)
		f->runs[v.state]++;
	return true;
}

static bool count_key(void *with, struct wire_bytes key, struct wire_bytes value)
{
	(void)key;
	(void)value;
	++*(int64_t *)with;
	return true;
}

struct store *store_open(const char *state_dir)
{
	return store_open_at(state_dir, "store");
}

struct store *store_open_at(const char *state_dir, const char *name)
{
	struct store *s = calloc(1, sizeof *s);
	if (s == NULL)
		fatal("no memory for the store");
	store_push_limits(s, 0, 0);
	s->dir = open_dir(state_dir, name);
	s->lock = take_lock(s->dir);
	char home[300];
	(void)snprintf(home, sizeof home, "%s/%s", state_dir, name);
	floor_start(&s->floor, s->dir);
	flush_earlier_life(s->dir);
	open_env(s, home);
	open_tables(s);
	floor_open(&s->floor);
	clock_open(s);
	push_clock_open(s);
	schema_upgrade(s);
	struct txn t;
	struct key all = {.n = 0};
	txn_init(&t, s, NULL);
	table_scan(&t, T_RUN_BY_AGE, &all, NULL, count_row, &s->figures);
	table_scan(&t, T_IDEMPOTENCY, &all, NULL, count_key, &s->figures.keys);
	table_scan(&t, T_PUSH_SUBSCRIPTION, &all, NULL, count_key, &s->figures.subscriptions);
	operations_open(&s->operations, &t);
	queues_open(&s->queues, &t);
	blobs_open(&s->blobs, s->dir, &t);
	if (txn_end(&t, ERR_OK) != ERR_OK)
		fatal("cannot read the store");
	txn_free(&t);
	s->log_grew = true;
	return s;
}

static void checkpoint(struct store *s, uint32_t kbytes)
{
	/* Recovery of a copy begins at the checkpoint before its first page was read. */
	if (s->held)
		return;
	int ret = s->env->txn_checkpoint(s->env, kbytes, 0, 0);
	if (ret != 0) {
		(void)bdb_error(s, ret, "checkpoint");
		if (!s->holding)
			log_warn("a checkpoint failed (%s); it will be tried again", db_strerror(ret));
	}
	s->holding = ret != 0;
	if (kbytes == 0)
		s->checkpointed = timer_ms();
	if (kbytes == 0 && ret == 0)
		s->checkpoint_at = clock_ms();
}

void store_checkpoint(struct store *s)
{
	checkpoint(s, 0);
}

void store_close(struct store *s)
{
	s->held = false;
	store_flush(s);
	checkpoint(s, 0);
	for (int i = 0; i < T__COUNT; i++)
		(void)s->db[i]->close(s->db[i], 0);
	int ret = s->env->close(s->env, 0);
	if (ret != 0)
		log_warn("closing the store: %s", db_strerror(ret));
	blobs_close(&s->blobs);
	queues_free(&s->queues);
	close(s->lock);
	close(s->dir);
	free(s);
}

void store_flush(struct store *s)
{
	if (!s->unflushed)
		return;
	struct timespec before, after;
	(void)clock_gettime(CLOCK_MONOTONIC, &before);
	int ret = s->env->log_flush(s->env, NULL);
	(void)clock_gettime(CLOCK_MONOTONIC, &after);
	hist_add(&s->flush,
		 (uint64_t)((after.tv_sec - before.tv_sec) * 1000000 + (after.tv_nsec - before.tv_nsec) / 1000));
	/* Commits in memory that are not on disk: nobody may see them. The next start recovers. */
	if (ret != 0)
		fatal("the store's log could not be flushed: %s", db_strerror(ret));
	s->unflushed = false;
	s->flushes++;
	if (!s->held)
		blobs_release(s);
}

bool store_owes(const struct store *s)
{
	return s->unflushed;
}

void store_turn(struct store *s)
{
	clock_turn(s);
	push_clock_turn(s);
	floor_turn(&s->floor);
}

int store_idle(struct store *s)
{
	if (!s->log_grew || s->held)
		return -1;
	uint64_t at = timer_ms();
	if (at - s->checkpointed < CHECKPOINT_MS) {
		/* Only when that much log was written. */
		if (s->commits - s->looked >= LOOK_COMMITS) {
			checkpoint(s, CHECKPOINT_KB);
			s->looked = s->commits;
		}
		return (int)(CHECKPOINT_MS - (at - s->checkpointed));
	}
	checkpoint(s, 0);
	s->log_grew = s->holding;
	return s->holding ? CHECKPOINT_MS : -1;
}

uint64_t store_now(const struct store *s)
{
	return s->now;
}

bool store_roomy(struct store *s)
{
	return floor_roomy(&s->floor);
}

bool store_gave_way(struct store *s)
{
	bool gave = s->floor.dropped;
	s->floor.dropped = false;
	return gave;
}

void store_audit(struct store *s, struct audit *a)
{
	s->audit = a;
}

void store_push_limits(struct store *s, uint32_t minute, uint32_t hour)
{
	s->push_minute = minute != 0 ? minute : PUSH_MINUTE;
	s->push_hour = hour != 0 ? hour : PUSH_HOUR;
}

struct blobs *store_blobs(struct store *s)
{
	return &s->blobs;
}

struct operations *store_operations(struct store *s)
{
	return &s->operations;
}

uint64_t store_stored(const struct store *s, const char *tenant)
{
	return queues_stored(&s->queues, tenant);
}

void store_conf(struct store *s, const struct conf *conf)
{
	s->conf = conf;
}

const struct cf_tenant *store_quotas(const struct store *s, const char *tenant)
{
	static const struct cf_tenant none;
	const struct conf_tenant *of = s->conf != NULL ? conf_tenant(s->conf, tenant) : NULL;
	return of != NULL ? &of->t : &none;
}

uint64_t store_source_ms(const struct store *s)
{
	uint64_t hours = s->conf != NULL ? s->conf->global.source_hours : 0;
	return (hours != 0 ? hours : 24) * 3600 * 1000;
}

const struct cf_agent *store_agent(const struct store *s, const char *name)
{
	return s->conf != NULL ? conf_agent(s->conf, name) : NULL;
}

uint64_t store_queued(const struct store *s, const char *tenant)
{
	return queues_of(&s->queues, tenant);
}
