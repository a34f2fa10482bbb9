/*
 * Makes and reads what the runner's tests need. See run_box.h.
 */
#include "tests/runner/run_box.h"
#include "lib/num.h"
#include "lib/place.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static uint8_t frame[BN_MAX_SOURCE + 4096];
struct up_limits up_limits;

static void add(int up, size_t n)
{
	assert_true(n > 0);
	assert_true(bundle_add(up, frame, n));
}

int up_new(void)
{
	int fd = bundle_new("upload");
	assert_true(fd >= 0);
	return fd;
}

static struct wire_bytes bytes(const char *s)
{
	return (struct wire_bytes){(const uint8_t *)s, (uint32_t)strlen(s)};
}

void up_source(int up, const char *path, const char *text)
{
	struct bn_source m = {.path = path, .content = bytes(text)};
	add(up, bn_put_source(frame, sizeof frame, 0, &m));
}

void up_source_end(int up, uint32_t files)
{
	struct bn_source_end m = {.files = files};
	add(up, bn_put_source_end(frame, sizeof frame, 0, &m));
}

void up_request(int up, const char *json)
{
	struct bn_request m = {.json = bytes(json)};
	add(up, bn_put_request(frame, sizeof frame, 0, &m));
}

void up_token(int up, const char *file, const char *token)
{
	struct bn_token m = {.file = file, .token = bytes(token)};
	add(up, bn_put_token(frame, sizeof frame, 0, &m));
}

void up_file(int up, const char *path, const char *text)
{
	struct bn_file m = {.path = path, .content = {(const uint8_t *)text, (uint32_t)strlen(text)}};
	add(up, bn_put_file(frame, sizeof frame, 0, &m));
}

void up_key(int up, const char *variable, const char *file, const char *value)
{
	struct bn_credential m = {
	    .secret = "s", .variable = variable, .file = file, .made_up = 1, .value = bytes(value)};
	add(up, bn_put_credential(frame, sizeof frame, 0, &m));
}

void up_changed(int up, const char *path, bool executable, const char *text)
{
	struct bn_changed m = {.path = path, .executable = executable, .content = bytes(text)};
	add(up, bn_put_changed(frame, sizeof frame, 0, &m));
}

void up_removed(int up, const char *path)
{
	struct bn_removed m = {.path = path};
	add(up, bn_put_removed(frame, sizeof frame, 0, &m));
}

void up_agent(int up, uint32_t seconds, uint32_t output, const char *const *argv, const char *const *env)
{
	static struct bn_agent m;
	m = (struct bn_agent){.wall_seconds = seconds,
			      .output_bytes = output,
			      .cpu_seconds = up_limits.cpu_seconds,
			      .file_bytes = up_limits.file_bytes,
			      .open_files = up_limits.open_files};
	while (argv[m.argv_n])
		m.argv[m.argv_n] = argv[m.argv_n], m.argv_n++;
	while (env[m.env_n])
		m.env[m.env_n] = env[m.env_n], m.env_n++;
	add(up, bn_put_agent(frame, sizeof frame, 0, &m));
}

void up_check(int up, const char *name, uint32_t seconds, uint32_t output, const char *const *argv)
{
	struct bn_check m = {.name = name, .seconds = seconds, .output_bytes = output};
	while (argv[m.argv_n])
		m.argv[m.argv_n] = argv[m.argv_n], m.argv_n++;
	add(up, bn_put_check(frame, sizeof frame, 0, &m));
}

void up_program(int up, const char *path, const char *text)
{
	struct bn_program m = {.path = path, .content = bytes(text)};
	add(up, bn_put_program(frame, sizeof frame, 0, &m));
}

void up_archive(int up, const void *p, size_t n, size_t part, uint32_t seconds, uint32_t cpu_seconds)
{
	for (size_t at = 0; at < n; at += part) {
		struct bn_archive m = {.part = {(const uint8_t *)p + at, (uint32_t)(n - at < part ? n - at : part)}};
		add(up, bn_put_archive(frame, sizeof frame, 0, &m));
	}
	struct bn_unpack m = {.seconds = seconds, .cpu_seconds = cpu_seconds};
	add(up, bn_put_unpack(frame, sizeof frame, 0, &m));
}

void up_go(int up, uint8_t kind, uint32_t files, uint64_t bytes_, uint64_t file_bytes)
{
	struct bn_go m = {.kind = kind, .max_files = files, .max_bytes = bytes_, .max_file_bytes = file_bytes};
	add(up, bn_put_go(frame, sizeof frame, 0, &m));
}

void up_bridge(int up, const char *const *argv, const char *events, const char *approvals)
{
	struct bn_bridge m = {.events = bytes(events), .approvals = bytes(approvals)};
	while (argv[m.argv_n])
		m.argv[m.argv_n] = argv[m.argv_n], m.argv_n++;
	add(up, bn_put_bridge(frame, sizeof frame, 0, &m));
}

int up_script(const char *script, uint32_t seconds)
{
	return up_bridged(NULL, script, seconds);
}

