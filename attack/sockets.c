/* Attacks on sockets with a name, and on the shared memory and queues of others. */
#include "attack/know.h"
#include "attack/neighbour.h"
#include "attack/tried.h"
#include "gen/attacks_inside.h"
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/msg.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct tried connects(const char *path, bool abstract, int type)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	size_t n = strlen(path);
	if (n == 0 || n + 2 > sizeof a.sun_path)
		return skipped("no name to try");
	memcpy(a.sun_path + (abstract ? 1 : 0), path, n);
	int s = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	long rc =
	    s < 0 ? s : connect(s, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1));
	/* Of another type, or too busy: somebody is there all the same. */
	struct tried t = rc < 0 && (errno == EPROTOTYPE || errno == EAGAIN) ? open_("somebody is there") : refused(rc);
	if (s >= 0)
		close(s);
	return t;
}

/* By its path, and by the way around the root. */
static struct tried reaches(const char *path)
{
	char above[600];
	struct tried t = connects(path, false, SOCK_STREAM);
	return t.outcome == TRIED_OPEN ? t : connects(past_root(path, above), false, SOCK_STREAM);
}

static struct tried below(const char *key, const char *name)
{
	char path[200];
	if (know(key)[0] == '\0')
		return skipped("no path to try");
	snprintf(path, sizeof path, "%.90s/%s", know(key), name);
	return reaches(path);
}

static struct tried any(const char *const *paths)
{
	struct tried t = skipped("nothing to try");
	for (; *paths != NULL; paths++) {
		t = reaches(*paths);
		if (t.outcome == TRIED_OPEN)
			return t;
	}
	return t;
}

struct tried attack_sock_fcgi(void)
{
	return below("run", "public/fcgi.sock");
}

struct tried attack_sock_admin(void)
{
	return below("run", "admin/admin.sock");
}

struct tried attack_sock_store(void)
{
	return below("run", "store/store.sock");
}

struct tried attack_sock_dbus(void)
{
	static const char *const paths[] = {"/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket", NULL};
	return any(paths);
}

struct tried attack_sock_systemd(void)
{
	static const char *const paths[] = {"/run/systemd/private", "/run/systemd/journal/stdout",
					    "/run/systemd/notify", NULL};
	return any(paths);
}

struct tried attack_sock_docker(void)
{
	static const char *const paths[] = {"/var/run/docker.sock", "/run/docker.sock",
					    "/run/containerd/containerd.sock", "/run/podman/podman.sock", NULL};
	return any(paths);
}

struct tried attack_sock_abstract(void)
{
	return connects(know("abstract"), true, SOCK_STREAM);
}

/* Since Linux 6.12 Landlock holds it, too: alone it is nowhere to be seen. */
struct tried attack_sock_abstract_dgram(void)
{
	return landlock_abi() < 6 ? skipped("Linux here has no scopes") : connects(know("datagrams"), true, SOCK_DGRAM);
}

struct tried attack_near_abstract(void)
{
	return connects(NEAR_ABSTRACT, true, SOCK_STREAM);
}

struct tried attack_sock_abstract_list(void)
{
	static char text[64000];
	if (read_text("/proc/self/net/unix", text, sizeof text) < 0)
		return held("%s", strerrorname_np(errno));
	char *first = strchr(text, '\n'), *named = first != NULL ? strpbrk(first + 1, "@/") : NULL;
	return named == NULL ? held("none") : open_("%.60s", named);
}

static struct tried has_shm(int key)
{
	int id = shmget(key, 0, 0);
	return key == 0 ? skipped("no key to try") : refused(id);
}

static struct tried has_msg(int key)
{
	return key == 0 ? skipped("no key to try") : refused(msgget(key, 0));
}

struct tried attack_ipc_shm(void)
{
	return has_shm((int)know_number("key"));
}

struct tried attack_ipc_msg(void)
{
	return has_msg((int)know_number("key"));
}

struct tried attack_near_shm(void)
{
	return has_shm(NEAR_KEY);
}

struct tried attack_near_msg(void)
{
	return has_msg(NEAR_KEY);
}

struct tried attack_near_mq(void)
{
	return refused(mq_open(NEAR_QUEUE, O_RDWR));
}

struct tried attack_near_files(void)
{
	static const char *const paths[] = {"/tmp/pinfold-neighbour", "/dev/shm/pinfold-neighbour",
					    "/workspace/pinfold-neighbour"};
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		if (access(paths[i], F_OK) == 0)
			return open_("%s is there", paths[i]);
	return held("none is there");
}
