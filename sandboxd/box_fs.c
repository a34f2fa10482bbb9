/*
 * The file system of a box: a new tmpfs root with read-only binds of the host's programs, made files and
 * devices, and three bounded places to write. Runs as real root in a new mount namespace before anything
 * foreign exists in the box, so that no name it uses can have been prepared by somebody else. Never follows
 * a path that a caller or an agent named.
 */
#include "lib/clock.h"
#include "lib/own_fd.h"
#include "lib/packet.h"
#include "lib/wire.h"
#include "sandboxd/box_plan.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

/* What of the host is seen, read-only. On merged-usr hosts the links are made again instead. */
static const struct {
	const char *path;
	bool folder, required;
} binds[] = {
    {"/usr", true, true},
    {"/lib", true, true},
    {"/lib64", true, false},
    {"/bin", true, true},
    {"/sbin", true, false},
    {"/etc/alternatives", true, false},
    {"/etc/ssl/certs", true, false},
    {"/etc/ld.so.cache", false, false},
    {"/etc/localtime", false, false},
};

static const char *const folders[] = {"usr", "etc",  "etc/ssl", "opt",       "opt/pinfold",
				      "dev", "proc", "tmp",     "workspace", "var"};
static const char *const links[][2] = {{"/tmp", "var/tmp"},
				       {"/proc/self/fd", "dev/fd"},
				       {"/proc/self/fd/0", "dev/stdin"},
				       {"/proc/self/fd/1", "dev/stdout"},
				       {"/proc/self/fd/2", "dev/stderr"}};
static const struct {
	const char *name;
	unsigned minor;
} devices[] = {{"dev/null", 3}, {"dev/zero", 5}, {"dev/full", 7}, {"dev/random", 8}, {"dev/urandom", 9}};

/* Clones the mount at `from` with everything below it and puts it on `to`, read-only. */
static bool bind_ro(const char *from, int root, const char *to)
{
	own_fd int tree = open_tree(AT_FDCWD, from, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
	return tree >= 0 && mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr) == 0 &&
	       move_mount(tree, "", root, to, MOVE_MOUNT_F_EMPTY_PATH) == 0;
}

static bool make_folder(int root, const char *name)
{
	return mkdirat(root, name, 0755) == 0 || errno == EEXIST;
}

static bool make_binds(int root)
{
	for (size_t i = 0; i < sizeof binds / sizeof binds[0]; i++) {
		const char *to = binds[i].path + 1;
		struct stat st;
		if (lstat(binds[i].path, &st) != 0) {
			if (binds[i].required)
				return false;
			continue;
		}
		char target[256];
		ssize_t n = S_ISLNK(st.st_mode) && strchr(to, '/') == NULL
				? readlink(binds[i].path, target, sizeof target - 1)
				: -1;
		if (n > 0) { /* /lib -> usr/lib */
			target[n] = '\0';
			if (symlinkat(target, root, to) != 0)
				return false;
			continue;
		}
		if (binds[i].folder) {
			if (!make_folder(root, to))
				return false;
		} else {
			own_fd int file = openat(root, to, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
			if (file < 0)
				return false;
		}
		if (!bind_ro(binds[i].path, root, to))
			return false;
	}
	return true;
}

/* The same for every box, nothing of the host in them. */
static const struct {
	const char *name, *text;
} files[] = {
    {"passwd", "root:x:0:0:root of the box:/:/usr/sbin/nologin\n"
	       "agent:x:1000:1000:agent:/workspace:/bin/sh\n"
	       "bridge:x:1001:1001:bridge:/:/usr/sbin/nologin\n"
	       "nobody:x:65534:65534:the host:/:/usr/sbin/nologin\n"},
    {"group", "root:x:0:\nagent:x:1000:\nbridge:x:1001:\nnogroup:x:65534:\n"},
    {"nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
    {"hosts", "127.0.0.1 localhost box\n::1 localhost\n"},
    {"hostname", "box\n"},
    {"resolv.conf", "# There is no name service in a box.\n"},
};

static bool make_etc(int etc)
{
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		own_fd int fd = openat(etc, files[i].name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
		if (fd < 0 || !write_all(fd, files[i].text, strlen(files[i].text)))
			return false;
	}
	return true;
}

static bool make_dev(int root)
{
	/* The only mount that may hold devices; it is read-only from here on, but for /dev/shm. */
	if (mount("dev", "dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755,size=4k,nr_inodes=32") != 0)
		return false;
	for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++)
		if (mknodat(root, devices[i].name, S_IFCHR | 0666, makedev(1, devices[i].minor)) != 0)
			return false;
	for (size_t i = 0; i < sizeof links / sizeof links[0]; i++)
		if (symlinkat(links[i][0], root, links[i][1]) != 0)
			return false;
	struct mount_attr ro = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC};
	return mkdirat(root, "dev/shm", 0755) == 0 && mount_setattr(root, "dev", 0, &ro, sizeof ro) == 0;
}

