/*
 * An archive on its way in: a file of its own below store/blobs/in, which is hashed as it grows and written to the disk
 * piece by piece, so that no turn waits for much. Its end makes a blob of it. What is there at a start was never
 * answered, and goes.
 */
#ifndef STORE_UPLOADS_H
#define STORE_UPLOADS_H
#include "store/blobs.h"
#include "store/txn.h"

enum { UPLOADS_MOST = 64 /* of all tenants */ };

struct upload;

/* bytes: as announced, 0: not known; most: that it may have. NULL with *e. */
struct upload *upload_begin(struct blobs *b, const char *tenant, uint64_t bytes, uint64_t most, enum err *e);
/* One that was not made a blob leaves nothing. NULL is fine. */
void upload_free(struct upload *u);
const char *upload_tenant(const struct upload *u);
/* What it has, or will have by what was announced. */
uint64_t upload_bytes(const struct upload *u);
/* A part that came before, as one that is asked again does, is taken and changes nothing. Otherwise offset must be
 * where it ends: ERR_INVALID_REQUEST. ERR_SOURCE_ARCHIVE_TOO_LARGE, ERR_STORAGE_FULL, or what store_error says. */
enum err upload_add(struct upload *u, uint64_t offset, struct wire_bytes data);
/* All came, bytes of it: durable, and named by its digest where it is a file. Then blob_name and, where that fails,
 * blob_undo, as after blob_take. */
enum err upload_end(struct txn *t, struct upload *u, uint64_t bytes, struct blob *out);
#endif
