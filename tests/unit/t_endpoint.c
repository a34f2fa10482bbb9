/* Where pushes may be sent to (lib/endpoint.h), each spelling of somewhere else refused; and points of P-256. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/endpoint.h"
#include "lib/num.h"
#include "lib/p256.h"

static void taken(void **state)
{
	static const char *const good[][2] = {
	    {"https://fcm.googleapis.com/fcm/send/dQ:APA91b-x_y%2F", "fcm.googleapis.com"},
	    {"https://fcm.googleapis.com:443/fcm/send/x", "fcm.googleapis.com"},
	    {"https://updates.push.services.mozilla.com/wpush/v2/gAAAA", "updates.push.services.mozilla.com"},
	    {"https://wns2-par02p.notify.windows.com/w/?token=BQ%3d%3d&x=~", "wns2-par02p.notify.windows.com"},
	    {"https://web.push.apple.com/QHr", "web.push.apple.com"},
	    {"https://xn--bcher-kva.example/", "xn--bcher-kva.example"},
	    {"https://1.example/@", "1.example"},
	    {"https://a.b/x", "a.b"}};
	(void)state;
	char host[ENDPOINT_HOST];
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		if (!endpoint_host(good[i][0], host))
			fail_msg("refused: %s", good[i][0]);
		assert_string_equal(host, good[i][1]);
	}
}

static void refused(void **state)
{
	static const char *const bad[] = {
	    /* another scheme, or none */
	    "", "http://fcm.googleapis.com/x", "HTTPS://fcm.googleapis.com/x", "ftp://fcm.googleapis.com/x",
	    "//fcm.googleapis.com/x", "fcm.googleapis.com/x", "https:/fcm.googleapis.com/x",
	    "https:fcm.googleapis.com/x", " https://fcm.googleapis.com/x", "https://fcm.googleapis.com/x ",
	    "javascript:https://fcm.googleapis.com/",
	    /* another port */
	    "https://fcm.googleapis.com:22/x", "https://fcm.googleapis.com:80/x", "https://fcm.googleapis.com:/x",
	    "https://fcm.googleapis.com:0443/x", "https://fcm.googleapis.com:4430/x", "https://fcm.googleapis.com:443",
	    "https://fcm.googleapis.com:443:443/x", "https://fcm.googleapis.com:+443/x",
	    "https://fcm.googleapis.com:443@x.y/",
	    /* a user */
	    "https://user@fcm.googleapis.com/x", "https://user:pw@fcm.googleapis.com/x",
	    "https://@fcm.googleapis.com/x", "https://fcm.googleapis.com@127.0.0.1/x",
	    "https://fcm.googleapis.com%40evil.example/x", "https://fcm.googleapis.com\\@evil.example/x",
	    /* a fragment, no path */
	    "https://fcm.googleapis.com/x#y", "https://fcm.googleapis.com#/x", "https://fcm.googleapis.com",
	    "https://fcm.googleapis.com?x", "https://fcm.googleapis.com\\x",
	    /* addresses, in every spelling */
	    "https://127.0.0.1/x", "https://2130706433/x", "https://0x7f.1/x", "https://0x7f000001/x",
	    "https://017700000001/x", "https://127.1/x", "https://0177.0.0.1/x", "https://0/x", "https://10.0.0.1/x",
	    "https://169.254.169.254/latest/", "https://[::1]/x", "https://[::ffff:127.0.0.1]/x",
	    "https://[::ffff:7f00:1]/x", "https://[fe80::1%25eth0]/x", "https://::1/x", "https://1.2.3.4.5/x",
	    "https://example.0x7f/x", "https://example.1/x", "https://\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1/x",
	    "https://\xe2\x91\xa0.example/x",
	    /* this machine, this network */
	    "https://localhost/x", "https://localhost./x", "https://LOCALHOST/x", "https://a.localhost/x",
	    "https://printer/x", "https://printer.local/x", "https://vault.internal/x",
	    "https://metadata.google.internal/x", "https://1.0.0.127.in-addr.arpa/x",
	    "https://localhost.localdomain./x",
	    /* no names */
	    "https:///x", "https://./x", "https://../x", "https://a..b/x", "https://.a.b/x", "https://a.b./x",
	    "https://-a.b/x", "https://a-.b/x", "https://a.-b/x", "https://a_b.example/x", "https://A.example/x",
	    "https://a.example%2e/x",
	    "https://b\xc3\xbc"
	    "cher.example/x",
	    "https://a b.example/x", "https://a.b\t/x", "https://a,b.example/x",
	    /* what no browser leaves in a path */
	    "https://a.example/x y", "https://a.example/\"", "https://a.example/<", "https://a.example/\r\nHost: x",
	    "https://a.example/\xc3\xa4", "https://a.example/\\", "https://a.example/{x}", "https://a.example/^",
	    "https://a.example/|"};
	(void)state;
	char host[ENDPOINT_HOST];
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (endpoint_host(bad[i], host) || host[0] != '\0')
			fail_msg("taken: %s", bad[i]);
}