int up_bridged(const char *bridge, const char *script, uint32_t seconds)
{
	static const char *const env[] = {"PATH=/usr/bin:/bin", "ONLY=this", NULL};
	const char *const argv[] = {"/bin/sh", "-c", script, NULL};
	int up = up_new();
	up_source(up, "a.txt", "one\n");
	up_source_end(up, 1);
	up_request(up, "{}");
	if (bridge)
		up_bridge(up, (const char *const[]){"/bin/bash", "-c", bridge, NULL}, "THE-EVENTS", "THE-APPROVALS");
	up_agent(up, seconds, 10000, argv, env);
	up_go(up, 1, 1000, 4000000, 100000);
	return up;
}

/* --- the box -------------------------------------------------------------------------------------- */

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	dprintf(2, "box: %s: %s\n", what, strerror(errno));
	_exit(200);
}

/* In the new namespaces: a root on a tmpfs, as sandboxd makes it, less its finer walls. */
static void make_root(void)
{
	static const char *const links[] = {"bin", "sbin", "lib", "lib64"};
	must(!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "private mounts");
	must(!mount("tmpfs", "/mnt", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755"), "root");
	must(!chdir("/mnt"), "chdir");
	static const char *const dirs[] = {"usr", "dev", "etc", "tmp", "proc", "workspace", "opt", "opt/pinfold"};
	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
		must(!mkdir(dirs[i], 0755), dirs[i]);
	must(!mount("/usr", "usr", NULL, MS_BIND | MS_REC, NULL), "usr");
	for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
		char to[32];
		snprintf(to, sizeof to, "usr/%s", links[i]);
		must(!symlink(to, links[i]), links[i]);
	}
	static const char *const nodes[] = {"/dev/null", "/dev/zero", "/dev/urandom"};
	for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
		int fd = open(nodes[i] + 1, O_CREAT | O_WRONLY, 0600);
		must(fd >= 0 && !close(fd) && !mount(nodes[i], nodes[i] + 1, NULL, MS_BIND, NULL), nodes[i]);
	}
	must(!mount("proc", "proc", "proc", 0, NULL), "proc");
	must(!symlink("/proc/self/fd/1", "dev/stdout") && !symlink("/proc/self/fd/2", "dev/stderr"), "dev/stdout");
	must(!chmod("tmp", 01777), "tmp");
	if (UNPACK_PATH[0] != '\0') {
		int fd = open("opt/pinfold/pinfold-unpack", O_CREAT | O_WRONLY, 0755);
		must(fd >= 0 && !close(fd) && !mount(UNPACK_PATH, "opt/pinfold/pinfold-unpack", NULL, MS_BIND, NULL),
		     "opt");
	}
	must(!mount("tmpfs", "workspace", "tmpfs", 0, "mode=0700,uid=1000,gid=1000,size=256m"), "workspace");
	must(!chroot(".") && !chdir("/"), "chroot");
}

static void keep_capabilities(void)
{
	for (int c = 0; c <= CAP_LAST_CAP; c++) {
		if (c != CAP_SETUID && c != CAP_SETGID && c != CAP_KILL && c != CAP_DAC_READ_SEARCH)
			prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
	}
	must(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
}

static void in_box(int runner, int upload, int result, int control, int group, int cpu)
{
	int given[] = {runner, upload, result, control, group, cpu};
	make_root();
	keep_capabilities();
	/* Out of the way first, since the numbers may overlap. */
	for (size_t i = 0; i < sizeof given / sizeof *given; i++)
		must((given[i] = fcntl(given[i], F_DUPFD, 100)) >= 0, "descriptors");
	must(dup2(given[1], BOX_FD_UPLOAD) >= 0 && dup2(given[2], BOX_FD_RESULT) >= 0 &&
		 dup2(given[3], BOX_FD_CONTROL) >= 0 && dup2(given[4], BOX_FD_CGROUP) >= 0 &&
		 dup2(given[5], BOX_FD_CPU) >= 0,
	     "descriptors");
	must(dup2(BOX_FD_RESULT, 50) == 50, "a descriptor too many"); /* which the agent must not see */
	char *const argv[] = {"pinfold-runner", NULL}, *const env[] = {"SECRET=of the host", NULL};
	syscall(SYS_execveat, given[0], "", argv, env, 0x1000 /* AT_EMPTY_PATH */);
	must(false, "exec");
}

void box_start(struct box_run *b, int upload)
{
	int control[2], told[2];
	const char *path = getenv("PINFOLD_RUNNER");
	int runner = open(path ? path : RUNNER_PATH, O_RDONLY | O_CLOEXEC);
	assert_true(runner >= 0);
	assert_true(bundle_seal(upload));
	*b = (struct box_run){.result = bundle_new("result"),
			      .group = memfd_create("group", MFD_CLOEXEC),
			      .cpu = memfd_create("cpu.stat", MFD_CLOEXEC)};
	assert_true(b->result >= 0 && b->group >= 0 && !pipe2(control, O_CLOEXEC) && !pipe2(told, O_CLOEXEC));
	b->control = control[1];
	pid_t outer = fork();
	assert_true(outer >= 0);
	if (outer == 0) {
		must(!unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS), "unshare");
		/* A sibling of ours, so that the test can wait for it. */
		pid_t pid = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
		must(pid >= 0, "clone");
		if (pid == 0) {
			close(control[1]);
			in_box(runner, upload, b->result, control[0], b->group, b->cpu);
		}
		_exit(write_all(told[1], &pid, sizeof pid) ? 0 : 1);
	}
	int st;
	assert_int_equal(waitpid(outer, &st, 0), outer);
	assert_int_equal(st, 0);
	assert_int_equal(read(told[0], &b->pid, sizeof b->pid), sizeof b->pid);
	close(told[0]);
	close(told[1]);
	close(control[0]);
	close(runner);
	close(upload);
}

