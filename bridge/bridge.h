/*
 * What an agent that others wrote says and asks, as events and questions of a run. One dialect a program; each is a row
 * of dialects[] (bridge/main.c).
 */
#ifndef BRIDGE_BRIDGE_H
#define BRIDGE_BRIDGE_H
#include "agent/approve.h"
#include "agent/events.h"
#include "bridge/lines.h"
#include "lib/json.h"

enum { BRIDGE_NODES = 200000, BRIDGE_ARENA = 32 << 20, BRIDGE_SUMMARY = 4000 };

enum course { GOING, ENDED_WELL, ENDED_BADLY };

struct bridge {
	struct task task;
	struct http *http;
	struct events events;
	struct approve approve;
	const struct json *permissions; /* of request.json; NULL: none */
	struct arena request;
	const struct dialect *dialect;
	int to;                        /* the agent's standard input, not blocking; -1: it has none */
	struct lines from;             /* what it says */
	enum course course;            /* set by the dialect */
	char why[200];                 /* how it ended badly */
	char said[BRIDGE_SUMMARY + 1]; /* the last that it said to people */
	struct buf chunk;              /* of what it is saying */
	unsigned strange;              /* what it asked in a row that nobody knows */
	bool mended;                   /* the line is not what it said, but nearly: see line_mend() */
	bool unread;                   /* a line before could not be read: see line_lost() */
	void *own;                     /* the dialect's */
};

struct dialect {
	const char *name;
	bool talks;  /* it is spoken to on its standard input */
	bool titles; /* of acp: where it says of a command nothing else, the title is the command */
	/* Before the first line; false: it cannot be begun. Any of these may be NULL. */
	bool (*begin)(struct bridge *b);
	/* One line that is a JSON object. */
	void (*line)(struct bridge *b, const struct json *root);
	/* The run shall end. */
	void (*stop)(struct bridge *b);
	/* Frees its own. */
	void (*end)(struct bridge *b);
};
extern const struct dialect dialect_acp, dialect_codex, dialect_codex_ask, dialect_claude, dialect_claude_ask,
    dialect_pi, dialect_opencode, dialect_copilot, dialect_gemini, dialect_acp_gemini;

/* --- bridge/say.c: what the dialects have in common --------------------------------------------------------------- */
/* A member's text, "" where it is none. */
const char *text_of(const struct json *object, const char *key);
bool is(const struct json *object, const char *key, const char *word); /* its text is this word */
bool is_text(const struct json *object, const char *key);
bool is_null(const struct json *v); /* also where there is none */
/* Through objects, by their keys: "a.b.c"; NULL where there is none. */
const struct json *inner(const struct json *v, const char *path);
void say_text(struct bridge *b, const char *text);  /* an event, and the last that was said */
void say_chunk(struct bridge *b, const char *text); /* a part of one; say_whole ends it */
void say_whole(struct bridge *b);
/* arguments and output may be any JSON, or NULL. */
void say_call(struct bridge *b, const char *id, const char *tool, const struct json *arguments);
void say_output(struct bridge *b, const char *id, const char *tool, bool ok, const struct json *output);
void say_end(struct bridge *b, bool well, const char *why);
/* One line of the agent's, n bytes and a NUL; it may be changed. */
void line_take(struct bridge *b, char *line, size_t n);
/* Has the agent said what nobody read: a line that was too long or too much? Then what it said before of anything may
 * not hold any more, and a question has to say by itself what it is about. */
bool line_lost(const struct bridge *b);
/* One line to the agent. */
bool say_line(struct bridge *b, struct buf *text);

/* --- bridge/speak.c: a line of Claude Code that asks nothing --- */
void claude_line(struct bridge *b, const struct json *root);

/* --- bridge/permit.c ------------------------------------------------------------------------------------------------
 */
enum permit { PERMIT_YES, PERMIT_NO, PERMIT_STOP };
/* May it do this? kind: read, edit, delete, move, search, execute, think, fetch or other, by which the run's
 * permissions are asked ("ask" where they say nothing); preview: all of it; title: the agent's own words. Waits for a
 * person. */
enum permit permit(struct bridge *b, const char *kind, const char *id, const char *title, const char *preview);
#endif
