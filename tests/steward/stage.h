/*
 * A stage for the steward: the real pinfold-steward, a real pinfold-stored (tests/store/harness.h), and a
 * sandboxd played by the test over the control pipe. Needs root. What does not come within a generous time
 * fails the test; nothing waits for time to pass.
 */
#ifndef TESTS_STEWARD_STAGE_H
#define TESTS_STEWARD_STAGE_H
#include "gen/bundle_msg.h"
#include "gen/sandbox_msg.h"
#include "gen/store_msg.h"
#include "lib/names.h"
#include "tests/store/harness.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { STAGE_SECRET = 40, STAGE_PORT = 9797 };

struct stage {
	struct rig rig;
	struct ask *fcgi, *gateway;
	int control; /* our end of the steward's pipe */
	pid_t pid;
	unsigned serial;
	bool token_wire;
	uint32_t run_wall_seconds, run_wait_seconds; /* of further runs; 0: the usual */
	uint32_t max_concurrent_runs, queue_seconds; /* settings of the next steward; 0: the defaults */
	uint32_t tenant_runs;                        /* of one tenant at once; 0: 4 */
};

/* What the steward sent; strings are copies. */
struct order {
	uint16_t number; /* SBX_SPAWN, SBX_KILL or SBX_PAUSE, of a work box */
	char run[129], tenant[129];
	uint8_t kind;
	uint32_t grace_ms, wall_seconds, workspace_inodes;
	uint64_t workspace_bytes, memory_bytes;
	bool stands, frozen; /* SBX_PAUSE */
	int upload, result;  /* -1 but with SPAWN; the caller closes (order_end) */
};

extern const char stage_secret[STAGE_SECRET + 1];

/* One for the whole program; started with nothing in it. */
void stage_open(struct stage *s);
void stage_close(struct stage *s);
/* Starts the steward with this secret; it says HELLO, and the answer has so many slots. */
void stage_fork(struct stage *s, const char *secret);
void stage_greet(struct stage *s, uint32_t slots);
/* The boxes that LIST is answered with. */
struct stage_box {
	const char *run;
	uint8_t kind;
};
void stage_greet_with(struct stage *s, uint32_t slots, const struct stage_box *boxes, size_t n);
/* Ends it; the wait status. sig 0: its pipe is closed. */
int stage_stop(struct stage *s, int sig);

/* A new run of this tenant: its id. Files a.py and b.py, allowedPaths a.py, two checks: git and unittest. */
const char *stage_run(struct stage *s, const char *tenant);
/* The same of an archive, which is these bytes. */
const char *stage_archive_run(struct stage *s, const char *tenant, const char *archive);
void stage_cancel(struct stage *s, const char *tenant, const char *run);
/* The next order; fails the test if none comes. */
struct order stage_order(struct stage *s);
/* The same, and it must be this one. */
struct order stage_expect(struct stage *s, uint16_t number, const char *run, enum box_kind kind);
bool stage_silent(struct stage *s); /* nothing was sent up to now */
void order_end(struct order *o);

void stage_spawned(struct stage *s, const char *run, enum box_kind kind);
void stage_refused(struct stage *s, const char *run, enum box_kind kind, enum err code);
void stage_exited(struct stage *s, const char *run, enum box_kind kind, bool oom, bool timed_out);
void stage_exited_so(struct stage *s, const struct sbx_exited *m);
void stage_gone(struct stage *s, const char *run, enum box_kind kind, bool clean);

/* Stops the child that judges a result just now; it may be too quick: 0. */
pid_t stage_hold_judge(struct stage *s);

/* The run as the store has it; valid until the next call. */
const struct st_run_is *stage_get(struct stage *s, const char *tenant, const char *run);
/* Waits until it is final (or in that phase). */
const struct st_run_is *stage_final(struct stage *s, const char *tenant, const char *run);
void stage_phase(struct stage *s, const char *tenant, const char *run, enum run_phase phase);
/* Is the capability alive for the gateway? */
/* When the run's capability ends, ms; 0: it has none. */
uint64_t stage_capable_until(struct stage *s, const char *tenant, const char *run);
bool stage_capable(struct stage *s, const char *tenant, const char *run);
/* The artifact's bytes with a NUL behind; NULL: there is none. The caller frees. */
char *stage_artifact(struct stage *s, const char *tenant, const char *run, enum artifact name);
/* How many lines the audit log has of this event and run. */
unsigned stage_audited(struct stage *s, const char *event, const char *run);
/* Has the steward logged this? The second waits until it has. */
bool stage_has_logged(struct stage *s, const char *text);
void stage_logged(struct stage *s, const char *text);
/* Waits until the run has an event of this type. */
void stage_event(struct stage *s, const char *tenant, const char *run, const char *type);
/* Types of all events, one a line. The caller frees. */
char *stage_events(struct stage *s, const char *tenant, const char *run);
#endif
