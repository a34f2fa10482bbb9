/* See flags.h. Looks at names and numbers alone. */
#include "steward/flags.h"
#include <fnmatch.h>
#include <string.h>

const char *const flag_names[FLAG__COUNT] = {[FLAG_NONE] = "none",
					     [FLAG_TEST_FILE] = "changed_test_file",
					     [FLAG_CHECK_SETUP] = "changed_check_setup",
					     [FLAG_FEWER_TESTS] = "fewer_tests",
					     [FLAG_NOTHING_CHANGED] = "nothing_changed"};

/* Patterns of one part of a path; the first row that fits any part says what the file is. */
static const struct {
	const char *part;
	bool first, last; /* only as the first part, only as the last */
	enum flag flag;
} patterns[] = {
    /* read by pytest, unittest, Python itself or the tools around them before any test is */
    {"conftest.py", false, true, FLAG_CHECK_SETUP},
    {"pytest.ini", false, true, FLAG_CHECK_SETUP},
    {".pytest.ini", false, true, FLAG_CHECK_SETUP},
    {"pytest.toml", false, true, FLAG_CHECK_SETUP},
    {".pytest.toml", false, true, FLAG_CHECK_SETUP},
    {"tox.ini", false, true, FLAG_CHECK_SETUP},
    {"setup.cfg", false, true, FLAG_CHECK_SETUP},
    {"setup.py", false, true, FLAG_CHECK_SETUP},
    {"pyproject.toml", false, true, FLAG_CHECK_SETUP},
    {"noxfile.py", false, true, FLAG_CHECK_SETUP},
    {"sitecustomize.py", false, false, FLAG_CHECK_SETUP},
    {"sitecustomize", false, false, FLAG_CHECK_SETUP},
    {"usercustomize", false, false, FLAG_CHECK_SETUP},
    {"usercustomize.py", false, false, FLAG_CHECK_SETUP},
    {"*.pth", false, true, FLAG_CHECK_SETUP},
    {"*.dist-info", false, false, FLAG_CHECK_SETUP},
    {"*.egg-info", false, false, FLAG_CHECK_SETUP},
    /* modules of that name in the folder where a check starts come before the real ones */
    {"unittest", true, false, FLAG_CHECK_SETUP},
    {"unittest.py", true, false, FLAG_CHECK_SETUP},
    {"pytest", true, false, FLAG_CHECK_SETUP},
    {"pytest.py", true, false, FLAG_CHECK_SETUP},
    {"_pytest", true, false, FLAG_CHECK_SETUP},
    {"_pytest.py", true, false, FLAG_CHECK_SETUP},
    {"compileall.py", true, false, FLAG_CHECK_SETUP},
    /* other checks that an administrator may have permitted */
    {"Makefile", false, true, FLAG_CHECK_SETUP},
    {"GNUmakefile", false, true, FLAG_CHECK_SETUP},
    {"makefile", false, true, FLAG_CHECK_SETUP},
    {"*.mk", false, true, FLAG_CHECK_SETUP},
    {"package.json", false, true, FLAG_CHECK_SETUP},
    {"Cargo.toml", false, true, FLAG_CHECK_SETUP},
    {"build.rs", false, true, FLAG_CHECK_SETUP},
    {"CMakeLists.txt", false, true, FLAG_CHECK_SETUP},
    {"*.config.js", false, true, FLAG_CHECK_SETUP},
    {"*.config.ts", false, true, FLAG_CHECK_SETUP},
    /* tests */
    {"test_*", false, false, FLAG_TEST_FILE},
    {"*_test.*", false, true, FLAG_TEST_FILE},
    {"*_tests.*", false, true, FLAG_TEST_FILE},
    {"test*.py", false, true, FLAG_TEST_FILE}, /* what unittest discovers */
    {"*.test.*", false, true, FLAG_TEST_FILE},
    {"*.spec.*", false, true, FLAG_TEST_FILE},
    {"test", false, false, FLAG_TEST_FILE},
    {"tests", false, false, FLAG_TEST_FILE},
    {"testing", false, false, FLAG_TEST_FILE},
    {"spec", false, false, FLAG_TEST_FILE},
    {"__tests__", false, false, FLAG_TEST_FILE},
};

static bool fits(size_t row, const char *path)
{
	char part[256];
	for (const char *p = path; p != NULL;) {
		const char *slash = strchr(p, '/');
		size_t n = slash != NULL ? (size_t)(slash - p) : strlen(p);
		bool here = (!patterns[row].first || p == path) && (!patterns[row].last || slash == NULL);
		if (here && n < sizeof part) {
			memcpy(part, p, n);
			part[n] = '\0';
			if (fnmatch(patterns[row].part, part, 0) == 0)
				return true;
		}
		p = slash != NULL ? slash + 1 : NULL;
	}
	return false;
}

enum flag flags_of_path(const char *path)
{
	for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
		if (fits(i, path))
			return patterns[i].flag;
	return FLAG_NONE;
}

static bool fewer(const struct check_result *c)
{
	return c->counts.known && c->upload.known && c->counts.run < c->upload.run;
}

bool flags_compare(const struct run *r, size_t i)
{
	const struct check_result *c = &r->checks[i];
	if (c->outcome != OUTCOME_PASSED || !c->counts.known)
		return false;
	bool doubt = c->counts.skipped > 0 || (r->agent != NULL && r->agent->upload_always);
	for (uint32_t k = 0; k < r->nchanges; k++)
		doubt = doubt || flags_of_path(r->changes[k].path) != FLAG_NONE;
	return doubt && r->nchanges > 0;
}

static void put(struct jw *w, enum flag flag, const char *path)
{
	jw_open(w, '{');
	jw_kstr(w, "flag", flag_names[flag]);
	if (path != NULL)
		jw_kstr(w, "path", path);
	jw_close(w, '}');
}

void flags_write(struct jw *w, const struct run *r, size_t i)
{
	bool looks_at_changes = checks_of_changes(r->rq.checks[i].argv, r->rq.checks[i].argc);
	jw_open(w, '[');
	for (uint32_t k = 0; k < r->nchanges && !looks_at_changes; k++) {
		enum flag flag = flags_of_path(r->changes[k].path);
		if (flag != FLAG_NONE)
			put(w, flag, r->changes[k].path);
	}
	if (fewer(&r->checks[i]))
		put(w, FLAG_FEWER_TESTS, NULL);
	if (looks_at_changes && r->nchanges == 0)
		put(w, FLAG_NOTHING_CHANGED, NULL);
	jw_close(w, ']');
}
