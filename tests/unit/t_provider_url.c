/* Where a provider may be (lib/provider_url.h): R-54, each spelling of somewhere else refused. */
#include "lib/provider_url.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void taken(void **state)
{
	(void)state;
	static const char *const good[] = {"https://api.openai.com/v1",
					   "https://api.anthropic.com/v1/",
					   "https://localhost:8443/v1",
					   "https://10.0.0.7/openai/v1",
					   "https://[2001:db8::1]:8443/v1",
					   "https://host",
					   "https://host/",
					   "https://a_b.example/v1/x~y",
					   "https://Mixed.Example/V1"};
	static const char *const loopback[] = {"http://127.0.0.1:1/v1", "http://127.9.9.9/v1", "http://[::1]:8080/v1"};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		if (provider_url_fault(good[i], false) != NULL)
			fail_msg("%s: %s", good[i], provider_url_fault(good[i], false));
	for (size_t i = 0; i < sizeof loopback / sizeof *loopback; i++) {
		assert_null(provider_url_fault(loopback[i], true));
		assert_non_null(provider_url_fault(loopback[i], false));
	}
}

static void refused(void **state)
{
	(void)state;
	static const struct {
		const char *url, *why;
	} bad[] = {{"", "no URL"},
		   {"api.openai.com/v1", "no URL"},
		   {"//host/v1", "no URL"},
		   {"https:/host/v1", "no URL"},
		   {"https://", "no URL"},
		   {"https:///v1", "no URL"},
		   {"https://:443/v1", "no URL"},
		   {"https://host:0/v1", "no URL"},
		   {"https://host:65536/v1", "no URL"},
		   {"https://host:44x/v1", "no URL"},
		   {"https://host:/v1", "no URL"},
		   {"https://ho st/v1", "no URL"},
		   {"https://h%6fst/v1", "no URL"},
		   {"https://host\\.evil/v1", "no URL"},
		   {"https://[::1/v1", "no URL"},
		   {"https://[::1]x/v1", "no URL"},
		   {"https://-host/v1", "no URL"},
		   {"https://me:pw@host/v1", "user name"},
		   {"https://@host/v1", "user name"},
		   {"https://host/a@b", "user name"},
		   {"https://host/v1?a=b", "query"},
		   {"https://host/v1#x", "query"},
		   {"https://host?x", "query"},
		   {"https://host//v1", "plain"},
		   {"https://host/v1//", "plain"},
		   {"https://host/../v1", "plain"},
		   {"https://host/v1/..", "plain"},
		   {"https://host/./v1", "plain"},
		   {"https://host/%2e/v1", "plain"},
		   {"https://host/v 1", "plain"},
		   {"https://host/v1\n", "plain"},
		   {"https://host/\xc3\xa4", "plain"},
		   {"http://host/v1", "not https"},
		   {"http://localhost/v1", "not https"},
		   {"http://127.0.0.1.evil.example/v1", "not https"},
		   {"http://128.0.0.1/v1", "not https"},
		   {"http://[::2]/v1", "not https"},
		   {"HTTPS://host/v1", "not https"},
		   {"ftp://127.0.0.1/v1", "not https"},
		   {"xhttp://127.0.0.1/v1", "not https"}};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		const char *why = provider_url_fault(bad[i].url, true);
		if (why == NULL || strstr(why, bad[i].why) == NULL)
			fail_msg("%s: %s", bad[i].url, why != NULL ? why : "taken");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(taken), cmocka_unit_test(refused)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
