/* See confine.h. The order is that of what each step still needs. */
#include "lib/confine.h"
#include "gen/seccomp.h"
#include "lib/secret.h"
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FOLDERS = 8, GIVEN = 24 };

static const struct role {
	const struct filter_rows *calls;
	uint64_t no_tcp; /* ways of TCP that are closed */
	bool alone;      /* starts nothing, not even a thread */
	struct landlock_rule folders[FOLDERS];
} roles[CONFINE__COUNT] = {
    /* Its own store and audit log are given. */
    [CONFINE_STORED] = {&filter_stored, LL_BIND_TCP | LL_CONNECT_TCP, true, {{"/etc/ssl", LL_READ}}},
    [CONFINE_FCGI] = {&filter_fcgi, LL_BIND_TCP | LL_CONNECT_TCP, false, {{"/etc/ssl", LL_READ}}},
    /* It looks up names, through modules of the C library, and verifies certificates. resolv.conf may be a link to the
     * others, and is replaced rather than written, so that its folder is what stays. */
    [CONFINE_GATEWAY] = {&filter_gateway,
			 LL_BIND_TCP,
			 false,
			 {{"/etc", LL_READ},
			  {"/usr", LL_READ},
			  {"/lib", LL_READ},
			  {"/lib64", LL_READ},
			  {"/run/systemd/resolve", LL_READ},
			  {"/run/resolvconf", LL_READ},
			  {"/run/NetworkManager", LL_READ}}},
    /* As the gateway; which ports it may connect to, it says itself (confine_tcp). */
    [CONFINE_PUSH] = {&filter_push,
		      LL_BIND_TCP,
		      false,
		      {{"/etc", LL_READ},
		       {"/usr", LL_READ},
		       {"/lib", LL_READ},
		       {"/lib64", LL_READ},
		       {"/run/systemd/resolve", LL_READ},
		       {"/run/resolvconf", LL_READ},
		       {"/run/NetworkManager", LL_READ}}},
    [CONFINE_STEWARD] = {&filter_steward, LL_BIND_TCP | LL_CONNECT_TCP, false, {{"/etc/ssl", LL_READ}}},
    [CONFINE_JUDGE] = {&filter_judge, LL_BIND_TCP | LL_CONNECT_TCP, true, {{NULL, 0}}},
    /* It resolves the names of users and groups; the folder of the configuration is given. */
    [CONFINE_CONF] = {&filter_conf,
		      LL_BIND_TCP | LL_CONNECT_TCP,
		      true,
		      {{"/etc", LL_READ}, {"/usr", LL_READ}, {"/lib", LL_READ}, {"/lib64", LL_READ}}},
    /* It has the gateway's address as a number. */
    [CONFINE_BRIDGE] = {&filter_bridge, LL_BIND_TCP, true, {{"/etc/ssl", LL_READ}}},
};

static bool limit(__rlimit_resource_t what, rlim_t most)
{
	struct rlimit r = {most, most};
	return setrlimit(what, &r) == 0;
}

static bool give_up_privileges(void)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2];
	memset(none, 0, sizeof none);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0 && syscall(SYS_capset, &h, none) == 0;
}

#ifdef CONFINE_LESS
/* What a sanitizer does at the end of a program needs a thread, and to be looked at by it. */
static bool close_to_others(const struct role *r)
{
	(void)r;
	return true;
}

static bool close_files_and_calls(const struct role *r, const struct landlock_rule *folders, size_t n)
{
	(void)r, (void)folders, (void)n;
	return true;
}
#else
static bool close_to_others(const struct role *r)
{
	return (!r->alone || limit(RLIMIT_NPROC, 0)) && undumpable();
}

static bool close_files_and_calls(const struct role *r, const struct landlock_rule *folders, size_t n)
{
	struct landlock_rule all[FOLDERS + GIVEN];
	size_t own = 0;
	for (; own < FOLDERS && r->folders[own].path != NULL; own++)
		all[own] = r->folders[own];
	if (n > GIVEN) {
		errno = E2BIG;
		return false;
	}
	if (n > 0)
		memcpy(all + own, folders, n * sizeof *folders);
	/* Where there is no Landlock sandboxd does not start, and a test's machine may be without. */
	if (!landlock_enter(all, own + n, r->no_tcp) && errno != ENOSYS && errno != EOPNOTSUPP)
		return false;
	struct sock_fprog program = {0};
	bool ok = filter_make(r->calls, &program) && filter_load(&program);
	free(program.filter);
	return ok;
}
#endif

bool confine(enum confine_role who, const struct landlock_rule *folders, size_t n)
{
	const struct role *r = &roles[who];
	return limit(RLIMIT_MSGQUEUE, 0) && limit(RLIMIT_RTPRIO, 0) && limit(RLIMIT_NICE, 0) && close_to_others(r) &&
	       give_up_privileges() && close_files_and_calls(r, folders, n);
}
