/*
 * Attacks on kernel interfaces that a box has no use for: each is a way to the kernel's own mistakes, whether or not a
 * process without rights could do anything with it today. Arguments are such that the kernel's own answer is another
 * one than the filter's, and such that nothing happens where a call is let through to somebody who may.
 */
#include "attack/tried.h"
#include "gen/attacks_inside.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NOWHERE ((void *)1)

#define ABSENT(name, ...)                            \
	struct tried attack_##name(void)             \
	{                                            \
		return absent(syscall(__VA_ARGS__)); \
	}
/* The kernel would answer something else than EPERM, in a user namespace of the process's own where it takes one. */
#define FILTERED(name, ...)                                   \
	struct tried attack_##name(void)                      \
	{                                                     \
		unshare(CLONE_NEWUSER | CLONE_NEWNS);         \
		return filtered(syscall(__VA_ARGS__), EPERM); \
	}

FILTERED(call_mount, SYS_mount, "x", "/tmp", NULL, 0, NOWHERE)
FILTERED(call_umount, SYS_umount2, "/tmp", 0xff00)
FILTERED(call_pivot, SYS_pivot_root, "/no-such-folder", "/no-such-folder")
FILTERED(call_chroot, SYS_chroot, "/no-such-folder")
FILTERED(call_bpf, SYS_bpf, 99999, NOWHERE, 8)
FILTERED(call_perf, SYS_perf_event_open, NOWHERE, 0, -1, -1, ~0ul)
FILTERED(call_keyctl, SYS_keyctl, 99999, 0, 0, 0, 0)
FILTERED(call_add_key, SYS_add_key, NOWHERE, NOWHERE, NULL, 0, 0)
FILTERED(call_request_key, SYS_request_key, NOWHERE, NOWHERE, NULL, 0)

ABSENT(call_fsopen, SYS_fsopen, NOWHERE, 0)
ABSENT(call_fspick, SYS_fspick, -1, NOWHERE, 0)
ABSENT(call_open_tree, SYS_open_tree, -1, NOWHERE, 0)
ABSENT(call_move_mount, SYS_move_mount, -1, NOWHERE, -1, NOWHERE, ~0u)
ABSENT(call_mount_setattr, SYS_mount_setattr, -1, NOWHERE, ~0u, NOWHERE, 0)
ABSENT(call_io_uring, SYS_io_uring_setup, 1, NOWHERE)
ABSENT(call_userfaultfd, SYS_userfaultfd, ~0)
ABSENT(call_kexec, SYS_kexec_load, 0, 0, NULL, 0xffff)
ABSENT(call_init_module, SYS_init_module, NULL, 0, NOWHERE)
ABSENT(call_finit_module, SYS_finit_module, -1, NOWHERE, ~0)
ABSENT(call_delete_module, SYS_delete_module, NOWHERE, 0)
ABSENT(call_reboot, SYS_reboot, 0, 0, 0, 0)
ABSENT(call_swapon, SYS_swapon, NOWHERE, ~0)
ABSENT(call_swapoff, SYS_swapoff, NOWHERE)
ABSENT(call_acct, SYS_acct, "/no-such-folder/file")
ABSENT(call_syslog, SYS_syslog, 10, NULL, 0)
ABSENT(call_quotactl, SYS_quotactl, ~0, NULL, 0, NULL)
ABSENT(call_sethostname, SYS_sethostname, NULL, -1)
ABSENT(call_setdomainname, SYS_setdomainname, NULL, -1)
ABSENT(call_personality, SYS_personality, 0xffffffff)
ABSENT(call_vhangup, SYS_vhangup)
ABSENT(call_fanotify, SYS_fanotify_init, ~0, ~0)
ABSENT(call_move_pages, SYS_move_pages, getpid(), 0, NULL, NULL, NULL, ~0)
ABSENT(call_migrate_pages, SYS_migrate_pages, getpid(), ~0ul, NULL, NULL)
ABSENT(call_mrelease, SYS_process_mrelease, -1, ~0)
ABSENT(call_home_node, SYS_set_mempolicy_home_node, 0, 0, 0, ~0ul)
ABSENT(call_quotactl_fd, SYS_quotactl_fd, ~0u, 0, 0, NULL)
ABSENT(time_set, SYS_clock_settime, CLOCK_REALTIME, NOWHERE)
ABSENT(time_day, SYS_settimeofday, NOWHERE, NULL)
ABSENT(time_adjust, SYS_adjtimex, NOWHERE)
ABSENT(time_adjust2, SYS_clock_adjtime, CLOCK_REALTIME, NOWHERE)

