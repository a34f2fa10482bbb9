/*
 * Which addresses may be connected to: those of the public internet. Asked with the very address that a socket is about
 * to be connected to, so that no name, no spelling and no answer of a name server can get around it.
 */
#ifndef PUSH_ADDRESS_H
#define PUSH_ADDRESS_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* NULL: it may. Otherwise what it is instead: "loopback", "private", ... */
const char *address_fault(const struct sockaddr *sa, socklen_t n);
/* Is it 127.0.0.0/8 or ::1, at this port? */
bool address_loopback(const struct sockaddr *sa, socklen_t n, uint16_t port);
#endif
