/* Writes and reads the ends of audit lines. Trusts nothing of a line that it reads; allocates nothing. */
#include "lib/audit_chain.h"
#include "lib/digest.h"
#include "lib/num.h"
#include <stdio.h>
#include <string.h>

static const char prev_key[] = ",\"prev\":\"", hash_key[] = ",\"hash\":\"";
enum {
	KEY = sizeof prev_key - 1,
	HASH_PART = KEY + AUDIT_HASH + 1, /* ,"hash":"…" without the bracket */
	TAIL = 2 * HASH_PART + 1
};

void audit_no_hash(char hash[AUDIT_HASH + 1])
{
	memset(hash, '0', AUDIT_HASH);
	hash[AUDIT_HASH] = '\0';
}

/* Over prev and the n bytes of a line whose hash member was left out, and its closing bracket. */
static bool digest(const char prev[AUDIT_HASH + 1], const char *line, size_t n, char out[AUDIT_HASH + 1])
{
	char text[AUDIT_HASH + AUDIT_LINE_MAX];
	uint8_t sum[SHA256_SIZE];
	if (n + 1 > AUDIT_LINE_MAX)
		return false;
	memcpy(text, prev, AUDIT_HASH);
	memcpy(text + AUDIT_HASH, line, n);
	text[AUDIT_HASH + n] = '}';
	if (!sha256(text, AUDIT_HASH + n + 1, sum))
		return false;
	hex(sum, sizeof sum, out);
	return true;
}

bool audit_seal(struct buf *b, size_t start, const char prev[AUDIT_HASH + 1], char hash[AUDIT_HASH + 1])
{
	char sum[AUDIT_HASH + 1];
	buf_addf(b, "%s%s\"", prev_key, prev);
	if (buf_failed(b) || b->n - start + HASH_PART + 2 > AUDIT_LINE_MAX ||
	    !digest(prev, (const char *)b->p + start, b->n - start, sum))
		return false;
	buf_addf(b, "%s%s\"}\n", hash_key, sum);
	memcpy(hash, sum, sizeof sum);
	return !buf_failed(b);
}

static bool is_hash(const char *p)
{
	for (size_t i = 0; i < AUDIT_HASH; i++)
		if ((p[i] < '0' || p[i] > '9') && (p[i] < 'a' || p[i] > 'f'))
			return false;
	return true;
}

/* Skips this text, or gives NULL. */
static const char *after(const char *p, const char *end, const char *text)
{
	size_t n = strlen(text);
	return p != NULL && (size_t)(end - p) >= n && memcmp(p, text, n) == 0 ? p + n : NULL;
}

static const char *number(const char *p, const char *end, uint64_t *out)
{
	size_t n = 0;
	while (p != NULL && p + n < end && p[n] >= '0' && p[n] <= '9')
		n++;
	return p != NULL && num_u64(p, n, 0, UINT64_MAX, out) ? p + n : NULL;
}

bool audit_read(const char *line, size_t n, struct audit_seen *out)
{
	uint64_t ts;
	char sum[AUDIT_HASH + 1];
	if (n < TAIL + 2 || n + 1 > AUDIT_LINE_MAX || line[n - 1] != '}' || memchr(line, '\0', n) != NULL)
		return false;
	const char *end = line + n, *tail = end - TAIL, *last = tail + HASH_PART;
	const char *p = number(after(line, end, "{\"ts\":"), end, &ts);
	p = number(after(p, end, ",\"seq\":"), end, &out->seq);
	p = after(p, end, ",\"event\":\"");
	const char *q = p == NULL ? NULL : memchr(p, '"', (size_t)(end - p));
	if (q == NULL || after(tail, end, prev_key) == NULL || after(last, end, hash_key) == NULL ||
	    !is_hash(tail + KEY) || !is_hash(last + KEY) || tail[HASH_PART - 1] != '"' || last[HASH_PART - 1] != '"')
		return false;
	memcpy(out->prev, tail + KEY, AUDIT_HASH);
	memcpy(out->hash, last + KEY, AUDIT_HASH);
	out->prev[AUDIT_HASH] = out->hash[AUDIT_HASH] = '\0';
	out->event = p;
	out->event_len = (size_t)(q - p);
	out->sound = digest(out->prev, line, (size_t)(last - line), sum) && strcmp(sum, out->hash) == 0;
	return true;
}

/* Behind ,"name": — our lines escape every quote inside a text, so this cannot match inside one. */
static const char *member(const char *line, size_t n, const char *name)
{
	char key[64];
	int len = snprintf(key, sizeof key, ",\"%s\":", name);
	const char *p = len > 0 && (size_t)len < sizeof key ? memmem(line, n, key, (size_t)len) : NULL;
	return p == NULL ? NULL : p + len;
}

bool audit_number(const char *line, size_t n, const char *name, uint64_t *out)
{
	return number(member(line, n, name), line + n, out) != NULL;
}

bool audit_text_is(const char *line, size_t n, const char *name, const char *text)
{
	const char *p = after(after(member(line, n, name), line + n, "\""), line + n, text);
	return after(p, line + n, "\"") != NULL;
}
