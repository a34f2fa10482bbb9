/*
 * pinfold config check [FILE], show and example. What is wrong comes from the reader and from those checks of pinfold
 * doctor that look at nothing but the configuration, its files, its secrets and its ids.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/conf_example.h"
#include "cli/conf_read.h"
#include "cli/conf_value.h"
#include "cli/doctor.h"
#include "cli/reload.h"
#include "lib/chan.h"
#include "lib/die.h"
#include "lib/own.h"
#include "lib/place.h"

/* Each check of a family that may be asked without a service, as lines of the configuration's. */
static void ask_doctor(struct doctor *d, struct conf_notes *notes, const struct doctor_check *family, bool installed)
{
	for (const struct doctor_check *c = family; c->id != NULL; c++) {
		bool modes = strcmp(c->id, "config.modes") == 0, programs = strcmp(c->id, "config.agents") == 0;
		if (c->look == NULL || strcmp(c->id, "config.files") == 0 || (modes && !installed))
			continue;
		d->now = (struct finding){.verdict = DOCTOR_OK};
		c->look(d);
		const char *what = d->now.remedy[0] != '\0' ? d->now.remedy : c->remedy;
		struct conf_place at = {place_dir(PLACE_SYSCONF), 0};
		/* A program may be installed later than the profile that names it. */
		if (d->now.verdict == DOCTOR_ERROR && !programs)
			conf_wrong(notes, at, "%s: %s; %s", c->id, d->now.detail, what);
		else if (d->now.verdict >= DOCTOR_WARN)
			conf_worth(notes, at, "%s: %s; %s", c->id, d->now.detail, what);
	}
}

/* Where sandboxd would refuse to start: the folder is opened before there is a log to say so. */
static void look_at_log(struct conf_notes *notes, const struct cf_global *g)
{
	struct conf_place at = {place_dir(PLACE_SYSCONF), 0};
	const char *slash = strrchr(g->log_path, '/');
	char dir[256];
	struct stat st;

	if (g->log_to != LOG_TO_FILE || slash == NULL)
		return;
	snprintf(dir, sizeof dir, "%.*s", slash > g->log_path ? (int)(slash - g->log_path) : 1, g->log_path);
	if (stat(dir, &st) != 0)
		conf_wrong(notes, at, "log_path: %s: %s; install -d -m 750 -g adm %s", dir, strerror(errno), dir);
	else if (!S_ISDIR(st.st_mode) || st.st_uid != 0 || (st.st_mode & 022) != 0)
		conf_wrong(notes, at, "log_path: %s must be a folder of root's into which nobody else may write", dir);
}

static void look_further(const struct cli *cli, struct conf_files *f, const struct conf *conf, bool installed)
{
	static struct doctor d; /* large */

	if (geteuid() != 0) {
		conf_worth(&f->notes, (struct conf_place){place_dir(PLACE_SYSCONF), 0},
			   "secrets, owners, modes and ids were not looked at: only root sees them");
		return;
	}
	d = (struct doctor){.cli = cli, .conf = *conf, .have_conf = true};
	look_at_log(&f->notes, &conf->global);
	ask_doctor(&d, &f->notes, doctor_conf, installed);
	ask_doctor(&d, &f->notes, doctor_provider, installed);
	ask_doctor(&d, &f->notes, doctor_secrets, installed);
	ask_doctor(&d, &f->notes, doctor_keys, installed);
	ask_doctor(&d, &f->notes, doctor_push, installed);
}

static void json_notes(struct jw *w, const struct conf_notes *n, bool errors)
{
	jw_key(w, errors ? "errors" : "warnings");
	jw_open(w, '[');
	for (size_t i = 0; i < n->n && i < CONF_NOTES; i++) {
		const struct conf_note *v = &n->v[i];
		if (v->error != errors)
			continue;
		jw_open(w, '{');
		jw_kstr(w, "file", v->at.file);
		jw_key(w, "line");
		if (v->at.line > 0)
			jw_int(w, v->at.line);
		else
			jw_null(w);
		jw_kstr(w, "message", v->text);
		jw_close(w, '}');
	}
	jw_close(w, ']');
}

