/* pinfold attack: tries to break out of sandboxes as any agent could, and shows what holds. For the operator, as root.
 */
#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/admin.h"
#include "cli/attack.h"
#include "cli/conf_read.h"
#include "gen/store_msg.h"
#include "gen/walls.h"
#include "lib/chan.h"
#include "lib/conf.h"
#include "lib/num.h"
#include "lib/own.h"

static const char *const tenants[ATTACK__WHO] = {ATTACK_TENANT, ATTACK_NEAR_TENANT};
static const char *const ends[] = {"unknown", "held", "OPEN", "skipped"};

/* A token of each tenant for as long as this takes. */
static bool take_token(struct suite *s, enum attack_who who)
{
	return admin_token_take(tenants[who], "pinfold attack", 0, &s->token[who]);
}

static void drop_token(struct suite *s, enum attack_who who)
{
	admin_token_drop(tenants[who], &s->token[who]);
}

/* What was left of runs whose attacks held; of the others something may be learnt. */
static void remove_runs(struct suite *s)
{
	bool together = true;
	char path[200];
	struct http_answer answer;

	for (size_t i = 0; i < ATTACKS; i++) {
		struct attack_result *r = &s->result[i];
		bool fine = r->end == ATTACK_HELD || r->end == ATTACK_SKIPPED;
		if (r->wanted && !fine && strcmp(r->run, s->run) == 0)
			together = false;
		if (!fine || r->run[0] == '\0' || strcmp(r->run, s->run) == 0 || strcmp(r->run, s->near.run) == 0)
			continue;
		snprintf(path, sizeof path, "/v1/runs/%s", r->run);
		if (attack_call(s, ATTACK_OWN, "DELETE", path, NULL, &answer) >= 0)
			buf_free(&answer.body);
	}
	snprintf(path, sizeof path, "/v1/runs/%s", s->run);
	if (together && s->run[0] != '\0' && attack_call(s, ATTACK_OWN, "DELETE", path, NULL, &answer) >= 0)
		buf_free(&answer.body);
	snprintf(path, sizeof path, "/v1/runs/%s", s->near.run);
	if (s->near.run[0] != '\0' && attack_call(s, ATTACK_NEAR, "DELETE", path, NULL, &answer) >= 0)
		buf_free(&answer.body);
}

static void count(const struct suite *s, unsigned n[4])
{
	memset(n, 0, 4 * sizeof *n);
	for (size_t i = 0; i < ATTACKS; i++)
		if (s->result[i].wanted)
			n[s->result[i].end]++;
}

static void print_json(const struct suite *s)
{
	own_buf struct buf b;
	struct jw w;
	unsigned n[4];

	buf_init(&b, 4 << 20);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_key(&w, "attacks");
	jw_open(&w, '[');
	for (size_t i = 0; i < ATTACKS; i++) {
		const struct attack_result *r = &s->result[i];
		if (!r->wanted)
			continue;
		jw_open(&w, '{');
		jw_kstr(&w, "id", attacks[i].id);
		jw_kstr(&w, "class", attacks[i].class);
		jw_kstr(&w, "wall", attacks[i].wall);
		jw_kstr(&w, "tries", attacks[i].what);
		jw_kstr(&w, "must", attacks[i].must);
		if (r->end == ATTACK_SKIPPED) {
			jw_key(&w, "held");
			jw_null(&w);
		} else {
			jw_kbool(&w, "held", r->end == ATTACK_HELD);
		}
		jw_kstr(&w, "outcome", r->end == ATTACK_OPEN ? "open" : ends[r->end]);
		jw_kstr(&w, "detail", r->detail);
		jw_kstr(&w, "run", r->run);
		jw_close(&w, '}');
	}
	jw_close(&w, ']');
	count(s, n);
	jw_kint(&w, "held", n[ATTACK_HELD]);
	jw_kint(&w, "total", n[ATTACK_HELD] + n[ATTACK_OPEN] + n[ATTACK_UNKNOWN]);
	jw_kint(&w, "skipped", n[ATTACK_SKIPPED]);
	jw_close(&w, '}');
	say_json((const char *)b.p, b.n);
}

static void print_table(const struct suite *s)
{
	unsigned n[4];

	for (size_t i = 0; i < ATTACKS; i++) {
		const struct attack_result *r = &s->result[i];
		if (!r->wanted)
			continue;
		printf("%-8s  %-11s  %-24s  %s (", ends[r->end], attacks[i].class, attacks[i].id, attacks[i].what);
		say_foreign(stdout, r->detail, strlen(r->detail));
		puts(")");
	}
	count(s, n);
	unsigned tried = n[ATTACK_HELD] + n[ATTACK_OPEN] + n[ATTACK_UNKNOWN];
	printf("%u of %u attacks held", n[ATTACK_HELD], tried);
	if (n[ATTACK_SKIPPED] > 0)
		printf("; %u not tried", n[ATTACK_SKIPPED]);
	puts("");
	for (size_t i = 0; i < ATTACKS; i++)
		if (s->result[i].wanted && s->result[i].end == ATTACK_OPEN)
			printf("look at: %s (%s), run %s\n", attacks[i].wall, attacks[i].id, s->result[i].run);
}

