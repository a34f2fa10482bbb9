/* A workshop for boxes without daemons: the box code of sandboxd, driven by a test or a bench as root. */
#ifndef TESTS_BOX_RIG_H
#define TESTS_BOX_RIG_H
#include "sandboxd/box.h"
#include "tests/patience.h"
#include <stdbool.h>

enum { RIG_PORT = 9797, RIG_TOLD = 256 };

/* What became of the last box of a run, as the sink was told. */
struct rig_told {
	char run[BOX_NAME];
	bool spawned, refused, exited, gone, clean, closed;
	enum err code;
	char detail[256];
	int status, listener; /* a duplicate while the box is alive */
	bool oom, timed_out;
	uint64_t cpu_us, peak_bytes, spawned_ns, exited_ns, gone_ns;
};

struct rig {
	struct loop loop;
	struct boxes boxes;
	struct source signals;
	char dir[64];
	struct rig_told told[RIG_TOLD]; /* of the last so many spawns */
	unsigned n;
};

/* program: what runs as pid 1. Ends the program with a message when the machine cannot do it. */
void rig_open(struct rig *r, const char *program, unsigned slots);
/* Everything must be gone: boxes, groups, folder. */
void rig_close(struct rig *r);
struct box_limits rig_limits(void);
/* Spawns; what: the line for the probe runner. Returns our duplicate of the result, or -1 when refused at once. */
int rig_spawn(struct rig *r, const char *run, uint8_t kind, const struct box_limits *l, const char *what);
struct rig_told *rig_told(struct rig *r, const char *run);
/* Turns the loop until *flag or ms have passed; false then. */
bool rig_until(struct rig *r, const bool *flag, int ms);
/* Turns it until the result holds this text. */
bool rig_until_says(struct rig *r, int result, const char *text, int ms);
/* The result so far; the caller frees. */
char *rig_text(int result);
/* Runs a work box to its end and takes it down; the text it left (the caller frees). */
char *rig_run(struct rig *r, const char *run, const char *what);
uint64_t rig_ns(void);
#endif
