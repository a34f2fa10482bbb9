/*
 * An agent with a bridge in one box: of which user each is, that the agent can neither end its bridge, look into it nor
 * find what was given to it, and what the end of either means. The bridges are shell scripts; the real one is
 * tests/bridge.
 */
#include "tests/runner/run_box.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* It says that the agent may start, and passes on what this prints. */
#define QUIET "printf q >&5; "
#define TALKS "printf t >&5; "
#define COPY "cat; "
#define AGENT_ENDED "head -c 4 <&6 >/tmp/status; "

static void bridged(struct found *f, const char *bridge, const char *agent)
{
	assert_int_equal(box_all(f, up_bridged(bridge, agent, ENDLESS)), 0);
	assert_int_equal(f->ran_n, 1);
}

static void says(const struct found *f, const char *text)
{
	if (!holds(f->ran.output, text))
		fail_msg("<%s> is missing in <%.*s>", text, (int)f->ran.output.n, (const char *)f->ran.output.p);
}

static void each_is_a_user_of_its_own(void **s)
{
	(void)s;
	struct found f;
	bridged(&f,
		QUIET "echo bridge $(id -u) $(id -g) $PWD $(ls /proc/self/fd | tr '\\n' ' '); env | sort; "
		      "grep -E '^(Cap|NoNewPrivs|Groups|SigIgn|SigBlk)' /proc/self/status; " COPY
		      "echo '{\"status\":\"completed\"}' >&4",
		"echo agent $(id -u) $(id -g) $PWD; readlink /proc/self/fd/0; echo {} >/workspace/response.json; "
		"echo again >/dev/stdout; echo wrong >/dev/stderr; ls /proc/self/fd | tr '\\n' ' '");
	/* ls has one more. */
	says(&f, "bridge 1001 1001 / 0 1 2 3 4 5 6 7 8\n");
	says(&f, "LANG=C.UTF-8\nPATH=/usr/local/bin:/usr/bin:/bin\nPWD=/\nSHLVL=1\nTZ=UTC\n");
	says(&f, "agent 1000 1000 /workspace/source\n/dev/null\nagain\n0 1 2 3 ");
	says(&f, "wrong\n");
	says(&f, "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n");
	says(&f, "CapAmb:\t0000000000000000\nNoNewPrivs:\t1\n");
	says(&f, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
	assert_false(holds(f.ran.output, "ONLY=this"));
	assert_int_equal(f.ran.status, 0);
	assert_int_equal(f.claim_n, 1);
	assert_true(same(f.claim.response, "{\"status\":\"completed\"}\n"));
	found_free(&f);
}

/* What Python finds refused, it says by name: a signal, a look, a limit, a trace. */
static const char tries[] =
    "exec /usr/bin/python3 -c '\n"
    "import ctypes, os, resource, signal\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
    "me = os.getpid()\n"
    "others = []\n"
    "for p in os.listdir(\"/proc\"):\n"
    "    if p.isdigit() and os.stat(\"/proc/\" + p).st_uid == 1001: others.append(int(p))\n"
    "print(\"others\", len(others))\n"
    "def no(what, f):\n"
    "    try:\n"
    "        f(); print(\"OPEN\", what)\n"
    "    except PermissionError: print(\"held\", what)\n"
    "    except ProcessLookupError: print(\"held\", what)\n"
    "def call(*a):\n"
    "    ctypes.set_errno(0)\n"
    "    if libc.syscall(*a) == -1: raise OSError(ctypes.get_errno(), \"x\")\n"
    "for p in others:\n"
    "    for sig in (0, 9, 15, 19, 2, 10): no(f\"signal {sig}\", lambda: os.kill(p, sig))\n"
    "    no(\"group\", lambda: os.killpg(os.getpgid(p), 9))\n"
    "    no(\"pidfd\", lambda: signal.pidfd_send_signal(os.pidfd_open(p), 9))\n"
    "    no(\"limit\", lambda: resource.prlimit(p, resource.RLIMIT_NOFILE, (0, 0)))\n"
    "    no(\"nice\", lambda: os.setpriority(os.PRIO_PROCESS, p, 19))\n"
    "    no(\"affinity\", lambda: os.sched_setaffinity(p, {0}))\n"
    "    no(\"trace\", lambda: call(101, 16, p, 0, 0))\n"
    "    no(\"seize\", lambda: call(101, 0x4206, p, 0, 0))\n"
    "    no(\"getfd\", lambda: call(438, os.pidfd_open(p), 3, 0))\n"
    "    for name in (\"mem\", \"environ\", \"maps\", \"syscall\", \"stack\"): no(name, lambda: "
    "open(f\"/proc/{p}/{name}\", \"rb\").read(1))\n"
    "    for name in (\"fd\", \"fdinfo\", \"map_files\", \"cwd/\", \"root/\"): no(name, lambda: "
    "os.listdir(f\"/proc/{p}/{name}\"))\n"
    "    for name in (\"fd/0\", \"fd/1\", \"fd/3\"): no(name, lambda: open(f\"/proc/{p}/{name}\", \"rb\"))\n"
    "os.kill(-1, 0)\n"
    "for top in (\"/workspace\", \"/tmp\", \"/dev\", \"/run\"):\n"
    "    for d, _, names in os.walk(top):\n"
    "        for n in names:\n"
    "            try: data = open(os.path.join(d, n), \"rb\").read(1000000) if os.path.isfile(os.path.join(d, n)) else "
    "b\"\"\n"
    "            except OSError: continue\n"
    "            if b\"THE-\" + b\"EVENTS\" in data or b\"THE-\" + b\"APPROVALS\" in data: print(\"OPEN\", d, n)\n"
    "print(\"tried\", flush=True)\n"
    "try: os.kill(-1, 9)\n"
    "except OSError: pass\n"
    "'";

static void the_agent_cannot_reach_it(void **s)
{
	(void)s;
	struct found f;
	bridged(&f,
		QUIET COPY AGENT_ENDED "[ -n \"$(tr -d '\\0' <&3 | grep -ao THE-EVENTS)\" ] && echo given; "
				       "echo alive; exit 7",
		tries);
	if (holds(f.ran.output, "others 0\n"))
		fail_msg("no process of the bridge's is there");
	says(&f, "held signal 9\n");
	says(&f, "held trace\n");
	says(&f, "held environ\n");
	says(&f, "held fd/3\n");
	says(&f, "tried\n");
	says(&f, "given\nalive\n");
	if (holds(f.ran.output, "OPEN"))
		fail_msg("<%.*s>", (int)f.ran.output.n, (const char *)f.ran.output.p);
	assert_int_equal(f.ran.status, 7);
	found_free(&f);
}

static void the_claim_is_the_bridges(void **s)
{
	(void)s;
	struct found f;
	bridged(&f, QUIET COPY, "echo '{\"status\":\"completed\"}' >/workspace/response.json");
	assert_int_equal(f.claim_n, 0);
	found_free(&f);
	/* More than is taken is none. */
	bridged(&f, QUIET COPY "trap '' XFSZ; head -c 2000000 /dev/zero >&4; true", "true");
	assert_true(f.claim_n == 0 || f.claim.response.n <= 1000000);
	found_free(&f);
}

static void what_it_is_told_of_the_end(void **s)
{
	(void)s;
	static const struct {
		const char *agent;
		int32_t status;
	} ends[] = {{"exit 0", 0}, {"exit 3", 3}, {"kill -9 $$", -9}, {"sleep 1000 & echo left; exit 4", 4}};
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		struct found f;
		char want[32];
		bridged(&f, QUIET COPY "echo told $(head -c 4 <&6 | od -An -td4)", ends[i].agent);
		snprintf(want, sizeof want, "told %d\n", (int)ends[i].status);
		says(&f, want);
		assert_int_equal(f.ran.status, 0);
		assert_true(f.ran.started);
		found_free(&f);
	}
}

