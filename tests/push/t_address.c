/* Web Push: which addresses are none of the public internet. */
#include "lib/secret.h"
#include "push/address.h"
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* As a resolver would make it of a text, at a port. */
static const char *fault_of(const char *host, const char *port)
{
	const struct addrinfo hint = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
	struct addrinfo *list = NULL;
	assert_int_equal(getaddrinfo(host, port, &hint, &list), 0);
	const char *why = address_fault(list->ai_addr, list->ai_addrlen);
	freeaddrinfo(list);
	return why;
}

static void t_addresses(void **state)
{
	(void)state;
	static const char *const closed[] = {"127.0.0.1",
					     "127.1",
					     "2130706433",
					     "0x7f.1",
					     "0x7f000001",
					     "017700000001",
					     "0177.0.0.1",
					     "127.255.255.255",
					     "0.0.0.0",
					     "0",
					     "0.255.255.255",
					     "10.0.0.1",
					     "10.255.255.255",
					     "0x0a000001",
					     "100.64.0.0",
					     "100.127.255.255",
					     "169.254.0.1",
					     "169.254.169.254",
					     "172.16.0.0",
					     "172.31.255.255",
					     "192.168.0.1",
					     "192.168.255.255",
					     "192.0.0.8",
					     "192.0.2.1",
					     "192.88.99.1",
					     "198.18.0.0",
					     "198.19.255.255",
					     "198.51.100.7",
					     "203.0.113.9",
					     "224.0.0.1",
					     "239.255.255.255",
					     "240.0.0.0",
					     "255.255.255.255",
					     "::1",
					     "::",
					     "0:0:0:0:0:0:0:1",
					     "::ffff:127.0.0.1",
					     "::ffff:7f00:1",
					     "::ffff:8.8.8.8",
					     "::127.0.0.1",
					     "::ffff:0:127.0.0.1",
					     "64:ff9b::127.0.0.1",
					     "64:ff9b::8.8.8.8",
					     "64:ff9b:1::1",
					     "100::1",
					     "fc00::1",
					     "fdff:ffff::1",
					     "fe80::1",
					     "febf::1",
					     "fec0::1",
					     "ff02::1",
					     "ff0e::1",
					     "2001::1",
					     "2001:0:7f00:1::",
					     "2001:20::1",
					     "2001:1ff:ffff::1",
					     "2001:db8::1",
					     "2002::1",
					     "2002:7f00:1::",
					     "2002:a00:1::",
					     "3fff::1",
					     "3fff:fff::1",
					     "4000::1",
					     "5f00::1",
					     "1fff::1",
					     "2620:4f:8000::1"};
	static const char *const open[] = {"1.1.1.1",
					   "8.8.8.8",
					   "9.255.255.255",
					   "11.0.0.0",
					   "100.63.255.255",
					   "100.128.0.0",
					   "126.255.255.255",
					   "128.0.0.0",
					   "169.253.255.255",
					   "169.255.0.0",
					   "172.15.255.255",
					   "172.32.0.0",
					   "192.167.255.255",
					   "192.169.0.0",
					   "198.17.255.255",
					   "198.20.0.0",
					   "223.255.255.255",
					   "2001:200::1",
					   "2001:4860:4860::8888",
					   "2606:4700::1111",
					   "2a00:1450:4001::1",
					   "2003::1",
					   "2001:db7::1",
					   "2001:db9::1",
					   "3ffe::1",
					   "2620:4f:7fff::1",
					   "2000::1",
					   "3fff:1000::1"};
	for (size_t i = 0; i < sizeof closed / sizeof closed[0]; i++)
		if (fault_of(closed[i], "443") == NULL)
			fail_msg("%s is open", closed[i]);
	for (size_t i = 0; i < sizeof open / sizeof open[0]; i++) {
		if (fault_of(open[i], "443") != NULL)
			fail_msg("%s is closed: %s", open[i], fault_of(open[i], "443"));
		static const char *const ports[] = {"0",   "1",    "22",    "80",   "442",
						    "444", "8443", "65535", "47873" /* swapped */};
		for (size_t k = 0; k < sizeof ports / sizeof ports[0]; k++)
			assert_non_null(fault_of(open[i], ports[k]));
	}
	struct sockaddr sa = {.sa_family = AF_UNIX};
	assert_non_null(address_fault(&sa, sizeof sa));
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(443), .sin_addr = {htonl(0x01010101)}};
	assert_null(address_fault((struct sockaddr *)&four, sizeof four));
	assert_non_null(address_fault((struct sockaddr *)&four, sizeof four - 1));
}

