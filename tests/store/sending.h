/* Archives on their way to stored, in short forms. */
#ifndef TESTS_STORE_SENDING_H
#define TESTS_STORE_SENDING_H
#include "tests/store/steps.h"

struct sent {
	uint8_t sha[32];
	uint64_t expires_at;
	bool made;
};

enum err source_begin(struct ask *a, const char *tenant, uint64_t bytes, uint64_t most);
enum err source_part(struct ask *a, const char *tenant, uint64_t at, const uint8_t *p, size_t n);
enum err source_end(struct ask *a, const char *tenant, uint64_t bytes, struct sent *sent);
enum err source_drop(struct ask *a, const char *tenant);
/* All of it, as fcgi, in parts of so many bytes. */
enum err source_send(struct ask *a, const char *tenant, const uint8_t *p, size_t n, size_t part, struct sent *sent);
#endif
