/* What the commands of pinfold share. */
#ifndef CLI_CLI_H
#define CLI_CLI_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "lib/buf.h"
#include "lib/json.h"
#include "lib/secret.h"

/* Exit statuses of CONTRACT section 7. */
enum { EXIT_COMPLETED = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_CANCELLED = 3, EXIT_UNREACHABLE = 4 };

struct cli {
	const char *server;                   /* base URL */
	const char *token_env;                /* --token-env NAME */
	const char *token_file;               /* --token-file F */
	const char *device_env, *device_file; /* --device-token-env NAME, --device-token-file F */
	const char *ca_file; /* --ca-file F or PINFOLD_CA_FILE: whom to trust instead of the system's; or NULL */
	const char *idempotency_key; /* of what is posted; or NULL */
	bool json;
	bool quiet; /* not a word where the server cannot be reached: the caller tries again */
};

/* One row a command: cli/main.c. argv[0] is the command's own name. Returns an exit status. */
struct command {
	const char *name, *args, *help;
	int (*run)(struct cli *cli, int argc, char **argv);
};

int cmd_run(struct cli *cli, int argc, char **argv);
int cmd_ps(struct cli *cli, int argc, char **argv);
int cmd_show(struct cli *cli, int argc, char **argv);
int cmd_approve(struct cli *cli, int argc, char **argv);
int cmd_events(struct cli *cli, int argc, char **argv);
int cmd_cancel(struct cli *cli, int argc, char **argv);
int cmd_artifacts(struct cli *cli, int argc, char **argv);
int cmd_rm(struct cli *cli, int argc, char **argv);
int cmd_setup(struct cli *cli, int argc, char **argv);
int cmd_token(struct cli *cli, int argc, char **argv);
int cmd_device(struct cli *cli, int argc, char **argv);
int cmd_agent(struct cli *cli, int argc, char **argv);
int cmd_metrics(struct cli *cli, int argc, char **argv);
int cmd_audit(struct cli *cli, int argc, char **argv);
int cmd_store(struct cli *cli, int argc, char **argv);
int cmd_secret(struct cli *cli, int argc, char **argv);
int cmd_tenant(struct cli *cli, int argc, char **argv);
int cmd_config(struct cli *cli, int argc, char **argv);
int cmd_provider(struct cli *cli, int argc, char **argv);
int cmd_doctor(struct cli *cli, int argc, char **argv);
int cmd_attack(struct cli *cli, int argc, char **argv);
int cmd_completion(struct cli *cli, int argc, char **argv);

/* The command of that row; NULL behind the last. */
const struct command *command_at(size_t i);

/* Says what is wrong with the command line and returns EXIT_USAGE. */
int usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* --- cli/say.c ------------------------------------------------------------------------------- */
/* One line of foreign text to a stream: nothing in it can move a cursor or forge a line. */
void say_foreign(FILE *to, const char *text, size_t n);
/* To standard error: "pinfold: WHAT: WHY", where what may be anybody's, such as the name of a file. */
void say_wrong(const char *what, const char *why);
/* One line of it to standard output, with blanks behind it up to this many characters. */
void say_cell(const char *text, size_t width);
/* One line of it behind a margin. What a terminal would carry over to its next line, where it could look like what is
 * ours, is put behind another one, which tells that it is still the same line; "" as the first breaks nothing. Both are
 * plain ASCII. Returns how many lines it became. */
size_t say_margin(FILE *to, const char *first, const char *more, const char *text, size_t n);
/* Several lines of it, each so. */
size_t say_lines(FILE *to, const char *margin, const char *more, const char *text, size_t n);
/* As much of one line of foreign text as surely fits into so many columns of a terminal. */
void say_fit(FILE *to, const char *text, size_t n, size_t columns);
/* Colours are for terminals that have them and people who want them (NO_COLOR, TERM=dumb): else nothing is written. */
enum colour { COLOUR_NONE, COLOUR_GOOD, COLOUR_BAD, COLOUR_NOTE };
void say_colour(FILE *to, enum colour colour);
/* How many lines this terminal shows; 0: it is none. */
size_t say_rows(FILE *to);
/* A time of the API as people here read it, with its day or without; "" where there is none. */
void say_time(char out[32], const struct json *ms, bool day);
/* One line of JSON to standard output: as it is into files and pipes, at a terminal with \u escapes for what would not
 * show, which is the same JSON. */
void say_json(const char *json, size_t n);

/* --- cli/cmd_runs.c -------------------------------------------------------------------------- */
/* The run id of a command line that has at most most arguments left; NULL after saying what is wrong. */
const char *one_run(int argc, char **argv, int most);

/* --- cli/folders.c --------------------------------------------------------------------------- */
/* The folders above path's last part, 0755 (less the umask); those that are there stay. False with errno. */
bool folders_above(const char *path);
/* The same, and path itself with this mode. */
bool folders_make(const char *path, mode_t mode);

/* --- cli/main.c ------------------------------------------------------------------------------ */
/* The value of a string member, or "" ; never NULL. */
const char *member(const struct json *object, const char *key);

/* --- cli/http.c ------------------------------------------------------------------------------ */
/* The caller's token, from where the command line says; the device's, which may answer agents' questions, and whether
 * one is named at all. False after saying what is wrong. */
bool token_find(const struct cli *cli, struct secret *token);
bool token_device_named(const struct cli *cli);
bool token_device(const struct cli *cli, struct secret *token);
bool token_is_set(const char *variable);
/* Is a server named? Otherwise it is said how. */
bool http_named(const struct cli *cli);
struct http_answer {
	long status;
	uint64_t retry_after; /* seconds; 0: it does not say */
	struct buf body;
};
/*
 * One call to the API with the caller's token. body NULL: GET; else POST of JSON text ("" allowed).
 * 0, or an exit status after saying what happened (no token, unreachable, or an error answer, whose
 * message and field are printed). On 0 the body is the caller's to free.
 */
int http_call(const struct cli *cli, const char *path, const char *body, struct http_answer *answer);
/*
 * The same with this token and method (NULL: GET, or POST where there is a body) and without a word about an answer
 * that is an error: whatever its status, 0 and the body is the caller's to free. Otherwise an exit status after saying
 * why.
 */
int http_raw(const struct cli *cli, const struct secret *token, const char *method, const char *path, const char *body,
	     struct http_answer *answer);
/* http_raw(), but an answer that is an error is explained and is an exit status. */
int http_ask(const struct cli *cli, const struct secret *token, const char *method, const char *path, const char *body,
	     struct http_answer *answer);
/* DELETE; nothing comes back. */
int http_delete(const struct cli *cli, const char *path);

/* --- cli/follow.c ---------------------------------------------------------------------------- */
/* Prints a run's events as they are, or follows them until it is terminal. */
int follow_events(const struct cli *cli, const char *run, bool follow);
/* The same for who began the run: a live line at a terminal, where a person is asked what its agent asks if a device's
 * token is there; Ctrl-C asks for the run's end. */
int attend_run(const struct cli *cli, const char *run);

/* --- cli/outcome.c --------------------------------------------------------------------------- */
bool is_terminal(const char *status);
/* Fetches the snapshot into the arena; NULL after saying why (then *status is the exit status). */
const struct json *fetch_run(const struct cli *cli, const char *run, struct arena *a, int *status);
/* Prints what a finished run came to; returns the exit status that belongs to it. */
int print_outcome(const struct cli *cli, const char *run, bool with_patch);
/* Creates the file with this text unless it exists, and says so. The name appears only when the text is whole. False
 * after saying why not. */
bool make_file(const char *path, mode_t mode, const void *text, size_t n);
#endif
