/*
 * What the targets of the two protocols share: a script of frames is handed to a generated dispatcher, as
 * from one connection. A call may be made only where the table permits it, once, and with exactly the bytes
 * that came.
 */
#ifndef TESTS_FUZZ_FUZZ_DISPATCH_H
#define TESTS_FUZZ_FUZZ_DISPATCH_H
#include "lib/wire.h"

/* First byte of an input that is a script; any other is one frame for the decoders. Then a byte for the
 * role, and repeated: a byte for the number of descriptors, two for the length, so many bytes. */
enum { FUZZ_SCRIPT = 0xff };

/* Generated (gen/NAME_fuzz.c). */
struct fuzz_protocol {
	const struct wire_msg *msgs;
	unsigned roles, version;
	const char *(*dispatch)(struct wire_conn *c, void *from, const uint8_t *frame, size_t len, int *fds, int nfds);
};
extern const struct fuzz_protocol st_fuzz, sbx_fuzz;

void fuzz_script(const struct fuzz_protocol *p, const uint8_t *data, size_t size);
/* For the generated functions: room to write a message again, and what was called with what. */
struct fuzz_room {
	uint8_t *p;
	size_t cap;
};
struct fuzz_room fuzz_room(void *from);
void fuzz_called(void *from, uint16_t number, uint64_t op, size_t n);
#endif
