/*
 * pinfold-bridge: stands between the control plane and an agent that others wrote. It turns what the agent says into
 * events of the run and what it asks into questions to people, and leaves its claim.
 *
 * pinfold-bridge DIALECT, inside a box. In an agent profile's command it stands before the program, with "--" between
 * them; the runner starts both, each as a user of its own, and lays their pipes (lib/bridged.h).
 *
 * The agent can neither end it, look into it nor have its tokens: they come in a descriptor and lie in no file. When it
 * ends, so does the agent. It opens nothing, starts nothing and speaks to the gateway alone (CONFINE_BRIDGE): what it
 * reads is hostile. Each line of the agent is copied to standard output, which is the run's transcript.
 *
 * Exit status 0: the agent says that it did its work; 1: not; 2: wrong use. A hint: checks decide.
 */
#include "bridge/bridge.h"
#include "gen/bundle_msg.h"
#include "lib/bridged.h"
#include "lib/chan.h"
#include "lib/confine.h"
#include "lib/die.h"
#include "lib/num.h"
#include "lib/own.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RESPONSE_MAX = 60000, LOOK_MS = 200, GRACE_MS = 5000, NOT_FOUND = 127 };

static const struct dialect *const dialects[] = {
    &dialect_acp, &dialect_codex,    &dialect_codex_ask, &dialect_claude, &dialect_claude_ask,
    &dialect_pi,  &dialect_opencode, &dialect_copilot,   &dialect_gemini, &dialect_acp_gemini};

static volatile sig_atomic_t stop_asked;

static void on_signal(int sig)
{
	if (sig == SIGTERM)
		stop_asked = 1;
}

/* What its tokens are, and what is known of its agent. */
struct given {
	struct secret events, approvals;
	bool task, bridge; /* seen */
};

struct child {
	bool ended;
	int status;
};

/* The runner says when the agent has ended. */
static void look(struct child *c)
{
	int32_t status;

	if (read(BRIDGE_FD_ENDED, &status, sizeof status) != sizeof status)
		fatal("the runner is gone");
	c->ended = true;
	c->status = status < 0 ? 128 - status : status;
}

/* One line: to the transcript, and to the dialect where it is an object. */
static void one_line(struct bridge *b, char *line, size_t n)
{
	line[n] = '\n';
	(void)!write_all(BRIDGE_FD_OUT, line, n + 1);
	line[n] = '\0';
	line_take(b, line, n);
}

/* Until the agent has ended, and everything that it had written by then was read. */
static void attend(struct bridge *b, struct child *c)
{
	struct lines *lines = &b->from;
	sigset_t none;
	bool told = false;
	uint64_t leave_at = UINT64_MAX;

	sigemptyset(&none);
	while (timer_ms() < leave_at) {
		struct pollfd p[2] = {{.fd = lines->over ? -1 : lines->fd, .events = POLLIN},
				      {.fd = c->ended ? -1 : BRIDGE_FD_ENDED, .events = POLLIN}};
		char *line;
		size_t n;
		bool over = c->ended; /* before it was looked at what there is */
		struct timespec t = {.tv_nsec = over ? 0 : LOOK_MS * 1000000L};
		int ready = ppoll(p, 2, &t, &none);
		if (ready > 0 && p[0].revents != 0 && !lines_fill(lines))
			say_end(b, false, "no memory for what the agent says");
		while ((line = lines_next(lines, &n)) != NULL)
			one_line(b, line, n);
		if (ready > 0 && p[1].revents != 0)
			look(c);
		if (over && (ready <= 0 || lines->over))
			break;
		if (stop_asked && !told && b->dialect->stop != NULL)
			b->dialect->stop(b);
		told = told || stop_asked;
		/* One that was spoken to does not end by itself; with this process the agent is ended. */
		if (b->course != GOING && b->to >= 0) {
			close(b->to);
			b->to = -1;
			leave_at = timer_ms() + GRACE_MS;
		}
	}
	say_whole(b);
	if (lines->skipped > 0)
		log_warn("%u lines of the agent were longer than %d bytes", lines->skipped, LINE_MAX_BYTES);
	lines_free(lines);
}

static void conclude(struct bridge *b, const struct child *c)
{
	char why[128];

	snprintf(why, sizeof why, "its exit status was %d%s", c->status,
		 c->status == NOT_FOUND ? ": the program was not found in the sandbox, which shows /usr alone" : "");
	/* Where it said nothing of its end. One that is spoken to has an end to say. */
	say_end(b, c->status == 0 && !b->dialect->talks, c->status != 0 ? why : "it ended before its answer");
}

