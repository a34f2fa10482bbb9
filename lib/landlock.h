/*
 * Landlock: which files a process and all that it starts may touch, independent of mounts and modes. Handles every
 * right that the running kernel knows; numbers beyond the build's headers are spelt out.
 */
#ifndef LIB_LANDLOCK_H
#define LIB_LANDLOCK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LL_EXECUTE = 1 << 0, LL_WRITE_FILE = 1 << 1, LL_READ_FILE = 1 << 2, LL_READ_DIR = 1 << 3 };
enum { LL_READ = LL_READ_FILE | LL_READ_DIR, LL_ALL = 0 };
enum { LL_BIND_TCP = 1 << 0, LL_CONNECT_TCP = 1 << 1 };
enum { LL_ABI_LEAST = 2, LL_ABI_TRUNCATE = 3, LL_ABI_TCP = 4, LL_ABI_IOCTL = 5, LL_ABI_SCOPES = 6 };

struct landlock_rule {
	const char *path; /* a folder; one that is not there is passed over */
	uint64_t rights;  /* LL_ALL: every one */
};

/* 0: none. */
int landlock_abi(void);
/* Nothing but the rules' folders, none of the ways of TCP (LL_ bits), no signal and no abstract socket to outside,
 * where the kernel has these. For the calling thread and what it starts, for good; needs no_new_privs. False with
 * errno. */
bool landlock_enter(const struct landlock_rule *rules, size_t n, uint64_t tcp);
#endif
