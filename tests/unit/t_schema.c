/* The walker over a table, with the real table of a run's body and the place it names. */
#include "gen/schema.h"
#include "lib/schema.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check(const struct schema *s, const char *text, enum err want, const char *place)
{
	own_arena struct arena a;
	char field[SCHEMA_FIELD];
	arena_init(&a, 4 << 20);
	struct json *v = json_parse(&a, text, strlen(text), JSON_DEPTH, 10000, NULL);
	if (v == NULL)
		fail_msg("not JSON: %s", text);
	enum err e = schema_check(s, v, field);
	if (e != want || strcmp(field, place) != 0)
		fail_msg("%s at \"%s\", not %s at \"%s\": %.200s", err_code(e), field, err_code(want), place, text);
}

#define I "\"instruction\":\"x\""
#define F "\"files\":[{\"path\":\"a.py\",\"content\":\"\"}]"
#define P "\"allowedPaths\":[\"a.py\"]"
#define C "\"checks\":[[\"python3\",\"-m\"]]"

static void t_run_create(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		enum err want;
		const char *place;
	} cases[] = {
	    {"{" I "," F "," P "," C "}", ERR_OK, ""},
	    {"{" C "," P "," F "," I "}", ERR_OK, ""},
	    {"[]", ERR_INVALID_JSON_OBJECT, ""},
	    {"\"x\"", ERR_INVALID_JSON_OBJECT, ""},
	    {"null", ERR_INVALID_JSON_OBJECT, ""},
	    {"{}", ERR_INVALID_INSTRUCTION, "instruction"},
	    /* An unknown key comes before whatever else is wrong with that object. */
	    {"{\"x\":1}", ERR_UNKNOWN_FIELD, "x"},
	    {"{\"instructions\":1}", ERR_UNKNOWN_FIELD, "instructions"},
	    {"{\"files[]\":1}", ERR_UNKNOWN_FIELD, "files[]"},
	    {"{\"limits.maxSteps\":1}", ERR_UNKNOWN_FIELD, "limits.maxSteps"},
	    {"{\"instruction\":null," F "," P "," C "}", ERR_INVALID_INSTRUCTION, "instruction"},
	    {"{\"instruction\":\"\"," F "," P "," C "}", ERR_INVALID_INSTRUCTION, "instruction"},
	    /* Files or a source: which of them is not a bound of either. */
	    {"{" I "," P "," C "}", ERR_OK, ""},
	    {"{" I ",\"source\":7," P "," C "}", ERR_INVALID_SOURCE, "source"},
	    {"{" I ",\"files\":[]," P "," C "}", ERR_INVALID_FILES, "files"},
	    {"{" I ",\"files\":{}," P "," C "}", ERR_INVALID_FILES, "files"},
	    {"{" I ",\"files\":[{\"path\":\"a\",\"content\":\"\"},7]," P "," C "}", ERR_INVALID_FILE, "files[1]"},
	    {"{" I ",\"files\":[{\"path\":\"a\",\"content\":\"\",\"mode\":1}]," P "," C "}", ERR_UNKNOWN_FIELD,
	     "files[0].mode"},
	    {"{" I ",\"files\":[{\"content\":\"\"}]," P "," C "}", ERR_INVALID_SOURCE_PATH, "files[0].path"},
	    {"{" I ",\"files\":[{\"path\":\"a\"}]," P "," C "}", ERR_INVALID_FILE_CONTENT, "files[0].content"},
	    {"{" I "," F ",\"allowedPaths\":[\"\"]," C "}", ERR_INVALID_ALLOWED_PATH, "allowedPaths[0]"},
	    {"{" I "," F "," P ",\"checks\":[[]]}", ERR_CHECK_ARGV_NOT_ALLOWED, "checks[0]"},
	    {"{" I "," F "," P ",\"checks\":[[\"a\",1]]}", ERR_CHECK_ARGV_NOT_ALLOWED, "checks[0][1]"},
	    {"{" I "," F "," P ",\"checks\":[[\"a\"],[\"b\"],[\"c\"],[\"d\"],[\"e\"]]}", ERR_INVALID_CHECKS, "checks"},
	    {"{" I "," F "," P "," C ",\"limits\":1}", ERR_INVALID_LIMITS, "limits"},
	    {"{" I "," F "," P "," C ",\"limits\":{\"x\":1}}", ERR_UNKNOWN_FIELD, "limits.x"},
	    {"{" I "," F "," P "," C ",\"limits\":{\"maxSteps\":0}}", ERR_INVALID_MAX_STEPS, "limits.maxSteps"},
	    {"{" I "," F "," P "," C ",\"limits\":{\"maxSteps\":2.0}}", ERR_INVALID_MAX_STEPS, "limits.maxSteps"},
	    {"{" I "," F "," P "," C ",\"limits\":{\"maxSteps\":1e400}}", ERR_INVALID_MAX_STEPS, "limits.maxSteps"},
	    {"{" I "," F "," P "," C ",\"limits\":{\"maxSteps\":-0}}", ERR_INVALID_MAX_STEPS, "limits.maxSteps"},
	    {"{" I "," F "," P "," C ",\"limits\":{\"approvalWaitSeconds\":86401}}", ERR_INVALID_APPROVAL_WAIT,
	     "limits.approvalWaitSeconds"},
	    {"{" I "," F "," P "," C ",\"limits\":{\"maxSteps\":20,\"approvalWaitSeconds\":0}}", ERR_OK, ""},
	    {"{" I "," F "," P "," C ",\"permissions\":{\"any key\":1}}", ERR_OK, ""},
	    {"{" I "," F "," P "," C ",\"permissions\":[]}", ERR_INVALID_PERMISSIONS, "permissions"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		check(&schema_run_create, cases[i].text, cases[i].want, cases[i].place);
}

static char *repeated(const char *before, const char *unit, size_t n, const char *after)
{
	size_t u = strlen(unit), b = strlen(before);
	char *p = malloc(b + n * u + strlen(after) + 1);
	assert_non_null(p);
	memcpy(p, before, b);
	for (size_t i = 0; i < n; i++)
		memcpy(p + b + i * u, unit, u);
	strcpy(p + b + n * u, after);
	return p;
}

static void t_sizes(void **state)
{
	(void)state;
	static const struct {
		const char *before, *unit;
		size_t n;
		const char *after;
		enum err want;
		const char *place;
	} cases[] = {
	    {"{\"instruction\":\"", "\xf0\x9f\x98\x80", 32000, "\"," F "," P "," C "}", ERR_OK, ""},
	    {"{\"instruction\":\"", "a", 32001, "\"," F "," P "," C "}", ERR_INVALID_INSTRUCTION, "instruction"},
	    {"{" I ",\"files\":[{\"path\":\"a\",\"content\":\"", "a", 64000, "\"}]," P "," C "}", ERR_OK, ""},
	    {"{" I ",\"files\":[{\"path\":\"a\",\"content\":\"", "a", 64001, "\"}]," P "," C "}",
	     ERR_SOURCE_FILE_TOO_LARGE, "files[0].content"},
	    {"{" I ",\"files\":[", "{\"path\":\"a\",\"content\":\"\"},", 32,
	     "{\"path\":\"a\",\"content\":\"\"}]," P "," C "}", ERR_INVALID_FILES, "files"},
	    {"{" I ",\"files\":[{\"path\":\"", "a", 161, "\",\"content\":\"\"}]," P "," C "}", ERR_INVALID_SOURCE_PATH,
	     "files[0].path"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char *text = repeated(cases[i].before, cases[i].unit, cases[i].n, cases[i].after);
		check(&schema_run_create, text, cases[i].want, cases[i].place);
		free(text);
	}
	/* A key longer than the place can name is cut at a whole character. */
	char *text = repeated("{\"x", "\xc3\xa9", 5000, "\":1}");
	char *place = repeated("x", "\xc3\xa9", 99, "");
	check(&schema_run_create, text, ERR_UNKNOWN_FIELD, place);
	free(text);
	free(place);
}

static void t_maps(void **state)
{
	(void)state;
	check(&schema_chat, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"anything\":{\"x\":[1]}}]}", ERR_OK,
	      "");
	check(&schema_chat, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\"},{\"content\":1}]}",
	      ERR_INVALID_MESSAGES, "messages[1].role");
	check(&schema_chat, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\"}],\"api_base\":1}", ERR_UNKNOWN_FIELD,
	      "api_base");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_run_create), cmocka_unit_test(t_sizes),
					   cmocka_unit_test(t_maps)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
