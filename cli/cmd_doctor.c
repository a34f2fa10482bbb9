/*
 * pinfold doctor: walks the tables of checks and prints what they say, as a table or as JSON. Text that is not ours
 * goes through say_foreign() or the JSON writer; no check is ever given the bytes of a secret.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/admin.h"
#include "cli/doctor.h"
#include "gen/walls.h"
#include "lib/num.h"
#include "lib/text.h"

enum { ROWS_MAX = 1 << 20 };

static const char *const verdicts[DOCTOR__COUNT] = {"ok", "skipped", "warn", "error"};
static const struct doctor_check *const families[] = {
    doctor_running, doctor_conf,    doctor_provider, doctor_secrets, doctor_keys, doctor_proofs, doctor_files,
    doctor_host,    doctor_service, doctor_store,    doctor_push,    doctor_web,  doctor_box};
enum { FAMILIES = sizeof families / sizeof families[0] };

void found(struct doctor *d, enum verdict verdict, const char *fmt, ...)
{
	struct finding *f = &d->now;
	size_t n = strlen(f->detail);
	va_list ap;

	/* What is fine is not said beside what is not. */
	if (verdict > f->verdict && f->verdict == DOCTOR_OK)
		n = 0;
	if (verdict < f->verdict && verdict == DOCTOR_OK)
		return;
	if (verdict > f->verdict)
		f->verdict = verdict;
	if (n > 0 && n + 4 < sizeof f->detail) {
		memcpy(f->detail + n, "; ", 3);
		n += 2;
	}
	va_start(ap, fmt);
	vsnprintf(f->detail + n, sizeof f->detail - n, fmt, ap);
	va_end(ap);
}

void remedy(struct doctor *d, const char *fmt, ...)
{
	va_list ap;

	if (d->now.remedy[0] != '\0')
		return;
	va_start(ap, fmt);
	vsnprintf(d->now.remedy, sizeof d->now.remedy, fmt, ap);
	va_end(ap);
}

static void print_row(const char *id, const char *verdict, const char *detail, const char *what_to_do)
{
	printf("%-8s %-22s ", verdict, id);
	say_foreign(stdout, detail, strlen(detail));
	if (what_to_do != NULL) {
		printf("\n%-8s %-22s   -> ", "", "");
		say_foreign(stdout, what_to_do, strlen(what_to_do));
	}
	putchar('\n');
	fflush(stdout);
}

void doctor_say(struct doctor *d, const char *id, enum verdict verdict, const char *detail, const char *what_to_do)
{
	struct buf text;
	struct jw w;

	d->count[verdict]++;
	if (verdict == DOCTOR_OK || verdict == DOCTOR_SKIPPED)
		what_to_do = NULL;
	if (!d->cli->json) {
		print_row(id, verdicts[verdict], detail, what_to_do);
		return;
	}
	/* The same filter as for terminals: who reads JSON may print it, too. */
	buf_init(&text, 8192);
	text_log(&text, detail, strlen(detail), 4096);
	if (d->rows.n > 0)
		buf_addc(&d->rows, ',');
	jw_init(&w, &d->rows);
	jw_open(&w, '{');
	jw_kstr(&w, "id", id);
	jw_kstr(&w, "status", verdicts[verdict]);
	jw_kstr(&w, "detail", text.n > 0 ? buf_cstr(&text) : "");
	buf_reset(&text);
	jw_key(&w, "remedy");
	if (what_to_do != NULL) {
		text_log(&text, what_to_do, strlen(what_to_do), 4096);
		jw_str(&w, buf_cstr(&text));
	} else {
		jw_null(&w);
	}
	jw_close(&w, '}');
	buf_free(&text);
}

bool need_conf(struct doctor *d)
{
	if (!d->have_conf)
		found(d, DOCTOR_SKIPPED, "the configuration cannot be read");
	return d->have_conf;
}

