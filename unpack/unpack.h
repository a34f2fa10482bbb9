/* What an uploaded archive is allowed to become: plain files below one folder. */
#ifndef UNPACK_UNPACK_H
#define UNPACK_UNPACK_H
#include "gen/errors.h"
#include <stdbool.h>
#include <stdint.h>

struct unpack_limits {
	uint32_t files;
	uint64_t bytes, file_bytes;
};

/* Why it was refused: ERR_OK if it was not. */
struct unpack_fault {
	enum err code;
	char name[200]; /* of the entry at fault, in printable ASCII; empty: of none, or it has none that could be said
			 */
};

/*
 * Reads the archive from this descriptor's offset to its end, and writes what it holds into this open folder, which is
 * empty. Stops at the first fault: what is there then is of no use. ERR_RESOURCES_EXHAUSTED, ERR_INTERNAL_ERROR: not
 * the archive's fault. Neither descriptor is closed.
 */
void unpack_archive(int archive, int into, const struct unpack_limits *most, struct unpack_fault *fault);
#endif
