/* See pace.h. */
#include "lib/pace.h"

bool pace_take(struct pace *p, uint64_t now, uint32_t *suppressed)
{
	if (p->since == 0) {
		p->since = now;
		p->left = PACE_BURST;
	}
	uint64_t more = (now - p->since) / PACE_EVERY_MS;
	if (more > 0) {
		p->since += more * PACE_EVERY_MS;
		p->left = more >= PACE_BURST - p->left ? PACE_BURST : p->left + (unsigned)more;
	}
	if (p->left == 0) {
		p->held += p->held < UINT32_MAX;
		return false;
	}
	p->left--;
	*suppressed = p->held;
	p->held = 0;
	return true;
}
