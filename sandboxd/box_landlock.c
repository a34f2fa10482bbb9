/*
 * Landlock: a second wall around files, independent of the mounts. Handles every right the running kernel
 * knows (numbers beyond the build's headers are spelt out); a kernel below ABI 2 is refused.
 */
#include "lib/own.h"
#include "sandboxd/box_plan.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { RIGHTS_READ = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR };
enum { RIGHT_TRUNCATE = 1 << 14, RIGHT_IOCTL_DEV = 1 << 15, RIGHTS_ABI2 = (1 << 14) - 1 };
enum { SCOPE_ABSTRACT_UNIX = 1 << 0, SCOPE_SIGNAL = 1 << 1 };

/* struct landlock_ruleset_attr as of ABI 6. */
struct ruleset {
	uint64_t fs, net, scoped;
};

static const struct {
	const char *path;
	uint64_t rights; /* 0: all of them */
} rules[] = {
    {"/", LANDLOCK_ACCESS_FS_READ_DIR},
    {"/usr", RIGHTS_READ},
    {"/lib", RIGHTS_READ}, /* folders only where /usr is not merged */
    {"/lib64", RIGHTS_READ},
    {"/bin", RIGHTS_READ},
    {"/sbin", RIGHTS_READ},
    {"/etc", RIGHTS_READ},
    {"/opt", RIGHTS_READ},
    {"/proc", RIGHTS_READ | LANDLOCK_ACCESS_FS_WRITE_FILE},
    {"/dev", RIGHTS_READ | LANDLOCK_ACCESS_FS_WRITE_FILE},
    {"/dev/shm", 0},
    {"/tmp", 0},
    {"/workspace", 0},
};

int box_landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	return abi < 0 ? 0 : (int)abi;
}

bool box_landlock_has(enum step extra)
{
	return box_landlock_abi() >= (extra == STEP_LANDLOCK_TRUNCATE ? 3 : extra == STEP_LANDLOCK_IOCTL ? 5 : 6);
}

/* Needs no_new_privs. What listens in a box may do so at any port, so TCP (ABI 4) is left to the network namespace. */
bool box_landlock(void)
{
	if (box_landlock_abi() < 2) {
		errno = ENOSYS;
		return false;
	}
	struct ruleset attr = {.fs = RIGHTS_ABI2};
	if (box_landlock_has(STEP_LANDLOCK_TRUNCATE))
		attr.fs |= RIGHT_TRUNCATE;
	if (box_landlock_has(STEP_LANDLOCK_IOCTL))
		attr.fs |= RIGHT_IOCTL_DEV;
	if (box_landlock_has(STEP_LANDLOCK_SCOPES))
		attr.scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL;
	own_fd int set = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
	if (set < 0)
		return false;
	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
		own_fd int fd = open(rules[i].path, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 && (errno == ENOTDIR || errno == ENOENT))
			continue;
		uint64_t rights = rules[i].rights != 0 ? rules[i].rights : attr.fs;
		if ((rights & LANDLOCK_ACCESS_FS_WRITE_FILE) != 0)
			rights |= attr.fs & RIGHT_TRUNCATE; /* "> /dev/null" truncates */
		struct landlock_path_beneath_attr beneath = {.allowed_access = rights, .parent_fd = fd};
		if (fd < 0 || syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) != 0)
			return false;
	}
	return syscall(SYS_landlock_restrict_self, set, 0) == 0;
}
