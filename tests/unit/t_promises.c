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
#include "gen/audit.h"
#include "gen/bundle_msg.h"
#include "gen/course_fsm.h"
#include "gen/errors.h"
#include "gen/limits.h"
#include "gen/reasons.h"
#include "gen/routes.h"
#include "gen/run_fsm.h"
#include "gen/sandbox_fsm.h"
#include "gen/sandbox_msg.h"
#include "gen/schema.h"
#include "gen/store_msg.h"
#include "lib/wire.h"
#include "tests/unit/codec_table.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 1000, LINE = 1000 };
static char said[LINES][LINE], promised[LINES][LINE];
static size_t nsaid, npromised;

/* The next line to fill. */
static char *line(void)
{
	if (nsaid == LINES) {
		printf("more than %d lines\n", LINES);
		exit(1);
	}
	return said[nsaid++];
}

static void protocol(const char *name, const struct wire_msg *table, uint8_t version, uint8_t roles, uint8_t states)
{
	for (const struct wire_msg *m = table; m->number != 0; m++)
		for (uint8_t role = 0; role < roles; role++)
			for (uint8_t state = 0; state < states; state++) {
				uint8_t frame[64];
				const struct wire_msg *row;
				uint64_t op;
				struct wire_w w = wire_begin(frame, sizeof frame, m->number, version, m->nfds, 1);
				size_t n = wire_end(&w);
				struct wire_conn c = {.role = role, .state = state};
				if (wire_admit(table, version, &c, frame, n, m->nfds, &row, &op) == NULL) {
					wire_accept(&c, row);
					snprintf(line(), LINE, "%s %s role %u in state %u to %u%s fds %u", name,
						 m->name, (unsigned)role, (unsigned)state, (unsigned)c.state,
						 m->once ? " once" : "", (unsigned)m->nfds);
				}
			}
}

/* The fields of the messages of one protocol (with its version), or of records, which have their own. */
static void fields(const char *name, unsigned version, const struct codec_row *table)
{
	if (version != 0)
		snprintf(line(), LINE, "%s is version %u", name, version);
	for (const struct codec_row *r = table; r->name != NULL; r++)
		if (version != 0)
			snprintf(line(), LINE, "%s %s has %s", name, r->name, r->fields);
		else
			snprintf(line(), LINE, "%s %s of version %u has %s", name, r->name, r->version, r->fields);
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

static void audit(void)
{
	for (unsigned i = 0; i < 300; i++) {
		const struct audit_row *r = audit_row(i);
		if (r == NULL)
			continue;
		char *out = line();
		int n =
		    snprintf(out, LINE, "audit %u %s %s %s by%s%s%s%s says", i, r->name, r->commit ? "commit" : "note",
			     r->required ? "required" : "optional", r->by == 0 ? " stored" : "",
			     r->by & AUDIT_BY_FCGI ? " fcgi" : "", r->by & AUDIT_BY_GATEWAY ? " gateway" : "",
			     r->by & AUDIT_BY_STEWARD ? " steward" : "");
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
		for (int from = 0; from < STATES; from++)                                                             \
			for (int ev = 0; ev < EVENTS; ev++) {                                                         \
				enum name##_state to = (enum name##_state)from;                                       \
				enum err e = name##_step((enum name##_state)from, (enum name##_event)ev, &to);        \
				snprintf(line(), LINE, #name " %s %s %s", name##_state_name((enum name##_state)from), \
					 name##_event_name((enum name##_event)ev),                                    \
					 e == ERR_OK ? name##_state_name(to) : err_code(e));                          \
			}                                                                                             \
		for (int s = 0; s < STATES; s++)                                                                      \
			snprintf(line(), LINE, #name " %s is shown as %s%s", name##_state_name((enum name##_state)s), \
				 name##_public((enum name##_state)s),                                                 \
				 name##_final((enum name##_state)s) ? ", final" : "");                                \
	}
MACHINE(run, RUN_STATE__COUNT, RUN_EVENT__COUNT)
MACHINE(sandbox, SANDBOX_STATE__COUNT, SANDBOX_EVENT__COUNT)
MACHINE(course, COURSE_STATE__COUNT, COURSE_EVENT__COUNT)

static void reasons(void)
{
	for (int i = 0; i < REASON__COUNT; i++)
		snprintf(line(), LINE, "reason %s of %s", reason_name((enum reason)i), reason_status((enum reason)i));
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

static void routes(void)
{
	static const char *const methods[METHOD__COUNT] = {"GET", "POST", "DELETE", "PUT"};
	static const char *const bodies[] = {"", " json", " any"};
	for (const struct route *r = routes_public; r->path != NULL; r++) {
		char *out = line();
		snprintf(out, LINE, "route %s %s for%s%s%s%s body %u%s rights %u", methods[r->method], r->path,
			 r->principals & ROUTE_NONE ? " anyone" : "", r->principals & ROUTE_API ? " api" : "",
			 r->principals & ROUTE_DEVICE ? " device" : "", r->principals & ROUTE_RUN ? " run" : "",
			 (unsigned)r->body_limit, bodies[r->body], r->rights);
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

static bool among(const char *what, char list[][LINE], size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i], what) == 0)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	char path[4096];
	const char *top = getenv("srcdir");
	unsigned bad = 0;
	protocol("store", st_msgs, ST_VERSION, ST_ROLE__COUNT, ST_STATE__COUNT);
	protocol("sandbox", sbx_msgs, SBX_VERSION, SBX_ROLE__COUNT, SBX_STATE__COUNT);
	fields("store", ST_VERSION, st_codecs);
	fields("sandbox", SBX_VERSION, sbx_codecs);
	fields("bundle", BN_VERSION, bn_codecs);
	fields("record", 0, rec_codecs);
	limits();
	audit();
	run_machine();
	sandbox_machine();
	course_machine();
	reasons();
	errors();
	routes();
	bodies(&schema_run_create);
	bodies(&schema_event_append);
	bodies(&schema_chat);
	if (argc > 1 && strcmp(argv[1], "--show") == 0) {
		for (size_t i = 0; i < nsaid; i++)
			puts(said[i]);
		return 0;
	}
	snprintf(path, sizeof path, "%s/tests/vectors/promised.tab", top != NULL ? top : ".");
	FILE *f = fopen(path, "r");
	if (f == NULL) {
		printf("%s cannot be read\n", path);
		return 1;
	}
	while (npromised < LINES && fgets(promised[npromised], LINE, f) != NULL)
		if (promised[npromised][0] != '#') {
			promised[npromised][strcspn(promised[npromised], "\n")] = '\0';
			npromised++;
		}
	fclose(f);
	for (size_t i = 0; i < nsaid; i++)
		if (!among(said[i], promised, npromised) && ++bad != 0)
			printf("FAIL not in promised.tab: %s\n", said[i]);
	for (size_t i = 0; i < npromised; i++)
		if (!among(promised[i], said, nsaid) && ++bad != 0)
			printf("FAIL promised, but not so: %s\n", promised[i]);
	printf("%zu passed, %u failed\n", nsaid, bad);
	return bad != 0;
}
