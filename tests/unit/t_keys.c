/* Real keys: finding them in whatever spelling, and what a profile may say of them. */
#include "lib/conf.h"
#include "lib/keymask.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char key[] = "sk-CANARY+0123456789/abcdef";

static void spelt(struct keymask *k, const char *text, size_t n, const char *what)
{
	char line[4000], want[4000];
	int at = snprintf(line, sizeof line, "before %.*s after", (int)n, text);
	snprintf(want, sizeof want, "before %s after", what);
	size_t left = keymask_hide(k, line, (size_t)at);
	line[left] = '\0';
	assert_string_equal(line, want);
}

static void t_forms(void **state)
{
	(void)state;
	struct keymask k = {.n = 0};
	char text[400] = "";
	assert_true(keymask_add(&k, key, strlen(key)));
	spelt(&k, key, strlen(key), "[masked]");
	for (size_t i = 0; key[i] != '\0'; i++) /* JSON, one by one mixed with what needs no escape */
		sprintf(text + strlen(text), i % 3 ? "\\u%04x" : "%c", key[i]);
	spelt(&k, text, strlen(text), "[masked]");
	text[0] = '\0';
	for (size_t i = 0; key[i] != '\0'; i++)
		sprintf(text + strlen(text), "%%%02X", key[i]);
	spelt(&k, text, strlen(text), "[masked]");
	spelt(&k, "sk-CANARY%2B0123456789%2fabcdef", 31, "[masked]");
	spelt(&k, "sk-CANARY+0123456789\\/abcdef", 28, "[masked]");
	text[0] = '\0';
	for (size_t i = 0; key[i] != '\0'; i++)
		sprintf(text + strlen(text), i % 2 ? "%02x" : "%02X", key[i]);
	spelt(&k, text, strlen(text), "[masked]");
	/* base64 of the key, and behind one and two bytes, in both alphabets and in lines. */
	spelt(&k, "c2stQ0FOQVJZKzAxMjM0NTY3ODkvYWJjZGVm", 36, "[masked]");
	spelt(&k, "c2stQ0FOQVJZKzAx\nMjM0NTY3ODkv\\nYWJjZGVm", 39, "[masked]");
	spelt(&k, "eHNrLUNBTkFSWSswMTIzNDU2Nzg5L2FiY2RlZg==", 40, "eH[masked]g==");
	spelt(&k, "eHNrLUNBTkFSWSswMTIzNDU2Nzg5L2FiY2RlZg", 38, "eH[masked]g");
	spelt(&k, "eHhzay1DQU5BUlkrMDEyMzQ1Njc4OS9hYmNkZWY", 39, "eHh[masked]Y");
	spelt(&k, "eHhzay1DQU5BUlkrMDEyMzQ1Njc4OS9hYmNkZWY", 39, "eHh[masked]Y");
	/* What is none, is left alone. */
	spelt(&k, "sk-CANARY+0123456789/abcde", 26, "sk-CANARY+0123456789/abcde");
	spelt(&k, "\\u0073k", 7, "\\u0073k");
	spelt(&k, "%", 1, "%");
	spelt(&k, "\\", 1, "\\");
	char twice[] = "sk-CANARY+0123456789/abcdefsk-CANARY+0123456789/abcdef";
	assert_true(keymask_holds(&k, twice, strlen(twice)));
	assert_int_equal(keymask_hide(&k, twice, strlen(twice)), 16);
	assert_false(keymask_holds(&k, twice, 16));
	keymask_wipe(&k);
	assert_int_equal(keymask_hide(&k, text, strlen(text)), strlen(text));
}

static void t_lengths(void **state)
{
	(void)state;
	struct keymask k = {.n = 0};
	static char longest[KEYMASK_MOST + 1];
	memset(longest, 'x', sizeof longest);
	assert_false(keymask_add(&k, "fifteen bytes..", KEYMASK_LEAST - 1));
	assert_false(keymask_add(&k, longest, sizeof longest));
	assert_true(keymask_add(&k, longest, KEYMASK_MOST));
	for (size_t i = 1; i < KEYMASK_VALUES; i++)
		assert_true(keymask_add(&k, key, strlen(key)));
	assert_false(keymask_add(&k, key, strlen(key)));
	keymask_wipe(&k);
	/* Every text and every needle, cut anywhere, in a buffer of exactly that size. */
	assert_true(keymask_add(&k, "\\\"\n%sixteen bytes", 17));
	for (size_t n = 0; n < 40; n++) {
		char *exact = malloc(n + 1);
		assert_non_null(exact);
		memcpy(exact, "\\\\\\\"\\n%25sixteen bytes\\u0073%5c%22%0a%2", n);
		(void)keymask_holds(&k, exact, n);
		assert_true(keymask_hide(&k, exact, n) <= n);
		free(exact);
	}
	spelt(&k, "\\\\\\\"\\n%25sixteen bytes", 22, "[masked]");
	keymask_wipe(&k);
}

