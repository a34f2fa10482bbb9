/* A folder as the body of POST /v1/runs, or as an archive. */
#ifndef CLI_UPLOAD_H
#define CLI_UPLOAD_H
#include <stdbool.h>
#include <stdint.h>

#include "cli/collect.h"
#include "lib/buf.h"
#include "lib/json.h"

enum { UPLOAD_WORDS = 32 };

/* The check of a run that names none. */
#define UPLOAD_CHECK "git diff --check"

struct upload {
	const char *dir, *instruction, *agent, *profile;
	const char *allow[UPLOAD_WORDS], *check[UPLOAD_WORDS];
	unsigned nallow, nchecks;
	struct {
		const char *tool, *word; /* what the agent may do with it: "ask", "deny" */
	} permit[UPLOAD_WORDS];
	unsigned npermits;
	const struct json *types; /* the tenant's extensions, each a string; NULL: those of a tenant that sets none */
};

/* Do these files go into one request, by their number and their sizes? bytes gets their sum. */
bool upload_fits(const struct upload *u, const struct collected *files, uint64_t *bytes);
/* May a source hold these files? At most so many, so many bytes each and together; 0: any. False after saying what is
 * too much, before anything is sent: the server would only say so in the run. */
bool upload_may(const struct upload *u, const struct collected *files, uint64_t count, uint64_t each, uint64_t bytes);
/*
 * Writes the request, of the files themselves, or of the source that holds them (NULL: there is none). Without --allow
 * every file may be changed: by name, or where there are many by the folders and files at the top; without --check the
 * check is `git diff --check`. Files that are no text go into no request, and are told with those left out. *n: how
 * many went. False after saying what is wrong.
 */
bool upload_write(const struct upload *u, struct collected *files, const char *source, struct buf *body, size_t *n);
/* cli/pack.c: the files as an archive in a file without a name, of which *type says the kind. -1 after saying why not.
 */
int upload_pack(const struct upload *u, const struct collected *files, const char **type, uint64_t *bytes);
#endif
