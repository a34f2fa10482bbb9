/*
 * libFuzzer target: any bytes as what a check printed. A check whose tests are counted passes only when some ran and
 * none failed, and a number of tests stands only where its words do; other checks pass by their exit code alone.
 */
#include "steward/checks.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

/* Is the text anywhere in what was printed? */
static bool holds(const uint8_t *data, size_t size, const char *text)
{
	return memmem(data, size, text, strlen(text)) != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const unittest[] = {"python3", "-m", "unittest", "discover"},
				 *const pytest[] = {"python3", "-m", "pytest", "-q"},
				 *const cargo[] = {"cargo", "test"}, *const other[] = {"make", "check"};
	if (size < 1)
		return 0;
	struct check_end end = {
	    .started = true, .status = (int8_t)data[0], .output = (const char *)data + 1, .n = size - 1};
	struct check_counts c;
	data++;
	size--;
	enum outcome o = checks_judge(unittest, 4, &end, &c);
	must(o != OUTCOME_PASSED || (end.status == 0 && c.known && c.run > 0 && c.failed == 0));
	must(!c.known || holds(data, size, "Ran "));
	must(c.failed <= c.run);
	o = checks_judge(pytest, 4, &end, &c);
	must(o != OUTCOME_PASSED || (end.status == 0 && c.known && c.run > 0 && c.failed == 0));
	must(c.failed <= c.run);
	o = checks_judge(cargo, 2, &end, &c);
	must(o != OUTCOME_PASSED || (end.status == 0 && c.known && c.run > 0 && c.failed == 0));
	must(!c.known || holds(data, size, "test result: "));
	must(c.failed <= c.run);
	o = checks_judge(other, 2, &end, &c);
	must(!c.known && (o == OUTCOME_PASSED) == (end.status == 0));
	must((o == OUTCOME_KILLED) == (end.status < 0));
	return 0;
}
