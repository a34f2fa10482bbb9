/* The texts that a finished run leaves: artifacts, and the JSON parts of its record. */
#ifndef STEWARD_REPORT_H
#define STEWARD_REPORT_H
#include "lib/json.h"
#include "steward/app.h"

/* "key":{"run","failed","skipped"}, or nothing where they are not known. */
void report_counts(struct jw *w, const char *key, const struct check_counts *c);
void report_request(struct buf *out, const struct run *r);      /* as it was stored at creation */
void report_checkpoint(struct buf *out, const struct run *r);   /* both trees: path, size, SHA-256 */
void report_patch(struct buf *out, const struct run *r);        /* for `git apply`; empty when nothing changed */
void report_test_log(struct buf *out, const struct run *r);     /* what each check printed */
void report_transcript(struct buf *out, const struct run *r);   /* what the agent printed, raw; empty: it has none */
void report_result(struct buf *out, const struct run *r);       /* what was computed and, apart, what was claimed */
void report_summary(struct buf *out, const struct run *r);      /* one JSON string, at most 16,000 bytes */
void report_changes(struct buf *out, const struct run *r);      /* JSON array of paths */
void report_verification(struct buf *out, const struct run *r); /* JSON array of the checks that ran */
#endif
