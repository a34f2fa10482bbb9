/*
 * pinfold doctor: families of checks, a file each, and what they share. A check looks and says; it changes nothing,
 * but that a token of its own is made for the web server's checks and taken back at the end.
 */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/cli.h"
#include "gen/store_msg.h"
#include "lib/ask.h"
#include "lib/conf.h"
#include "lib/secret.h"
#include "lib/token.h"

enum verdict { DOCTOR_OK, DOCTOR_SKIPPED, DOCTOR_WARN, DOCTOR_ERROR, DOCTOR__COUNT };

/* What one check came to. The worst that was said stays; details are joined. */
struct finding {
	enum verdict verdict;
	char detail[600];
	char remedy[500]; /* "": the row's own */
};

struct doctor {
	const struct cli *cli;
	bool online, box;  /* --online; without --no-box */
	bool kill_service; /* --kill-service */
	const char *agent; /* profile whose program walks the walls */
	/* learnt on the way, by the checks that come first */
	struct conf conf;
	bool have_conf;
	uint8_t conf_digest[32]; /* of all of it, as the service counts it */
	struct ask *admin;       /* NULL: nobody answers there */
	struct st_stats_are stats;
	struct buf metrics; /* text; empty: unknown */
	pid_t sandboxd;     /* 0: none runs */
	bool front;         /* the web server answers, and it is this instance's */
	struct secret token;
	char token_id[PRINCIPAL_ID_LEN + 1], token_tenant[129];
	/* the check at hand */
	struct finding now;
	struct buf rows; /* of --json */
	unsigned count[DOCTOR__COUNT];
};

/* A row: a stable id, what is looked at (--list), what to do about it. look may say nothing: then it is ok. A row
 * without look is said by the one before it, with doctor_say(). */
struct doctor_check {
	const char *id, *looks, *remedy;
	void (*look)(struct doctor *d);
};

/* Each table ends with id NULL. */
extern const struct doctor_check doctor_running[], doctor_conf[], doctor_provider[], doctor_secrets[], doctor_keys[],
    doctor_proofs[], doctor_files[], doctor_host[], doctor_service[], doctor_store[], doctor_push[], doctor_web[],
    doctor_box[];

/* A check says what it found. */
void found(struct doctor *d, enum verdict verdict, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* What to do about it, where the row's own sentence does not fit. */
void remedy(struct doctor *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A row of its own, now. */
void doctor_say(struct doctor *d, const char *id, enum verdict verdict, const char *detail, const char *remedy);
/* False, and skipped is said, where the configuration could not be read, or the service does not answer. */
bool need_conf(struct doctor *d);
bool need_service(struct doctor *d);

/* --- doctor_service.c --- */
/* A number of the metrics, such as `pinfold_audit_lost_total`; false: it is not there. */
bool doctor_metric(struct doctor *d, const char *name, uint64_t *value);
/* --- doctor_where.c --- */
/* FILE:LINE at which a setting stands, in the section NAME of this kind (NULL: in none); that of the section where it
 * is not set; else the configuration's folder. */
const char *doctor_where(char out[900], const char *kind, const char *name, const char *setting);
/* --- doctor_call.c --- */
/* One call to the web server with the doctor's own token. body NULL: no body. gap_ms: between the first and the last
 * byte of the answer. policy: it came with a Content-Security-Policy. 0, or curl's number. */
struct doctor_call {
	const char *method, *path, *body;
	const char *accept; /* NULL: anything */
	bool anonymous, policy;
	long status;
	double gap_ms;
	struct buf answer; /* the caller's to free */
};
int doctor_http(struct doctor *d, struct doctor_call *call);
/* The same; false, and an error is said, where nobody answers. */
bool doctor_asked(struct doctor *d, struct doctor_call *call);
/* The answer as an object of ours, or NULL. */
const struct json *doctor_object(struct arena *a, const struct doctor_call *call);
/* Is this how Pinfold itself refuses? Web servers' own pages are not. */
bool doctor_refused_as(const struct doctor_call *call, const char *code);
/* False, and skipped is said, where there is nobody to ask. */
bool doctor_need_front(struct doctor *d);
/* And with a token: makes it, if there is none yet. */
bool doctor_need_token(struct doctor *d);
/* A token of this tenant for the doctor alone; there must be none. */
bool doctor_make_token(struct doctor *d, const char *tenant);
/* Takes the token back. */
void doctor_web_end(struct doctor *d);
/* --- doctor_box.c --- */
/* The id of a wall's row, by its name in spec/walls.tab. */
const char *doctor_wall_id(int step, char id[64]);
#endif
