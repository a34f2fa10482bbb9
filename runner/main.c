/*
 * pinfold-runner: process 1 of a box.
 *
 * Theory of operation. sandboxd has built the box and starts this program as uid 0 of the box's own user
 * namespace, with the capabilities SETUID, SETGID, KILL and DAC_READ_SEARCH there and nothing outside. It
 * reads what to do from a sealed bundle (descriptor 3), makes /workspace, and then either runs the agent and
 * collects what it left (work box) or runs the checks on a clean tree (check box). What it finds goes into
 * the result memfd (4). When it ends, the kernel ends the box. A third kind of work is to unpack an archive, by
 * pinfold-unpack as if it were an agent: what came of it is collected, and there is nothing else in that box.
 *
 * Everything that writes into /workspace or executes anything is a child that has become the agent's uid,
 * in the agent's cgroups; so is the agent's bridge, which has a uid of its own and writes nothing there. This process
 * itself only forks, waits, kills, and reads files.
 *
 * What it trusts: the kernel and its descriptors. What it never does: interpret a byte the agent wrote,
 * follow a link, take a decision about the result, keep a token, or wait for the agent without a limit. Where the agent
 * is given keys it does keep those: to look for them in all that goes into the result (lib/keymask.h).
 *
 * Ends: 0 when the result is whole, 1 otherwise (with a BROKEN frame if one could be written). SIGTERM is
 * the request to stop: the agent gets TERM, five seconds later KILL, and is collected as usual.
 */
#include "lib/die.h"
#include "lib/place.h"
#include "runner/collect.h"
#include "runner/keys.h"
#include "runner/launch.h"
#include "runner/plan.h"
#include "runner/result.h"
#include "runner/unpack.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { UNPACK_MS = 60000, GIT_MS = 60000, OUTPUT_MAX = 1000000, UNPACK_SAYS = 1000, LAST_FD = 65536 };

struct app {
	struct warden w;
	struct result r;
	struct plan plan;
	struct keys keys;
	uint8_t output[OUTPUT_MAX];
	char detail[257];
	int claim; /* of the agent's bridge; -1: it has none */
};

/* Fixed, so that nothing of the host or of a caller decides what git does or what the commit is called. */
static const char *const git_env[] = {"PATH=/usr/local/bin:/usr/bin:/bin",
				      "HOME=/tmp",
				      "LANG=C.UTF-8",
				      "TMPDIR=/tmp",
				      "GIT_CONFIG_NOSYSTEM=1",
				      "GIT_CONFIG_GLOBAL=/dev/null",
				      "GIT_TERMINAL_PROMPT=0",
				      "GIT_AUTHOR_NAME=Pinfold",
				      "GIT_AUTHOR_EMAIL=pinfold@localhost",
				      "GIT_AUTHOR_DATE=2000-01-01T00:00:00Z",
				      "GIT_COMMITTER_NAME=Pinfold",
				      "GIT_COMMITTER_EMAIL=pinfold@localhost",
				      "GIT_COMMITTER_DATE=2000-01-01T00:00:00Z",
				      NULL};
static const char *const check_env[] = {
    "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8", "TMPDIR=/tmp", "GIT_CONFIG_NOSYSTEM=1",
    "GIT_CONFIG_GLOBAL=/dev/null",       NULL};

/* add -f: an uploaded .gitignore does not keep an uploaded file out of the base. bigFileThreshold, compression: all
 * files go as they are into one pack, which is one name of the workspace; ten thousand of them take a second. */
static const char *const git_steps[][16] = {
    {"/usr/bin/git", "init", "-q", "--template=", "--initial-branch=main", NULL},
    {"/usr/bin/git", "-c", "core.hooksPath=/dev/null", "-c", "core.autocrlf=false", "-c", "core.safecrlf=false", "-c",
     "core.bigFileThreshold=1", "-c", "core.compression=0", "add", "-A", "-f", ".", NULL},
    {"/usr/bin/git", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", "-c", "commit.gpgSign=false", "commit", "-q",
     "--no-verify", "--allow-empty", "-m", "base", NULL},
};

/*
 * In a check box, after the changes: new files are noted in the index, without their content, so that `git diff`
 * sees them too; otherwise `git diff --check` would pass whatever stood in them.
 */
static const char *const git_note[] = {"/usr/bin/git",
				       "-c",
				       "core.hooksPath=/dev/null",
				       "-c",
				       "core.autocrlf=false",
				       "-c",
				       "core.safecrlf=false",
				       "add",
				       "--intent-to-add",
				       "--ignore-removal",
				       "-f",
				       ".",
				       NULL};

static void broken(struct app *a, enum err code, const char *detail)
{
	struct bn_broken m = {.code = (uint16_t)code, .detail = detail};
	log_error("broken: %s", detail);
	result_broken(&a->r, &m);
	exit(1);
}

