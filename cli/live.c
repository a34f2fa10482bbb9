/* See live.h. What it writes to the terminal, besides text, is a return and "erase to the end of the line". */
#include "cli/live.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/num.h"

void live_open(struct live *l)
{
	const char *term = getenv("TERM");

	*l = (struct live){.phase = "waiting", .since = timer_ms()};
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

void live_show(struct live *l)
{
	struct winsize size = {0};
	char line[128];
	uint64_t s = (timer_ms() - l->since) / 1000;

	if (!l->on)
		return;
	int n = snprintf(line, sizeof line, "%s, %llu:%02llu, %u event%s, %u model request%s", l->phase,
			 (unsigned long long)(s / 60), (unsigned long long)(s % 60), l->events,
			 l->events == 1 ? "" : "s", l->calls, l->calls == 1 ? "" : "s");
	/* A line that is wrapped cannot be taken away again. */
	int most = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1 : 79;
	fflush(stdout);
	fputs("\r\033[K", stderr);
	say_foreign(stderr, line, (size_t)(n < most ? n : most));
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
