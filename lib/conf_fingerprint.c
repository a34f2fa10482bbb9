/* The route that a capability is bound to. Apart from conf.c, since root's daemon links no OpenSSL. */
#include "lib/buf.h"
#include "lib/conf.h"
#include "lib/digest.h"

bool conf_fingerprint(const struct conf *c, const struct cf_profile *p, uint8_t out[32])
{
	const struct cf_provider *provider = conf_provider(c, p->provider);
	if (provider == NULL)
		return false;
	const char *const parts[] = {"pinfold route 1",  p->name,         provider->name, p->model,
				     provider->base_url, provider->secret};
	own_buf struct buf b;
	buf_init(&b, 8192);
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		buf_adds(&b, parts[i]);
		buf_addc(&b, 0); /* no two lists of parts run together to the same bytes */
	}
	return !buf_failed(&b) && sha256(b.p, b.n, out);
}
