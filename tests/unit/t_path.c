/* One spelling of each path, and none that git, a shell or a file system reads as another. */
#include "lib/path.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void t_valid(void **state)
{
	(void)state;
	static const char *const good[] = {"a",          "a.py",      "src/a.py", "a/b/c/d",    "_x",
					   ".gitignore", ".github/x", "a-b.c",    "git/config", "a.git/x",
					   "...",        "x..y",      ".hidden",  "a/.b"};
	static const char *const bad[] = {"",
					  ".",
					  "..",
					  "/abs",
					  "a/",
					  "a//b",
					  "a/./b",
					  "a/../b",
					  "./a",
					  "../a",
					  "a/..",
					  "-rf",
					  "a/-x",
					  "--",
					  "a b",
					  "a\\b",
					  "a:b",
					  "a~1",
					  "a\nb",
					  "a*",
					  "\xc3\xa9",
					  ".git",
					  ".git/config",
					  ".GIT/config",
					  ".Git/x",
					  "a/.gIt/x",
					  ".git\xe2\x80\x8c/config",
					  "git~1/config",
					  ".git /x",
					  ".git./x",
					  ".git.../x",
					  ".git::$INDEX_ALLOCATION/x",
					  "./.git/x",
					  "a/../.git/x",
					  ".git\\config",
					  ".gitmodules",
					  "a/.GITMODULES",
					  ".gitattributes",
					  ".gitattributes."};
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		if (!path_valid(good[i], strlen(good[i])))
			fail_msg("refused: %s", good[i]);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (path_valid(bad[i], strlen(bad[i])) || path_allow_valid(bad[i], strlen(bad[i])))
			fail_msg("accepted: %s", bad[i]);
	assert_false(path_valid("a\0b", 3));
	char longer[257];
	memset(longer, 'a', sizeof longer);
	assert_true(path_valid(longer, 160));
	assert_false(path_valid(longer, 161));
	assert_false(path_valid(longer, 256));
}

static void t_extension(void **state)
{
	(void)state;
	static const char *const cases[][2] = {{"a.py", ".py"},      {"a/b.tar.GZ", ".gz"},  {"Makefile", ""},
					       {"a.d/file", ""},     {".bashrc", ".bashrc"}, {"a.", "."},
					       {"x.abcdefghijk", ""}};
	char out[8];
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		path_extension(cases[i][0], out, sizeof out);
		assert_string_equal(out, cases[i][1]);
	}
}

static void t_allow(void **state)
{
	(void)state;
	static const char *const good[] = {"a.py", "src/**", "a/b/**"};
	static const char *const bad[] = {"**",  "/**",       "*",       "src/*", "src/**/x",
					  "a**", "src/**/**", ".git/**", "../**", ""};
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		assert_true(path_allow_valid(good[i], strlen(good[i])));
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (path_allow_valid(bad[i], strlen(bad[i])))
			fail_msg("accepted: %s", bad[i]);
	assert_true(path_allow_covers("a.py", "a.py"));
	assert_false(path_allow_covers("a.py", "A.py"));
	assert_false(path_allow_covers("a.py", "a.pyc"));
	assert_false(path_allow_covers("a", "a/b"));
	assert_true(path_allow_covers("src/**", "src/a.py"));
	assert_true(path_allow_covers("src/**", "src/deep/a.py"));
	assert_false(path_allow_covers("src/**", "src"));
	assert_false(path_allow_covers("src/**", "src/"));
	assert_false(path_allow_covers("src/**", "src2/a.py"));
	assert_false(path_allow_covers("src/**", "Src/a.py"));
}

static void t_conflict(void **state)
{
	(void)state;
	static const struct {
		const char *a, *b;
		bool conflict;
	} cases[] = {{"a.py", "a.py/b.py", true}, {"a", "b", false},        {"a", "ab", false},
		     {"a", "a", false},           {"a.py", "A.py", true},   {"a/b", "a/c", false},
		     {"A", "a/b", true},          {"a/b", "a/b/c/d", true}, {"a-b", "a/b", false}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_int_equal(path_conflict(cases[i].a, cases[i].b), cases[i].conflict);
		assert_int_equal(path_conflict(cases[i].b, cases[i].a), cases[i].conflict);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_valid), cmocka_unit_test(t_extension),
					   cmocka_unit_test(t_allow), cmocka_unit_test(t_conflict)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
