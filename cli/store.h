/* What the commands of "pinfold store" share. */
#ifndef CLI_STORE_H
#define CLI_STORE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/cli.h"

/* --- cli/store_backup.c --- */
int store_backup(const struct cli *cli, const char *dir);

/* --- cli/manifest.c: the file "manifest" of a backup, its last ------------------------------- */
enum { MANIFEST_NAME = 80 };
/* One file of a backup; false ends the reading. */
typedef bool manifest_file(void *with, const char *name, uint64_t size, const char *sha256_hex);
struct manifest {
	uint32_t schema;
	uint64_t generation, at, audit_seq, files, bytes;
	bool tables; /* pinfold.db is among the files */
};
/* The same from its text, which is changed and ends with NUL. */
const char *manifest_parse(char *text, struct manifest *m, manifest_file *row, void *with);
/* Reads it and calls row for each file; NULL, or what is wrong with it. Names are only such as a backup has. */
const char *manifest_read(int dir, struct manifest *m, manifest_file *row, void *with);
/* Every file is there and as the manifest says. True, or it is said on standard error. */
bool manifest_verify(const char *path, int dir, struct manifest *m);
/* Opens a backup's folder; -1 after saying why not. */
int backup_open(const char *path);

/* --- cli/store_restore.c --- */
int store_restore(const struct cli *cli, const char *dir, bool keep_tokens);
/* Runs pinfold-stored by hand as the store's user; its lines go to row. Returns its exit status, or -1. */
typedef void offline_line(void *with, const char *line);
int offline_run(const char *const *args, offline_line *row, void *with);
/* Has a service the store open? Unknown where there is none, or this is not root. */
enum store_lock { STORE_LOCK_UNKNOWN, STORE_LOCK_FREE, STORE_LOCK_HELD };
enum store_lock store_locked(void);
/* The store's user, from the configuration. False after saying why not. */
bool store_user(uid_t *uid, gid_t *gid);
#endif
