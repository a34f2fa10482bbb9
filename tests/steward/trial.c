/* See trial.h. */
#include "tests/steward/trial.h"
#include "lib/own.h"
#include <stdio.h>

const char *const trial_extensions[4] = {".py", ".txt", ".md", ".cfg"};

void trial_hear(int out, struct said *s)
{
	struct bundle b;
	const uint8_t *frame;
	size_t n;
	uint16_t number;
	uint64_t op;
	assert_true(bundle_open(&b, out, BN_MAXFRAME));
	while (bundle_next(&b, &frame, &n) > 0) {
		assert_true(wire_peek(frame, n, &number, &op));
		if (number == BN_JUDGED) {
			struct bn_judged m;
			assert_true(bn_get_judged(frame, n, &m));
			s->accepted = m.accepted;
			s->code = (enum err)m.code;
			s->seen = m.changed;
			memcpy(s->field, m.field.p, m.field.n);
		} else if (number == BN_CHANGE) {
			struct bn_change m;
			assert_true(bn_get_change(frame, n, &m) && s->n < CHANGES);
			snprintf(s->path[s->n], 161, "%s", m.path);
			s->how[s->n] = m.how;
			s->exec[s->n++] = m.executable;
		} else if (number == BN_PATCH) {
			struct bn_patch m;
			assert_true(bn_get_patch(frame, n, &m));
			s->patch = malloc(m.text.n + 1);
			assert_non_null(s->patch);
			memcpy(s->patch, m.text.p, m.text.n);
			s->patch[m.text.n] = '\0';
			s->patch_n = m.text.n;
			s->truncated = m.truncated;
		} else {
			struct bn_summary m;
			assert_true(number == BN_SUMMARY && bn_get_summary(frame, n, &m));
			memcpy(s->summary, m.text.p, m.text.n);
			snprintf(s->status, sizeof s->status, "%s", m.claimed_status);
		}
	}
	bundle_close(&b);
}

struct said *trial_judge(const struct trial *t, const char *claim)
{
	own_fd int up = bundle_new("up"), left = bundle_new("left"), out = bundle_new("out");
	struct said *s = calloc(1, sizeof *s);
	struct judge_rules rules = {.allow = t->allow, .extensions = trial_extensions, .nextensions = 4};
	assert_non_null(s);
	while (rules.nallow < 4 && t->allow[rules.nallow] != NULL)
		rules.nallow++;
	size_t nup = 0, nleft = 0;
	while (nup < 8 && t->up[nup].path != NULL)
		nup++;
	while (nleft < 8 && t->left[nleft].path != NULL)
		nleft++;
	bundles_sources(up, t->up, nup);
	bundles_ran(left, true, 0, false, false);
	bundles_entries(left, t->left, nleft);
	if (claim != NULL)
		bundles_claim(left, claim);
	bundles_collected(left, (uint32_t)nleft, true);
	assert_int_equal(judge_decide(up, left, &rules, out), ERR_OK);
	trial_hear(out, s);
	return s;
}

void trial_end(struct said *s)
{
	free(s->patch);
	free(s);
}