static void an_agent_that_is_not_there(void **s)
{
	(void)s;
	static const char *const bridge[] = {"/bin/sh", "-c", QUIET COPY "echo told $(head -c 4 <&6 | od -An -td4)",
					     NULL};
	static const char *const missing[] = {"/opt/nothing", NULL}, *const env[] = {NULL};
	struct found f;
	int up = up_new();
	up_source_end(up, 0);
	up_request(up, "{}");
	up_bridge(up, bridge, "x", "x");
	up_agent(up, ENDLESS, 10000, missing, env);
	up_go(up, 1, 1000, 4000000, 100000);
	assert_int_equal(box_all(&f, up), 0);
	says(&f, "pinfold: starting its program: No such file or directory\n");
	says(&f, "told 127\n");
	assert_true(f.ran.started);
	found_free(&f);
	/* Nor a bridge. */
	up = up_new();
	up_source_end(up, 0);
	up_request(up, "{}");
	up_bridge(up, missing, "x", "x");
	up_agent(up, ENDLESS, 10000, (const char *const[]){"/bin/touch", "begun", NULL}, env);
	up_go(up, 1, 1000, 4000000, 100000);
	assert_int_equal(box_all(&f, up), 0);
	says(&f, "pinfold: starting its bridge: No such file or directory\n");
	assert_false(f.ran.started);
	assert_null(found_entry(&f, "begun"));
	found_free(&f);
}

