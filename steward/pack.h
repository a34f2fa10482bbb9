/* Frames of bundle.msg written into a box's upload. Each latches failure into *ok. */
#ifndef STEWARD_PACK_H
#define STEWARD_PACK_H
#include "steward/app.h"

/* SOURCE... SOURCE_END as the store has them. */
void pack_sources(int out, int upload, bool *ok);
void pack_request(int out, const struct run *r, unsigned gateway_port, bool *ok);
/* Mints one token of each audience and packs it under the profile's file name; none where the wire is the token. */
void pack_tokens(int out, const struct run *r, const struct secret *key, bool *ok);
/* The profile's own files, below the agent's home. */
#define PACK_HOME "home"
void pack_files(int out, const struct run *r, unsigned gateway_port, bool *ok);
void pack_agent(int out, const struct run *r, unsigned gateway_port, bool *ok);
/* REMOVED... CHANGED... from the judge's frames. */
void pack_changes(int out, const struct run *r, bool *ok);
void pack_check(int out, const struct request_check *c, const struct cf_agent *agent, uint32_t seconds, bool *ok);
void pack_go(int out, enum box_kind kind, bool *ok);
#endif
