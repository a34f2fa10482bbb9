/*
 * Pushes on their way: at most SEND_MOST at once, each one POST through libcurl (send.c is its sole includer here).
 * https at port 443 of the public internet alone, whatever name, redirect or proxy would have it otherwise.
 */
#ifndef PUSH_SEND_H
#define PUSH_SEND_H
#include "lib/names.h"
#include "push/seal.h"
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

enum { SEND_MOST = 8, SEND_CONNECT_MS = 10000, SEND_TOTAL_MS = 25000 }; /* stored waits for a minute */

struct sender;

struct letter {
	char tenant[129];
	uint64_t id;
	const char *endpoint, *authorization, *topic; /* topic "": none */
	uint32_t ttl;
	uint8_t body[SEAL_BODY];
};
/* What became of one. */
struct receipt {
	char tenant[129];
	uint64_t id;
	unsigned status; /* of HTTP; 0: none came */
	enum push_outcome outcome;
	uint32_t retry_after; /* seconds */
	const char *why;      /* a static phrase; NULL: the status says it */
};

/* Ends the program where libcurl does not start. ca_file "": the system's. loopback_port: tests; 0: none. */
struct sender *sender_new(const char *ca_file, uint16_t loopback_port);
/* How many are on their way, or are not taken yet. */
unsigned sender_busy(const struct sender *s);
/* Takes what it needs of it. False: no memory, or SEND_MOST are on their way. */
bool sender_begin(struct sender *s, const struct letter *l);
/* Goes on with them; waits for at most so long, or until one of the n others has something (its revents is set). */
void sender_turn(struct sender *s, int timeout_ms, struct pollfd *others, unsigned n);
/* Takes the next one that is over. False: none is. */
bool sender_take(struct sender *s, struct receipt *out);
#endif
