/* "pinfold store" against a rig: its folders are where a private instance has them. */
#ifndef TESTS_STORE_CLI_H
#define TESTS_STORE_CLI_H
#include "tests/store/harness.h"

/* After rig_open. */
void cli_open(struct rig *r);
/* Runs "pinfold store ARGS"; its exit status. */
int cli_store(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same of "pinfold device ARGS". */
int cli_device(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* What it said, standard error behind standard output. */
const char *cli_said(void);
#endif
