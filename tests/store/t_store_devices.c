/* Devices: pairing codes, credentials, their end. Against a real process whose clock a test may set. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/store/settable.h"
#include "tests/store/steps.h"

enum { SECOND = 1000, MINUTE = 60000, DAY = 86400000 };

/* A hash of 32 bytes that begin with this text. */
static struct wire_bytes hash_of(const char *text)
{
	static uint8_t hash[4][32];
	static unsigned at;
	uint8_t *h = hash[at++ % 4];
	memset(h, 0, 32);
	memcpy(h, text, strnlen(text, 32));
	return (struct wire_bytes){h, 32};
}

static uint64_t code(const char *tenant, const char *text, uint32_t days)
{
	struct st_pair_begin m = {.tenant = tenant, .hash = hash_of(text), .days = days};
	struct st_pair_begun a;
	assert_int_equal(st_call_pair_begin(admin, &m, NULL, &a, NULL), ERR_OK);
	return a.expires_at;
}

static enum err claim_at(const char *vhost, const char *text, const char *label, const char *id)
{
	struct st_pair_claim m = {.hash = hash_of(text),
				  .tenant = vhost,
				  .label = label,
				  .token_id = id,
				  .token_hash = hash_of(id),
				  .request_id = "rq-1"};
	struct st_paired a;
	return FCGI(st_call_pair_claim(fcgi, &m, NULL, &a, NULL));
}

static enum err claim(const char *text, const char *label, const char *id)
{
	return claim_at("", text, label, id);
}

static enum err principal(const char *id)
{
	struct st_principal m = {.token_id = id, .hash = hash_of(id)};
	struct st_principal_is is;
	enum err e = FCGI(st_call_principal(fcgi, &m, NULL, &is, NULL));
	if (e == ERR_OK) {
		assert_int_equal(is.kind, 2);
		assert_int_equal(is.rights, 0);
		assert_string_equal(is.tenant, "acme");
	}
	return e;
}

static enum err revoke_device(const char *tenant, const char *label)
{
	struct st_device_revoke m = {.tenant = tenant, .label = label, .by = "device:x", .request_id = "rq-2"};
	struct st_ok ok;
	return FCGI(st_call_device_revoke(fcgi, &m, NULL, &ok, NULL));
}

/* The device of that label; without one, token_id is "". */
static struct st_device device(const char *tenant, const char *label)
{
	static char id[64];
	struct st_device_list m = {.tenant = tenant};
	struct st_devices_are a;
	struct st_device d, found = {.token_id = ""};
	struct wire_bytes part;
	bool bad = false;
	assert_int_equal(FCGI(st_call_device_list(fcgi, &m, NULL, &a, NULL)), ERR_OK);
	while (wire_list_next(&a.items, &part, &bad)) {
		assert_true(st_get_device(part.p, part.n, &d));
		if (strcmp(d.label, label) != 0)
			continue;
		(void)snprintf(id, sizeof id, "%s", d.token_id);
		found = d;
		found.token_id = id;
	}
	return found;
}

static void once(void **state)
{
	(void)state;
	assert_int_equal(claim("A", "phone", "id-1"), ERR_INVALID_PAIRING_CODE);
	code("acme", "A", 0);
	assert_int_equal(claim("B", "phone", "id-1"), ERR_INVALID_PAIRING_CODE);
	assert_int_equal(principal("id-1"), ERR_UNAUTHORIZED);
	assert_int_equal(claim("A", "phone", "id-1"), ERR_OK);
	assert_int_equal(principal("id-1"), ERR_OK);
	/* The answer was lost: the same again. Another is too late. */
	assert_int_equal(claim("A", "phone", "id-1"), ERR_OK);
	assert_int_equal(claim("A", "tablet", "id-1b"), ERR_INVALID_PAIRING_CODE);
	/* A new code in the place of the one before. */
	code("acme", "C", 0);
	code("acme", "D", 0);
	assert_int_equal(claim("C", "tablet", "id-2"), ERR_INVALID_PAIRING_CODE);
	assert_int_equal(claim("D", "tablet", "id-2"), ERR_OK);
	struct st_pair_begin nobody = {.tenant = "nobody", .hash = hash_of("x")};
	struct st_pair_begun a;
	assert_int_equal(st_call_pair_begin(admin, &nobody, NULL, &a, NULL), ERR_TENANT_NOT_FOUND);
}