#ifdef __x86_64__
ABSENT(call_iopl, SYS_iopl, 0)
ABSENT(call_ioperm, SYS_ioperm, 0x80, 1, 0)
ABSENT(call_ldt, SYS_modify_ldt, 0, NULL, 0)

/* Held where it ends the process, or where this kernel has no such programs (SEGV, ENOSYS). */
struct tried attack_call_int80(void)
{
	long rc;
	__asm__ volatile("int $0x80" : "=a"(rc) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
	return rc > 0 ? open_("it is answered: %ld", rc) : held("%s", rc == -ENOSYS ? "no such call" : "refused");
}

struct tried attack_call_x32(void)
{
	return absent(syscall(0x40000000L | SYS_getpid));
}
#else
#define OTHER(name)                                                 \
	struct tried attack_##name(void)                            \
	{                                                           \
		return skipped("this processor has no such thing"); \
	}
OTHER(call_iopl)
OTHER(call_ioperm)
OTHER(call_ldt)
OTHER(call_int80)
OTHER(call_x32)
#endif

/* The bits for the size of the pages, all set. */
#define HUGE_OF_NO_MACHINE ((int)(63u << 26))

struct tried attack_huge_map(void)
{
	void *p = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | HUGE_OF_NO_MACHINE, -1, 0);
	/* Pages of a size that no machine has: EINVAL of the kernel, ENOMEM of the filter. */
	return filtered(p == MAP_FAILED ? -1 : 0, ENOMEM);
}

/* EINVAL is also what a kernel without huge pages says. */
struct tried attack_huge_memfd(void)
{
	return denied(memfd_create("attack", MFD_CLOEXEC | MFD_HUGETLB));
}

struct tried attack_huge_shm(void)
{
	int id = shmget(IPC_PRIVATE, 2 << 20, SHM_HUGETLB | HUGE_OF_NO_MACHINE | 0600);
	struct tried t = filtered(id, EPERM);
	if (id >= 0)
		shmctl(id, IPC_RMID, NULL);
	return t;
}

struct tried attack_core_limit(void)
{
	struct rlimit r = {0, 0};
	setrlimit(RLIMIT_CORE, &r);
	getrlimit(RLIMIT_CORE, &r);
	return r.rlim_cur == 1 && r.rlim_max == 1 ? held("1") : open_("%lu", (unsigned long)r.rlim_cur);
}

static struct tried types(unsigned long request)
{
	char c = 'x';
	for (int fd = 0; fd < 3; fd++) {
		struct tried t = filtered(ioctl(fd, request, &c), EPERM);
		if (t.outcome == TRIED_OPEN)
			return t;
	}
	return held("EPERM");
}

struct tried attack_tty_sti(void)
{
	return types(TIOCSTI);
}

struct tried attack_tty_linux(void)
{
	return types(TIOCLINUX);
}

struct tried attack_tty_steal(void)
{
	setsid();
	for (int fd = 0; fd < 3; fd++)
		if (ioctl(fd, TIOCSCTTY, 0) == 0)
			return open_("descriptor %d is a terminal", fd);
	return refused(-1);
}

struct tried attack_time_wake(void)
{
	timer_t t;
	return refused(timer_create(CLOCK_REALTIME_ALARM, NULL, &t));
}
