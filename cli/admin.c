/* Operations over the admin socket. A token's text exists here only until it is written out. */
#include "cli/admin.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "gen/store_msg.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/place.h"
#include "lib/secret.h"

struct ask *admin_open(void)
{
	char path[300];

	snprintf(path, sizeof path, "%s/%s", place_dir(PLACE_RUN), PLACE_ADMIN_SOCK);
	return ask_new(path, 3000);
}

int admin_failed(struct ask *a, enum err e)
{
	if (e == ERR_STORE_UNAVAILABLE)
		fprintf(stderr,
			"pinfold: the service does not answer at %s/%s: is pinfold-sandboxd running, and are you "
			"root? (A private instance is named by PINFOLD_ROOT.)\n",
			place_dir(PLACE_RUN), PLACE_ADMIN_SOCK);
	else
		fprintf(stderr, "pinfold: %s: %s\n", err_code(e), err_row(e)->sentence);
	ask_free(a);
	return 1;
}

static uint64_t days_on(uint32_t days)
{
	return days == 0 ? 0 : clock_ms() + days * UINT64_C(86400000);
}

/* text: a token, and room for the end of the line. */
static enum err tell(int fd, char text[PRINCIPAL_TOKEN_LEN + 2])
{
	text[PRINCIPAL_TOKEN_LEN] = '\n';
	return write_all(fd, text, PRINCIPAL_TOKEN_LEN + 1) ? ERR_OK : ERR_INTERNAL_ERROR;
}

enum err admin_token(struct ask *a, const char *tenant, enum principal_kind kind, const char *label, uint32_t rights,
		     uint32_t days, int fd)
{
	char text[PRINCIPAL_TOKEN_LEN + 2], id[PRINCIPAL_ID_LEN + 1];
	char made[64];
	uint8_t hash[32];
	struct st_ok ok;
	enum principal_kind parsed;
	enum err e = st_call_tenant_put(a, &(struct st_tenant_put){.tenant = tenant}, NULL, &ok, NULL);

	if (e != ERR_OK)
		return e;
	principal_mint(kind, text);
	if (principal_parse(text, PRINCIPAL_TOKEN_LEN, &parsed, id, hash) != ERR_OK)
		return ERR_INTERNAL_ERROR;
	if (label == NULL)
		snprintf(made, sizeof made, "created by the operator%s%s", kind == PRINCIPAL_DEVICE ? " " : "",
			 kind == PRINCIPAL_DEVICE ? id : "");
	e = st_call_token_create(a,
				 &(struct st_token_create){.tenant = tenant,
							   .kind = (uint8_t)kind,
							   .token_id = id,
							   .hash = {hash, sizeof hash},
							   .label = label != NULL ? label : made,
							   .rights = rights,
							   .expires_at = days_on(days)},
				 NULL, &ok, NULL);
	if (e == ERR_OK)
		e = tell(fd, text);
	wipe(text, sizeof text);
	return e;
}

bool admin_token_take(const char *tenant, const char *label, uint32_t days, struct secret *token)
{
	char text[PRINCIPAL_TOKEN_LEN + 2] = "";
	own_fd int fd = memfd_create("token", MFD_CLOEXEC);
	struct ask *a = admin_open();
	enum err e = fd < 0 ? ERR_INTERNAL_ERROR : admin_token(a, tenant, PRINCIPAL_API, label, 0, days, fd);

	if (e != ERR_OK)
		return admin_failed(a, e) == 0;
	ask_free(a);
	bool ok =
	    pread(fd, text, sizeof text - 1, 0) > PRINCIPAL_TOKEN_LEN && secret_set(token, text, PRINCIPAL_TOKEN_LEN);
	wipe(text, sizeof text);
	return ok;
}

void admin_token_drop(const char *tenant, struct secret *token)
{
	char id[PRINCIPAL_ID_LEN + 1];
	uint8_t hash[32];
	enum principal_kind kind;
	struct st_ok ok;

	if (token->n == 0 || principal_parse((const char *)token->p, token->n, &kind, id, hash) != ERR_OK)
		return;
	struct ask *a = admin_open();
	enum err e =
	    st_call_token_revoke(a, &(struct st_token_revoke){.tenant = tenant, .token_id = id}, NULL, &ok, NULL);
	if (e != ERR_OK)
		admin_failed(a, e);
	else
		ask_free(a);
	secret_wipe(token);
}

enum err admin_token_next(struct ask *a, const char *tenant, const char *id, uint32_t days, int fd)
{
	char text[PRINCIPAL_TOKEN_LEN + 2], same[PRINCIPAL_ID_LEN + 1];
	uint8_t hash[32];
	struct st_ok ok;
	enum err e = ERR_TOKEN_NOT_FOUND;

	/* Of which kind it is stands in the token, and so in the hash: who knows the id alone tries both. */
	for (enum principal_kind kind = PRINCIPAL_API, parsed; kind <= PRINCIPAL_DEVICE && e == ERR_TOKEN_NOT_FOUND;
	     kind++) {
		if (!principal_renew(kind, id, text))
			return ERR_TOKEN_NOT_FOUND;
		e = principal_parse(text, PRINCIPAL_TOKEN_LEN, &parsed, same, hash);
		if (e == ERR_OK)
			e = st_call_token_rotate(a,
						 &(struct st_token_rotate){.tenant = tenant,
									   .token_id = id,
									   .kind = (uint8_t)kind,
									   .hash = {hash, sizeof hash},
									   .expires_at = days_on(days)},
						 NULL, &ok, NULL);
	}
	if (e == ERR_OK)
		e = tell(fd, text);
	wipe(text, sizeof text);
	return e;
}