static void must(struct app *a, bool written)
{
	if (!written)
		broken(a, ERR_SANDBOX_RESULT_INVALID, "the result cannot be written");
}

/* Only the descriptors of lib/place.h stay, and none of them passes an exec. */
static void take_descriptors(struct warden *w)
{
	*w = (struct warden){.control = BOX_FD_CONTROL, .cpu = -1};
	for (int fd = 0; fd < 3; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			_exit(1);
	}
	for (int fd = BOX_FD_UPLOAD; fd < BOX_FD__FIRST_FREE; fd++) {
		bool is_open = !fcntl(fd, F_SETFD, FD_CLOEXEC);
		if (is_open && fd == BOX_FD_CPU)
			w->cpu = fd;
		if (is_open && fd >= BOX_FD_CGROUP && fd < BOX_FD_CGROUP_END)
			w->groups[w->groups_n++] = fd;
	}
	if (close_range(BOX_FD__FIRST_FREE, ~0U, 0)) {
		for (int fd = BOX_FD__FIRST_FREE; fd < LAST_FD; fd++)
			close(fd);
	}
}

/* Runs one step of the preparation as the agent; BROKEN with what it said when it fails. False: stopped. */
static bool prepare(struct app *a, struct launch l, const char *what)
{
	struct outcome o;
	char said[161] = "";
	l.cwd = l.cwd ? l.cwd : "/workspace";
	l.output = (uint8_t *)said;
	l.output_cap = sizeof said - 1;
	launch_run(&a->w, &l, &o);
	for (char *p = said; *p; p++)
		*p = *p >= ' ' && *p < 127 ? *p : ' ';
	if (o.stopped)
		return false;
	if (!o.started)
		snprintf(a->detail, sizeof a->detail, "%s: %s: %s", what, o.step, strerror(o.errnum));
	else if (o.timed_out)
		snprintf(a->detail, sizeof a->detail, "%s took too long", what);
	else if (o.status || !o.clean)
		snprintf(a->detail, sizeof a->detail, "%s ended with %d: %s", what, (int)o.status, said);
	else
		return true;
	broken(a, ERR_SANDBOX_SETUP_FAILED, a->detail);
	return false;
}

/* The tree with its first commit; in a check box the changes on top, uncommitted. False: stopped. */
static bool make_workspace(struct app *a)
{
	struct unpack u = {.upload = BOX_FD_UPLOAD};
	struct launch note = {.argv = git_note, .env = git_env, .cwd = "/workspace/source", .limit_ms = GIT_MS};
	if (!prepare(a, (struct launch){.inside = unpack_base, .arg = &u, .limit_ms = UNPACK_MS}, "unpacking"))
		return false;
	for (size_t i = 0; i < sizeof git_steps / sizeof *git_steps; i++) {
		struct launch git = {
		    .argv = git_steps[i], .env = git_env, .cwd = "/workspace/source", .limit_ms = GIT_MS};
		if (!prepare(a, git, "making the repository"))
			return false;
	}
	struct launch keys = {.inside = keys_write, .arg = &a->keys, .limit_ms = UNPACK_MS};
	struct launch changes = {.inside = unpack_changes, .arg = &u, .limit_ms = UNPACK_MS};
	if (a->plan.kind == PLAN_WORK)
		return a->plan.keys_n == 0 || prepare(a, keys, "writing the keys");
	return prepare(a, changes, "applying the changes") && prepare(a, note, "noting the changes");
}

/* Runs an agent or a check. Its outcome, with the output in a->output; not started when already stopping. */
static struct outcome run_command(struct app *a, const struct command *c, const char *const *env)
{
	struct outcome o;
	bool agent = c == &a->plan.agent;
	bool bridged = agent && a->plan.bridge[0] != NULL;
	if (agent)
		keys_watch(&a->keys);
	if (bridged && (a->claim = memfd_create("claim", MFD_CLOEXEC)) < 0)
		broken(a, ERR_SANDBOX_SETUP_FAILED, "the bridge's claim has no place");
	struct launch l = {.argv = c->argv,
			   .keys = agent ? &a->keys : NULL,
			   .bridge = bridged ? a->plan.bridge : NULL,
			   .upload = BOX_FD_UPLOAD,
			   .claim = a->claim,
			   .env = env,
			   .cwd = "/workspace/source",
			   .limit_ms = (uint64_t)c->seconds * 1000,
			   .cpu_seconds = c->cpu_seconds,
			   .file_bytes = c->file_bytes,
			   .open_files = c->open_files,
			   .output = a->output,
			   .output_cap = c->output_bytes < OUTPUT_MAX ? c->output_bytes : OUTPUT_MAX};
	launch_run(&a->w, &l, &o);
	if (!o.clean)
		broken(a, ERR_SANDBOX_CLEANUP_FAILED, "a process of the box cannot be killed");
	if (!o.started && !o.stopped) {
		/* A program that does not exist is a fact about this run, and the only one there will be. */
		int n = snprintf((char *)a->output, OUTPUT_MAX, "pinfold: %s: %s\n", o.step, strerror(o.errnum));
		o.output_n = n > 0 && (size_t)n <= l.output_cap ? (size_t)n : 0;
	}
	o.output_n = keymask_hide(&a->keys.mask, a->output, o.output_n);
	return o;
}

