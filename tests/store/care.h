/* What the tests of "pinfold store" share: a rig whose command line works, and runs and tokens to look after. */
#ifndef TESTS_STORE_CARE_H
#define TESTS_STORE_CARE_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/store/cli.h"
#include "tests/store/steps.h"

/* A group's beginning: the rig, the command line and the connections. */
int care_setup(void **state);
/* The service ends; begins, and from then on "pinfold store" asks it. */
void care_stop(void);
void care_start(void);
/* A shell command that must succeed. */
void sh(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The last command said this. */
void expect(const char *text);
#define STORE(wanted, text, ...)                               \
	do {                                                   \
		int status_ = cli_store(__VA_ARGS__);          \
		if (status_ != (wanted))                       \
			print_message("said: %s", cli_said()); \
		assert_int_equal(status_, wanted);             \
		expect(text);                                  \
	} while (0)
/* Is this token valid? */
enum err principal(const char *id);
void token(const char *id);
void revoke_token(const char *id);
/* A run that has ended, with sources and a patch that are files. */
void ended(const char *run);
struct st_stats_are stats(void);
enum err look(const char *run, struct st_run_is *a);
/* A backup as DIR/name, in place of an older one. */
void a_backup(const char *name);
/* The rig's tenant, a run "anchor" that goes on, a token "lasting", a folder above the store that is root's. */
void care_first(unsigned runs);
#endif
