/* Values of settings, by the rows of spec/conf.tab. Trusts nothing in them. */
#include "cli/conf_value.h"

#include <grp.h>
#include <stdlib.h>
#include <string.h>

#include "gen/conf_msg.h"
#include "lib/buf.h"
#include "lib/contact.h"
#include "lib/endpoint.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/text.h"

enum { MEGABYTE = 1000000 };

struct fault {
	struct conf_notes *notes;
	const struct conf_block *b;
	const struct conf_row *r;
	struct conf_place at;
};

void conf_fault(struct conf_notes *notes, const struct conf_block *b, struct conf_place at, const char *fmt, ...)
{
	char text[1800];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	if (b->title[0] != '\0')
		conf_wrong(notes, at, "%s %s: %s", b->section, b->title, text);
	else if (strcmp(b->section, "machine") != 0)
		conf_wrong(notes, at, "%s.%s", b->section, text);
	else
		conf_wrong(notes, at, "%s", text);
}

#define FAULT(f, ...) conf_fault((f)->notes, (f)->b, (f)->at, __VA_ARGS__)

const char *const *conf_words(struct conf_notes *notes, const struct conf_block *b, const struct conf_row *r,
			      unsigned *n, struct conf_place *at)
{
	static const char *const none[] = {NULL};
	const struct conf_said *s = conf_find(b, r);
	char *save = NULL, *text;

	*n = 0;
	*at = b->at;
	if (s != NULL) {
		if (s->line > 0)
			at->line = s->line;
		*n = s->n;
		return s->v;
	}
	if (r->def[0] == '\0')
		return none;
	text = arena_dup(notes->arena, r->def, strlen(r->def));
	const char **v = arena_get(notes->arena, (strlen(r->def) / 2 + 2) * sizeof *v);
	if (text == NULL || v == NULL)
		return none;
	if (r->held != CONF_HELD_STRS) {
		v[(*n)++] = text;
		return v;
	}
	for (char *w = strtok_r(text, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save))
		v[(*n)++] = w;
	return v;
}

/* --- numbers and words ----------------------------------------------------------------------- */

static const char *unit(enum conf_type t)
{
	return t == CONF_SECONDS        ? " of seconds"
	       : t == CONF_MILLISECONDS ? " of milliseconds"
	       : t == CONF_DAYS         ? " of days"
	       : t == CONF_BYTES        ? " of bytes"
	       : t == CONF_MEGABYTES    ? " of megabytes"
					: "";
}

static uint64_t number(struct fault *f, const char *word)
{
	const struct conf_row *r = f->r;
	uint64_t v = r->least;

	if (!num_u64(word, strlen(word), r->least, r->most, &v)) {
		bool digits = word[0] != '\0' && word[strspn(word, "-0123456789")] == '\0';
		FAULT(f, "%s must be a number%s from %llu to %llu, not %s%s%s", r->name, unit(r->type),
		      (unsigned long long)r->least, (unsigned long long)r->most, digits ? "" : "\"", word,
		      digits ? "" : "\"");
		v = r->least;
	}
	return r->type == CONF_MEGABYTES ? v * MEGABYTE : v;
}

static uint64_t yes(struct fault *f, const char *word)
{
	static const char *const words[] = {"no", "yes", "off", "on", "false", "true"};

	for (uint64_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcmp(word, words[i]) == 0)
			return i % 2;
	FAULT(f, "%s must be yes or no, not \"%s\"", f->r->name, word);
	return 0;
}

/* The place of a word among those that are possible. */
static uint64_t choice(struct fault *f, const char *word)
{
	char text[200], said[240] = "";
	uint64_t i = 0;
	size_t n = strlen(word);

	for (const char *p = f->r->words; *p != '\0'; p += strcspn(p, "|"), p += *p == '|', i++)
		if (strcspn(p, "|") == n && strncmp(p, word, n) == 0)
			return i;
	snprintf(text, sizeof text, "%s", f->r->words);
	for (char *save = NULL, *w = strtok_r(text, "|", &save); w != NULL;) {
		char *next = strtok_r(NULL, "|", &save);
		size_t at = strlen(said);
		snprintf(said + at, sizeof said - at, "%s%s", at == 0 ? "" : next == NULL ? " or " : ", ", w);
		w = next;
	}
	FAULT(f, "%s must be %s, not \"%s\"", f->r->name, said, word);
	return 0;
}

static uint32_t group(struct fault *f, const char *word)
{
	uint64_t gid;

	if (num_u64(word, strlen(word), 1, 4294967294u, &gid))
		return (uint32_t)gid;
	const struct group *gr = getgrnam(word);
	if (gr == NULL || gr->gr_gid == 0) {
		FAULT(f,
		      gr == NULL ? "%s: there is no group \"%s\": create it, or write its number"
				 : "%s: \"%s\" is root's own group: no other may be let in by it",
		      f->r->name, word);
		return 0;
	}
	return gr->gr_gid;
}

/* --- texts ----------------------------------------------------------------------------------- */

/* As browsers write it: no path, no user, and no port that is the scheme's own. */
static bool origin_plain(const char *s)
{
	bool tls = strncmp(s, "https://", 8) == 0;
	if (!tls && strncmp(s, "http://", 7) != 0)
		return false;
	const char *host = s + (tls ? 8 : 7), *port;
	size_t n = *host == '[' ? strspn(host + 1, "0123456789abcdef:") + 2
				: strspn(host, "0123456789abcdefghijklmnopqrstuvwxyz.-");
	if (n == 0 || (*host == '[' && host[n - 1] != ']'))
		return false;
	port = host + n;
	if (*port == '\0')
		return true;
	uint64_t v;
	return *port == ':' && num_u64(port + 1, strlen(port + 1), 1, 65535, &v) && v != (tls ? 443 : 80);
}