/* How it ended, and what it left, if that is asked for. */
static void finish(struct app *a, const struct outcome *o, bool whole)
{
	struct bn_ran m = {.started = o->started,
			   .status = o->status,
			   .timed_out = o->timed_out,
			   .stopped = o->stopped,
			   .duration_ms = o->duration_ms,
			   .truncated = o->truncated,
			   .reached = o->reached,
			   .output = {a->output, (uint32_t)o->output_n}};
	must(a, result_ran(&a->r, &m));
	struct bn_collected nothing = {.complete = true};
	const char *why = whole ? collect(&a->w, &a->r, &a->plan.go, &a->keys.mask, a->claim)
			  : result_collected(&a->r, &nothing) ? NULL
							      : "the result cannot be written";
	if (why)
		broken(a, ERR_SANDBOX_RESULT_INVALID, why);
}

static void work(struct app *a, bool ready)
{
	struct outcome o = {.stopped = true};
	if (ready)
		o = run_command(a, &a->plan.agent, a->plan.agent.env);
	finish(a, &o, true);
}

/* pinfold-unpack in an agent's place. Where it refuses, nothing is collected: the line that it printed is all there is.
 */
static void unpack(struct app *a)
{
	static char numbers[3][24];
	const uint64_t most[3] = {a->plan.go.max_files, a->plan.go.max_bytes, a->plan.go.max_file_bytes};
	struct unpack u = {.upload = BOX_FD_UPLOAD};
	struct outcome o = {.stopped = true};
	struct command *c = &a->plan.agent;
	*c = (struct command){.argv = {"/opt/pinfold/pinfold-unpack", UNPACK_ARCHIVE, "/workspace/source"},
			      .seconds = c->seconds,
			      .cpu_seconds = c->cpu_seconds,
			      .output_bytes = UNPACK_SAYS};
	for (int i = 0; i < 3; i++) {
		snprintf(numbers[i], sizeof numbers[i], "%llu", (unsigned long long)most[i]);
		c->argv[3 + i] = numbers[i];
	}
	if (prepare(a, (struct launch){.inside = unpack_parts, .arg = &u, .limit_ms = UNPACK_MS},
		    "writing the archive"))
		o = run_command(a, c, check_env);
	finish(a, &o, o.started && o.status == 0 && !o.timed_out && !o.stopped && !o.reached);
}

static void check(struct app *a, bool ready)
{
	for (uint32_t i = 0; i < a->plan.checks_n; i++) {
		const struct command *c = &a->plan.checks[i];
		struct outcome o = {0};
		if (ready)
			o = run_command(a, c, check_env);
		struct bn_checked m = {.name = c->name,
				       .started = o.started,
				       .status = o.status,
				       .timed_out = o.timed_out,
				       .duration_ms = o.duration_ms,
				       .truncated = o.truncated,
				       .reached = o.reached,
				       .output = {a->output, (uint32_t)o.output_n}};
		must(a, result_checked(&a->r, &m));
	}
}

int main(void)
{
	static struct app a; /* its output buffer is too large for a stack */
	log_open("pinfold-runner");
	if (getpid() != 1 || getuid() != 0)
		fatal("this program is process 1 of a box; sandboxd starts it");
	a.r.fd = BOX_FD_RESULT;
	a.claim = -1;
	take_descriptors(&a.w);
	launch_init(&a.w);
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		broken(&a, ERR_SANDBOX_SETUP_FAILED, "the box lacks no_new_privs");
	const char *why = plan_read(&a.plan, BOX_FD_UPLOAD);
	if (why)
		broken(&a, ERR_SANDBOX_SETUP_FAILED, why);
	why = keys_take(&a.keys, &a.plan, BOX_FD_KEYS);
	close(BOX_FD_KEYS);
	if (why)
		broken(&a, ERR_CREDENTIAL_UNAVAILABLE, why);
	if (a.plan.kind == PLAN_UNPACK) {
		unpack(&a);
		plan_free(&a.plan);
		return 0;
	}
	bool ready = make_workspace(&a);
	if (!a.plan.bridge[0])        /* which reads it, too */
		close(BOX_FD_UPLOAD); /* it holds the tokens */
	if (a.plan.kind == PLAN_WORK)
		work(&a, ready);
	else
		check(&a, ready);
	keys_wipe(&a.keys);
	plan_free(&a.plan);
	return 0;
}
