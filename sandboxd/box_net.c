/*
 * The network of a box: its own loopback and, in a work box, the gateway's listener. Runs inside the new
 * network namespace as real root; never touches the host's network.
 */
#include "lib/own.h"
#include "sandboxd/box_plan.h"
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

bool box_loopback_up(void)
{
	own_fd int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s < 0)
		return false;
	struct ifreq r = {.ifr_flags = IFF_UP | IFF_RUNNING};
	memcpy(r.ifr_name, "lo", 3);
	return ioctl(s, SIOCSIFFLAGS, &r) == 0;
}

int box_listen(uint16_t port)
{
	own_fd int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_in a = {
	    .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (s < 0 || bind(s, (struct sockaddr *)&a, sizeof a) != 0 || listen(s, 64) != 0)
		return -1;
	return steal_fd(&s);
}
