/* See know.h. */
#include "attack/know.h"
#include "attack/tried.h"
#include <stdlib.h>
#include <string.h>

enum { KNOWN = 100, TRIES = 400 };

static char text[64000];
static const char *names[KNOWN], *values[KNOWN], *tries[TRIES], *mode = "";
static unsigned known, ntries;

static void take(char *line)
{
	char *value = strchr(line, ' ');
	if (value == NULL)
		return;
	*value++ = '\0';
	if (strcmp(line, "mode") == 0)
		mode = value;
	else if (strcmp(line, "try") == 0 && ntries < TRIES)
		tries[ntries++] = value;
	else if (strcmp(line, "know") == 0 && known < KNOWN) {
		char *rest = strchr(value, ' ');
		names[known] = value;
		values[known++] = rest != NULL ? rest + 1 : "";
		if (rest != NULL)
			*rest = '\0';
	}
}

bool know_read(const char *path)
{
	if (read_text(path, text, sizeof text) < 0)
		return false;
	for (char *line = text, *end; *line != '\0'; line = end + 1) {
		end = strchr(line, '\n');
		if (end == NULL)
			return true;
		*end = '\0';
		take(line);
	}
	return true;
}

const char *know(const char *name)
{
	for (unsigned i = 0; i < known; i++)
		if (strcmp(names[i], name) == 0)
			return values[i];
	return "";
}

long know_number(const char *name)
{
	return strtol(know(name), NULL, 10);
}

const char *know_try(unsigned k)
{
	return k < ntries ? tries[k] : NULL;
}

const char *know_mode(void)
{
	return mode;
}
