/* libFuzzer target: a work result of any bytes against a fixed upload. */
#include "lib/own.h"
#include "steward/judge.h"
#include "steward/patch.h"
#include "tests/steward/bundles.h"
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int upload = -1;
	static const char *const allow[] = {"d/**", "a.py"}, *const extensions[] = {".py", ".txt"};
	static const struct given files[] = {{"a.py", "one\ntwo\n"}, {"b.py", "x"}, {"d/c.txt", "1\n2\n3\n4\n5\n6\n7"}};
	struct judge_rules rules = {.allow = allow, .nallow = 2, .extensions = extensions, .nextensions = 2};
	if (upload < 0) {
		upload = bundle_new("upload");
		bundles_sources(upload, files, 3);
		if (!patch_init())
			abort();
	}
	own_fd int result = bundle_new("result"), out = bundle_new("out");
	if (write(result, data, size) != (ssize_t)size)
		abort();
	(void)judge_decide(upload, result, &rules, out);
	return 0;
}
