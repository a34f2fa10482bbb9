/* What an attempt came to. Everything here is the attacker's own word; the command judges it by the table. */
#ifndef ATTACK_TRIED_H
#define ATTACK_TRIED_H
#include <stdbool.h>

enum outcome { TRIED_HELD, TRIED_OPEN, TRIED_SKIPPED };

struct tried {
	enum outcome outcome;
	char detail[120]; /* one line for people */
};

/* The wall held; the attack succeeded; this machine has not what it would take to try. */
struct tried held(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
struct tried open_(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
struct tried skipped(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A call's result: below zero it was refused, whatever the error. */
struct tried refused(long rc);
/* It must not exist (ENOSYS); any other answer is the kernel's, which the filter should have kept away. */
struct tried absent(long rc);
/* It must be refused by the filter with just this error; any other answer is the kernel's. */
struct tried filtered(long rc, int error);
/* A descriptor that must not be had; it is closed. */
struct tried denied(int fd);
/* Held unless a is there and equal to b. what: for the detail. */
struct tried differs(const char *what, const char *a, const char *b);
/* Where something is mounted that belongs to no box; false: nothing is. */
bool foreign_mount(char at[200]);
/* The same path below that, or from above the root: where the machine's tree is hidden, and not gone. */
const char *past_root(const char *path, char above[600]);
/* Opens, or lists, what must not be there to open. */
struct tried cannot_open(const char *path, int flags);
struct tried cannot_list(const char *path);
/* What Landlock of this kernel can do, by its version; below 1: none. */
int landlock_abi(void);
/* Reads at most size - 1 bytes and ends them with a NUL; how many, or -1. */
long read_text(const char *path, char *to, unsigned long size);
#endif
