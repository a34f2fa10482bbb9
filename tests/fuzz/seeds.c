/*
 * Writes seed inputs that follow the tables, so that they are never older than the protocol they speak:
 * seeds FOLDER makes FOLDER/NAME/... for the targets of messages, records, configuration and bundles. Seeds made by
 * hand are in tests/fuzz/corpus.
 */
#include "gen/bundle_msg.h"
#include "gen/conf_msg.h"
#include "gen/sandbox_msg.h"
#include "gen/store_msg.h"
#include "lib/buf.h"
#include "tests/fuzz/fuzz_dispatch.h"
#include "tests/unit/codec_table.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FRAME = 70000 };

static const char *top;

static void save(const char *target, const char *name, const uint8_t *p, size_t n)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", top, target);
	(void)mkdir(path, 0700);
	snprintf(path, sizeof path, "%s/%s/%s", top, target, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, p, n) != (ssize_t)n || close(fd) != 0) {
		perror(path);
		exit(1);
	}
}

static void codecs(const char *target, const struct codec_row *rows)
{
	static uint8_t frame[FRAME];
	for (; rows->name != NULL; rows++)
		save(target, rows->name, frame, rows->fill(frame, sizeof frame, true));
}

static void in_script(struct buf *b, const struct fuzz_protocol *p, const uint8_t *frame, size_t n)
{
	(void)p;
	buf_addc(b, (char)frame[3]); /* as many descriptors as the header says */
	buf_addc(b, (char)(n >> 8));
	buf_addc(b, (char)n);
	buf_add(b, frame, n);
}

/* For each role: HELLO, then every message that this role may send. */
static void scripts(const char *target, const struct fuzz_protocol *p, const struct codec_row *rows)
{
	static uint8_t frame[FRAME];
	for (unsigned role = 0; role < p->roles; role++) {
		struct buf b;
		char name[32];
		buf_init(&b, 1 << 20);
		buf_addc(&b, (char)FUZZ_SCRIPT);
		buf_addc(&b, (char)role);
		for (const struct codec_row *row = rows; row->name != NULL; row++) {
			size_t n = row->framed ? row->fill(frame, sizeof frame, true) : 0;
			for (const struct wire_msg *m = p->msgs; n > 0 && m->number != 0; m++)
				if (m->number == (frame[0] << 8 | frame[1]) && (m->roles >> role & 1) != 0)
					in_script(&b, p, frame, n);
		}
		snprintf(name, sizeof name, "as-role-%u", role);
		save(target, name, b.p, b.n);
		buf_free(&b);
	}
}

static void in_bundle(struct buf *b, const uint8_t *frame, size_t n)
{
	const char head[] = {(char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n};
	if (n == 0)
		abort();
	buf_add(b, head, sizeof head);
	buf_add(b, frame, n);
}

static void done(struct buf *b, const char *target, const char *name)
{
	save(target, name, b->p, b->n);
	buf_free(b);
}

#define PUT(b, what, ...) in_bundle(b, frame, what(frame, sizeof frame, 0, &(__VA_ARGS__)))

static void configuration(void)
{
	static uint8_t frame[FRAME];
	struct buf b;
	buf_init(&b, 1 << 20);
	PUT(&b, cf_put_global,
	    (struct cf_global){.run_dir = "/r", .state_dir = "/s", .log_dir = "/l", .libexec_dir = "/x"});
	PUT(&b, cf_put_role, (struct cf_role){.name = "gateway", .uid = 7, .gid = 7});
	PUT(&b, cf_put_shared_gid, (struct cf_shared_gid){.gid = 9});
	PUT(&b, cf_put_secret, (struct cf_secret){.name = "key", .role = "gateway"});
	PUT(&b, cf_put_provider, (struct cf_provider){.name = "p", .base_url = "https://h/v1", .secret = "key"});
	PUT(&b, cf_put_profile, (struct cf_profile){.name = "d", .provider = "p", .model = "m"});
	PUT(&b, cf_put_agent, (struct cf_agent){.name = "a", .argv_n = 1, .argv = {"x"}, .policy = "strict"});
	PUT(&b, cf_put_tenant, (struct cf_tenant){.name = "t", .default_agent = "a", .default_profile = "d"});
	PUT(&b, cf_put_tenant_check, (struct cf_tenant_check){.tenant = "t", .argv_n = 1, .argv = {"make"}});
	PUT(&b, cf_put_end, (struct cf_end){0});
	done(&b, "conf_msg", "whole");
}

static void uploads(void)
{
	static uint8_t frame[FRAME];
	static const struct wire_bytes text = {(const uint8_t *)"text\n", 5};
	for (int kind = 1; kind <= 2; kind++) {
		struct buf b;
		buf_init(&b, 1 << 20);
		PUT(&b, bn_put_source, (struct bn_source){.path = "a/b.py", .content = text});
		PUT(&b, bn_put_source_end, (struct bn_source_end){.files = 1});
		if (kind == 1) {
			PUT(&b, bn_put_request, (struct bn_request){.json = {(const uint8_t *)"{}", 2}});
			PUT(&b, bn_put_token, (struct bn_token){.file = ".t", .token = text});
			PUT(&b, bn_put_agent,
			    (struct bn_agent){.argv_n = 1, .argv = {"sh"}, .env_n = 1, .env = {"A=b"}});
		} else {
			PUT(&b, bn_put_changed, (struct bn_changed){.path = "a/b.py", .content = text});
			PUT(&b, bn_put_removed, (struct bn_removed){.path = "a/c.py"});
			PUT(&b, bn_put_check,
			    (struct bn_check){.name = "check-1", .argv_n = 1, .argv = {"true"}, .seconds = 1});
		}
		PUT(&b, bn_put_go, (struct bn_go){.kind = (uint8_t)kind, .max_files = 9, .max_bytes = 999});
		done(&b, "runner_bundle", kind == 1 ? "work" : "check");
	}
}

static void results(void)
{
	static uint8_t frame[FRAME];
	static const struct wire_bytes text = {(const uint8_t *)"one\n2\n", 6}, name = {(const uint8_t *)"a.py", 4},
				       claim = {(const uint8_t *)"{\"summary\":\"s\",\"status\":\"completed\"}", 36};
	struct buf b;
	buf_init(&b, 1 << 20);
	buf_addc(&b, 0); /* the rest is the result as it is */
	PUT(&b, bn_put_ran, (struct bn_ran){.started = true, .output = text});
	PUT(&b, bn_put_entry, (struct bn_entry){.path = name, .type = 1, .size = 6, .content = text});
	PUT(&b, bn_put_claim, (struct bn_claim){.response = claim});
	PUT(&b, bn_put_collected, (struct bn_collected){.entries = 1, .complete = true});
	done(&b, "judge", "result");
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fputs("usage: seeds FOLDER\n", stderr);
		return 2;
	}
	top = argv[1];
	(void)mkdir(top, 0700);
	codecs("store_msg", st_codecs);
	codecs("sandbox_msg", sbx_codecs);
	codecs("bundle_msg", bn_codecs);
	codecs("records", rec_codecs);
	scripts("store_msg", &st_fuzz, st_codecs);
	scripts("sandbox_msg", &sbx_fuzz, sbx_codecs);
	configuration();
	uploads();
	results();
	return 0;
}