static int check(struct cli *cli, const char *file)
{
	static struct conf_files f;
	static struct conf conf;
	own_fd int fd = bundle_new("pinfold-conf");
	bool loaded = false;

	if (fd < 0)
		return usage("cannot make a memory file: %s", strerror(errno));
	conf_files_read(&f, file);
	if (conf_files_write(&f, fd) && bundle_seal(fd)) {
		const char *why = conf_load(&conf, fd);
		loaded = why == NULL;
		if (!loaded)
			conf_wrong(&f.notes, (struct conf_place){place_dir(PLACE_SYSCONF), 0},
				   "does not fit together: %s", why);
		else
			look_further(cli, &f, &conf, file == NULL);
	}
	bool good = f.notes.errors == 0;
	if (cli->json) {
		own_buf struct buf b;
		struct jw w;
		buf_init(&b, 4 << 20);
		jw_init(&w, &b);
		jw_open(&w, '{');
		jw_key(&w, "ok");
		jw_bool(&w, good);
		json_notes(&w, &f.notes, true);
		json_notes(&w, &f.notes, false);
		jw_close(&w, '}');
		if (!buf_failed(&b))
			say_json((const char *)b.p, b.n);
	} else {
		conf_print(&f.notes, stderr);
		if (good)
			printf("configuration ok: %u tenants, %u model profiles, %u agents, %u providers\n",
			       conf.ntenants, conf.nprofiles, conf.nagents, conf.nproviders);
	}
	if (loaded)
		conf_free(&conf);
	conf_files_free(&f);
	return good && !ferror(stdout) ? 0 : EXIT_FAILED;
}

/* --- what is in force ------------------------------------------------------------------------ */

static void show_value(struct buf *b, const struct conf_row *r, const char *const *words, unsigned n)
{
	if (r->held != CONF_HELD_STRS) {
		buf_adds(b, n > 0 && words[0][0] != '\0' ? words[0] : "\"\"");
		return;
	}
	buf_addc(b, '{');
	for (unsigned i = 0; i < n; i++)
		buf_addf(b, "%s\"%s\"", i > 0 ? ", " : "", words[i]);
	buf_addc(b, '}');
}

static void show_row(struct conf_files *f, const struct conf_block *b, const struct conf_row *r, struct jw *w)
{
	unsigned n;
	struct conf_place at;
	own_buf struct buf line;
	const struct conf_said *said = conf_find(b, r);
	const char *const *words = conf_words(&f->notes, b, r, &n, &at);

	buf_init(&line, 1 << 16);
	if (w == NULL) {
		buf_addf(&line, "%s = ", r->name);
		show_value(&line, r, words, n);
		fputs(strcmp(b->section, "machine") == 0 ? "" : "\t", stdout);
		say_cell(buf_failed(&line) ? "" : buf_cstr(&line), 50);
		fputs("  # ", stdout);
		if (said == NULL)
			puts("default");
		else {
			say_foreign(stdout, at.file, strlen(at.file));
			printf(":%u\n", at.line);
		}
		return;
	}
	jw_open(w, '{');
	jw_kstr(w, "section", b->section);
	jw_kstr(w, "title", b->title);
	jw_kstr(w, "name", r->name);
	jw_key(w, "value");
	if (r->held == CONF_HELD_STRS) {
		jw_open(w, '[');
		for (unsigned i = 0; i < n; i++)
			jw_str(w, words[i]);
		jw_close(w, ']');
	} else {
		jw_str(w, n > 0 ? words[0] : "");
	}
	jw_key(w, "default");
	jw_bool(w, said == NULL);
	if (said != NULL) {
		jw_kstr(w, "file", at.file);
		jw_kint(w, "line", at.line);
	}
	jw_kstr(w, "change", r->restart ? "restart" : "reload");
	jw_close(w, '}');
}

