/*
 * What others rely on is written down twice: in the tables of spec/ and in tests/vectors/promised.tab. This asks the
 * code made from the tables (who may say which message when, every cell of a run's and a box's states, every error's
 * status, every public route, every bound of a body or a field, every limit, every audit event) and compares the
 * answers with that file, both ways. A row that is changed in one place only is refused; whoever means the change
 * writes it into both.
 *
 *   t_promises          compare
 *   t_promises --show   print what the code says now, in the file's form
 */
#include "gen/approval_fsm.h"
#include "gen/audit.h"
#include "gen/bundle_msg.h"
#include "gen/course_fsm.h"
#include "gen/errors.h"
#include "gen/fields.h"
#include "gen/limits.h"
#include "gen/metrics.h"
#include "gen/reasons.h"
#include "gen/routes.h"
#include "gen/run_fsm.h"
#include "gen/sandbox_fsm.h"
#include "gen/sandbox_msg.h"
#include "gen/schema.h"
#include "gen/store_msg.h"
#include "gen/text.h"
#include "gen/walls.h"
#include "lib/token.h"
#include "lib/wire.h"
#include "tests/unit/codec_table.h"
#include "tests/unit/promised.h"
#include "tests/unit/reached.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 1400, LINE = 2000, HEAD = 300 };
static char said[LINES][LINE];
static size_t nsaid;

/* The handlers are not asked: only the table that names them. */
void reached(const char *handler, struct request *rq, struct reply *rp)
{
	(void)rq;
	(void)rp;
	puts(handler);
	abort();
}

void reached_inside(const char *handler, struct gate_call *call)
{
	(void)call;
	puts(handler);
	abort();
}

/* The next line to fill. */
static char *line(void)
{
	if (nsaid == LINES) {
		printf("more than %d lines\n", LINES);
		exit(1);
	}
	return said[nsaid++];
}

/* Who may send it, in which states, for the table of roles and states that the protocol has. */
static bool admitted(const struct codec_protocol *p, const struct wire_msg *m, unsigned role, unsigned state,
		     unsigned *next)
{
	uint8_t frame[64];
	const struct wire_msg *row;
	uint64_t op;
	struct wire_w w = wire_begin(frame, sizeof frame, m->number, (uint8_t)p->version, m->nfds, 1);
	size_t n = wire_end(&w);
	struct wire_conn c = {.role = (uint8_t)role, .state = (uint8_t)state};
	if (wire_admit(p->msgs, (uint8_t)p->version, &c, frame, n, m->nfds, &row, &op) != NULL)
		return false;
	wire_accept(&c, row);
	*next = c.state;
	return true;
}

__attribute__((format(printf, 2, 3))) static void add(char out[HEAD], const char *fmt, ...)
{
	va_list ap;
	size_t n = strlen(out);
	va_start(ap, fmt);
	vsnprintf(out + n, HEAD - n, fmt, ap);
	va_end(ap);
}

/* A message's row but for its fields. */
static void message(char out[HEAD], const char *name, const struct codec_protocol *p, const struct codec_row *r)
{
	const struct wire_msg *m = p->msgs;
	uint8_t frame[70000];
	unsigned roles = 0, states = 0, next = 0;
	size_t n = r->fill(frame, sizeof frame, true);
	while (n > 2 && m->number != 0 && m->number != (frame[0] << 8 | frame[1]))
		m++;
	for (unsigned role = 0; p->roles[role] != NULL; role++)
		for (unsigned state = 0; p->states[state] != NULL; state++)
			if (admitted(p, m, role, state, &next))
				roles |= 1u << role, states |= 1u << state;
	snprintf(out, HEAD, "%s %s %u%s", name, m->name, (unsigned)m->number, roles == 0 ? " down" : "");
	for (unsigned i = 0, some = 0; p->roles[i] != NULL; i++)
		if ((roles >> i & 1) != 0)
			add(out, "%s%s", some++ ? "," : " from ", p->roles[i]);
	for (unsigned i = 0, some = 0; p->states[i] != NULL; i++)
		if ((states >> i & 1) != 0)
			add(out, "%s%s", some++ ? "," : " in ", p->states[i]);
	if (roles != 0)
		add(out, " to %s%s", p->states[next], m->once ? " once" : "");
	add(out, " fds %u%s%s", (unsigned)m->nfds, r->reply[0] != '\0' ? " replies " : "", r->reply);
}

