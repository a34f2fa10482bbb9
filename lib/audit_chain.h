/*
 * The chain of the audit log, for its writer and its verifier. A line is one JSON object that ends in
 * "prev" and "hash": hash is SHA-256, in hexadecimal, over the text of prev followed by the line as it is
 * without its hash member; prev is the hash of the line before, 64 zeros for the very first.
 */
#ifndef LIB_AUDIT_CHAIN_H
#define LIB_AUDIT_CHAIN_H
#include "lib/buf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AUDIT_HASH = 64, AUDIT_LINE_MAX = 8192, AUDIT_GENERATIONS_MAX = 99 };
#define AUDIT_FILE "audit.log"

/* What a line says of itself. */
struct audit_seen {
	uint64_t seq;
	char prev[AUDIT_HASH + 1], hash[AUDIT_HASH + 1];
	const char *event; /* inside the line */
	size_t event_len;
	bool sound; /* its hash is right */
};

void audit_no_hash(char hash[AUDIT_HASH + 1]);
/* b holds, from start on, an object without its last bracket: closes it with prev and hash and a newline, and
 * leaves the new hash in hash. False: no digest, or the buffer failed. */
bool audit_seal(struct buf *b, size_t start, const char prev[AUDIT_HASH + 1], char hash[AUDIT_HASH + 1]);
/* A line of n bytes without its newline. False: it is not of this form at all. */
bool audit_read(const char *line, size_t n, struct audit_seen *out);
/* A member's number, as in ,"name":123 ; false where there is none. The line must be sound. */
bool audit_number(const char *line, size_t n, const char *name, uint64_t *out);
/* A member's text of exactly len bytes is this one. */
bool audit_text_is(const char *line, size_t n, const char *name, const char *text);
#endif
