/* See counts.h. Rows are the API's own: a path that somebody made up counts for none of them. */
#include "handlers/counts.h"
#include "gen/metrics.h"
#include "gen/routes.h"
#include "gen/store_msg.h"
#include "handlers/reply.h"
#include "handlers/request.h"
#include "lib/ask.h"
#include "lib/lack.h"
#include <endian.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 64, CLASSES = 6, NO_ROW = ROWS - 1, LABELS = 121 };

static const enum err denials[] = {ERR_UNAUTHORIZED,         ERR_FORBIDDEN,         ERR_TENANT_MISMATCH,
				   ERR_DEVICE_EXPIRED,       ERR_DEVICE_REQUIRED,   ERR_CROSS_ORIGIN_REFUSED,
				   ERR_INVALID_PAIRING_CODE, ERR_TOO_MANY_ATTEMPTS, ERR_TOO_MANY_FAILURES};
enum { DENIALS = sizeof denials / sizeof *denials };

struct counts {
	atomic_uint_least64_t http[ROWS][CLASSES], denied[DENIALS];
};

struct counts *counts_new(void)
{
	return calloc(1, sizeof(struct counts));
}

static int denial(enum err e)
{
	for (int i = 0; i < DENIALS; i++)
		if (denials[i] == e)
			return i;
	return -1;
}

bool counts_denial(enum err e)
{
	return denial(e) >= 0;
}

void counts_answered(struct counts *c, const struct reply *rp)
{
	size_t row = rp->route != NULL ? (size_t)(rp->route - routes_public) : NO_ROW;
	unsigned class = rp->status / 100;
	int why = denial(rp->error);
	if (c == NULL || rp->status == 0)
		return;
	row = row < NO_ROW ? row : NO_ROW;
	(void)atomic_fetch_add_explicit(&c->http[row][class < CLASSES ? class : 0], 1, memory_order_relaxed);
	if (why >= 0 && class == 4)
		(void)atomic_fetch_add_explicit(&c->denied[why], 1, memory_order_relaxed);
}

static void put(struct wire_list *l, enum metric m, const char *labels, uint64_t value)
{
	const uint64_t be = htobe64(value);
	const struct st_figure f = {
	    .metric = (uint8_t)m, .labels = labels, .values = {(const uint8_t *)&be, sizeof be}};
	uint8_t *p = wire_list_room(l, ST_MAX_FIGURE);
	size_t n = p != NULL ? st_put_figure(p, ST_MAX_FIGURE, &f) : 0;
	if (n > 0)
		wire_list_add(l, n);
}

static void put_http(struct wire_list *l, const struct counts *c)
{
	static const char *const methods[METHOD__COUNT] = {
	    [METHOD_GET] = "GET", [METHOD_POST] = "POST", [METHOD_DELETE] = "DELETE", [METHOD_PUT] = "PUT"};
	const struct route *r = routes_public;
	for (size_t row = 0; row < ROWS; row++) {
		bool real = row < NO_ROW && r->path != NULL;
		for (unsigned class = 0; class < CLASSES; class ++) {
			char labels[LABELS];
			uint64_t n = atomic_load_explicit(&c->http[row][class], memory_order_relaxed);
			(void)snprintf(labels, sizeof labels, "%s %s %uxx", real ? methods[r->method] : "any",
				       real ? r->path : "none", class);
			if (n > 0)
				put(l, METRIC_HTTP_REQUESTS_TOTAL, labels, n);
		}
		r += real;
	}
}

static void put_streams(struct wire_list *l, const struct app *app)
{
	struct stream_figures f;
	if (app->figures == NULL)
		return;
	app->figures(app->figures_ctx, &f);
	put(l, METRIC_STREAMS_OPEN, "", f.open);
	put(l, METRIC_STREAMS_OPENED_TOTAL, "", f.opened);
	put(l, METRIC_STREAMS_REFUSED_TOTAL, "", f.refused);
	put(l, METRIC_STREAMS_SLOW_TOTAL, "", f.slow);
}

struct wire_bytes counts_put(const struct app *app, uint8_t *p)
{
	struct wire_list l = {.p = p, .cap = COUNTS_BYTES};
	if (app->counts != NULL) {
		put_http(&l, app->counts);
		for (int i = 0; i < DENIALS; i++)
			put(&l, METRIC_AUTH_FAILURES_TOTAL, err_code(denials[i]),
			    atomic_load_explicit(&app->counts->denied[i], memory_order_relaxed));
	}
	put_streams(&l, app);
	return wire_list_done(&l);
}

enum err counts_tell(const struct app *app, struct ask *ask)
{
	uint8_t *p = malloc(COUNTS_BYTES);
	struct st_ok ok;
	if (p == NULL)
		return lack_error();
	const struct st_figures m = {.items = counts_put(app, p)};
	enum err e = st_call_figures(ask, &m, NULL, &ok, NULL);
	free(p);
	return e;
}
