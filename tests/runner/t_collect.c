/*
 * What the runner collects of a tree that was made to hurt it.
 */
#include "lib/own.h"
#include "tests/runner/run_box.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void limited(struct found *f, const char *script, uint32_t files, uint64_t bytes, uint64_t file_bytes)
{
	static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
	const char *const argv[] = {"/bin/sh", "-c", script, NULL};
	struct box_run b;
	int up = up_new();
	up_source(up, "a.txt", "one\n");
	up_source_end(up, 1);
	up_request(up, "{}");
	up_agent(up, ENDLESS, 10000, argv, env);
	up_go(up, 1, files, bytes, file_bytes);
	box_start(&b, up);
	assert_int_equal(box_wait(&b), 0);
	found_read(f, b.result);
	assert_int_equal(f->ran_n, 1);
	if (f->ran.status)
		fail_msg("the script failed: %.*s", (int)f->ran.output.n, (const char *)f->ran.output.p);
	assert_int_equal(f->collected_n, 1);
	box_done(&b);
}

static void script(struct found *f, const char *text)
{
	limited(f, text, 1000, 4000000, 100000);
}

static void is(const struct found *f, const char *path, int type, const char *content)
{
	const struct bn_entry *e = found_entry(f, path);
	if (!e)
		fail_msg("no entry %s", path);
	else if (e->type != type || !same(e->content, content))
		fail_msg("%s is of type %d with %u bytes", path, e->type, e->content.n);
}

static void plain_files_in_order(void **s)
{
	(void)s;
	struct found f;
	script(&f, "rm a.txt; mkdir -p b/c empty; echo 2 >b/c/x; echo 1 >b.txt; printf '#!' >run; chmod 711 run; "
		   ": >zero; mkdir sub; echo n >sub/.git; rm -rf .git; mkdir .git; echo hidden >.git/x; "
		   "echo '{}' >../response.json");
	static const char *const order[] = {"b/c/x", "b.txt", "run", "sub/.git", "zero"};
	assert_int_equal(f.entries_n, 5);
	for (size_t i = 0; i < 5; i++)
		assert_true(same(f.entries[i].path, order[i]));
	is(&f, "b/c/x", 1, "2\n");
	is(&f, "run", 1, "#!");
	is(&f, "zero", 1, "");
	assert_true(f.entries[2].executable && !f.entries[1].executable);
	assert_int_equal(f.entries[0].size, 2);
	assert_int_equal(f.claim_n, 1);
	assert_true(same(f.claim.response, "{}\n"));
	assert_true(f.collected.complete);
	found_free(&f);
}

static void links_and_special_files(void **s)
{
	(void)s;
	struct found f;
	script(&f,
	       "echo secret >../outside; ln -s ../outside l1; ln -s /etc/passwd l2; ln -s nowhere l3; ln -s . loop; "
	       "ln -s /usr dirlink; mkfifo fifo; mkdir d; mkfifo d/f2; ln ../outside hard; ln a.txt a2.txt; "
	       "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'; "
	       "ln -s fifo ../response.json");
	static const char *const links[] = {"l1", "l2", "l3", "loop", "dirlink"};
	static const char *const others[] = {"fifo", "d/f2", "hard", "a.txt", "a2.txt", "sock"};
	for (size_t i = 0; i < 5; i++)
		is(&f, links[i], 3, "");
	for (size_t i = 0; i < 6; i++)
		is(&f, others[i], 4, "");
	assert_int_equal(f.entries_n, 11);
	assert_int_equal(f.claim_n, 0);
	assert_true(f.collected.complete);
	found_free(&f);
}

static void names_that_bite(void **s)
{
	(void)s;
	struct found f;
	script(&f, "python3 - <<'EOF'\nimport os\n"
		   "for n in (b'new\\nline', b'\\xff\\xfe', b'-rf', b'\"q\\'', b'\\xe2\\x80\\xae', b' ', b'n' * 255):\n"
		   "    open(n, 'w').write('v')\nEOF\n");
	static const char *const names[] = {"new\nline", "\xff\xfe", "-rf", "\"q'", "\xe2\x80\xae", " "};
	for (size_t i = 0; i < 6; i++)
		is(&f, names[i], 1, "v");
	assert_int_equal(f.entries_n, 8);
	found_free(&f);
}

static void sealed_folders_and_files(void **s)
{
	(void)s;
	struct found f;
	script(&f, "mkdir -p x/y; echo in >x/y/f; chmod 0 x/y/f x/y x a.txt; mkdir ro; echo r >ro/r; chmod 500 ro; "
		   "chmod 0 ..; chmod 0 .");
	is(&f, "x/y/f", 1, "in\n");
	is(&f, "a.txt", 1, "one\n");
	is(&f, "ro/r", 1, "r\n");
	assert_true(f.collected.complete);
	found_free(&f);
}

