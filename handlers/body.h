/* The request body: type, announced length, bytes, text, JSON, in this order. */
#ifndef HANDLERS_BODY_H
#define HANDLERS_BODY_H
#include "handlers/request.h"

/* The announced length. -1: there is none. -2: no number. Larger than a body may ever be counts as UINT32_MAX. */
int64_t body_announced(const struct arrival *in);
/* Is a body whose end came after so many bytes all that was announced? */
bool body_whole(const struct arrival *in, uint64_t came);
/* What a body is refused with that broke off, by what its source said. */
enum err body_broke(long got);
/* May the body be read at all? ERR_JSON_REQUIRED, ERR_ARCHIVE_REQUIRED, ERR_UNSUPPORTED_ENCODING,
 * ERR_REQUEST_TOO_LARGE, ERR_SOURCE_ARCHIVE_TOO_LARGE, ERR_INVALID_REQUEST (the announced length is no number), or
 * ERR_OK. */
enum err body_admit(const struct arrival *in, const struct route *route);
/* Reads it whole. ERR_REQUEST_TOO_LARGE at the first byte over the route's limit, ERR_LENGTH_MISMATCH when
 * it breaks off or has another length than announced. */
enum err body_read(const struct arrival *in, const struct route *route, struct buf *out);
/* ERR_INVALID_JSON or ERR_INVALID_JSON_OBJECT; *why a static phrase. The tree lives in the arena. */
enum err body_json(struct arena *a, const struct buf *body, const struct json **json, const char **why);
#endif
