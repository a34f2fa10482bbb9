/*
 * One configuration file in, what it says and where out. libconfuse reads; every value is taken as text, and its
 * callback remembers the line. Trusts nothing in the file.
 */
#include "cli/conf_parse.h"

#include <confuse.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "cli/conf_read.h"
#include "lib/num.h"
#include "lib/own.h"

enum { SECTIONS = 6, MOST_NAMES = 64, UNKNOWN = 200, VALUES = 20000, LONGEST = 1000000 };

/* Behind the text, known to the top level alone: libconfuse takes the end of a file for the end of any section, so that
 * one cut short would pass. */
#define LAST_NAME "end_of_file"

struct value {
	const cfg_opt_t *opt;
	unsigned line, again; /* again: a second time, there */
};

struct parser {
	struct conf_notes *notes;
	const char *file;
	enum conf_kind kind;
	char *text;
	unsigned nunknown;
	struct value *values;
	unsigned nvalues;
	cfg_opt_t options[SECTIONS + 1][MOST_NAMES];
	/* What made the reading stop. */
	char unknown[128], unknown_in[64], wrong[400];
	unsigned line;
};

/* libconfuse's callbacks have no place for our own data. */
static struct parser *now;

static void on_error(cfg_t *cfg, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
static void on_error(cfg_t *cfg, const char *fmt, va_list ap)
{
	static const char unknown[] = "no such option '";
	char text[400];

	vsnprintf(text, sizeof text, fmt, ap);
	if (now->wrong[0] != '\0')
		return;
	snprintf(now->wrong, sizeof now->wrong, "%s", text);
	now->line = cfg->line > 0 ? (unsigned)cfg->line : 0;
	if (strncmp(text, unknown, sizeof unknown - 1) != 0)
		return;
	const char *name = text + sizeof unknown - 1;
	size_t n = strlen(name);
	snprintf(now->unknown, sizeof now->unknown, "%.*s", n > 0 ? (int)n - 1 : 0, name);
	snprintf(now->unknown_in, sizeof now->unknown_in, "%s", cfg->name);
}

static struct value *value_of(const cfg_opt_t *opt)
{
	for (unsigned i = 0; i < now->nvalues; i++)
		if (now->values[i].opt == opt)
			return &now->values[i];
	return NULL;
}

/* Each word of a value; what is remembered is where its setting is set. */
static int on_value(cfg_t *cfg, cfg_opt_t *opt, const char *text, void *result)
{
	struct value *v = value_of(opt);
	bool list = (opt->flags & CFGF_LIST) != 0;

	*(const char **)result = text;
	if (v == NULL && now->nvalues < VALUES)
		now->values[now->nvalues++] = (struct value){.opt = opt, .line = (unsigned)cfg->line};
	else if (v != NULL && (!list || opt->nvalues <= 1))
		v->again = (unsigned)cfg->line;
	return v == NULL && now->nvalues == VALUES ? -1 : 0;
}

static const char *const sections[SECTIONS] = {"provider", "model_profile", "agent", "tenant", "users", "check"};

static cfg_opt_t *add_rows(cfg_opt_t *o, const char *section)
{
	for (size_t i = 0; i < CONF_ROWS; i++) {
		const struct conf_row *r = &conf_rows[i];
		bool list = r->held == CONF_HELD_STRS;
		if (strcmp(r->section, section) != 0)
			continue;
		*o = list ? (cfg_opt_t)CFG_STR_LIST(r->name, NULL, CFGF_NODEFAULT)
			  : (cfg_opt_t)CFG_STR(r->name, NULL, CFGF_NODEFAULT);
		o++->parsecb = on_value;
	}
	return o;
}

/* The options of libconfuse, from the rows; the top level is the last. */
static cfg_opt_t *options(void)
{
	for (size_t i = 0; i < SECTIONS; i++) {
		cfg_opt_t *o = add_rows(now->options[i], sections[i]);
		if (strcmp(sections[i], "tenant") == 0)
			*o++ = (cfg_opt_t)CFG_SEC("check", now->options[5], CFGF_MULTI);
		*o = (cfg_opt_t)CFG_END();
	}
	cfg_opt_t *o = now->options[SECTIONS];
	for (size_t i = 0; i < 4; i++)
		*o++ = (cfg_opt_t)CFG_SEC(sections[i], now->options[i], CFGF_MULTI | CFGF_TITLE | CFGF_NO_TITLE_DUPES);
	*o++ = (cfg_opt_t)CFG_BOOL(LAST_NAME, cfg_false, CFGF_NONE);
	if (now->kind == CONF_MAIN)
		*o++ = (cfg_opt_t)CFG_SEC("users", now->options[4], CFGF_MULTI);
	o = add_rows(o, now->kind == CONF_MAIN ? "machine" : "");
	*o = (cfg_opt_t)CFG_END();
	return now->options[SECTIONS];
}

static const char *section_of(const char *cfg_name)
{
	for (size_t i = 0; i < SECTIONS; i++)
		if (strcmp(cfg_name, sections[i]) == 0)
			return sections[i];
	return now->kind == CONF_MAIN ? "machine" : "";
}

/* Where else the name belongs, or what may have been meant. */
static void note_unknown(const char *section, const char *name, unsigned line)
{
	struct conf_place at = {now->file, line};
	const char *names[MOST_NAMES + SECTIONS], *home = NULL;
	size_t n = 0;
	bool top = section[0] == '\0' || strcmp(section, "machine") == 0;

	for (size_t i = 0; i < CONF_ROWS; i++) {
		if (strcmp(conf_rows[i].section, section) == 0 && n < MOST_NAMES)
			names[n++] = conf_rows[i].name;
		else if (home == NULL && strcmp(conf_rows[i].name, name) == 0)
			home = conf_rows[i].section;
	}
	for (size_t i = 0; top && i < 4 + (section[0] != '\0'); i++)
		names[n++] = sections[i];
	if (home == NULL && strcmp(name, "users") == 0)
		home = "machine";
	const char *near = conf_nearest(name, names, n);
	const char *in = top ? "outside of sections" : section;
	if (home != NULL && strcmp(home, "machine") == 0)
		conf_wrong(now->notes, at,
			   "there is no setting \"%s\" here: it belongs into pinfold.conf, outside of sections", name);
	else if (home != NULL)
		conf_wrong(now->notes, at, "there is no setting \"%s\" %s%s: it belongs into a section \"%s\"", name,
			   top ? "" : "in ", in, home);
	else if (near != NULL)
		conf_wrong(now->notes, at, "there is no setting \"%s\" %s%s; is \"%s\" meant?", name, top ? "" : "in ",
			   in, near);
	else
		conf_wrong(now->notes, at, "there is no setting \"%s\" %s%s", name, top ? "" : "in ", in);
}

static bool word_part(char c)
{
	return c != '\0' && strchr(" \t\r\n={}(),+\"'", c) == NULL;
}

/* Behind a text in quotes, or a word. */
static char *behind_word(char *p)
{
	char quote = *p;

	if (quote != '"' && quote != '\'') {
		while (word_part(*p))
			p++;
		return p;
	}
	for (p++; *p != '\0' && *p != quote; p++)
		p += *p == '\\' && p[1] != '\0';
	return *p != '\0' ? p + 1 : p;
}

static char *behind_blanks(char *p)
{
	return p + strspn(p, " \t\r\n");
}

/* Behind the brace that belongs to the one at p. */
static char *behind_braces(char *p)
{
	unsigned open = 0;

	while (*p != '\0') {
		char c = *p;
		p = c == '"' || c == '\'' ? behind_word(p) : p + 1;
		open += c == '{';
		if (c == '}' && --open == 0)
			break;
	}
	return p;
}

/* What is said of a name that does not exist: NAME = VALUE, NAME = {...}, NAME {...} or NAME "TITLE" {...}. Its end;
 * NULL where it is none of these. */
static char *behind_saying(char *name)
{
	char *p = behind_blanks(behind_word(name));

	if (*p == '+')
		p++;
	if (*p == '=') {
		p = behind_blanks(p + 1);
		return *p == '{' ? behind_braces(p) : behind_word(p);
	}
	if (*p != '{')
		p = behind_blanks(behind_word(p));
	return *p == '{' ? behind_braces(p) : NULL;
}

/* The name as a word of its own in this line, or NULL. */
static char *find_name(const char *name, unsigned line)
{
	char *p = now->text, *end;
	size_t n = strlen(name);

	for (unsigned i = 1; i < line && p != NULL; i++) {
		p = strchr(p, '\n');
		p = p != NULL ? p + 1 : NULL;
	}
	if (p == NULL || n == 0)
		return NULL;
	for (end = p + strcspn(p, "\n"); p < end;) {
		if (word_part(*p) && behind_word(p) == p + n && strncmp(p, name, n) == 0)
			return p;
		p = word_part(*p) || *p == '"' || *p == '\'' ? behind_word(p) : p + 1;
	}
	return NULL;
}

/* After a reading that stopped: what is said of a name that does not exist is noted and becomes blanks, so that the
 * rest is read. False: there is nothing more to be had. */
static bool again(void)
{
	if (now->unknown[0] == '\0' || strcmp(now->unknown, LAST_NAME) == 0)
		return false;
	note_unknown(section_of(now->unknown_in), now->unknown, now->line);
	char *name = find_name(now->unknown, now->line), *end = name != NULL ? behind_saying(name) : NULL;
	if (end == NULL || ++now->nunknown > UNKNOWN)
		return false;
	for (; name < end; name++)
		if (*name != '\n')
			*name = ' ';
	return true;
}

/* NULL after noting why. */
static cfg_t *read_text(void)
{
	for (;;) {
		now->nvalues = 0;
		now->unknown[0] = now->wrong[0] = '\0';
		cfg_t *cfg = cfg_init(options(), CFGF_NONE);
		if (cfg == NULL)
			return NULL;
		cfg_set_error_function(cfg, on_error);
		if (cfg_parse_buf(cfg, now->text) == CFG_SUCCESS && cfg_getbool(cfg, LAST_NAME) == cfg_true)
			return cfg;
		cfg_free(cfg);
		if (again())
			continue;
		struct conf_place at = {now->file, now->wrong[0] != '\0' ? now->line : 0};
		if (strcmp(now->unknown, LAST_NAME) == 0 || now->wrong[0] == '\0')
			conf_wrong(now->notes, at, "has an error or ends in the middle of a section");
		else if (now->unknown[0] == '\0')
			conf_wrong(now->notes, at, "%s", now->wrong);
		return NULL;
	}
}

/* The line at which a section begins that ends at this one: libconfuse only knows the end. */
static unsigned beginning(const char *section, const char *title, unsigned *from)
{
	unsigned line = 1, found = 0;
	size_t n = strlen(section);

	for (const char *p = now->text; p != NULL && *p != '\0';
	     p = strchr(p, '\n'), p = p != NULL ? p + 1 : NULL, line++) {
		const char *s = p + strspn(p, " \t");
		if (line <= *from || strncmp(s, section, n) != 0 || strchr(" \t\"'{", s[n]) == NULL)
			continue;
		s += n + strspn(s + n, " \t\"'");
		if (strncmp(s, title, strlen(title)) == 0) {
			found = line;
			break;
		}
	}
	if (found > 0)
		*from = title[0] == '\0' ? found : 0;
	return found;
}

static void *get(size_t n)
{
	void *p = arena_get(now->notes->arena, n);

	if (p != NULL)
		memset(p, 0, n);
	return p;
}

static const char *kept(const char *s)
{
	const char *p = arena_dup(now->notes->arena, s, strlen(s));

	return p != NULL ? p : "";
}

static void take_values(struct conf_block *b, cfg_t *cfg)
{
	struct conf_said **end = &b->said;

	for (size_t i = 0; i < CONF_ROWS; i++) {
		const struct conf_row *r = &conf_rows[i];
		cfg_opt_t *opt = strcmp(r->section, b->section) == 0 ? cfg_getopt(cfg, r->name) : NULL;
		if (opt == NULL || (opt->nvalues == 0 && (opt->flags & CFGF_MODIFIED) == 0))
			continue;
		const struct value *v = value_of(opt);
		struct conf_said *s = get(sizeof *s);
		const char **words = get((opt->nvalues + 1) * sizeof *words);
		if (s == NULL || words == NULL)
			return;
		for (unsigned k = 0; k < opt->nvalues; k++)
			words[k] = kept(cfg_opt_getnstr(opt, k));
		*s = (struct conf_said){.row = r, .line = v != NULL ? v->line : 0, .n = opt->nvalues, .v = words};
		*end = s;
		end = &s->next;
		if (v != NULL && v->again > 0)
			conf_wrong(now->notes, (struct conf_place){now->file, v->again},
				   "%s stands here a second time, after line %u: which is meant?", r->name, v->line);
	}
}

static struct conf_block *take_block(const char *section, cfg_t *cfg, unsigned line)
{
	struct conf_block *b = get(sizeof *b);

	if (b == NULL)
		return NULL;
	const char *title = cfg_title(cfg);
	*b = (struct conf_block){
	    .section = section, .title = title != NULL ? kept(title) : "", .at = {kept(now->file), line}};
	take_values(b, cfg);
	if (strcmp(section, "tenant") != 0)
		return b;
	struct conf_block **end = &b->inner;
	unsigned from = line > 0 ? line - 1 : 0;
	for (unsigned i = 0; i < cfg_size(cfg, "check"); i++) {
		unsigned at = beginning("check", "", &from);
		struct conf_block *check = take_block("check", cfg_getnsec(cfg, "check", i), at);
		if (check == NULL)
			break;
		*end = check;
		end = &check->next;
	}
	return b;
}

static void take_file(cfg_t *cfg, struct conf_block ***end)
{
	if (now->kind == CONF_MAIN) {
		struct conf_block *b = take_block("machine", cfg, 0);
		if (b != NULL) {
			**end = b;
			*end = &b->next;
		}
	}
	for (size_t k = 0; k < 4 + (now->kind == CONF_MAIN); k++) {
		unsigned from = 0;
		for (unsigned i = 0; i < cfg_size(cfg, sections[k]); i++) {
			cfg_t *sec = cfg_getnsec(cfg, sections[k], i);
			const char *title = cfg_title(sec) != NULL ? cfg_title(sec) : "";
			struct conf_block *b = take_block(sections[k], sec, beginning(sections[k], title, &from));
			if (b == NULL)
				return;
			**end = b;
			*end = &b->next;
		}
	}
}

/* The text with one more setting behind it; NULL after noting why. */
static char *load(struct conf_notes *notes, const char *file)
{
	struct conf_place at = {file, 0};
	size_t n;
	own_free char *read = file_read(AT_FDCWD, file, LONGEST, &n);

	if (read == NULL) {
		conf_wrong(notes, at, "cannot be read: %s: run \"pinfold setup\" or restore the file", strerror(errno));
		return NULL;
	}
	if (memchr(read, '\0', n) != NULL) {
		conf_wrong(notes, at, "is not a text file");
		return NULL;
	}
	conf_plain(read);
	/* libconfuse would put a variable of the environment there, which is another for whoever reads. */
	const char *dollar = strstr(read, "${");
	if (dollar != NULL) {
		for (const char *p = read; p < dollar; p++)
			at.line += *p == '\n';
		at.line++;
		conf_wrong(notes, at, "\"${\" has no meaning here: write the value itself");
		return NULL;
	}
	return arena_printf(notes->arena, "%s\n" LAST_NAME " = yes\n", read);
}

/* A text in quotes, or a comment, that has no end would swallow the next file as well: libconfuse stays in it. False
 * after noting where it begins. */
static bool ends(struct conf_notes *notes, const char *file, char *text)
{
	struct conf_place at = {file, 1};

	for (char *p = text; *p != '\0';) {
		char *next = *p == '"' || *p == '\'' ? behind_word(p) : p + 1;
		bool comment = p[0] == '/' && p[1] == '*'; /* those with an end are blanks by now */
		if (comment || *next == '\0') {
			if (comment || *p == '"' || *p == '\'')
				conf_wrong(notes, at, "a %s that begins here has no end",
					   comment ? "comment" : "text in quotes");
			return !comment && *p != '"' && *p != '\'';
		}
		for (; p < next; p++)
			at.line += *p == '\n';
	}
	return true;
}

bool conf_parse(struct conf_notes *notes, const char *file, enum conf_kind kind, struct conf_block ***end)
{
	own_free struct parser *p = calloc(1, sizeof *p);
	own_free struct value *values = calloc(VALUES, sizeof *values);

	if (p == NULL || values == NULL)
		return false;
	*p = (struct parser){.notes = notes, .file = file, .kind = kind, .values = values};
	p->text = load(notes, file);
	if (p->text == NULL || !ends(notes, file, p->text))
		return false;
	now = p;
	cfg_t *cfg = read_text();
	if (cfg != NULL) {
		take_file(cfg, end);
		cfg_free(cfg);
	}
	now = NULL;
	return cfg != NULL;
}

const struct conf_said *conf_find(const struct conf_block *b, const struct conf_row *r)
{
	for (const struct conf_said *s = b->said; s != NULL; s = s->next)
		if (s->row == r)
			return s;
	return NULL;
}
