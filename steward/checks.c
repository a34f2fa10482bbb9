/*
 * See checks.h. The output was written by the program under test as much as by the test runner, so counts are
 * read conservatively: a line counts only when it is wholly of the form that the runner prints, the last one
 * wins (of a runner that prints one for each program of tests, all together), and where none is found nothing ran.
 */
#include "steward/checks.h"
#include <stdlib.h>
#include <string.h>

const char *const outcome_names[OUTCOME__COUNT] = {
    [OUTCOME_NONE] = "none",         [OUTCOME_PASSED] = "passed",   [OUTCOME_FAILED] = "failed",
    [OUTCOME_NO_TESTS] = "no_tests", [OUTCOME_TIMEOUT] = "timeout", [OUTCOME_KILLED] = "killed"};

enum { LINE = 400, PYTEST_NOTHING = 5 };

/* --- lines ------------------------------------------------------------------------------------------- */

struct lines {
	const char *p, *end;
	char line[LINE + 1]; /* the current one; without colours, cut at LINE */
};

static bool next_line(struct lines *l)
{
	size_t n = 0;
	bool escape = false;
	if (l->p >= l->end)
		return false;
	for (; l->p < l->end && *l->p != '\n'; l->p++) {
		char c = *l->p;
		if (c == 0x1b)
			escape = true;
		else if (escape)
			escape = c != 'm';
		else if (n < LINE)
			l->line[n++] = c != '\0' ? c : '?';
	}
	l->p++;
	l->line[n] = '\0';
	return true;
}

static bool take(const char **p, const char *word)
{
	size_t n = strlen(word);
	if (strncmp(*p, word, n) != 0)
		return false;
	*p += n;
	return true;
}

static bool take_number(const char **p, uint32_t *value)
{
	const char *start = *p;
	for (*value = 0; **p >= '0' && **p <= '9' && *p - start < 9; (*p)++)
		*value = 10 * *value + (uint32_t)(**p - '0');
	return *p != start && !(**p >= '0' && **p <= '9');
}

/* "0.12s", in whatever form: digits, a dot, digits. */
static bool take_seconds(const char **p)
{
	uint32_t ignored;
	return take_number(p, &ignored) && take(p, ".") && take_number(p, &ignored) && take(p, "s");
}

/* A line of progress: one sign a test, perhaps a percentage behind. */
static bool progress(const char *line, const char *signs, struct check_counts *c)
{
	struct check_counts found = {.known = true};
	size_t n = strspn(line, signs);
	const char *p = line + n;
	for (size_t i = 0; i < n; i++) {
		found.run += line[i] != 's';
		found.skipped += line[i] == 's';
		found.failed += line[i] == 'F' || line[i] == 'E';
	}
	size_t rest = strlen(p);
	if (n == 0 || !(rest == 0 || (p[strspn(p, " ")] == '[' && rest > 2 && strcmp(p + rest - 2, "%]") == 0)))
		return false;
	*c = found;
	return true;
}

/* --- unittest ---------------------------------------------------------------------------------------- */

/* "OK", "FAILED (failures=1, errors=2)", "OK (skipped=3, expected failures=1)" */
static bool unittest_verdict(const char *p, struct check_counts *c)
{
	static const struct {
		const char *name;
		bool failed, skipped;
	} words[] = {{"failures=", true, false},
		     {"errors=", true, false},
		     {"unexpected successes=", true, false},
		     {"skipped=", false, true},
		     {"expected failures=", false, false}};
	uint32_t value;
	if (!take(&p, "OK") && !take(&p, "FAILED") && !take(&p, "NO TESTS RAN"))
		return false;
	if (*p == '\0')
		return true;
	if (!take(&p, " ("))
		return false;
	do {
		size_t i = 0, n = sizeof words / sizeof *words;
		while (i < n && !take(&p, words[i].name))
			i++;
		if (i == n || !take_number(&p, &value))
			return false;
		c->failed += words[i].failed ? value : 0;
		c->skipped += words[i].skipped ? value : 0;
	} while (take(&p, ", "));
	return strcmp(p, ")") == 0;
}