/* Every message and part of one protocol, one line each; the configuration's one line a field. */
static void protocol(const char *name, const struct codec_protocol *p, bool by_field)
{
	snprintf(line(), LINE, "%s is version %u of frames to %u", name, p->version, p->maxframe);
	for (const struct codec_row *r = p->rows; r->name != NULL; r++) {
		char head[HEAD], what[LINE - HEAD - 5];
		if (p->msgs == NULL)
			snprintf(head, HEAD, "%s %s of version %u", name, r->name, r->version);
		else if (r->framed)
			message(head, name, p, r);
		else
			snprintf(head, HEAD, "%s struct %s", name, r->name);
		snprintf(what, sizeof what, "%s", r->fields);
		if (!by_field) {
			snprintf(line(), LINE, "%s has %s", head, what);
			continue;
		}
		char *save = NULL;
		for (char *f = strtok_r(what, ",", &save); f != NULL; f = strtok_r(NULL, ",", &save))
			snprintf(line(), LINE, "%s has %s", head, f + strspn(f, " "));
	}
}

static void limits(void)
{
	const char *group = "";
#define GROUP(name) group = (name);
#define NUMBER(name, value) snprintf(line(), LINE, "limit %s %s %d", group, name, value);
#define GLOBAL(name, field) snprintf(line(), LINE, "limit %s %s global %s", group, name, #field);
#define TENANT(name, field) snprintf(line(), LINE, "limit %s %s tenant %s", group, name, #field);
#define AGENT(name, field) snprintf(line(), LINE, "limit %s %s agent %s", group, name, #field);
	LIMIT_ROWS(GROUP, NUMBER, GLOBAL, TENANT, AGENT)
}

static void figures(void)
{
	static const char *const types[] = {"counter", "gauge", "histogram"}, *const by[] = {"stored", "fcgi",
											     "steward"};
	for (int i = 0; i < METRIC__COUNT; i++) {
		const struct metric_row *r = &metrics[i];
		char *out = line();
		int n = snprintf(out, LINE, "figure %s %s by %s", r->name, types[r->type], by[r->by]);
		for (int l = 0; r->labels[l] != NULL; l++)
			n += snprintf(out + n, (size_t)(LINE - n), " %s", r->labels[l]);
	}
}

static void audit(void)
{
	for (unsigned i = 0; i < 300; i++) {
		const struct audit_row *r = audit_row(i);
		if (r == NULL)
			continue;
		char *out = line();
		int n = snprintf(out, LINE, "audit %u %s %s %s by%s%s%s%s%s says", i, r->name,
				 r->commit ? "commit" : "note", r->required ? "required" : "optional",
				 r->by == 0 ? " stored" : "", r->by & AUDIT_BY_FCGI ? " fcgi" : "",
				 r->by & AUDIT_BY_GATEWAY ? " gateway" : "", r->by & AUDIT_BY_STEWARD ? " steward" : "",
				 r->by & AUDIT_BY_ADMIN ? " admin" : "");
		for (int f = 1; f < AUDIT_F__COUNT; f++)
			if ((r->fields >> f & 1) != 0)
				n += snprintf(out + n, (size_t)(LINE - n), " %s%s", audit_fields[f].name,
					      r->by != 0 && r->subject == f ? " (subject)" : "");
	}
	for (int f = 1; f < AUDIT_F__COUNT; f++)
		snprintf(line(), LINE, "audit field %s %s %s", audit_fields[f].name,
			 audit_fields[f].number ? "int" : "str", audit_fields[f].keep ? "keep" : "redact");
}

