/* For t_frames.py: of each line "FORMAT USAGE JSON" the events that stream_out makes of it, then "= ERROR". FORMAT!STOP
 * with a number behind it is an error as an event. */
#include "gateway/stream_out.h"
#include "lib/own.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY = 64000000, NODES = 1000000 };

static void one(const char *name, const char *usage, const char *text)
{
	const struct format *f = format_named(name) ? format_named(name) : format_of_route(name);
	struct arena arena own_arena = {0};
	struct buf out own_buf = {0}, reply own_buf = {0};
	enum err e = ERR_OK;

	arena_init(&arena, MEMORY);
	buf_init(&out, STREAM_OUT_MAX);
	buf_init(&reply, MEMORY);
	if (usage[0] == '!') {
		buf_adds(&reply, text);
		stream_out_error(f, &reply, usage[1] == '1', (unsigned)atoi(usage + 2), "request-1", &out);
	} else {
		const struct json *answer = json_parse(&arena, text, strlen(text), JSON_DEPTH_MODEL, NODES, NULL);
		e = answer ? stream_out(f, answer, usage[0] == '1', &out) : ERR_INVALID_JSON;
	}
	/* Of what is none, whatever there was of it is left out. */
	if (e == ERR_OK && out.n > 0)
		fwrite(out.p, 1, out.n, stdout);
	printf("= %s\n", e == ERR_OK ? "ok" : err_code(e));
	fflush(stdout);
}

int main(void)
{
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, stdin) > 0) {
		char *rest = line, *name = strsep(&rest, " "), *usage = strsep(&rest, " ");
		rest[strcspn(rest, "\n")] = 0;
		one(name, usage, rest);
	}
	free(line);
	return 0;
}
