/* libFuzzer target: any bytes on the secrets pipe. What is read has names of its own and values within bounds. */
#include "lib/chan.h"
#include "lib/own.h"
#include "lib/secret.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct secrets s;
	own_fd int fd = bundle_new("fuzz");
	must(fd >= 0 && (size == 0 || write(fd, data, size) == (ssize_t)size) && lseek(fd, 0, SEEK_SET) == 0);
	if (secrets_read(&s, fd)) {
		size_t sent = 0;
		for (size_t i = 0; i < s.n; i++) {
			const struct secret *v = &s.v[i].value;
			must(s.v[i].name[0] != '\0' && secrets_find(&s, s.v[i].name) == v && v->n <= SECRET_MAX);
			sent += 3 + strlen(s.v[i].name) + v->n;
		}
		must(sent <= size);
	}
	secrets_wipe(&s);
	must(s.n == 0);
	return 0;
}
