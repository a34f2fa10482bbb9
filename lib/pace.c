/* See pace.h. */
#include "lib/pace.h"

const struct pace_rate pace_source = {.burst = 10, .every_ms = 5000};
const struct pace_rate pace_role = {.burst = 50, .every_ms = 1000};

bool pace_take(struct pace *p, struct pace_rate rate, uint64_t now, uint32_t *suppressed)
{
	if (p->since == 0) {
		p->since = now;
		p->left = rate.burst;
	}
	uint64_t more = (now - p->since) / rate.every_ms;
	if (more > 0) {
		p->since += more * rate.every_ms;
		p->left = more >= rate.burst - p->left ? rate.burst : p->left + (unsigned)more;
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
