/* The phases of a clean stop; see app.h. What does not end in its time is killed with all it started. */
#include "lib/die.h"
#include "lib/num.h"
#include "sandboxd/app.h"
#include "sandboxd/manager.h"
#include <signal.h>

static const struct {
	unsigned children; /* bits of enum child_id */
	uint32_t ms;       /* for TERM; then everything of them is killed */
} phases[] = {
    [STOP_STEWARD] = {1u << CHILD_STEWARD, 500},
    [STOP_BOXES] = {0, 1500},
    [STOP_FRONT] = {1u << CHILD_GATEWAY | 1u << CHILD_FCGI, 1000},
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
