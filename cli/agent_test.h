/* pinfold agent test: an installed agent runs once against the scripted model, in a box of the running service. */
#ifndef CLI_AGENT_TEST_H
#define CLI_AGENT_TEST_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "cli/cli.h"

/* Of its tenant, provider, model profile and secret, all of which are there only while it goes on. */
#define AGENT_TEST "agent-test"
/* How its made-up key begins; and what finds it, but not itself. */
#define STAGE_KEY "sk-agent-test-"
#define STAGE_KEY_PATTERN "sk-agent-tes[t]-[0-9a-f]{16}"
enum { STAGE_PATH = 1024, STAGE_LOG_MAX = 64000000 };

struct stage {
	char key[64];
	pid_t model;
	unsigned port;
	int log, lock; /* log: what the model was asked, a line of JSON each */
	bool put;      /* files of the test's were made */
	struct secret token;
};

/* cli/agent_stage.c. False after saying why; stage_close() in any case, which says what it could not take away. */
bool stage_open(struct stage *s, const char *agent, const char *protocol);
bool stage_close(struct stage *s);
/* What the model was asked, to be freed; NULL: not to be had. */
char *stage_log(const struct stage *s, size_t *n);

/* cli/agent_test.c. Tests the agent profile so called; hint says what to do where the configuration has none. Returns
 * the exit status. */
int agent_test(struct cli *cli, const char *name, const char *hint);
#endif
