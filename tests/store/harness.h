/*
 * Starts a real pinfold-stored as sandboxd does: descriptors 3 to 7, a sealed configuration, sockets in a
 * folder of its own, its own uid. For tests of the store and of whoever talks to it. Needs root.
 * Every function ends the program with a sentence when the machine itself fails.
 */
#ifndef TESTS_STORE_HARNESS_H
#define TESTS_STORE_HARNESS_H
#include "gen/store_msg.h"
#include "lib/ask.h"
#include "tests/patience.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum rig_role { RIG_FCGI, RIG_GATEWAY, RIG_STEWARD, RIG_PUSH, RIG_ADMIN, RIG_NOBODY, RIG_ROLE__COUNT };
enum { RIG_UID = 61000 /* stored's; the roles' follow */ };

struct rig {
	char dir[64], sock[96], admin[96], state[96], log[96], logs[96]; /* logs: folder of the audit log */
	char program[256];                                               /* PINFOLD_STORED, or ./pinfold-stored */
	int listen_fd, admin_fd, control;                                /* control: our end */
	pid_t pid;
	bool audit_redact;
	uint32_t audit_max_bytes, audit_generations; /* 0: the defaults */
	uint32_t keep_artifacts_days, keep_runs_days, keep_tokens_days;
	uint32_t push_per_minute, push_per_hour; /* 0: the defaults */
	/* Quotas of tenant "acme"; all 0: it is not in the configuration. */
	uint32_t max_runs_hour;
	uint64_t max_stored_bytes, max_model_requests_day, max_tokens_day, max_tokens_run, agent_tokens_run;
	uint32_t max_model_calls_minute;
};

/* Makes the folder (below parent, NULL: /tmp) and the sockets. rig_start may be called again after a stop. */
void rig_open(struct rig *r, const char *parent);
void rig_start(struct rig *r);
/* Sends sig (0: none) and waits; returns the wait status. */
int rig_stop(struct rig *r, int sig);
/* Ends what runs and removes the folder. */
void rig_close(struct rig *r);
uid_t rig_uid(enum rig_role role);
/* A process of that role with a connection of its own, which does work once *go, and ends. Its pid; without one the
 * test ends. */
pid_t rig_member(struct rig *r, enum rig_role role, const volatile bool *go, void (*work)(struct ask *a, int index),
		 int index);
/* A connection as that role, already shaken hands; NULL when it is refused. */
struct ask *rig_ask(struct rig *r, enum rig_role role);
/* The same, for a question that breaks the connection and is asked again until it has no more patience. */
struct ask *rig_hasty(struct rig *r, enum rig_role role);
/* The effective uid, for calls that may have to connect again. RIG_ADMIN is root. */
void rig_become(enum rig_role role);
#define RIG_AS(role, call)             \
	({                             \
		rig_become(role);      \
		enum err e_ = (call);  \
		rig_become(RIG_ADMIN); \
		e_;                    \
	})
/* A raw connection as that role, without HELLO; -1. */
int rig_connect(struct rig *r, enum rig_role role);
/* A memfd with these bytes. */
int rig_memfd(const void *p, size_t n);
/* Tenant "acme" and a creation message with plausible contents. */
void rig_tenant(struct rig *r, const char *tenant);
struct st_run_create rig_run(const char *tenant, const char *run);
/* Creates it with small contents. */
enum err rig_create(struct ask *fcgi, const struct st_run_create *m, struct st_run_state *state);
/* Creates and starts it, its capability living for an hour. */
enum err rig_running(struct ask *fcgi, struct ask *steward, const char *tenant, const char *run, uint32_t max_requests);
/* Does the log hold this text by now? Waits up to 10 s. */
bool rig_logged(struct rig *r, const char *text);
#endif
