/*
 * A daemon's end of sandboxd's pipe, as far as it is the same for all of them: the greeting, and another configuration
 * in two phases (spec/sandbox.msg, LOAD). Belongs to one thread; the place may be read by others.
 */
#ifndef LIB_RELOAD_H
#define LIB_RELOAD_H
#include "lib/held.h"

struct reload {
	int control;
	struct held_place place;
	/* Whether this process can take it up, which must not fail afterwards; conf: where it was read from. NULL: it
	 * can; otherwise why not, a phrase that stays. May be NULL itself. */
	const char *(*fits)(void *arg, struct held *next, int conf);
	/* It is in force, and place says so; before is used once more until this returns. May be NULL. */
	void (*taken)(void *arg, struct held *now, struct held *before);
	void *arg;
	/* Its own. */
	struct held *next;
	uint32_t number;
};

/* Says HELLO, so that from here on packets come. The place has its first already. */
void reload_start(struct reload *r, int control);
/* True: the packet was one of these and is done, and its descriptors are taken. One that makes no sense ends the
 * program, which is then started again. */
bool reload_packet(struct reload *r, const uint8_t *frame, size_t n, int *fds, int nfds);
/* For those who wait for nothing else there: one packet, if there is one, without waiting. Whatever is not of the above
 * goes to other (NULL: nothing else may come). False: sandboxd is gone. */
bool reload_hear(struct reload *r, void (*other)(void *arg, uint16_t number, const uint8_t *frame, size_t n));
#endif
