/* Of lib/chan.h, what also root's daemon needs. */
#ifndef LIB_PACKET_H
#define LIB_PACKET_H
#include <stdbool.h>
#include <stddef.h>
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

/* An anonymous file for frames. Sealable; close-on-exec. */
int bundle_new(const char *name);
/* Makes it immutable (no write, grow, shrink, further seal). */
bool bundle_seal(int fd);
#endif
