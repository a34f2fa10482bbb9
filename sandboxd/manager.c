/* See manager.h. The socket's name comes from whoever started this process as root, and is only sent to. */
#include "sandboxd/manager.h"
#include "lib/die.h"
#include "lib/own.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

void manager_tell(const char *state)
{
	const char *name = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t n = name != NULL ? strlen(name) : 0;
	if (n == 0)
		return;
	own_fd int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (n < sizeof to.sun_path)
		memcpy(to.sun_path, name, n);
	if (to.sun_path[0] == '@') /* an abstract name */
		to.sun_path[0] = '\0';
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	if (n >= sizeof to.sun_path || fd < 0 ||
	    sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to, len) < 0)
		log_warn("the service manager could not be told %s: %m", state);
}