/* They are given to the agent's main process, as without a bridge, and to nobody else. */
static void keys_are_the_agents(void **s)
{
	(void)s;
	static const char *const bridge[] = {"/bin/sh", "-c", QUIET "env; cat /workspace/.key; " COPY, NULL};
	static const char *const agent[] = {"/bin/sh", "-c", "echo agent has $A_KEY and $(cat /workspace/.key)", NULL};
	static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
	struct found f;
	int up = up_new();
	up_source_end(up, 0);
	up_request(up, "{}");
	up_key(up, "A_KEY", "", "of-the-variable");
	up_key(up, "", ".key", "of-the-file");
	up_bridge(up, bridge, "x", "x");
	up_agent(up, ENDLESS, 10000, agent, env);
	up_go(up, 1, 1000, 4000000, 100000);
	assert_int_equal(box_all(&f, up), 0);
	says(&f, "agent has of-the-variable and of-the-file\n");
	says(&f, "TZ=UTC\n");
	assert_false(holds(f.ran.output, "A_KEY"));
	says(&f, "/workspace/.key: ");
	found_free(&f);
}

/* With its bridge the agent goes, at once and whatever it did against that. */
static void without_its_bridge_there_is_no_agent(void **s)
{
	(void)s;
	static const struct {
		const char *bridge;
		int32_t status;
	} ends[] = {{"exit 2", 2},
		    {QUIET "read -r line; exit 0", 0},
		    {TALKS "read -r line; kill -9 $$", -9},
		    {QUIET "read -r line; kill -11 $$", -11}};
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		struct found f;
		bridged(&f, ends[i].bridge,
			"trap '' TERM HUP INT PIPE; setsid sh -c 'echo >begun; while :; do sleep 1; done' & "
			"while [ ! -e begun ]; do sleep 0.05; done; echo begun; while :; do sleep 1; done");
		assert_int_equal(f.ran.status, ends[i].status);
		assert_false(f.ran.timed_out || f.ran.stopped);
		/* One that never said that it is ready, had no agent. */
		assert_true((found_entry(&f, "begun") != NULL) == (i > 0));
		assert_int_equal(f.collected_n, 1);
		found_free(&f);
	}
}

