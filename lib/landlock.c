/* See landlock.h. */
#include "lib/landlock.h"
#include "lib/own_fd.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RIGHT_TRUNCATE = 1 << 14, RIGHT_IOCTL_DEV = 1 << 15, RIGHTS_ABI2 = (1 << 14) - 1 };
enum { SCOPE_ABSTRACT_UNIX = 1 << 0, SCOPE_SIGNAL = 1 << 1 };

/* struct landlock_ruleset_attr as of ABI 6. */
struct ruleset {
	uint64_t fs, net, scoped;
};

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	return abi < 0 ? 0 : (int)abi;
}

bool landlock_enter(const struct landlock_rule *rules, size_t n, uint64_t tcp)
{
	int abi = landlock_abi();
	if (abi < LL_ABI_LEAST) {
		errno = ENOSYS;
		return false;
	}
	struct ruleset attr = {.fs = RIGHTS_ABI2};
	if (abi >= LL_ABI_TRUNCATE)
		attr.fs |= RIGHT_TRUNCATE;
	if (abi >= LL_ABI_TCP)
		attr.net = tcp;
	if (abi >= LL_ABI_IOCTL)
		attr.fs |= RIGHT_IOCTL_DEV;
	if (abi >= LL_ABI_SCOPES)
		attr.scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL;
	own_fd int set = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
	if (set < 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		own_fd int fd = open(rules[i].path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 && (errno == ENOTDIR || errno == ENOENT))
			continue;
		uint64_t rights = rules[i].rights != LL_ALL ? rules[i].rights : attr.fs;
		if ((rights & LL_WRITE_FILE) != 0)
			rights |= attr.fs & RIGHT_TRUNCATE; /* "> /dev/null" truncates */
		struct landlock_path_beneath_attr beneath = {.allowed_access = rights, .parent_fd = fd};
		if (fd < 0 || syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) != 0)
			return false;
	}
	return syscall(SYS_landlock_restrict_self, set, 0) == 0;
}
