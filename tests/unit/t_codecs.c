/*
 * Every message, record and list part that the generator knows: it survives a round trip, and nothing
 * but its exact bytes is taken. A codec that reads past its input is seen by the sanitizer build, since
 * every input lies in a heap block of exactly its size.
 */
#include "gen/records.h"
#include "lib/wire.h"
#include "tests/unit/codec_table.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SAMPLE = 65536, OP = 7 };

static const struct {
	const char *name;
	const struct codec_row *rows;
} tables[] = {
    {"store", st_codecs}, {"sandbox", sbx_codecs}, {"bundle", bn_codecs}, {"conf", cf_codecs}, {"records", rec_codecs},
};

typedef void check_fn(const struct codec_row *row, const uint8_t *sample, size_t n);

/* The codec's answer for these bytes, from a block that ends where they end. */
static bool takes(const struct codec_row *row, const uint8_t *p, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);
	assert_non_null(copy);
	memcpy(copy, p, n);
	bool yes = row->read(copy, n);
	free(copy);
	return yes;
}

static void each(check_fn *check)
{
	uint8_t *sample = malloc(SAMPLE);
	assert_non_null(sample);
	for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
		for (const struct codec_row *row = tables[t].rows; row->name != NULL; row++) {
			size_t n = row->fill(sample, SAMPLE, true);
			if (n == 0 || n > row->most)
				fail_msg("%s %s: sample of %zu bytes", tables[t].name, row->name, n);
			check(row, sample, n);
		}
	free(sample);
}

static void round_trip(const struct codec_row *row, const uint8_t *sample, size_t n)
{
	uint8_t *out = malloc(SAMPLE);
	assert_non_null(out);
	size_t m = row->again(sample, n, out, SAMPLE, OP);
	if (m != n || memcmp(out, sample, n) != 0)
		fail_msg("%s: comes back different", row->name);
	/* A buffer one byte short is an error, never a short message. */
	assert_int_equal(row->again(sample, n, out, n - 1, OP), 0);
	free(out);
}

static void truncation(const struct codec_row *row, const uint8_t *sample, size_t n)
{
	assert_true(takes(row, sample, n));
	for (size_t i = 0; i < n; i++)
		if (takes(row, sample, i))
			fail_msg("%s: taken when cut to %zu of %zu bytes", row->name, i, n);
}

static void one_more(const struct codec_row *row, const uint8_t *sample, size_t n)
{
	uint8_t *longer = calloc(1, n + 1);
	assert_non_null(longer);
	memcpy(longer, sample, n);
	if (takes(row, longer, n + 1))
		fail_msg("%s: taken with one more byte", row->name);
	free(longer);
}

/* Where the sample with every bool true differs from the one with every bool false, there is a bool. */
static void bool_two(const struct codec_row *row, const uint8_t *sample, size_t n)
{
	uint8_t *other = malloc(SAMPLE);
	assert_non_null(other);
	assert_int_equal(row->fill(other, SAMPLE, false), n);
	for (size_t i = 0; i < n; i++) {
		if (other[i] == sample[i])
			continue;
		for (unsigned v = 2; v < 256; v++) {
			uint8_t was = other[i];
			other[i] = (uint8_t)v;
			if (takes(row, other, n))
				fail_msg("%s: a bool of %u is taken", row->name, v);
			other[i] = was;
		}
	}
	free(other);
}

static void inner_nul(const struct codec_row *row, const uint8_t *sample, size_t n)
{
	uint8_t *bad = malloc(n);
	assert_non_null(bad);
	for (size_t i = 0; i + 4 <= n; i++) {
		bool text = memcmp(sample + i, "abc", 4) == 0, id = memcmp(sample + i, "id-", 3) == 0;
		if (!text && !id)
			continue;
		memcpy(bad, sample, n);
		bad[i + 1] = 0;
		if (takes(row, bad, n))
			fail_msg("%s: a NUL inside text is taken", row->name);
		memcpy(bad, sample, n);
		bad[i + 1] = '/';
		if (id && takes(row, bad, n))
			fail_msg("%s: an id with a slash is taken", row->name);
		memcpy(bad, sample, n);
		if (text)
			bad[i + 3] = 'd';
		if (text && takes(row, bad, n))
			fail_msg("%s: text without its NUL is taken", row->name);
	}
	free(bad);
}

/* A record of an older version lacks what came later, and nothing else; there is no version 0 and none to come. */
static void older_record(void **state)
{
	(void)state;
	uint8_t p[400];
	struct rec_token r = {.tenant = "t",
			      .kind = 1,
			      .label = "l",
			      .rights = 7,
			      .revoked = true,
			      .revoked_at = 5,
			      .last_seen_at = 6,
			      .secret_at = 7,
			      .next_at = 8};
	size_t n = rec_put_token(p, sizeof p, &r);
	/* What is behind the last field of each version. */
	static const size_t less[] = {0, 44, 36, 28, 0};
	assert_int_equal(p[0], 4);
	assert_true(rec_get_token(p, n, &r) && r.revoked_at == 5 && r.last_seen_at == 6);
	/* Each version has its length, and no other's. */
	for (size_t version = 1; version <= 4; version++)
		for (size_t has = 1; has <= 4; has++) {
			p[0] = (uint8_t)version;
			assert_int_equal(rec_get_token(p, n - less[has], &r), has == version);
			if (has != version)
				continue;
			assert_true(r.revoked && r.rights == 7 && r.revoked_at == (has >= 2 ? 5 : 0) &&
				    r.last_seen_at == (has >= 3 ? 6 : 0) && r.secret_at == (has >= 4 ? 7 : 0) &&
				    r.next_hash.n == 0 && r.next_at == (has >= 4 ? 8 : 0));
			assert_string_equal(r.label, "l");
		}
	p[0] = 0;
	assert_false(rec_get_token(p, n - 44, &r));
	p[0] = 5;
	assert_false(rec_get_token(p, n, &r));
}

/* Number, version and descriptor count; of a record its version. The operation id may be anything. */
static void other_header(const struct codec_row *row, const uint8_t *sample, size_t n)
{
	uint8_t *bad = malloc(n);
	assert_non_null(bad);
	for (size_t i = 0; row->framed && i < 4; i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			memcpy(bad, sample, n);
			bad[i] ^= (uint8_t)(1u << bit);
			if (takes(row, bad, n))
				fail_msg("%s: taken with another header", row->name);
		}
	free(bad);
}

static void t_round_trip(void **state)
{
	(void)state;
	each(round_trip);
}
static void t_truncation(void **state)
{
	(void)state;
	each(truncation);
}
static void t_one_more(void **state)
{
	(void)state;
	each(one_more);
}
static void t_bool_two(void **state)
{
	(void)state;
	each(bool_two);
}
static void t_inner_nul(void **state)
{
	(void)state;
	each(inner_nul);
}
static void t_other_header(void **state)
{
	(void)state;
	each(other_header);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_round_trip), cmocka_unit_test(t_truncation), cmocka_unit_test(t_one_more),
	    cmocka_unit_test(t_bool_two),   cmocka_unit_test(t_inner_nul),  cmocka_unit_test(t_other_header),
	    cmocka_unit_test(older_record),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
