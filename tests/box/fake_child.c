/*
 * Stands in for every program that sandboxd starts, by its name. As pinfold-conf it writes a configuration;
 * as steward or gateway it pumps packets between sandboxd and the test, which so speaks for it; the others greet it and
 * take up what they are given, but for one number that push does not like.
 */
#include "lib/chan.h"
#include "lib/conf.h"
#include "lib/place.h"
#include "lib/reload.h"
#include "lib/wire.h"
#include "tests/box/uids.h"
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BOXES = 4, NOT_FOR_PUSH = 13 };

static uint8_t frame[CF_MAXFRAME];

/* What the test says in place of the files: a number of seconds, or something that is none. */
static uint32_t queue_seconds(void)
{
	char path[600], text[20] = "";
	snprintf(path, sizeof path, "%s/queue", place_dir(PLACE_SYSCONF));
	FILE *f = fopen(path, "r");
	bool there = f != NULL && fgets(text, sizeof text, f) != NULL;
	if (f != NULL)
		fclose(f);
	return there ? (uint32_t)atoi(text) : 1;
}

static int give_conf(void)
{
	static const char *const roles[] = {"stored", "gateway", "fcgi", "steward", "push"};
	if (!place_init())
		return 1;
	const uint32_t uids = test_uids(place_root()), box_uids = uids + 10000, queue = queue_seconds();
	if (queue == 0) {
		fprintf(stderr, "queue: 1: is no number\n");
		return 78;
	}
	const struct cf_global g = {.run_dir = place_dir(PLACE_RUN),
				    .state_dir = place_dir(PLACE_STATE),
				    .log_dir = place_dir(PLACE_LOG),
				    .libexec_dir = place_dir(PLACE_LIBEXEC),
				    .web_gid = uids + 8,
				    .gateway_port = 9797,
				    .box_uid_base = box_uids,
				    .max_boxes = BOXES,
				    .queue_seconds = queue,
				    .fcgi_threads = 1,
				    .fcgi_threads_max = 1,
				    .request_deadline_ms = 1000};
	bool ok = bundle_add(3, frame, cf_put_global(frame, sizeof frame, 0, &g));
	for (unsigned i = 0; i < 5; i++) {
		const struct cf_role r = {.name = roles[i], .uid = uids + i, .gid = uids + i};
		ok = ok && bundle_add(3, frame, cf_put_role(frame, sizeof frame, 0, &r));
	}
	const struct cf_shared_gid s = {.gid = uids + 9};
	const struct cf_secret secrets[] = {{"run-token", "steward", 32}, {"key", "gateway", 0}};
	ok = ok && bundle_add(3, frame, cf_put_shared_gid(frame, sizeof frame, 0, &s));
	for (int i = 0; i < 2; i++)
		ok = ok && bundle_add(3, frame, cf_put_secret(frame, sizeof frame, 0, &secrets[i]));
	const struct cf_end end = {0};
	return ok && bundle_add(3, frame, cf_put_end(frame, sizeof frame, 0, &end)) ? 0 : 1;
}

/* The test listens on an abstract name made of the run directory and ours. */
static int to_test(const char *run_dir, const char *name)
{
	struct sockaddr_un u = {.sun_family = AF_UNIX};
	int n = snprintf(u.sun_path + 1, sizeof u.sun_path - 1, "%s/%s", run_dir, name);
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (s < 0 || connect(s, (struct sockaddr *)&u, (socklen_t)(sizeof(sa_family_t) + 1 + (size_t)n)) != 0)
		return -1;
	return s;
}

static bool pump(int from, int to)
{
	static uint8_t packet[200000];
	int fds[WIRE_MAX_FDS], n = 0;
	ssize_t got = chan_recv(from, packet, sizeof packet, fds, &n);
	if (got <= 0)
		return false;
	bool ok = chan_send(to, packet, (size_t)got, fds, n) == 0;
	chan_close_fds(fds, n);
	return ok;
}

static const char *fits(void *arg, struct held *next, int conf)
{
	(void)conf;
	return strcmp(arg, "push") == 0 && next->conf.global.queue_seconds == NOT_FOR_PUSH ? "push will not" : NULL;
}

static void ignore(void *arg, uint16_t number, const uint8_t *f, size_t n)
{
	(void)arg, (void)number, (void)f, (void)n;
}

/* As the real ones do, without doing anything else. */
static int follow(const char *name)
{
	static struct reload r;
	const char *why;
	struct pollfd p = {.fd = CHILD_FD_CONTROL, .events = POLLIN};
	struct held *first = held_load(CHILD_FD_CONFIG, CHILD_FD_SECRETS, &why);
	if (first == NULL)
		return 1;
	held_init(&r.place, first);
	r.fits = fits;
	r.arg = (void *)(uintptr_t)name;
	reload_start(&r, CHILD_FD_CONTROL);
	while (poll(&p, 1, -1) > 0 && reload_hear(&r, ignore))
		;
	return 0;
}

int main(int argc, char **argv)
{
	static struct conf conf;
	const char *name = argc > 0 && strrchr(argv[0], '-') != NULL ? strrchr(argv[0], '-') + 1 : "";
	if (strcmp(name, "conf") == 0)
		return give_conf();
	const char *why = conf_load(&conf, CHILD_FD_CONFIG);
	if (why != NULL) {
		fprintf(stderr, "%s: %s\n", name, why);
		return 1;
	}
	if (strcmp(name, "steward") != 0 && strcmp(name, "gateway") != 0)
		return follow(name);
	int test = to_test(conf.global.run_dir, name);
	struct pollfd p[2] = {{.fd = CHILD_FD_CONTROL, .events = POLLIN}, {.fd = test, .events = POLLIN}};
	for (;;) {
		if (poll(p, test >= 0 ? 2 : 1, -1) < 0)
			return 1;
		if (p[0].revents != 0 && (test < 0 || !pump(CHILD_FD_CONTROL, test)))
			return 0;
		if (test >= 0 && p[1].revents != 0 && !pump(test, CHILD_FD_CONTROL))
			return 0;
	}
}
