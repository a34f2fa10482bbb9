/* Attacks on limits: to use more than the box may have, so that others have less. What is taken is given back at the
 * end. */
#include "attack/know.h"
#include "attack/tried.h"
#include "gen/attacks_inside.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct tried at_most(long had, long may, const char *what)
{
	if (may <= 0)
		return skipped("the limit is not known");
	return had <= may ? held("%ld of %ld %s", had, may, what) : open_("%ld of %ld %s", had, may, what);
}

struct tried attack_use_processes(void)
{
	long may = know_number("pids"), n = 0;
	static pid_t pids[2000];
	while (n < may + 50 && n < 2000) {
		pid_t pid = fork();
		if (pid < 0)
			break;
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pause();
			_exit(0);
		}
		pids[n++] = pid;
	}
	for (long i = 0; i < n; i++)
		kill(pids[i], SIGKILL);
	for (long i = 0; i < n; i++)
		waitpid(pids[i], NULL, 0);
	return at_most(n, may, "processes");
}

static void *waits(void *arg)
{
	pause();
	return arg;
}

struct tried attack_use_threads(void)
{
	long may = know_number("pids"), n = 0;
	pthread_attr_t attr;
	pthread_t t;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	while (n < may + 50 && pthread_create(&t, &attr, waits, NULL) == 0)
		n++;
	return at_most(n, may, "threads");
}

struct tried attack_use_memory(void)
{
	long may = know_number("memory"), had = 0, step = 1 << 20;
	while (had < 2 * may) {
		char *p = mmap(NULL, (size_t)step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			break;
		memset(p, 1, (size_t)step);
		had += step;
	}
	return at_most(had, may, "bytes");
}

/* What is out of memory dies whole: the parent, too, well within these seconds. */
struct tried attack_use_memory_child(void)
{
	long may = know_number("memory");
	int status = 0;
	pid_t pid = fork();
	for (long had = 0, step = 1 << 20; pid == 0 && had < 2 * may; had += step) {
		char *p = mmap(NULL, (size_t)step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			break;
		memset(p, 1, (size_t)step);
	}
	if (pid == 0)
		_exit(0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return skipped("no child: %s", strerror(errno));
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		return open_("the child was not killed: %x", (unsigned)status);
	sleep(15);
	return open_("it goes on 15 s after its child was killed");
}

struct tried attack_use_tcp_memory(void)
{
	static char block[1 << 16];
	long may = know_number("memory"), had = 0;
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof a;
	int listener = socket(AF_INET, SOCK_STREAM, 0), large = 1 << 24;
	if (bind(listener, (struct sockaddr *)&a, sizeof a) != 0 || listen(listener, 100) != 0 ||
	    getsockname(listener, (struct sockaddr *)&a, &size) != 0)
		return skipped("no listener: %s", strerror(errno));
	for (int i = 0; i < 300 && had <= 2 * may; i++) {
		int s = socket(AF_INET, SOCK_STREAM, 0);
		setsockopt(s, SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
		setsockopt(s, SOL_SOCKET, SO_RCVBUF, &large, sizeof large);
		struct timeval two = {.tv_sec = 2};
		setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &two, sizeof two);
		if (s < 0 || connect(s, (struct sockaddr *)&a, sizeof a) != 0)
			break;
		for (ssize_t n; (n = send(s, block, sizeof block, MSG_DONTWAIT | MSG_NOSIGNAL)) > 0;)
			had += n;
	}
	return at_most(had, may, "bytes");
}

static struct tried fills(const char *path, long may)
{
	static char block[1 << 16];
	long had = 0;
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return refused(fd);
	signal(SIGXFSZ, SIG_IGN);
	memset(block, 1, sizeof block);
	for (ssize_t n; had <= 2 * may && (n = write(fd, block, sizeof block)) > 0;)
		had += n;
	close(fd);
	unlink(path);
	return at_most(had, (may + 4095) / 4096 * 4096, "bytes");
}

struct tried attack_use_bytes(void)
{
	return fills("/workspace/full", know_number("workspace"));
}

struct tried attack_use_tmp(void)
{
	return fills("/tmp/full", know_number("workspace"));
}

struct tried attack_use_shm(void)
{
	return fills("/dev/shm/full", 16 << 20);
}

struct tried attack_use_inodes(void)
{
	long may = know_number("inodes"), n = 0;
	char name[64];
	if (mkdir("/workspace/many", 0700) != 0)
		return refused(-1);
	for (; n < may + 100; n++) {
		snprintf(name, sizeof name, "/workspace/many/%ld", n);
		int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0)
			break;
		close(fd);
	}
	for (long i = 0; i < n; i++) {
		snprintf(name, sizeof name, "/workspace/many/%ld", i);
		unlink(name);
	}
	rmdir("/workspace/many");
	return at_most(n, may, "files");
}

/* As far as one may by oneself. */
static void raise_limit(__rlimit_resource_t what)
{
	struct rlimit r;
	if (getrlimit(what, &r) == 0) {
		r.rlim_cur = r.rlim_max;
		setrlimit(what, &r);
	}
}

struct tried attack_use_descriptors(void)
{
	long n = 0;
	raise_limit(RLIMIT_NOFILE);
	while (n < 5000 && open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
		n++;
	return at_most(n, 1024, "descriptors");
}

struct tried attack_use_file_size(void)
{
	int fd = open("/tmp/attack-large", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	signal(SIGXFSZ, SIG_IGN);
	struct tried t = refused(ftruncate(fd, 1L << 40));
	unlink("/tmp/attack-large");
	return t;
}

struct tried attack_use_locked(void)
{
	raise_limit(RLIMIT_MEMLOCK);
	char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? refused(-1) : refused(mlock(p, 1 << 20));
}

struct tried attack_use_queues(void)
{
	struct mq_attr attr = {.mq_maxmsg = 10, .mq_msgsize = 8192};
	raise_limit(RLIMIT_MSGQUEUE);
	mqd_t q = mq_open("/attack", O_CREAT | O_RDWR | O_CLOEXEC, 0600, &attr);
	struct tried t = refused(q);
	mq_unlink("/attack");
	return t;
}

struct tried attack_use_signals(void)
{
	sigset_t set;
	long n = 0;
	raise_limit(RLIMIT_SIGPENDING);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	while (n < 5000 && sigqueue(getpid(), SIGRTMIN, (union sigval){0}) == 0)
		n++;
	return at_most(n, 1024, "signals");
}

struct tried attack_use_time(void)
{
	for (;;)
		pause();
}

struct tried attack_use_ignore_term(void)
{
	signal(SIGTERM, SIG_IGN);
	for (;;)
		sleep(1);
}

/* Beyond the reach of a process group, a session, a parent, and of TERM. */
struct tried attack_use_survivors(void)
{
	for (int i = 0; i < 10; i++)
		if (fork() == 0) {
			setsid();
			signal(SIGTERM, SIG_IGN);
			if (fork() == 0)
				for (;;)
					sleep(60);
			_exit(0);
		}
	return held("left");
}

struct tried attack_use_output(void)
{
	static char block[100000];
	memset(block, 'x', sizeof block);
	for (int i = 0; i < 1000; i++)
		if (write(1, block, sizeof block) <= 0)
			break;
	return held("written");
}
