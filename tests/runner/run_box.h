/*
 * A box for the runner alone: pid, mount, net and ipc namespaces, a root with the host's /usr, the
 * capabilities and descriptors it gets from sandboxd. No user namespace, seccomp or Landlock: those are
 * tested with sandboxd.
 */
#ifndef TESTS_RUNNER_RUN_BOX_H
#define TESTS_RUNNER_RUN_BOX_H
#include "gen/bundle_msg.h"
#include "lib/chan.h"
#include "tests/patience.h"
#include <sys/types.h>

/* --- the upload ---------------------------------------------------------------------------------- */
enum { ENDLESS = 600 };
int up_new(void);
void up_source(int up, const char *path, const char *text);
void up_source_end(int up, uint32_t files);
void up_request(int up, const char *json);
void up_token(int up, const char *file, const char *token);
void up_file(int up, const char *path, const char *text);
/* A key that is made up; variable or file is "". */
void up_key(int up, const char *variable, const char *file, const char *value);
void up_changed(int up, const char *path, bool executable, const char *text);
void up_removed(int up, const char *path);
void up_agent(int up, uint32_t seconds, uint32_t output, const char *const *argv, const char *const *env);
void up_check(int up, const char *name, uint32_t seconds, uint32_t output, const char *const *argv);
void up_program(int up, const char *path, const char *text);
/* In parts of so many bytes, and UNPACK behind them. */
void up_archive(int up, const void *p, size_t n, size_t part, uint32_t seconds, uint32_t cpu_seconds);
void up_go(int up, uint8_t kind, uint32_t files, uint64_t bytes, uint64_t file_bytes);
/* What up_agent says of further limits; all 0 at first. */
extern struct up_limits {
	uint32_t cpu_seconds, open_files;
	uint64_t file_bytes;
} up_limits;
/* One source a.txt, a request, an agent that is this shell script, and usual limits; sealed. */
int up_script(const char *script, uint32_t seconds);
/* The same with a bridge that is a shell script, too. */
int up_bridged(const char *bridge, const char *script, uint32_t seconds);
void up_bridge(int up, const char *const *argv, const char *events, const char *approvals);

/* --- the box -------------------------------------------------------------------------------------- */
struct box_run {
	pid_t pid;   /* of the runner, in our namespace */
	int control; /* our end */
	int result;
	int group; /* what stands for cgroup.procs: a file that takes the "0"s */
	int cpu;   /* what stands for cpu.stat */
	int status;
};
/* Starts it; fails the test when it cannot be made. The upload is closed. */
void box_start(struct box_run *b, int upload);
/* Waits for its end, at most two minutes. Returns its exit code, or minus the signal. */
int box_wait(struct box_run *b);
void box_done(struct box_run *b);
/* Runs an upload to its end: what it left, and its exit code. */
struct found;
int box_all(struct found *f, int upload);
/* Have as many children joined the agent's group? */
bool box_grown(const struct box_run *b, int children);
/* Waits until the agent has been started. */
void box_wait_output(struct box_run *b);

/* --- the result ----------------------------------------------------------------------------------- */
struct found {
	struct bn_ran ran;
	struct bn_checked checked[16];
	struct bn_entry *entries;
	struct bn_claim claim;
	struct bn_collected collected;
	struct bn_broken broken;
	uint32_t ran_n, checked_n, entries_n, claim_n, collected_n, broken_n;
	uint8_t *all; /* the pointers above point into it */
};
void found_read(struct found *f, int result);
void found_free(struct found *f);
/* The entry of that path; NULL: none. */
const struct bn_entry *found_entry(const struct found *f, const char *path);
bool same(struct wire_bytes b, const char *text);
void box_assert_output(struct wire_bytes got, const char *want);
bool holds(struct wire_bytes b, const char *text); /* text is somewhere in it */
#endif
