/* See offline.h. */
#include "store/offline.h"
#include "lib/confine.h"
#include "lib/die.h"
#include "store/check.h"
#include "store/env.h"
#include <stdio.h>
#include <string.h>

enum { ROWS = 2000, USAGE = 2 };

static void say(void *with, const char *text)
{
	(void)with;
	printf("finding %s\n", text);
}

unsigned offline_check(struct store *s, bool contents, bool quiet)
{
	struct check c = {.contents = contents, .says = say};
	bool more = true;
	while (more) {
		struct txn t;
		txn_init(&t, s, NULL);
		c.t = &t;
		more = check_step(&c, ROWS);
		(void)txn_end(&t, ERR_OK);
		txn_free(&t);
	}
	if (!quiet)
		printf("rows %u\n", (unsigned)c.rows);
	return c.findings;
}

void offline_confine(const char *state_dir, const char *log_dir)
{
	const struct landlock_rule own[] = {{state_dir, LL_ALL}, {log_dir, LL_ALL}};
	if (!confine(CONFINE_STORED, own, log_dir != NULL ? 2 : 1))
		fatal("cannot confine this process: %m");
}

static int check(const char *state_dir, bool contents)
{
	offline_confine(state_dir, NULL);
	struct store *s = store_open(state_dir);
	unsigned findings = offline_check(s, contents, false);
	store_close(s);
	if (!store_verify(state_dir, NAME_STORE, say))
		findings++;
	return findings > 0 ? 1 : 0;
}

int offline(int argc, char **argv)
{
	const char *last = argv[argc - 1];
	if (argc >= 3 && strcmp(argv[1], "--check") == 0 && argc <= 4 && (argc == 3 || strcmp(last, "--contents") == 0))
		return check(argv[2], argc == 4);
	if (argc >= 4 && strcmp(argv[1], "--restore") == 0 && argc <= 5 &&
	    (argc == 4 || strcmp(last, "--keep-tokens") == 0))
		return restore(argv[2], argv[3], argc == 5);
	log_error("is started by pinfold-sandboxd without arguments; \"pinfold store\" is the command for people");
	return USAGE;
}
