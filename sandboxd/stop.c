/* The phases of a clean stop; see app.h. What does not end in its time is killed with all it started. */
#include "lib/clock.h"
#include "lib/die.h"
#include "lib/own_fd.h"
#include "sandboxd/app.h"
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static const struct {
	unsigned children; /* bits of enum child_id */
	uint32_t ms;       /* for TERM; then everything of them is killed */
} phases[] = {
    [STOP_STEWARD] = {1u << CHILD_STEWARD, 500},
    [STOP_BOXES] = {0, 1500},
    [STOP_FRONT] = {1u << CHILD_GATEWAY | 1u << CHILD_FCGI | 1u << CHILD_PUSH, 1000},
    [STOP_STORED] = {1u << CHILD_STORED, 1500},
    [STOP_DONE] = {0, 0},
};

static void enter(struct app *app, enum stop phase)
{
	app->stop = phase;
	app->stop_next = timer_ms() + phases[phase].ms;
	for (int i = 0; i < CHILD__COUNT; i++)
		if ((phases[phase].children & (1u << i)) != 0)
			child_signal(&app->child[i], SIGTERM);
	if (phase == STOP_BOXES)
		boxes_destroy_all(&app->boxes);
}

void stop_begin(struct app *app)
{
	log_info("stopping");
	manager_tell("STOPPING=1");
	enter(app, STOP_STEWARD);
}

static bool over(const struct app *app)
{
	if (app->stop == STOP_BOXES)
		return boxes_busy(&app->boxes) == 0;
	for (int i = 0; i < CHILD__COUNT; i++)
		if ((phases[app->stop].children & (1u << i)) != 0 && app->child[i].pid != 0)
			return false;
	return true;
}

uint64_t stop_tick(struct app *app, uint64_t now)
{
	while (app->stop != STOP_NO && app->stop != STOP_DONE && over(app))
		enter(app, app->stop + 1);
	if (app->stop == STOP_NO || app->stop == STOP_DONE)
		return 0;
	if (now >= app->stop_next) {
		for (int i = 0; i < CHILD__COUNT; i++)
			if ((phases[app->stop].children & (1u << i)) != 0)
				child_kill(app, &app->child[i]);
		if (app->stop == STOP_BOXES)
			enter(app, STOP_FRONT);
		else
			app->stop_next = now + 1000; /* killed: its end comes */
	}
	return app->stop_next;
}

/* The name comes from whoever started this process as root, and is only sent to. */
void manager_tell(const char *state)
{
	const char *name = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t n = name != NULL ? strlen(name) : 0;
	if (n == 0)
		return;
	own_fd int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (n < sizeof to.sun_path)
		memcpy(to.sun_path, name, n);
	if (to.sun_path[0] == '@') /* an abstract name */
		to.sun_path[0] = '\0';
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	if (n >= sizeof to.sun_path || fd < 0 ||
	    sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to, len) < 0)
		log_warn("the service manager could not be told %s: %m", state);
}
