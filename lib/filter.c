/*
 * See filter.h. The program is made of short jumps forward only. The list is sorted and cut into blocks, so that a call
 * is found in a few steps: when a filter is installed, the kernel walks it for every number there is.
 */
#include "lib/filter.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "which architecture's calls?"
#endif

enum { MOST = BPF_MAXINSNS, BLOCK = 16, JUMP_MOST = 255 };
#define FIELD(name) (uint32_t) offsetof(struct seccomp_data, name)

struct code {
	struct sock_filter v[MOST];
	size_t n;
	bool full;
};

static size_t put(struct code *c, int op, uint32_t k)
{
	c->full = c->full || c->n == MOST;
	if (!c->full)
		c->v[c->n++] = (struct sock_filter)BPF_STMT((unsigned short)op, k);
	return c->n - 1;
}

/* Where the jump at `at` goes when its test holds or fails: to what is put next. */
static void here(struct code *c, size_t at, bool holds)
{
	size_t far = c->n - at - 1;
	c->full = c->full || far > JUMP_MOST;
	*(holds ? &c->v[at].jt : &c->v[at].jf) = (uint8_t)far;
}

/* The lower half of an argument is what the kernel looks at where it wants an int. */
static void load(struct code *c, const struct filter_row *r)
{
	put(c, BPF_LD | BPF_W | BPF_ABS, FIELD(args) + 8 * r->arg);
	if (r->mask != UINT32_MAX)
		put(c, BPF_ALU | BPF_AND | BPF_K, r->mask);
}

static void refuse(struct code *c, uint32_t error)
{
	put(c, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
}

/* One rule about arguments, ending in THEN or ELSE; how many rows it has. */
static size_t put_rule(struct code *c, const struct filter_row *r)
{
	enum { CONDITIONS = 64 };
	size_t at[CONDITIONS], n = 0;
	for (; r[n].op != FILTER_THEN && r[n].op != FILTER_ELSE && n < CONDITIONS; n++) {
		if (r[n].op == FILTER_NONZERO) {
			put(c, BPF_LD | BPF_W | BPF_ABS, FIELD(args) + 8 * r[n].arg);
			put(c, BPF_MISC | BPF_TAX, 0);
			put(c, BPF_LD | BPF_W | BPF_ABS, FIELD(args) + 8 * r[n].arg + 4);
			put(c, BPF_ALU | BPF_OR | BPF_X, 0);
			at[n] = put(c, BPF_JMP | BPF_JSET | BPF_K, UINT32_MAX);
		} else if (r[n].op == FILTER_ANY) {
			put(c, BPF_LD | BPF_W | BPF_ABS, FIELD(args) + 8 * r[n].arg);
			at[n] = put(c, BPF_JMP | BPF_JSET | BPF_K, r[n].mask);
		} else {
			if (n == 0 || r[n].op == FILTER_EQUAL)
				load(c, &r[n]);
			at[n] = put(c, BPF_JMP | BPF_JEQ | BPF_K, r[n].value);
		}
	}
	c->full = c->full || n == CONDITIONS;
	refuse(c, r[n].value);
	for (size_t i = 0; i < n && !c->full; i++)
		here(c, at[i], r[n].op == FILTER_ELSE); /* past it: one of them holds, or one condition fails */
	return n + 1;
}

static int by_call(const void *a, const void *b)
{
	const struct filter_row *x = a, *y = b;
	return (x->call > y->call) - (x->call < y->call);
}

static void put_list(struct code *c, struct filter_row *v, size_t n, bool kills)
{
	qsort(v, n, sizeof *v, by_call);
	for (size_t i = 0; i < n && !c->full; i += BLOCK) {
		size_t last = i + BLOCK < n ? i + BLOCK : n;
		size_t skip = put(c, BPF_JMP | BPF_JGT | BPF_K, (uint32_t)v[last - 1].call);
		for (size_t j = i; j < last; j++) {
			size_t other = put(c, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)v[j].call);
			if (v[j].op == FILTER_ALLOW)
				put(c, BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
			else
				refuse(c, v[j].value);
			here(c, other, false);
		}
		here(c, skip, true);
	}
	put(c, BPF_RET | BPF_K, kills ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | ENOSYS);
}

bool filter_make(const struct filter_rows *rows, struct sock_fprog *out)
{
	struct code *c = calloc(1, sizeof *c);
	struct filter_row *list = calloc(rows->n + 1, sizeof *list);
	size_t i = 0, n = 0;
	if (c != NULL && list != NULL) {
		put(c, BPF_LD | BPF_W | BPF_ABS, FIELD(arch));
		c->v[put(c, BPF_JMP | BPF_JEQ | BPF_K, ARCH)].jt = 1;
		put(c, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
		put(c, BPF_LD | BPF_W | BPF_ABS, FIELD(nr));
		while (i < rows->n && rows->v[i].op < FILTER_ALLOW && !c->full) {
			int call = rows->v[i].call;
			size_t other = put(c, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call);
			while (i < rows->n && rows->v[i].op < FILTER_ALLOW && rows->v[i].call == call)
				i += put_rule(c, &rows->v[i]);
			put(c, BPF_LD | BPF_W | BPF_ABS, FIELD(nr));
			here(c, other, false);
		}
		for (; i < rows->n; i++)
			list[n++] = rows->v[i];
		put_list(c, list, n, rows->kills);
	}
	bool ok = c != NULL && list != NULL && !c->full;
	struct sock_filter *code = ok ? malloc(c->n * sizeof *code) : NULL;
	if (code != NULL) {
		memcpy(code, c->v, c->n * sizeof *code);
		*out = (struct sock_fprog){.len = (unsigned short)c->n, .filter = code};
	} else if (c != NULL && c->full) {
		errno = E2BIG;
	}
	free(list);
	free(c);
	return code != NULL;
}

bool filter_load(const struct sock_fprog *program)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, program) == 0;
}
