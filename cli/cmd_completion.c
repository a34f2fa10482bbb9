/*
 * pinfold completion: a script by which a shell completes what stands in the table of commands, made from that table,
 * so that it cannot lag behind.
 */
#include <string.h>

#include "cli/cli.h"

static const char globals[] =
    "--server --ca-file --token-env --token-file --device-token-env --device-token-file --json --help --version";

static bool word(char c)
{
	return (c >= 'a' && c <= 'z') || c == '-';
}

/* What a command's own line of usage has in lower case: options, words and their values. */
static void each_word(const struct command *c, void (*take)(const struct command *c, const char *word, size_t n))
{
	const char *p = c->args, *begun = p;

	for (; *p != '\0';) {
		size_t n = 0;
		while (word(p[n]))
			n++;
		bool alone = p == begun || strchr(" [{|\n", p[-1]) != NULL;
		bool other =
		    (n != strlen(c->name) || strncmp(p, c->name, n) != 0) && (n != 7 || strncmp(p, "pinfold", 7) != 0);
		if (n > 1 && alone && other)
			take(c, p, n);
		p += n > 0 ? n : 1;
	}
}

static void put_word(const struct command *c, const char *word, size_t n)
{
	(void)c;
	printf("%.*s ", (int)n, word);
}

static void put_words(const struct command *c)
{
	printf("\t%s) words=\"", c->name);
	each_word(c, put_word);
	fputs("--help\" ;;\n", stdout);
}

static void put_fish(const struct command *c, const char *word, size_t n)
{
	printf("complete -c pinfold -n '__fish_seen_subcommand_from %s' -a '%.*s'\n", c->name, (int)n, word);
}

/* One line a word; the help texts have no quotes. */
static int fish(void)
{
	const struct command *c;

	for (size_t i = 0; (c = command_at(i)) != NULL; i++) {
		printf("complete -c pinfold -n __fish_use_subcommand -a %s -d \"%s\"\n", c->name, c->help);
		each_word(c, put_fish);
	}
	for (const char *p = globals; *p != '\0'; p += strcspn(p, " "), p += *p == ' ')
		printf("complete -c pinfold -n __fish_use_subcommand -a '%.*s'\n", (int)strcspn(p, " "), p);
	return 0;
}

int cmd_completion(struct cli *cli, int argc, char **argv)
{
	const struct command *c;

	(void)cli;
	if (argc == 2 && strcmp(argv[1], "fish") == 0)
		return fish();
	if (argc != 2 || (strcmp(argv[1], "bash") != 0 && strcmp(argv[1], "zsh") != 0))
		return usage("completion bash, completion zsh or completion fish");
	if (strcmp(argv[1], "zsh") == 0)
		fputs("autoload -U +X bashcompinit && bashcompinit\n", stdout);
	fputs("_pinfold() {\n"
	      "\tlocal word command= skip= words=\n"
	      "\tfor word in \"${COMP_WORDS[@]:1:$((COMP_CWORD - 1))}\"; do\n"
	      "\t\tcase $skip$word in\n"
	      "\t\tskip*) skip= ;;\n"
	      "\t\t--server | --ca-file | --*token-env | --*token-file) skip=skip ;;\n"
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
