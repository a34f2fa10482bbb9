/*
 * The channels to the children: the only place where sandboxd reads messages. What is sent
 * never blocks: the socket's buffer is large, and a child that leaves it full is restarted.
 */
#ifndef SANDBOXD_MONITOR_H
#define SANDBOXD_MONITOR_H
#include "lib/wire.h"
#include "sandboxd/loop.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct app;
struct child;

struct sbx_from {
	struct app *app;
	struct child *child;
	struct wire_conn conn;
	struct source source; /* fd -1: closed */
};

/* fd is taken over. False with errno. */
bool monitor_open(struct sbx_from *from, struct app *app, struct child *child, uint8_t role, int fd);
void monitor_close(struct sbx_from *from);
/* Sends n encoded bytes with duplicates of the descriptors, if the peer has said HELLO. */
void monitor_send(struct sbx_from *from, const uint8_t *frame, size_t n, const int *fds, int nfds);
/* A violation: the channel is closed, its child killed (and so restarted), a line is written. */
void monitor_fail(struct sbx_from *from, const char *why);
#endif
