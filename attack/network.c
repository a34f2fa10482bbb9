/* Attacks on the network: ways out of a namespace that has only its own loopback, and other protocols. */
#include "attack/know.h"
#include "attack/tried.h"
#include "gen/attacks_inside.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WAIT_MS = 3000 };

/* Held also when nobody answers in time. */
static struct tried connects(const struct sockaddr *a, socklen_t n)
{
	int s = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error = 0;
	socklen_t size = sizeof error;
	if (s < 0)
		return refused(s);
	long rc = connect(s, a, n);
	if (rc != 0 && errno == EINPROGRESS) {
		struct pollfd p = {.fd = s, .events = POLLOUT};
		if (poll(&p, 1, WAIT_MS) == 0) {
			close(s);
			/* The packet left: there is a way out, even if nobody is there. */
			return open_("it is on its way");
		}
		getsockopt(s, SOL_SOCKET, SO_ERROR, &error, &size);
		errno = error;
		rc = error == 0 ? 0 : -1;
	}
	struct tried t = refused(rc);
	close(s);
	return t;
}

static struct sockaddr_in at4(const char *address, long port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
	inet_pton(AF_INET, address, &a.sin_addr);
	return a;
}

static struct tried connects4(const char *address, long port)
{
	struct sockaddr_in a = at4(address, port);
	return port <= 0 || address[0] == '\0' ? skipped("no address to try")
					       : connects((struct sockaddr *)&a, sizeof a);
}

static struct tried sends4(const char *address, long port)
{
	struct sockaddr_in a = at4(address, port);
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (address[0] == '\0')
		return skipped("no address to try");
	struct tried t = refused(s < 0 ? s : sendto(s, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&a, sizeof a));
	if (s >= 0)
		close(s);
	return t;
}

#define CONNECTS(name, address, port)                \
	struct tried attack_##name(void)             \
	{                                            \
		return connects4((address), (port)); \
	}
CONNECTS(net_host_port, "127.0.0.1", know_number("port"))
CONNECTS(net_host_listener, "127.0.0.1", know_number("listener"))
CONNECTS(near_port, "127.0.0.1", know_number("near-port"))

/* To somewhere outside: whoever says more than that there is no way has been reached. */
static struct tried leaves(struct tried t)
{
	bool no_way = t.outcome != TRIED_HELD || strcmp(t.detail, "ENETUNREACH") == 0;
	return no_way ? t : open_("there is a way: %.40s", t.detail);
}

#define LEAVES(name, address, port)                          \
	struct tried attack_##name(void)                     \
	{                                                    \
		return leaves(connects4((address), (port))); \
	}
LEAVES(net_metadata, "169.254.169.254", 80)
LEAVES(net_tcp_out, "192.0.2.1", 80)
LEAVES(net_dns_tcp, know("nameserver"), 53)

struct tried attack_net_tcp6_out(void)
{
	struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(80)};
	inet_pton(AF_INET6, "2001:db8::1", &a.sin6_addr);
	return leaves(connects((struct sockaddr *)&a, sizeof a));
}

struct tried attack_net_udp_out(void)
{
	return sends4("192.0.2.1", 9);
}

struct tried attack_net_dns(void)
{
	return sends4(know("nameserver"), 53);
}

struct tried attack_net_multicast(void)
{
	return sends4("224.0.0.1", 9);
}

struct tried attack_net_interfaces(void)
{
	struct ifreq list[32];
	struct ifconf c = {.ifc_len = sizeof list, .ifc_req = list};
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s < 0 || ioctl(s, SIOCGIFCONF, &c) != 0)
		return refused(-1);
	close(s);
	int n = c.ifc_len / (int)sizeof *list;
	for (int i = 0; i < n; i++)
		if (strcmp(list[i].ifr_name, "lo") != 0)
			return open_("%.16s", list[i].ifr_name);
	return held("%d", n);
}

struct tried attack_net_routes(void)
{
	char text[8000];
	if (read_text("/proc/self/net/route", text, sizeof text) < 0)
		return held("%s", strerrorname_np(errno));
	char *first = strchr(text, '\n');
	return first == NULL || first[1] == '\0' ? held("none") : open_("%.60s", first + 1);
}

struct tried attack_net_bind_low(void)
{
	struct sockaddr_in a = at4("127.0.0.1", 80);
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return refused(s < 0 ? s : bind(s, (struct sockaddr *)&a, sizeof a));
}

/* The flags that it has already: nothing changes where it is allowed. */
struct tried attack_net_configure(void)
{
	struct ifreq r = {.ifr_flags = IFF_UP | IFF_RUNNING};
	memcpy(r.ifr_name, "lo", 3);
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return refused(s < 0 ? s : ioctl(s, SIOCSIFFLAGS, &r));
}

static struct tried family(int f, int type, int protocol, int error)
{
	int s = socket(f, type | SOCK_CLOEXEC, protocol);
	struct tried t = filtered(s, error);
	if (s >= 0)
		close(s);
	return t;
}

#define FAMILY(name, f, type, protocol)                         \
	struct tried attack_##name(void)                        \
	{                                                       \
		return family(f, type, protocol, EAFNOSUPPORT); \
	}
#define PROTOCOL(name, type, protocol, error)                  \
	struct tried attack_##name(void)                       \
	{                                                      \
		return family(AF_INET, type, protocol, error); \
	}
FAMILY(net_netlink, AF_NETLINK, SOCK_RAW, 0)
FAMILY(net_packet, AF_PACKET, SOCK_RAW, 0)
FAMILY(net_alg, AF_ALG, SOCK_SEQPACKET, 0)
FAMILY(net_key, AF_KEY, SOCK_RAW, 0)
FAMILY(vsock_stream, AF_VSOCK, SOCK_STREAM, 0)
FAMILY(vsock_dgram, AF_VSOCK, SOCK_DGRAM, 0)
FAMILY(vsock_seqpacket, AF_VSOCK, SOCK_SEQPACKET, 0)
PROTOCOL(net_raw, SOCK_RAW, 255, EPROTONOSUPPORT)
PROTOCOL(net_mptcp, SOCK_STREAM, 262, EPROTONOSUPPORT)
PROTOCOL(net_sctp, SOCK_STREAM, IPPROTO_SCTP, EPROTONOSUPPORT)
PROTOCOL(net_udplite, SOCK_DGRAM, IPPROTO_UDPLITE, EPROTONOSUPPORT)

/* A layer that does not exist: the kernel would say ENOENT or the like. */
struct tried attack_net_ulp(void)
{
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return filtered(setsockopt(s, IPPROTO_TCP, TCP_ULP, "no-such", 7), ENOPROTOOPT);
}

struct tried attack_net_encap(void)
{
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), kind = UDP_ENCAP_ESPINUDP;
	return filtered(setsockopt(s, IPPROTO_UDP, UDP_ENCAP, &kind, sizeof kind), ENOPROTOOPT);
}
