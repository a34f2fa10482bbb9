/*
 * Uploads, sources and artifacts, named by their SHA-256. The bytes of a small one are a record, durable with the
 * commit that names it; a larger one is a file below store/blobs, durable before that commit. Files that no
 * record names are swept at the next start.
 */
#ifndef STORE_BLOBS_H
#define STORE_BLOBS_H
#include "gen/errors.h"
#include "lib/wire.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct txn;
enum { BLOB_UPLOAD_MAX = 8 * 1000 * 1000, BLOB_MAX = 1500 * 1000, BLOB_SHA = 32 };
/* The most that is a record: as spec/records.rec says. What a file costs are two waits for the disk more. */
enum { BLOB_SMALL = 16000 };

struct blobs {
	int dir;          /* store/blobs */
	int in;           /* store/blobs/in, of uploads on their way */
	uint64_t uploads; /* since the start: each has a name of its own */
	int empty;        /* a descriptor of nothing, for answers that need none */
};

struct blob {
	uint8_t sha[BLOB_SHA];
	uint64_t size;
	bool fresh;           /* this call made the file */
	const uint8_t *small; /* the bytes, in the transaction's arena or the message; NULL: in a file */
};

/* store_dir stays the caller's. Sweeps. Ends the program when the folder cannot be used. */
void blobs_open(struct blobs *b, int store_dir, struct txn *t);
void blobs_close(struct blobs *b);
/*
 * Copies the whole of fd, once, at most max bytes, and makes the copy durable unless it is a small one, which
 * blob_name writes; fd stays the caller's and may be changed by its sender at any time without harm.
 * ERR_REQUEST_TOO_LARGE, ERR_INVALID_REQUEST (no regular file), ERR_STORAGE_FULL, or what store_error says.
 */
enum err blob_take(struct txn *t, int fd, uint64_t max, struct blob *out);
/* A small one whose bytes came in the message, where they must stay until the transaction ends. */
enum err blob_small(struct wire_bytes bytes, struct blob *out);
/* A file named had in the folder from, durable and of blob's sha and size, becomes the blob's. Where there was one
 * already, blob->fresh stays false and the file where it is. The errors of blob_take. */
enum err blob_adopt(struct txn *t, int from, const char *had, struct blob *blob);
/* Names the blob in this transaction: by this name of this run. */
void blob_name(struct txn *t, const struct blob *b, const char *tenant, const char *run, const char *name);
/* Takes a name away again. A blob without any goes: its records now, its file once that is durable. */
void blob_unname(struct txn *t, struct wire_bytes sha, const char *tenant, const char *run, const char *name);
/* Does anybody name it? */
bool blob_used(struct txn *t, const uint8_t sha[BLOB_SHA]);
/* Removes the file, unless the blob was named again since. */
void blob_remove(struct txn *t, const uint8_t sha[BLOB_SHA]);
/* The transaction that was to name it failed: removes the file that blob_take made. */
void blob_undo(struct txn *t, const struct blob *b);
/* A descriptor that can only be read; -1 with the transaction failed when it is not there. */
int blob_read(struct txn *t, struct wire_bytes sha);
/* The same, but the bytes of a small one that is not empty are *bytes, until txn_free, and its descriptor is of an
 * empty file. */
int blob_tell(struct txn *t, struct wire_bytes sha, struct wire_bytes *bytes);
#endif