/* "Ran N test(s) in S", an empty line, the verdict. What went before tells skipped classes from skipped tests:
 * those are counted as skipped, but not as run. */
static void unittest_count(const char *output, size_t n, struct check_counts *c)
{
	struct lines l = {.p = output, .end = output + n};
	struct check_counts before = {0}, found;
	while (next_line(&l)) {
		const char *p = l.line;
		uint32_t total;
		struct check_counts signs;
		if (progress(l.line, ".sFExu", &signs) && strspn(l.line, ".sFExu") == strlen(l.line)) {
			before = signs;
			continue;
		}
		if (!take(&p, "Ran ") || !take_number(&p, &total) ||
		    !(take(&p, " tests in ") || take(&p, " test in ")) || !take_seconds(&p) || *p != '\0')
			continue;
		found = (struct check_counts){.known = true};
		*c = found; /* until its verdict is read, it ran nothing */
		if (!next_line(&l) || l.line[0] != '\0' || !next_line(&l) || !unittest_verdict(l.line, &found))
			continue;
		found.run = total > found.skipped ? total - found.skipped : 0;
		if (before.known && before.run <= total && before.skipped == found.skipped && before.run > found.run)
			found.run = before.run;
		if (found.failed > found.run)
			found.run = found.failed; /* a class whose preparation failed */
		*c = found;
	}
}

/* --- pytest ------------------------------------------------------------------------------------------ */

/* "1 failed, 2 passed, 3 warnings in 0.04s", perhaps between signs of equality */
static bool pytest_summary(const char *p, struct check_counts *c)
{
	static const struct {
		const char *name;
		bool run, failed, skipped;
	} words[] = {
	    {" passed", true, false, false},   {" failed", true, true, false},       {" errors", true, true, false},
	    {" error", true, true, false},     {" skipped", false, false, true},     {" xfailed", true, false, false},
	    {" xpassed", true, false, false},  {" deselected", false, false, false}, {" warnings", false, false, false},
	    {" warning", false, false, false}, {" rerun", false, false, false}};
	struct check_counts found = {.known = true};
	uint32_t value;
	p += strspn(p, "= ");
	if (take(&p, "no tests ran")) {
		*c = found;
		return true;
	}
	do {
		size_t i = 0, n = sizeof words / sizeof *words;
		if (!take_number(&p, &value))
			return false;
		while (i < n && !take(&p, words[i].name))
			i++;
		if (i == n)
			return false;
		found.run += words[i].run ? value : 0;
		found.failed += words[i].failed ? value : 0;
		found.skipped += words[i].skipped ? value : 0;
	} while (take(&p, ", "));
	if (!take(&p, " in ") || !take_seconds(&p))
		return false;
	*c = found;
	return true;
}

/* Told to be quieter still (settings of the program), pytest leaves the summary out: then its signs are counted. */
static void pytest_count(const char *output, size_t n, struct check_counts *c)
{
	struct lines l = {.p = output, .end = output + n};
	struct check_counts signs = {0}, line;
	while (next_line(&l)) {
		if (pytest_summary(l.line, c) || !progress(l.line, ".sFExX", &line))
			continue;
		signs.known = true;
		signs.run += line.run;
		signs.failed += line.failed;
		signs.skipped += line.skipped;
	}
	if (!c->known)
		*c = signs;
}

/* --- cargo test -------------------------------------------------------------------------------------- */

