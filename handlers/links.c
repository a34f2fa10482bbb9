/* Composes a run's addresses from checked parts only. */
#include "handlers/links.h"
#include <errno.h>

char *link_to(struct arena *a, const char *mount, const char *run, const char *tail)
{
	return arena_printf(a, "%s/v1/runs/%s%s", mount, run, tail);
}

void links_write(struct jw *w, const char *mount, const char *run)
{
	static const char *const rows[][2] = {{"status", ""},
					      {"events", "/events"},
					      {"approvals", "/approvals"},
					      {"cancel", "/cancel"},
					      {"artifacts", "/artifacts"}};
	struct arena a;
	arena_init(&a, LINKS_BYTES);
	jw_open(w, '{');
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char *s = link_to(&a, mount, run, rows[i][1]);
		if (s == NULL)
			buf_fail(w->b, errno);
		jw_kstr(w, rows[i][0], s != NULL ? s : "");
	}
	jw_close(w, '}');
	arena_free(&a);
}
