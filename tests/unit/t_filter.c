/*
 * The filters of system calls, walked as the kernel does, for every number there is and for arguments that are refused
 * and that are not: what spec/seccomp.tab says, said here by other code. Whether the kernel agrees is asked in
 * tests/box.
 */
#include "gen/seccomp.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static unsigned passed, failed;

static void check(bool good, const char *what, long a, long b)
{
	if (good)
		passed++;
	else if (++failed < 20)
		printf("FAIL %s: %ld %ld\n", what, a, b);
}

/* The verdict; anything that the kernel would not take is ~0. */
static uint32_t walk(const struct sock_fprog *p, const struct seccomp_data *d)
{
	uint32_t a = 0, x = 0;
	for (size_t i = 0; i < p->len; i++) {
		const struct sock_filter *f = &p->filter[i];
		bool holds = false;
		switch (f->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			if (f->k + 4 > sizeof *d || f->k % 4 != 0)
				return ~0u;
			memcpy(&a, (const char *)d + f->k, 4);
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= f->k;
			continue;
		case BPF_ALU | BPF_OR | BPF_X:
			a |= x;
			continue;
		case BPF_MISC | BPF_TAX:
			x = a;
			continue;
		case BPF_RET | BPF_K:
			return f->k;
		case BPF_JMP | BPF_JEQ | BPF_K:
			holds = a == f->k;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			holds = a > f->k;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			holds = (a & f->k) != 0;
			break;
		default:
			return ~0u;
		}
		i += holds ? f->jt : f->jf;
	}
	return ~0u;
}

#ifdef __x86_64__
#define OWN AUDIT_ARCH_X86_64
#else
#define OWN AUDIT_ARCH_AARCH64
#endif

static uint32_t verdict(const struct sock_fprog *p, int call, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3)
{
	const struct seccomp_data d = {.nr = call, .arch = OWN, .args = {a0, a1, a2, a3}};
	return walk(p, &d);
}

static uint32_t with(uint32_t error)
{
	return SECCOMP_RET_ERRNO | error;
}

/* Of the list alone: arguments that no rule refuses are not known here, so either answer of the rule's call will do. */
static void whole_list(const char *name, const struct filter_rows *rows)
{
	struct sock_fprog p = {0};
	check(filter_make(rows, &p), name, errno, 0);
	printf("%s: %u instructions\n", name, p.len);
	for (int call = -2; call < 2000; call++) {
		uint32_t want = rows->kills ? SECCOMP_RET_KILL_PROCESS : with(ENOSYS);
		bool asked = false;
		for (size_t i = 0; i < rows->n; i++)
			if (rows->v[i].call == call && rows->v[i].op >= FILTER_ALLOW)
				want = rows->v[i].op == FILTER_ALLOW ? SECCOMP_RET_ALLOW : with(rows->v[i].value);
			else
				asked = asked || rows->v[i].call == call;
		if (!asked)
			check(verdict(&p, call, 0, 0, 0, 0) == want, name, call, want);
		check(verdict(&p, call | 0x40000000, 0, 0, 0, 0) ==
			      (rows->kills ? SECCOMP_RET_KILL_PROCESS : with(ENOSYS)) ||
			  call < 0,
		      "x32", call, 0);
		const struct seccomp_data foreign = {.nr = call, .arch = AUDIT_ARCH_I386},
					  arm = {.nr = call, .arch = AUDIT_ARCH_ARM};
		check(walk(&p, &foreign) == SECCOMP_RET_KILL_PROCESS, "foreign", call, 0);
		check(walk(&p, &arm) == SECCOMP_RET_KILL_PROCESS, "foreign", call, 0);
	}
	free(p.filter);
}

