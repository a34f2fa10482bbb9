/*
 * A run whose upload is an archive: a box unpacks it, and what came of it is its upload from then on. Nothing of the
 * archive is read here.
 */
#ifndef STEWARD_SOURCE_H
#define STEWARD_SOURCE_H
#include "gen/sandbox_msg.h"
#include "steward/app.h"

enum {
	SOURCE_SECONDS = 60 /* for pinfold-unpack */,
	SOURCE_WORK = 120000 /* ms: the whole box's, without its start */
};
enum { SOURCE_FILES = 20000, SOURCE_BYTES = 128000000, SOURCE_FILE_BYTES = LIMIT_SOURCE_FILE_BYTES };

/* A sealed bundle for the box: the archive in parts. -1 with errno. */
int source_bundle(const struct run *r);
/* The box has no agent's limits: it is to have room for what the archive may come to. */
void source_box(const struct run *r, struct sbx_spawn *m);
/* Starts the child that looks at what the box left, which is sealed. False with errno. */
bool source_judge(struct app *app, struct run *r);
/* It has ended: its frames are the upload from now on, or the run's failure is noted. Tells the event. */
void source_judged(struct app *app, struct run *r);
/* How much longer than else a judge may take over this upload and this result, in ms. */
uint64_t source_slow(int upload, int result);
#endif
