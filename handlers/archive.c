/* See archive.h. Trusts nothing: reads at most ARCHIVE_BEGIN bytes, and of them only what is there. */
#include "handlers/archive.h"
#include "lib/digest.h"
#include <string.h>
#include <strings.h>

/* Where a tar header has its own sum, as octal digits; the sum counts spaces there (POSIX ustar). */
enum { SUM_AT = 148, SUM_SIZE = 8 };

enum archive_kind archive_type(const char *s)
{
	static const char *const names[] = {[ARCHIVE_TAR] = "application/x-tar",
					    [ARCHIVE_GZIP] = "application/gzip",
					    [ARCHIVE_ZSTD] = "application/zstd"};
	for (enum archive_kind k = ARCHIVE_TAR; s != NULL && k <= ARCHIVE_ZSTD; k++) {
		size_t n = strlen(names[k]);
		if (strncasecmp(s, names[k], n) == 0 && s[n + strspn(s + n, " \t")] == '\0')
			return k;
	}
	return ARCHIVE_NONE;
}

/* A header block whose sum is right. That of the end, which is all zeros, is none: there the sum is empty. */
static bool tar_header(const uint8_t *p)
{
	uint32_t is = 0, said = 0;
	size_t i = SUM_AT, digits = 0;
	for (size_t k = 0; k < ARCHIVE_BEGIN; k++)
		is += k >= SUM_AT && k < SUM_AT + SUM_SIZE ? ' ' : p[k];
	while (i < SUM_AT + SUM_SIZE && p[i] == ' ')
		i++;
	for (; i < SUM_AT + SUM_SIZE && p[i] >= '0' && p[i] <= '7'; i++, digits++)
		said = said * 8 + (p[i] - '0');
	return digits > 0 && (i == SUM_AT + SUM_SIZE || p[i] == '\0' || p[i] == ' ') && said == is && p[0] != '\0';
}

enum archive_kind archive_look(const uint8_t *p, size_t n)
{
	static const uint8_t gzip[] = {0x1f, 0x8b, 8}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
	if (n >= sizeof gzip && memcmp(p, gzip, sizeof gzip) == 0)
		return ARCHIVE_GZIP;
	if (n >= sizeof zstd && memcmp(p, zstd, sizeof zstd) == 0)
		return ARCHIVE_ZSTD;
	return n >= ARCHIVE_BEGIN && tar_header(p) ? ARCHIVE_TAR : ARCHIVE_NONE;
}

bool archive_id(const char *s, uint8_t sha[32])
{
	uint8_t is[SHA256_SIZE];
	size_t n = strlen(s);
	return strspn(s, "0123456789abcdef") == n && unhex(s, n, sha != NULL ? sha : is, SHA256_SIZE);
}