static void lengths(void **state)
{
	(void)state;
	char host[ENDPOINT_HOST], url[ENDPOINT_MAX + 20] = "https://a.example/";
	size_t n = strlen(url);
	memset(url + n, 'x', ENDPOINT_MAX - n);
	url[ENDPOINT_MAX] = '\0';
	assert_true(endpoint_host(url, host));
	strcat(url, "x");
	assert_false(endpoint_host(url, host));
	/* A label has 63 bytes at most, a name 253. */
	char name[400] = "https://";
	memset(name + 8, 'a', 63);
	strcpy(name + 8 + 63, ".bc/");
	assert_true(endpoint_host(name, host));
	memset(name + 8, 'a', 64);
	strcpy(name + 8 + 64, ".bc/");
	assert_false(endpoint_host(name, host));
	strcpy(name, "https://");
	while (strlen(name) < 8 + 250)
		strcat(name, "a.");
	strcat(name, "bcd/");
	assert_int_equal(strlen(name), 8 + 253 + 1);
	assert_true(endpoint_host(name, host));
	strcpy(name + 8 + 253, "e/");
	assert_false(endpoint_host(name, host));
}

static void lists(void **state)
{
	static const char *const hosts[] = {"fcm.googleapis.com", "*.push.apple.com"}, *const any[] = {"*"};
	static const char *const patterns[] = {"*", "fcm.googleapis.com", "*.push.apple.com", "a.b"};
	static const char *const no[] = {"",
					 "**",
					 "*.",
					 "*.com.",
					 "*x.com",
					 "x.*.com",
					 "localhost",
					 "127.0.0.1",
					 "*.127.0.0.1",
					 "https://a.b",
					 "a.b/",
					 "A.example.com",
					 "com",
					 "*.com",
					 ".push.apple.com"};
	(void)state;
	assert_true(endpoint_allowed("fcm.googleapis.com", hosts, 2));
	assert_true(endpoint_allowed("web.push.apple.com", hosts, 2));
	assert_true(endpoint_allowed("a.b.push.apple.com", hosts, 2));
	assert_false(endpoint_allowed("push.apple.com", hosts, 2));
	assert_false(endpoint_allowed(".push.apple.com", hosts, 1));
	assert_false(endpoint_allowed("evilpush.apple.com", hosts, 2));
	assert_false(endpoint_allowed("x.fcm.googleapis.com", hosts, 2));
	assert_false(endpoint_allowed("fcm.googleapis.com.evil.example", hosts, 2));
	assert_false(endpoint_allowed("web.push.apple.com", hosts, 1));
	assert_false(endpoint_allowed("fcm.googleapis.com", hosts, 0));
	assert_true(endpoint_allowed("anything.example", any, 1));
	for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
		if (!endpoint_pattern(patterns[i]))
			fail_msg("no pattern: %s", patterns[i]);
	for (size_t i = 0; i < sizeof no / sizeof *no; i++)
		if (endpoint_pattern(no[i]))
			fail_msg("a pattern: %s", no[i]);
}

static void points(void **state)
{
	static const char base[] = "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
				   "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5";
	uint8_t p[P256_POINT + 1] = {0};
	(void)state;
	for (size_t i = 0; i < P256_POINT; i++)
		p[i] = (uint8_t)(num_hex(base[2 * i]) << 4 | num_hex(base[2 * i + 1]));
	assert_true(p256_point(p, P256_POINT));
	assert_false(p256_point(p, P256_POINT - 1) || p256_point(p, P256_POINT + 1) || p256_point(p, 0));
	/* Beside the curve, in either half; another form; no point at all; a coordinate that is too large. */
	for (size_t i = 1; i < P256_POINT; i++) {
		p[i] ^= 1;
		assert_false(p256_point(p, P256_POINT));
		assert_int_equal(errno, 0);
		p[i] ^= 1;
	}
	for (unsigned form = 0; form < 256; form++) {
		p[0] = (uint8_t)form;
		assert_int_equal(p256_point(p, P256_POINT), form == 4);
	}
	p[0] = 4;
	memset(p + 1, 0, 64);
	assert_false(p256_point(p, P256_POINT));
	memset(p + 1, 0xff, 64);
	assert_false(p256_point(p, P256_POINT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(taken), cmocka_unit_test(refused),
					   cmocka_unit_test(lengths), cmocka_unit_test(lists),
					   cmocka_unit_test(points)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
