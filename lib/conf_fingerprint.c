/* The route that a capability is bound to. Apart from conf.c, since root's daemon links no OpenSSL. */
#include "lib/buf.h"
#include "lib/conf.h"
#include "lib/digest.h"
#include <string.h>

bool conf_fingerprint(const struct conf *c, const struct cf_profile *p, uint8_t out[32])
{
	const struct cf_provider *provider = conf_provider(c, p->provider);
	if (provider == NULL)
		return false;
	/* What a provider speaks is a part since there are others; so capabilities of before stay what they are. */
	bool openai = strcmp(provider->protocol, "openai") == 0;
	const char *const parts[] = {"pinfold route 1",
				     p->name,
				     provider->name,
				     p->model,
				     provider->base_url,
				     provider->secret,
				     openai ? "" : provider->protocol};
	own_buf struct buf b;
	buf_init(&b, 8192);
	for (size_t i = 0; i < sizeof parts / sizeof parts[0] - openai; i++) {
		buf_adds(&b, parts[i]);
		buf_addc(&b, 0); /* no two lists of parts run together to the same bytes */
	}
	return !buf_failed(&b) && sha256(b.p, b.n, out);
}

bool conf_capability(const struct cf_agent *a, const uint8_t route[32], uint8_t out[32])
{
	own_buf struct buf b;

	buf_init(&b, 8192);
	memcpy(out, route, 32);
	if (strcmp(a->policy, "strict") == 0)
		return true;
	buf_adds(&b, "pinfold capability 1");
	buf_addc(&b, 0);
	buf_add(&b, route, 32);
	buf_addf(&b, "%s %u %u %u", a->policy, (unsigned)a->model_format, (unsigned)a->reasoning_effort_max,
		 (unsigned)a->max_output_tokens);
	return !buf_failed(&b) && sha256(b.p, b.n, out);
}
