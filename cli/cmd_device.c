/*
 * pinfold device pair|list|revoke: over the admin socket, so for root alone. Whoever has a device's credential answers
 * agents' questions; no program of a tenant can make one. A code exists here until it was printed; the service
 * has its hash. Where the page is, only the administrator knows (--server or PINFOLD_URL): then its address with the
 * code in the fragment, which no server is told, is what a phone reads.
 */
#include <getopt.h>
#include <qrencode.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/admin.h"
#include "cli/cli.h"
#include "gen/limits.h"
#include "gen/store_msg.h"
#include "lib/label.h"
#include "lib/num.h"
#include "lib/pairing.h"
#include "lib/secret.h"

enum { QUIET = 2 };

static bool dark(const QRcode *qr, int x, int y)
{
	return x >= 0 && y >= 0 && x < qr->width && y < qr->width && (qr->data[y * qr->width + x] & 1) != 0;
}

/* Two rows of it a line. Light is drawn, since most terminals are dark; readers take either. */
static void print_qr(const char *text)
{
	static const char *const blocks[] = {"\xe2\x96\x88", "\xe2\x96\x84", "\xe2\x96\x80", " "};
	QRcode *qr = QRcode_encodeString(text, 0, QR_ECLEVEL_M, QR_MODE_8, 1);
	if (qr == NULL)
		return;
	putchar('\n');
	for (int y = -QUIET; y < qr->width + QUIET; y += 2) {
		for (int x = -QUIET; x < qr->width + QUIET; x++)
			fputs(blocks[(dark(qr, x, y) ? 1 : 0) + (dark(qr, x, y + 1) ? 2 : 0)], stdout);
		putchar('\n');
	}
	QRcode_free(qr);
}

/* The page's address, with the code; empty: where it is was not said, or cannot be an address. */
static void page_of(const struct cli *cli, const char *code, char out[300])
{
	size_t n = cli->server != NULL ? strlen(cli->server) : 0;

	while (n > 0 && cli->server[n - 1] == '/')
		n--;
	out[0] = '\0';
	if (n == 0 || n > 200)
		return;
	for (size_t i = 0; i < n; i++)
		if (cli->server[i] <= ' ' || cli->server[i] > '~' || strchr("?#\"\\", cli->server[i]) != NULL)
			return;
	(void)snprintf(out, 300, "%.*s/#pair=%s", (int)n, cli->server, code);
}

static int pair(const struct cli *cli, const char *tenant, uint32_t days)
{
	char code[PAIRING_CODE + 1], page[300];
	uint8_t hash[32];
	struct st_ok ok;
	struct st_pair_begun begun;
	struct ask *a = admin_open();

	pairing_mint(code);
	if (!pairing_hash(code, hash))
		return admin_failed(a, ERR_INTERNAL_ERROR);
	enum err e = st_call_tenant_put(a, &(struct st_tenant_put){.tenant = tenant}, NULL, &ok, NULL);
	if (e == ERR_OK)
		e = st_call_pair_begin(
		    a, &(struct st_pair_begin){.tenant = tenant, .hash = {hash, sizeof hash}, .days = days}, NULL,
		    &begun, NULL);
	if (e != ERR_OK) {
		wipe(code, sizeof code);
		return admin_failed(a, e);
	}
	page_of(cli, code, page);
	if (cli->json && page[0] != '\0') {
		printf("{\"code\":\"%s\",\"expiresAt\":%llu,\"page\":\"%s\"}\n", code,
		       (unsigned long long)begun.expires_at, page);
	} else if (cli->json) {
		printf("{\"code\":\"%s\",\"expiresAt\":%llu}\n", code, (unsigned long long)begun.expires_at);
	} else {
		printf("pairing code for tenant %s: %.4s-%s (once, within %d minutes)\n", tenant, code, code + 4,
		       LIMIT_PAIRING_CODE_SECONDS / 60);
		if (page[0] != '\0')
			printf("for a browser: %s\n", page);
		else
			puts("for the page of this service; with --server URL its address is printed here, too");
		print_qr(page[0] != '\0' ? page : code);
	}
	wipe(code, sizeof code);
	wipe(page, sizeof page);
	ask_free(a);
	admin_tenant_known(tenant);
	return 0;
}

