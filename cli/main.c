/*
 * pinfold: the command for tenants (over HTTP) and operators (over the admin socket, root only).
 * Tokens come from the environment or a 0600 file, never from the command line.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "config.h"
#include "lib/die.h"
#include "lib/place.h"

static const struct command commands[] = {
    {"run",
     "[-i TEXT | -f FILE] [--agent PROFILE] [--model-profile PROFILE] [--allow PATH]...\n"
     "           [--check \"COMMAND\"]... [--ask TOOL]... [--deny TOOL]... [--idempotency-key KEY] [--detach]\n"
     "           [--patch] [DIR]",
     "upload DIR, run the agent on it, follow its events", cmd_run},
    {"ps", "[--status queued|running|completed|failed|cancelled] [--limit N | --all]", "list runs, newest first",
     cmd_ps},
    {"show", "RUN", "one run's state and results", cmd_show},
    {"events", "[-f] RUN", "a run's events; -f follows until it ends", cmd_events},
    {"approve", "[RUN [REQUEST] [--allow-once | --allow-session | --deny | --cancel] [--digest DIGEST]]",
     "list what agents ask, or answer it", cmd_approve},
    {"cancel", "RUN", "ask for the end of a run", cmd_cancel},
    {"artifacts", "RUN [NAME] [-o DIR | --apply DIR]", "list what a run left, print or save it, or apply its patch",
     cmd_artifacts},
    {"rm", "RUN...", "remove runs that have ended, with all they left", cmd_rm},
    {"setup",
     "[--tenant NAME] [--base-url URL] [--model NAME] [--ca-file FILE] [--provider-key-env NAME]\n"
     "             [--scripted] [--uid-base N] [--web-group GROUP] [--token-file FILE] [--device-token-file FILE]",
     "make what a first start needs (root)", cmd_setup},
    {"token",
     "create [--tenant NAME] [--label TEXT] [--days N] [--device | [--metrics] [--approve]]\n"
     "       pinfold token list [--tenant NAME]\n"
     "       pinfold token rotate [--tenant NAME] [--days N] ID\n"
     "       pinfold token {promote | drop | revoke} [--tenant NAME] ID",
     "a tenant's tokens (root)", cmd_token},
    {"device",
     "pair [--tenant NAME] [--days N]\n"
     "       pinfold device list [--tenant NAME]\n"
     "       pinfold device revoke [--tenant NAME] LABEL",
     "pair browsers and tools that may answer agents' questions, list and revoke them (root)", cmd_device},
    {"agent",
     "list\n       pinfold agent install [--registry URL] [--folder DIR] NAME\n       pinfold agent remove [--folder "
     "DIR] NAME\n       pinfold agent test [--json] NAME",
     "install agents that npm distributes, each at a locked version, and try them (root)", cmd_agent},
    {"metrics", "", "the service's figures as Prometheus text (root)", cmd_metrics},
    {"audit", "verify [FILE...]\n       pinfold audit tail [-n N] [-f]", "check the audit log, or show its end (root)",
     cmd_audit},
    {"store",
     "stat\n"
     "       pinfold store check [--contents | BACKUP]\n"
     "       pinfold store prune\n"
     "       pinfold store compact\n"
     "       pinfold store backup DIR\n"
     "       pinfold store restore [--keep-tokens] DIR",
     "look after the store (root)", cmd_store},
    {"provider", "list | test NAME", "the model providers, and one tiny call to one of them (root)", cmd_provider},
    {"doctor", "[--json] [--online] [--no-box] [--kill-service] [--agent PROFILE] [--list]",
     "look at everything that could be wrong here, and say what to do (root)", cmd_doctor},
    {"tenant", "list|show NAME", "tenants of this instance: what each may, and what it has used (root)", cmd_tenant},
    {"secret",
     "list\n"
     "       pinfold secret rotate [--file FILE | --from-env NAME] NAME\n"
     "       pinfold secret promote NAME\n"
     "       pinfold secret drop [--force] NAME",
     "change providers' keys and what signs run tokens while the service runs (root)", cmd_secret},
    {"config", "check|reload|show|example ...",
     "read the configuration as the daemon would, or have it do so; show what is in force, or every setting",
     cmd_config},
    {"attack", "[--json] [--list] [--kill-service] [--class CLASS] [ID...]",
     "try to break out of sandboxes, and show what holds (root)", cmd_attack},
    {"completion", "bash|zsh|fish", "a script by which a shell completes these commands", cmd_completion},
};

const struct command *command_at(size_t i)
{
	return i < sizeof commands / sizeof *commands ? &commands[i] : NULL;
}

static const struct command *current; /* the one that was named, once it is known */

/* One command's own help. */
static int help_on(const struct command *c)
{
	printf("usage: pinfold %s%s%s\n\n%s; pinfold(1) says more.\n", c->name, c->args[0] != '\0' ? " " : "", c->args,
	       c->help);
	return 0;
}

static const struct command *named(const char *name)
{
	for (size_t k = 0; k < sizeof commands / sizeof *commands; k++)
		if (strcmp(commands[k].name, name) == 0)
			return &commands[k];
	return NULL;
}

