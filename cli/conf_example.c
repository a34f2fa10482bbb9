/* Commented examples from the rows of spec/conf.tab: what setup writes, and what `pinfold config example` shows. */
#include "cli/conf_example.h"

#include <string.h>

#include "gen/conf_tab.h"

enum { WIDTH = 118 };

bool conf_section(const char *section)
{
	for (size_t i = 0; i < CONF_ROWS; i++)
		if (strcmp(conf_rows[i].section, section) == 0)
			return true;
	return false;
}

/* A sentence as comment lines, without the marks of what is literal. */
static void comment(struct buf *b, const char *margin, const char *text)
{
	size_t width = 0;

	for (const char *p = text; *p != '\0';) {
		size_t n = strcspn(p, " "), shown = 0;
		for (size_t i = 0; i < n; i++)
			shown += p[i] != '`';
		if (width == 0 || width + 1 + shown > WIDTH) {
			buf_addf(b, "%s%s# ", width == 0 ? "" : "\n", margin);
			width = strlen(margin) * 8 + 1;
		} else {
			buf_addc(b, ' ');
		}
		for (size_t i = 0; i < n; i++)
			if (p[i] != '`')
				buf_addc(b, p[i]);
		width += 1 + shown;
		p += n;
		p += *p == ' ';
	}
	buf_addc(b, '\n');
}

static const char *unit(const struct conf_row *r)
{
	static const char *const units[] = {[CONF_SECONDS] = " seconds",
					    [CONF_MILLISECONDS] = " milliseconds",
					    [CONF_DAYS] = " days",
					    [CONF_BYTES] = " bytes",
					    [CONF_MEGABYTES] = " megabytes"};

	return r->type < sizeof units / sizeof *units && units[r->type] != NULL ? units[r->type] : "";
}

/* What a setting may be, and when a change of it counts. */
static void bounds(struct buf *b, const char *margin, const struct conf_row *r)
{
	bool number = r->type >= CONF_NUMBER && r->type <= CONF_MEGABYTES;
	own_buf struct buf line;

	buf_init(&line, 1000);
	if (number)
		buf_addf(&line, "%llu to %llu%s.", (unsigned long long)r->least, (unsigned long long)r->most, unit(r));
	else if (r->type == CONF_WORD) {
		buf_adds(&line, strchr(r->words, '|') != NULL ? "One of:" : "Only:");
		for (const char *p = r->words; *p != '\0'; p += *p == '|') {
			size_t n = strcspn(p, "|");
			buf_addf(&line, " %.*s%s", (int)n, p, p[n] == '|' ? "," : ".");
			p += n;
		}
	}
	if (r->restart)
		buf_addf(&line, "%sA change takes a restart.", line.n > 0 ? " " : "");
	if (line.n > 0)
		comment(b, margin, buf_cstr(&line));
}

/* What stands there where the table has no default but something is needed. */
static const char *needed(const struct conf_row *r)
{
	static const struct {
		const char *section, *name, *value;
	} rows[] = {{"provider", "base_url", "https://api.openai.com/v1"},
		    {"model_profile", "model", "gpt-4.1-mini"},
		    {"agent", "command", "/opt/pinfold/pinfold-agent"},
		    {"check", "argv", "git diff --check"}};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (strcmp(rows[i].section, r->section) == 0 && strcmp(rows[i].name, r->name) == 0)
			return rows[i].value;
	return r->def;
}

static void value(struct buf *b, const struct conf_row *r)
{
	const char *v = needed(r);

	if ((r->type >= CONF_NUMBER && r->type <= CONF_MEGABYTES) || r->type == CONF_BOOL) {
		buf_adds(b, v);
	} else if (r->held != CONF_HELD_STRS) {
		buf_addf(b, "\"%s\"", v);
	} else {
		buf_addc(b, '{');
		for (const char *p = v; *p != '\0'; p += *p == ' ') {
			size_t n = strcspn(p, " ");
			buf_addf(b, "%s\"%.*s\"", p == v ? "" : ", ", (int)n, p);
			p += n;
		}
		buf_addc(b, '}');
	}
}

static const struct conf_given *given_of(const struct conf_given *g, const char *section, const char *name)
{
	for (; g->section != NULL; g++)
		if (strcmp(g->section, section) == 0 && (name == NULL || strcmp(g->name, name) == 0))
			return g;
	return NULL;
}

void conf_example(struct buf *b, const char *section, const char *title, const struct conf_given *given)
{
	bool machine = strcmp(section, "machine") == 0, open = given_of(given, section, NULL) != NULL;
	const char *margin = machine ? "" : "\t", *off = open || machine ? "" : "#";

	if (!machine)
		buf_addf(b, "%s%s%s%s%s {\n", off, section, title != NULL ? " \"" : "", title != NULL ? title : "",
			 title != NULL ? "\"" : "");
	for (size_t i = 0; i < CONF_ROWS; i++) {
		const struct conf_row *r = &conf_rows[i];
		const struct conf_given *g = given_of(given, section, r->name);
		if (strcmp(r->section, section) != 0)
			continue;
		comment(b, margin, r->doc);
		bounds(b, margin, r);
		buf_addf(b, "%s%s%s = ", g == NULL ? "#" : "", margin, r->name);
		if (g != NULL)
			buf_adds(b, g->value);
		else
			value(b, r);
		buf_addc(b, '\n');
	}
	if (strcmp(section, "tenant") == 0) {
		comment(b, margin,
			"A command that runs may name as a check, exactly as written; may be repeated. Without any, "
			"these are "
			"allowed: git diff --check, python3 -m pytest -q, python3 -m compileall -q ., python3 -m "
			"unittest discover.");
		buf_adds(b, "#\tcheck { argv = {\"git\", \"diff\", \"--check\"} }\n");
	}
	if (!machine)
		buf_addf(b, "%s}\n", off);
}
