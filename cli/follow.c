/*
 * Following a run: its events as lines for people. Who began it at a terminal has a line that says how it goes on, and
 * is asked what its agent asks; everything waits in one place, so that an answer given elsewhere is heard at the
 * prompt.
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/asking.h"
#include "cli/cli.h"
#include "cli/live.h"
#include "cli/tail.h"
#include "lib/num.h"

enum { STEP_MS = 1000, HELD_MAX = 8 << 20 };

/* Not in a struct: a signal handler has no other place. */
static volatile sig_atomic_t interrupted;

struct follow {
	const struct cli *cli;
	const char *run;
	bool attended; /* by who began it */
	bool told;     /* how a person can answer */
	bool look;     /* something was asked or decided */
	struct live live;
	struct asking asking;
	struct buf held; /* lines that came while a card is on the screen */
	struct secret device;
};

/* "12:00:01  tool.call            {...}" */
static void print_event(const struct json *e)
{
	const struct json *data = json_get(e, "data");
	char clock[32];

	say_time(clock, json_get(e, "created_at"), false);
	printf("%s  ", clock);
	say_foreign(stdout, member(e, "event_type"), strlen(member(e, "event_type")));
	if (data != NULL && data->count > 0) {
		struct buf b;
		buf_init(&b, 1 << 20);
		json_write(&b, data);
		fputs("  ", stdout);
		size_t most = utf8_fit((const char *)b.p, b.n, 300);
		say_foreign(stdout, (const char *)b.p, most);
		if (most < b.n)
			fputs(" ...", stdout);
		buf_free(&b);
	}
	fputc('\n', stdout);
}

static void print_line(const struct cli *cli, const char *line, size_t n, const struct json *e)
{
	if (cli->json)
		say_json(line, n);
	else
		print_event(e);
}

/* What came while a card was on the screen, which it would have pushed away. */
static void release(struct follow *f)
{
	for (size_t at = 0; at < f->held.n;) {
		const char *line = (const char *)f->held.p + at;
		size_t n = (size_t)((const char *)memchr(line, '\n', f->held.n - at) - line);
		own_arena struct arena a;
		arena_init(&a, 8 << 20);
		const struct json *e = json_parse(&a, line, n, JSON_DEPTH_MODEL, 100000, NULL);
		if (e != NULL)
			print_line(f->cli, line, n, e);
		at += n + 1;
	}
	buf_reset(&f->held);
	fflush(stdout);
}

static void take(void *user, const char *line, size_t n, const struct json *e)
{
	struct follow *f = user;
	const char *type = member(e, "event_type");

	if (f->attended) {
		live_event(&f->live, e);
		live_hide(&f->live);
		f->look = f->look || strncmp(type, "approval.", 9) == 0;
	}
	if (f->asking.open) {
		size_t was = f->held.n;
		buf_add(&f->held, line, n);
		buf_addc(&f->held, '\n');
		if (!buf_failed(&f->held))
			return;
		f->held.n = was; /* no room: it is better seen at the wrong time than never */
		f->held.why = 0;
	}
	print_line(f->cli, line, n, e);
	fflush(stdout);
	if (f->attended && !f->told && !token_device_named(f->cli) && strcmp(type, "approval.requested") == 0) {
		f->told = true;
		fprintf(stderr,
			"The agent waits for a person: answer in the page, %s/#/run/%s, or with \"pinfold approve %s\" "
			"and a "
			"device's token.\n",
			f->cli->server, f->run, f->run);
	}
}

int follow_events(const struct cli *cli, const char *run, bool follow)
{
	struct follow f = {.cli = cli, .run = run};
	int status;

	if (!follow) {
		struct http_answer answer;
		char path[256];
		snprintf(path, sizeof path, "/v1/runs/%s/events", run);
		if ((status = http_call(cli, path, NULL, &answer)) != 0)
			return status;
		buf_init(&f.held, HELD_MAX);
		buf_add(&f.held, answer.body.p, answer.body.n);
		buf_free(&answer.body);
		release(&f);
		buf_free(&f.held);
		return 0;
	}
	struct tail *t = tail_open(cli, run, take, &f, &status);
	if (t == NULL)
		return status;
	enum tail_state state;
	bool readable;
	do
		state = tail_step(t, -1, STEP_MS, &readable);
	while (state == TAIL_GOES_ON);
	status = state == TAIL_ENDED ? 0 : tail_status(t);
	tail_free(t);
	return status;
}

