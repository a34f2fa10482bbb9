/* The configuration memfd: what is refused, what the look-ups find, and where an instance lives. */
#include "gen/conf_tab.h"
#include "lib/bridged.h"
#include "lib/chan.h"
#include "lib/conf.h"
#include "lib/place.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Which frame is left out or spoilt. */
enum spoil {
	NOTHING,
	NO_END,
	NO_GLOBAL,
	TWO_GLOBALS,
	AFTER_END,
	ROOT_ROLE,
	TWICE_ROLE,
	SECRET_SLASH,
	SECRET_ROLE,
	PROFILE_PROVIDER,
	PROVIDER_SECRET,
	TENANT_AGENT,
	TENANT_PROFILE,
	CHECK_TENANT,
	TWICE_TENANT,
	UNKNOWN_FRAME,
	NO_SEAL,
	SPOIL__COUNT
};

#define ADD(name, ...)                                          \
	do {                                                    \
		struct cf_##name m_ = {__VA_ARGS__};            \
		size_t n_ = cf_put_##name(b, sizeof b, 0, &m_); \
		assert_true(n_ > 0 && bundle_add(fd, b, n_));   \
	} while (0)

static int make(enum spoil s)
{
	uint8_t b[CF_MAXFRAME];
	int fd = bundle_new("conf");
	assert_true(fd >= 0);
	if (s != NO_GLOBAL)
		ADD(global, .run_dir = "/run/pinfold", .gateway_port = 9797);
	if (s == TWO_GLOBALS)
		ADD(global, .run_dir = "/run/other");
	ADD(role, .name = "gateway", .uid = s == ROOT_ROLE ? 0 : 7, .gid = 8);
	if (s == TWICE_ROLE)
		ADD(role, .name = "gateway", .uid = 9, .gid = 8);
	ADD(shared_gid, .gid = 77);
	ADD(secret, .name = s == SECRET_SLASH ? "a/b" : "key", .role = s == SECRET_ROLE ? "nobody" : "gateway");
	ADD(provider, .name = "p", .protocol = "openai", .base_url = "https://example.org/v1",
	    .secret = s == PROVIDER_SECRET ? "other" : "key");
	ADD(profile, .name = "m1", .provider = s == PROFILE_PROVIDER ? "q" : "p", .model = "model");
	ADD(agent, .name = "builtin", .argv_n = 1, .argv = {"agent"});
	ADD(tenant, .name = "acme", .default_agent = s == TENANT_AGENT ? "none" : "builtin",
	    .default_profile = s == TENANT_PROFILE ? "none" : "m1", .extensions_n = 1, .extensions = {".py"});
	if (s == TWICE_TENANT)
		ADD(tenant, .name = "acme", .default_agent = "builtin", .default_profile = "m1");
	ADD(tenant_check, .tenant = s == CHECK_TENANT ? "other" : "acme", .argv_n = 2, .argv = {"python3", "-m"});
	if (s == UNKNOWN_FRAME) {
		b[0] = 0xff;
		assert_true(bundle_add(fd, b, 12));
	}
	if (s != NO_END)
		ADD(end, .nothing = 0);
	if (s == AFTER_END)
		ADD(role, .name = "fcgi", .uid = 5, .gid = 5);
	if (s != NO_SEAL)
		assert_true(bundle_seal(fd));
	return fd;
}

static void t_load(void **state)
{
	(void)state;
	struct conf c;
	for (int s = 0; s < SPOIL__COUNT; s++) {
		int fd = make((enum spoil)s);
		const char *why = conf_load(&c, fd);
		close(fd);
		if ((why == NULL) != (s == NOTHING))
			fail_msg("case %d: %s", s, why == NULL ? "accepted" : why);
		if (why != NULL)
			continue;
		assert_string_equal(c.global.run_dir, "/run/pinfold");
		assert_int_equal(c.shared_gid, 77);
		assert_int_equal(conf_role(&c, "gateway")->uid, 7);
		assert_null(conf_role(&c, "root"));
		const struct conf_tenant *t = conf_tenant(&c, "acme");
		assert_non_null(t);
		assert_string_equal(t->t.extensions[0], ".py");
		assert_true(t->nchecks == 1 && strcmp(t->checks[0].argv[1], "-m") == 0);
		assert_string_equal(conf_profile(&c, "m1")->model, "model");
		assert_string_equal(conf_agent(&c, "builtin")->argv[0], "agent");
		uint8_t one[32], two[32];
		struct cf_profile p = *conf_profile(&c, "m1");
		assert_true(conf_fingerprint(&c, &p, one));
		p.model = "mode";
		assert_true(conf_fingerprint(&c, &p, two));
		assert_memory_not_equal(one, two, 32);
		p.provider = "none";
		assert_false(conf_fingerprint(&c, &p, two));
		conf_free(&c);
	}
	assert_non_null(conf_load(&c, -1));
	assert_non_null(conf_load(&c, STDIN_FILENO));
}

