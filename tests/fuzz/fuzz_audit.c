/*
 * libFuzzer target: any bytes as a file of the audit log, and as what a line was made of. A walk ends with a
 * fault or has seen sound lines alone; a line that was sealed is sound, and with one byte changed it is not.
 */
#include "cli/audit.h"
#include "lib/json.h"
#include "lib/text.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void walk(const uint8_t *p, size_t n, uint64_t lines)
{
	struct audit_walk w = {0};
	FILE *f = n == 0 ? NULL : fmemopen((void *)(uintptr_t)p, n, "r");
	if (f == NULL)
		return;
	bool ok = audit_walk_file(&w, f) && audit_walk_end(&w);
	fclose(f);
	must(ok == (w.why[0] == '\0'));
	must(!ok || w.lines >= lines);
}

static void one_line(struct buf *b, const char *s, size_t n, uint64_t seq, char hash[AUDIT_HASH + 1])
{
	own_buf struct buf text;
	struct jw w;
	size_t start = b->n;
	buf_init(&text, 1000);
	text_log(&text, s, n, 120);
	jw_init(&w, b);
	jw_open(&w, '{');
	jw_kint(&w, "ts", 1);
	jw_kint(&w, "seq", (int64_t)seq);
	jw_kstr(&w, "event", "auth.denied");
	jw_key(&w, "subject");
	jw_strn(&w, text.p != NULL ? (const char *)text.p : "", text.n);
	must(audit_seal(b, start, hash, hash));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *s = (const char *)data;
	own_buf struct buf log;
	char hash[AUDIT_HASH + 1];
	struct audit_seen seen;
	uint64_t number;
	if (audit_read(s, size, &seen))
		(void)audit_number(s, size, "of", &number);
	walk(data, size, 0);
	buf_init(&log, 1 << 20);
	audit_no_hash(hash);
	one_line(&log, s, size, 1, hash);
	size_t first = log.n;
	one_line(&log, s, size / 2, 2, hash);
	must(audit_read((const char *)log.p, first - 1, &seen) && seen.sound && seen.seq == 1);
	walk(log.p, log.n, 2);
	if (size < 3)
		return 0;
	/* One byte of the first line, its end included. */
	size_t at = ((size_t)data[0] << 8 | data[1]) % first;
	if (log.p[at] == data[2])
		return 0;
	log.p[at] = data[2];
	struct audit_walk w = {0};
	FILE *f = fmemopen(log.p, log.n, "r");
	must(f == NULL || !(audit_walk_file(&w, f) && audit_walk_end(&w)));
	if (f != NULL)
		fclose(f);
	return 0;
}
