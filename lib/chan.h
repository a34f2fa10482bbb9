/*
 * Packets with descriptors over SOCK_SEQPACKET, and frame streams in memfds.
 */
#ifndef LIB_CHAN_H
#define LIB_CHAN_H
#include "lib/packet.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

int chan_connect(const char *path); /* SOCK_SEQPACKET; -1 with errno */
/* The same without ever waiting, then or later (O_NONBLOCK): a full backlog is EAGAIN. */
int chan_reach(const char *path);
bool chan_peer(int fd, uid_t *uid, pid_t *pid); /* SO_PEERCRED */

/* The most bytes that a message takes in place of a descriptor, as spec/store.msg says. */
enum { CHAN_SMALL = 16000 };

struct buf;
/* One that holds these bytes, sealed, its offset at their beginning. -1 with errno, ENOMEM where there is no room. */
int bundle_of(const char *name, const void *p, size_t n);
/* The same in memory, for bundle_new's file or for a message that has room for all of it. */
void bundle_put(struct buf *b, const void *frame, size_t n);
/* Appends a u32 length and the frame. False with errno. */
bool bundle_add(int fd, const void *frame, size_t n);

/* Reads frames of a bundle by its own offset (pread), so that a shared descriptor is not moved. */
struct bundle {
	int fd;
	uint64_t at, size;
	uint8_t *buf; /* current frame, freed by bundle_close */
	size_t room, max;
};
/* Opens for reading; frames above max are an error. fd stays the caller's. False with errno. */
bool bundle_open(struct bundle *b, int fd, size_t max);
/* 1: *frame of *n bytes (valid until the next call); 0: the end; -1: malformed (errno EBADMSG) or unreadable (why). */
int bundle_next(struct bundle *b, const uint8_t **frame, size_t *n);
void bundle_close(struct bundle *b);
#endif