static void sizes_that_lie(void **s)
{
	(void)s;
	struct found f;
	script(&f, "truncate -s 1T big; truncate -s 100001 over; truncate -s 100000 edge; truncate -s 2000000 "
		   "../response.json");
	is(&f, "big", 5, "");
	is(&f, "over", 5, "");
	assert_true(found_entry(&f, "big")->size == UINT64_C(1) << 40);
	assert_int_equal(found_entry(&f, "over")->size, 100001);
	assert_int_equal(found_entry(&f, "edge")->type, 1);
	assert_int_equal(found_entry(&f, "edge")->content.n, 100000);
	assert_int_equal(f.claim_n, 0);
	assert_true(f.collected.complete);
	found_free(&f);
}

static void limits_stop_it(void **s)
{
	(void)s;
	struct found f;
	limited(&f, "for i in 1 2 3 4 5 6 7 8 9; do echo $i >f$i; done", 5, 1000, 1000);
	assert_int_equal(f.entries_n, 5);
	assert_false(f.collected.complete);
	found_free(&f);
	limited(&f, "for i in 1 2 3 4 5 6 7 8 9; do head -c 200 /usr/bin/env >f$i; done", 100, 1000, 1000);
	assert_int_equal(f.entries_n, 5); /* a.txt and four of 200 */
	assert_false(f.collected.complete);
	found_free(&f);
	limited(&f, "true", 1, 4, 4);
	assert_int_equal(f.entries_n, 1);
	assert_true(f.collected.complete);
	found_free(&f);
	limited(&f, "mkdir d; cd d; seq 1 20000 | xargs mkdir", 1000, 1000, 1000);
	assert_false(f.collected.complete);
	found_free(&f);
	limited(&f, "mkdir d; cd d; seq 1 100000 | xargs touch", 1000, 1000, 1000);
	assert_int_equal(f.entries_n, 1000);
	assert_false(f.collected.complete);
	found_free(&f);
	/* More names than are held at a time. */
	limited(&f,
		"python3 -c 'import os\nos.mkdir(\"d\")\nos.chdir(\"d\")\nfor i in range(90000): open(\"%0200d\" % i, "
		"\"w\").close()'",
		1000000, 1000, 1000);
	assert_false(f.collected.complete);
	found_free(&f);
}

static void deep_trees(void **s)
{
	(void)s;
	struct found f;
	/* As deep as a path can be named ... */
	limited(&f,
		"python3 -c 'import os\nfor i in range(1500):\n    os.mkdir(\"d\"); os.chdir(\"d\")\nopen(\"leaf\", "
		"\"w\").write(\"deep\")'",
		3000, 100000, 100000);
	assert_int_equal(f.entries_n, 2);
	assert_true(same(f.entries[1].content, "deep"));
	assert_int_equal(f.entries[1].path.n, 3004);
	assert_true(f.collected.complete);
	found_free(&f);
	/* ... and far deeper: the folder where it ends is reported, once. */
	limited(&f,
		"python3 -c 'import os\nn = \"n\" * 255\nfor i in range(5000):\n    os.mkdir(n); "
		"os.chdir(n)\nopen(\"leaf\", \"w\")'; "
		"echo z >z",
		3000, 100000, 100000);
	assert_int_equal(f.entries_n, 3);
	assert_int_equal(f.entries[1].type, 6);
	assert_true(f.entries[1].path.n <= 4096);
	is(&f, "z", 1, "z\n");
	found_free(&f);
}

static void a_source_that_is_gone(void **s)
{
	(void)s;
	static const char *const ways[] = {"cd ..; rm -rf source", "cd ..; mv source x; ln -s /usr/share source",
					   "cd ..; mv source x; mkfifo source",
					   "cd ..; mv source x; echo file >source"};
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		struct found f;
		script(&f, ways[i]);
		assert_int_equal(f.entries_n, 0);
		assert_false(f.collected.complete);
		found_free(&f);
	}
}

static void claims(void **s)
{
	(void)s;
	static const struct {
		const char *script;
		uint32_t claims;
	} cases[] = {{"true", 0},
		     {"mkdir ../response.json", 0},
		     {"mkfifo ../response.json", 0},
		     {"echo x >../r; ln ../r ../response.json", 0},
		     {"ln -s /etc/passwd ../response.json", 0},
		     {": >../response.json", 1},
		     {"printf '\\377\\000x' >../response.json; chmod 0 ../response.json", 1},
		     {"truncate -s 1000000 ../response.json", 1},
		     {"truncate -s 1000001 ../response.json", 0}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct found f;
		script(&f, cases[i].script);
		assert_int_equal(f.claim_n, cases[i].claims);
		found_free(&f);
	}
}

