/* See live.h. What it writes to the terminal, besides text, is a return and "erase to the end of the line". */
#include "cli/live.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/num.h"

enum { BAR = 16 };

void live_open(struct live *l, unsigned most)
{
	const char *term = getenv("TERM");

	*l = (struct live){.phase = "waiting", .most = most, .since = timer_ms()};
	l->on = isatty(STDOUT_FILENO) && isatty(STDERR_FILENO) && term != NULL && strcmp(term, "dumb") != 0;
}

void live_event(struct live *l, const struct json *event)
{
	const char *type = member(event, "event_type");

	l->events++;
	l->calls += strcmp(type, "model.called") == 0;
	if (strcmp(type, "run.phase") == 0)
		snprintf(l->phase, sizeof l->phase, "%s", member(json_get(event, "data"), "phase"));
}

/* How far it is, of BAR: a phase behind another; while the agent works, as far as it has used up its model requests. */
static unsigned filled(const struct live *l)
{
	static const char *const phases[] = {"waiting", "staging", "executing", "collecting", "verifying", "cleaning"};
	static const unsigned at[] = {0, 1, 2, 12, 13, BAR};
	const char *phase = strcmp(l->phase, "awaiting_approval") == 0 ? "executing" : l->phase;
	unsigned used = l->most > 0 ? (l->calls < l->most ? l->calls : l->most) * 9 / l->most : 0;

	for (size_t i = 0; i < sizeof phases / sizeof *phases; i++)
		if (strcmp(phases[i], phase) == 0)
			return at[i] + (i == 2 ? used : 0);
	return 0;
}

void live_show(struct live *l)
{
	struct winsize size = {0};
	char line[160], of[24] = "";
	uint64_t s = (timer_ms() - l->since) / 1000;
	unsigned done = filled(l);

	if (!l->on)
		return;
	if (l->most > 0)
		snprintf(of, sizeof of, " of %u", l->most);
	int n = snprintf(line, sizeof line, "%s, %llu:%02llu, %u event%s, %u%s model request%s", l->phase,
			 (unsigned long long)(s / 60), (unsigned long long)(s % 60), l->events,
			 l->events == 1 ? "" : "s", l->calls, of, l->calls == 1 && of[0] == '\0' ? "" : "s");
	/* A line that is wrapped cannot be taken away again. */
	int most = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
	fflush(stdout);
	fputs("\r\033[K", stderr);
	if (most > 60) {
		most -= BAR + 3;
		fputc('[', stderr);
		say_colour(stderr, COLOUR_GOOD);
		for (unsigned i = 0; i < done; i++)
			fputc('#', stderr);
		say_colour(stderr, COLOUR_NONE);
		fprintf(stderr, "%*s] ", (int)(BAR - done), "");
	}
	say_fit(stderr, line, n > 0 ? (size_t)n : 0, (size_t)most);
	fflush(stderr);
	l->shown = true;
}

void live_hide(struct live *l)
{
	if (!l->shown)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	l->shown = false;
}
