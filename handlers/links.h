/* Addresses of a run, below the mount that the request came through. */
#ifndef HANDLERS_LINKS_H
#define HANDLERS_LINKS_H
#include "lib/buf.h"
#include "lib/json.h"

enum { LINKS_BYTES = 16384 };
/* "/mount/v1/runs/ID" and tail; NULL without memory. */
char *link_to(struct arena *a, const char *mount, const char *run, const char *tail);
/* The object with status, events, approvals, cancel and artifacts. */
void links_write(struct jw *w, const char *mount, const char *run);
#endif
