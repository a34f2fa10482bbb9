/*
 * Values of settings: what a file says, or the default of spec/conf.tab, bounded by its row and put into the field of a
 * message.
 */
#ifndef CLI_CONF_VALUE_H
#define CLI_CONF_VALUE_H
#include <stdint.h>

#include "cli/conf_parse.h"

/* The words of a setting in a block, or else its default's; a text has one, or none where it is empty. *at: where it is
 * set, or the block where it is not. Words are in the arena of the notes. */
const char *const *conf_words(struct conf_notes *notes, const struct conf_block *b, const struct conf_row *r,
			      unsigned *n, struct conf_place *at);
/* Notes a fault of a setting, with the block it stands in. */
void conf_fault(struct conf_notes *notes, const struct conf_block *b, struct conf_place at, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Every setting of the block that goes into this message (CF_GLOBAL and so on), into *m, a struct cf_... that is empty
 * but for its name. Faults are noted, and their fields hold what the codec takes. */
void conf_fill(struct conf_notes *notes, const struct conf_block *b, uint16_t message, void *m);
#endif
