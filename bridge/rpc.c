/* See rpc.h. */
#include "bridge/rpc.h"

enum { FRAME = 4 << 20, METHOD_NOT_FOUND = -32601 };

static void head(struct rpc_line *l)
{
	buf_init(&l->text, FRAME);
	jw_init(&l->w, &l->text);
	jw_open(&l->w, '{');
	jw_kstr(&l->w, "jsonrpc", "2.0");
}

void rpc_open(struct rpc_line *l, int id, const char *method)
{
	head(l);
	if (id >= 0)
		jw_kint(&l->w, "id", id);
	jw_kstr(&l->w, "method", method);
	jw_key(&l->w, "params");
	jw_open(&l->w, '{');
}

static void reply(struct rpc_line *l, const struct json *id, const char *with)
{
	head(l);
	jw_key(&l->w, "id");
	jw_json(&l->w, id);
	jw_key(&l->w, with);
	jw_open(&l->w, '{');
}

void rpc_answer(struct rpc_line *l, const struct json *id)
{
	reply(l, id, "result");
}

bool rpc_send(struct bridge *b, struct rpc_line *l)
{
	jw_close(&l->w, '}');
	jw_close(&l->w, '}');
	bool ok = say_line(b, &l->text);
	buf_free(&l->text);
	if (!ok)
		say_end(b, false, "the agent does not listen");
	return ok;
}

static void refuse(struct bridge *b, const struct json *id)
{
	struct rpc_line l;

	reply(&l, id, "error");
	jw_kint(&l.w, "code", METHOD_NOT_FOUND);
	jw_kstr(&l.w, "message", "this client does not have it");
	/* Who asks on without reading the answers would keep this process from everything else. */
	if (rpc_send(b, &l) && ++b->strange == RPC_STRANGE)
		say_end(b, false, "it asks again and again for what there is not");
}

/* One that can be answered: of bounded length, and of a type that the protocol has. */
static bool is_id(const struct json *id)
{
	return (id->type == JSON_STRING || id->type == JSON_NUMBER) && id->len <= RPC_ID;
}

void rpc_take(struct bridge *b, const struct rpc *rpc, const struct json *root)
{
	static const struct json none = {.type = JSON_OBJECT};
	const struct json *id = json_get(root, "id"), *params = json_get(root, "params"),
			  *error = json_get(root, "error");
	const char *method = text_of(root, "method");
	int64_t number;

	if (params == NULL || params->type != JSON_OBJECT)
		params = &none;
	if (*method == '\0') {
		if (id == NULL || !json_int(id, 0, rpc->answers - 1, &number))
			return;
		b->strange = 0;
		error = error != NULL && error->type == JSON_OBJECT ? error : NULL;
		if (!rpc->answered(b, number, error == NULL ? json_get(root, "result") : NULL, error))
			say_end(b, false, "the agent does not speak the protocol");
	} else if (id == NULL) {
		rpc->told(b, method, params);
	} else if (is_id(id)) {
		if (rpc->asked(b, method, id, params))
			b->strange = 0;
		else
			refuse(b, id);
	}
}
