/*
 * The upload bundle as the runner understands it: what to write, what to run.
 */
#ifndef RUNNER_PLAN_H
#define RUNNER_PLAN_H
#include "gen/bundle_msg.h"
#include "lib/buf.h"
#include "lib/chan.h"

/* Below /workspace: where a profile's own files are, and its HOME. */
#define PLAN_HOME "home"
enum { PLAN_ARGS = 64, PLAN_ENV = 64, PLAN_CHECKS = 16, PLAN_KEYS = 8, PLAN_BRIDGE = 8 };
enum { KEY_REAL, KEY_MADE_UP, KEY_UNSET }; /* CREDENTIAL.made_up */
enum { PLAN_WORK = 1, PLAN_CHECK = 2, PLAN_UNPACK = 3 };

/* One frame; pointers live until the next call of upload_next. */
struct item {
	uint16_t number; /* enum bn_type */
	union {
		struct bn_source source;
		struct bn_program program;
		struct bn_archive archive;
		struct bn_unpack unpack;
		struct bn_source_end source_end;
		struct bn_changed changed;
		struct bn_removed removed;
		struct bn_request request;
		struct bn_token token;
		struct bn_file file;
		struct bn_credential credential;
		struct bn_bridge bridge;
		struct bn_agent agent;
		struct bn_check check;
		struct bn_go go;
	};
};

/* Reads the frames in the one order that is permitted. */
struct upload {
	struct bundle frames;
	uint8_t state;
	uint32_t files, checks;
	const char *why; /* after -1: a sentence without data of others */
};

/* fd stays the caller's. False: not readable, why is set. */
bool upload_open(struct upload *u, int fd);
/* 1: *it is the next frame, in its place and well-formed; 0: the end, where it may be; -1: why is set. */
int upload_next(struct upload *u, struct item *it);
void upload_close(struct upload *u);

struct command {
	const char *name; /* of a check */
	const char *argv[PLAN_ARGS + 1];
	const char *env[PLAN_ENV + 1];
	uint32_t seconds, output_bytes, cpu_seconds, open_files;
	uint64_t file_bytes;
};

/* A key for the agent: what it is called, never what it is, but for the made-up one of a self-test. */
struct plan_key {
	const char *secret, *variable, *file;
	bool plain;
	uint8_t made_up;
	struct wire_bytes value;
};

struct plan {
	uint8_t kind;                        /* PLAN_WORK, PLAN_CHECK or PLAN_UNPACK */
	struct command agent;                /* of the last one its limits of time, and nothing else */
	const char *bridge[PLAN_BRIDGE + 1]; /* its argv; the first NULL: the agent has none */
	struct command checks[PLAN_CHECKS];
	uint32_t checks_n;
	struct plan_key keys[PLAN_KEYS];
	uint32_t keys_n;
	struct bn_go go;
	struct arena strings;
};

/* Reads all of it once and keeps the commands. NULL, or why the bundle is refused. */
const char *plan_read(struct plan *p, int fd);
void plan_free(struct plan *p);
#endif