bool need_service(struct doctor *d)
{
	if (d->admin == NULL)
		found(d, DOCTOR_SKIPPED, "the service does not answer");
	return d->admin != NULL;
}

/* One that there is: of a wall the remedy is always the same. */
static void list_one(bool json, const char *id, const char *looks, const char *what_to_do)
{
	own_buf struct buf b;
	struct jw w;

	buf_init(&b, 4096);
	if (!json) {
		printf("%-22s %s\n", id, looks);
		return;
	}
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_kstr(&w, "id", id);
	jw_kstr(&w, "looks", looks);
	jw_kstr(&w, "remedy", what_to_do);
	jw_close(&w, '}');
	say_json((const char *)b.p, b.n);
}

static int list(bool json)
{
	char id[64];

	for (size_t i = 0; i < FAMILIES; i++)
		for (const struct doctor_check *c = families[i]; c->id != NULL; c++)
			list_one(json, c->id, c->looks, c->remedy);
	for (int i = STEP_NONE + 1; i < STEP__COUNT; i++)
		list_one(json, doctor_wall_id(i, id), walls[i].why, "systemctl stop pinfold until it holds");
	return ferror(stdout) ? EXIT_FAILED : 0;
}

static void walk(struct doctor *d)
{
	for (size_t i = 0; i < FAMILIES; i++) {
		for (const struct doctor_check *c = families[i]; c->id != NULL; c++) {
			if (c->look == NULL)
				continue;
			d->now = (struct finding){.verdict = DOCTOR_OK};
			c->look(d);
			doctor_say(d, c->id, d->now.verdict, d->now.detail[0] != '\0' ? d->now.detail : c->looks,
				   d->now.remedy[0] != '\0' ? d->now.remedy : c->remedy);
		}
	}
}

static void print_json(struct doctor *d, bool ok)
{
	own_buf struct buf b;

	buf_init(&b, ROWS_MAX + 64);
	buf_addf(&b, "{\"checks\":[%s],\"ok\":%s}", buf_cstr(&d->rows), ok ? "true" : "false");
	if (!buf_failed(&b))
		say_json((const char *)b.p, b.n);
}

int cmd_doctor(struct cli *cli, int argc, char **argv)
{
	static struct doctor d; /* large */
	bool listing = false;

	d = (struct doctor){.cli = cli, .box = true, .agent = "probe"};
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--list") == 0)
			listing = true;
		else if (strcmp(argv[i], "--json") == 0)
			cli->json = true;
		else if (strcmp(argv[i], "--online") == 0)
			d.online = true;
		else if (strcmp(argv[i], "--no-box") == 0)
			d.box = false;
		else if (strcmp(argv[i], "--kill-service") == 0)
			d.kill_service = true;
		else if (strcmp(argv[i], "--agent") == 0 && i + 1 < argc && id_valid(argv[i + 1]))
			d.agent = argv[++i];
		else
			return usage(
			    "doctor takes --json, --online, --no-box, --kill-service, --agent PROFILE and --list");
	}
	if (listing)
		return list(cli->json);
	if (geteuid() != 0)
		return usage("doctor looks at what only root sees: run it as root");
	buf_init(&d.rows, ROWS_MAX);
	buf_init(&d.metrics, 1 << 17);
	walk(&d);
	doctor_web_end(&d);
	bool ok = d.count[DOCTOR_ERROR] == 0;
	if (cli->json && buf_failed(&d.rows))
		ok = false;
	else if (cli->json)
		print_json(&d, ok);
	else
		printf("%u ok, %u warnings, %u errors, %u skipped\n", d.count[DOCTOR_OK], d.count[DOCTOR_WARN],
		       d.count[DOCTOR_ERROR], d.count[DOCTOR_SKIPPED]);
	if (d.admin != NULL)
		ask_free(d.admin);
	buf_free(&d.rows);
	buf_free(&d.metrics);
	if (d.have_conf)
		conf_free(&d.conf);
	return ok && !ferror(stdout) ? 0 : EXIT_FAILED;
}
