/* See payload.h. */
#include "push/payload.h"
#include "lib/json.h"
#include "lib/names.h"

void payload_write(struct buf *b, const struct st_push_is *m)
{
	struct jw w;
	jw_init(&w, b);
	jw_open(&w, '{');
	jw_kstr(&w, "kind", m->kind < PUSH_KIND__COUNT ? push_kind_names[m->kind] : "");
	if (m->run[0] != '\0')
		jw_kstr(&w, "runId", m->run);
	if (m->request[0] != '\0')
		jw_kstr(&w, "requestId", m->request);
	jw_kstr(&w, "tag", m->topic);
	jw_kint(&w, "count", m->count);
	jw_close(&w, '}');
}
