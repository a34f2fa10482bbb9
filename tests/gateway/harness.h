/*
 * Plays sandboxd, fcgi, steward and operator towards a real pinfold-stored and a real pinfold-gateway, on
 * command lines read from standard input (see harness.c). For tests and benches; needs root, since the store
 * tells roles by uid.
 */
#ifndef TESTS_GATEWAY_HARNESS_H
#define TESTS_GATEWAY_HARNESS_H
#include "lib/ask.h"
#include "lib/secret.h"
#include <stdbool.h>
#include <sys/types.h>

enum { HARNESS_BOXES = 512, HARNESS_UID = 2000001000 };
/* Uids are HARNESS_UID plus this. */
enum harness_role { ROLE_STORED, ROLE_FCGI, ROLE_GATEWAY, ROLE_STEWARD, ROLE__COUNT };

struct harness {
	char dir[200], bin[200];
	int conf_fd, store_listen, admin_listen;
	int stored_control, gateway_control;
	pid_t stored, gateway;
	struct buf *secrets; /* as the secrets pipe wants them */
	struct secret run_key;
	struct ask *fcgi, *steward, *admin;
	struct {
		char run[129], tenant[129];
		int fd; /* listener; -1: free */
	} boxes[HARNESS_BOXES];
};

/* start.c: each ends the program when it cannot. */
void harness_start(struct harness *h);
void harness_start_gateway(struct harness *h); /* again, killed if need be: open boxes are sent anew */
void harness_start_stored(struct harness *h);  /* again, killed if need be */
bool harness_open(struct harness *h, int box);
void harness_close(struct harness *h, const char *run);
#endif
