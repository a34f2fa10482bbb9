/*
 * The push clock: milliseconds that go on at the pace of CLOCK_BOOTTIME, whatever is done to the wall clock, and over
 * restarts. What a budget counted and when a push is due are told by it, so that no step of the clock reopens the one
 * or holds up the other. Over a restart of the machine it goes on from where it was last recorded: it may lag behind
 * the world, and what waits for it then waits for as long as it had left to wait, at most.
 */
#ifndef STORE_PUSH_CLOCK_H
#define STORE_PUSH_CLOCK_H
#include "store/txn.h"

/* At the start; records where it stands. */
void push_clock_open(struct store *s);
/* The moment of this turn. */
void push_clock_turn(struct store *s);
uint64_t push_tick(const struct txn *t);
/* In each transaction that records a moment of this clock, which is then as durable as the moment is. */
void push_clock_record(struct txn *t);
/* Is its record, where there is one, readable? */
bool push_clock_sound(struct txn *t);
#endif