/* "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s" */
static bool cargo_summary(const char *p, struct check_counts *c)
{
	static const char *const words[] = {" passed; ", " failed; ", " ignored; ", " measured; ", " filtered out"};
	enum { PASSED, FAILED, IGNORED, MEASURED, WORDS = sizeof words / sizeof *words };
	uint32_t value[WORDS];
	if (!take(&p, "test result: ") || !(take(&p, "ok. ") || take(&p, "FAILED. ")))
		return false;
	for (size_t i = 0; i < WORDS; i++)
		if (!take_number(&p, &value[i]) || !take(&p, words[i]))
			return false;
	if (*p != '\0' && !(take(&p, "; finished in ") && take_seconds(&p) && *p == '\0'))
		return false;
	c->known = true;
	c->run += value[PASSED] + value[FAILED] + value[MEASURED];
	c->failed += value[FAILED];
	c->skipped += value[IGNORED];
	return true;
}

/* One such line a program of tests; those without a test say so, too. */
static void cargo_count(const char *output, size_t n, struct check_counts *c)
{
	struct lines l = {.p = output, .end = output + n};
	uint32_t lines = 0;
	while (lines < 1000 && next_line(&l))
		lines += cargo_summary(l.line, c);
}

/* --- kinds ------------------------------------------------------------------------------------------- */

/* What is known of a command: it begins with these words. Another is judged by its exit code alone. */
static const struct kind {
	const char *words[4];
	void (*count)(const char *output, size_t n, struct check_counts *c);
	int nothing;     /* the exit code that says that there was nothing; 0: none */
	bool of_sources; /* looks at every Python file, and says nothing about it */
	bool of_changes; /* looks at what was changed: the repository of its box is made so that it sees all of it */
} kinds[] = {
    {{"python3", "-m", "unittest"}, unittest_count, 0, false, false},
    {{"python3", "-m", "pytest"}, pytest_count, PYTEST_NOTHING, false, false},
    {{"cargo", "test"}, cargo_count, 0, false, false},
    {{"python3", "-m", "compileall"}, NULL, 0, true, false},
    {{"git", "diff", "--check"}, NULL, 0, false, true},
};

/* A program may be named with its folder, Python with its version. */
static bool program_is(const char *name, const char *arg)
{
	const char *base = strrchr(arg, '/');
	base = base != NULL ? base + 1 : arg;
	size_t n = strlen(name);
	return strncmp(base, name, n) == 0 && (base[n] == '\0' || (base[n] == '.' && strcmp(name, "python3") == 0));
}

static const struct kind *kind_of(const char *const *argv, uint32_t argc)
{
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		uint32_t n = argc > 0 && program_is(kinds[i].words[0], argv[0]) ? 1 : 0;
		while (n > 0 && kinds[i].words[n] != NULL && n < argc && strcmp(kinds[i].words[n], argv[n]) == 0)
			n++;
		if (kinds[i].words[n] == NULL)
			return &kinds[i];
	}
	return NULL;
}

bool checks_of_changes(const char *const *argv, uint32_t argc)
{
	const struct kind *k = kind_of(argv, argc);
	return k != NULL && k->of_changes;
}

enum outcome checks_judge(const char *const *argv, uint32_t argc, const struct check_end *end,
			  struct check_counts *counts)
{
	const struct kind *k = kind_of(argv, argc);
	*counts = (struct check_counts){0};
	if (k != NULL && k->count != NULL && end->started)
		k->count(end->output, end->n, counts);
	if (end->timed_out)
		return OUTCOME_TIMEOUT;
	if (!end->started)
		return OUTCOME_FAILED;
	if (end->status < 0)
		return OUTCOME_KILLED;
	if (k != NULL && k->nothing != 0 && end->status == k->nothing)
		return OUTCOME_NO_TESTS;
	if (k != NULL && k->count != NULL && counts->run == 0 && (end->status == 0 || counts->known))
		return OUTCOME_NO_TESTS;
	if (k != NULL && k->of_sources && end->sources == 0)
		return OUTCOME_NO_TESTS;
	/* Counted failures and a success do not go together: something ended the program after its tests. */
	return end->status == 0 && counts->failed == 0 ? OUTCOME_PASSED : OUTCOME_FAILED;
}
