/*
 * Users and capabilities of a box. Root of the box is the slot's first uid, agent and bridge are the next; all are
 * nobody outside. The runner keeps four capabilities of the box's own user namespace; they are ambient, so
 * that they vanish by themselves when it changes to the agent's uid, and the bounding set is empty, so that
 * nothing brings them back.
 */
#include "lib/clock.h"
#include "lib/own_fd.h"
#include "sandboxd/box_plan.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static bool write_map(pid_t pid, const char *file, unsigned first)
{
	char path[64], text[64];
	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
	int n = snprintf(text, sizeof text, "0 %u 1\n1000 %u 2\n", first, first + 1);
	own_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write_all(fd, text, (size_t)n);
}

/* pid is our own child and not reaped, so the number is still its. */
bool box_ids_map(pid_t pid, uid_t first)
{
	return write_map(pid, "uid_map", first) && write_map(pid, "gid_map", first);
}

bool box_caps(void)
{
	static const unsigned char keep[] = {CAP_SETUID, CAP_SETGID, CAP_KILL, CAP_DAC_READ_SEARCH};
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2];
	memset(d, 0, sizeof d);
	for (size_t i = 0; i < sizeof keep; i++)
		d[0].effective |= 1u << keep[i];
	d[0].permitted = d[0].inheritable = d[0].effective;
	/* Inheritable first: it may only take what the bounding set still has. SETPCAP goes last. */
	struct __user_cap_data_struct first[2] = {d[0], d[1]};
	first[0].effective |= 1u << CAP_SETPCAP;
	first[0].permitted |= 1u << CAP_SETPCAP;
	if (syscall(SYS_capset, &h, first) != 0)
		return false;
	for (unsigned long c = 0; prctl(PR_CAPBSET_DROP, c, 0, 0, 0) == 0; c++)
		;
	if (errno != EINVAL) /* beyond the last one */
		return false;
	for (size_t i = 0; i < sizeof keep; i++)
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, (unsigned long)keep[i], 0, 0) != 0)
			return false;
	unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED |
			     SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	return prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) == 0 && syscall(SYS_capset, &h, d) == 0;
}
