/* Composes a run's addresses from checked parts only; without memory, since it is done when the run is made already. */
#include "handlers/links.h"
#include <errno.h>
#include <stdio.h>

const char *link_to(char out[LINK_BYTES], const char *mount, const char *run, const char *tail)
{
	int n = snprintf(out, LINK_BYTES, "%s/v1/runs/%s%s", mount, run, tail);
	return n > 0 && n < LINK_BYTES ? out : NULL;
}

void links_write(struct jw *w, const char *mount, const char *run)
{
	static const char *const rows[][2] = {{"status", ""},
					      {"events", "/events"},
					      {"approvals", "/approvals"},
					      {"cancel", "/cancel"},
					      {"artifacts", "/artifacts"}};
	char link[LINK_BYTES];
	jw_open(w, '{');
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (link_to(link, mount, run, rows[i][1]) == NULL)
			buf_fail(w->b, EOVERFLOW);
		else
			jw_kstr(w, rows[i][0], link);
	}
	jw_close(w, '}');
}
