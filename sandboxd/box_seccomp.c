/*
 * System calls of a box, as two filters compiled once at start. The first is a list: what is not on it does
 * not exist (ENOSYS), so that a newer kernel's calls are closed until somebody opens them here. The second
 * looks at arguments; it compares exactly the 32 bits that the kernel looks at. A foreign architecture kills.
 */
#include "lib/own.h"
#include "sandboxd/box_plan.h"
#include <errno.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Why each group is allowed. Names unknown to this machine's libseccomp or architecture are passed over. */
static const struct {
	const char *why, *calls;
} allowed[] = {
    {"read and write what is open", "read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 close "
				    "close_range lseek _llseek sendfile copy_file_range splice tee vmsplice ioctl"},
    {"open, look at and walk files", "open openat openat2 creat stat lstat fstat newfstatat statx access faccessat "
				     "faccessat2 readlink readlinkat getdents getdents64 getcwd chdir fchdir statfs "
				     "fstatfs ustat utime utimes utimensat futimesat name_to_handle_at"},
    {"change files; ownership stays within the box's two uids",
     "mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 link linkat symlink symlinkat truncate ftruncate "
     "fallocate chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat umask mknod mknodat "
     "getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr setxattr lsetxattr fsetxattr "
     "removexattr lremovexattr fremovexattr"},
    {"make writes last and tune reads",
     "fsync fdatasync sync syncfs sync_file_range fadvise64 readahead cachestat flock"},
    {"descriptors", "dup dup2 dup3 fcntl pipe pipe2 eventfd eventfd2 memfd_create"},
    {"wait for descriptors", "poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait "
			     "epoll_pwait2 signalfd signalfd4 timerfd_create timerfd_settime timerfd_gettime "
			     "inotify_init inotify_init1 inotify_add_watch inotify_rm_watch"},
    {"sockets (families: second filter; there is nothing but the box's own loopback)",
     "socket socketpair bind listen accept accept4 connect shutdown getsockname getpeername getsockopt setsockopt "
     "sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg"},
    {"memory",
     "mmap munmap mprotect mremap madvise brk msync mincore mlock mlock2 munlock mlockall munlockall membarrier "
     "pkey_alloc pkey_free pkey_mprotect get_mempolicy set_mempolicy mbind"},
    {"start and wait for processes and threads (namespaces: second filter)",
     "clone fork vfork execve execveat exit exit_group wait4 waitid set_tid_address set_robust_list get_robust_list "
     "rseq pidfd_open pidfd_send_signal"},
    {"know oneself",
     "getpid getppid gettid getuid geteuid getgid getegid getresuid getresgid getgroups getpgid getpgrp "
     "getsid getpriority getrusage getrlimit times sysinfo uname capget getcpu sched_getaffinity "
     "sched_getscheduler sched_getparam sched_getattr sched_get_priority_max sched_get_priority_min "
     "sched_rr_get_interval ioprio_get"},
    {"change oneself, only ever downwards (no_new_privs, no capabilities)",
     "setuid setgid setreuid setregid setresuid setresgid setgroups setfsuid setfsgid setpgid setsid setpriority "
     "setrlimit prlimit64 prctl arch_prctl capset sched_setaffinity sched_setscheduler sched_setparam sched_setattr "
     "sched_yield ioprio_set"},
    {"signals; the pid namespace is the wall",
     "kill tkill tgkill rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait "
     "rt_sigqueueinfo rt_tgsigqueueinfo sigaltstack pause restart_syscall alarm getitimer setitimer"},
    {"time, read only", "time gettimeofday clock_gettime clock_getres nanosleep clock_nanosleep timer_create "
			"timer_settime timer_gettime timer_getoverrun timer_delete"},
    {"locks and waiting in memory", "futex futex_waitv futex_wake futex_wait futex_requeue"},
    {"System V and POSIX memory and queues of the box's own ipc namespace",
     "shmget shmat shmdt shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl mq_open mq_unlink "
     "mq_timedsend mq_timedreceive mq_notify mq_getsetattr"},
    {"randomness", "getrandom"},
    {"confine oneself further", "seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self"},
};

/* Refused with EPERM rather than ENOSYS: callers know what to do with that. */
static const char forbidden[] = "mount umount2 unshare setns ptrace chroot pivot_root bpf keyctl add_key request_key "
				"perf_event_open process_vm_readv process_vm_writev";

enum {
	NEW_NS =
	    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET
};
enum { AF_KNOWN = 64, PROTOCOL_KNOWN = 32, TYPE_BITS = 0xf };

static bool add_words(scmp_filter_ctx ctx, uint32_t action, const char *words)
{
	char word[64];
	int used;
	for (; sscanf(words, " %63s%n", word, &used) == 1; words += used) {
		int call = seccomp_syscall_resolve_name(word);
		if (call == __NR_SCMP_ERROR)
			continue;
		int rc = seccomp_rule_add(ctx, action, call, 0);
		if (rc != 0 && rc != -EDOM) {
			errno = -rc;
			return false;
		}
	}
	return true;
}

static bool refuse_if(scmp_filter_ctx ctx, int error, int call, unsigned arg, uint32_t mask, uint32_t value)
{
	int rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO((uint32_t)error), call, 1,
				  SCMP_CMP64(arg, SCMP_CMP_MASKED_EQ, mask, value));
	errno = -rc;
	return rc == 0;
}

