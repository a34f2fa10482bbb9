/*
 * Foreign text: cleaned once, where it comes in, by spec/text.tab (C-60...C-70), and made safe for logs and terminals.
 * Pure functions; what they append is lost with a failed buffer, as everywhere (buf_failed).
 */
#ifndef LIB_TEXT_H
#define LIB_TEXT_H
#include "gen/text.h"
#include "lib/buf.h"
#include <stdbool.h>
#include <stddef.h>

struct text_row {
	const char *name;
	enum text_kind kind;
	enum text_of of;
	size_t cap; /* bytes, the mark of a cut included */
};
/* Its row of the table. */
const struct text_row *text_row(enum text_field f);
/* The field of a string with this key at the top level of the data of an event, or of a question (an
 * approval.requested); TEXT_F_EVENT where the table has none. */
enum text_field text_field_of(const char *key, bool question);

/* Appends the cleaned form of n bytes. True: it differs from them, so the reader must be told ("Text shortened").
 * Cleaning what is clean changes nothing. */
bool text_field(struct buf *out, enum text_field f, const char *s, size_t n);
/* The same for a kind and a cap that no row has; "…" is left out where the cap is below its 3 bytes. */
bool text_clean(struct buf *out, const char *s, size_t n, enum text_kind kind, size_t cap);
/* Appends n bytes of clean text with "[masked]" in the place of what looks like a secret (rows of mask). True: there
 * was something. Never longer than what came; what is masked stays as it is. In linear time. */
bool text_mask(struct buf *out, const char *s, size_t n);
/* text_field() with what looks like a secret masked: after the cleaning, so that nothing that does not show keeps one
 * from being seen, and before the cut. *masked: there was something. */
bool text_field_masked(struct buf *out, enum text_field f, const char *s, size_t n, bool *masked);
/* Clean text: is there anything in it to read? False for one of nothing but blanks. */
bool text_words(const char *s, size_t n);
/* An address that a person may be offered to open (C-69): https, a host, neither user nor password, nothing that does
 * not show. Appends it with its host in the form that the network uses, so that look-alikes of other scripts show
 * (xn--...), and the host alone to host (may be NULL). False: it must not be offered, and nothing was appended. */
bool text_link(struct buf *out, struct buf *host, const char *s, size_t n);

/* One line that cannot move a cursor or forge a line: bytes outside printable ASCII become \xNN, the end "..." where
 * it is longer than cap bytes. */
void text_log(struct buf *out, const char *s, size_t n, size_t cap);
/* One line for a terminal, which a person reads: what shows stays, tabs too, other bytes become \xNN. utf8: the
 * terminal takes more than ASCII. */
void text_screen(struct buf *out, const char *s, size_t n, bool utf8);
/* The same for JSON on one line: what does not show becomes \uNNNN, so that it stays the same JSON. */
void text_json(struct buf *out, const char *json, size_t n, bool utf8);
#endif