static void t_profile(void **state)
{
	(void)state;
	static const struct {
		const char *inline_config;
		bool good, file;
	} rows[] = {
	    {"{\"key\":\"{env:KEY}\"}", true, false},
	    {"{\"key\":\"{file:KEY}\"}", true, true},
	    {"no reference", true, false},
	    {"{env:KEY} {env:KEY} {env:HOME}", true, false},
	    {"{env:KEY}{file:KEY}", false, false},
	    {"{file:KEY}{env:KEY}", false, false},
	    {"{env:OTHER}", false, false},
	    {"{file:/etc/passwd}", false, false},
	    {"{file:../KEY}", false, false},
	    {"{env:KEY", false, false},
	    {"{env:}", false, false},
	    {"{file:.pinfold-run-token}", false, false}, /* there is none: the wire is the token */
	    {"{env:HOME} {instruction}", false, false},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct cf_agent a = {.name = "a",
				     .env_mode = true,
				     .token_wire = true,
				     .credentials_n = 1,
				     .credentials = {"KEY=canary"},
				     .env_n = 1,
				     .env = {"HOME=/tmp"},
				     .inline_variable = "CONF",
				     .model_token_file = ".pinfold-run-token",
				     .event_token_file = "e",
				     .approval_token_file = "f",
				     .inline_config = rows[i].inline_config};
		struct conf_key keys[CONF_KEYS];
		const char *why = conf_keys(&a, keys);
		if ((why == NULL) != rows[i].good)
			fail_msg("%s: %s", rows[i].inline_config, why != NULL ? why : "accepted");
		if (why == NULL) {
			assert_string_equal(keys[0].variable, "KEY");
			assert_string_equal(keys[0].secret, "canary");
			assert_true(keys[0].file == rows[i].file);
		}
	}
}

static void t_credentials(void **state)
{
	(void)state;
	static const struct {
		bool env, wire;
		const char *one, *two, *variable;
		bool good;
	} rows[] = {
	    {true, true, "KEY=canary", NULL, "CONF", true},     {true, true, "KEY=canary", "NEXT=canary", "CONF", true},
	    {true, true, "KEY=canary", "KEY=x", "CONF", false}, {true, false, "KEY=canary", NULL, "CONF", false},
	    {false, true, "KEY=canary", NULL, "CONF", false},   {true, true, NULL, NULL, "CONF", false},
	    {true, true, "KEY", NULL, "CONF", false},           {true, true, "=canary", NULL, "CONF", false},
	    {true, true, "KEY=", NULL, "CONF", false},          {true, true, "KEY=../canary", NULL, "CONF", false},
	    {true, true, "KEY=.canary", NULL, "CONF", false},   {true, true, "1KEY=canary", NULL, "CONF", false},
	    {true, true, "K-Y=canary", NULL, "CONF", false},    {true, true, "HOME=canary", NULL, "CONF", false},
	    {true, true, "CONF=canary", NULL, "CONF", false},   {true, true, "KEY=canary", NULL, "HOME", false},
	    {true, true, "KEY=canary", NULL, "C-F", false},     {true, true, "KEY=canary", NULL, "", false},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct cf_agent a = {.name = "a",
				     .env_mode = rows[i].env,
				     .token_wire = rows[i].wire,
				     .credentials_n = rows[i].two != NULL ? 2 : rows[i].one != NULL,
				     .credentials = {rows[i].one, rows[i].two},
				     .env_n = 1,
				     .env = {"HOME=/tmp"},
				     .inline_variable = rows[i].variable,
				     .inline_config = "text"};
		struct conf_key keys[CONF_KEYS];
		const char *why = conf_keys(&a, keys);
		if ((why == NULL) != rows[i].good)
			fail_msg("row %zu: %s", i, why != NULL ? why : "accepted");
	}
}

static void t_itself(void **state)
{
	(void)state;
	struct keymask k = {.n = 0};
	struct cf_agent a[2] = {{.name = "a", .inline_config = ""}, {.name = "b", .inline_config = ""}};
	struct conf c = {.agents = a, .nagents = 2};
	assert_true(keymask_add(&k, key, strlen(key)));
	assert_null(conf_key_itself(&c, &k));
	a[1].inline_config = "{\"key\":\"sk-CANARY+0123456789\\/abcdef\"}";
	assert_ptr_equal(conf_key_itself(&c, &k), &a[1]);
	a[0].env_n = 1;
	a[0].env[0] = "KEY=sk-CANARY+0123456789/abcdef";
	assert_ptr_equal(conf_key_itself(&c, &k), &a[0]);
	keymask_wipe(&k);
}

static void t_words(void **state)
{
	(void)state;
	struct conf c = {.nagents = 0};
	struct conf_tenant t = {.nchecks = 0};
	struct cf_agent broker = {.name = "b"}, env = {.name = "e", .env_mode = true};
	for (int word = 0; word < 4; word++) {
		c.global.allow_env_credentials = word & 1;
		t.t.env_credentials = word & 2;
		assert_true(conf_env_allowed(&c, &t, &broker));
		assert_true(conf_env_allowed(&c, &t, &env) == (word == 3));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_forms),   cmocka_unit_test(t_lengths),
					   cmocka_unit_test(t_profile), cmocka_unit_test(t_credentials),
					   cmocka_unit_test(t_itself),  cmocka_unit_test(t_words)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
