/* pinfold agent: agents that npm distributes, each pinned by a lock file (etc/agents/NAME.lock). */
#ifndef CLI_AGENT_H
#define CLI_AGENT_H
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

enum { AGENT_NAME = 64, AGENT_PLACE = 256, AGENT_PACKAGES = 1000 };

struct agent_package {
	char place[AGENT_PLACE]; /* its folder below the agent's */
	char name[AGENT_PLACE], version[AGENT_NAME];
	char integrity[128];
};

struct agent_lock {
	char name[AGENT_NAME], version[AGENT_NAME], licence[AGENT_NAME];
	char program[AGENT_PLACE], node[AGENT_PLACE]; /* below its folder; node "": it needs none */
	struct agent_package *packages;
	size_t npackages;
};

/* Reads NAME's lock file. False after saying what is wrong. agent_lock_free() in any case. */
bool agent_lock_read(struct agent_lock *l, const char *name);
void agent_lock_free(struct agent_lock *l);
/* cli/agent_lock.c: is it a path of plain parts, none of them "..", that leads nowhere but down? */
bool agent_place_valid(const char *path);

/* cli/agent_fetch.c: one package from the registry into a file without a name, whose digest is what the lock says.
 * -1 after saying why. */
struct agent_source;
/* What is being fetched when *stopped becomes non-zero is given up within a second or so. */
struct agent_source *agent_source_open(const char *registry, const volatile sig_atomic_t *stopped);
void agent_source_close(struct agent_source *s);
int agent_fetch(struct agent_source *s, const struct agent_package *p);

/* cli/agent_unpack.c: the archive's files into this folder, which is made below the working directory: plain files and
 * folders alone, of root's, readable by all and writable by nobody else. *left is what may still be written in bytes.
 * False after saying why. */
bool agent_unpack(int archive, const char *place, unsigned long long *left);
#endif
