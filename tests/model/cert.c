/* A throw-away certificate authority and one server certificate for tests and the quickstart. */
#include "lib/die.h"
#include "lib/secret.h"
#include "tests/model/model.h"
#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	if (!e || !X509_add_ext(cert, e, -1))
		fatal("cannot add a certificate extension");
	X509_EXTENSION_free(e);
}

static X509 *make(const char *common, EVP_PKEY *key, X509 *issuer, EVP_PKEY *issuer_key, const char *san)
{
	X509 *c = X509_new();
	X509_NAME *name = X509_NAME_new();
	uint8_t serial[8];

	random_bytes(serial, sizeof serial);
	serial[0] &= 0x7f;
	if (!c || !name || !X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const uint8_t *)common, -1, -1, 0))
		fatal("no memory for a certificate");
	X509_set_version(c, 2);
	BIGNUM *bn = BN_bin2bn(serial, sizeof serial, NULL);
	BN_to_ASN1_INTEGER(bn, X509_get_serialNumber(c));
	BN_free(bn);
	X509_gmtime_adj(X509_getm_notBefore(c), -3600);
	X509_gmtime_adj(X509_getm_notAfter(c), 30 * 86400);
	X509_set_subject_name(c, name);
	X509_set_issuer_name(c, issuer ? X509_get_subject_name(issuer) : name);
	X509_NAME_free(name);
	X509_set_pubkey(c, key);
	extension(c, issuer ? issuer : c, NID_basic_constraints, issuer ? "critical,CA:FALSE" : "critical,CA:TRUE");
	extension(c, issuer ? issuer : c, NID_subject_key_identifier, "hash");
	if (san)
		extension(c, issuer, NID_subject_alt_name, san);
	if (!X509_sign(c, issuer_key, EVP_sha256()))
		fatal("cannot sign a certificate");
	return c;
}

static FILE *create(const char *dir, const char *name, mode_t mode)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "we");
	if (!f || fchmod(fileno(f), mode) != 0)
		fatal("cannot write %s: %m", path);
	return f;
}

void cert_make(const char *dir, const char *name)
{
	char path[512], san[300];

	snprintf(path, sizeof path, "%s/key.pem", dir);
	if (access(path, R_OK) == 0)
		return;
	if (mkdir(dir, 0755) != 0 && errno != EEXIST)
		fatal("cannot make %s: %m", dir);
	EVP_PKEY *ca_key = EVP_EC_gen("P-256"), *key = EVP_EC_gen("P-256");
	if (!ca_key || !key)
		fatal("cannot make a key");
	snprintf(san, sizeof san, name ? "DNS:%s" : "DNS:localhost,IP:127.0.0.1", name);
	X509 *ca = make("Pinfold scripted model: throw-away authority", ca_key, NULL, ca_key, NULL);
	X509 *cert = make(name ? name : "localhost", key, ca, ca_key, san);
	FILE *f = create(dir, "ca.pem", 0644);
	PEM_write_X509(f, ca);
	fclose(f);
	f = create(dir, "cert.pem", 0644);
	PEM_write_X509(f, cert);
	fclose(f);
	f = create(dir, "key.pem", 0600);
	PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL);
	fclose(f);
	X509_free(cert);
	X509_free(ca);
	EVP_PKEY_free(key);
	EVP_PKEY_free(ca_key);
}
