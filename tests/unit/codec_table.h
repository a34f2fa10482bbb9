/*
 * A table of every generated codec (the *_test.c files in gen), for the truncation test and the fuzz targets.
 */
#ifndef TESTS_UNIT_CODEC_TABLE_H
#define TESTS_UNIT_CODEC_TABLE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct codec_row {
	const char *name;  /* NULL ends the table */
	bool framed;       /* a message with a header; else a record or a part of a list */
	size_t most;       /* bytes that one can have */
	unsigned version;  /* of the record, else of the protocol */
	const char *reply; /* of a question; "" elsewhere */
	const char *fields;
	/* Writes a sample whose bools are all `truth`; returns its length. */
	size_t (*fill)(uint8_t *buf, size_t cap, bool truth);
	bool (*read)(const uint8_t *p, size_t len);
	/* Reads and writes again, under that operation id; 0: refused. */
	size_t (*again)(const uint8_t *p, size_t len, uint8_t *buf, size_t cap, uint64_t op);
};

/* A protocol with the names of its table. Names end with NULL; roles and states are numbered in this order. */
struct wire_msg;
struct codec_protocol {
	const struct wire_msg *msgs; /* NULL: records */
	unsigned version, maxframe;
	const char *roles[9], *states[9];
	const struct codec_row *rows;
};

extern const struct codec_protocol st_protocol, sbx_protocol, bn_protocol, cf_protocol, rec_protocol;
extern const struct codec_row st_codecs[], sbx_codecs[], bn_codecs[], cf_codecs[], rec_codecs[];
#endif
