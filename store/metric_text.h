/* Figures as Prometheus text. Every name comes from spec/metrics.tab: nothing else can be written. */
#ifndef STORE_METRIC_TEXT_H
#define STORE_METRIC_TEXT_H
#include "gen/metrics.h"
#include "gen/store_msg.h"
#include "lib/buf.h"
#include "lib/hist.h"
#include <stdbool.h>

/* What comes before a figure's lines. */
void metric_head(struct buf *b, enum metric m);
/* A line. labels: the labels' values in the table's order, separated by a space; "" where it has none. */
void metric_line(struct buf *b, enum metric m, const char *labels, uint64_t value);
/* Head and line of a figure without labels. */
void metric_one(struct buf *b, enum metric m, uint64_t value);
/* The lines of a histogram. */
void metric_hist(struct buf *b, enum metric m, const char *labels, const struct hist *h);
/* May role say this of itself (FIGURES)? */
bool metric_told(const struct st_figure *f, enum metric_by by);
/* Everything that by has told, in the table's order. items passed metric_told. */
void metric_items(struct buf *b, enum metric_by by, struct wire_bytes items);
#endif
