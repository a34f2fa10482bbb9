/*
 * Reads any bytes as an upload. What is accepted must have its commands whole and its kind right, and a
 * second reading (as the unpacking child does) must find the same.
 */
#include "runner/plan.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static uint32_t words(const char *const *v, uint32_t max)
{
	uint32_t n = 0;
	while (v[n])
		must(++n <= max);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct plan p;
	struct upload u;
	struct item it;
	int more = -1;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	const char *why = plan_read(&p, fd);
	if (!why) {
		must(p.kind == PLAN_WORK || p.kind == PLAN_CHECK || p.kind == PLAN_UNPACK);
		must(p.kind != PLAN_UNPACK || p.checks_n + p.keys_n == 0);
		must((p.kind == PLAN_WORK) == (words(p.agent.argv, PLAN_ARGS) > 0));
		words(p.agent.env, PLAN_ENV);
		must(words(p.bridge, PLAN_BRIDGE) == 0 || p.kind == PLAN_WORK);
		for (uint32_t i = 0; i < p.checks_n; i++)
			must(p.checks[i].name && words(p.checks[i].argv, PLAN_ARGS) > 0);
	}
	if (upload_open(&u, fd)) {
		while ((more = upload_next(&u, &it)) > 0)
			;
		upload_close(&u);
	}
	/* Only the commands' total size is judged by plan_read alone. */
	must(why || more == 0);
	plan_free(&p);
	close(fd);
	return 0;
}
