/*
 * Fields of model requests that are not in the table and were left out (policy agent): each is told once a run, as an
 * event, so that whoever runs an agent sees that it has outrun spec/fields.tab. Their names are the agent's words: what
 * could be anything but a name is replaced.
 */
#include "gateway/gateway.h"
#include "lib/die.h"
#include <string.h>

enum { EVENT_MAX = 4000, UTF8_MOST = 4 };

/* Was it told? A few bits stand for all names: at worst one is taken for another, and is not told. */
static bool told(struct box *box, const char *place)
{
	unsigned h = 5381;

	for (; *place; place++)
		h = h * 33 + (unsigned char)*place;
	unsigned bit = 1U << (h >> 7) % 32;
	return atomic_fetch_or(&box->drift_told, bit) & bit;
}

/* The agent may have put a key of its own where a name belongs: it is masked, and what was cut, in which a part of one
 * would not be found, is no name. */
static void put_place(const struct gate_call *call, struct jw *w, const char *place)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	char text[POLICY_DRIFT_NAME];
	size_t n = strlen(place), last = n;

	memcpy(text, place, n);
	if (n + UTF8_MOST >= sizeof text) {
		while (last > 0 && text[last - 1] != '.')
			last--;
		text[last] = '?';
		n = last + 1;
	}
	n = keys_hide(call, text, n);
	for (size_t i = 0; i < n; i++)
		text[i] = text[i] && strchr(letters, text[i]) ? text[i] : '?';
	jw_strn(w, text, n);
}

void gate_drift(struct gate_call *call, const struct model_request *rq)
{
	struct buf data own_buf = {0};
	uint8_t frame[EVENT_MAX + 200];
	struct wire_list list = {.p = frame, .cap = sizeof frame};
	struct st_agent_event ev = {.type = "agent.fields_left_out"};
	struct st_events_taken taken;
	struct jw w;
	unsigned n = 0;

	if (rq->ndrift == 0)
		return;
	buf_init(&data, EVENT_MAX);
	jw_init(&w, &data);
	jw_open(&w, '{');
	jw_kstr(&w, "format", call->format->route);
	jw_key(&w, "fields");
	jw_open(&w, '[');
	for (unsigned i = 0; i < rq->ndrift; i++)
		if (!told(call->box, rq->drift[i])) {
			put_place(call, &w, rq->drift[i]);
			n++;
		}
	jw_close(&w, ']');
	jw_kint(&w, "more", rq->more_drift);
	jw_kint(&w, "agent_sequence", 0);
	jw_close(&w, '}');
	if (n == 0 || buf_failed(&data) || !call->store)
		return;
	ev.data = (struct wire_bytes){data.p, (uint32_t)data.n};
	size_t most = data.n + 100;
	uint8_t *room = wire_list_room(&list, most);
	size_t size = room ? st_put_agent_event(room, most, &ev) : 0;
	if (size == 0)
		return;
	wire_list_add(&list, size);
	struct st_events_append m = {
	    .tenant = call->box->tenant, .run = call->box->run, .events = wire_list_done(&list)};
	enum err e = st_call_events_append(call->store, &m, NULL, &taken, NULL);
	if (e != ERR_OK)
		log_warn("run %s: that fields were left out was not recorded: %s", call->box->run, err_code(e));
}
