/* See promised.h. */
#include "tests/unit/promised.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 2000 };
static char *lines[MOST];
static size_t nlines;

static void load(void)
{
	char path[4096], text[2000];
	const char *top = getenv("srcdir");
	snprintf(path, sizeof path, "%s/tests/vectors/promised.tab", top != NULL ? top : ".");
	FILE *f = fopen(path, "r");
	while (f != NULL && fgets(text, sizeof text, f) != NULL) {
		text[strcspn(text, "\n")] = '\0';
		if (text[0] == '#')
			continue;
		if (nlines == MOST || (lines[nlines++] = strdup(text)) == NULL)
			exit(1);
	}
	if (f == NULL || nlines == 0) {
		printf("%s cannot be read\n", path);
		exit(1);
	}
	fclose(f);
}

char *promised_next(size_t *at, const char *word)
{
	static char cut[2000];
	size_t n = strlen(word);
	if (nlines == 0)
		load();
	while (*at < nlines) {
		const char *l = lines[(*at)++];
		if (n == 0 || (strncmp(l, word, n) == 0 && l[n] == ' ')) {
			snprintf(cut, sizeof cut, "%s", n == 0 ? l : l + n + 1);
			return cut;
		}
	}
	return NULL;
}

char *promised_word(char **rest)
{
	char *word = *rest, *end = word + strcspn(word, " ");
	*rest = *end == '\0' ? end : end + 1;
	*end = '\0';
	return word;
}

bool promised_in(const char *list, const char *word)
{
	size_t n = strlen(word);
	for (const char *p = list; (p = strstr(p, word)) != NULL; p++)
		if ((p == list || p[-1] == ',') && (p[n] == '\0' || p[n] == ','))
			return true;
	return false;
}
