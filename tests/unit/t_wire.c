/* Frames by hand: what the generated codecs rest on, the permitted-state check and lists. */
#include "lib/wire.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void t_numbers(void **state)
{
	(void)state;
	uint8_t b[64];
	struct wire_w w = wire_begin(b, sizeof b, 0x0102, 3, 4, UINT64_C(0x0506070809101112));
	wire_put_u8(&w, 0xff);
	wire_put_i32(&w, -2);
	wire_put_bool(&w, true);
	size_t n = wire_end(&w);
	const uint8_t want[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 0x10, 0x11, 0x12, 0xff, 0xff, 0xff, 0xff, 0xfe, 1};
	assert_int_equal(n, sizeof want);
	assert_memory_equal(b, want, n);
	struct wire_r r = wire_open(b, n, 0x0102, 3, 4);
	assert_int_equal(wire_get_u8(&r), 0xff);
	assert_int_equal(wire_get_i32(&r), -2);
	assert_true(wire_get_bool(&r));
	assert_true(wire_done(&r));
	/* Any other header, and one byte more or less. */
	r = wire_open(b, n, 0x0103, 3, 4);
	assert_true(r.bad);
	r = wire_open(b, n, 0x0102, 4, 4);
	assert_true(r.bad);
	r = wire_open(b, n, 0x0102, 3, 3);
	assert_true(r.bad);
	r = wire_open(b, WIRE_HEADER - 1, 0x0102, 3, 4);
	assert_true(r.bad);
	r = wire_open(b, WIRE_HEADER, 0x0102, 3, 4);
	assert_true(wire_done(&r));
	assert_int_equal(wire_get_u8(&r), 0);
	assert_false(wire_done(&r));
	b[n - 1] = 2;
	r = wire_open_plain(b + n - 1, 1);
	assert_false(wire_get_bool(&r));
	assert_true(r.bad);
}

static void t_strings(void **state)
{
	(void)state;
	uint8_t b[64];
	struct wire_w w = wire_plain(b, sizeof b);
	wire_put_str(&w, "abc", 3);
	wire_put_str(&w, NULL, 3);
	size_t n = wire_end_plain(&w);
	assert_int_equal(n, 8 + 5);
	struct wire_r r = wire_open_plain(b, n);
	assert_string_equal(wire_get_str(&r, 3), "abc");
	assert_string_equal(wire_get_str(&r, 3), "");
	assert_true(wire_done(&r));
	/* Longer than the maximum, on both sides. */
	r = wire_open_plain(b, n);
	assert_string_equal(wire_get_str(&r, 2), "");
	assert_true(r.bad);
	w = wire_plain(b, sizeof b);
	wire_put_str(&w, "abcd", 3);
	assert_int_equal(wire_end_plain(&w), 0);
	/* The NUL behind it is missing, or another byte, or one is inside. */
	const uint8_t no_end[] = {0, 0, 0, 2, 'a', 'b'}, other_end[] = {0, 0, 0, 2, 'a', 'b', 'c'},
		      inner[] = {0, 0, 0, 2, 'a', 0, 0}, huge[] = {0xff, 0xff, 0xff, 0xff, 'a', 0};
	const struct wire_bytes bad[] = {{no_end, sizeof no_end},
					 {other_end, sizeof other_end},
					 {inner, sizeof inner},
					 {huge, sizeof huge},
					 {huge, 3},
					 {huge, 0}};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		r = wire_open_plain(bad[i].p, bad[i].n);
		assert_string_equal(wire_get_str(&r, SIZE_MAX), "");
		assert_true(r.bad);
		r = wire_open_plain(bad[i].p, bad[i].n);
		assert_string_equal(wire_get_id(&r), "");
		assert_true(r.bad);
	}
	w = wire_plain(b, sizeof b);
	wire_put_id(&w, "a/b");
	assert_int_equal(wire_end_plain(&w), 0);
	w = wire_plain(b, sizeof b);
	wire_put_id(&w, NULL);
	assert_int_equal(wire_end_plain(&w), 0);
}

