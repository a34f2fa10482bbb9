/* The admin socket: operations for root on this machine. */
#ifndef CLI_ADMIN_H
#define CLI_ADMIN_H
#include "gen/errors.h"
#include "lib/ask.h"
#include "lib/conf.h"
#include "lib/secret.h"
#include "lib/token.h"

/* A connection to stored, or NULL after saying that the service is not running. */
struct ask *admin_open(void);
/* Prints an error of the store as a sentence. Returns 1. */
int admin_failed(struct ask *a, enum err e);
/* Creates the tenant's record if there is none and a token for it; the token's text goes to fd only. label NULL: one
 * that says where it comes from; a device's is of this token alone. days 0: it does not expire. */
enum err admin_token(struct ask *a, const char *tenant, enum principal_kind kind, const char *label, uint32_t rights,
		     uint32_t days, int fd);
/* An API token of the tenant for as long as a command takes (at most so many days), and its end. False after saying
 * why.
 */
bool admin_token_take(const char *tenant, const char *label, uint32_t days, struct secret *token);
void admin_token_drop(const char *tenant, struct secret *token);
/* A NEXT secret for a token of whatever kind; its text goes to fd only. days 0: it ends as the token does. */
enum err admin_token_next(struct ask *a, const char *tenant, const char *id, uint32_t days, int fd);
struct cli;
/* Prints the tenant's tokens. Returns the exit status. */
int token_list(const struct cli *cli, const char *tenant);
/* The configuration, as the daemon would read it; the caller frees. False after saying what is wrong with it. */
bool admin_configuration(struct conf *conf);
/* Says on standard error where the configuration names no such tenant: until it does, what is made for it is refused.
 */
void admin_tenant_known(const char *tenant);
#endif