static void labels(void **state)
{
	(void)state;
	static const char *const bad[] = {
	    "",     " ", "a\nb", "a\tb", "a/b",
	    "a\\b", ".", "..",   "\x7f", "0123456789012345678901234567890123456789012345678"};
	code("acme", "L", 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (claim("L", bad[i], "id-l") != ERR_INVALID_DEVICE_LABEL)
			fail_msg("label %zu is taken", i);
	/* One that is there costs no code; one that is only written otherwise is another. */
	assert_int_equal(claim("L", "phone", "id-l"), ERR_DEVICE_EXISTS);
	assert_int_equal(claim("L", "Phone", "id-l"), ERR_OK);
	code("acme", "M", 0);
	assert_int_equal(claim("M", "\xc3\xa4\xc3\xb6\xc3\xbc's 48 012345678901234567890123456789012345678", "id-m"),
			 ERR_OK);
	/* The operator's tokens for devices are held to it, too. */
	struct st_token_create t = {
	    .tenant = "acme", .kind = 2, .token_id = "id-t", .hash = hash_of("id-t"), .label = "phone"};
	struct st_ok ok;
	assert_int_equal(st_call_token_create(admin, &t, NULL, &ok, NULL), ERR_DEVICE_EXISTS);
	t.label = "a\nb";
	assert_int_equal(st_call_token_create(admin, &t, NULL, &ok, NULL), ERR_INVALID_DEVICE_LABEL);
	t.kind = 1;
	t.label = "phone";
	assert_int_equal(st_call_token_create(admin, &t, NULL, &ok, NULL), ERR_OK);
}

static void guesses(void **state)
{
	(void)state;
	code("acme", "G", 0);
	code("other", "H", 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(claim("wrong", "guesser", "id-g"), ERR_INVALID_PAIRING_CODE);
	/* A label that is none is no guess. */
	assert_int_equal(claim("wrong", "", "id-g"), ERR_INVALID_DEVICE_LABEL);
	/* At another tenant's address only that tenant's code can be meant, and is counted. */
	assert_int_equal(claim_at("other", "G", "guesser", "id-g"), ERR_INVALID_PAIRING_CODE);
	assert_int_equal(claim_at("other", "H", "guesser", "id-g"), ERR_INVALID_PAIRING_CODE);
	assert_int_equal(claim_at("acme", "G", "guesser", "id-g"), ERR_OK);
	code("acme", "I", 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(claim("wrong", "guesser", "id-i"), ERR_INVALID_PAIRING_CODE);
	assert_int_equal(claim("I", "late", "id-i"), ERR_INVALID_PAIRING_CODE);
	/* Counted beyond the end of the process. */
	code("acme", "J", 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(claim("wrong", "guesser", "id-j"), ERR_INVALID_PAIRING_CODE);
	(void)rig_stop(&rig, SIGKILL);
	rig_start(&rig);
	assert_int_equal(claim("wrong", "guesser", "id-j"), ERR_INVALID_PAIRING_CODE);
	assert_int_equal(claim("J", "late", "id-j"), ERR_INVALID_PAIRING_CODE);
}

static void times(void **state)
{
	(void)state;
	uint64_t end = code("acme", "T", 0);
	assert_true(end >= clock_ms() + 9 * MINUTE && end <= clock_ms() + 10 * MINUTE);
	set_clock(10 * MINUTE + SECOND);
	assert_int_equal(claim("T", "timely", "id-u"), ERR_INVALID_PAIRING_CODE);
	code("acme", "U", 2);
	assert_int_equal(claim("U", "timely", "id-u"), ERR_OK);
	assert_int_equal(principal("id-u"), ERR_OK);
	struct st_device d = device("acme", "timely");
	uint64_t seen = d.last_seen_at;
	assert_true(seen >= d.created_at && d.expires_at == d.created_at + 2 * (uint64_t)DAY);
	/* To the minute: not written at each request. */
	set_clock(10 * MINUTE + 31 * SECOND);
	assert_int_equal(principal("id-u"), ERR_OK);
	assert_int_equal(device("acme", "timely").last_seen_at, seen);
	set_clock(12 * MINUTE);
	assert_int_equal(principal("id-u"), ERR_OK);
	assert_true(device("acme", "timely").last_seen_at > seen + 30 * SECOND);
	/* What expires is told apart for who holds the secret, and its label is free. */
	set_clock(2LL * DAY + 20 * MINUTE);
	assert_int_equal(principal("id-u"), ERR_DEVICE_EXPIRED);
	struct st_principal m = {.token_id = "id-u", .hash = hash_of("other secret")};
	struct st_principal_is is;
	assert_int_equal(FCGI(st_call_principal(fcgi, &m, NULL, &is, NULL)), ERR_UNAUTHORIZED);
	assert_string_equal(device("acme", "timely").token_id, "");
	assert_int_equal(revoke_device("acme", "timely"), ERR_DEVICE_NOT_FOUND);
	/* A code that waits when the clock goes back does not get its time again. */
	code("acme", "V", 0);
	set_clock(0);
	assert_int_equal(principal("id-e"), ERR_OK);
	(void)rig_stop(&rig, SIGTERM);
	rig_start(&rig);
	for (int i = 0; i < 2; i++)
		assert_int_equal(claim("V", "timely", "id-v"), ERR_INVALID_PAIRING_CODE);
	struct st_pair_begin long_one = {.tenant = "acme", .hash = hash_of("x"), .days = 3651};
	struct st_pair_begun a;
	assert_int_equal(st_call_pair_begin(admin, &long_one, NULL, &a, NULL), ERR_INVALID_REQUEST);
}

static void end(void **state)
{
	(void)state;
	assert_string_equal(device("acme", "phone").token_id, "id-1");
	assert_string_equal(device("other", "phone").token_id, "");
	assert_int_equal(revoke_device("other", "phone"), ERR_DEVICE_NOT_FOUND);
	assert_int_equal(revoke_device("acme", "nothing"), ERR_DEVICE_NOT_FOUND);
	assert_int_equal(principal("id-1"), ERR_OK);
	assert_int_equal(revoke_device("acme", "phone"), ERR_OK);
	assert_int_equal(principal("id-1"), ERR_UNAUTHORIZED);
	assert_int_equal(revoke_device("acme", "phone"), ERR_DEVICE_NOT_FOUND);
	assert_string_equal(device("acme", "phone").token_id, "");
	/* The credential was not given again by the claim that made it, nor is the label taken. */
	assert_int_equal(claim("A", "phone", "id-1"), ERR_INVALID_PAIRING_CODE);
	code("acme", "E", 0);
	assert_int_equal(claim("E", "phone", "id-1"), ERR_TOKEN_EXISTS);
	assert_int_equal(claim("E", "phone", "id-e"), ERR_OK);
	(void)rig_stop(&rig, SIGKILL);
	rig_start(&rig);
	assert_int_equal(principal("id-1"), ERR_UNAUTHORIZED);
	assert_int_equal(principal("id-e"), ERR_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(once), cmocka_unit_test(labels), cmocka_unit_test(guesses),
					   cmocka_unit_test(end), cmocka_unit_test(times)};
	return cmocka_run_group_tests(tests, settable_setup, settable_teardown);
}
