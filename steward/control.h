/* The private pipe to sandboxd. */
#ifndef STEWARD_CONTROL_H
#define STEWARD_CONTROL_H
#include "steward/app.h"

/* HELLO, WELCOME and LIST, ends the program when sandboxd is gone or
 * speaks another version. */
void control_start(struct app *app);
/* Takes one packet. The end of the pipe ends the program. */
void control_read(struct app *app);
/* Takes all that is there. */
void control_drain(struct app *app);
/* Descriptors stay the caller's. */
void control_spawn(struct app *app, const struct run *r, enum box_kind kind, uint32_t wall_seconds, int upload,
		   int result);
/* The same of a work box that gets no keys: those of a self-test are in its upload. */
void control_spawn_test(struct app *app, const struct run *r, uint32_t wall_seconds, int upload, int result);
void control_kill(struct app *app, const char *run, enum box_kind kind, uint32_t grace_ms);
/* The clock of the work box's wall time stands, its agent is frozen; or both go on. */
void control_pause(struct app *app, const char *run, bool stands, bool frozen);
/* Remembers a box that no run waits for any more, until it is GONE. */
void control_stray(struct app *app, const char *run, enum box_kind kind);
bool control_strays_of(const struct app *app, const char *run);
#endif