int box_wait(struct box_run *b)
{
	int st, fd = (int)syscall(SYS_pidfd_open, b->pid, 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int ended = poll(&p, 1, PATIENCE_MS);
	if (ended != 1)
		kill(b->pid, SIGKILL);
	assert_int_equal(waitpid(b->pid, &st, 0), b->pid);
	close(fd);
	assert_int_equal(ended, 1);
	b->status = WIFEXITED(st) ? WEXITSTATUS(st) : -WTERMSIG(st);
	return b->status;
}

void box_done(struct box_run *b)
{
	if (b->control >= 0)
		close(b->control);
	close(b->result);
	close(b->group);
	close(b->cpu);
}

int box_all(struct found *f, int upload)
{
	struct box_run b;
	box_start(&b, upload);
	int status = box_wait(&b);
	found_read(f, b.result);
	box_done(&b);
	return status;
}

static off_t size_of(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 ? st.st_size : 0;
}

bool box_grown(const struct box_run *b, int children)
{
	return size_of(b->group) >= children;
}

void box_wait_output(struct box_run *b)
{
	/* The agent's cgroup file has five "0" when the agent starts. */
	if (!WAIT_FOR(size_of(b->group) >= 5 || size_of(b->result) > 0) || size_of(b->group) < 5)
		fail_msg("the agent never started");
}

/* --- the result ----------------------------------------------------------------------------------- */

static bool one_frame(struct found *f, uint16_t number, const uint8_t *p, size_t n)
{
	/* The order of a result: RAN, entries, a claim, COLLECTED; or checks; BROKEN may end either. */
	assert_int_equal(f->collected_n + f->broken_n, number == BN_BROKEN ? f->collected_n : 0);
	switch (number) {
	case BN_RAN:
		assert_int_equal(f->ran_n++, 0);
		return bn_get_ran(p, n, &f->ran);
	case BN_CHECKED:
		assert_true(f->checked_n < 16);
		return bn_get_checked(p, n, &f->checked[f->checked_n++]);
	case BN_ENTRY:
		assert_int_equal(f->ran_n, 1);
		assert_int_equal(f->claim_n, 0);
		f->entries = realloc(f->entries, (f->entries_n + 1) * sizeof *f->entries);
		assert_non_null(f->entries);
		return bn_get_entry(p, n, &f->entries[f->entries_n++]);
	case BN_CLAIM:
		assert_int_equal(f->claim_n++, 0);
		return bn_get_claim(p, n, &f->claim);
	case BN_COLLECTED:
		f->collected_n++;
		return bn_get_collected(p, n, &f->collected) && f->collected.entries == f->entries_n;
	case BN_BROKEN:
		f->broken_n++;
		return bn_get_broken(p, n, &f->broken);
	default:
		return false;
	}
}

void found_read(struct found *f, int result)
{
	struct stat st;
	*f = (struct found){0};
	assert_int_equal(fstat(result, &st), 0);
	size_t size = (size_t)st.st_size;
	f->all = malloc(size + 1);
	assert_non_null(f->all);
	for (size_t at = 0; at < size;) {
		ssize_t n = pread(result, f->all + at, size - at, (off_t)at);
		assert_true(n > 0);
		at += (size_t)n;
	}
	for (size_t at = 0; at < size;) {
		uint16_t number;
		uint64_t op;
		assert_true(size - at >= 4);
		const uint8_t *p = f->all + at;
		size_t n = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
		assert_true(n <= size - at - 4);
		assert_true(wire_peek(p + 4, n, &number, &op));
		assert_true(one_frame(f, number, p + 4, n));
		at += 4 + n;
	}
}

void found_free(struct found *f)
{
	free(f->entries);
	free(f->all);
}

bool same(struct wire_bytes b, const char *text)
{
	return b.n == strlen(text) && !memcmp(b.p, text, b.n);
}

bool holds(struct wire_bytes b, const char *text)
{
	return memmem(b.p, b.n, text, strlen(text)) != NULL;
}

const struct bn_entry *found_entry(const struct found *f, const char *path)
{
	for (uint32_t i = 0; i < f->entries_n; i++) {
		if (same(f->entries[i].path, path))
			return &f->entries[i];
	}
	return NULL;
}

void box_assert_output(struct wire_bytes got, const char *want)
{
	if (!same(got, want))
		fail_msg("output is <%.*s>, expected <%s>", (int)got.n, got.n ? (const char *)got.p : "", want);
}
