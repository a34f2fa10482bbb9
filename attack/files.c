/* Attacks on files: what of the machine can be seen, written or reached by a path. */
#include "attack/know.h"
#include "attack/tried.h"
#include "gen/attacks_inside.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/random.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define OPENS(name, path, flags)                     \
	struct tried attack_##name(void)             \
	{                                            \
		return cannot_open((path), (flags)); \
	}
#define LISTS(name, path)                   \
	struct tried attack_##name(void)    \
	{                                   \
		return cannot_list((path)); \
	}
/* Mounted with no more than it needs; the flags are those of a process of any kind, so nothing else can hide them. */
#define FLAGS(name, path, flags)                 \
	struct tried attack_##name(void)         \
	{                                        \
		return mounted((path), (flags)); \
	}
enum { MAKE = O_WRONLY | O_CREAT | O_EXCL };

static struct tried mounted(const char *path, unsigned long wanted)
{
	struct statvfs v;
	if (statvfs(path, &v) != 0)
		return skipped("%s: %s", path, strerror(errno));
	return (v.f_flag & wanted) == wanted ? held("flags %lx", v.f_flag)
					     : open_("%s lacks %lx of %lx", path, wanted & ~v.f_flag, wanted);
}

/* Held when every entry is among the known. */
static struct tried only(const char *path, const char *const *known)
{
	DIR *d = opendir(path);
	char found[100] = "";
	if (d == NULL)
		return held("%s: %s", path, strerror(errno));
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		const char *const *k = known;
		while (*k != NULL && strcmp(*k, e->d_name) != 0)
			k++;
		if (*k == NULL && e->d_name[0] != '.')
			snprintf(found, sizeof found, "%.90s", e->d_name);
	}
	closedir(d);
	return found[0] != '\0' ? open_("%s/%s", path, found) : held("nothing else");
}

OPENS(files_shadow, "/etc/shadow", O_RDONLY)
LISTS(files_root_home, "/root")
LISTS(files_home, "/home")
LISTS(files_boot, "/boot")
LISTS(files_sys, "/sys")
LISTS(files_state, know("state"))
LISTS(files_run, know("run"))
LISTS(files_config, know("config"))
OPENS(files_root_write, "/attack", MAKE)
FLAGS(files_root_flags, "/", ST_RDONLY | ST_NOSUID | ST_NODEV)
OPENS(files_usr_write, "/usr/bin/attack", MAKE)
FLAGS(files_usr_flags, "/usr", ST_RDONLY | ST_NOSUID | ST_NODEV)
OPENS(files_opt_write, "/opt/pinfold/attack", MAKE)
FLAGS(files_opt_flags, "/opt/pinfold", ST_RDONLY | ST_NOSUID | ST_NODEV)
OPENS(files_etc_write, "/etc/attack", MAKE)
FLAGS(files_dev_flags, "/dev", ST_RDONLY | ST_NOSUID | ST_NOEXEC)
FLAGS(files_shm_flags, "/dev/shm", ST_NOSUID | ST_NODEV | ST_NOEXEC)
FLAGS(files_tmp_flags, "/tmp", ST_NOSUID | ST_NODEV)
FLAGS(files_workspace_flags, "/workspace", ST_NOSUID | ST_NODEV)

struct tried attack_files_var(void)
{
	static const char *const known[] = {"tmp", NULL};
	return only("/var", known);
}

struct tried attack_files_etc_entries(void)
{
	static const char *const known[] = {"passwd",      "group", "nsswitch.conf", "hosts",       "hostname",
					    "resolv.conf", "ssl",   "alternatives",  "ld.so.cache", "localtime",
					    NULL};
	struct tried t = only("/etc", known);
	static const char *const certs[] = {"certs", NULL};
	return t.outcome == TRIED_OPEN ? t : only("/etc/ssl", certs);
}

struct tried attack_files_etc_users(void)
{
	char text[8000];
	if (read_text("/etc/passwd", text, sizeof text) < 0)
		return held("%s", strerror(errno));
	unsigned lines = 0;
	for (char *p = text; *p != '\0'; p++)
		lines += *p == '\n';
	return lines <= 4 && strstr(text, "root of the box") != NULL ? held("%u", lines) : open_("%u accounts", lines);
}