static int help(FILE *to, int status)
{
	fputs("usage: pinfold [--server URL] [--ca-file FILE] [--token-env NAME] [--token-file FILE]\n"
	      "       [--device-token-env NAME] [--device-token-file FILE] [--json] COMMAND ...\n\n",
	      to);
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].help);
	fputs("\n\"pinfold COMMAND --help\" says what a command takes; pinfold(1) says more.\n"
	      "The server is --server or PINFOLD_URL; the token is --token-env's variable, --token-file, "
	      "PINFOLD_TOKEN\n"
	      "or PINFOLD_DEVICE_TOKEN; the device's, which answers agents' questions, --device-token-env's, "
	      "--device-token-file\nor PINFOLD_DEVICE_TOKEN. Exit status: 0 completed, 1 failed, 2 usage, 3 cancelled, "
	      "4 unreachable.\n",
	      to);
	return status;
}

int usage(const char *fmt, ...)
{
	va_list ap;

	fputs("pinfold: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, " (see pinfold %s%s--help)\n", current != NULL ? current->name : "",
		current != NULL ? " " : "");
	return EXIT_USAGE;
}

const char *member(const struct json *object, const char *key)
{
	const struct json *v = object != NULL ? json_get(object, key) : NULL;

	return v != NULL && v->type == JSON_STRING ? v->text : "";
}

/* Everybody on a machine can read what a command line holds. */
static bool tokens_absent(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *value = strchr(argv[i], '=');
		value = argv[i][0] == '-' && value != NULL ? value + 1 : argv[i];
		bool named = strcmp(argv[i], "--token") == 0 || strncmp(argv[i], "--token=", 8) == 0;
		if (!named &&
		    ((strncmp(value, "pfa_", 4) != 0 && strncmp(value, "pfd_", 4) != 0) || strlen(value) < 40))
			continue;
		fputs("pinfold: a token does not belong on the command line, where everybody on this machine can read "
		      "it: "
		      "put it into PINFOLD_TOKEN, the variable of --token-env or a file of mode 0600 for --token-file",
		      stderr);
		fputs(named ? "\n" : ", and have this one replaced (pinfold token rotate)\n", stderr);
		return false;
	}
	return true;
}

/* Does this option of the command take a value, which the next word is? */
static bool takes_value(const struct command *c, const char *option)
{
	size_t n = strlen(option);

	for (const char *at = c->args; n > 1 && option[0] == '-' && (at = strstr(at, option)) != NULL; at += n)
		if (at[n] == ' ' && at[n + 1] != '|' && at[n + 1] != '[' && at[n + 1] != '-')
			return true;
	return false;
}

/* --json behind the command is that before it; a value of an option, and what is behind "--", is left alone. Returns
 * how many words are left. */
static int take_json(struct cli *cli, int argc, char **argv)
{
	int n = 1;
	bool rest = false;

	for (int i = 1; i < argc; i++) {
		rest = rest || (strcmp(argv[i], "--") == 0 && !takes_value(current, argv[i - 1]));
		if (!rest && strcmp(argv[i], "--json") == 0 && !takes_value(current, argv[i - 1]))
			cli->json = true;
		else
			argv[n++] = argv[i];
	}
	argv[n] = NULL;
	return n;
}

/* What was to be printed, and is not, was not done. */
static int written(int status)
{
	bool bad = ferror(stdout) != 0;

	if (fflush(stdout) == 0 && !bad)
		return status;
	fprintf(stderr, "pinfold: the output could not be written (%s): what it should have said is lost, ask again\n",
		strerror(errno));
	return status == 0 ? EXIT_FAILED : status;
}

int main(int argc, char **argv)
{
	struct cli cli = {.server = getenv("PINFOLD_URL"), .ca_file = getenv("PINFOLD_CA_FILE")};
	int i = 1;

	log_open("pinfold");
	if (!tokens_absent(argc, argv))
		return EXIT_USAGE;
	if (!place_init())
		fatal("PINFOLD_ROOT must be an absolute path of at most 68 characters, without spaces");
	for (; i < argc && argv[i][0] == '-'; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return help(stdout, 0);
		if (strcmp(argv[i], "--version") == 0)
			return puts("pinfold " VERSION) < 0;
		if (strcmp(argv[i], "--json") == 0)
			cli.json = true;
		else if (i + 1 < argc && strcmp(argv[i], "--server") == 0)
			cli.server = argv[++i];
		else if (i + 1 < argc && strcmp(argv[i], "--ca-file") == 0)
			cli.ca_file = argv[++i];
		else if (i + 1 < argc && strcmp(argv[i], "--token-env") == 0)
			cli.token_env = argv[++i];
		else if (i + 1 < argc && strcmp(argv[i], "--token-file") == 0)
			cli.token_file = argv[++i];
		else if (i + 1 < argc && strcmp(argv[i], "--device-token-env") == 0)
			cli.device_env = argv[++i];
		else if (i + 1 < argc && strcmp(argv[i], "--device-token-file") == 0)
			cli.device_file = argv[++i];
		else
			return usage("unknown option %s", argv[i]);
	}
	if (cli.server != NULL && cli.server[0] == '\0')
		cli.server = NULL;
	if (i >= argc)
		return help(stderr, EXIT_USAGE);
	if (strcmp(argv[i], "help") == 0)
		return help(stdout, 0);
	current = named(argv[i]);
	if (current == NULL)
		return usage("unknown command %s", argv[i]);
	/* Also behind further words: token create --help. */
	if (i + 1 < argc && current->run != cmd_setup &&
	    (strcmp(argv[argc - 1], "--help") == 0 || strcmp(argv[i + 1], "--help") == 0 ||
	     strcmp(argv[i + 1], "-h") == 0))
		return help_on(current);
	argc = take_json(&cli, argc - i, argv + i);
	return written(current->run(&cli, argc, argv + i));
}
