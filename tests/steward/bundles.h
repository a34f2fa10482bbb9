/* Makes uploads and work results as the public side and the runner would (or would never). For tests. */
#ifndef TESTS_STEWARD_BUNDLES_H
#define TESTS_STEWARD_BUNDLES_H
#include "gen/bundle_msg.h"
#include "lib/chan.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Tables of these leave most fields out. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

struct given {
	const char *path;
	const char *text;
	size_t n; /* 0: strlen(text) */
	int type; /* 0: file; else enum entry_type */
	bool exec;
};

static inline void bundles_add(int fd, const uint8_t *frame, size_t n)
{
	if (n == 0 || !bundle_add(fd, frame, n))
		abort();
}

static inline struct wire_bytes bundles_bytes(const struct given *g)
{
	const char *text = g->text != NULL ? g->text : "";
	return (struct wire_bytes){(const uint8_t *)text, (uint32_t)(g->n > 0 ? g->n : strlen(text))};
}

static inline void bundles_sources(int fd, const struct given *v, size_t n)
{
	static uint8_t frame[2000000];
	for (size_t i = 0; i < n; i++) {
		struct bn_source m = {.path = v[i].path, .content = bundles_bytes(&v[i])};
		bundles_add(fd, frame, bn_put_source(frame, sizeof frame, 0, &m));
	}
	struct bn_source_end end = {.files = (uint32_t)n};
	bundles_add(fd, frame, bn_put_source_end(frame, sizeof frame, 0, &end));
}

static inline void bundles_ran(int fd, bool started, int status, bool timed_out, bool stopped)
{
	uint8_t frame[1000];
	struct bn_ran m = {.started = started,
			   .status = status,
			   .timed_out = timed_out,
			   .stopped = stopped,
			   .duration_ms = 1234,
			   .output = {(const uint8_t *)"hello\n", 6}};
	bundles_add(fd, frame, bn_put_ran(frame, sizeof frame, 0, &m));
}

static inline void bundles_entries(int fd, const struct given *v, size_t n)
{
	static uint8_t frame[2000000];
	for (size_t i = 0; i < n; i++) {
		struct wire_bytes content = bundles_bytes(&v[i]);
		struct bn_entry m = {.path = {(const uint8_t *)v[i].path, (uint32_t)strlen(v[i].path)},
				     .type = (uint8_t)(v[i].type == 0 ? 1 : v[i].type),
				     .executable = v[i].exec,
				     .size = content.n,
				     .content = content};
		bundles_add(fd, frame, bn_put_entry(frame, sizeof frame, 0, &m));
	}
}

static inline void bundles_claim(int fd, const char *json)
{
	static uint8_t frame[BN_MAX_CLAIM];
	struct bn_claim m = {.response = {(const uint8_t *)json, (uint32_t)strlen(json)}};
	bundles_add(fd, frame, bn_put_claim(frame, sizeof frame, 0, &m));
}

static inline void bundles_collected(int fd, uint32_t entries, bool complete)
{
	uint8_t frame[BN_MAX_COLLECTED];
	struct bn_collected m = {.entries = entries, .complete = complete};
	bundles_add(fd, frame, bn_put_collected(frame, sizeof frame, 0, &m));
}

static inline void bundles_checked(int fd, const char *name, bool started, int status, bool timed_out,
				   const char *output)
{
	uint8_t frame[4000];
	struct bn_checked m = {.name = name,
			       .started = started,
			       .status = status,
			       .timed_out = timed_out,
			       .duration_ms = 56,
			       .output = {(const uint8_t *)output, (uint32_t)strlen(output)}};
	bundles_add(fd, frame, bn_put_checked(frame, sizeof frame, 0, &m));
}
#endif
