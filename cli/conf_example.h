/*
 * Configuration files as examples: every setting of a section with its sentence and its default, commented out, but for
 * those that are given a value.
 */
#ifndef CLI_CONF_EXAMPLE_H
#define CLI_CONF_EXAMPLE_H
#include <stddef.h>

#include "lib/buf.h"

/* A setting that is set: its value as it stands in a file, with its quotes. */
struct conf_given {
	const char *section, *name, *value;
};

/*
 * Appends a section ("machine": what pinfold.conf has outside of any), its lines begun with what is given. title NULL:
 * it has none. given ends with section NULL; where nothing is given of a section, its braces are commented out, too. A
 * tenant has its check within.
 */
void conf_example(struct buf *b, const char *section, const char *title, const struct conf_given *given);
/* Is there such a section? */
bool conf_section(const char *section);
#endif
