/*
 * The table follows IANA's registries of special-purpose addresses; of version 6 only the range that is given out at
 * all (2000::/3) is open, and of that nothing that carries an address of version 4 or leads into a tunnel.
 */
#include "push/address.h"
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

enum { PORT = 443 };

static const struct range {
	uint8_t bytes[16];
	uint8_t family; /* 4 or 6 */
	uint8_t bits;
	const char *what; /* NULL: open */
} ranges[] = {
    {{0}, 4, 8, "unspecified"},
    {{10}, 4, 8, "private"},
    {{100, 64}, 4, 10, "shared by a provider's customers"},
    {{127}, 4, 8, "loopback"},
    {{169, 254}, 4, 16, "link-local"},
    {{172, 16}, 4, 12, "private"},
    {{192, 0, 0}, 4, 24, "reserved for protocols"},
    {{192, 0, 2}, 4, 24, "for documentation"},
    {{192, 31, 196}, 4, 24, "reserved for protocols"},
    {{192, 52, 193}, 4, 24, "reserved for protocols"},
    {{192, 88, 99}, 4, 24, "a relay"},
    {{192, 168}, 4, 16, "private"},
    {{192, 175, 48}, 4, 24, "reserved for protocols"},
    {{198, 18}, 4, 15, "for benchmarks"},
    {{198, 51, 100}, 4, 24, "for documentation"},
    {{203, 0, 113}, 4, 24, "for documentation"},
    {{224}, 4, 4, "multicast"},
    {{240}, 4, 4, "reserved"},
    {{0}, 4, 0, NULL},
    {{0x20, 0x01}, 6, 23, "reserved for protocols"}, /* Teredo among them */
    {{0x20, 0x01, 0x0d, 0xb8}, 6, 32, "for documentation"},
    {{0x20, 0x02}, 6, 16, "a relay"},
    {{0x26, 0x20, 0x00, 0x4f, 0x80}, 6, 48, "reserved for protocols"},
    {{0x3f, 0xff}, 6, 20, "for documentation"},
    {{0x20}, 6, 3, NULL},
    {{0}, 6, 0, "not of the public internet"}, /* ::1, ::ffff:0:0/96, fc00::/7, fe80::/10, ff00::/8 and all others */
};

static bool within(const struct range *r, const uint8_t *address)
{
	unsigned whole = r->bits / 8, rest = r->bits % 8;
	return memcmp(r->bytes, address, whole) == 0 &&
	       (rest == 0 || ((r->bytes[whole] ^ address[whole]) >> (8 - rest)) == 0);
}

/* The bytes of an address with its port; 0: neither version. */
static uint8_t family(const struct sockaddr *sa, socklen_t n, uint8_t out[16], uint16_t *port)
{
	struct sockaddr_in four;
	struct sockaddr_in6 six;
	if (n >= sizeof four && sa->sa_family == AF_INET) {
		memcpy(&four, sa, sizeof four);
		memcpy(out, &four.sin_addr, 4);
		*port = ntohs(four.sin_port);
		return 4;
	}
	if (n >= sizeof six && sa->sa_family == AF_INET6) {
		memcpy(&six, sa, sizeof six);
		memcpy(out, &six.sin6_addr, 16);
		*port = ntohs(six.sin6_port);
		return 6;
	}
	return 0;
}

const char *address_fault(const struct sockaddr *sa, socklen_t n)
{
	uint8_t address[16];
	uint16_t port;
	uint8_t version = family(sa, n, address, &port);
	if (version == 0)
		return "no internet address";
	if (port != PORT)
		return "at another port than 443";
	for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
		if (ranges[i].family == version && within(&ranges[i], address))
			return ranges[i].what;
	return "no internet address";
}

bool address_loopback(const struct sockaddr *sa, socklen_t n, uint16_t want)
{
	static const uint8_t one[16] = {[15] = 1};
	uint8_t address[16];
	uint16_t port;
	uint8_t version = family(sa, n, address, &port);
	return (version == 4 && address[0] == 127 && port == want) ||
	       (version == 6 && memcmp(address, one, sizeof one) == 0 && port == want);
}
