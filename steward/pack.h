/* Frames of bundle.msg written into a box's upload. Each latches failure into *ok. */
#ifndef STEWARD_PACK_H
#define STEWARD_PACK_H
#include "steward/app.h"

/* SOURCE... SOURCE_END as the store has them. */
void pack_sources(int out, int upload, bool *ok);
void pack_request(int out, const struct run *r, unsigned gateway_port, bool *ok);
/* Mints one token of each audience and packs it under the profile's file name; none where the wire is the token, and of
 * an agent with a bridge only the model's. */
void pack_tokens(int out, const struct run *r, const struct secret *key, bool *ok);
/* The profile's own files, below the agent's home. */
#define PACK_HOME "home"
void pack_files(int out, const struct run *r, unsigned gateway_port, bool *ok);
/* What a self-test is given in the place of each key. */
struct pack_key {
	bool unset;
	struct wire_bytes value;
};
/* The names of the agent's keys; made_up NULL: the real ones, which sandboxd passes on. plain: others than those that a
 * configuration cannot take for anything else are refused. */
void pack_keys(int out, const struct cf_agent *agent, const struct pack_key *made_up, bool plain, bool *ok);
/* The bridge in front of the agent, with the tokens for events and approvals; nothing where there is none. */
void pack_bridge(int out, const struct run *r, const struct secret *key, bool *ok);
/* Without its bridge. */
void pack_agent(int out, const struct run *r, unsigned gateway_port, bool *ok);
/* REMOVED... CHANGED... from the judge's frames. */
void pack_changes(int out, const struct run *r, bool *ok);
void pack_check(int out, const struct request_check *c, const struct cf_agent *agent, uint32_t seconds, bool *ok);
/* GO of a work or check box; what may be collected grows with the upload of a run that has a source. */
void pack_go(int out, const struct run *r, enum box_kind kind, bool *ok);
enum { PACK_UNPACK = 3 }; /* GO.kind of the third kind of box (source.c), which is a check box to sandboxd */
#endif
