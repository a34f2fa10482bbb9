/*
 * libFuzzer target: any text as pinfold.conf, that of all folders included. Every line that is named is there; what is
 * accepted every process can load, its numbers within the bounds of spec/conf.tab, its names leading somewhere.
 */
#include "cli/conf_read.h"
#include "lib/chan.h"
#include "lib/conf.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/place.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void look(const struct conf_block *b, unsigned lines)
{
	must(b->at.line <= lines);
	for (const struct conf_said *s = b->said; s != NULL; s = s->next) {
		must(s->line <= lines && (s->line > 0 || s->n == 0));
		must(strcmp(s->row->section, b->section) == 0);
		must(s->row->held == CONF_HELD_STRS || s->n == 1);
	}
	for (const struct conf_block *c = b->inner; c != NULL; c = c->next)
		look(c, lines);
}

static void accepted(int fd)
{
	static struct conf c;
	must(bundle_seal(fd));
	const char *why = conf_load(&c, fd);
	must(why == NULL);
	must(c.ntenants > 0 && c.nproviders > 0 && c.nprofiles > 0 && c.nagents > 0 && c.nroles == 5);
	must(c.global.max_boxes >= 1 && c.global.max_boxes <= 512 && c.global.gateway_port >= 1024);
	must(strlen(c.global.public_url) <= 200 && c.global.run_token_secret[0] != '\0');
	for (uint32_t i = 0; i < c.nagents; i++)
		must(c.agents[i].argv[0][0] == '/' && c.agents[i].pids >= 4 &&
		     c.agents[i].file_bytes <= c.agents[i].workspace_bytes);
	for (uint32_t i = 0; i < c.ntenants; i++)
		must(c.tenants[i].nchecks > 0 && c.tenants[i].t.max_steps >= 1 && c.tenants[i].t.max_steps <= 1000);
	conf_free(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char folder[] = "/dev/shm/pinfold-fuzz-conf.XXXXXX", file[64], part[80];
	static struct conf_files f;
	unsigned lines = 2;
	if (file[0] == '\0') {
		must(mkdtemp(folder) != NULL && setenv("PINFOLD_ROOT", folder, 1) == 0 && place_init());
		snprintf(file, sizeof file, "%s/pinfold.conf", folder);
		for (int i = 0; i < 3; i++) {
			snprintf(part, sizeof part, "%s/%s", folder,
				 (const char *[]){"providers.d", "profiles.d", "tenants.d"}[i]);
			must(mkdir(part, 0700) == 0);
		}
	}
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	int out = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	must(out >= 0 && write_all(out, data, size));
	close(out);
	conf_files_read(&f, file);
	for (const struct conf_block *b = f.blocks; b != NULL; b = b->next)
		look(b, lines);
	own_fd int fd = bundle_new("fuzz");
	bool good = conf_files_write(&f, fd);
	must(good == (f.notes.errors == 0));
	must(f.whole || !good);
	for (size_t i = 0; i < f.notes.n && i < CONF_NOTES; i++)
		must(f.notes.v[i].at.line <= lines && f.notes.v[i].text[0] != '\0');
	if (good)
		accepted(fd);
	conf_files_free(&f);
	return 0;
}
