/*
 * Doctor: where in the configuration a setting stands, as FILE:LINE, so that a remedy names the line to change. Looks
 * at text that the parser has taken; where it does not find its way there the remedy names the folder alone.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "cli/doctor.h"
#include "lib/place.h"

/* Does the line begin with this word? What follows it, or NULL. */
static const char *begins(const char *line, const char *word)
{
	size_t n = strlen(word);

	line += strspn(line, " \t");
	if (strncmp(line, word, n) != 0 || isalnum((unsigned char)line[n]) || line[n] == '_')
		return NULL;
	return line + n + strspn(line + n, " \t");
}

/* Is the setting set in this line, or in this part of one? */
static bool sets(const char *part, const char *setting)
{
	const char *rest = begins(part, setting);

	return rest != NULL && (*rest == '=' || *rest == '{');
}

/* In a section that stands in one line, or in the line that opens it. */
static bool sets_behind(const char *brace, const char *setting)
{
	for (const char *p = strstr(brace, setting); p != NULL; p = strstr(p + 1, setting))
		if (p > brace && strchr("{ \t}\"", p[-1]) != NULL && sets(p, setting))
			return true;
	return false;
}

/* The line of the setting, or, where it is not set, of the section that should have it; 0: neither. */
static unsigned in_file(const char *path, const char *kind, const char *name, const char *setting)
{
	char line[1024];
	unsigned at = 0, opened = 0, hit = 0;
	bool inside = kind == NULL;
	int depth = 0;
	FILE *f = fopen(path, "re");

	while (hit == 0 && f != NULL && fgets(line, sizeof line, f) != NULL) {
		const char *rest = kind != NULL && depth == 0 ? begins(line, kind) : NULL;
		size_t n = strlen(name);
		at++;
		if (rest != NULL && *rest == '"' && strncmp(rest + 1, name, n) == 0 && rest[1 + n] == '"') {
			inside = true;
			opened = at;
			const char *brace = strchr(rest, '{');
			if (brace != NULL && sets_behind(brace, setting))
				hit = at;
		} else if (inside && depth == (kind != NULL) && sets(line, setting)) {
			hit = at;
		}
		for (const char *p = line; *p != '\0' && *p != '#'; p++)
			depth += (*p == '{') - (*p == '}');
		if (kind != NULL && depth <= 0 && at != opened)
			inside = false;
	}
	if (f != NULL)
		fclose(f);
	return hit > 0 ? hit : opened;
}

static int conf_name(const struct dirent *e)
{
	size_t n = strlen(e->d_name);

	return e->d_name[0] != '.' && n > 5 && strcmp(e->d_name + n - 5, ".conf") == 0;
}

const char *doctor_where(char out[900], const char *kind, const char *name, const char *setting)
{
	static const char *const folders[] = {"", "/providers.d", "/profiles.d", "/tenants.d"};
	unsigned at = 0;

	snprintf(out, 900, "%s", place_dir(PLACE_SYSCONF));
	for (size_t i = 0; at == 0 && i < sizeof folders / sizeof *folders; i++) {
		struct dirent **list = NULL;
		char dir[500], path[860];
		snprintf(dir, sizeof dir, "%s%s", place_dir(PLACE_SYSCONF), folders[i]);
		int n = scandir(dir, &list, conf_name, alphasort);
		for (int k = 0; k < n; k++) {
			snprintf(path, sizeof path, "%s/%s", dir, list[k]->d_name);
			if (at == 0 && (at = in_file(path, kind, name, setting)) > 0)
				snprintf(out, 900, "%s:%u", path, at);
			free(list[k]);
		}
		free(list);
	}
	return out;
}
