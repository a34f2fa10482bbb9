/* Doctor: is there push, and would it reach the real services. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/doctor.h"
#include "lib/place.h"

enum { KEY_LEN = 43 };

static void sink(struct doctor *d)
{
	char path[700];
	struct stat st;

	if (!need_conf(d))
		return;
	const struct cf_push *p = &d->conf.push;
	if (p->contact[0] == '\0') {
		found(d, DOCTOR_OK, "push is off: push_contact is not set");
		return;
	}
	snprintf(path, sizeof path, "%s/secrets/vapid", place_dir(PLACE_SYSCONF));
	/* Its modes, and whether it is a file, are other checks'. A line end is not counted by its reader. */
	if (stat(path, &st) != 0) {
		found(d, DOCTOR_ERROR, "there is no secret vapid, so nothing is pushed");
		remedy(d, "run pinfold setup, which makes one, and systemctl restart pinfold");
	} else if (st.st_size < KEY_LEN || st.st_size > KEY_LEN + 2)
		found(d, DOCTOR_ERROR, "the secret vapid has %lld bytes, not %d: nothing is pushed",
		      (long long)st.st_size, KEY_LEN);
	if (d->conf.global.push_hosts_n == 0) {
		found(d, DOCTOR_WARN, "push_hosts is empty: no device can subscribe");
		char where[900];
		remedy(d, "name the push services of your people's browsers in push_hosts, %s",
		       doctor_where(where, NULL, "", "push_hosts"));
	}
	if (p->unsafe_loopback_port != 0) {
		found(d, DOCTOR_WARN, "push_unsafe_loopback_port is set, for tests: every push goes to 127.0.0.1:%u",
		      p->unsafe_loopback_port);
		char where[900];
		remedy(d, "remove push_unsafe_loopback_port, %s, and systemctl restart pinfold",
		       doctor_where(where, NULL, "", "push_unsafe_loopback_port"));
	}
	uint64_t sent, bad;
	if (d->now.verdict == DOCTOR_OK)
		found(d, DOCTOR_OK, "secret set, %lld bytes; contact set; %u push services", (long long)st.st_size,
		      d->conf.global.push_hosts_n);
	if (d->now.verdict == DOCTOR_OK && doctor_metric(d, "pinfold_pushes_sent_total", &sent) &&
	    doctor_metric(d, "pinfold_pushes_failed_total", &bad))
		found(d, DOCTOR_OK, "since the store's start %" PRIu64 " were taken and %" PRIu64 " failed", sent, bad);
}

const struct doctor_check doctor_push[] = {
    {"push.sink", "push has a key, a contact and real services to send to",
     "rm /etc/pinfold/secrets/vapid; pinfold setup; systemctl restart pinfold; devices must then switch push on again",
     sink},
    {0}};
