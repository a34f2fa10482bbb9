/*
 * pinfold-bridge: stands between the runner and an agent that others wrote. It starts the agent, turns what it says
 * into events of the run and what it asks into questions to people, and leaves its claim.
 *
 * pinfold-bridge DIALECT -- PROGRAM [WORD...], inside a box, in place of the program in an agent profile's command.
 *
 * It runs as the agent's user: an agent that wants to can end it, or do what it should have asked for. The box is the
 * boundary; this is how people see and steer agents that behave. It hides its own memory, and so the tokens, from them.
 * Each line of the agent is copied to standard output, which is the run's transcript.
 *
 * Exit status 0: the agent says that it did its work; 1: not; 2: wrong use. A hint: checks decide.
 */
#include "agent/response.h"
#include "agent/tokenfile.h"
#include "bridge/bridge.h"
#include "bridge/lines.h"
#include "lib/die.h"
#include "lib/num.h"
#include "lib/own.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REQUEST_MAX = 1000000, RESPONSE_MAX = 60000, LOOK_MS = 200, GRACE_MS = 5000, NOT_FOUND = 127 };

static const struct dialect *const dialects[] = {&dialect_acp,      &dialect_codex,      &dialect_codex_ask,
						 &dialect_claude,   &dialect_claude_ask, &dialect_pi,
						 &dialect_opencode, &dialect_copilot};

static volatile sig_atomic_t stop_asked;

static void on_signal(int sig)
{
	if (sig == SIGTERM)
		stop_asked = 1;
}

struct child {
	pid_t pid;
	int to, from;
	bool ended;
	int status;
};

