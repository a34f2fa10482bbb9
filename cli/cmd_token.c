/* pinfold token create|list|revoke, pinfold metrics, pinfold config check. */
#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/admin.h"
#include "cli/cli.h"
#include "cli/conf_read.h"
#include "gen/store_msg.h"
#include "lib/chan.h"
#include "lib/conf.h"
#include "lib/own.h"

static const struct {
	uint32_t bit;
	const char *name;
} rights[] = {{RIGHT_APPROVE, "approve"}, {RIGHT_METRICS, "metrics"}};

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
	jw_close(&w, '}');
	say_json((const char *)b.p, b.n);
	buf_free(&b);
}

static int list(const struct cli *cli, const char *tenant)
{
	struct ask *a = admin_open();
	struct st_tokens_are got;
	struct wire_bytes part;
	bool bad = false;
	enum err e = st_call_token_list(a, &(struct st_token_list){.tenant = tenant}, NULL, &got, NULL);

	if (e != ERR_OK)
		return admin_failed(a, e);
	if (!cli->json)
		printf("%-16s  %-6s  %-24s  %-8s  %-8s  %s\n", "ID", "KIND", "LABEL", "STATE", "RIGHTS", "SECRET");
	while (wire_list_next(&got.items, &part, &bad)) {
		struct st_token_item t;
		if (!st_get_token_item(part.p, part.n, &t))
			break;
		const char *kind = t.kind == PRINCIPAL_DEVICE ? "device" : "api";
		const char *state = t.revoked ? "revoked" : "active";
		char right[32] = "";
		for (size_t i = 0; i < sizeof rights / sizeof *rights; i++)
			if ((t.rights & rights[i].bit) != 0)
				snprintf(right + strlen(right), sizeof right - strlen(right), "%s%s",
					 right[0] != '\0' ? "," : "", rights[i].name);
		if (cli->json)
			list_json(&t, kind, state);
		else {
			printf("%-16s  %-6s  ", t.token_id, kind);
			say_cell(t.label, 26);
			printf("%-8s  %-8s  (token set)\n", state, right[0] != '\0' ? right : "-");
		}
	}
	ask_free(a);
	return 0;
}

int cmd_token(struct cli *cli, int argc, char **argv)
{
	static const struct option options[] = {
	    {"tenant", required_argument, NULL, 't'}, {"device", no_argument, NULL, 'd'},
	    {"label", required_argument, NULL, 'l'},  {"metrics", no_argument, NULL, 'm'},
	    {"approve", no_argument, NULL, 'a'},      {0}};
	const char *tenant = "default", *label = NULL;
	enum principal_kind kind = PRINCIPAL_API;
	uint32_t given = 0;
	struct st_ok ok;
	int opt;

	optind = 1;
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 't')
			tenant = optarg;
		else if (opt == 'd')
			kind = PRINCIPAL_DEVICE;
		else if (opt == 'l')
			label = optarg;
		else if (opt == 'm')
			given |= RIGHT_METRICS;
		else if (opt == 'a')
			given |= RIGHT_APPROVE;
		else
			return usage("token takes --tenant NAME, --label TEXT, --device, --metrics and --approve");
	}
	if (given != 0 && kind != PRINCIPAL_API)
		return usage("a device has no rights to give");
	const char *what = optind < argc ? argv[optind] : "";
	int most = strcmp(what, "revoke") == 0 ? 2 : 1;
	if (argc - optind > most)
		return usage("token %s does not take %s", what, argv[optind + most]);
	if (strcmp(what, "list") == 0)
		return list(cli, tenant);
	if (strcmp(what, "create") == 0) {
		struct ask *a = admin_open();
		enum err e = admin_token(a, tenant, kind, label, given, STDOUT_FILENO);
		if (e != ERR_OK)
			return admin_failed(a, e);
		ask_free(a);
		admin_tenant_known(tenant);
		return 0;
	}
	if (strcmp(what, "revoke") == 0 && optind + 1 < argc) {
		struct ask *a = admin_open();
		enum err e = st_call_token_revoke(
		    a, &(struct st_token_revoke){.tenant = tenant, .token_id = argv[optind + 1]}, NULL, &ok, NULL);
		if (e != ERR_OK)
			return admin_failed(a, e);
		ask_free(a);
		printf("token %s is revoked from the next request on\n", argv[optind + 1]);
		return 0;
	}
	return usage("token create, token list or token revoke ID");
}

int cmd_metrics(struct cli *cli, int argc, char **argv)
{
	struct st_metrics_are got;

	(void)cli;
	(void)argv;
	if (argc != 1)
		return usage("metrics takes nothing");
	struct ask *a = admin_open();
	enum err e = st_call_metrics(a, &(struct st_metrics){0}, NULL, &got, NULL);
	if (e != ERR_OK)
		return admin_failed(a, e);
	fwrite(got.text.p, 1, got.text.n, stdout);
	ask_free(a);
	return 0;
}

/* The configuration, as the daemon would read it. False after saying what is wrong with it. */
static bool configuration(struct conf *conf)
{
	own_fd int fd = bundle_new("pinfold-conf");

	if (fd < 0)
		return usage("cannot make a memory file: %s", strerror(errno)) == 0;
	if (!conf_read(fd))
		return false;
	bundle_seal(fd);
	const char *why = conf_load(conf, fd);
	if (why != NULL)
		fprintf(stderr, "pinfold: the configuration does not fit together: %s\n", why);
	return why == NULL;
}

void admin_tenant_known(const char *tenant)
{
	static struct conf conf;

	if (!configuration(&conf))
		return;
	if (conf_tenant(&conf, tenant) == NULL) {
		fputs("pinfold: warning: the configuration names no tenant ", stderr);
		say_foreign(stderr, tenant, strlen(tenant));
		fputs(": what is made for it is refused until it does\n", stderr);
	}
	conf_free(&conf);
}

int cmd_config(struct cli *cli, int argc, char **argv)
{
	static struct conf conf;

	(void)cli;
	if (argc != 2 || strcmp(argv[1], "check") != 0)
		return usage("config check");
	if (!configuration(&conf))
		return EXIT_FAILED;
	printf("configuration ok: %u tenants, %u model profiles, %u agents, %u providers\n", conf.ntenants,
	       conf.nprofiles, conf.nagents, conf.nproviders);
	conf_free(&conf);
	return 0;
}
