/* See metric_text.h. What a role says of itself is looked at strictly: it may be a role that was taken over. */
#include "store/metric_text.h"
#include <endian.h>
#include <stdio.h>
#include <string.h>

void metric_head(struct buf *b, enum metric m)
{
	static const char *const types[] = {"counter", "gauge", "histogram"};
	buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", metrics[m].name, metrics[m].help, metrics[m].name,
		 types[metrics[m].type]);
}

/* a="x",b="y" of "x y". */
static void put_labels(struct buf *b, enum metric m, const char *values)
{
	for (int i = 0; metrics[m].labels[i] != NULL; i++) {
		size_t n = strcspn(values, " ");
		buf_addf(b, "%s%s=\"%.*s\"", i > 0 ? "," : "", metrics[m].labels[i], (int)n, values);
		values += n + (values[n] == ' ');
	}
}

void metric_line(struct buf *b, enum metric m, const char *labels, uint64_t value)
{
	bool some = metrics[m].labels[0] != NULL;
	buf_addf(b, "%s%s", metrics[m].name, some ? "{" : "");
	put_labels(b, m, labels);
	buf_addf(b, "%s %llu\n", some ? "}" : "", (unsigned long long)value);
}

void metric_one(struct buf *b, enum metric m, uint64_t value)
{
	metric_head(b, m);
	metric_line(b, m, "", value);
}

static void put_seconds(struct buf *b, uint64_t us)
{
	buf_addf(b, "%llu", (unsigned long long)(us / 1000000));
	char part[8];
	(void)snprintf(part, sizeof part, "%06u", (unsigned)(us % 1000000));
	size_t n = 6;
	while (n > 0 && part[n - 1] == '0')
		n--;
	if (n > 0)
		buf_addf(b, ".%.*s", (int)n, part);
}

void metric_hist(struct buf *b, enum metric m, const char *labels, const struct hist *h)
{
	uint64_t so_far = 0;
	bool some = metrics[m].labels[0] != NULL;
	for (int i = 0; i <= HIST_BOUNDS; i++) {
		so_far += h->n[i];
		buf_addf(b, "%s_bucket{", metrics[m].name);
		put_labels(b, m, labels);
		buf_adds(b, some ? ",le=\"" : "le=\"");
		if (i < HIST_BOUNDS)
			put_seconds(b, hist_bounds[i]);
		else
			buf_adds(b, "+Inf");
		buf_addf(b, "\"} %llu\n", (unsigned long long)so_far);
	}
	for (int count = 0; count < 2; count++) {
		buf_addf(b, "%s_%s%s", metrics[m].name, count ? "count" : "sum", some ? "{" : "");
		put_labels(b, m, labels);
		buf_adds(b, some ? "} " : " ");
		if (count)
			buf_addf(b, "%llu", (unsigned long long)so_far);
		else
			put_seconds(b, h->sum_us);
		buf_adds(b, "\n");
	}
}

/* As many words as there are labels, of characters that need no quoting. */
static bool fits(enum metric m, const char *values)
{
	static const char word[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./{}-";
	for (int i = 0; metrics[m].labels[i] != NULL; i++) {
		size_t n = strspn(values, word);
		bool last = metrics[m].labels[i + 1] == NULL;
		if (n == 0 || values[n] != (last ? '\0' : ' '))
			return false;
		values += n + !last;
	}
	return *values == '\0';
}

bool metric_told(const struct st_figure *f, enum metric_by by)
{
	if (f->metric >= METRIC__COUNT || metrics[f->metric].by != by)
		return false;
	size_t want = metrics[f->metric].type == METRIC_HISTOGRAM ? HIST_BOUNDS + 2 : 1;
	return f->values.n == want * sizeof(uint64_t) && fits((enum metric)f->metric, f->labels);
}

static void put_item(struct buf *b, const struct st_figure *f)
{
	uint64_t v[HIST_BOUNDS + 2] = {0};
	memcpy(v, f->values.p, f->values.n);
	for (size_t i = 0; i < sizeof v / sizeof *v; i++)
		v[i] = be64toh(v[i]);
	if (metrics[f->metric].type != METRIC_HISTOGRAM) {
		metric_line(b, (enum metric)f->metric, f->labels, v[0]);
		return;
	}
	struct hist h = {.sum_us = v[HIST_BOUNDS + 1]};
	memcpy(h.n, v, sizeof h.n);
	metric_hist(b, (enum metric)f->metric, f->labels, &h);
}

void metric_items(struct buf *b, enum metric_by by, struct wire_bytes items)
{
	for (int m = 0; m < METRIC__COUNT; m++) {
		struct wire_bytes rest = items, part;
		struct st_figure f;
		bool bad = false, begun = false;
		while (metrics[m].by == by && wire_list_next(&rest, &part, &bad)) {
			if (!st_get_figure(part.p, part.n, &f) || f.metric != m)
				continue;
			if (!begun)
				metric_head(b, (enum metric)m);
			begun = true;
			put_item(b, &f);
		}
	}
}