/* The ranges once more, as numbers. */
static bool private_four(uint32_t a)
{
	static const struct {
		uint32_t from, to;
	} r[] = {{0x00000000, 0x00ffffff}, {0x0a000000, 0x0affffff}, {0x64400000, 0x647fffff}, {0x7f000000, 0x7fffffff},
		 {0xa9fe0000, 0xa9feffff}, {0xac100000, 0xac1fffff}, {0xc0000000, 0xc00000ff}, {0xc0000200, 0xc00002ff},
		 {0xc01fc400, 0xc01fc4ff}, {0xc034c100, 0xc034c1ff}, {0xc0586300, 0xc05863ff}, {0xc0a80000, 0xc0a8ffff},
		 {0xc0af3000, 0xc0af30ff}, {0xc6120000, 0xc613ffff}, {0xc6336400, 0xc63364ff}, {0xcb007100, 0xcb0071ff},
		 {0xe0000000, 0xffffffff}};
	for (size_t i = 0; i < sizeof r / sizeof r[0]; i++)
		if (a >= r[i].from && a <= r[i].to)
			return true;
	return false;
}

static void t_any_address(void **state)
{
	(void)state;
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(443)};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(443)};
	for (uint32_t i = 0; i < 1u << 20; i++) {
		uint32_t a = i * 4096u + (i * 2654435761u >> 20); /* each /20, somewhere in it */
		four.sin_addr.s_addr = htonl(a);
		if ((address_fault((struct sockaddr *)&four, sizeof four) != NULL) != private_four(a))
			fail_msg("%s", inet_ntoa(four.sin_addr));
	}
	/* Whatever it carries: nothing outside 2000::/3 is open, and no form that has an address of version 4 in it. */
	static const uint8_t carriers[][12] = {
	    {0},         {[10] = 0xff, [11] = 0xff}, {[8] = 0xff, [9] = 0xff}, {0, 0x64, 0xff, 0x9b}, {0x20, 0x02},
	    {0x20, 0x01}};
	for (uint32_t i = 0; i < 100000; i++) {
		random_bytes(&six.sin6_addr, 16);
		uint8_t *b = six.sin6_addr.s6_addr;
		if (i % 2 == 0)
			memcpy(b, carriers[i / 2 % 6], i / 2 % 6 < 4 ? 12 : i / 2 % 6 == 4 ? 2 : 4);
		if ((b[0] & 0xe0) != 0x20 || i % 2 == 0)
			assert_non_null(address_fault((struct sockaddr *)&six, sizeof six));
	}
}

static void t_loopback(void **state)
{
	(void)state;
	struct sockaddr_in four = {
	    .sin_family = AF_INET, .sin_port = htons(8443), .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct sockaddr_in6 six = {
	    .sin6_family = AF_INET6, .sin6_port = htons(8443), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	assert_true(address_loopback((struct sockaddr *)&four, sizeof four, 8443));
	assert_true(address_loopback((struct sockaddr *)&six, sizeof six, 8443));
	assert_false(address_loopback((struct sockaddr *)&four, sizeof four, 443));
	assert_false(address_loopback((struct sockaddr *)&six, sizeof six, 8444));
	four.sin_addr.s_addr = htonl(0x0a000001);
	six.sin6_addr.s6_addr[0] = 0xfe;
	assert_false(address_loopback((struct sockaddr *)&four, sizeof four, 8443));
	assert_false(address_loopback((struct sockaddr *)&six, sizeof six, 8443));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_addresses),
	    cmocka_unit_test(t_any_address),
	    cmocka_unit_test(t_loopback),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