/* Socket options that put another protocol on top of TCP or UDP. */
static bool refuse_layers(scmp_filter_ctx ctx)
{
	static const uint32_t options[][2] = {{IPPROTO_TCP, TCP_ULP}, {IPPROTO_UDP, UDP_ENCAP}};
	for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
		const struct scmp_arg_cmp both[] = {SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, UINT32_MAX, options[i][0]),
						    SCMP_CMP64(2, SCMP_CMP_MASKED_EQ, UINT32_MAX, options[i][1])};
		if (seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(ENOPROTOOPT), SCMP_SYS(setsockopt), 2, both) != 0)
			return false;
	}
	return true;
}

static bool fill_arguments(scmp_filter_ctx ctx)
{
	static const uint32_t typing[] = {TIOCSTI, TIOCLINUX};
	for (size_t i = 0; i < sizeof typing / sizeof typing[0]; i++)
		if (!refuse_if(ctx, EPERM, SCMP_SYS(ioctl), 1, UINT32_MAX, typing[i]))
			return false;
	for (uint32_t bit = 1u << 31; bit != 0; bit >>= 1)
		if ((NEW_NS & bit) != 0 && !refuse_if(ctx, EPERM, SCMP_SYS(clone), 0, bit, bit))
			return false;
	for (uint32_t family = 0; family < AF_KNOWN; family++)
		if (family != AF_UNIX && family != AF_INET && family != AF_INET6 &&
		    (!refuse_if(ctx, EAFNOSUPPORT, SCMP_SYS(socket), 0, UINT32_MAX, family) ||
		     !refuse_if(ctx, EAFNOSUPPORT, SCMP_SYS(socketpair), 0, UINT32_MAX, family)))
			return false;
	/* Whoever asks for no core file is told yes, and 1 stays: see set_rlimits. */
	const struct scmp_arg_cmp new_core[] = {SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, UINT32_MAX, RLIMIT_CORE),
						SCMP_CMP64(2, SCMP_CMP_NE, 0, 0)};
	if (!refuse_if(ctx, 0, SCMP_SYS(setrlimit), 0, UINT32_MAX, RLIMIT_CORE) ||
	    seccomp_rule_add_array(ctx, SCMP_ACT_ERRNO(0), SCMP_SYS(prlimit64), 2, new_core) != 0)
		return false;
	/* Huge pages are a pool of the host's that no limit of the box counts. */
	if (!refuse_if(ctx, ENOMEM, SCMP_SYS(mmap), 3, MAP_HUGETLB, MAP_HUGETLB) ||
	    !refuse_if(ctx, EINVAL, SCMP_SYS(memfd_create), 1, MFD_HUGETLB, MFD_HUGETLB) ||
	    !refuse_if(ctx, EPERM, SCMP_SYS(shmget), 2, SHM_HUGETLB, SHM_HUGETLB))
		return false;
	/* Of the internet protocols only TCP and UDP (0: the type's own; 1: also PF_UNIX). Asking for another one may
	 * load a module of the host's, and each is more of the kernel to attack. */
	for (uint32_t p = 2; p < PROTOCOL_KNOWN; p++)
		if (p != IPPROTO_TCP && p != IPPROTO_UDP &&
		    !refuse_if(ctx, EPROTONOSUPPORT, SCMP_SYS(socket), 2, UINT32_MAX, p))
			return false;
	for (uint32_t bit = PROTOCOL_KNOWN; bit != 0; bit <<= 1)
		if (!refuse_if(ctx, EPROTONOSUPPORT, SCMP_SYS(socket), 2, bit, bit))
			return false;
	if (!refuse_if(ctx, ESOCKTNOSUPPORT, SCMP_SYS(socket), 1, TYPE_BITS, SOCK_RDM) ||
	    !refuse_if(ctx, ESOCKTNOSUPPORT, SCMP_SYS(socket), 1, TYPE_BITS, SOCK_DCCP))
		return false;
	if (!refuse_layers(ctx))
		return false;
	/* Every higher number has a bit above the 64 known ones. */
	for (uint32_t bit = AF_KNOWN; bit != 0; bit <<= 1)
		if (!refuse_if(ctx, EAFNOSUPPORT, SCMP_SYS(socket), 0, bit, bit) ||
		    !refuse_if(ctx, EAFNOSUPPORT, SCMP_SYS(socketpair), 0, bit, bit))
			return false;
	return true;
}

static bool fill_calls(scmp_filter_ctx ctx)
{
	for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++)
		if (!add_words(ctx, SCMP_ACT_ALLOW, allowed[i].calls))
			return false;
	return add_words(ctx, SCMP_ACT_ERRNO(EPERM), forbidden);
}

static bool compile(uint32_t otherwise, bool (*fill)(scmp_filter_ctx), struct sock_fprog *out)
{
	scmp_filter_ctx ctx = seccomp_init(otherwise);
	own_fd int fd = memfd_create("filter", MFD_CLOEXEC);
	bool ok =
	    ctx != NULL && fd >= 0 && seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) == 0 &&
	    seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2) == 0 && fill(ctx) && seccomp_export_bpf(ctx, fd) == 0;
	seccomp_release(ctx);
	struct stat st;
	if (!ok || fstat(fd, &st) != 0)
		return false;
	size_t n = (size_t)st.st_size;
	struct sock_filter *code = malloc(n);
	if (code == NULL || pread(fd, code, n, 0) != (ssize_t)n) {
		free(code);
		return false;
	}
	*out = (struct sock_fprog){.len = (unsigned short)(n / sizeof *code), .filter = code};
	return true;
}

bool box_filters_make(struct box_filters *f)
{
	return compile(SCMP_ACT_ERRNO(ENOSYS), fill_calls, &f->calls) &&
	       compile(SCMP_ACT_ALLOW, fill_arguments, &f->arguments);
}

/* The list comes last: it is the one that must allow the call that installs it. */
bool box_filters_load(const struct box_filters *f)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &f->arguments) == 0 &&
	       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &f->calls) == 0;
}