static int print_list(const struct suite *s)
{
	for (size_t i = 0; i < ATTACKS; i++)
		if (s->result[i].wanted)
			printf("%-11s  %-24s  %-16s  %s: %s\n", attacks[i].class, attacks[i].id, attacks[i].wall,
			       attacks[i].what, attacks[i].must);
	return 0;
}

/* All, or those named by id or class. False after saying what is not known. */
static bool choose(struct suite *s, const char *class, int n, char **ids)
{
	bool any = false;

	for (size_t i = 0; i < ATTACKS; i++) {
		s->result[i].wanted = n == 0 && (class == NULL || strcmp(class, attacks[i].class) == 0);
		any = any || s->result[i].wanted;
	}
	for (int k = 0; k < n; k++) {
		size_t i = 0;
		while (i < ATTACKS && strcmp(attacks[i].id, ids[k]) != 0)
			i++;
		if (i == ATTACKS)
			return usage("there is no attack %s: pinfold attack --list", ids[k]) == 0;
		s->result[i].wanted = any = true;
	}
	return any || usage("there is no such class: pinfold attack --list") == 0;
}

bool attack_possible(const struct conf *conf)
{
	return conf_agent(conf, "attack") != NULL && conf_tenant(conf, ATTACK_TENANT) != NULL &&
	       conf_tenant(conf, ATTACK_NEAR_TENANT) != NULL;
}

int attack_walls(struct cli *cli, const struct conf *conf, const char *near, attack_teller *tell, void *with)
{
	static struct suite s; /* large */
	int status = EXIT_FAILED;

	s = (struct suite){.cli = cli, .conf = conf, .agent = conf_agent(conf, "attack")};
	for (size_t i = 0; i < ATTACKS; i++)
		for (int k = STEP_NONE + 1; k < STEP__COUNT && attacks[i].how == ATTACK_BOX; k++)
			s.result[i].wanted = s.result[i].wanted || strcmp(attacks[i].wall, walls[k].name) == 0;
	snprintf(s.near.know, sizeof s.near.know, "%s", near);
	attack_offer_make(&s.offer);
	if (take_token(&s, ATTACK_OWN) && (status = attack_try(&s)) == 0) {
		for (size_t i = 0; i < ATTACKS; i++)
			if (s.result[i].wanted)
				tell(with, &attacks[i], &s.result[i]);
		remove_runs(&s);
	}
	attack_offer_end(&s.offer);
	drop_token(&s, ATTACK_OWN);
	return status;
}

/* The limits that the attacks try to pass are those of the profile. */
static bool read_limits(struct suite *s, struct conf *conf)
{
	own_fd int fd = bundle_new("pinfold-conf");

	if (fd < 0 || !conf_read(fd) || !bundle_seal(fd))
		return false;
	const char *why = conf_load(conf, fd);
	if (why != NULL) {
		fprintf(stderr, "pinfold: the configuration does not fit together: %s\n", why);
		return false;
	}
	s->conf = conf;
	s->agent = conf_agent(conf, "attack");
	if (!attack_possible(conf)) {
		fputs("pinfold: the configuration has not the profile and tenants of the attacks: run \"pinfold "
		      "setup\", then "
		      "start the service anew\n",
		      stderr);
		return false;
	}
	return true;
}

int cmd_attack(struct cli *cli, int argc, char **argv)
{
	static const struct option options[] = {{"json", no_argument, NULL, 'j'},
						{"list", no_argument, NULL, 'l'},
						{"kill-service", no_argument, NULL, 'k'},
						{"class", required_argument, NULL, 'c'},
						{0}};
	static struct suite s;
	static struct conf conf;
	const char *class = NULL;
	bool only_list = false;
	unsigned n[4];
	int opt, status = EXIT_FAILED;

	optind = 1;
	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'j')
			cli->json = true;
		else if (opt == 'l')
			only_list = true;
		else if (opt == 'k')
			s.kill_service = true;
		else if (opt == 'c')
			class = optarg;
		else
			return usage("attack takes --json, --list, --kill-service, --class CLASS and ids");
	}
	s.cli = cli;
	if (!choose(&s, class, argc - optind, argv + optind))
		return EXIT_USAGE;
	if (only_list)
		return print_list(&s);
	if (cli->server == NULL)
		return usage("attack needs --server URL or PINFOLD_URL: its runs are ordinary ones");
	if (!read_limits(&s, &conf))
		return EXIT_FAILED;
	attack_offer_make(&s.offer);
	if (take_token(&s, ATTACK_OWN) && take_token(&s, ATTACK_NEAR) && (status = attack_neighbour_start(&s)) == 0 &&
	    (status = attack_try(&s)) == 0) {
		attack_seen(&s);
		attack_outlive(&s);
		if (cli->json)
			print_json(&s);
		else
			print_table(&s);
		count(&s, n);
		status = n[ATTACK_OPEN] + n[ATTACK_UNKNOWN] == 0 ? EXIT_COMPLETED : EXIT_FAILED;
		remove_runs(&s);
	}
	attack_offer_end(&s.offer);
	drop_token(&s, ATTACK_OWN);
	drop_token(&s, ATTACK_NEAR);
	conf_free(&conf);
	return status;
}
