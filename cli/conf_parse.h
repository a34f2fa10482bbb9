/*
 * One configuration file, read with libconfuse: what is said in it, and where. Which names there are comes from
 * spec/conf.tab; what a value must be is looked at elsewhere (cli/conf_value.h).
 */
#ifndef CLI_CONF_PARSE_H
#define CLI_CONF_PARSE_H
#include "cli/conf_note.h"
#include "gen/conf_tab.h"

/* A setting as a file has it: one word, or those of a list. */
struct conf_said {
	const struct conf_row *row;
	unsigned line; /* 0: not known, which is so for an empty list */
	unsigned n;
	const char **v;
	struct conf_said *next;
};

/* A section, or what stands outside of any ("machine"). */
struct conf_block {
	const char *section, *title; /* title "": it has none */
	struct conf_place at;        /* where it begins */
	struct conf_said *said;
	struct conf_block *inner; /* the sections in it: checks of a tenant */
	struct conf_block *next;
};

/* What a file may hold. */
enum conf_kind { CONF_MAIN, CONF_PART };

/*
 * Appends what the file says to **end and moves it on; everything is kept in the arena of the notes. False where it
 * cannot be read or is none: then nothing is appended. Names that do not exist and settings that stand twice are noted,
 * too.
 */
bool conf_parse(struct conf_notes *notes, const char *file, enum conf_kind kind, struct conf_block ***end);
/* The setting of this name in a block; NULL: it is not there. */
const struct conf_said *conf_find(const struct conf_block *b, const struct conf_row *r);
#endif
