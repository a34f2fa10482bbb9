/*
 * What the fault harness and the daemons' fault builds share: a small file, mapped by all of them, in which
 * the harness says which of the next system calls of which program shall fail, and how. tests/fault/faults.py
 * knows the same layout. Every number is 32 bits wide and of the machine's own order but for the clock.
 */
#ifndef TESTS_FAULT_SHIM_H
#define TESTS_FAULT_SHIM_H
#include <stdint.h>

enum { FAULT_MAGIC = 0x50464c54, FAULT_SLOTS = 6 };

enum fault_program {
	FAULT_SANDBOXD,
	FAULT_STORED,
	FAULT_GATEWAY,
	FAULT_FCGI,
	FAULT_STEWARD,
	FAULT_PUSH,
	FAULT_PROGRAMS
};

/* Kinds of calls that can be made to fail. */
enum fault_class {
	FAULT_NONE,
	FAULT_WRITE, /* write, pwrite, posix_fallocate, ftruncate; not to standard error */
	FAULT_SYNC,  /* fsync, fdatasync */
	FAULT_FD,    /* whatever makes a descriptor */
	FAULT_MEM,   /* malloc, calloc, realloc, mount, unshare, epoll_ctl */
	FAULT_SEND,  /* send, sendmsg */
	FAULT_RECV,  /* recvmsg */
	FAULT_WAKE,  /* sendmsg of a packet that wakes a subscriber of stored */
	FAULT_READ   /* pread */
};

enum fault_action {
	FAULT_ERRNO,      /* it fails with err; recvmsg with descriptors: they are cut off */
	FAULT_KILL,       /* the process dies instead */
	FAULT_KILL_AFTER, /* the process dies when it is done */
	FAULT_DELAY,      /* it is done delay_ms later */
	FAULT_HALF,       /* half of the bytes are sent, then the process dies */
	FAULT_DROP        /* nothing is done, and said to be */
};

struct fault_slot {
	uint32_t class, action, err, delay_ms;
	int32_t countdown; /* fires at the call that finds 1 here, ... */
	int32_t times;     /* ... and at the following ones, so often in all */
	uint32_t fired;    /* how often it did */
	uint32_t inside;   /* calls that are being delayed now */
};

struct fault_control {
	uint32_t magic;
	uint32_t undo;    /* 1: stored notes what it overwrites, until that is durable */
	int64_t clock_ms; /* what the wall clock is wrong by */
	struct fault_slot slot[FAULT_PROGRAMS][FAULT_SLOTS];
};

/*
 * One note in the file "undo" beside the control file, written before each write of stored to its files and after
 * each flush of one. Followed by the file's path (NUL included), the bytes that were there, and the magic number
 * again: a death may cut a note short, and then its write did not happen either.
 */
struct fault_note {
	uint32_t magic;
	uint32_t synced; /* 1: what was noted of this file before is durable now */
	uint64_t inode, offset, size;
	uint32_t path_len, old_len;
};
#endif