static void show_block(struct conf_files *f, const struct conf_block *b, struct jw *w)
{
	bool machine = strcmp(b->section, "machine") == 0;

	if (!machine && w == NULL) {
		printf("%s ", b->section);
		say_foreign(stdout, b->title, strlen(b->title));
		puts("{");
	}
	for (size_t i = 0; i < CONF_ROWS; i++)
		if (strcmp(conf_rows[i].section, b->section) == 0)
			show_row(f, b, &conf_rows[i], w);
	for (const struct conf_block *c = b->inner; c != NULL; c = c->next)
		show_block(f, c, w);
	if (!machine && w == NULL)
		puts("}");
}

/* Secrets are names here as everywhere in these files. */
static int show(struct cli *cli, const char *file)
{
	static struct conf_files f;
	own_buf struct buf b;
	struct jw w;

	conf_files_read(&f, file);
	bool good = conf_files_write(&f, -1);
	conf_print(&f.notes, stderr);
	buf_init(&b, 16 << 20);
	jw_init(&w, &b);
	jw_open(&w, '{');
	jw_key(&w, "settings");
	jw_open(&w, '[');
	for (const struct conf_block *x = f.blocks; x != NULL && good; x = x->next)
		show_block(&f, x, cli->json ? &w : NULL);
	jw_close(&w, ']');
	jw_close(&w, '}');
	if (good && cli->json && !buf_failed(&b))
		say_json((const char *)b.p, b.n);
	conf_files_free(&f);
	return good && !ferror(stdout) ? 0 : EXIT_FAILED;
}

static int example(const char *section)
{
	static const struct conf_given none[] = {{NULL, NULL, NULL}};
	own_buf struct buf b;
	const char *file = strcmp(section, "machine") == 0 || strcmp(section, "users") == 0 ? "pinfold.conf"
			   : strcmp(section, "provider") == 0                               ? "providers.d"
			   : strcmp(section, "tenant") == 0                                 ? "tenants.d"
											    : "profiles.d";

	buf_init(&b, 1 << 18);
	buf_addf(&b, "# %s: every setting%s%s, with its default. See pinfold.conf(5).\n", file,
		 strcmp(section, "machine") == 0 ? "" : " of a section ",
		 strcmp(section, "machine") == 0 ? "" : section);
	conf_example(&b, section, strcmp(section, "machine") == 0 || strcmp(section, "users") == 0 ? NULL : "example",
		     none);
	if (strcmp(section, "machine") == 0)
		conf_example(&b, "users", NULL, none);
	if (buf_failed(&b))
		return EXIT_FAILED;
	fputs(buf_cstr(&b), stdout);
	return ferror(stdout) ? EXIT_FAILED : 0;
}

int cmd_config(struct cli *cli, int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "", *file = NULL;

	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0)
			cli->json = true;
		else if (file == NULL && argv[i][0] != '-')
			file = argv[i];
		else
			return usage("config %s does not take %s", what, argv[i]);
	}
	if (strcmp(what, "check") == 0)
		return check(cli, file);
	if (strcmp(what, "reload") == 0 && file == NULL) {
		if (config_reload(false) != RELOAD_APPLIED)
			return EXIT_FAILED;
		if (!cli->json)
			puts("the configuration is in force in every process");
		return 0;
	}
	if (strcmp(what, "show") == 0)
		return show(cli, file);
	if (strcmp(what, "example") == 0 && conf_section(file != NULL ? file : "machine") &&
	    strcmp(file != NULL ? file : "", "check") != 0)
		return example(file != NULL ? file : "machine");
	return usage("config check [FILE], config reload, config show [FILE] or config example "
		     "[users|provider|model_profile|agent|tenant]");
}
