/*
 * Attacks on who collects and judges what an agent left. Each leaves one thing in /workspace; the run must then end as
 * the table says. The tree has a.md and sub/c.md, which may be changed, and b.md, which may not.
 */
#include "attack/tried.h"
#include "gen/attacks_inside.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static struct tried left(long rc)
{
	return rc < 0 ? skipped("it cannot be left: %s", strerror(errno)) : held("left");
}

static struct tried put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	long rc = fd < 0 ? -1 : write(fd, text, strlen(text));
	if (fd >= 0)
		close(fd);
	return left(rc);
}

static struct tried links(const char *to, const char *path)
{
	unlink(path);
	return left(symlink(to, path));
}

struct tried attack_collect_link(void)
{
	return links("/etc/passwd", "a.md");
}

struct tried attack_collect_link_proc(void)
{
	return links("/proc/self/environ", "a.md");
}

struct tried attack_collect_link_folder(void)
{
	unlink("sub/c.md");
	rmdir("sub");
	return links("/etc", "sub");
}

struct tried attack_collect_dangling(void)
{
	return links("no-such-file", "a.md");
}

struct tried attack_collect_hard_link(void)
{
	unlink("a.md");
	return left(link("b.md", "a.md"));
}

struct tried attack_collect_fifo(void)
{
	unlink("a.md");
	return left(mkfifo("a.md", 0600));
}

struct tried attack_collect_socket(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "a.md"};
	unlink("a.md");
	return left(bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&a, sizeof a));
}

/* As large as a file may be: the limit for files is met before. */
struct tried attack_collect_sparse(void)
{
	int fd = open("a.md", O_WRONLY | O_CLOEXEC);
	signal(SIGXFSZ, SIG_IGN);
	long rc = -1;
	for (off_t size = 1L << 40; rc != 0 && size > 1 << 20; size /= 2)
		rc = ftruncate(fd, size);
	return left(rc);
}

struct tried attack_collect_large(void)
{
	char block[10000];
	int fd = open("a.md", O_WRONLY | O_APPEND | O_CLOEXEC);
	long rc = 0;
	memset(block, 'x', sizeof block);
	for (int i = 0; i < 1200 && rc >= 0; i++)
		rc = write(fd, block, sizeof block);
	return left(rc);
}

struct tried attack_collect_deep(void)
{
	long rc = 0;
	for (int i = 0; i < 800 && rc == 0; i++) {
		rc = mkdir("deeper-and-deeper", 0755);
		rc = rc == 0 ? chdir("deeper-and-deeper") : rc;
	}
	put("end.md", "x\n");
	return left(rc);
}

struct tried attack_collect_names(void)
{
	for (int i = 0; i < 1000; i++) {
		char name[20];
		snprintf(name, sizeof name, "n%d.md", i);
		struct tried t = put(name, "");
		if (t.outcome == TRIED_SKIPPED)
			return i > 500 ? left(0) : t;
	}
	return left(0);
}

struct tried attack_collect_newline(void)
{
	return put("x\na.md", "x\n");
}

struct tried attack_collect_bytes(void)
{
	return put("\xff\xfe.md", "x\n");
}

struct tried attack_collect_sealed(void)
{
	if (mkdir("sealed", 0755) != 0)
		return left(-1);
	put("sealed/x.md", "x\n");
	chmod("sealed/x.md", 0);
	return left(chmod("sealed", 0));
}

struct tried attack_collect_root(void)
{
	if (chdir("/workspace") != 0 || rename("source", "gone") != 0)
		return left(-1);
	return left(symlink("/usr", "source"));
}

struct tried attack_collect_outside(void)
{
	return put("b.md", "changed\n");
}

struct tried attack_collect_extra(void)
{
	return put("extra.md", "new\n");
}

struct tried attack_collect_mode(void)
{
	return left(chmod("b.md", 0755));
}

struct tried attack_collect_claim(void)
{
	put("a.md", "trailing   \n");
	return left(mkfifo("/workspace/response.json", 0600));
}