/* Its claim, which the runner collects. */
static bool leave(struct bridge *b)
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
	buf_addc(&out, '\n');
	return !buf_failed(&out) && write_all(BRIDGE_FD_CLAIM, out.p, out.n);
}

/* The task, with the run's permissions by kind of tool, which are for agents to honour. */
static const char *read_task(struct bridge *b, struct wire_bytes json)
{
	const char *why = task_parse(&b->task, json.p, json.n);

	arena_init(&b->request, 8 << 20);
	const struct json *root = json_parse(&b->request, json.p, json.n, JSON_DEPTH, BRIDGE_NODES, NULL);
	b->permissions = inner(root, "permissions");
	return why == NULL && root == NULL ? "the request cannot be read" : why;
}

/* What is for it among the frames of the upload. NULL, or why it cannot be used. */
static const char *read_upload(struct bridge *b, struct given *given)
{
	struct bundle upload;
	const uint8_t *frame;
	size_t n;
	uint16_t number;
	uint64_t op;
	const char *why = NULL;

	if (!bundle_open(&upload, BRIDGE_FD_UPLOAD, BN_MAXFRAME))
		return "the upload cannot be read";
	while (why == NULL && bundle_next(&upload, &frame, &n) > 0) {
		struct bn_request request;
		struct bn_bridge tokens;
		if (!wire_peek(frame, n, &number, &op))
			continue;
		if (number == BN_REQUEST && bn_get_request(frame, n, &request)) {
			given->task = true;
			why = read_task(b, request.json);
		} else if (number == BN_BRIDGE && bn_get_bridge(frame, n, &tokens)) {
			given->bridge = secret_set(&given->events, tokens.events.p, tokens.events.n) &&
					secret_set(&given->approvals, tokens.approvals.p, tokens.approvals.n);
		}
	}
	bundle_close(&upload);
	close(BRIDGE_FD_UPLOAD);
	return why == NULL && !(given->task && given->bridge) ? "the upload is not for a bridge" : why;
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

/* As lib/bridged.h says, and as nobody else does. */
static bool descriptors(void)
{
	for (int fd = 0; fd < BRIDGE_FD__FIRST_FREE; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			return false;
	return fcntl(BRIDGE_FD_TO, F_SETFL, O_NONBLOCK) == 0;
}

int main(int argc, char **argv)
{
	static struct bridge b;
	static struct given given;
	struct sigaction sa = {.sa_handler = on_signal};
	struct child c = {0};

	log_open("pinfold-bridge");
	b.dialect = argc == 2 ? dialect_find(argv[1]) : NULL;
	if (b.dialect == NULL || !descriptors()) {
		log_error("usage: pinfold-bridge acp|codex|codex-ask|claude|claude-ask|pi|opencode|copilot -- PROGRAM "
			  "[WORD...], as the "
			  "first words "
			  "of an agent profile's command");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	sigaction(SIGTERM, &sa, NULL);
	const char *why = read_upload(&b, &given);
	if (why != NULL)
		fatal("%s", why);
	if ((b.http = http_new(b.task.gateway)) == NULL)
		fatal("out of memory");
	if (!undumpable() || !confine(CONFINE_BRIDGE, NULL, 0))
		fatal("this process cannot be confined: %s", strerror(errno));
	b.events = (struct events){.http = b.http, .token = &given.events, .task = &b.task};
	b.approve = (struct approve){b.http, &given.approvals, &b.events, &b.task};
	buf_init(&b.chunk, 2 * EVENT_TEXT);
	lines_init(&b.from, BRIDGE_FD_FROM);
	event_post(&b.events, "agent.started", NULL);
	b.to = b.dialect->talks ? BRIDGE_FD_TO : -1;
	if (!b.dialect->talks)
		close(BRIDGE_FD_TO);
	const char kind = b.dialect->talks ? BRIDGE_TALKS : BRIDGE_QUIET;
	if (!write_all(BRIDGE_FD_READY, &kind, 1))
		fatal("the runner is gone");
	if (b.dialect->begin != NULL && !b.dialect->begin(&b))
		say_end(&b, false, "the agent does not listen");
	attend(&b, &c);
	conclude(&b, &c);
	if (!leave(&b))
		log_error("the claim cannot be written: %s", strerror(errno));
	if (b.dialect->end != NULL)
		b.dialect->end(&b);
	log_info("ended %s%s%s", b.course == ENDED_WELL ? "well" : "badly", b.why[0] != '\0' ? ": " : "", b.why);
	secret_wipe(&given.events);
	secret_wipe(&given.approvals);
	return b.course == ENDED_WELL ? 0 : 1;
}
