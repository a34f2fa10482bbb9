/* Starts the two programs with the descriptors that sandboxd would give them. */
#include "gen/sandbox_msg.h"
#include "lib/buf.h"
#include "lib/chan.h"
#include "lib/die.h"
#include "lib/num.h"
#include "lib/place.h"
#include "tests/gateway/harness.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* fds[i] becomes descriptor 3 + i; -1 leaves a gap. */
static pid_t spawn(struct harness *h, const char *program, enum harness_role role, const int *fds, int nfds)
{
	char path[400], *argv[] = {(char *)program, NULL};
	const char *other = getenv(role == ROLE_STORED ? "PINFOLD_STORED" : "PINFOLD_GATEWAY");
	extern char **environ;

	snprintf(path, sizeof path, "%s/%s", h->bin, other ? other : program);
	int image = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof path, "%s/%s.log", h->dir, program);
	int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600),
	    null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (image < 0 || log < 0 || null < 0)
		fatal("cannot open %s or its log: %m", program);
	pid_t pid = fork();
	if (pid < 0)
		fatal("fork: %m");
	if (pid > 0) {
		close(image);
		close(log);
		close(null);
		return pid;
	}
	int high[16];
	for (int i = 0; i < nfds; i++)
		high[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, 100);
	image = fcntl(image, F_DUPFD_CLOEXEC, 100);
	dup2(null, 0);
	dup2(log, 1);
	dup2(log, 2);
	for (int i = 0; i < nfds; i++)
		if (high[i] >= 0)
			dup2(high[i], 3 + i);
	uid_t uid = HARNESS_UID + (uid_t)role;
	if (setgroups(0, NULL) != 0 || setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0)
		_exit(126);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fexecve(image, argv, environ);
	_exit(127);
}

static void make_dir(const char *base, const char *name, mode_t mode, uid_t uid, char *out, size_t cap)
{
	snprintf(out, cap, "%s%s%s", base, *name ? "/" : "", name);
	if ((mkdir(out, mode) != 0 && errno != EEXIST) || chmod(out, mode) != 0 || chown(out, uid, uid) != 0)
		fatal("cannot make %s: %m", out);
}

static int control_pair(int *theirs)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		fatal("socketpair: %m");
	*theirs = pair[1];
	return pair[0];
}

static void send_frame(int fd, const uint8_t *frame, size_t n, const int *fds, int nfds)
{
	if (n == 0 || chan_send(fd, frame, n, fds, nfds) != 0)
		fatal("cannot speak to the gateway: %m");
}

bool harness_open(struct harness *h, int box)
{
	uint8_t frame[SBX_MAXFRAME];
	struct sbx_open m = {.run = h->boxes[box].run, .tenant = h->boxes[box].tenant};
	size_t n = sbx_put_open(frame, sizeof frame, 0, &m);
	return n > 0 && chan_send(h->gateway_control, frame, n, &h->boxes[box].fd, 1) == 0;
}

void harness_close(struct harness *h, const char *run)
{
	uint8_t frame[SBX_MAXFRAME];
	struct sbx_close m = {.run = run};
	send_frame(h->gateway_control, frame, sbx_put_close(frame, sizeof frame, 0, &m), NULL, 0);
	for (int i = 0; i < HARNESS_BOXES; i++)
		if (h->boxes[i].fd >= 0 && strcmp(h->boxes[i].run, run) == 0) {
			close(h->boxes[i].fd);
			h->boxes[i].fd = -1;
		}
}

void harness_start_gateway(struct harness *h)
{
	int theirs, pipe_fds[2], fds[WIRE_MAX_FDS], nfds = 0;
	uint8_t frame[SBX_MAXFRAME];
	struct sbx_hello hello;
	struct sbx_welcome welcome = {.version = SBX_VERSION, .slots = HARNESS_BOXES};

	if (h->gateway > 0) {
		close(h->gateway_control);
		kill(h->gateway, SIGKILL);
		waitpid(h->gateway, NULL, 0);
	}
	h->gateway_control = control_pair(&theirs);
	if (pipe2(pipe_fds, O_CLOEXEC) != 0)
		fatal("pipe: %m");
	int given[] = {theirs, h->conf_fd, pipe_fds[0]};
	h->gateway = spawn(h, "pinfold-gateway", ROLE_GATEWAY, given, 3);
	close(theirs);
	close(pipe_fds[0]);
	if (!write_all(pipe_fds[1], h->secrets->p, h->secrets->n))
		fatal("cannot hand over the secrets: %m");
	close(pipe_fds[1]);
	ssize_t n = chan_recv(h->gateway_control, frame, sizeof frame, fds, &nfds);
	if (n <= 0 || !sbx_get_hello(frame, (size_t)n, &hello) || hello.version != SBX_VERSION) {
		printf("err no_hello\n");
		fflush(stdout);
		return;
	}
	send_frame(h->gateway_control, frame, sbx_put_welcome(frame, sizeof frame, 0, &welcome), NULL, 0);
	for (int i = 0; i < HARNESS_BOXES; i++)
		if (h->boxes[i].fd >= 0)
			harness_open(h, i);
	printf("ok %d\n", (int)h->gateway);
	fflush(stdout);
}

void harness_start_stored(struct harness *h)
{
	int theirs;

	if (h->stored > 0) {
		close(h->stored_control);
		kill(h->stored, SIGKILL);
		waitpid(h->stored, NULL, 0);
	}
	h->stored_control = control_pair(&theirs);
	int given[] = {theirs, h->conf_fd, -1, h->store_listen, h->admin_listen};
	h->stored = spawn(h, "pinfold-stored", ROLE_STORED, given, 5);
	close(theirs);
}

void harness_start(struct harness *h)
{
	char path[300], run[260], sub[300];
	uid_t stored = HARNESS_UID + ROLE_STORED;

	chmod(h->dir, 0711);
	make_dir(h->dir, "state", 0700, stored, path, sizeof path);
	make_dir(h->dir, "log", 0700, stored, path, sizeof path);
	make_dir(h->dir, "run", 0755, 0, run, sizeof run);
	make_dir(run, "store", 0755, 0, sub, sizeof sub);
	make_dir(run, "admin", 0755, 0, sub, sizeof sub);
	snprintf(path, sizeof path, "%s/" PLACE_STORE_SOCK, run);
	h->store_listen = chan_listen(path, SOCK_SEQPACKET, 0666, 0, 0, 128);
	h->fcgi = ask_new(path, 10000);
	h->steward = ask_new(path, 10000);
	snprintf(path, sizeof path, "%s/" PLACE_ADMIN_SOCK, run);
	h->admin_listen = chan_listen(path, SOCK_SEQPACKET, 0600, 0, 0, 16);
	h->admin = ask_new(path, 10000);
	if (h->store_listen < 0 || h->admin_listen < 0)
		fatal("cannot listen below %s: %m", run);
	harness_start_stored(h);
	harness_start_gateway(h);
}