/* The agent with pipes of ours; its standard error is ours. */
static bool start(struct child *c, char *const *argv, bool talks)
{
	int in[2] = {-1, -1}, out[2];

	if ((talks && pipe2(in, O_CLOEXEC) != 0) || pipe2(out, O_CLOEXEC) != 0)
		return false;
	*c = (struct child){.pid = fork(), .to = in[1], .from = out[0]};
	if (c->pid == 0) {
		int from = talks ? in[0] : open("/dev/null", O_RDONLY | O_CLOEXEC);
		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		signal(SIGPIPE, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
		if (from >= 0 && dup2(from, 0) == 0 && dup2(out[1], 1) == 1)
			execvp(argv[0], argv);
		log_error("%s: %s", argv[0], strerror(errno));
		_exit(NOT_FOUND);
	}
	if (talks)
		close(in[0]);
	close(out[1]);
	return c->pid > 0;
}

static void look(struct child *c)
{
	int st;

	if (!c->ended && waitpid(c->pid, &st, WNOHANG) == c->pid) {
		c->ended = true;
		c->status = WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
	}
}

/* One line: to the transcript, and to the dialect where it is an object. */
static void one_line(struct bridge *b, char *line, size_t n)
{
	own_arena struct arena arena;

	line[n] = '\n';
	(void)!write_all(1, line, n + 1);
	line[n] = '\0';
	arena_init(&arena, BRIDGE_ARENA);
	const struct json *root = json_parse(&arena, line, n, JSON_DEPTH_MODEL, BRIDGE_NODES, NULL);
	if (root != NULL && root->type == JSON_OBJECT && b->course == GOING)
		b->dialect->line(b, root);
}

/* Until the agent has ended, and everything that it had written by then was read. */
static void attend(struct bridge *b, struct child *c)
{
	struct lines lines;
	sigset_t none;
	bool told = false;
	uint64_t kill_at = UINT64_MAX;

	sigemptyset(&none);
	lines_init(&lines, c->from);
	for (;;) {
		struct pollfd p = {.fd = lines.over ? -1 : c->from, .events = POLLIN};
		char *line;
		size_t n;
		look(c);
		struct timespec t = {.tv_nsec = c->ended ? 0 : LOOK_MS * 1000000L};
		int ready = ppoll(&p, 1, &t, &none);
		if (ready > 0 && !lines_fill(&lines))
			say_end(b, false, "no memory for what the agent says");
		while ((line = lines_next(&lines, &n)) != NULL)
			one_line(b, line, n);
		if (c->ended && (ready <= 0 || lines.over))
			break;
		if (stop_asked && !told && b->dialect->stop != NULL)
			b->dialect->stop(b);
		told = told || stop_asked;
		/* One that was spoken to does not end by itself. */
		if (b->course != GOING && c->to >= 0) {
			close(c->to);
			c->to = b->to = -1;
			kill_at = timer_ms() + GRACE_MS;
		}
		if (timer_ms() >= kill_at) {
			kill(c->pid, SIGKILL);
			kill_at = UINT64_MAX;
		}
	}
	say_whole(b);
	if (lines.skipped > 0)
		log_warn("%u lines of the agent were longer than %d bytes", lines.skipped, LINE_MAX_BYTES);
	lines_free(&lines);
}

static void conclude(struct bridge *b, const struct child *c)
{
	char why[128];

	snprintf(why, sizeof why, "its exit status was %d%s", c->status,
		 c->status == NOT_FOUND ? ": the program was not found in the sandbox, which shows /usr alone" : "");
	/* Where it said nothing of its end. One that is spoken to has an end to say. */
	say_end(b, c->status == 0 && !b->dialect->talks, c->status != 0 ? why : "it ended before its answer");
}

static bool leave(struct bridge *b, int workspace)
{
	own_buf struct buf out;
	struct jw w;

	buf_init(&out, RESPONSE_MAX);
	jw_init(&w, &out);
	jw_open(&w, '{');
	jw_kstr(&w, "status", b->course == ENDED_WELL ? "completed" : "failed");
	jw_kstr(&w, "summary", b->course == ENDED_WELL || b->why[0] == '\0' ? b->said : b->why);
	jw_close(&w, '}');
	if (buf_cstr(&out) != NULL)
		event_post(&b->events, "agent.finished", buf_cstr(&out));
	return response_leave(workspace, &out);
}

/* The run's permissions by kind of tool, which are for agents to honour. */
static bool read_permissions(struct bridge *b, int workspace)
{
	size_t n;
	own_free char *text = file_read(workspace, "request.json", REQUEST_MAX, &n);

	arena_init(&b->request, 4 * REQUEST_MAX);
	const struct json *root =
	    text != NULL ? json_parse(&b->request, text, n, JSON_DEPTH, BRIDGE_NODES, NULL) : NULL;
	b->permissions = inner(root, "permissions");
	return root != NULL;
}

static const struct dialect *dialect_find(const char *name)
{
	for (size_t i = 0; i < sizeof dialects / sizeof *dialects; i++)
		if (strcmp(dialects[i]->name, name) == 0)
			return dialects[i];
	return NULL;
}

#ifdef __SANITIZE_ADDRESS__
/* The leak sanitizer traces its own process at the end, which one that hides does not let it; it asks here before. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return 1;
}
#endif

int main(int argc, char **argv)
{
	static struct bridge b;
	own_tokens struct tokens tokens = {0};
	struct sigaction sa = {.sa_handler = on_signal};
	struct child c;
	const char *file;

	const char *folder = "/workspace";

	log_open("pinfold-bridge");
	if (argc > 3 && strcmp(argv[1], "--workspace") == 0) { /* of a test */
		folder = argv[2];
		argc -= 2;
		argv += 2;
	}
	b.dialect = argc > 3 && strcmp(argv[2], "--") == 0 ? dialect_find(argv[1]) : NULL;
	if (b.dialect == NULL) {
		log_error("usage: pinfold-bridge acp|codex|codex-ask|claude|claude-ask|pi|opencode|copilot -- PROGRAM "
			  "[WORD...]");
		return 2;
	}
	if (!undumpable())
		fatal("this process cannot be made undumpable: %s", strerror(errno));
	signal(SIGPIPE, SIG_IGN);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGCHLD, &sa, NULL);
	own_fd int workspace = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *why = workspace < 0 ? strerror(errno) : tokenfiles_take(workspace, &tokens, &file);
	if (why != NULL)
		fatal("%s: %s", workspace < 0 ? folder : file, why);
	why = task_read(&b.task, workspace);
	if (why != NULL || !read_permissions(&b, workspace))
		fatal("%s", why != NULL ? why : "request.json cannot be read");
	if ((b.http = http_new(b.task.gateway)) == NULL)
		fatal("out of memory");
	b.events = (struct events){.http = b.http, .token = &tokens.events, .task = &b.task};
	b.approve = (struct approve){b.http, &tokens.approvals, &b.events, &b.task};
	buf_init(&b.chunk, 2 * EVENT_TEXT);
	event_post(&b.events, "agent.started", NULL);
	if (!start(&c, argv + 3, b.dialect->talks))
		fatal("the agent cannot be started: %s", strerror(errno));
	b.to = c.to;
	if (b.dialect->begin != NULL && !b.dialect->begin(&b))
		say_end(&b, false, "the agent does not listen");
	attend(&b, &c);
	conclude(&b, &c);
	if (!leave(&b, workspace))
		log_error("response.json cannot be written: %s", strerror(errno));
	log_info("ended %s%s%s", b.course == ENDED_WELL ? "well" : "badly", b.why[0] != '\0' ? ": " : "", b.why);
	return b.course == ENDED_WELL ? 0 : 1;
}
