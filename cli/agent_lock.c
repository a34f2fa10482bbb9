/* Lock files of agents: lines of words. Ours, but read as if they were not: what they name becomes paths of root's. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/agent.h"
#include "cli/cli.h"
#include "lib/integrity.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/place.h"

enum { LOCK_MAX = 1000000, WORDS = 5 };

/* As names and versions of npm are written, and what is made of them. */
static bool plain(char c)
{
	return isalnum((unsigned char)c) || (c != '\0' && strchr("@._-+", c) != NULL);
}

bool agent_place_valid(const char *path)
{
	size_t part = 0;

	if (*path == '\0')
		return false;
	for (const char *p = path;; p++) {
		if (*p == '/' || *p == '\0') {
			if (part == 0 || (part <= 2 && strncmp(p - part, "..", part) == 0))
				return false;
			if (*p == '\0')
				return true;
			part = 0;
		} else if (!plain(*p))
			return false;
		else
			part++;
	}
}

static bool copy(char *to, size_t room, const char *word)
{
	return word != NULL && (size_t)snprintf(to, room, "%s", word) < room;
}

/* One line's words, the first of which says what it is. */
static bool take(struct agent_lock *l, char *const w[WORDS], size_t n)
{
	if (n == 4 && strcmp(w[0], "agent") == 0)
		return copy(l->name, sizeof l->name, w[1]) && copy(l->version, sizeof l->version, w[2]) &&
		       copy(l->licence, sizeof l->licence, w[3]) && id_valid(l->name) && id_valid(l->version) &&
		       agent_place_valid(l->licence);
	if (n == 2 && strcmp(w[0], "program") == 0)
		return copy(l->program, sizeof l->program, w[1]) && agent_place_valid(l->program);
	if (n == 2 && strcmp(w[0], "node") == 0)
		return copy(l->node, sizeof l->node, w[1]) && agent_place_valid(l->node);
	if (n != 5 || strcmp(w[0], "package") != 0 || l->npackages >= AGENT_PACKAGES)
		return false;
	struct agent_package *p = &l->packages[l->npackages++];
	return copy(p->place, sizeof p->place, w[1]) && agent_place_valid(p->place) &&
	       copy(p->name, sizeof p->name, w[2]) && agent_place_valid(p->name) &&
	       copy(p->version, sizeof p->version, w[3]) && id_valid(p->version) &&
	       copy(p->integrity, sizeof p->integrity, w[4]) && integrity_valid(p->integrity);
}

static bool parse(struct agent_lock *l, const char *path, char *text)
{
	char *rest, *more = text, where[PATH_MAX + 32];
	unsigned number = 0;

	for (char *line; (line = strsep(&more, "\n")) != NULL;) {
		char *w[WORDS] = {NULL};
		size_t n = 0;
		number++;
		if (line[0] == '#' || line[0] == '\0')
			continue;
		for (char *word = strtok_r(line, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
			if (n++ < WORDS)
				w[n - 1] = word;
		if (take(l, w, n))
			continue;
		snprintf(where, sizeof where, "%s:%u", path, number);
		say_wrong(where, "this is no line of a lock file; reinstall pinfold");
		return false;
	}
	if (l->version[0] != '\0' && l->program[0] != '\0' && l->npackages > 0)
		return true;
	say_wrong(path, "it does not say version, program and packages; reinstall pinfold");
	return false;
}

bool agent_lock_read(struct agent_lock *l, const char *name)
{
	char path[PATH_MAX];
	size_t n;

	*l = (struct agent_lock){0};
	snprintf(path, sizeof path, "%s/agents/%s.lock", place_dir(PLACE_DATA), name);
	own_free char *text = id_valid(name) ? file_read(AT_FDCWD, path, LOCK_MAX, &n) : NULL;
	if (text == NULL) {
		say_wrong(name, id_valid(name) && errno != ENOENT
				    ? strerror(errno)
				    : "there is no such agent; \"pinfold agent list\" shows those there are");
		return false;
	}
	l->packages = calloc(AGENT_PACKAGES, sizeof *l->packages);
	if (l->packages == NULL || !parse(l, path, text))
		return false;
	if (strcmp(l->name, name) == 0)
		return true;
	say_wrong(path, "it is of another agent; reinstall pinfold");
	return false;
}

void agent_lock_free(struct agent_lock *l)
{
	free(l->packages);
	*l = (struct agent_lock){0};
}
