/*
 * Two configurations held against each other by the rows of spec/conf.tab: what a running service cannot take up. Pure
 * functions; both were loaded and bounded before.
 */
#include "gen/conf_tab.h"
#include "lib/conf.h"
#include <stdio.h>
#include <string.h>

static bool same_text(const char *a, const char *b)
{
	return strcmp(a != NULL ? a : "", b != NULL ? b : "") == 0;
}

static bool same_words(const struct conf_row *r, const uint8_t *a, const uint8_t *b)
{
	uint32_t n, m;
	const char *const *x = (const char *const *)(const void *)(a + r->at);
	const char *const *y = (const char *const *)(const void *)(b + r->at);
	memcpy(&n, a + r->count_at, sizeof n);
	memcpy(&m, b + r->count_at, sizeof m);
	bool same = n == m;
	for (uint32_t i = 0; i < n && same; i++)
		same = same_text(x[i], y[i]);
	return same;
}

/* One field of two messages of a kind. */
static bool same(const struct conf_row *r, const void *one, const void *other)
{
	static const size_t size[] = {[CONF_HELD_BOOL] = sizeof(bool),
				      [CONF_HELD_U8] = 1,
				      [CONF_HELD_U16] = 2,
				      [CONF_HELD_U32] = 4,
				      [CONF_HELD_U64] = 8,
				      [CONF_HELD_STR] = 0,
				      [CONF_HELD_STRS] = 0};
	const uint8_t *a = one, *b = other;
	if (r->held == CONF_HELD_STRS)
		return same_words(r, a, b);
	if (r->held != CONF_HELD_STR)
		return memcmp(a + r->at, b + r->at, size[r->held]) == 0;
	const char *x, *y;
	memcpy(&x, a + r->at, sizeof x);
	memcpy(&y, b + r->at, sizeof y);
	return same_text(x, y);
}

static bool same_role(const char *name, const struct conf *now, const struct conf *next)
{
	const struct cf_role *a = conf_role(now, name), *b = conf_role(next, name);
	return a == b || (a != NULL && b != NULL && a->uid == b->uid && a->gid == b->gid);
}

/* Of what there may be several, those that both have: what is new, or gone, has changed nothing that runs. */
static const char *several(const struct conf_row *r, const struct conf *now, const struct conf *next)
{
	if (r->message == CF_PROVIDER)
		for (uint32_t i = 0; i < now->nproviders; i++) {
			const struct cf_provider *b = conf_provider(next, now->providers[i].name);
			if (b != NULL && !same(r, &now->providers[i], b))
				return b->name;
		}
	else if (r->message == CF_PROFILE)
		for (uint32_t i = 0; i < now->nprofiles; i++) {
			const struct cf_profile *b = conf_profile(next, now->profiles[i].name);
			if (b != NULL && !same(r, &now->profiles[i], b))
				return b->name;
		}
	else if (r->message == CF_AGENT)
		for (uint32_t i = 0; i < now->nagents; i++) {
			const struct cf_agent *b = conf_agent(next, now->agents[i].name);
			if (b != NULL && !same(r, &now->agents[i], b))
				return b->name;
		}
	else if (r->message == CF_TENANT)
		for (uint32_t i = 0; i < now->ntenants; i++) {
			const struct conf_tenant *b = conf_tenant(next, now->tenants[i].t.name);
			if (b != NULL && !same(r, &now->tenants[i].t, &b->t))
				return b->t.name;
		}
	return NULL;
}

static bool differs(const struct conf_row *r, const struct conf *now, const struct conf *next, const char **title)
{
	*title = NULL;
	switch (r->message) {
	case 0:
		return r->type == CONF_ROLE && !same_role(r->name, now, next);
	case CF_GLOBAL:
		return !same(r, &now->global, &next->global);
	case CF_PUSH:
		return !same(r, &now->push, &next->push);
	case CF_SHARED_GID:
		return now->shared_gid != next->shared_gid;
	default:
		*title = several(r, now, next);
		return *title != NULL;
	}
}

const char *conf_restart_needed(const struct conf *now, const struct conf *next)
{
	static char what[300];
	const struct cf_global *a = &now->global, *b = &next->global;
	if (!same_text(a->run_dir, b->run_dir) || !same_text(a->state_dir, b->state_dir) ||
	    !same_text(a->log_dir, b->log_dir) || !same_text(a->libexec_dir, b->libexec_dir))
		return "the folders of the installation";
	for (size_t i = 0; i < CONF_ROWS; i++) {
		const struct conf_row *r = &conf_rows[i];
		const char *title;
		if (!r->restart || !differs(r, now, next, &title))
			continue;
		if (title != NULL)
			snprintf(what, sizeof what, "%s %s: %s", r->section, title, r->name);
		else if (strcmp(r->section, "machine") == 0)
			snprintf(what, sizeof what, "%s", r->name);
		else
			snprintf(what, sizeof what, "%s: %s", r->section, r->name);
		return what;
	}
	return NULL;
}
