/*
 * Free space. New work is refused below a floor, so that revocations and terminal states can still be
 * written. When somebody else fills the disk to the last byte, a ballast file is given up for them; a
 * second one is kept for recovery at start, which has to write too.
 */
#ifndef STORE_FLOOR_H
#define STORE_FLOOR_H
#include <stdbool.h>
#include <stdint.h>

enum { BALLAST_WORK, BALLAST_START, BALLAST__COUNT };

struct floor {
	int dir;
	uint64_t least, ballast[BALLAST__COUNT]; /* bytes */
	bool have[BALLAST__COUNT];
	bool measured, roomy, said;
	bool dropped; /* a ballast went since somebody last looked */
};

/* Before recovery: gives up the ballast kept for it when the disk is full. dir stays the caller's. */
void floor_start(struct floor *f, int dir);
/* After recovery: makes the ballast files where there is room for them. */
void floor_open(struct floor *f);
/* A new batch: measure again when asked. */
void floor_turn(struct floor *f);
bool floor_roomy(struct floor *f);
/* Bytes free now; 0 where they cannot be measured. */
uint64_t floor_free(const struct floor *f);
/* A write met a full disk: gives up the ballast for work. */
void floor_drop(struct floor *f);
#endif
