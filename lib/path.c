/*
 * Lexical rules for paths. Looks at names only, never at a file system; accepts one spelling of each path,
 * and none that git or a command line would read as something else.
 */
#include "lib/path.h"
#include <string.h>
#include <strings.h>

static bool path_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' || c == '_' ||
	       c == '-';
}

/* Names to which git gives a meaning, in every case and with the trailing dots that some file systems drop. */
static bool git_name(const char *p, size_t n)
{
	static const char *const names[] = {".git", ".gitmodules", ".gitattributes"};
	while (n > 0 && p[n - 1] == '.')
		n--;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (n == strlen(names[i]) && strncasecmp(p, names[i], n) == 0)
			return true;
	return false;
}

static bool part_valid(const char *p, size_t n)
{
	if (n == 0 || p[0] == '-' || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!path_char(p[i]))
			return false;
	return !git_name(p, n);
}

bool path_valid(const char *p, size_t n)
{
	if (n < 1 || n > PATH_MAX_CHARS)
		return false;
	size_t start = 0;
	for (size_t i = 0; i <= n; i++) {
		if (i < n && p[i] != '/')
			continue;
		if (!part_valid(p + start, i - start))
			return false;
		start = i + 1;
	}
	return true;
}

void path_extension(const char *p, char *out, size_t cap)
{
	const char *slash = strrchr(p, '/');
	const char *dot = strrchr(slash == NULL ? p : slash, '.');
	if (cap == 0)
		return;
	out[0] = 0;
	if (dot == NULL || strlen(dot) >= cap)
		return;
	size_t i = 0;
	for (; dot[i] != 0; i++)
		out[i] = dot[i] >= 'A' && dot[i] <= 'Z' ? (char)(dot[i] - 'A' + 'a') : dot[i];
	out[i] = 0;
}

static const char below[] = "/**";
enum { BELOW = sizeof below - 1 };

static bool is_folder(const char *p, size_t n)
{
	return n > BELOW && memcmp(p + n - BELOW, below, BELOW) == 0;
}

bool path_allow_valid(const char *p, size_t n)
{
	return n <= PATH_MAX_CHARS && path_valid(p, is_folder(p, n) ? n - BELOW : n);
}

bool path_allow_covers(const char *allow, const char *file)
{
	size_t n = strlen(allow);
	if (!is_folder(allow, n))
		return strcmp(allow, file) == 0;
	size_t folder = n - BELOW + 1; /* with its slash */
	return strlen(file) > folder && memcmp(allow, file, folder) == 0;
}

bool path_conflict(const char *a, const char *b)
{
	size_t an = strlen(a), bn = strlen(b);
	if (an > bn) {
		const char *p = a;
		size_t n = an;
		a = b;
		an = bn;
		b = p;
		bn = n;
	}
	if (strncasecmp(a, b, an) != 0)
		return false;
	return an == bn ? memcmp(a, b, an) != 0 : b[an] == '/';
}

static unsigned rank(char c)
{
	return c == '/' ? 1 : c >= 'A' && c <= 'Z' ? (unsigned char)(c - 'A' + 'a') : (unsigned char)c;
}

int path_order(const char *a, const char *b)
{
	size_t i = 0;
	while (a[i] != 0 && rank(a[i]) == rank(b[i]))
		i++;
	return rank(a[i]) != rank(b[i]) ? (rank(a[i]) < rank(b[i]) ? -1 : 1) : strcmp(a, b);
}

bool path_extension_in(const char *path, const char *const *extensions, size_t n)
{
	char ext[PATH_MAX_CHARS + 1];
	path_extension(path, ext, sizeof ext);
	for (size_t i = 0; i < n; i++)
		if (strcmp(extensions[i], "*") == 0 || (ext[0] != 0 && strcmp(extensions[i], ext) == 0))
			return true;
	return false;
}
