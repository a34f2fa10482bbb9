/*
 * Checks a parsed JSON body against its table (spec/schema.tab): unknown keys, types, bounds, required.
 * What passes still has to be rebuilt by a canonicaliser; what fails names its error and field.
 */
#ifndef LIB_SCHEMA_H
#define LIB_SCHEMA_H
#include "gen/errors.h"
#include "lib/json.h"

enum schema_type { SCHEMA_STRING, SCHEMA_OBJECT, SCHEMA_ARRAY, SCHEMA_INTEGER, SCHEMA_BOOL, SCHEMA_MAP, SCHEMA_ANY };

struct schema_row {
	const char *field; /* as in the table, such as files[].path */
	enum schema_type type;
	bool required;
	int64_t min, max;  /* INT64_MIN and INT64_MAX where the table has "-" */
	uint64_t maxbytes; /* 0: no bound */
	enum err error;
	enum err too_large; /* for more than maxbytes; ERR_OK: the same as error */
};

struct schema {
	const char *name;
	const struct schema_row *rows; /* ends with field NULL */
};

enum { SCHEMA_FIELD = 200 };
/* ERR_OK, or the error, and in field the place such as files[3].path ("" for the body itself).
 * A body that is no object is ERR_INVALID_JSON_OBJECT. NUL inside any string is that row's error. */
enum err schema_check(const struct schema *s, const struct json *body, char field[SCHEMA_FIELD]);
#endif