static bool plain(const char *s)
{
	for (; *s != '\0'; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

/* What a text of this kind must be like; NULL: it is. Empty ones are not asked about. */
static const char *fault_of(const struct conf_row *r, const char *s)
{
	switch (r->type) {
	case CONF_ORIGIN:
		return origin_plain(s) ? NULL : "must be an origin, as \"https://host\" or \"https://host:port\"";
	case CONF_CONTACT:
		return contact_valid(s) ? NULL : "must be as \"mailto:name@host\" or \"https://host/page\"";
	case CONF_PATH:
		return s[0] == '/' ? NULL : "must be an absolute path";
	case CONF_SECRET:
		return s[0] != '.' && strchr(s, '/') == NULL ? NULL
							     : "is a secret, which is named by its file's name alone";
	case CONF_NAME:
		return id_valid(s) ? NULL : "is a name, which has only the characters A-Z a-z 0-9 . _ -";
	default:
		return NULL;
	}
}

/* What people paste where a name belongs. It is never repeated. */
static bool looks_like_key(const char *word)
{
	own_buf struct buf out;

	buf_init(&out, 65536);
	return text_mask(&out, word, strlen(word));
}

static const char *text(struct fault *f, const char *word)
{
	const struct conf_row *r = f->r;

	if (word == NULL || word[0] == '\0') {
		if (r->least > 0)
			FAULT(f, "%s is missing", r->name);
		return "";
	}
	const char *why = fault_of(r, word);
	if (r->type == CONF_SECRET && looks_like_key(word)) {
		FAULT(
		    f,
		    "%s names a file below secrets, and this looks like the key itself: write it into such a file with "
		    "\"pinfold secret rotate\" or an editor, name that file here, and replace the key, since this file "
		    "may be read by others",
		    r->name);
		return "";
	}
	if (strlen(word) > r->wide)
		FAULT(f, "%s is longer than %u bytes", r->name, r->wide);
	else if (!plain(word))
		FAULT(f, "%s holds control characters", r->name);
	else if (why != NULL)
		FAULT(f, "%s %s, not \"%s\"", r->name, why, word);
	else
		return word;
	return "";
}

static const char *list_fault(const struct conf_row *r, const char *w, unsigned i)
{
	switch (r->type) {
	case CONF_HOSTS:
		return endpoint_pattern(w) ? NULL : "is neither a host's name nor \"*.name\" nor \"*\"";
	case CONF_COMMAND:
		return i > 0 || w[0] == '/' ? NULL
					    : "is no absolute path inside the sandbox, which the first word must be";
	case CONF_ENVIRONMENT:
		return strchr(w, '=') != NULL && w[0] != '=' ? NULL : "is not NAME=value";
	case CONF_NAMES:
		return id_valid(w) ? NULL : "is a name, which has only the characters A-Z a-z 0-9 . _ -";
	default:
		return w[0] != '\0' ? NULL : "is empty";
	}
}

static uint32_t list(struct fault *f, const char *const *words, unsigned n, const char **v)
{
	const struct conf_row *r = f->r;
	uint32_t kept = 0;

	if (n < r->least)
		FAULT(f, "%s is missing: a list of at least %llu", r->name, (unsigned long long)r->least);
	if (n > r->most)
		FAULT(f, "%s has %u values, at most %llu are possible", r->name, n, (unsigned long long)r->most);
	for (unsigned i = 0; i < n && kept < r->most; i++) {
		const char *why = list_fault(r, words[i], i);
		if (strlen(words[i]) > r->wide)
			FAULT(f, "%s: \"%.40s...\" is longer than %u bytes", r->name, words[i], r->wide);
		else if (why != NULL)
			FAULT(f, "%s: \"%s\" %s", r->name, words[i], why);
		else
			v[kept++] = words[i];
	}
	return kept;
}

static void put(const struct conf_row *r, uint8_t *m, uint64_t v)
{
	uint8_t *at = m + r->at;

	switch (r->held) {
	case CONF_HELD_BOOL:
		*(bool *)at = v != 0;
		break;
	case CONF_HELD_U8:
		*at = (uint8_t)v;
		break;
	case CONF_HELD_U16:
		memcpy(at, &(uint16_t){(uint16_t)v}, 2);
		break;
	case CONF_HELD_U32:
		memcpy(at, &(uint32_t){(uint32_t)v}, 4);
		break;
	case CONF_HELD_U64:
		memcpy(at, &v, 8);
		break;
	default:
		break;
	}
}

void conf_fill(struct conf_notes *notes, const struct conf_block *b, uint16_t message, void *m)
{
	uint8_t *base = m;

	for (size_t i = 0; i < CONF_ROWS; i++) {
		const struct conf_row *r = &conf_rows[i];
		if (r->message != message || strcmp(r->section, b->section) != 0)
			continue;
		struct fault f = {.notes = notes, .b = b, .r = r};
		unsigned n;
		const char *const *words = conf_words(notes, b, r, &n, &f.at);
		const char *first = n > 0 ? words[0] : "";
		if (r->held == CONF_HELD_STRS) {
			const char *v[64];
			uint32_t kept = list(&f, words, n, v);
			memcpy(base + r->at, v, kept * sizeof *v);
			memcpy(base + r->count_at, &kept, sizeof kept);
		} else if (r->held == CONF_HELD_STR) {
			const char *s = text(&f, first);
			if (r->type == CONF_WORD)
				choice(&f, first);
			memcpy(base + r->at, &s, sizeof s);
		} else {
			put(r, base,
			    r->type == CONF_BOOL    ? yes(&f, first)
			    : r->type == CONF_WORD  ? choice(&f, first)
			    : r->type == CONF_GROUP ? group(&f, first)
						    : number(&f, first));
		}
	}
}