/* --- what no agent can do to it, since it is dead by then; the test can ------------------------------ */

enum { FOLDERS = 20 };

static const char moving_script[] =
    "mkdir ../secret ../alt; for f in $(seq 1 40); do echo THEM >../secret/f$f; done; "
    "for d in $(seq 1 20); do mkdir s$d; for f in $(seq 1 40); do echo ours >s$d/f$f; done; "
    "ln -s ../secret ../alt/s$d; ln -s ../secret/f$d ../alt/x$d; echo ours >x$d; echo ours >v$d; done; "
    "echo ours >g; touch ../ready; until [ -e ../go ]; do sleep 0.01; done";

/* Until it is killed, swaps folders or files for links out of the tree, as fast as it can: the moment between looking
 * and opening is short. Or lets files grow, shrink and vanish. */
static void move(int workspace, int what)
{
	char from[32], to[32];
	for (unsigned n = 0;; n++) {
		if (what < 2) {
			snprintf(from, sizeof from, "source/%c%u", "xs"[what], n % FOLDERS + 1);
			snprintf(to, sizeof to, "alt/%s", from + 7);
			renameat2(workspace, from, workspace, to, RENAME_EXCHANGE);
			continue;
		}
		int fd = openat(workspace, "source/g", O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
		if (fd >= 0 && ftruncate(fd, (off_t)(n * 7919 % 90000)))
			_exit(1);
		close(fd);
		snprintf(from, sizeof from, "source/v%u", n % FOLDERS + 1);
		unlinkat(workspace, from, 0);
		fd = openat(workspace, from, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
		close(fd);
	}
}

/* The folder, once "ready" is in it; -1. */
static int ready_in(const char *path)
{
	own_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 && faccessat(fd, "ready", F_OK, 0) == 0 ? steal_fd(&fd) : -1;
}

static int workspace_of(const struct box_run *b)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/root/workspace", (int)b->pid);
	int fd = -1;
	if (!WAIT_FOR((fd = ready_in(path)) >= 0))
		fail_msg("the agent is not ready");
	return fd;
}

static void go(int workspace)
{
	int fd = openat(workspace, "go", O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	assert_true(fd >= 0);
	close(fd);
}

static void a_tree_that_moves(void **s)
{
	(void)s;
	unsigned links = 0, others = 0;
	for (int round = 0; round < 9; round++) {
		struct box_run b;
		struct found f;
		box_start(&b, up_script(moving_script, ENDLESS));
		int workspace = workspace_of(&b);
		pid_t mover = fork();
		assert_true(mover >= 0);
		if (mover == 0)
			move(workspace, round % 3);
		go(workspace);
		int status = box_wait(&b); /* which has a limit */
		kill(mover, SIGKILL);
		waitpid(mover, NULL, 0);
		close(workspace);
		found_read(&f, b.result);
		/* Whole, or said to be broken: a folder may be gone while it stands in it. */
		assert_int_equal(f.collected_n + f.broken_n, 1);
		assert_int_equal(status, f.broken_n);
		for (uint32_t i = 0; i < f.entries_n; i++) {
			const struct bn_entry *e = &f.entries[i];
			if (holds(e->content, "THEM"))
				fail_msg("a foreign byte in %.*s", (int)e->path.n, (const char *)e->path.p);
			assert_true(e->type != 1 || e->size == e->content.n);
			links += e->type == 3;
			others += e->type == 6;
		}
		found_free(&f);
		box_done(&b);
	}
	assert_true(links > 0 && links + others > 20); /* it did move under the collector */
}

/* The name that the traced runner is about to open; "" when it is at something else. */
static void opens(pid_t pid, char name[16])
{
	struct __ptrace_syscall_info info;
	memset(name, 0, 16);
	if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) <= 0 || info.op != PTRACE_SYSCALL_INFO_ENTRY ||
	    info.entry.nr != SYS_openat)
		return;
	struct iovec to = {name, 15}, from = {(void *)(uintptr_t)info.entry.args[1], 15};
	if (process_vm_readv(pid, &to, 1, &from, 1, 0) < 0)
		name[0] = '\0';
}

/*
 * The worst moment, every time: between the look at a name and its opening, what bears it is exchanged for a link out
 * of the tree, or for a FIFO. All of them must be noticed.
 */
