/*
 * Every message, list part and record as promised.tab has it, built by hand from those words and given to the real
 * codecs and dispatchers: each field is taken at its bound and refused one past it, and each message is taken from
 * exactly the roles, in exactly the states, with exactly the descriptors that are promised.
 */
#include "gen/sandbox_msg_on.h"
#include "gen/store_msg_on.h"
#include "tests/fuzz/fuzz_dispatch.h"
#include "tests/unit/codec_table.h"
#include "tests/unit/promised.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 64, ROOM = 18 << 20, OP = 7 };

struct field {
	char type[8], name[64];
	size_t max, most; /* of a text, of how many texts */
};

/* One line; of the configuration, all lines of one message. */
struct promise {
	char name[64], from[64], in[64], to[16];
	unsigned number, version, fds;
	bool framed, record, down, once;
	struct field f[FIELDS];
	unsigned n;
};

static unsigned passed, failed;
static uint8_t *room, *copy;

static void check(bool ok, const char *what, const char *name, const char *field)
{
	passed += ok, failed += !ok;
	if (!ok)
		printf("FAIL %s %s: %s\n", name, field, what);
}

static void word(char *to, size_t size, char **rest)
{
	snprintf(to, size, "%s", promised_word(rest));
}

static void fields(struct promise *p, char *text)
{
	char *save = NULL;
	for (char *one = strtok_r(text, ",", &save); one != NULL; one = strtok_r(NULL, ",", &save)) {
		struct field *f = &p->f[p->n];
		one += strspn(one, " ");
		word(f->type, sizeof f->type, &one);
		if (strcmp(f->type, "nothing") == 0 || strcmp(f->type, "key") == 0)
			continue;
		word(f->name, sizeof f->name, &one);
		size_t first = strtoul(promised_word(&one), NULL, 10);
		bool many = strcmp(f->type, "strs") == 0;
		f->most = many ? first : 1;
		f->max = many ? strtoul(promised_word(&one), NULL, 10) : first;
		if (++p->n == FIELDS)
			exit(1);
	}
}

/* false: the line is about the protocol itself. */
static bool understand(struct promise *p, char *line, bool records)
{
	char *has = strstr(line, " has ");
	memset(p, 0, sizeof *p);
	if (has == NULL)
		return false;
	*has = '\0';
	word(p->name, sizeof p->name, &line);
	if (records) {
		p->record = true;
		p->version = (unsigned)strtoul(line + strlen("of version "), NULL, 10);
	} else if (strcmp(p->name, "struct") == 0) {
		word(p->name, sizeof p->name, &line);
	} else {
		p->framed = true;
		p->number = (unsigned)strtoul(promised_word(&line), NULL, 10);
		while (*line != '\0') {
			char *w = promised_word(&line);
			if (strcmp(w, "from") == 0)
				word(p->from, sizeof p->from, &line);
			else if (strcmp(w, "in") == 0)
				word(p->in, sizeof p->in, &line);
			else if (strcmp(w, "to") == 0)
				word(p->to, sizeof p->to, &line);
			else if (strcmp(w, "fds") == 0)
				p->fds = (unsigned)strtoul(promised_word(&line), NULL, 10);
			else if (strcmp(w, "down") == 0)
				p->down = true;
			else if (strcmp(w, "once") == 0)
				p->once = true;
		}
	}
	fields(p, has + strlen(" has "));
	return true;
}

/* What a field holds in one frame: n bytes of text, k texts, a number. */
struct value {
	size_t n, k;
	bool odd; /* what no bound forbids, yet the type does */
};

static void put(struct wire_w *w, const struct field *f, struct value v)
{
	static char text[9 << 20];
	const char *texts[300];
	uint8_t all = v.odd ? 2 : 1;
	memset(text, 'x', v.n);
	text[v.n] = '\0';
	if (v.odd)
		text[0] = '/';
	if (strcmp(f->type, "u8") == 0)
		wire_put_u8(w, UINT8_MAX);
	else if (strcmp(f->type, "bool") == 0)
		wire_put_u8(w, all);
	else if (strcmp(f->type, "u16") == 0)
		wire_put_u16(w, UINT16_MAX);
	else if (strcmp(f->type, "u32") == 0 || strcmp(f->type, "i32") == 0)
		wire_put_u32(w, UINT32_MAX);
	else if (strcmp(f->type, "u64") == 0)
		wire_put_u64(w, UINT64_MAX);
	else if (strcmp(f->type, "bytes") == 0)
		wire_put_bytes(w, (struct wire_bytes){(const uint8_t *)text, (uint32_t)v.n}, sizeof text);
	else if (strcmp(f->type, "strs") == 0) {
		for (size_t i = 0; i < v.k; i++)
			texts[i] = text;
		wire_put_strs(w, texts, (uint32_t)v.k, 300, sizeof text);
	} else
		wire_put_str(w, text, sizeof text);
}

static struct value least(const struct field *f)
{
	return (struct value){.n = strcmp(f->type, "id") == 0, .k = 0};
}

/* A frame in room; all fields are as small as may be, but the one numbered at (p->n: none). */
static size_t build(const struct promise *p, unsigned at, struct value v)
{
	struct wire_w w = p->framed
			      ? wire_begin(room, ROOM, (uint16_t)p->number, (uint8_t)p->version, (uint8_t)p->fds, OP)
			      : wire_plain(room, ROOM);
	if (p->record)
		wire_put_u8(&w, (uint8_t)p->version);
	for (unsigned i = 0; i < p->n; i++)
		put(&w, &p->f[i], i == at ? v : least(&p->f[i]));
	return p->framed ? wire_end(&w) : wire_end_plain(&w);
}