static void arguments_of_boxes(void)
{
	struct sock_fprog p = {0};
	const uint32_t yes = SECCOMP_RET_ALLOW;
	const uint64_t high = UINT64_C(1) << 32;
	check(filter_make(&filter_box, &p), "box", errno, 0);
	for (uint32_t f = 0; f < 4096; f++)
		for (int h = 0; h < 2; h++) {
			uint32_t want = f == AF_UNIX || f == AF_INET || f == AF_INET6 ? yes : with(EAFNOSUPPORT);
			check(verdict(&p, SYS_socket, f | (h ? high : 0), SOCK_STREAM, 0, 0) == want, "family", f, h);
			check(verdict(&p, SYS_socketpair, f | (h ? high : 0), SOCK_STREAM, 0, 0) == want, "pair", f, h);
		}
	for (uint32_t k = 0; k < 1024; k++) {
		bool good = k <= 1 || k == 6 || k == 17;
		check(verdict(&p, SYS_socket, AF_INET, SOCK_STREAM, k, 0) == (good ? yes : with(EPROTONOSUPPORT)),
		      "protocol", k, 0);
		bool type = (k & 0xf) == 1 || (k & 0xf) == 2 || (k & 0xf) == 3 || (k & 0xf) == 5;
		check(verdict(&p, SYS_socket, AF_INET, k, 0, 0) == (type ? yes : with(ESOCKTNOSUPPORT)), "type", k, 0);
	}
	const uint32_t new_ns = 0x7e020000;
	for (int bit = 0; bit < 64; bit++) {
		bool ns = bit < 32 && (new_ns >> bit & 1) != 0;
		check(verdict(&p, SYS_clone, UINT64_C(1) << bit, 0, 0, 0) == (ns ? with(EPERM) : yes), "clone", bit, 0);
		check(verdict(&p, SYS_mmap, 0, 0, 0, UINT64_C(1) << bit) == (bit == 18 ? with(ENOMEM) : yes), "mmap",
		      bit, 0);
		check(verdict(&p, SYS_prlimit64, 0, RLIMIT_CORE, UINT64_C(1) << bit, 0) == with(0), "prlimit", bit, 0);
	}
	check(verdict(&p, SYS_prlimit64, 0, RLIMIT_CORE, 0, 0) == yes, "prlimit asks", 0, 0);
	check(verdict(&p, SYS_prlimit64, 0, RLIMIT_NOFILE, 1, 0) == yes, "prlimit", 0, 0);
	check(verdict(&p, SYS_setrlimit, RLIMIT_CORE, 0, 0, 0) == with(0), "setrlimit", 0, 0);
	check(verdict(&p, SYS_setrlimit, RLIMIT_FSIZE, 0, 0, 0) == yes, "setrlimit", 0, 0);
	for (uint32_t r = 0; r < 0x10000; r++) {
		bool bad = r == TIOCSTI || r == TIOCLINUX || r == TIOCSETD;
		check(verdict(&p, SYS_ioctl, 0, r | high, 0, 0) == (bad ? with(EPERM) : yes), "ioctl", r, 0);
	}
	check(verdict(&p, SYS_setsockopt, 3, 6, 31, 0) == with(ENOPROTOOPT), "ulp", 0, 0);
	check(verdict(&p, SYS_setsockopt, 3, 17, 100, 0) == with(ENOPROTOOPT), "encap", 0, 0);
	check(verdict(&p, SYS_setsockopt, 3, 6, 100, 0) == yes, "option", 0, 0);
	check(verdict(&p, SYS_setsockopt, 3, 17, 31, 0) == yes, "option", 0, 0);
	check(verdict(&p, SYS_setsockopt, 3, 1, 31, 0) == yes, "option", 0, 0);
	static const uint32_t may[] = {1,  2,  3,  4,  7,  8,  15, 16, 21, 22, 23,         24,        27,
				       29, 30, 36, 37, 38, 39, 41, 42, 47, 52, 0x53564d41, 0x59616d61};
	for (uint32_t o = 0; o < 200; o++) {
		bool good = false;
		for (size_t i = 0; i < sizeof may / sizeof may[0]; i++)
			good = good || may[i] == o;
		check(verdict(&p, SYS_prctl, o, 0, 0, 0) == (good ? yes : with(EINVAL)), "prctl", o, 0);
	}
	check(verdict(&p, SYS_prctl, 0x53564d41, 0, 0, 0) == yes, "prctl vma", 0, 0);
	check(verdict(&p, SYS_clone3, 0, 0, 0, 0) == with(ENOSYS), "clone3", 0, 0);
	check(verdict(&p, SYS_io_uring_setup, 0, 0, 0, 0) == with(ENOSYS), "io_uring", 0, 0);
	check(verdict(&p, SYS_ptrace, 0, 0, 0, 0) == with(EPERM), "ptrace", 0, 0);
	free(p.filter);
}

