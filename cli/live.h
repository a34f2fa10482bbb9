/* The line at the bottom of a terminal that says how a run goes on; where there is no terminal, nothing. */
#ifndef CLI_LIVE_H
#define CLI_LIVE_H
#include "cli/cli.h"

struct live {
	bool on, shown;
	char phase[33];
	unsigned events, calls, most; /* most: model requests that the run may make; 0: not known */
	uint64_t since;
};

/* most: model requests that the run may make; 0: not known. */
void live_open(struct live *l, unsigned most);
/* Counts an event. */
void live_event(struct live *l, const struct json *event);
/* Writes the line anew; takes it away, so that something else can be written. */
void live_show(struct live *l);
void live_hide(struct live *l);
#endif
