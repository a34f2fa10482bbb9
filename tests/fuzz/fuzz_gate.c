/*
 * libFuzzer target: any bytes as the beginning of a FastCGI request, and what ingress makes of it. A whole one is
 * whole at its own length and not a byte before; each parameter lies inside what was sent.
 */
#include "fcgi/gate.h"
#include "fcgi/ingress.h"
#include "lib/json.h"
#include "lib/num.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static bool printable(const char *s)
{
	for (; s != NULL && *s != '\0'; s++)
		if (((unsigned char)*s < 0x20 && *s != '\t') || (unsigned char)*s >= 0x7f)
			return false;
	return true;
}

static void check_arrival(const struct gate *g)
{
	static struct ingress in;
	struct arrival a;
	ingress_read(&in, g, &a);
	must(id_valid(a.id) && strlen(a.id) < sizeof a.id && (a.refused == ERR_OK) <= (a.why == NULL));
	if (a.refused != ERR_OK)
		return;
	must(g->role == GATE_RESPONDER && a.method[0] != '\0' && printable(a.method));
	must(a.path[0] == '/' && strstr(a.path, "//") == NULL && strstr(a.path, "/../") == NULL);
	/* Only a label, of a route that says so, may have other letters than ours. */
	must(a.odd ? utf8_valid(a.path, strlen(a.path), NULL)
		   : printable(a.path) && strchr(a.path, '%') == NULL && strchr(a.path, '\\') == NULL);
	must(printable(a.mount) && (a.mount[0] == '\0' || a.mount[0] == '/'));
	must(printable(a.query) && printable(a.authorization) && printable(a.content_type));
	must(printable(a.idempotency_key) && printable(a.content_length) && printable(a.if_none_match) &&
	     printable(a.vhost_tenant));
	/* Each name that is used came once. */
	unsigned uri = 0, auth = 0, length = 0;
	for (size_t i = 0; i < g->nparams; i++) {
		uri += strcmp(g->params[i].name, "REQUEST_URI") == 0;
		auth += strcmp(g->params[i].name, "HTTP_AUTHORIZATION") == 0;
		length += strcmp(g->params[i].name, "CONTENT_LENGTH") == 0;
	}
	must(uri == 1 && auth <= 1 && length <= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gate g;
	enum gate_verdict v = gate_read(&g, data, size);
	if (v != GATE_WHOLE)
		return 0;
	must(g.used <= size && g.nparams <= GATE_NAMES);
	size_t sent = 0;
	for (size_t i = 0; i < g.nparams; i++) {
		must(g.params[i].name[g.params[i].name_n] == '\0' && g.params[i].value[g.params[i].value_n] == '\0');
		sent += g.params[i].name_n + g.params[i].value_n;
	}
	must(sent <= g.used);
	check_arrival(&g);
	size_t used = g.used;
	must(gate_read(&g, data, used) == GATE_WHOLE && g.used == used);
	/* The last record may carry padding, which need not have come. */
	enum gate_verdict less = used > 0 ? gate_read(&g, data, used - 1) : GATE_MORE;
	must(less == GATE_MORE);
	return 0;
}
