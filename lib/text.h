/* Foreign text, cleaned once at ingest (C-60...C-66), and made safe for logs and terminals. */
#ifndef LIB_TEXT_H
#define LIB_TEXT_H
#include "lib/buf.h"
#include <stdbool.h>
#include <stddef.h>

enum text_kind { TEXT_LINE, TEXT_BODY }; /* BODY keeps newline and tab */

/* Appends the cleaned form of n bytes of valid UTF-8, at most cap bytes, "…" included where it was cut.
 * True: cleaning or cutting changed the text. */
bool text_clean(struct buf *out, const char *s, size_t n, enum text_kind kind, size_t cap);
/* One line that cannot move a cursor or forge a line: bytes outside printable ASCII become \xNN. */
void text_log(struct buf *out, const char *s, size_t n, size_t cap);
#endif
