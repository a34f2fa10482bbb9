/*
 * A real pinfold-sandboxd in a root of its own, with stand-ins for its daemons (tests/box/fake_child.c): starts it,
 * speaks for the steward and the gateway, and sees that it ends and leaves nothing. One at a time, so its state is
 * global.
 */
#ifndef TESTS_BOX_DAEMON_RIG_H
#define TESTS_BOX_DAEMON_RIG_H
#include "gen/sandbox_msg.h"
#include "lib/place.h"
#include "tests/patience.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { STEWARD, GATEWAY }; /* the peers that the test speaks for */

extern uint32_t daemon_uids, daemon_box_uids; /* the daemons' and the boxes' */
extern char daemon_root[64], daemon_logs[16384];
extern pid_t daemon_pid;
extern size_t daemon_heard; /* the length of what daemon_expect gave */
extern int daemon_log_fd, daemon_door[2], daemon_peer[2];
extern const char *const daemon_peer_names[2];

/* A root and two doors for the peers; false: not root, so nothing can be tested. */
bool daemon_begin(void);
const char *daemon_in_root(enum place p, const char *rest);
void daemon_run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int daemon_processes(uid_t from, uid_t to);
bool daemon_wait_none(uid_t from, uid_t to);
int daemon_lines_of(const char *path);
int daemon_descriptors(pid_t pid);
void daemon_read_logs(int ms);
bool daemon_logged(const char *text);
void daemon_launch(void (*first)(void));
void daemon_take_peer(int which);
uint8_t *daemon_expect(int which, uint16_t number, int *fd);
void daemon_tell(int which, const uint8_t *frame, size_t n, const int *fds, int nfds);
void daemon_meet(int which);
size_t daemon_put_spawn(uint8_t *f, const char *name, uint8_t kind);
void daemon_bundles(int fds[2], const char *what, bool seal);
int daemon_spawn(const char *name, uint8_t kind, const char *what);
void daemon_send_kill(const char *name, uint8_t kind);
const char *daemon_group(void); /* sandboxd's in the v2 tree */
void daemon_make_root(void);
void daemon_up(void);
void daemon_down(void);
void daemon_refuses(void (*first)(void), const char *text);
int daemon_stop(void **state);
#endif
