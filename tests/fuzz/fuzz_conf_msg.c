/*
 * libFuzzer target: any bytes as the sealed configuration, and each of its frames for the decoders. What is
 * accepted is whole: every name leads somewhere, nobody is root.
 */
#include "lib/chan.h"
#include "lib/conf.h"
#include "lib/own.h"
#include "tests/fuzz/fuzz_codecs.h"
#include <stdlib.h>
#include <unistd.h>

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void check(const struct conf *c)
{
	for (uint32_t i = 0; i < c->nroles; i++)
		must(c->roles[i].uid != 0 && conf_role(c, c->roles[i].name) == &c->roles[i]);
	for (uint32_t i = 0; i < c->nsecrets; i++)
		must(conf_role(c, c->secrets[i].role) != NULL);
	for (uint32_t i = 0; i < c->ntenants; i++) {
		const struct conf_tenant *t = &c->tenants[i];
		must(conf_tenant(c, t->t.name) == t && t->nchecks <= CONF_CHECKS);
		must(conf_agent(c, t->t.default_agent) != NULL && conf_profile(c, t->t.default_profile) != NULL);
		for (uint32_t k = 0; k < t->nchecks; k++)
			must(t->checks[k].argv_n > 0);
	}
	for (uint32_t i = 0; i < c->nprofiles; i++) {
		uint8_t print[32];
		must(conf_provider(c, c->profiles[i].provider) != NULL && conf_fingerprint(c, &c->profiles[i], print));
	}
	for (uint32_t i = 0; i < c->nagents; i++)
		must(c->agents[i].argv_n > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct conf c;
	own_fd int fd = bundle_new("fuzz");
	must(fd >= 0 && (size == 0 || write(fd, data, size) == (ssize_t)size));
	/* What could still be changed is never taken. */
	must(conf_load(&c, fd) != NULL && bundle_seal(fd));
	if (conf_load(&c, fd) == NULL)
		check(&c);
	conf_free(&c);
	for (size_t left = size; left > 4;) {
		size_t n = (size_t)data[2] << 8 | data[3];
		n = n < left - 4 ? n : left - 4;
		fuzz_codecs(cf_codecs, data + 4, n);
		data += 4 + n;
		left -= 4 + n;
	}
	return 0;
}
