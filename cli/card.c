/* See card.h. Everything here is foreign text, shown by say_*(). */
#include "cli/card.h"

#include <stdlib.h>
#include <string.h>

#include "lib/num.h"

const struct json *cards_fetch(const struct cli *cli, const struct secret *token, const char *run, struct arena *a,
			       int *status)
{
	struct http_answer answer;
	char path[256];

	snprintf(path, sizeof path, "/v1/runs/%s/approvals", run);
	*status = http_ask(cli, token, NULL, path, NULL, &answer);
	if (*status != 0)
		return NULL;
	const struct json *v = json_parse(a, answer.body.p, answer.body.n, JSON_DEPTH, 100000, NULL);
	buf_free(&answer.body);
	if (v == NULL || v->type != JSON_OBJECT) {
		fputs("pinfold: the server's answer is not JSON\n", stderr);
		*status = EXIT_UNREACHABLE;
		return NULL;
	}
	return v;
}

const struct json *card_of(const struct json *list, const char *request)
{
	const struct json *c = list != NULL && list->type == JSON_ARRAY ? list->child : NULL;

	while (c != NULL && strcmp(member(c, "requestId"), request) != 0)
		c = c->next;
	return c;
}

bool card_whole(const struct json *card)
{
	const struct json *s = json_get(card, "textShortened");
	return s != NULL && s->type == JSON_BOOL && !s->truth;
}

/* Returns how many lines it takes. */
static size_t row(FILE *to, const char *name, const char *value)
{
	char margin[32];

	if (value[0] == '\0')
		return 0;
	snprintf(margin, sizeof margin, "  %-13s ", name);
	return say_margin(to, margin, "              : ", value, strlen(value));
}

void card_say(FILE *to, const char *run, const struct json *card)
{
	char asked[32], until[32];
	size_t rows = 2, screen = say_rows(to);
	const struct json *preview = json_get(card, "preview");

	say_time(asked, json_get(card, "requestedAt"), false);
	say_time(until, json_get(card, "expiresAt"), true);
	fprintf(to, "\nrun %s asks, question ", run);
	say_foreign(to, member(card, "requestId"), strlen(member(card, "requestId")));
	fputs(":\n", to);
	rows += row(to, "effect", member(card, "effect"));
	rows += row(to, "reason", member(card, "reason"));
	rows += row(to, "policy", member(card, "policyReason"));
	rows += row(to, "action", member(card, "actionId"));
	rows += row(to, "asked", asked);
	rows += row(to, "waits until", until);
	rows += row(to, "digest", member(card, "digest"));
	if (preview != NULL && preview->type == JSON_STRING)
		rows += say_lines(to, "  | ", "  : ", preview->text, preview->len);
	/* With the prompt, and what else may come between. */
	if (screen > 0 && rows + 4 > screen)
		fprintf(to, "This card has %zu lines, more than the screen: read it from its beginning.\n", rows);
	if (!card_whole(card))
		fputs("Text shortened: this is not all of it, or not as the agent sent it. It can be allowed once "
		      "only.\n",
		      to);
}

void decision_say(FILE *to, const struct json *decision)
{
	char at[32];
	const char *word = member(decision, "decision"), *by = member(decision, "device");

	say_time(at, json_get(decision, "decidedAt"), false);
	say_foreign(to, word, strlen(word));
	fprintf(to, "%s%s%s", at[0] != '\0' ? " at " : "", at, by[0] != '\0' ? " by " : "");
	say_foreign(to, by, strlen(by));
}