/* None of ours starts a program or a debugger, makes a namespace or has more of the network than its role. */
static void arguments_of_ours(void)
{
	static const struct {
		const char *name;
		const struct filter_rows *rows;
		bool network, forks, threads, code;
	} roles[] = {{"stored", &filter_stored, false, false, false, false},
		     {"fcgi", &filter_fcgi, false, false, true, false},
		     {"gateway", &filter_gateway, true, false, true, true},
		     {"steward", &filter_steward, false, true, true, false},
		     {"judge", &filter_judge, false, false, false, false},
		     {"conf", &filter_conf, false, false, false, true},
		     {"push", &filter_push, true, false, true, true},
		     {"bridge", &filter_bridge, false, false, false, false}};
	static const int never[] = {SYS_execve,         SYS_execveat,    SYS_ptrace,           SYS_unshare,
				    SYS_setns,          SYS_mount,       SYS_clone3,           SYS_bpf,
				    SYS_io_uring_setup, SYS_userfaultfd, SYS_process_vm_readv, SYS_keyctl,
				    SYS_setuid,         SYS_setresuid};
	for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
		struct sock_fprog p = {0};
		check(filter_make(roles[i].rows, &p), roles[i].name, errno, 0);
		for (size_t k = 0; k < sizeof never / sizeof never[0]; k++)
			check(verdict(&p, never[k], 0, 0, 0, 0) != SECCOMP_RET_ALLOW, roles[i].name, never[k], 0);
		for (uint32_t f = 0; f < 64; f++) {
			bool may = roles[i].rows == &filter_bridge
				       ? f == AF_INET
				       : (f == AF_UNIX && i != 0 && i != 4) ||
					     (roles[i].network && (f == AF_INET || f == AF_INET6));
			check((verdict(&p, SYS_socket, f, SOCK_STREAM, 0, 0) == SECCOMP_RET_ALLOW) == may,
			      roles[i].name, f, 1);
		}
		check((verdict(&p, SYS_clone, SIGCHLD, 0, 0, 0) == SECCOMP_RET_ALLOW) == roles[i].forks, roles[i].name,
		      0, 2);
		check((verdict(&p, SYS_clone, CLONE_THREAD | CLONE_VM, 0, 0, 0) == SECCOMP_RET_ALLOW) ==
			  roles[i].threads,
		      roles[i].name, 0, 3);
		check(verdict(&p, SYS_clone, CLONE_NEWUSER, 0, 0, 0) != SECCOMP_RET_ALLOW, roles[i].name, 0, 4);
		check((verdict(&p, SYS_mmap, 0, 0, PROT_EXEC, 0) == SECCOMP_RET_ALLOW) == roles[i].code, roles[i].name,
		      0, 5);
		check((verdict(&p, SYS_mprotect, 0, 0, PROT_EXEC, 0) == SECCOMP_RET_ALLOW) == roles[i].code,
		      roles[i].name, 0, 6);
		check(verdict(&p, SYS_mmap, 0, 0, PROT_READ | PROT_WRITE, 0) == SECCOMP_RET_ALLOW, roles[i].name, 0, 7);
		free(p.filter);
	}
}

static void what_does_not_fit(void)
{
	static struct filter_row many[4000];
	struct filter_rows rows = {many, 4000, false};
	struct sock_fprog p = {0};
	for (int i = 0; i < 4000; i++)
		many[i] = (struct filter_row){FILTER_ALLOW, i, 0, 0, 0};
	check(!filter_make(&rows, &p) && errno == E2BIG, "too long", 0, 0);
	for (int i = 0; i < 4000; i++)
		many[i] = (struct filter_row){i % 3 == 2 ? FILTER_THEN : FILTER_ANY, 7, 0, 1, 1};
	rows.n = 300;
	check(!filter_make(&rows, &p) && errno == E2BIG, "a jump too far", 0, 0);
	rows.n = 0;
	check(filter_make(&rows, &p) && verdict(&p, 0, 0, 0, 0, 0) == with(ENOSYS), "nothing allowed", 0, 0);
	free(p.filter);
}

int main(void)
{
	whole_list("box", &filter_box);
	whole_list("stored", &filter_stored);
	whole_list("fcgi", &filter_fcgi);
	whole_list("gateway", &filter_gateway);
	whole_list("steward", &filter_steward);
	whole_list("judge", &filter_judge);
	whole_list("conf", &filter_conf);
	whole_list("push", &filter_push);
	whole_list("bridge", &filter_bridge);
	arguments_of_ours();
	arguments_of_boxes();
	what_does_not_fit();
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
