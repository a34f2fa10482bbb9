/* The files of a box's /etc: the same for every box, nothing of the host in them. */
#include "lib/num.h"
#include "lib/own.h"
#include "sandboxd/box_plan.h"
#include <fcntl.h>
#include <string.h>

static const struct {
	const char *name, *text;
} files[] = {
    {"passwd", "root:x:0:0:root of the box:/:/usr/sbin/nologin\n"
	       "agent:x:1000:1000:agent:/workspace:/bin/sh\n"
	       "nobody:x:65534:65534:the host:/:/usr/sbin/nologin\n"},
    {"group", "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n"},
    {"nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
    {"hosts", "127.0.0.1 localhost box\n::1 localhost\n"},
    {"hostname", "box\n"},
    {"resolv.conf", "# There is no name service in a box.\n"},
};

bool box_etc(int etc)
{
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		own_fd int fd = openat(etc, files[i].name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
		if (fd < 0 || !write_all(fd, files[i].text, strlen(files[i].text)))
			return false;
	}
	return true;
}