/* Every cell of a machine, and what is shown of its states. */
#define MACHINE(name, STATES, EVENTS)                                                                                 \
	static void name##_machine(void)                                                                              \
	{                                                                                                             \
		for (int from = 0; from < (STATES); from++)                                                           \
			for (int ev = 0; ev < (EVENTS); ev++) {                                                       \
				enum name##_state to = (enum name##_state)from;                                       \
				enum err e = name##_step((enum name##_state)from, (enum name##_event)ev, &to);        \
				snprintf(line(), LINE, #name " %s %s %s", name##_state_name((enum name##_state)from), \
					 name##_event_name((enum name##_event)ev),                                    \
					 e == ERR_OK ? name##_state_name(to) : err_code(e));                          \
			}                                                                                             \
		for (int s = 0; s < (STATES); s++)                                                                    \
			snprintf(line(), LINE, #name " %s is shown as %s%s", name##_state_name((enum name##_state)s), \
				 name##_public((enum name##_state)s),                                                 \
				 name##_final((enum name##_state)s) ? ", final" : "");                                \
	}
MACHINE(run, RUN_STATE__COUNT, RUN_EVENT__COUNT)
MACHINE(sandbox, SANDBOX_STATE__COUNT, SANDBOX_EVENT__COUNT)
MACHINE(course, COURSE_STATE__COUNT, COURSE_EVENT__COUNT)
MACHINE(approval, APPROVAL_STATE__COUNT, APPROVAL_EVENT__COUNT)

static void reasons(void)
{
	for (int i = 0; i < REASON__COUNT; i++)
		snprintf(line(), LINE, "reason %s of %s", reason_name((enum reason)i), reason_status((enum reason)i));
}

/* What is taken out of foreign text, and its fields. */
static void text_rules(const char *which, const char *rules)
{
	snprintf(line(), LINE, "text %s%s", which, rules);
}

static void texts(void)
{
	static const char *const kinds[] = {"line", "body"}, *const of[] = {"", " of any event", " of a question"};
#define RANGE(first, last) " " #first ".." #last
#define PROPERTY(name) " " #name
	text_rules("loses", TEXT_TAKEN(RANGE, PROPERTY));
	text_rules("of one line loses", TEXT_LINE_TAKEN(RANGE, PROPERTY));
	text_rules("of several lines keeps", TEXT_BODY_KEPT(RANGE, PROPERTY));
	text_rules("is no word", TEXT_BLANK(RANGE, PROPERTY));
#define FIELD(constant, name, kind, cap, where) \
	snprintf(line(), LINE, "text field %s %s %d%s", name, kinds[kind], cap, of[where]);
	TEXT_FIELDS(FIELD)
#define MASK(kind, what, class, least) snprintf(line(), LINE, "text mask %s %s %s %d", #kind, what, #class, least);
	TEXT_MASKS(MASK)
}

static void wall_rows(void)
{
	for (int i = STEP_NONE + 1; i < STEP__COUNT; i++)
		snprintf(line(), LINE, "wall %d %s since %s %s of %s", i, walls[i].name,
			 *walls[i].kernel == 0 ? "any" : walls[i].kernel, walls[i].required ? "required" : "extra",
			 walls[i].machine ? "machine" : "box");
}

static void errors(void)
{
	for (int i = 1; i < 1000; i++) {
		const struct err_row *r = err_row((enum err)i);
		if (i == ERR_INTERNAL_ERROR || strcmp(r->code, "internal_error") != 0)
			snprintf(line(), LINE, "error %d %s %u%s", i, r->code, (unsigned)r->status,
				 r->retry ? " retry" : "");
	}
}

static void routes(const char *side, const struct route *r)
{
	static const char *const methods[METHOD__COUNT] = {"GET", "POST", "DELETE", "PUT"};
	static const char *const bodies[] = {"none", "json", "any", "archive"}, *const audiences[] = {"model", "events",
												      "approvals"};
	for (; r->path != NULL; r++) {
		char *out = line(), who[64] = "";
		if (r->principals & ROUTE_NONE)
			strcat(who, ",anyone");
		if (r->principals & ROUTE_API)
			strcat(who, ",api");
		if (r->principals & ROUTE_DEVICE)
			strcat(who, ",device");
		if (r->principals & ROUTE_RUN)
			strcat(strcat(who, ",run:"), audiences[r->audience]);
		snprintf(out, LINE, "%s %s %s %s for %s body %s %u rights%s%s%s", side, methods[r->method], r->path,
			 r->name, who + 1, bodies[r->body], (unsigned)r->body_limit, r->rights == 0 ? " none" : "",
			 r->rights & RIGHT_APPROVE ? " approve" : "", r->rights & RIGHT_METRICS ? " metrics" : "");
	}
}

static void bodies(const struct schema *s)
{
	static const char *const types[] = {"string", "object", "array", "integer", "bool", "map", "any"};
	for (const struct schema_row *r = s->rows; r->field != NULL; r++) {
		char min[24] = "-", max[24] = "-";
		if (r->min != INT64_MIN)
			snprintf(min, sizeof min, "%" PRId64, r->min);
		if (r->max != INT64_MAX)
			snprintf(max, sizeof max, "%" PRId64, r->max);
		snprintf(line(), LINE, "body %s %s %s%s %s..%s bytes %" PRIu64 " %s%s%s", s->name, r->field,
			 types[r->type], r->required ? " required" : "", min, max, r->maxbytes, err_code(r->error),
			 r->too_large != ERR_OK ? " " : "", r->too_large != ERR_OK ? err_code(r->too_large) : "");
	}
}

/* Is this line said? */
static bool among(const char *what)
{
	for (size_t i = 0; i < nsaid; i++)
		if (strcmp(said[i], what) == 0)
			return true;
	return false;
}

static bool promised(const char *what)
{
	size_t at = 0;
	for (const char *l; (l = promised_next(&at, "")) != NULL;)
		if (strcmp(l, what) == 0)
			return true;
	return false;
}

/* A line for each object of a model request, and for what no object may have or be. */
static void fields(void)
{
	static const char *const actions[] = {"text",   "number",   "bool",   "any",   "data",  "list",   "object",
					      "either", "word",     "url",    "blob",  "model", "stream", "cap",
					      "effort", "thinking", "budget", "cache", "force", "always", "only",
					      "among",  "keep",     "strip",  "reject"};
	for (const struct field_place *p = field_places; p->name != NULL; p++)
		for (const struct field_object *o = p->objects; o->type != NULL; o++) {
			char *out = line();
			int n = snprintf(out, LINE, "fields %s %s%s%s", p->format, p->name, p->typed ? "/" : "",
					 p->typed && *o->type == '\0' ? "-" : o->type);
			for (const struct field_rule *r = o->rules; r->field != NULL; r++)
				n += snprintf(out + n, (size_t)(LINE - n), " %s:%s%s%s%s%s", r->field,
					      actions[r->action], r->place >= 0 ? "=" : "",
					      r->place >= 0 ? field_places[r->place].name : "",
					      *r->words != '\0' ? "=" : "", r->words);
		}
	for (const struct field_denied *d = fields_denied; d->field != NULL; d++)
		snprintf(line(), LINE, "fields of all %s:%s", d->field, actions[d->action]);
	for (const char *const *t = types_denied; *t != NULL; t++)
		snprintf(line(), LINE, "fields of all are never %s", *t);
}

int main(int argc, char **argv)
{
	unsigned bad = 0;
	protocol("store", &st_protocol, false);
	protocol("sandboxd", &sbx_protocol, false);
	protocol("bundle", &bn_protocol, false);
	protocol("conf", &cf_protocol, true);
	protocol("record", &rec_protocol, false);
	limits();
	audit();
	figures();
	run_machine();
	sandbox_machine();
	snprintf(line(), LINE, "sandbox rests in %s", sandbox_state_name((enum sandbox_state)SANDBOX_HOME));
	course_machine();
	approval_machine();
	reasons();
	texts();
	wall_rows();
	errors();
	routes("route", routes_public);
	routes("inner", routes_internal);
	fields();
	for (const struct schema *const *s = schema_all; *s != NULL; s++)
		bodies(*s);
	if (argc > 1 && strcmp(argv[1], "--show") == 0) {
		for (size_t i = 0; i < nsaid; i++)
			puts(said[i]);
		return 0;
	}
	for (size_t i = 0; i < nsaid; i++)
		if (!promised(said[i]) && ++bad != 0)
			printf("FAIL not in promised.tab: %s\n", said[i]);
	size_t at = 0;
	for (const char *l; (l = promised_next(&at, "")) != NULL;)
		if (!among(l) && ++bad != 0)
			printf("FAIL promised, but not so: %s\n", l);
	printf("%zu passed, %u failed\n", nsaid, bad);
	return bad != 0;
}