static void when(char out[32], uint64_t ms, const char *never)
{
	time_t s = (time_t)(ms / 1000);
	struct tm tm;
	if (ms == 0 || localtime_r(&s, &tm) == NULL || strftime(out, 32, "%Y-%m-%d %H:%M", &tm) == 0)
		snprintf(out, 32, "%s", never);
}

static void list_json(const struct st_device *d)
{
	struct buf b;
	struct jw w;

	buf_init(&b, 4096);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "label", d->label);
	jw_kstr(&w, "id", d->token_id);
	jw_kint(&w, "createdAt", (int64_t)d->created_at);
	if (d->expires_at != 0)
		jw_kint(&w, "expiresAt", (int64_t)d->expires_at);
	if (d->last_seen_at != 0)
		jw_kint(&w, "lastSeenAt", (int64_t)d->last_seen_at);
	jw_close(&w, '}');
	say_json((const char *)b.p, b.n);
	buf_free(&b);
}

static void list_one(const struct cli *cli, const struct st_device *d)
{
	char made[32], seen[32], end[32];

	if (cli->json) {
		list_json(d);
		return;
	}
	when(made, d->created_at, "-");
	when(seen, d->last_seen_at, "not yet");
	when(end, d->expires_at, "never");
	printf("%-16s  %-16s  %-16s  (token set)  ", made, seen, end);
	say_cell(d->label, 0);
	putchar('\n');
}

static int list(const struct cli *cli, const char *tenant)
{
	struct ask *a = admin_open();
	struct st_devices_are got = {.more = true};
	char after[LABEL_BYTES + 1] = "";

	if (!cli->json)
		printf("%-16s  %-16s  %-16s  %-11s  %s\n", "PAIRED", "LAST SEEN", "EXPIRES", "SECRET", "LABEL");
	while (got.more) {
		struct wire_bytes part;
		bool bad = false;
		enum err e = st_call_device_list(a, &(struct st_device_list){.tenant = tenant, .after = after}, NULL,
						 &got, NULL);
		if (e != ERR_OK)
			return admin_failed(a, e);
		while (wire_list_next(&got.items, &part, &bad)) {
			struct st_device d;
			if (!st_get_device(part.p, part.n, &d))
				return admin_failed(a, ERR_INTERNAL_ERROR);
			list_one(cli, &d);
			snprintf(after, sizeof after, "%s", d.label);
		}
	}
	ask_free(a);
	return 0;
}

static int revoke_device(const char *tenant, const char *label)
{
	struct ask *a = admin_open();
	struct st_ok ok;
	enum err e = st_call_device_revoke(
	    a, &(struct st_device_revoke){.tenant = tenant, .label = label, .by = "operator", .request_id = ""}, NULL,
	    &ok, NULL);
	if (e != ERR_OK)
		return admin_failed(a, e);
	ask_free(a);
	printf("the device is revoked from its next request on\n");
	return 0;
}

int cmd_device(struct cli *cli, int argc, char **argv)
{
	static const struct option options[] = {
	    {"tenant", required_argument, NULL, 't'}, {"days", required_argument, NULL, 'd'}, {0}};
	const char *tenant = "default";
	uint64_t days = 0;
	int opt;

	optind = 1;
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 't')
			tenant = optarg;
		else if (opt != 'd' || !num_u64(optarg, strlen(optarg), 1, 3650, &days))
			return usage("device takes --tenant NAME, and device pair --days 1 to 3650");
	}
	const char *what = optind < argc ? argv[optind] : "";
	int words = argc - optind;
	if (!id_valid(tenant))
		return usage("that is no tenant's name");
	if (strcmp(what, "pair") == 0 && words == 1)
		return pair(cli, tenant, (uint32_t)days);
	if (days != 0)
		return usage("only device pair takes --days");
	if (strcmp(what, "list") == 0 && words == 1)
		return list(cli, tenant);
	if (strcmp(what, "revoke") == 0 && words == 2)
		return revoke_device(tenant, argv[optind + 1]);
	return usage("device pair, device list or device revoke LABEL");
}
