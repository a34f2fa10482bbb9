/*
 * Appends frames to the result memfd. Every function: false when it cannot be written.
 */
#ifndef RUNNER_RESULT_H
#define RUNNER_RESULT_H
#include "gen/bundle_msg.h"

struct result {
	int fd;
	uint64_t bytes; /* of all frames so far */
};
bool result_ran(struct result *r, const struct bn_ran *m);
bool result_checked(struct result *r, const struct bn_checked *m);
bool result_entry(struct result *r, const struct bn_entry *m);
bool result_claim(struct result *r, const struct bn_claim *m);
bool result_collected(struct result *r, const struct bn_collected *m);
bool result_broken(struct result *r, const struct bn_broken *m);
#endif
