/*
 * The parent's half of making a box: groups, clone3, the id maps, and the child's notes. Takes from the child
 * only fixed-size notes and the listener; the child is our own code until it says that exec is next.
 */
#include "lib/own_fd.h"
#include "lib/packet.h"
#include "lib/place.h"
#include "lib/wire.h"
#include "sandboxd/box.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool failed(struct box *b, enum step step, int error)
{
	if (b->failed == STEP_NONE) {
		b->failed = step;
		b->failed_errno = error;
	}
	return false;
}

bool box_build(struct box *b, int upload_, int keys_)
{
	own_fd int upload = upload_, keys = keys_;
	own_fd int reader = -1, child_end = -1, our_end = -1;
	int pair[2];
	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) != 0)
		return failed(b, STEP_DESCRIPTORS, errno);
	reader = pair[0];
	b->control = pair[1];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return failed(b, STEP_DESCRIPTORS, errno);
	our_end = pair[0];
	child_end = pair[1];
	enum step step;
	if (!box_template(&b->all->place, &step))
		return failed(b, step, errno);
	own_fd int group = cg_make(&b->all->cg, b->slot);
	b->groups_left = true;
	if (group < 0)
		return failed(b, STEP_CGROUP, errno);
	struct box_plan plan = {.place = &b->all->place,
				.cg = &b->all->cg,
				.slot = b->slot,
				.uid = b->all->uid_base + BOX_UIDS * b->slot,
				.limits = b->limits,
				.listener = b->kind == BOX_WORK,
				.probe = b->probe,
				.upload = upload,
				.keys = keys,
				.result = b->result,
				.control = reader,
				.build = child_end};
	int pidfd = -1;
	struct clone_args args = {.flags = CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |
					   CLONE_INTO_CGROUP | CLONE_PIDFD,
				  .pidfd = (uintptr_t)&pidfd,
				  .exit_signal = SIGCHLD,
				  .cgroup = (unsigned)group};
	long pid = syscall(SYS_clone3, &args, sizeof args);
	if (pid == 0)
		box_child(&plan);
	if (pid < 0)
		return failed(b, STEP_NAMESPACES, errno);
	b->pid = (pid_t)pid;
	b->pidfd = pidfd;
	if (!loop_add(b->all->loop, &b->build, our_end, EPOLLIN, box_build_read, b)) {
		failed(b, STEP_DESCRIPTORS, errno);
		box_destroy(b);
		return true; /* it ends by being reaped */
	}
	steal_fd(&our_end);
	return true;
}

/* A note of what; false: the conversation is over. */
static bool take(struct box *b, const struct box_note *note, int *fds, int nfds)
{
	switch (note->what) {
	case NOTE_MAPS:
		if (b->kind == BOX_WORK && nfds == 1 && b->listener < 0)
			b->listener = steal_fd(&fds[0]);
		if (!box_ids_map(b->pid, b->all->uid_base + BOX_UIDS * b->slot))
			return failed(b, STEP_IDS, errno);
		return chan_send(b->build.fd, "", 1, NULL, 0) == 0 || failed(b, STEP_IDS, errno);
	case NOTE_LACKS: /* an extra wall */
		b->lacks |= note->step > STEP_NONE && note->step < STEP__COUNT ? UINT64_C(1) << note->step : 0;
		return true;
	case NOTE_EXEC:
		b->executing = true;
		return true;
	case NOTE_FAILED:
		b->executing = false;
		return failed(b, note->step > STEP_NONE && note->step < STEP__COUNT ? (enum step)note->step : STEP_EXEC,
			      note->error);
	default:
		return failed(b, STEP_EXEC, EPROTO);
	}
}

void box_build_read(void *box, uint32_t events)
{
	struct box *b = box;
	(void)events;
	struct box_note note;
	int fds[WIRE_MAX_FDS], nfds = 0;
	ssize_t n = chan_recv(b->build.fd, &note, sizeof note, fds, &nfds);
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n == (ssize_t)sizeof note) {
		bool more = take(b, &note, fds, nfds);
		chan_close_fds(fds, nfds);
		if (more)
			return;
		loop_drop(b->all->loop, &b->build);
		box_destroy(b);
		return;
	}
	loop_drop(b->all->loop, &b->build); /* the end: exec closed it, or the child is dead */
	if (b->executing && b->failed == STEP_NONE)
		box_is_alive(b);
	else
		box_destroy(b);
}
