/* What sandboxd does when asked, and what it tells by itself. */
#ifndef SANDBOXD_ANSWER_H
#define SANDBOXD_ANSWER_H
#include "sandboxd/box.h"

struct app;
/* The sink that tells the steward and the gateway what became of boxes. */
struct box_sink answer_sink(struct app *app);
#endif