static bool make_writable(const struct box_plan *p)
{
	const struct box_limits *l = &p->limits;
	unsigned long flags = MS_NOSUID | MS_NODEV;
	char o[160];
	snprintf(o, sizeof o, "mode=0755,size=%llu,nr_inodes=%u,uid=%u,gid=%u", (unsigned long long)l->workspace_bytes,
		 l->workspace_inodes, p->uid + 1, p->uid + 1);
	if (mount("workspace", "workspace", "tmpfs", flags, o) != 0)
		return false;
	snprintf(o, sizeof o, "mode=1777,size=%llu,nr_inodes=%u", (unsigned long long)l->workspace_bytes,
		 l->workspace_inodes);
	return mount("tmp", "tmp", "tmpfs", flags, o) == 0 &&
	       mount("shm", "dev/shm", "tmpfs", flags | MS_NOEXEC, "mode=1777,size=16m,nr_inodes=1024") == 0;
}

/* In the template's process: all that is the same for every box, on a root of its own. */
static bool build_template(const struct box_place *place, enum step *step)
{
	*step = STEP_ROOT;
	/* Nothing that happens here may spread to the host, whatever the host's propagation is. */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("box", place->stage, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=256k,nr_inodes=128") != 0 ||
	    chdir(place->stage) != 0)
		return false;
	own_fd int root = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return false;
	umask(0);
	for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
		if (!make_folder(root, folders[i]))
			return false;
	*step = STEP_BINDS;
	if (!make_binds(root) || !bind_ro(place->runner, root, "opt/pinfold"))
		return false;
	*step = STEP_ETC;
	own_fd int etc = openat(root, "etc", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (etc < 0 || !make_etc(etc))
		return false;
	*step = STEP_DEV;
	if (!make_dev(root))
		return false;
	*step = STEP_PIVOT;
	struct mount_attr ro = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
	return syscall(SYS_pivot_root, ".", ".") == 0 && umount2(".", MNT_DETACH) == 0 && chdir("/") == 0 &&
	       mount_setattr(AT_FDCWD, "/", 0, &ro, sizeof ro) == 0;
}

bool box_template(struct box_place *place, enum step *step)
{
	struct stat st = {0};
	*step = STEP_ROOT;
	stat("/etc/ld.so.cache", &st); /* changes whenever the host's libraries do */
	if (place->template_ns >= 0 && st.st_ino == place->made_from.st_ino &&
	    st.st_mtim.tv_sec == place->made_from.st_mtim.tv_sec &&
	    st.st_mtim.tv_nsec == place->made_from.st_mtim.tv_nsec)
		return true;
	int ends[2], note[2] = {STEP_ROOT, ECHILD}, fds[WIRE_MAX_FDS], nfds = 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
		return false;
	own_fd int reader = ends[0], writer = ends[1];
	struct clone_args args = {.flags = CLONE_NEWNS, .exit_signal = SIGCHLD};
	long pid = syscall(SYS_clone3, &args, sizeof args);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		/* It opens its own, for which nobody needs the right to trace; while there is still a /proc. */
		int ns = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
		note[1] = ns >= 0 && build_template(place, step) ? 0 : errno;
		note[0] = (int)*step;
		chan_send(writer, note, sizeof note, &ns, note[1] == 0);
		_exit(0);
	}
	*step = STEP_NAMESPACES;
	if (pid < 0 || waitpid((pid_t)pid, NULL, 0) != pid)
		return false;
	chan_recv(reader, note, sizeof note, fds, &nfds); /* nothing if it was killed */
	*step = (enum step)note[0];
	errno = note[1];
	if (nfds != 1)
		return false;
	if (place->template_ns >= 0)
		close(place->template_ns);
	place->template_ns = fds[0];
	place->made_from = st;
	return true;
}

bool box_root(const struct box_plan *p, enum step *step)
{
	*step = STEP_ROOT; /* a copy of the template's few mounts; the host's are not even in it */
	if (setns(p->place->template_ns, CLONE_NEWNS) != 0 || unshare(CLONE_NEWNS) != 0 || chdir("/") != 0)
		return false;
	*step = STEP_PROC;
	if (mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "hidepid=2,subset=pid") != 0)
		return false;
	*step = STEP_WORKSPACE;
	return make_writable(p);
}
