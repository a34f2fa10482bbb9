/*
 * Writes result frames. What the agent left is copied, never looked at.
 */
#include "runner/result.h"
#include "lib/chan.h"
#include "lib/own.h"

/* Room for a frame's fixed fields, lengths and NULs beside its bytes. */
enum { FIXED = 512 };

static bool add(struct result *r, const uint8_t *frame, size_t n)
{
	if (!frame || !n || !bundle_add(r->fd, frame, n))
		return false;
	r->bytes += n + 4;
	return true;
}

#define RESULT(name, bytes_of_m)                                             \
	bool result_##name(struct result *r, const struct bn_##name *m)      \
	{                                                                    \
		size_t cap = FIXED + (size_t)(bytes_of_m);                   \
		own_free uint8_t *buf = malloc(cap);                         \
		return add(r, buf, buf ? bn_put_##name(buf, cap, 0, m) : 0); \
	}

RESULT(ran, m->output.n)
RESULT(checked, m->output.n)
RESULT(entry, m->path.n + m->content.n)
RESULT(claim, m->response.n)
RESULT(collected, 0)
RESULT(broken, 512)
