/* What the parts of "pinfold attack" share. */
#ifndef CLI_ATTACK_H
#define CLI_ATTACK_H
#include "cli/cli.h"
#include "gen/attacks.h"
#include "gen/conf_msg.h"
#include "lib/secret.h"

/* UNKNOWN: its run did not come so far; that is no success, of neither side. */
enum attack_end { ATTACK_UNKNOWN, ATTACK_HELD, ATTACK_OPEN, ATTACK_SKIPPED };
enum { ATTACK_RUN = 129, ATTACK_WORDS = 200 };
/* Whose token: the attackers' tenant, or that of the run that is attacked. */
enum attack_who { ATTACK_OWN, ATTACK_NEAR, ATTACK__WHO };
#define ATTACK_TENANT "attack"
#define ATTACK_NEAR_TENANT "attack-neighbour"

struct attack_result {
	bool wanted;
	enum attack_end end;
	char detail[ATTACK_WORDS], run[ATTACK_RUN];
};

/* The run that is attacked, as it says itself by an event. */
struct attack_neighbour {
	char run[ATTACK_RUN], model[1100], events[1100], approvals[1100];
	char know[1000]; /* lines for attack.txt */
};

/* What this process offers on the machine while the attacks go on: nobody in a box may reach it. */
struct attack_offer {
	int abstract, datagrams, listener, key;
	char name[64], datagrams_name[64];
	unsigned port;
};

struct conf;

struct suite {
	struct cli *cli;
	struct secret token[ATTACK__WHO];
	const struct conf *conf;
	const struct cf_agent *agent;
	struct attack_neighbour near;
	struct attack_offer offer;
	struct attack_result result[ATTACKS];
	bool kill_service;
	char run[ATTACK_RUN]; /* where all that can be tried together was tried */
};

/* --- cli/attack_run.c ------------------------------------------------------------------------ */
/* One call; the HTTP status, or -1 after saying why. The answer's body is the caller's to free unless -1. */
long attack_call(struct suite *s, enum attack_who who, const char *method, const char *path, const char *body,
		 struct http_answer *answer);
/* Starts the run that is attacked and waits until it has introduced itself. 0, or an exit status after saying why. */
int attack_neighbour_start(struct suite *s);
/* Starts an attackers' run that only waits. 0, or an exit status after saying why. */
int attack_start_waiting(struct suite *s, char run[ATTACK_RUN]);
/* Tries every wanted attack that has a run, and takes down how it went. 0, or an exit status after saying why. */
int attack_try(struct suite *s);
/* The run's snapshot when it has ended, in the arena; NULL when it does not within the time. */
const struct json *attack_wait(struct suite *s, enum attack_who who, const char *run, unsigned seconds,
			       struct arena *a);

/* --- cli/cmd_attack.c ------------------------------------------------------------------------ */
/*
 * For doctor: in one run what can be tried together against the walls of a box; tell is told of each. near: lines of
 * attack.txt about another box, or "". 0, or an exit status after saying why. Nothing is left of it, but where
 * something did not hold.
 */
typedef void attack_teller(void *with, const struct attack *a, const struct attack_result *r);
int attack_walls(struct cli *cli, const struct conf *conf, const char *near, attack_teller *tell, void *with);
/* Has the configuration what the attacks need? */
bool attack_possible(const struct conf *conf);

/* --- cli/attack_seen.c ----------------------------------------------------------------------- */
void attack_offer_make(struct attack_offer *o);
void attack_offer_end(struct attack_offer *o);
/* Judges what is seen from outside. The run that is attacked must still be there; it is ended here. */
void attack_seen(struct suite *s);
/* Ends every run of the service, to judge what outlives it. Comes last. */
void attack_outlive(struct suite *s);
/* Takes down one result. */
void attack_note(struct attack_result *r, enum attack_end end, const char *run, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
#endif