static void t_place(void **state)
{
	(void)state;
	static const char *const bad[] = {
	    "relative", "/a/../b",
	    "/a//b",    "/a/.",
	    "/..",      "/a b",
	    "/a/\n",    "/a/longer/than/what/leaves/room/for/the/name/of/a/socket/below/the/run/directory"};
	unsetenv("PINFOLD_ROOT");
	assert_true(place_init());
	assert_string_equal(place_dir(PLACE_RUN), PF_RUNDIR);
	assert_string_equal(place_root(), "");
	setenv("PINFOLD_ROOT", "/tmp/one/", 1);
	assert_true(place_init());
	assert_string_equal(place_root(), "/tmp/one");
	assert_string_equal(place_dir(PLACE_RUN), "/tmp/one" PF_RUNDIR);
	assert_string_equal(place_dir(PLACE_STATE), "/tmp/one" PF_STATEDIR);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		setenv("PINFOLD_ROOT", bad[i], 1);
		if (place_init())
			fail_msg("accepted: %s", bad[i]);
	}
}

/* Of which words of a command a bridge is made. */
static void t_bridged(void **state)
{
	(void)state;
	static const struct {
		uint32_t words, n;
		const char *argv[6];
	} rows[] = {{3, 4, {BRIDGE_PATH, "acp", "--", "agent"}},  {3, 5, {BRIDGE_PATH, "acp", "--", "a", "--"}},
		    {2, 3, {BRIDGE_PATH, "--", "agent"}},         {0, 3, {BRIDGE_PATH, "acp", "--"}},
		    {0, 3, {BRIDGE_PATH, "acp", "agent"}},        {0, 1, {BRIDGE_PATH}},
		    {0, 4, {BRIDGE_PATH "x", "acp", "--", "a"}},  {0, 5, {"env", BRIDGE_PATH, "acp", "--", "a"}},
		    {0, 4, {"pinfold-bridge", "acp", "--", "a"}}, {0, 0, {NULL}}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (bridged_words(rows[i].argv, rows[i].n) != rows[i].words)
			fail_msg("row %zu: %u", i, bridged_words(rows[i].argv, rows[i].n));
}

/* Which of two configurations' differences a reload cannot take up. */
static void t_restart(void **state)
{
	(void)state;
	struct conf now, next;
	int fd = make(NOTHING);
	assert_null(conf_load(&now, fd));
	assert_null(conf_load(&next, fd));
	close(fd);
	assert_null(conf_restart_needed(&now, &next));
	/* Every field of what there is one of: named where it says restart, passed over where it says reload. */
	unsigned found = 0;
	for (size_t i = 0; i < CONF_ROWS; i++) {
		const struct conf_row *r = &conf_rows[i];
		uint8_t *base = r->message == CF_GLOBAL ? (uint8_t *)&next.global
				: r->message == CF_PUSH ? (uint8_t *)&next.push
							: NULL;
		if (base == NULL || r->held == CONF_HELD_STRS)
			continue;
		uint8_t kept[8];
		const char *other = "other";
		size_t n = r->held == CONF_HELD_STR ? sizeof other : 1;
		memcpy(kept, base + r->at, n);
		if (r->held == CONF_HELD_STR)
			memcpy(base + r->at, &other, sizeof other);
		else
			base[r->at] = !base[r->at];
		const char *what = conf_restart_needed(&now, &next);
		if (r->restart && (what == NULL || strcmp(what, r->name) != 0))
			fail_msg("%s is not named: %s", r->name, what != NULL ? what : "nothing");
		if (!r->restart && what != NULL)
			fail_msg("%s takes a reload, and yet %s", r->name, what);
		memcpy(base + r->at, kept, n);
		found++;
	}
	assert_true(found > 20);
	next.roles[0].uid++;
	assert_string_equal(conf_restart_needed(&now, &next), "users: gateway");
	next.roles[0].uid--;
	next.shared_gid++;
	assert_string_equal(conf_restart_needed(&now, &next), "users: shared_group");
	next.shared_gid--;
	next.global.libexec_dir = "/elsewhere";
	assert_string_equal(conf_restart_needed(&now, &next), "the folders of the installation");
	next.global.libexec_dir = now.global.libexec_dir;
	next.agents[0].pids++;
	next.tenants[0].t.extensions[0] = ".c";
	next.ntenants = 0;
	assert_null(conf_restart_needed(&now, &next));
	conf_free(&now);
	conf_free(&next);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_load), cmocka_unit_test(t_place),
					   cmocka_unit_test(t_bridged), cmocka_unit_test(t_restart)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
