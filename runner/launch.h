/*
 * Runs one thing as the agent's uid, with a time limit, and leaves no process behind.
 */
#ifndef RUNNER_LAUNCH_H
#define RUNNER_LAUNCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

enum launch_limit { LAUNCH_BYTES = 1, LAUNCH_FILES = 2, LAUNCH_CPU = 4 }; /* RAN.reached, CHECKED.reached */
/* An agent, or what runs of a check; and what stands between an agent and the control plane. Gids are the same numbers.
 */
enum { LAUNCH_UID = 1000, LAUNCH_BRIDGE_UID = 1001 };
/* From the request to stop until the end; for the bridge when its agent has ended. */
enum { LAUNCH_GROUPS = 10, LAUNCH_GRACE_MS = 5000, LAUNCH_FINISH_MS = 30000 };

/* Descriptors the runner was given. */
struct warden {
	int control;               /* its end means that sandboxd is gone */
	int cpu;                   /* cpu.stat of the agent's group; -1: there is none */
	int groups[LAUNCH_GROUPS]; /* cgroup.procs files of the agent's groups */
	int groups_n;
};

struct keys;
struct launch {
	const char *const *argv; /* NULL: inside runs instead, with arg, and its value is the exit status */
	const char *const *env;
	int (*inside)(const void *arg);
	const void *arg;
	const char *cwd;
	uint64_t limit_ms;
	uint32_t cpu_seconds, open_files; /* 0: no further limit. So is file_bytes */
	uint64_t file_bytes;
	/* Its argv: it is started first, the agent's standard input and output lead to it, and its end is the end.
	 * NULL: none. It is given these two, of which upload is closed here. */
	const char *const *bridge;
	int upload, claim;
	struct keys *keys; /* whose files go while it runs; NULL: none */
	uint8_t *output;   /* standard output and error: all, or the two ends of it, within output_cap bytes */
	size_t output_cap;
};

struct outcome {
	bool started;   /* exec succeeded (or inside was entered) */
	int32_t status; /* exit code, or minus the signal; of an agent with a bridge, the bridge's */
	bool timed_out, stopped, truncated;
	uint8_t reached; /* LAUNCH_ bits: what was seen to be used up */
	uint32_t duration_ms;
	size_t output_n;
	uint64_t printed;
	const char *step; /* what failed when not started, and its errno */
	int errnum;
	bool clean; /* no process of the agent's is left */
};

/* Makes SIGTERM a request to stop and arms the death signal. Once, before anything else. */
void launch_init(const struct warden *w);
/* A stop was asked for. */
bool launch_stopping(void);
/* Ends this process, and with it the box, if sandboxd is gone. */
void launch_check_control(const struct warden *w);
/* Has the effective uid of a user of the box, or, 0, its own again. Nobody of that user's can reach this process. */
bool launch_as(uid_t uid);
/* In a child. Gives up root of the box for good: ids, groups, every capability set. */
bool launch_become(uid_t uid);
/* The same. Joins the agent's groups; lowers a limit, if most is not 0; takes signals as they were. */
bool launch_join(const struct warden *w);
bool launch_lower(__rlimit_resource_t what, uint64_t most);
void launch_default_signals(void);
/* Returns when every process but this one is dead and reaped. */
void launch_run(const struct warden *w, const struct launch *l, struct outcome *o);
#endif