static void floods_both_ways(void **s)
{
	(void)s;
	struct found f;
	bridged(&f, TALKS "(head -c 30000000 /dev/zero >&7; exec 7>&-) & exec 7>&-; wc -c; echo over",
		"(head -c 30000000 /dev/zero | tee /dev/stderr) & wc -c >got; wait");
	assert_int_equal(f.ran.status, 0);
	assert_true(f.ran.truncated);
	assert_true(same(found_entry(&f, "got")->content, "30000000\n"));
	assert_memory_equal(f.ran.output.p + f.ran.output.n - 14, "30000000\nover\n", 14);
	found_free(&f);
}

static void both_are_asked_to_stop(void **s)
{
	(void)s;
	struct box_run b;
	struct found f;
	box_start(&b,
		  up_bridged("trap 'echo bridge asked; asked=1' TERM; " QUIET
			     "while [ -z \"$asked\" ]; do sleep 0.05; done; " COPY,
			     "trap 'echo agent asked; exit 3' TERM; echo >up; while :; do sleep 0.05; done", ENDLESS));
	if (!WAIT_FOR(box_grown(&b, 6)))
		fail_msg("the agent never started");
	usleep(500000); /* let the shells set their traps; too early only means that the default ends them */
	kill(b.pid, SIGTERM);
	assert_int_equal(box_wait(&b), 0);
	found_read(&f, b.result);
	assert_true(f.ran.stopped && !f.ran.timed_out);
	assert_int_equal(f.collected_n, 1);
	found_free(&f);
	box_done(&b);
}

/* The wall time holds both; a person's does not count. */
static void wall_time_ends_both(void **s)
{
	(void)s;
	struct found f;
	assert_int_equal(box_all(&f, up_bridged("trap '' TERM; " QUIET "while :; do sleep 1; done",
						"trap '' TERM; while :; do sleep 1; done", 1)),
			 0);
	assert_true(f.ran.timed_out);
	found_free(&f);
	/* One whose agent has ended, too, and one that is never ready. */
	assert_int_equal(box_all(&f, up_bridged("trap '' TERM; " QUIET "while :; do sleep 1; done", "true", 1)), 0);
	assert_true(f.ran.timed_out);
	found_free(&f);
	assert_int_equal(box_all(&f, up_bridged("while :; do sleep 1; done", "touch begun", 1)), 0);
	assert_true(f.ran.timed_out);
	assert_null(found_entry(&f, "begun"));
	found_free(&f);
}

static void it_comes_once_and_before_the_agent(void **s)
{
	(void)s;
	static const char *const argv[] = {"/bin/true", NULL}, *const none[] = {NULL};
	for (int i = 0; i < 3; i++) {
		struct found f;
		int up = up_new();
		up_source_end(up, 0);
		if (i != 1)
			up_request(up, "{}");
		up_bridge(up, i == 2 ? none : argv, "x", "x");
		up_bridge(up, argv, "x", "x");
		assert_int_equal(box_all(&f, up), 1);
		assert_int_equal(f.broken_n, 1);
		assert_non_null(strstr(f.broken.detail, i == 2 ? "no program" : "out of place"));
		found_free(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_is_a_user_of_its_own),
	    cmocka_unit_test(the_agent_cannot_reach_it),
	    cmocka_unit_test(the_claim_is_the_bridges),
	    cmocka_unit_test(what_it_is_told_of_the_end),
	    cmocka_unit_test(an_agent_that_is_not_there),
	    cmocka_unit_test(keys_are_the_agents),
	    cmocka_unit_test(without_its_bridge_there_is_no_agent),
	    cmocka_unit_test(floods_both_ways),
	    cmocka_unit_test(both_are_asked_to_stop),
	    cmocka_unit_test(wall_time_ends_both),
	    cmocka_unit_test(it_comes_once_and_before_the_agent),
	};
	if (geteuid() != 0) {
		puts("1..0 # SKIP these tests make namespaces: run them as root");
		return 77;
	}
	return cmocka_run_group_tests_name("bridged", tests, NULL, NULL);
}
