/* See confine.h. A set of Landlock's own, above that of confine(): sandboxd, which names no ports, does not have this.
 */
#include "lib/confine.h"
#include "lib/own.h"
#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As of ABI 4; the headers of the build may be older. */
enum { RULE_NET_PORT = 2 };
struct net_ruleset {
	uint64_t fs, net;
};
struct net_port {
	uint64_t allowed, port;
};

bool confine_tcp(const uint16_t *ports, size_t n)
{
	if (landlock_abi() < LL_ABI_TCP) {
		errno = ENOSYS;
		return false;
	}
	struct net_ruleset attr = {.net = LL_CONNECT_TCP};
	own_fd int set = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
	if (set < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		struct net_port rule = {LL_CONNECT_TCP, ports[i]};
		if (syscall(SYS_landlock_add_rule, set, RULE_NET_PORT, &rule, 0) != 0)
			return false;
	}
	return syscall(SYS_landlock_restrict_self, set, 0) == 0;
}
