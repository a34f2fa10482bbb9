/* Doctor: providers, as far as their files say: addresses, authorities' certificates. Nothing is connected to. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "lib/own.h"
#include "lib/place.h"
#include "lib/provider_url.h"

/* May the gateway's user read it, by its mode? */
static bool may_read(const struct doctor *d, const struct stat *st)
{
	const struct cf_role *r = conf_role(&d->conf, "gateway");

	if (r == NULL || (st->st_mode & 04) != 0)
		return true;
	return (st->st_uid == r->uid && (st->st_mode & 0400) != 0) ||
	       ((st->st_gid == r->gid || st->st_gid == d->conf.shared_gid) && (st->st_mode & 040) != 0);
}

static void authority(struct doctor *d, const struct cf_provider *p)
{
	static const char begin[] = "-----BEGIN CERTIFICATE-----";
	char where[900], text[16384 + sizeof begin];
	size_t kept = 0;
	struct stat st;
	bool pem = false;

	own_fd int fd = open(p->ca_file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		found(d, DOCTOR_ERROR, "provider %s: ca_file %s: %s", p->name, p->ca_file,
		      fd < 0 ? strerror(errno) : "is no file");
		remedy(d, "write the authority's certificates to %s, or correct ca_file in %s", p->ca_file,
		       doctor_where(where, "provider", p->name, "ca_file"));
		return;
	}
	/* It may begin with text; what it begins with may be cut between two pieces. */
	for (ssize_t n; !pem && (n = read(fd, text + kept, 16384)) > 0;) {
		size_t have = kept + (size_t)n;
		pem = memmem(text, have, begin, sizeof begin - 1) != NULL;
		kept = have < sizeof begin - 2 ? have : sizeof begin - 2;
		memmove(text, text + have - kept, kept);
	}
	if (!pem) {
		found(d, DOCTOR_ERROR, "provider %s: ca_file %s holds no certificate in PEM", p->name, p->ca_file);
		remedy(d, "openssl x509 -inform DER -in %s prints one as PEM; or correct ca_file in %s", p->ca_file,
		       doctor_where(where, "provider", p->name, "ca_file"));
	} else if (!may_read(d, &st)) {
		found(d, DOCTOR_ERROR, "provider %s: ca_file %s cannot be read by the gateway (mode %04o)", p->name,
		      p->ca_file, st.st_mode & 07777u);
		remedy(d, "chmod o+r %s", p->ca_file);
	}
}

static void provider(struct doctor *d, const struct cf_provider *p)
{
	const char *why = provider_url_fault(p->base_url, p->allow_plain_loopback);
	char where[900];

	if (why != NULL) {
		found(d, DOCTOR_ERROR, "provider %s: base_url %s", p->name, why);
		remedy(d,
		       "correct base_url in %s: https://host/v1, plain http to a loopback address with "
		       "allow_plain_loopback alone",
		       doctor_where(where, "provider", p->name, "base_url"));
	}
	const char *host = why == NULL ? strstr(p->base_url, "://") + 3 : "";
	if (why == NULL && host[strcspn(host, "/")] == '\0') {
		found(d, DOCTOR_WARN, "provider %s: base_url %s has no path, and that of most ends in /v1", p->name,
		      p->base_url);
		remedy(d, "correct base_url in %s; pinfold provider test %s asks there",
		       doctor_where(where, "provider", p->name, "base_url"), p->name);
	}
	if (p->ca_file[0] != '\0')
		authority(d, p);
	if (p->scripted) {
		found(d, DOCTOR_WARN, "provider %s is the scripted model: canned answers, no AI", p->name);
		remedy(d, "name a real provider, without \"scripted\", in %s when you are done trying",
		       doctor_where(where, "provider", p->name, "scripted"));
	}
}

static void providers(struct doctor *d)
{
	for (uint32_t i = 0; need_conf(d) && i < d->conf.nproviders; i++)
		provider(d, &d->conf.providers[i]);
	if (d->have_conf && d->conf.nproviders == 0) {
		found(d, DOCTOR_ERROR, "no provider is configured");
		remedy(d, "pinfold setup writes one to %s/providers.d", place_dir(PLACE_SYSCONF));
	}
}

const struct doctor_check doctor_provider[] = {
    {"config.providers", "addresses of providers are https, their authorities' files are there",
     "correct base_url in providers.d/*.conf; plain http is for a loopback address with allow_plain_loopback alone",
     providers},
    {0}};
