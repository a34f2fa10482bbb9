/* Doctor: providers, as far as their files say: addresses, authorities' certificates. Nothing is connected to. */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "lib/own.h"
#include "lib/place.h"

static bool loopback(const char *host)
{
	struct in_addr four;

	return strcmp(host, "[::1]") == 0 ||
	       (inet_pton(AF_INET, host, &four) == 1 && (ntohl(four.s_addr) >> 24) == 127);
}

/* The rules are the gateway's, which alone decides: gateway/upstream.c. NULL: nothing is wrong with it. */
static const char *address_fault(const struct cf_provider *p)
{
	CURLU *u = curl_url();
	char *scheme = NULL, *host = NULL, *path = NULL, *user = NULL;
	const char *why = NULL;

	if (u == NULL || curl_url_set(u, CURLUPART_URL, p->base_url, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_PATH, &path, 0) != CURLUE_OK)
		why = "is no URL with a host";
	else if (curl_url_get(u, CURLUPART_USER, &user, 0) == CURLUE_OK || strchr(p->base_url, '@') != NULL)
		why = "holds a user name";
	else if (strpbrk(p->base_url, "?#") != NULL)
		why = "holds a query or a fragment";
	else if (strstr(path, "//") != NULL || strstr(path, "/../") != NULL || strpbrk(path, "%\\ ") != NULL)
		why = "has a path that is not plain";
	else if (strcmp(scheme, "https") != 0 &&
		 !(strcmp(scheme, "http") == 0 && p->allow_plain_loopback && loopback(host)))
		why = "is not https: what agents send, and the key, would be readable on the way";
	curl_free(scheme);
	curl_free(host);
	curl_free(path);
	curl_free(user);
	curl_url_cleanup(u);
	return why;
}

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
	const char *why = address_fault(p);
	char where[900];

	if (why != NULL) {
		found(d, DOCTOR_ERROR, "provider %s: base_url %s", p->name, why);
		remedy(d,
		       "correct base_url in %s: https://host/v1, plain http to a loopback address with "
		       "allow_plain_loopback alone",
		       doctor_where(where, "provider", p->name, "base_url"));
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
