/*
 * Feeds the reader of uploads with whole, cut and spoilt ones, in a fixed order: the fuzz target without a fuzzer.
 */
#include "runner/plan.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t all[100000], frame[100000];
static size_t all_n;

static void add(size_t n)
{
	if (!n || all_n + n + 4 > sizeof all)
		abort();
	uint8_t head[4] = {(uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
	memcpy(all + all_n, head, 4);
	memcpy(all + all_n + 4, frame, n);
	all_n += n + 4;
}

static void begin(void)
{
	struct bn_source source = {.path = "a/b.py", .content = {(const uint8_t *)"text", 4}};
	struct bn_source_end end = {.files = 1};
	all_n = 0;
	add(bn_put_source(frame, sizeof frame, 0, &source));
	add(bn_put_source_end(frame, sizeof frame, 0, &end));
}

static void work(void)
{
	struct bn_request request = {.json = {(const uint8_t *)"{}", 2}};
	struct bn_token token = {.file = ".t", .token = {(const uint8_t *)"x", 1}};
	struct bn_file file = {.path = "home/.t", .content = {(const uint8_t *)"y", 1}};
	struct bn_bridge bridge = {.argv_n = 1, .argv = {"b"}, .events = {(const uint8_t *)"z", 1}};
	struct bn_agent agent = {.argv_n = 2, .argv = {"sh", "-c"}, .env_n = 1, .env = {"A=b"}, .wall_seconds = 1};
	struct bn_go go = {.kind = 1, .max_files = 1};
	begin();
	add(bn_put_request(frame, sizeof frame, 0, &request));
	add(bn_put_token(frame, sizeof frame, 0, &token));
	add(bn_put_file(frame, sizeof frame, 0, &file));
	add(bn_put_bridge(frame, sizeof frame, 0, &bridge));
	add(bn_put_agent(frame, sizeof frame, 0, &agent));
	add(bn_put_go(frame, sizeof frame, 0, &go));
}

static void check(void)
{
	struct bn_changed changed = {.path = "a/b.py", .content = {(const uint8_t *)"new", 3}};
	struct bn_removed removed = {.path = "a/c.py"};
	struct bn_check one = {.name = "check-1", .argv_n = 1, .argv = {"true"}, .seconds = 1};
	struct bn_go go = {.kind = 2};
	begin();
	add(bn_put_changed(frame, sizeof frame, 0, &changed));
	add(bn_put_removed(frame, sizeof frame, 0, &removed));
	for (int i = 0; i < 20; i++) /* too many on purpose: cutting makes the right numbers */
		add(bn_put_check(frame, sizeof frame, 0, &one));
	add(bn_put_go(frame, sizeof frame, 0, &go));
}

static unsigned vary(void)
{
	unsigned n = 0;
	uint32_t r = 1;
	for (size_t cut = 0; cut <= all_n; cut++, n++)
		LLVMFuzzerTestOneInput(all, cut);
	for (size_t at = 0; at < all_n; at++) {
		for (int i = 0; i < 4; i++, n++) {
			r = r * 1664525 + 1013904223;
			uint8_t was = all[at];
			all[at] = i == 0 ? 0 : i == 1 ? 255 : (uint8_t)(r >> 24);
			LLVMFuzzerTestOneInput(all, all_n);
			all[at] = was;
		}
	}
	return n;
}

int main(void)
{
	unsigned n = 0;
	work();
	n += vary();
	check();
	n += vary();
	printf("1..1\nok 1 - %u uploads read or refused\n", n);
	return 0;
}
