/* The gateway, spoken to by hand: an attacker's HTTP need not be well formed. */
#ifndef ATTACK_TALK_H
#define ATTACK_TALK_H
#include <stdbool.h>
#include <stddef.h>

enum { TALK_MAX = 65536, TOKEN_MAX = 1100 };

/* Sends the bytes, reads until the other side closes, a second passes in silence after an answer began, or to is full.
 * How many bytes came, or -1. */
long talk_raw(const char *request, size_t n, char *to, size_t size);
/* One well formed request; body NULL: none. The status, or -1. to may be NULL. */
int talk(const char *method, const char *path, const char *token, const char *body, char *to, size_t size);
/* The status of a raw answer, or -1. */
int talk_status(const char *answer, long n);
/* A run token of one's own: ".pinfold-run-token", ".pinfold-event-token", ".pinfold-approval-token". False: not there.
 */
bool talk_token(const char *file, char to[TOKEN_MAX]);
/* Posts one event whose data is this JSON object, with one's token for it where there is one. type may be anything. */
int talk_event(const char *type, const char *run, const char *sequence, const char *data);
/* The port of the gateway. */
int talk_port(void);
#endif