static bool takes(const struct promise *p, const struct codec_row *row, unsigned at, struct value v)
{
	size_t n = build(p, at, v);
	if (n == 0 || !row->read(room, n))
		return false;
	/* And means the same by it. */
	return row->again(room, n, copy, ROOM, OP) == n && memcmp(room, copy, n) == 0;
}

static void codec(const struct promise *p, const struct codec_row *row)
{
	check(takes(p, row, p->n, (struct value){0}), "is not taken as promised", p->name, "");
	for (unsigned i = 0; i < p->n; i++) {
		const struct field *f = &p->f[i];
		bool id = strcmp(f->type, "id") == 0, many = strcmp(f->type, "strs") == 0, one = f->max == 0;
		size_t max = id ? 128 : f->max;
		check(takes(p, row, i, (struct value){.n = max, .k = f->most}), "is refused at its bound", p->name,
		      f->name);
		if (!one || id)
			check(!takes(p, row, i, (struct value){.n = max + 1, .k = 1}), "is taken past its bound",
			      p->name, f->name);
		if (many)
			check(!takes(p, row, i, (struct value){.n = 1, .k = f->most + 1}), "takes too many", p->name,
			      f->name);
		if (id)
			check(!takes(p, row, i, (struct value){0}), "takes no text for an id", p->name, f->name);
		if (id || strcmp(f->type, "bool") == 0)
			check(!takes(p, row, i, (struct value){.n = 1, .odd = true}), "takes what is none", p->name,
			      f->name);
	}
}

/* What the dispatcher called. */
static struct {
	unsigned times;
	uint16_t number;
} called;

struct fuzz_room fuzz_room(void *from)
{
	(void)from;
	return (struct fuzz_room){copy, ROOM};
}

void fuzz_called(void *from, uint16_t number, uint64_t op, size_t n)
{
	(void)from;
	(void)op;
	(void)n;
	called.times++;
	called.number = number;
}

static bool dispatched(const struct fuzz_protocol *how, struct wire_conn *c, size_t n, int nfds)
{
	int fds[WIRE_MAX_FDS + 1] = {-1, -1, -1, -1, -1};
	called.times = 0;
	bool yes = how->dispatch(c, &called, room, n, fds, nfds) == NULL;
	return yes && called.times == 1;
}

static void permitted(const struct promise *p, const struct codec_protocol *names, const struct fuzz_protocol *how)
{
	for (uint8_t role = 0; names->roles[role] != NULL; role++)
		for (uint8_t state = 0; names->states[state] != NULL; state++) {
			char where[64];
			snprintf(where, sizeof where, "from %s in %s", names->roles[role], names->states[state]);
			bool want = !p->down && promised_in(p->from, names->roles[role]) &&
				    promised_in(p->in, names->states[state]);
			struct wire_conn c = {.role = role, .state = state};
			size_t n = build(p, p->n, (struct value){0});
			bool got = dispatched(how, &c, n, (int)p->fds);
			check(got == want, want ? "is refused" : "is taken", p->name, where);
			if (!want) {
				check(c.state == state && c.seen == 0, "is refused, yet moves the connection", p->name,
				      where);
				continue;
			}
			check(called.number == p->number, "calls another function", p->name, where);
			check(strcmp(names->states[c.state], p->to) == 0, "leads elsewhere", p->name, where);
			c.state = state;
			check(dispatched(how, &c, n, (int)p->fds) == !p->once, "a second time is not as promised",
			      p->name, where);
			c = (struct wire_conn){.role = role, .state = state};
			check(!dispatched(how, &c, n, (int)p->fds + 1), "is taken with one more descriptor", p->name,
			      where);
		}
}

static void one(struct promise *p, const struct codec_protocol *names, const struct fuzz_protocol *how)
{
	const struct codec_row *row = names->rows;
	char low[64] = "";
	for (size_t i = 0; p->name[i] != '\0'; i++)
		low[i] = (char)tolower((unsigned char)p->name[i]);
	while (row->name != NULL && strcmp(row->name, low) != 0)
		row++;
	check(row->name != NULL, "is unknown", p->name, "");
	if (row->name != NULL)
		codec(p, row);
	if (how != NULL && p->framed)
		permitted(p, names, how);
}

static void protocol(const char *name, const struct codec_protocol *names, const struct fuzz_protocol *how)
{
	struct promise p = {0}, next;
	unsigned version = 0, seen = 0;
	size_t at = 0;
	for (;;) {
		char *line = promised_next(&at, name);
		if (line != NULL && !understand(&next, line, names->msgs == NULL)) {
			version = (unsigned)strtoul(line + strlen("is version "), NULL, 10);
			continue;
		}
		/* A further line of the same message holds a further field. */
		if (line != NULL && strcmp(next.name, p.name) == 0) {
			p.f[p.n++] = next.f[0];
			continue;
		}
		if (p.name[0] != '\0')
			one(&p, names, how);
		if (line == NULL)
			break;
		seen++;
		p = next;
		if (!p.record)
			p.version = version;
	}
	check(seen > 0, "nothing is promised", name, "");
}

int main(void)
{
	room = malloc(ROOM), copy = malloc(ROOM);
	if (room == NULL || copy == NULL)
		return 1;
	protocol("store", &st_protocol, &st_fuzz);
	protocol("sandboxd", &sbx_protocol, &sbx_fuzz);
	protocol("bundle", &bn_protocol, NULL);
	protocol("conf", &cf_protocol, NULL);
	protocol("record", &rec_protocol, NULL);
	free(room);
	free(copy);
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
