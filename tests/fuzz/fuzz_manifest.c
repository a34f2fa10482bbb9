/*
 * libFuzzer target: any text as the manifest of a backup. What root then opens lies below the backup's folder, whatever
 * the text says: one of three kinds of names.
 */
#include "cli/store.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static bool row(void *with, const char *name, uint64_t size, const char *sha256_hex)
{
	uint64_t *rows = with;
	must(strstr(name, "..") == NULL && name[0] != '/' && strlen(name) < MANIFEST_NAME);
	must(strcmp(name, "pinfold.db") == 0 || (memcmp(name, "log.", 4) == 0 && strlen(name) == 14) ||
	     (memcmp(name, "blobs/", 6) == 0 && strlen(name) == 73 && strchr(name + 9, '/') == NULL));
	must(strlen(sha256_hex) == 64 && strspn(sha256_hex, "0123456789abcdef") == 64);
	must(size <= INT64_MAX);
	++*rows;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct manifest m;
	uint64_t rows = 0;
	char *text = malloc(size + 1);
	must(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	const char *why = manifest_parse(text, &m, row, &rows);
	must(m.files == rows);
	must(why != NULL || (size > 20 && m.tables && rows > 0));
	free(text);
	return 0;
}