/* What an error means for who wanted to answer. An error that is not here is told in the server's words. */
static const struct {
	const char *code;
	enum answered then;
	const char *says;
} errors[] = {
    {"device_required", ANSWERED_NOBODY,
     "this token may read what an agent asks, and not answer it: that takes a paired device. An operator pairs one "
     "with "
     "\"pinfold device pair\"; give its token by PINFOLD_DEVICE_TOKEN or --device-token-file, or answer in the page"},
    {"caller_refused", ANSWERED_NOBODY,
     "the service cannot tell this program apart from one in a sandbox, so it may not answer here: ask from outside of "
     "containers, or answer in the page"},
    {"unauthorized", ANSWERED_NOBODY, "the service does not know this token (any more)"},
    {"device_expired", ANSWERED_NOBODY, "this device has expired: pair it anew with \"pinfold device pair\""},
    {"forbidden", ANSWERED_NOBODY, "this token may not answer"},
    {"already_decided", ANSWERED_GONE, "it was decided already"},
    {"digest_mismatch", ANSWERED_GONE, "what is asked there now is not what was shown; nothing is decided. Look again"},
    {"approval_expired", ANSWERED_GONE, "nobody answered in time, and the agent was told so; nothing is decided"},
    {"approval_not_found", ANSWERED_GONE, "no such question waits in this run"},
    {"run_is_terminal", ANSWERED_GONE, "the run has ended; nothing is decided"},
    {"run_not_found", ANSWERED_GONE, "there is no such run"},
    {"decision_not_offered", ANSWERED_AGAIN,
     "the card does not show all that is asked, so it can be allowed once only; nothing is decided"},
    {"confirm_invalid", ANSWERED_AGAIN,
     "the second answer came too late (it has a minute), or the question is another one now; nothing is decided"},
};

static enum answered refused(const struct cli *cli, const struct secret *token, const char *run, const char *request,
			     const struct json *v, long status)
{
	const char *code = member(v, "error");

	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		if (strcmp(code, errors[i].code) != 0)
			continue;
		fprintf(stderr, "pinfold: %s", errors[i].says);
		if (strcmp(code, "already_decided") == 0) {
			own_arena struct arena a;
			struct cli hushed = *cli;
			int ignored;
			arena_init(&a, 16 << 20);
			hushed.quiet = true;
			/* The list also has who decided it. */
			const struct json *all = cards_fetch(&hushed, token, run, &a, &ignored);
			const struct json *was = all != NULL ? card_of(json_get(all, "decisions"), request) : NULL;
			fputs(": ", stderr);
			decision_say(stderr, was != NULL ? was : v);
		}
		fputs(".\n", stderr);
		return errors[i].then;
	}
	fprintf(stderr, "pinfold: %ld ", status);
	say_foreign(stderr, code, strlen(code));
	fputs(": ", stderr);
	say_foreign(stderr, member(v, "message"), strlen(member(v, "message")));
	fputc('\n', stderr);
	return ANSWERED_AGAIN;
}

enum answered card_answer(const struct cli *cli, const struct secret *token, const char *run, const char *request,
			  const char *digest, const char *decision, char confirm[CONFIRM_MAX], int *status)
{
	struct http_answer answer;
	char path[512];
	own_arena struct arena a;
	own_buf struct buf body;
	struct jw w;

	arena_init(&a, 1 << 20);
	buf_init(&body, 4096);
	jw_init(&w, &body);
	jw_open(&w, '{');
	jw_kstr(&w, "decision", decision);
	jw_kstr(&w, "digest", digest);
	if (confirm[0] != '\0')
		jw_kstr(&w, "confirm", confirm);
	jw_close(&w, '}');
	confirm[0] = '\0';
	snprintf(path, sizeof path, "/v1/runs/%s/approvals/%s", run, request);
	const char *text = buf_cstr(&body);
	*status = text == NULL ? EXIT_FAILED : http_raw(cli, token, NULL, path, text, &answer);
	if (*status != 0)
		return ANSWERED_AGAIN;
	const struct json *v = json_parse(&a, answer.body.p, answer.body.n, JSON_DEPTH, 1000, NULL);
	if (cli->json && v != NULL && answer.status != 202)
		say_json((const char *)answer.body.p, answer.body.n);
	buf_free(&answer.body);
	*status = answer.status < 400 && v != NULL ? 0 : answer.status < 500 ? EXIT_FAILED : EXIT_UNREACHABLE;
	if (v == NULL || v->type != JSON_OBJECT) {
		fprintf(stderr, "pinfold: the server answered %ld without a reason\n", answer.status);
		return ANSWERED_AGAIN;
	}
	if (answer.status == 202) {
		snprintf(confirm, CONFIRM_MAX, "%s", member(v, "confirm"));
		if (confirm[0] != '\0')
			return ANSWERED_CONFIRM;
		*status = EXIT_UNREACHABLE;
		return ANSWERED_AGAIN;
	}
	if (answer.status != 200)
		return refused(cli, token, run, request, v, answer.status);
	if (!cli->json) {
		fputs("question ", stderr);
		say_foreign(stderr, request, strlen(request));
		fputs(": ", stderr);
		decision_say(stderr, v);
		fputc('\n', stderr);
	}
	return ANSWERED_DONE;
}
