/*
 * Free space. New work is refused below a floor, so that revocations and terminal states can still be
 * written; when somebody else fills the disk to the last byte, a ballast file is given up first.
 */
#ifndef STORE_FLOOR_H
#define STORE_FLOOR_H
#include <stdbool.h>
#include <stdint.h>

struct floor {
	int dir;
	uint64_t ballast, least; /* bytes */
	bool have_ballast, measured, roomy, said;
};

/* dir stays the caller's. Makes the ballast file where there is room for it. */
void floor_open(struct floor *f, int dir);
/* A new batch: measure again when asked. */
void floor_turn(struct floor *f);
bool floor_roomy(struct floor *f);
/* A write met a full disk: gives up the ballast. True: there was some. */
bool floor_drop(struct floor *f);
#endif
