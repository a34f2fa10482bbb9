/*
 * What each of our own processes gives up when it has what it needs and before it reads what others wrote: privileges
 * for good (no_new_privs, no capabilities), core dumps and being looked at, files but those of its role (Landlock),
 * ways of TCP that it does not use, system calls but those of its role (spec/seccomp.tab), and a few limits.
 *
 * Builds with sanitizers or counters of coverage need files and calls of their own: there Landlock and the list of
 * calls are left out, and nothing else.
 */
#ifndef LIB_CONFINE_H
#define LIB_CONFINE_H
#include "lib/landlock.h"

enum confine_role {
	CONFINE_STORED,
	CONFINE_FCGI,
	CONFINE_GATEWAY,
	CONFINE_STEWARD,
	CONFINE_PUSH,
	CONFINE_JUDGE, /* within the steward's */
	CONFINE_CONF,
	CONFINE_BRIDGE, /* within a box, of its own uid */
	CONFINE__COUNT
};

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define CONFINE_LESS 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(PF_COVERAGE)
#define CONFINE_LESS 1
#endif

/* Of this instance, besides what its role always has: folders, n of them. Call it while there is one thread: Landlock
 * holds the caller and what it starts. False with errno: the process must end. */
bool confine(enum confine_role who, const struct landlock_rule *folders, size_t n);
/* Before it: connections of TCP to these ports alone, n of them. False with errno; ENOSYS: the kernel has no such wall.
 */
bool confine_tcp(const uint16_t *ports, size_t n);
#endif
