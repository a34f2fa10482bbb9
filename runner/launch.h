/*
 * Runs one thing as the agent's uid, with a time limit, and leaves no process behind.
 */
#ifndef RUNNER_LAUNCH_H
#define RUNNER_LAUNCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum launch_limit { LAUNCH_BYTES = 1, LAUNCH_FILES = 2, LAUNCH_CPU = 4 }; /* RAN.reached, CHECKED.reached */
enum { LAUNCH_UID = 1000, LAUNCH_GID = 1000, LAUNCH_GROUPS = 10, LAUNCH_GRACE_MS = 5000 };

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
	struct keys *keys; /* whose files go while it runs; NULL: none */
	uint8_t *output;   /* standard output and error: all, or the two ends of it, within output_cap bytes */
	size_t output_cap;
};

struct outcome {
	bool started;   /* exec succeeded (or inside was entered) */
	int32_t status; /* exit code, or minus the signal */
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
/* Returns when every process but this one is dead and reaped. */
void launch_run(const struct warden *w, const struct launch *l, struct outcome *o);
#endif
