/* A store of a stopped rig, made into the form that it had before forms had numbers (form 1). */
#ifndef TESTS_STORE_OLD_FORM_H
#define TESTS_STORE_OLD_FORM_H
#include "tests/store/harness.h"

/* state: the rig's. How many records were rewritten. */
unsigned old_form(const char *state);
/* The form that the store says it has; 0: none. */
unsigned form_of(const char *state);
/* Says so. */
void form_set(const char *state, unsigned schema);
/* Takes the first row of a table whose key begins with prefix, and nothing that belongs to it. */
void row_drop(const char *state, const char *table, const char *prefix, size_t n);
/* Changes the last byte of its value. */
void row_spoil(const char *state, const char *table, const char *prefix, size_t n);
/* Of a run without a title: how many questions wait. */
void row_spoil_pending(const char *state, const char *table, const char *prefix, size_t n);
/* Of a capability: how many requests were made. */
void row_spoil_used(const char *state, const char *table, const char *prefix, size_t n);
/* Takes it away. */
void row_cut(const char *state, const char *table, const char *prefix, size_t n);
/* Rows of the index of ended runs. */
unsigned ended_rows(const char *state);
#endif
