/*
 * pinfold completion: a script by which a shell completes what stands in the table of commands, made from that table,
 * so that it cannot lag behind.
 */
#include <string.h>

#include "cli/cli.h"

static const char globals[] =
    "--server --token-env --token-file --device-token-env --device-token-file --json --help --version";

static bool word(char c)
{
	return (c >= 'a' && c <= 'z') || c == '-';
}

/* What a command's own line of usage has in lower case: options, words and their values. */
static void put_words(const struct command *c)
{
	const char *p = c->args, *begun = p;

	printf("\t%s) words=\"", c->name);
	for (; *p != '\0';) {
		size_t n = 0;
		while (word(p[n]))
			n++;
		bool alone = p == begun || strchr(" [{|\n", p[-1]) != NULL;
		bool other =
		    (n != strlen(c->name) || strncmp(p, c->name, n) != 0) && (n != 7 || strncmp(p, "pinfold", 7) != 0);
		if (n > 1 && alone && other)
			printf("%.*s ", (int)n, p);
		p += n > 0 ? n : 1;
	}
	fputs("--help\" ;;\n", stdout);
}

int cmd_completion(struct cli *cli, int argc, char **argv)
{
	const struct command *c;

	(void)cli;
	if (argc != 2 || (strcmp(argv[1], "bash") != 0 && strcmp(argv[1], "zsh") != 0))
		return usage("completion bash or completion zsh");
	if (strcmp(argv[1], "zsh") == 0)
		fputs("autoload -U +X bashcompinit && bashcompinit\n", stdout);
	fputs("_pinfold() {\n"
	      "\tlocal word command= skip= words=\n"
	      "\tfor word in \"${COMP_WORDS[@]:1:$((COMP_CWORD - 1))}\"; do\n"
	      "\t\tcase $skip$word in\n"
	      "\t\tskip*) skip= ;;\n"
	      "\t\t--server | --*token-env | --*token-file) skip=skip ;;\n"
	      "\t\t-*) ;;\n"
	      "\t\t*) command=$word && break ;;\n"
	      "\t\tesac\n"
	      "\tdone\n"
	      "\tcase $command in\n"
	      "\t'') words=\"",
	      stdout);
	for (size_t i = 0; (c = command_at(i)) != NULL; i++)
		printf("%s ", c->name);
	printf("help %s\" ;;\n", globals);
	for (size_t i = 0; (c = command_at(i)) != NULL; i++)
		put_words(c);
	fputs("\tesac\n"
	      "\tCOMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
	      "}\n"
	      "complete -o default -F _pinfold pinfold\n",
	      stdout);
	return 0;
}
