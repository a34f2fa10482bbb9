/*
 * Any bytes as the beginning of an archive, with a first line as its Content-Type and as a source's id. What is taken
 * for a kind begins like it, whatever comes behind what is looked at; a tar's first header has the sum that it says,
 * counted here another way.
 */
#include "handlers/archive.h"
#include "lib/digest.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void header(const uint8_t *p)
{
	char said[9] = "", *end;
	long sum = 8L * ' ';
	for (int i = 0; i < 148; i++)
		sum += p[i];
	for (int i = 156; i < 512; i++)
		sum += p[i];
	memcpy(said, p + 148, 8);
	must(p[0] != 0 && strtol(said, &end, 8) == sum && end > said);
}

static void text(const char *s)
{
	uint8_t sha[32];
	char again[65];
	enum archive_kind k = archive_type(s);
	size_t n = strlen(s);
	while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t'))
		n--;
	must((k == ARCHIVE_TAR) == (n == 17 && strncasecmp(s, "application/x-tar", n) == 0));
	must((k == ARCHIVE_GZIP || k == ARCHIVE_ZSTD) ==
	     (n == 16 && (strncasecmp(s, "application/gzip", n) == 0 || strncasecmp(s, "application/zstd", n) == 0)));
	if (!archive_id(s, sha))
		return;
	hex(sha, sizeof sha, again);
	must(strcmp(again, s) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char line[100] = "";
	const uint8_t *end = memchr(data, '\n', size);
	size_t n = end != NULL ? (size_t)(end - data) : 0;
	if (n > 0 && n < sizeof line)
		memcpy(line, data, n);
	text(line);
	if (end != NULL)
		data += n + 1, size -= n + 1;
	/* Of its own, so that a byte too far is seen. */
	uint8_t *copy = malloc(size + (size == 0));
	if (copy == NULL)
		return 0;
	memcpy(copy, data, size);
	enum archive_kind k = archive_look(copy, size);
	must(k == archive_look(copy, size < ARCHIVE_BEGIN ? size : ARCHIVE_BEGIN));
	must(k != ARCHIVE_GZIP || (copy[0] == 0x1f && copy[1] == 0x8b));
	must(k != ARCHIVE_ZSTD || memcmp(copy, "\x28\xb5\x2f\xfd", 4) == 0);
	if (k == ARCHIVE_TAR)
		header(copy);
	free(copy);
	return 0;
}
