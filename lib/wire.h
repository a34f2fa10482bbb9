/*
 * The wire form of messages and records: big-endian, fixed widths, exact end, first error latched.
 * A frame is: u16 number, u8 version, u8 descriptors, u64 operation id, fields. Strings carry a
 * u32 length, their bytes and a NUL that the length does not count, so that a decoded pointer into
 * the frame is a C string; it lives as long as the frame. Used by generated code (tools/gen-msg.awk).
 */
#ifndef LIB_WIRE_H
#define LIB_WIRE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WIRE_HEADER = 12, WIRE_MAX_FDS = 4 };

struct wire_bytes {
	const uint8_t *p;
	uint32_t n;
};

struct wire_w {
	uint8_t *p;
	size_t cap, n;
	bool bad;
};

struct wire_r {
	const uint8_t *p;
	size_t left;
	bool bad;
};

/* One row of a generated message table; roles and states are bit sets, 0 for downward messages. */
struct wire_msg {
	uint16_t number;
	const char *name;
	uint8_t nfds;
	uint32_t roles, states;
	uint8_t next;
	bool once;
};

/* The answering end's view of one connection. state and role start at the protocol's 0th state and
 * the role of the peer; seen has a bit for each `once` row already used (by row index). */
struct wire_conn {
	uint8_t role, state;
	uint64_t seen;
};

struct wire_w wire_begin(uint8_t *buf, size_t cap, uint16_t number, uint8_t version, uint8_t nfds, uint64_t op);
size_t wire_end(struct wire_w *w); /* bytes written, 0 after any error */
struct wire_r wire_open(const uint8_t *frame, size_t len, uint16_t number, uint8_t version, uint8_t nfds);
bool wire_done(const struct wire_r *r); /* true: no error and nothing left over */
/* The same without a header, for records and list parts. */
struct wire_w wire_plain(uint8_t *buf, size_t cap);
size_t wire_end_plain(struct wire_w *w);
struct wire_r wire_open_plain(const uint8_t *p, size_t len);

uint8_t *wire_room(struct wire_w *w, size_t n); /* for n bytes, which count as put; NULL after an error */
void wire_put_u8(struct wire_w *w, uint8_t v);
void wire_put_u16(struct wire_w *w, uint16_t v);
void wire_put_u32(struct wire_w *w, uint32_t v);
void wire_put_u64(struct wire_w *w, uint64_t v);
void wire_put_i32(struct wire_w *w, int32_t v);
void wire_put_bool(struct wire_w *w, bool v);
void wire_put_id(struct wire_w *w, const char *s);              /* an error unless id_valid(s) */
void wire_put_str(struct wire_w *w, const char *s, size_t max); /* NULL is written as "" */
void wire_put_bytes(struct wire_w *w, struct wire_bytes b, size_t max);
void wire_put_strs(struct wire_w *w, const char *const *v, uint32_t n, uint32_t maxn, size_t max);
void wire_put_key(struct wire_w *w, const char *s); /* s and its NUL: a part of a record key */

uint8_t wire_get_u8(struct wire_r *r);
uint16_t wire_get_u16(struct wire_r *r);
uint32_t wire_get_u32(struct wire_r *r);
uint64_t wire_get_u64(struct wire_r *r);
int32_t wire_get_i32(struct wire_r *r);
bool wire_get_bool(struct wire_r *r); /* anything but 0 and 1 is an error */
const char *wire_get_id(struct wire_r *r);
const char *wire_get_str(struct wire_r *r, size_t max); /* refuses an inner NUL; "" after an error */
struct wire_bytes wire_get_bytes(struct wire_r *r, size_t max);
uint32_t wire_get_strs(struct wire_r *r, const char **v, uint32_t maxn, size_t max);

/* Header of a received frame without checking it against a table. False: shorter than a header. */
bool wire_peek(const uint8_t *frame, size_t len, uint16_t *number, uint64_t *op);
/* Checks header, table row, role, state, once and descriptor count. NULL, or the reason to close. */
const char *wire_admit(const struct wire_msg *table, uint8_t version, const struct wire_conn *c, const uint8_t *frame,
		       size_t len, int nfds, const struct wire_msg **row, uint64_t *op);
/* Moves the connection on after a message was decoded. `once` is remembered by number mod 64. */
void wire_accept(struct wire_conn *c, const struct wire_msg *row);

/* Lists inside a bytes field: u32 length and one encoded struct, repeated. */
struct wire_list {
	uint8_t *p;
	size_t cap, n;
	bool full;
};
/* Room for one more part of at most `most` bytes, or NULL (then full is set). */
uint8_t *wire_list_room(struct wire_list *l, size_t most);
void wire_list_add(struct wire_list *l, size_t n); /* the part of n bytes was written there */
struct wire_bytes wire_list_done(const struct wire_list *l);
/* Takes the next part off the front. False at the end; *bad is set when the list is malformed. */
bool wire_list_next(struct wire_bytes *rest, struct wire_bytes *part, bool *bad);
#endif
