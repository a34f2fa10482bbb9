/* What a server refused, or why none answered, and what to do then: one form for every command. */
#include <string.h>
#include <strings.h>

#include "cli/cli.h"
#include "cli/http.h"

bool http_named(const struct cli *cli)
{
	if (cli->server == NULL)
		fputs("pinfold: no server: set PINFOLD_URL or give --server URL\n", stderr);
	return cli->server != NULL;
}

/* What the answer's own sentence cannot know: it speaks of routes to whoever asks. */
static void say_more(const struct cli *cli, const struct http_answer *answer, const char *code)
{
	if (strcmp(code, "run_not_found") == 0)
		fputs(" \"pinfold ps --all\" does so here.", stderr);
	if (strcmp(code, "artifact_not_found") == 0)
		fputs(" \"pinfold artifacts RUN\" shows those there are.", stderr);
	if (answer->status == 401)
		fprintf(stderr, " The token is %s; who made it sees with \"pinfold token list\" whether it is good.",
			cli->token_file != NULL          ? "that of --token-file"
			: cli->token_env != NULL         ? "that of --token-env"
			: !token_is_set("PINFOLD_TOKEN") ? "the device's"
							 : "that of PINFOLD_TOKEN");
	if (answer->retry_after > 0)
		fprintf(stderr, " Try again in %llu second%s.", (unsigned long long)answer->retry_after,
			answer->retry_after == 1 ? "" : "s");
	else if (answer->status == 502 || answer->status == 503 || answer->status == 504)
		fputs(" Try again in a moment; if it stays, \"pinfold doctor\" on the server says what is wrong.",
		      stderr);
}

void explain_answer(const struct cli *cli, const struct http_answer *answer)
{
	own_arena struct arena a;

	arena_init(&a, 1 << 20);
	const struct json *v = json_parse(&a, answer->body.p, answer->body.n, JSON_DEPTH, 1000, NULL);
	if (v == NULL || v->type != JSON_OBJECT || member(v, "error")[0] == '\0') {
		fprintf(
		    stderr, "pinfold: what answered at %s is not Pinfold (%ld): %s\n", cli->server, answer->status,
		    answer->status >= 500
			? "does the service run behind that web server? There \"pinfold doctor\" says what is wrong."
			: "is that the address? There \"pinfold doctor\" says what is wrong.");
		return;
	}
	const char *field = member(v, "field");
	fprintf(stderr, "pinfold: %s (%ld ",
		answer->status == 503   ? "the server is not ready"
		: answer->status >= 500 ? "the server failed"
					: "the server refuses",
		answer->status);
	say_foreign(stderr, member(v, "error"), strlen(member(v, "error")));
	if (field[0] != '\0') {
		fputs(" at ", stderr);
		say_foreign(stderr, field, strlen(field));
	}
	fputs("): ", stderr);
	say_foreign(stderr, member(v, "message"), strlen(member(v, "message")));
	say_more(cli, answer, member(v, "error"));
	fputc('\n', stderr);
}

void explain_unreachable(const struct cli *cli, CURLcode rc, const char *why)
{
	const char *what = "cannot be reached", *then = "is this the address, and does the service run?";
	bool plain = strncasecmp(cli->server, "https:", 6) != 0;

	if (rc == CURLE_PEER_FAILED_VERIFICATION) {
		what = "has a certificate that is not trusted";
		then = "check the address; an authority of your own is named by --ca-file FILE or PINFOLD_CA_FILE";
	} else if (rc == CURLE_SSL_CACERT_BADFILE) {
		then = "the file of --ca-file or PINFOLD_CA_FILE must hold certificates in PEM form";
	} else if (rc == CURLE_SSL_CONNECT_ERROR) {
		then = "does that port speak https?";
	} else if (rc == CURLE_COULDNT_RESOLVE_HOST) {
		then = "check the name in --server or PINFOLD_URL";
	} else if (rc == CURLE_UNSUPPORTED_PROTOCOL || rc == CURLE_URL_MALFORMAT) {
		then = "the address is as https://host/ or http://host:port/";
	} else if (rc == CURLE_OPERATION_TIMEDOUT) {
		then = "try again; if it stays, \"pinfold doctor\" on the server says what is wrong";
	} else if (plain && (rc == CURLE_GOT_NOTHING || rc == CURLE_RECV_ERROR)) {
		then = "does that port speak http, and not https?";
	}
	fputs("pinfold: ", stderr);
	say_foreign(stderr, cli->server, strlen(cli->server));
	fprintf(stderr, " %s (", what);
	say_foreign(stderr, why, strlen(why));
	fprintf(stderr, "): %s\n", then);
}
