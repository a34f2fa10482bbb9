/* See response.h. */
#include "agent/response.h"
#include "lib/num.h"
#include "lib/own.h"
#include <fcntl.h>
#include <stdio.h>

bool response_leave(int workspace, struct buf *text)
{
	static const char name[] = "response.json", beside[] = ".response.json.new";
	buf_addc(text, '\n');
	if (buf_failed(text))
		return false;
	unlinkat(workspace, beside, 0);
	own_fd int fd = openat(workspace, beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd >= 0 && write_all(fd, text->p, text->n) && renameat(workspace, beside, workspace, name) == 0;
}
