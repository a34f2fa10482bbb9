/*
 * Packets with descriptors over SOCK_SEQPACKET, and frame streams in memfds.
 */
#ifndef LIB_CHAN_H
#define LIB_CHAN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Sends one packet with nfds descriptors (they stay the caller's). Returns 0 or -1 with errno;
 * EAGAIN on a full non-blocking socket. Never raises SIGPIPE.
 */
int chan_send(int fd, const void *p, size_t n, const int *fds, int nfds);
/*
 * Receives one packet. Returns its length, 0 at the peer's end, -1 with errno. A packet larger than
 * cap, more than WIRE_MAX_FDS descriptors or lost ones (MSG_CTRUNC) give -1 with EBADMSG, and every
 * descriptor that did arrive is closed. Received descriptors are close-on-exec.
 */
ssize_t chan_recv(int fd, void *p, size_t cap, int *fds, int *nfds);
void chan_close_fds(int *fds, int nfds);
/* A listening SOCK_SEQPACKET (or SOCK_STREAM) socket at path: mode and owner set before it is reachable. Takes the
 * place of a socket, of nothing else: the folder is the caller's alone. -1 with errno. */
int chan_listen(const char *path, int type, mode_t mode, uid_t uid, gid_t gid, int backlog);
/* False with ENAMETOOLONG. */
struct sockaddr_un;
bool chan_address(const char *path, struct sockaddr_un *to);
int chan_connect(const char *path); /* SOCK_SEQPACKET; -1 with errno */
/* The same without ever waiting, then or later (O_NONBLOCK): a full backlog is EAGAIN. */
int chan_reach(const char *path);
bool chan_peer(int fd, uid_t *uid, pid_t *pid); /* SO_PEERCRED */

/* The most bytes that a message takes in place of a descriptor, as spec/store.msg says. */
enum { CHAN_SMALL = 16000 };

struct buf;
/* An anonymous file for frames. Sealable; close-on-exec. */
int bundle_new(const char *name);
/* One that holds these bytes, sealed, its offset at their beginning. -1 with errno, ENOMEM where there is no room. */
int bundle_of(const char *name, const void *p, size_t n);
/* The same in memory, for bundle_new's file or for a message that has room for all of it. */
void bundle_put(struct buf *b, const void *frame, size_t n);
/* Appends a u32 length and the frame. False with errno. */
bool bundle_add(int fd, const void *frame, size_t n);
/* Makes it immutable (no write, grow, shrink, further seal). */
bool bundle_seal(int fd);

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
