/*
 * What the steward holds in memory. Nothing here outlives the process: the truth is in the store (which
 * runs are wanted) and in sandboxd (which boxes exist), and sweep.c brings the three together again.
 */
#ifndef STEWARD_APP_H
#define STEWARD_APP_H
#include "gen/errors.h"
#include "gen/limits.h"
#include "gen/reasons.h"
#include "lib/ask.h"
#include "lib/buf.h"
#include "lib/hist.h"
#include "lib/names.h"
#include "lib/reload.h"
#include "lib/secret.h"
#include "steward/checks.h"
#include "steward/judge.h"
#include "steward/queue.h"
#include "steward/request.h"

/* Bounds of every wait, in milliseconds. */
enum {
	WAIT_ANSWER = 30000,   /* SPAWN to SPAWNED or REFUSED */
	WAIT_CAPACITY = 10000, /* how long a full machine is asked again */
	WAIT_BACKSTOP = 45000, /* beyond what a box was given: sandboxd itself ends it after 30 s */
	WAIT_GONE = 10000,
	WAIT_JUDGE = 20000,
	WAIT_CANCEL = 6500,  /* from the request to giving up on an orderly end */
	CANCEL_GRACE = 5000, /* TERM to KILL for an agent */
	RETRY_STORE = 500,
	RENEW = 1000 * LIMIT_RUN_TOKEN_LIFE_SECONDS / 2, /* half of a capability's life */
	RENEW_RETRY = 5000,
	RESYNC = 30000,
	QUEUE_SECONDS = 3600, /* where the configuration says nothing */
	START_AGAIN = 60000,  /* how long a start whose answer was lost is asked for again */
	STORE_PATIENCE = 3000 /* one question, retries included: the loop stands still that long */
};
enum { BACKSTOP_SECONDS = 30, CHECK_SECONDS = 60, MAX_RUNS = 64 };
/* What a box may leave, and what the built-in agent is told. */
enum {
	COLLECT_FILES = 2000,
	COLLECT_BYTES = 8000000,
	COLLECT_FILE_BYTES = 1000000,
	RESULT_BYTES = 32000000,
	TOOL_OUTPUT_BYTES = 200000
};

/* Where a run is. The table in run.c says what each step waits for and what follows. */
enum step {
	STEP_SPAWN_UNPACK, /* of a run whose upload is an archive: these four come first */
	STEP_UNPACK,
	STEP_UNPACK_GONE,
	STEP_TREE,
	STEP_SPAWN_WORK,
	STEP_WORK,
	STEP_WORK_GONE,
	STEP_JUDGE,
	STEP_SPAWN_CHECK,
	STEP_CHECK,
	STEP_CHECK_GONE,
	STEP_ORPHAN, /* not started by this process: its boxes must go, then it fails */
	STEP_SETTLE,
	STEP__COUNT
};

struct check_result {
	enum outcome outcome;       /* NONE: did not run */
	struct check_counts counts; /* as printed */
	struct check_counts upload; /* the same check on the upload as it came; known only where that was asked */
	int32_t exit_code;
	uint32_t duration_ms;
	bool truncated;
	struct buf output;
};

/* A change that was judged allowed; its content stays in the judge's frames. */
struct run_change {
	const char *path; /* in the request's arena */
	uint8_t how;      /* enum change_how */
	bool executable;
	uint64_t size;
	uint8_t sha256[32];
};

struct run {
	char tenant[129], run[129];
	enum step step;
	uint64_t deadline;    /* timer_ms; 0: none */
	uint64_t allowed;     /* what it would be without a cancel */
	uint64_t again;       /* timer_ms: do the step's work again then; 0: no */
	uint64_t renew_at;    /* timer_ms: its capability gets a further life then; 0: never */
	uint64_t spawn_until; /* a full machine is asked again until then */
	/* wait.c; the times are timer_ms, 0: none */
	uint64_t wait_left;   /* ms that it may still wait for people */
	uint64_t waits_since; /* its wall time stands still since then */
	uint64_t freeze_at;   /* its agent is frozen then */
	uint64_t look_at;     /* the store is asked then whether it waits */
	uint64_t asked_at;    /* timer_ms when its box was asked for */
	bool frozen;
	bool revoked, cancelled, restart;
	uint64_t cancel_at; /* timer_ms */
	struct held *under; /* the configuration with which it began, and in it: */
	const struct cf_agent *agent;
	const struct conf_tenant *conf_tenant;
	char model[129], profile[129];
	uint32_t max_steps, wall_seconds;
	struct request rq;
	int upload_fd;         /* from the store; what was made of it, where it was an archive */
	bool archive;          /* it is, or was, one */
	uint32_t source_files; /* of an archive, once it was unpacked. So is the next */
	uint64_t source_bytes;
	int bundle_fd;         /* what the next box gets; kept until it is SPAWNED */
	int work_fd, check_fd; /* results; the box that unpacks is the first to have check_fd */
	size_t check_at;       /* which check is next, or running */
	bool comparing;        /* it runs on the upload alone, to count its tests: nothing it does fails the run */
	struct judge judge;    /* pid 0: not running */
	unsigned boxes;        /* bit 1 << kind: not yet GONE */

	/* What is known of the end. The first failure stays; clean-up failure and cancel override. */
	enum err error;
	enum reason reason;
	bool exited, agent_ok, cleanup_failed, work_oom, work_timed_out, check_oom;
	uint64_t cpu_us, peak_bytes, forks_refused; /* of the last box that ended */
	int32_t exit_code;
	bool judged, accepted;
	enum err judged_error; /* of the changes alone */
	struct buf field;      /* the path at fault, escaped */
	uint32_t seen, nchanges;
	struct run_change changes[JUDGE_CHANGES];
	struct buf patch, summary, claimed;
	bool patch_too_large;
	struct check_result checks[REQUEST_CHECKS];
	unsigned artifacts; /* bit 1 << name: put */
};

/* A box of an earlier steward (or of a run that gave up waiting): killed, awaited, and counted as a slot. */
struct stray {
	char run[129];
	uint8_t kind;
};

struct app {
	struct reload reload;
	const struct conf *conf; /* in force */
	const struct secret *run_key;
	int control;
	uint32_t slots;
	bool listed; /* LISTED has come: boxes of before are known */
	struct ask *store, *teller, *subscription;
	bool subscribed, resync;
	uint64_t resync_at, subscribe_at, launch_at, expire_at;
	uint64_t read_at;           /* all open runs were known here at this moment; 0: never yet */
	uint64_t store_quiet_until; /* the store was away: it is not asked again before */
	struct tale *tales;         /* what is still to be told (tell.c), the oldest first */
	size_t ntales, tales_bytes;
	bool tale_asked;                    /* the first of them, without an answer */
	struct hist spawned[BOX_CHECK + 1]; /* by enum box_kind: how long it took */
	uint64_t not_spawned[BOX_CHECK + 1];
	bool figures_due; /* they are not what the store was told last */
	struct queue queue;
	struct run *runs[MAX_RUNS];
	size_t nruns;
	struct stray *strays;
	size_t nstrays;
	struct proving *proving; /* proof.c's own; NULL: no agent has to be looked at */
};

struct run *app_run(const struct app *app, const char *run);
#endif