static void t_lists(void **state)
{
	(void)state;
	uint8_t b[20];
	struct wire_list l = {.p = b, .cap = sizeof b};
	for (uint8_t i = 1; i <= 2; i++) {
		uint8_t *p = wire_list_room(&l, 5);
		assert_non_null(p);
		memset(p, i, i);
		wire_list_add(&l, i);
	}
	assert_null(wire_list_room(&l, 8));
	assert_true(l.full);
	struct wire_bytes rest = wire_list_done(&l), part;
	assert_int_equal(rest.n, 11);
	bool bad = false;
	assert_true(wire_list_next(&rest, &part, &bad));
	assert_true(part.n == 1 && part.p[0] == 1);
	assert_true(wire_list_next(&rest, &part, &bad));
	assert_true(part.n == 2 && part.p[1] == 2);
	assert_false(wire_list_next(&rest, &part, &bad));
	assert_false(bad);
	for (uint32_t cut = 1; cut < 5; cut++) {
		rest = (struct wire_bytes){b, cut};
		assert_false(wire_list_next(&rest, &part, &bad));
		assert_true(bad);
	}
	/* More strings than allowed. */
	const char *v[2] = {"a", "b"};
	struct wire_w w = wire_plain(b, sizeof b);
	wire_put_strs(&w, v, 2, 2, 1);
	size_t n = wire_end_plain(&w);
	assert_int_equal(n, 4 + 6 + 6);
	struct wire_r r = wire_open_plain(b, n);
	assert_int_equal(wire_get_strs(&r, v, 1, 1), 0);
	assert_true(r.bad);
	r = wire_open_plain(b, n);
	assert_int_equal(wire_get_strs(&r, v, 2, 1), 2);
	assert_string_equal(v[1], "b");
}

static void t_admission(void **state)
{
	(void)state;
	static const struct wire_msg table[] = {
	    {.number = 1, .name = "HELLO", .roles = 1, .states = 1, .next = 1, .once = true},
	    {.number = 2, .name = "WELCOME"},
	    {.number = 3, .name = "DO", .nfds = 1, .roles = 3, .states = 2, .next = 1},
	    {.number = 0},
	};
	uint8_t b[WIRE_HEADER];
	struct wire_conn c = {.role = 0, .state = 0};
	const struct wire_msg *row = NULL;
	uint64_t op = 0;
#define FRAME(number, version, fds)                                                  \
	do {                                                                         \
		struct wire_w w_ = wire_begin(b, sizeof b, number, version, fds, 9); \
		assert_int_equal(wire_end(&w_), WIRE_HEADER);                        \
	} while (0)
	FRAME(3, 1, 1);
	assert_string_equal(wire_admit(table, 1, &c, b, sizeof b, 1, &row, &op), "message not permitted in this state");
	FRAME(1, 1, 0);
	assert_string_equal(wire_admit(table, 2, &c, b, sizeof b, 0, &row, &op), "other protocol version");
	assert_string_equal(wire_admit(table, 1, &c, b, sizeof b - 1, 0, &row, &op), "shorter than a header");
	assert_string_equal(wire_admit(table, 1, &c, b, sizeof b, 1, &row, &op), "wrong number of descriptors");
	assert_null(wire_admit(table, 1, &c, b, sizeof b, 0, &row, &op));
	assert_int_equal(op, 9);
	wire_accept(&c, row);
	assert_int_equal(c.state, 1);
	FRAME(3, 1, 1);
	assert_string_equal(wire_admit(table, 1, &c, b, sizeof b, 0, &row, &op), "wrong number of descriptors");
	assert_null(wire_admit(table, 1, &c, b, sizeof b, 1, &row, &op));
	FRAME(2, 1, 0);
	assert_string_equal(wire_admit(table, 1, &c, b, sizeof b, 0, &row, &op), "message of the wrong direction");
	FRAME(0, 1, 0);
	assert_string_equal(wire_admit(table, 1, &c, b, sizeof b, 0, &row, &op), "unknown message");
	FRAME(9, 1, 0);
	assert_string_equal(wire_admit(table, 1, &c, b, sizeof b, 0, &row, &op), "unknown message");
	c.state = 0;
	FRAME(1, 1, 0);
	assert_string_equal(wire_admit(table, 1, &c, b, sizeof b, 0, &row, &op), "message permitted only once");
	c = (struct wire_conn){.role = 2};
	assert_string_equal(wire_admit(table, 1, &c, b, sizeof b, 0, &row, &op), "message not permitted for this role");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(t_numbers), cmocka_unit_test(t_strings),
					   cmocka_unit_test(t_lists), cmocka_unit_test(t_admission)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