struct tried attack_files_etc_resolver(void)
{
	char text[8000] = "";
	read_text("/etc/resolv.conf", text, sizeof text);
	return strstr(text, "nameserver") != NULL ? open_("there is one") : held("none");
}

struct tried attack_files_dev_entries(void)
{
	static const char *const known[] = {"null",  "zero",   "full",   "random", "urandom", "fd",
					    "stdin", "stdout", "stderr", "shm",    NULL};
	return only("/dev", known);
}

static struct tried none_opens(const char *const *paths, int flags)
{
	struct tried t = skipped("nothing to try");
	for (; *paths != NULL; paths++) {
		t = cannot_open(*paths, flags);
		if (t.outcome == TRIED_OPEN)
			return open_("%s opens", *paths);
	}
	return t;
}

struct tried attack_files_dev_mem(void)
{
	static const char *const paths[] = {"/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", NULL};
	return none_opens(paths, O_RDONLY);
}

struct tried attack_vsock_dev(void)
{
	static const char *const paths[] = {"/dev/vsock", "/dev/vhost-vsock", "/dev/kvm", NULL};
	return none_opens(paths, O_RDONLY);
}

struct tried attack_time_rtc(void)
{
	static const char *const paths[] = {"/dev/rtc", "/dev/rtc0", NULL};
	return none_opens(paths, O_RDONLY);
}

struct tried attack_tty_console(void)
{
	static const char *const paths[] = {"/dev/console", "/dev/tty0", "/dev/tty1", "/dev/ttyS0", "/dev/vcs", NULL};
	return none_opens(paths, O_RDONLY);
}

OPENS(tty_own, "/dev/tty", O_RDWR)
OPENS(tty_ptmx, "/dev/ptmx", O_RDWR)

static struct tried makes_node(mode_t type, dev_t dev)
{
	const char *path = "/tmp/attack-node";
	if (mknod(path, type | 0600, dev) != 0)
		return held("%s", strerrorname_np(errno));
	struct tried t = open_("the node is made");
	unlink(path);
	return t;
}

struct tried attack_files_mknod_disk(void)
{
	return makes_node(S_IFBLK, makedev(8, 0));
}

struct tried attack_files_mknod_mem(void)
{
	return makes_node(S_IFCHR, makedev(1, 1));
}

struct tried attack_files_mounts(void)
{
	char at[200];
	if (access("/proc/self/mountinfo", R_OK) != 0)
		return held("%s", strerrorname_np(errno));
	return foreign_mount(at) ? open_("%.100s", at) : held("none");
}

/* A process may have sixteen layers; one that can add sixteen had none. */
struct tried attack_files_landlock(void)
{
	struct landlock_ruleset_attr attr = {.handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_SOCK};
	int set = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0), n = 0;
	if (set < 0)
		return skipped("no Landlock: %s", strerror(errno));
	while (n < 17 && syscall(SYS_landlock_restrict_self, set, 0) == 0)
		n++;
	close(set);
	return n >= 16 ? open_("%d more", n) : n == 0 ? skipped("none: %s", strerror(errno)) : held("%d more", n);
}

OPENS(files_proc_write, "/proc/self/comm", O_WRONLY)

/* A right that Linux has since 6.2. */
struct tried attack_files_cut(void)
{
	return landlock_abi() < 3 ? skipped("Linux here has no such right") : refused(truncate("/proc/self/comm", 0));
}

/* Since 6.10. What is asked is harmless and for everybody: how much randomness there is. */
struct tried attack_files_ioctl(void)
{
	int n, fd = open("/dev/random", O_RDONLY | O_CLOEXEC);
	if (landlock_abi() < 5 || fd < 0)
		return skipped(fd < 0 ? "no device to ask" : "Linux here has no such right");
	struct tried t = refused(ioctl(fd, RNDGETENTCNT, &n));
	close(fd);
	return t;
}

struct tried attack_files_chown_root(void)
{
	const char *path = "/tmp/attack-owned";
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	struct tried t = refused(chown(path, 0, 0));
	unlink(path);
	return t;
}

struct tried attack_files_handle(void)
{
	char handle[16] = {8};
	return absent(syscall(SYS_open_by_handle_at, AT_FDCWD, handle, O_RDONLY));
}