static void interrupt(int sig)
{
	(void)sig;
	interrupted = 1;
}

/* The first asks for the run's end, the second ends this program. A caller that ignores it does so further. */
static void heed_interrupts(void)
{
	struct sigaction was, ours = {.sa_handler = interrupt, .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};

	if (sigaction(SIGINT, NULL, &was) == 0 && was.sa_handler != SIG_IGN)
		(void)sigaction(SIGINT, &ours, NULL);
}

static void cancel(struct follow *f)
{
	struct http_answer answer;
	char path[256];

	live_hide(&f->live);
	if (f->asking.open) {
		fputs("\nquestion ", stderr);
		say_foreign(stderr, f->asking.request, strlen(f->asking.request));
		fputs(": nothing is decided\n", stderr);
	}
	f->asking.open = false;
	f->asking.deaf = true;
	release(f);
	fputs("\nThe run's end is asked for; interrupt again to leave it alone.\n", stderr);
	snprintf(path, sizeof path, "/v1/runs/%s/cancel", f->run);
	if (http_call(f->cli, path, "", &answer) == 0)
		buf_free(&answer.body);
}

/* What was held back goes before the next card. */
static void look(struct follow *f)
{
	bool was;

	live_hide(&f->live);
	do {
		if (!f->asking.open)
			release(f);
		was = f->asking.open;
		/* If that fails, the next step tries again. */
		f->look = asking_look(&f->asking) != 0;
	} while (!f->look && was && !f->asking.open);
}

static enum tail_state attend(struct follow *f, struct tail *t)
{
	bool readable;
	/* Where no question is put, what is typed is left for who reads it next. */
	enum tail_state state = tail_step(t, f->asking.open ? STDIN_FILENO : -1, STEP_MS, &readable);

	if (interrupted != 0) {
		interrupted = 0;
		cancel(f);
	}
	if (readable && f->asking.open) {
		asking_read(&f->asking);
		f->look = f->look || !f->asking.open;
	}
	if (f->device.n > 0 && f->look)
		look(f);
	if (!f->asking.open) {
		release(f);
		live_show(&f->live);
	}
	return state;
}

/* How many model requests the run may make; 0: it is not said. */
static unsigned requests_of(const struct cli *cli, const char *run)
{
	own_arena struct arena a = {0};
	struct cli quiet = *cli;
	int64_t most = 0;
	int status;

	if (!isatty(STDERR_FILENO))
		return 0;
	quiet.quiet = true;
	arena_init(&a, 16 << 20);
	const struct json *v = fetch_run(&quiet, run, &a, &status);
	const struct json *usage = v != NULL && v->type == JSON_OBJECT ? json_get(v, "usage") : NULL;
	v = usage != NULL && usage->type == JSON_OBJECT ? json_get(usage, "maxModelRequests") : NULL;
	return v != NULL && json_int(v, 0, 1000000, &most) ? (unsigned)most : 0;
}

int attend_run(const struct cli *cli, const char *run)
{
	struct follow f = {.cli = cli, .run = run, .attended = true};
	enum tail_state state;
	int status;

	f.asking = (struct asking){.cli = cli, .token = &f.device, .run = run, .patient = true};
	if (!cli->json && asking_possible() && token_device_named(cli) && !token_device(cli, &f.device))
		return EXIT_USAGE;
	struct tail *t = tail_open(cli, run, take, &f, &status);
	if (t != NULL) {
		buf_init(&f.held, HELD_MAX);
		live_open(&f.live, requests_of(cli, run));
		heed_interrupts();
		do
			state = attend(&f, t);
		while (state == TAIL_GOES_ON);
		live_hide(&f.live);
		status = state == TAIL_ENDED ? 0 : tail_status(t);
		tail_free(t);
		buf_free(&f.held);
	}
	secret_wipe(&f.device);
	return status;
}
