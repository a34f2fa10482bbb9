/* The address of a provider, which is the operator's alone: what it may look like. */
#include "gateway/gateway.h"
#include "lib/clock.h"
#include "lib/die.h"
#include "lib/provider_url.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *upstream_url(const struct cf_provider *p, const struct format *f, const char *model)
{
	size_t n = strlen(p->base_url);
	char *url = NULL;

	if (strcmp(p->protocol, f->protocol) != 0)
		return NULL;
	while (n > 0 && p->base_url[n - 1] == '/')
		n--;
	const char *why = provider_url_fault(p->base_url, p->allow_plain_loopback);
	if (!why && f->verb && !id_valid(model)) {
		log_error(
		    "provider %s: the model's name is part of the address, and %s cannot be: it has letters, digits, "
		    "\".\", \"_\" and \"-\" alone; its model calls are refused",
		    p->name, model);
		return NULL;
	}
	if (!why && asprintf(&url, "%.*s%s%s%s", (int)n, p->base_url, f->path, f->verb ? model : "",
			     f->verb ? f->verb : "") > 0)
		return url;
	if (!why)
		why = "cannot be held in memory";
	log_error("provider %s: base_url %s; its model calls are refused", p->name, why);
	return NULL;
}
