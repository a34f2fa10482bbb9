/* All that pinfold-push has in its hands. */
#ifndef PUSH_APP_H
#define PUSH_APP_H
#include "lib/ask.h"
#include "lib/reload.h"
#include "push/send.h"
#include "push/vapid.h"

struct app {
	struct reload reload;
	const struct conf *conf; /* in force */
	struct secret key;       /* what it signs with, to see whether another one comes */
	bool leaving;            /* it ends when nothing is on its way, to be started under the new configuration */
	struct vapid vapid;
	struct ask *store, *subscription; /* questions; wake-ups */
	struct sender *sender;
	bool subscribed;
	uint64_t ready_at, subscribe_at, next_at; /* timer_ms: when it is time to say who signs, to subscribe, to ask */
	struct receipt untold[SEND_MOST];
	unsigned nuntold;
};

/* Fetches what is to be sent, sends, tells what came of it, waits. Ends the program when sandboxd has ended. */
void post_turn(struct app *app);
#endif
