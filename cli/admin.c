/* Operations over the admin socket. A token's text exists here only until it is written out. */
#include "cli/admin.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gen/store_msg.h"
#include "lib/num.h"
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

enum err admin_token(struct ask *a, const char *tenant, enum principal_kind kind, const char *label, uint32_t rights,
		     int fd)
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
							   .rights = rights},
				 NULL, &ok, NULL);
	text[PRINCIPAL_TOKEN_LEN] = '\n';
	if (e == ERR_OK && !write_all(fd, text, PRINCIPAL_TOKEN_LEN + 1))
		e = ERR_INTERNAL_ERROR;
	wipe(text, sizeof text);
	return e;
}
