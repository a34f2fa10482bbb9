/*
 * Filters of system calls (seccomp), made from the rows that spec/seccomp.tab becomes. No policy is here. What the rows
 * about arguments decide comes first, then the list; a call on neither does not exist (ENOSYS), or ends the process
 * where the rows say so; one of another architecture always does.
 */
#ifndef LIB_FILTER_H
#define LIB_FILTER_H
#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Those of arguments stand first, all of one call together. EQUAL, ANY and NONZERO end in THEN: refused when all hold;
 * ONE_OF (of one argument) end in ELSE: refused when none does. */
enum filter_op {
	FILTER_EQUAL,   /* (argument & mask) == value */
	FILTER_ANY,     /* (argument & mask) != 0 */
	FILTER_NONZERO, /* all 64 bits */
	FILTER_THEN,    /* value: the errno */
	FILTER_ONE_OF,
	FILTER_ELSE,
	FILTER_ALLOW,
	FILTER_REFUSE
};
struct filter_row {
	enum filter_op op;
	int call;
	unsigned arg;
	uint32_t mask, value;
};
struct filter_rows {
	const struct filter_row *v;
	size_t n;
	bool kills; /* a call that is on no list ends the process */
};

/* Makes the program; out->filter is the caller's to free. False with errno: no memory, or rows that do not fit. */
bool filter_make(const struct filter_rows *rows, struct sock_fprog *out);
/* Installs it in every thread of the process, for good; needs no_new_privs. False with errno. */
bool filter_load(const struct sock_fprog *program);
#endif
