/*
 * What is Gemini's alone: the model stands in the path, whether a stream is meant does as well, and its lists of models
 * have a shape of their own. The paths are spec/routes.tab's; what is asked is looked at as in any other format.
 */
#include "gateway/gateway.h"
#include "gen/routes.h"
#include <stdio.h>
#include <string.h>

bool gemini_as_events(const char *target)
{
	unsigned named = 0, events = 0;

	for (const char *s = strchr(target, '?'); s; s = strchr(s, '&')) {
		size_t n = strcspn(++s, "&");
		size_t name = n >= 1 && *s == '$' ? 1 : 0;
		if (n - name >= 4 && memcmp(s + name, "alt=", 4) == 0)
			named++;
		if (n == 7 && memcmp(s, "alt=sse", 7) == 0)
			events++;
	}
	return named == 1 && events == 1;
}

void gate_gemini(struct gate_call *call)
{
	gate_model_call(call);
}

void gate_gemini_count(struct gate_call *call)
{
	gate_model_call(call);
}

void gate_gemini_stream(struct gate_call *call)
{
	gate_model_call(call);
}

static void put_model(struct jw *w, const struct gate_call *call)
{
	static const char *const methods[] = {"generateContent", "streamGenerateContent", "countTokens"};
	char name[sizeof call->claims.model + 8];

	snprintf(name, sizeof name, "models/%s", call->claims.model);
	jw_open(w, '{');
	jw_kstr(w, "name", name);
	jw_kstr(w, "baseModelId", call->claims.model);
	jw_kstr(w, "displayName", call->claims.model);
	jw_kint(w, "outputTokenLimit", call->rules.max_output_tokens);
	jw_kstrs(w, "supportedGenerationMethods", methods, sizeof methods / sizeof *methods);
	jw_close(w, '}');
}

static bool lists(struct gate_call *call)
{
	enum err e = gate_alive(call);

	call->format = format_get(FORMAT_GEMINI); /* in whose words it is refused */
	if (e == ERR_OK && !(call->rules.formats & 1U << FORMAT_GEMINI))
		e = ERR_MODEL_FORMAT_NOT_SERVED;
	if (e != ERR_OK)
		gate_fail(call, e, NULL);
	return e == ERR_OK;
}

void gate_gemini_models(struct gate_call *call)
{
	struct jw w;

	if (!lists(call))
		return;
	call->status = 200;
	jw_init(&w, &call->reply);
	jw_open(&w, '{');
	jw_key(&w, "models");
	jw_open(&w, '[');
	put_model(&w, call);
	jw_close(&w, ']');
	jw_close(&w, '}');
}

void gate_gemini_model(struct gate_call *call)
{
	struct jw w;

	if (!lists(call))
		return;
	if (strcmp(call->found.arg[0], call->claims.model) != 0) {
		gate_fail(call, ERR_MODEL_NOT_ALLOWED, NULL);
		return;
	}
	call->status = 200;
	jw_init(&w, &call->reply);
	put_model(&w, call);
}
