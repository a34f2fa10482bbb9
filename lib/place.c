/*
 * The instance's folders. Trusts the environment only for PINFOLD_ROOT, and that only in one shape.
 */
#include "lib/place.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest run directory that conf.msg carries; every socket name below it stays under 108 bytes. */
enum { RUN_DIR_MAX = 80, ROOT_MAX = 300, DIR_MAX = 600 };

static const char *const compiled[PLACE__COUNT] = {
    [PLACE_SYSCONF] = PF_SYSCONFDIR, [PLACE_STATE] = PF_STATEDIR,     [PLACE_LOG] = PF_LOGDIR,
    [PLACE_RUN] = PF_RUNDIR,         [PLACE_LIBEXEC] = PF_LIBEXECDIR, [PLACE_DATA] = PF_DATADIR,
};

/* Set once by place_init at the start of main, constant afterwards. */
static struct {
	char root[ROOT_MAX + 1];
	char dir[PLACE__COUNT][DIR_MAX];
} places;

/* Absolute, no empty, "." or ".." part, printable ASCII. */
static bool root_valid(const char *s, size_t n)
{
	if (n == 0 || s[0] != '/')
		return false;
	for (size_t at = 0; at < n;) {
		size_t part = 0;
		at++;
		while (at + part < n && s[at + part] != '/') {
			if (s[at + part] < 0x21 || s[at + part] > 0x7e)
				return false;
			part++;
		}
		if (part == 0 || (part == 1 && s[at] == '.') || (part == 2 && s[at] == '.' && s[at + 1] == '.'))
			return false;
		at += part;
	}
	return true;
}

bool place_init(void)
{
	const char *root = secure_getenv("PINFOLD_ROOT");
	size_t n = root == NULL ? 0 : strlen(root);
	if (n > 1 && root[n - 1] == '/')
		n--;
	if (root != NULL && root[0] != 0 && (n > ROOT_MAX || !root_valid(root, n)))
		return false;
	memset(&places, 0, sizeof places);
	if (n > 0)
		memcpy(places.root, root, n);
	for (int i = 0; i < PLACE__COUNT; i++) {
		int len = snprintf(places.dir[i], DIR_MAX, "%s%s", places.root, compiled[i]);
		if (len < 0 || len >= DIR_MAX || (i == PLACE_RUN && len > RUN_DIR_MAX))
			return false;
	}
	return true;
}

const char *place_dir(enum place p)
{
	return places.dir[p][0] != 0 ? places.dir[p] : compiled[p];
}

const char *place_root(void)
{
	return places.root;
}