static void exchanged_before_it_opens(void **s)
{
	(void)s;
	struct box_run b;
	struct found f;
	char name[16], from[32], to[32];
	int st = 0;
	unsigned swapped = 0;
	box_start(&b, up_script(moving_script, ENDLESS));
	int workspace = workspace_of(&b);
	for (int i = 1; i <= FOLDERS; i++) {
		snprintf(to, sizeof to, "alt/x%d", i);
		if (i % 3 != 0)
			assert_int_equal(unlinkat(workspace, to, 0), 0);
		if (i % 3 == 1)
			assert_int_equal(mknodat(workspace, to, S_IFIFO | 0666, 0), 0);
		if (i % 3 == 2)
			assert_int_equal(linkat(workspace, "secret/f1", workspace, to, 0), 0);
	}
	assert_int_equal(ptrace(PTRACE_SEIZE, b.pid, NULL, PTRACE_O_TRACESYSGOOD), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, b.pid, NULL, NULL), 0);
	go(workspace);
	alarm(120); /* it would stand still at a FIFO */
	while (waitpid(b.pid, &st, 0) == b.pid && WIFSTOPPED(st)) {
		int sig = WSTOPSIG(st);
		if (sig == (SIGTRAP | 0x80)) {
			opens(b.pid, name);
			if ((name[0] == 's' || name[0] == 'x') && name[1] >= '1' && name[1] <= '9') {
				snprintf(from, sizeof from, "source/%s", name);
				snprintf(to, sizeof to, "alt/%s", name);
				assert_int_equal(renameat2(workspace, from, workspace, to, RENAME_EXCHANGE), 0);
				swapped++;
			}
		}
		bool ours = sig == (SIGTRAP | 0x80) || sig == SIGTRAP || st >> 16 == PTRACE_EVENT_STOP;
		assert_int_equal(ptrace(PTRACE_SYSCALL, b.pid, NULL, ours ? 0 : sig), 0);
	}
	alarm(0);
	close(workspace);
	assert_true(WIFEXITED(st) && WEXITSTATUS(st) == 0);
	found_read(&f, b.result);
	assert_int_equal(swapped, 2 * FOLDERS);
	for (int i = 1; i <= FOLDERS; i++) {
		snprintf(name, sizeof name, "s%d", i);
		is(&f, name, 6, "");
		snprintf(name, sizeof name, "x%d", i);
		is(&f, name, 6, "");
	}
	for (uint32_t i = 0; i < f.entries_n; i++)
		assert_false(holds(f.entries[i].content, "THEM"));
	assert_true(f.collected.complete);
	found_free(&f);
	box_done(&b);
}

/* Nodes of real devices, of which a box's agent can make none. They are named and never opened. */
static void device_nodes(void **s)
{
	(void)s;
	struct box_run b;
	struct found f;
	box_start(&b, up_script("mkdir d; touch ../ready; until [ -e ../go ]; do sleep 0.01; done", ENDLESS));
	int workspace = workspace_of(&b);
	static const struct {
		const char *name;
		mode_t type;
		unsigned major, minor;
	} nodes[] = {{"source/null", S_IFCHR, 1, 3}, {"source/d/zero", S_IFCHR, 1, 5},
		     {"source/tty", S_IFCHR, 5, 0},  {"source/white", S_IFCHR, 0, 0},
		     {"source/disk", S_IFBLK, 7, 0}, {"response.json", S_IFCHR, 1, 5}};
	for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
		assert_int_equal(
		    mknodat(workspace, nodes[i].name, nodes[i].type | 0666, makedev(nodes[i].major, nodes[i].minor)),
		    0);
	go(workspace);
	assert_int_equal(box_wait(&b), 0);
	close(workspace);
	found_read(&f, b.result);
	for (size_t i = 0; i + 1 < sizeof nodes / sizeof *nodes; i++)
		is(&f, nodes[i].name + 7, 4, "");
	assert_int_equal(f.claim_n, 0);
	assert_true(f.collected.complete);
	found_free(&f);
	box_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(plain_files_in_order),
	    cmocka_unit_test(links_and_special_files),
	    cmocka_unit_test(names_that_bite),
	    cmocka_unit_test(sealed_folders_and_files),
	    cmocka_unit_test(sizes_that_lie),
	    cmocka_unit_test(limits_stop_it),
	    cmocka_unit_test(deep_trees),
	    cmocka_unit_test(a_source_that_is_gone),
	    cmocka_unit_test(claims),
	    cmocka_unit_test(a_tree_that_moves),
	    cmocka_unit_test(exchanged_before_it_opens),
	    cmocka_unit_test(device_nodes),
	};
	if (geteuid() != 0) {
		puts("1..0 # SKIP these tests make namespaces: run them as root");
		return 77;
	}
	return cmocka_run_group_tests_name("collect", tests, NULL, NULL);
}
