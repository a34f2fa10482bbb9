/*
 * Comments are taken out of the text before libconfuse reads it: that of Debian 12 counts two lines too many for each
 * of them, and a line that is named must be the one that is meant.
 */
#include <string.h>

#include "cli/conf_read.h"

/* The end of what begins here and is no text of a value: a comment; or start itself. */
static char *comment_end(char *start, const char *before)
{
	if (*start == '#') /* also in the middle of a word */
		return start + strcspn(start, "\n");
	if (before != NULL && strchr(" \t\r\n={}(),+\"'/", *before) == NULL)
		return start; /* in the middle of a word */
	if (start[0] == '/' && start[1] == '/')
		return start + strcspn(start, "\n");
	if (start[0] != '/' || start[1] != '*')
		return start;
	char *end = strstr(start + 2, "*/");
	return end != NULL ? end + 2 : start; /* one that does not end is the parser's to refuse */
}

void conf_plain(char *text)
{
	char quote = '\0';

	for (char *p = text; *p != '\0';) {
		char *end = quote == '\0' ? comment_end(p, p > text ? p - 1 : NULL) : p;
		if (end > p) {
			for (; p < end; p++)
				*p = *p == '\n' ? '\n' : ' ';
			continue;
		}
		if (*p == quote)
			quote = '\0';
		else if (quote == '\0' && (*p == '"' || *p == '\''))
			quote = *p;
		else if (quote != '\0' && *p == '\\' && p[1] != '\0')
			p++;
		p++;
	}
}
