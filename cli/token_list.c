/* pinfold token list: whose they are, what they may and how old their secrets are. Never a secret: there is none here.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/admin.h"
#include "cli/cli.h"
#include "gen/store_msg.h"
#include "lib/num.h"

static const struct {
	uint32_t bit;
	const char *name;
} rights[] = {{RIGHT_APPROVE, "approve"}, {RIGHT_METRICS, "metrics"}};

static const char *state_of(const struct st_token_item *t, uint64_t now)
{
	bool first = t->expires_at == 0 || t->expires_at > now;
	bool second = t->next && (t->next_expires_at == 0 || t->next_expires_at > now);

	return t->revoked ? "revoked" : first || second ? "active" : "expired";
}

static void list_json(const struct st_token_item *t, const char *kind, const char *state)
{
	struct buf b;
	struct jw w;

	buf_init(&b, 4096);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "id", t->token_id);
	jw_kstr(&w, "kind", kind);
	jw_kstr(&w, "label", t->label);
	jw_kstr(&w, "state", state);
	jw_key(&w, "rights");
	jw_open(&w, '[');
	for (size_t i = 0; i < sizeof rights / sizeof *rights; i++)
		if ((t->rights & rights[i].bit) != 0)
			jw_str(&w, rights[i].name);
	jw_close(&w, ']');
	jw_kint(&w, "createdAt", (int64_t)t->created_at);
	jw_kint(&w, "secretAt", (int64_t)t->secret_at);
	if (t->expires_at != 0)
		jw_kint(&w, "expiresAt", (int64_t)t->expires_at);
	if (t->next) {
		jw_key(&w, "next");
		jw_open(&w, '{');
		jw_kint(&w, "secretAt", (int64_t)t->next_at);
		if (t->next_expires_at != 0)
			jw_kint(&w, "expiresAt", (int64_t)t->next_expires_at);
		jw_close(&w, '}');
	}
	jw_close(&w, '}');
	say_json((const char *)b.p, b.n);
	buf_free(&b);
}

/* "(token set)", how long ago it came to be, and when it ends. */
static void slot(char out[64], uint64_t since, uint64_t expires_at, uint64_t now)
{
	uint64_t s = since < now ? (now - since) / 1000 : 0;
	char end[24] = "";
	time_t at = (time_t)(expires_at / 1000);
	struct tm tm;

	if (expires_at != 0 && localtime_r(&at, &tm) != NULL)
		(void)strftime(end, sizeof end, ", to %Y-%m-%d %H:%M", &tm);
	(void)snprintf(out, 64, "(token set) %llu %s%s",
		       (unsigned long long)(s < 3600     ? s / 60
					    : s < 172800 ? s / 3600
							 : s / 86400),
		       s < 3600     ? "min"
		       : s < 172800 ? "h"
				    : "d",
		       end);
}

static void list_text(const struct st_token_item *t, const char *kind, const char *state, uint64_t now)
{
	char right[32] = "", first[64], second[64] = "-";

	for (size_t i = 0; i < sizeof rights / sizeof *rights; i++)
		if ((t->rights & rights[i].bit) != 0)
			snprintf(right + strlen(right), sizeof right - strlen(right), "%s%s",
				 right[0] != '\0' ? "," : "", rights[i].name);
	slot(first, t->secret_at, t->expires_at, now);
	if (t->next)
		slot(second, t->next_at, t->next_expires_at, now);
	printf("%-16s  %-6s  ", t->token_id, kind);
	say_cell(t->label, 26);
	printf("%-8s  %-15s  %-38s  %s\n", state, right[0] != '\0' ? right : "-", first, second);
}

int token_list(const struct cli *cli, const char *tenant)
{
	struct ask *a = admin_open();
	struct st_tokens_are got;
	struct wire_bytes part;
	bool bad = false;
	uint64_t now = clock_ms();
	enum err e = st_call_token_list(a, &(struct st_token_list){.tenant = tenant}, NULL, &got, NULL);

	if (e != ERR_OK)
		return admin_failed(a, e);
	if (!cli->json)
		printf("%-16s  %-6s  %-24s  %-8s  %-15s  %-38s  %s\n", "ID", "KIND", "LABEL", "STATE", "RIGHTS",
		       "SECRET", "NEXT");
	while (wire_list_next(&got.items, &part, &bad)) {
		struct st_token_item t;
		if (!st_get_token_item(part.p, part.n, &t))
			break;
		const char *kind = t.kind == PRINCIPAL_DEVICE ? "device" : "api";
		if (cli->json)
			list_json(&t, kind, state_of(&t, now));
		else
			list_text(&t, kind, state_of(&t, now), now);
	}
	ask_free(a);
	return 0;
}
