/* Look-up in a route table: whole segments, known paths, the Allow list. */
#include "lib/route.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct route table[] = {
    {.name = "health", .method = METHOD_GET, .path = "/healthz"},
    {.name = "create", .method = METHOD_POST, .path = "/v1/runs"},
    {.name = "list", .method = METHOD_GET, .path = "/v1/runs"},
    {.name = "show", .method = METHOD_GET, .path = "/v1/runs/{runId}"},
    {.name = "remove", .method = METHOD_DELETE, .path = "/v1/runs/{runId}"},
    {.name = "artifact", .method = METHOD_GET, .path = "/v1/runs/{runId}/artifacts/{name}"},
    {.name = "model", .method = METHOD_GET, .path = "/m/{model}"},
    {.name = "ask", .method = METHOD_POST, .path = "/m/{model}:ask"},
    {.name = "askAll", .method = METHOD_POST, .path = "/m/{model}:askAll"},
    {.path = NULL},
};

static const char *finds(const char *method, const char *path, struct route_found *f)
{
	route_find(table, method, path, f);
	return f->route != NULL ? f->route->name : f->path_known ? "405" : "404";
}

static void t_find(void **state)
{
	(void)state;
	static const char *const cases[][3] = {
	    {"GET", "/healthz", "health"},
	    {"POST", "/v1/runs", "create"},
	    {"GET", "/v1/runs", "list"},
	    {"GET", "/v1/runs/r1", "show"},
	    {"DELETE", "/v1/runs/r1", "remove"},
	    {"GET", "/v1/runs/r1/artifacts/patch", "artifact"},
	    {"GET", "/m/a", "model"},
	    {"POST", "/m/a:ask", "ask"},
	    {"POST", "/m/a:askAll", "askAll"},
	    {"POST", "/m/a:b:ask", "ask"},
	    {"POST", "/m/:ask", "405"},
	    {"POST", "/m/a:asks", "405"},
	    {"POST", "/m/a:as", "405"},
	    {"POST", "/m/ask", "405"},
	    {"POST", "/m/a:ask/", "404"},
	    {"POST", "/m/a/:ask", "404"},
	    {"GET", "/v1/runs/", "404"},
	    {"GET", "/v1/runs//artifacts/patch", "404"},
	    {"GET", "/v1/runs/r1/", "404"},
	    {"GET", "/v1/runs/r1/artifacts", "404"},
	    {"GET", "/v1/runs/r1/artifacts/patch/x", "404"},
	    {"GET", "/v1/run", "404"},
	    {"GET", "/v1/runsx", "404"},
	    {"GET", "/V1/runs", "404"},
	    {"GET", "/healthz/", "404"},
	    {"GET", "/", "404"},
	    {"GET", "", "404"},
	    {"PUT", "/v1/runs", "405"},
	    {"get", "/v1/runs", "405"},
	    {"HEAD", "/healthz", "405"},
	    {"", "/healthz", "405"},
	};
	struct route_found f;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		if (strcmp(finds(cases[i][0], cases[i][1], &f), cases[i][2]) != 0)
			fail_msg("%s %s is not %s", cases[i][0], cases[i][1], cases[i][2]);
	finds("PUT", "/v1/runs", &f);
	assert_string_equal(f.allow, "POST, GET");
	finds("PUT", "/healthz", &f);
	assert_string_equal(f.allow, "GET");
	finds("GET", "/nothing", &f);
	assert_string_equal(f.allow, "");
	finds("GET", "/v1/runs/r1/artifacts/patch", &f);
	assert_string_equal(f.arg[0], "r1");
	assert_string_equal(f.arg[1], "patch");
	char path[400] = "/v1/runs/";
	memset(path + 9, 'x', 160);
	assert_string_equal(finds("GET", path, &f), "show");
	assert_int_equal(strlen(f.arg[0]), 160);
	memset(path + 9, 'x', 161);
	assert_string_equal(finds("GET", path, &f), "404");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_find)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
