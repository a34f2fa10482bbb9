/* pinfold token create|list|rotate|promote|drop|revoke, pinfold metrics. */
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
#include "lib/num.h"
#include "lib/own.h"

enum { DAYS_MAX = 3650 };

/* What was asked for. */
struct want {
	const char *tenant, *label, *id;
	enum principal_kind kind;
	uint32_t rights;
	uint64_t days;
};

static int create(const struct cli *cli, const struct want *w)
{
	struct ask *a = admin_open();
	enum err e = admin_token(a, w->tenant, w->kind, w->label, w->rights, (uint32_t)w->days, STDOUT_FILENO);

	(void)cli;
	if (e != ERR_OK)
		return admin_failed(a, e);
	ask_free(a);
	admin_tenant_known(w->tenant);
	return 0;
}

static int rotate(const struct cli *cli, const struct want *w)
{
	struct ask *a = admin_open();
	enum err e = admin_token_next(a, w->tenant, w->id, (uint32_t)w->days, STDOUT_FILENO);

	(void)cli;
	if (e != ERR_OK)
		return admin_failed(a, e);
	ask_free(a);
	fprintf(stderr,
		"the token of %s and this NEXT one are both valid; when everybody has the new one: pinfold token "
		"promote %s\n",
		w->id, w->id);
	return 0;
}

/* Says what was done, or what was wrong. */
static int done(struct ask *a, enum err e, const char *id, const char *what)
{
	if (e != ERR_OK)
		return admin_failed(a, e);
	ask_free(a);
	printf("token %s %s\n", id, what);
	return 0;
}

static int promote(const struct cli *cli, const struct want *w)
{
	struct ask *a = admin_open();
	struct st_ok ok;

	(void)cli;
	return done(a,
		    st_call_token_promote(a, &(struct st_token_promote){.tenant = w->tenant, .token_id = w->id}, NULL,
					  &ok, NULL),
		    w->id, "is the NEXT one now; the one before is refused from the next request on");
}

static int drop(const struct cli *cli, const struct want *w)
{
	struct ask *a = admin_open();
	struct st_ok ok;

	(void)cli;
	return done(
	    a, st_call_token_drop(a, &(struct st_token_drop){.tenant = w->tenant, .token_id = w->id}, NULL, &ok, NULL),
	    w->id, "stays as it is; its NEXT one is refused from the next request on");
}

static int end_token(const struct cli *cli, const struct want *w)
{
	struct ask *a = admin_open();
	struct st_ok ok;

	(void)cli;
	return done(
	    a,
	    st_call_token_revoke(a, &(struct st_token_revoke){.tenant = w->tenant, .token_id = w->id}, NULL, &ok, NULL),
	    w->id, "is revoked from the next request on");
}

static int list(const struct cli *cli, const struct want *w)
{
	return token_list(cli, w->tenant);
}

static const struct {
	const char *name;
	bool id, days;
	int (*act)(const struct cli *cli, const struct want *w);
} acts[] = {{"create", false, true, create},   {"list", false, false, list}, {"rotate", true, true, rotate},
	    {"promote", true, false, promote}, {"drop", true, false, drop},  {"revoke", true, false, end_token}};

int cmd_token(struct cli *cli, int argc, char **argv)
{
	static const struct option options[] = {{"tenant", required_argument, NULL, 't'},
						{"device", no_argument, NULL, 'd'},
						{"label", required_argument, NULL, 'l'},
						{"metrics", no_argument, NULL, 'm'},
						{"approve", no_argument, NULL, 'a'},
						{"days", required_argument, NULL, 'D'},
						{0}};
	struct want w = {.tenant = "default", .kind = PRINCIPAL_API};
	int opt;

	optind = 1;
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 't')
			w.tenant = optarg;
		else if (opt == 'd')
			w.kind = PRINCIPAL_DEVICE;
		else if (opt == 'l')
			w.label = optarg;
		else if (opt == 'm')
			w.rights |= RIGHT_METRICS;
		else if (opt == 'a')
			w.rights |= RIGHT_APPROVE;
		else if (opt != 'D')
			return usage("token takes --tenant NAME, --label TEXT, --days N, --device, --metrics and "
				     "--approve");
		else if (!num_u64(optarg, strlen(optarg), 1, DAYS_MAX, &w.days))
			return usage("--days is a number from 1 to %d", DAYS_MAX);
	}
	if (w.rights != 0 && w.kind != PRINCIPAL_API)
		return usage("a device has no rights to give");
	const char *what = optind < argc ? argv[optind] : "";
	for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
		if (strcmp(acts[i].name, what) != 0)
			continue;
		int most = acts[i].id ? 2 : 1;
		if (argc - optind > most)
			return usage("token %s does not take %s", what, argv[optind + most]);
		if (argc - optind < most)
			break;
		if (w.days != 0 && !acts[i].days)
			return usage("token %s does not take --days", what);
		w.id = acts[i].id ? argv[optind + 1] : "";
		return acts[i].act(cli, &w);
	}
	return usage("token create, token list, or token rotate, promote, drop or revoke ID");
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

bool admin_configuration(struct conf *conf)
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

	if (!admin_configuration(&conf))
		return;
	if (conf_tenant(&conf, tenant) == NULL) {
		fputs("pinfold: warning: the configuration names no tenant ", stderr);
		say_foreign(stderr, tenant, strlen(tenant));
		fputs(": what is made for it is refused until it does\n", stderr);
	}
	conf_free(&conf);
}
