/*
 * See request.h. The summary was made by our own public side from validated values; it is still parsed
 * strictly and bounded, since what follows from it is what a check must match.
 */
#include "steward/request.h"
#include "lib/lack.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NODES = 4000 };

static const char *text_of(const struct json *v)
{
	return v != NULL && v->type == JSON_STRING && strlen(v->text) == v->len ? v->text : NULL;
}

static bool read_paths(struct request *rq, const struct json *list)
{
	if (list == NULL || list->type != JSON_ARRAY || list->count < 1 || list->count > REQUEST_PATHS)
		return false;
	for (const struct json *v = list->child; v != NULL; v = v->next)
		if ((rq->allow[rq->nallow++] = text_of(v)) == NULL)
			return false;
	return true;
}

static bool read_checks(struct request *rq, const struct json *list)
{
	if (list == NULL || list->type != JSON_ARRAY || list->count < 1 || list->count > REQUEST_CHECKS)
		return false;
	for (const struct json *v = list->child; v != NULL; v = v->next) {
		struct request_check *c = &rq->checks[rq->nchecks++];
		if (v->type != JSON_ARRAY || v->count < 1 || v->count > REQUEST_ARGS)
			return false;
		snprintf(c->name, sizeof c->name, "check-%zu", rq->nchecks);
		for (const struct json *arg = v->child; arg != NULL; arg = arg->next)
			if ((c->argv[c->argc++] = text_of(arg)) == NULL)
				return false;
	}
	return true;
}

static bool read_text(struct request *rq, int fd)
{
	struct stat st;
	if (fstat(fd, &st) != 0 || st.st_size <= 0 || st.st_size > REQUEST_BYTES)
		return false;
	size_t n = (size_t)st.st_size, at = 0;
	char *text = arena_get(&rq->arena, n + 1);
	while (text != NULL && at < n) {
		ssize_t got = pread(fd, text + at, n - at, (off_t)at);
		if (got <= 0)
			return false;
		at += (size_t)got;
	}
	rq->text = text;
	rq->text_n = n;
	return text != NULL;
}

enum err request_read(struct request *rq, int fd)
{
	*rq = (struct request){0};
	arena_init(&rq->arena, 16 * (size_t)REQUEST_BYTES);
	errno = 0;
	if (!read_text(rq, fd))
		return lack_error();
	rq->root = json_parse(&rq->arena, rq->text, rq->text_n, JSON_DEPTH, NODES, NULL);
	if (rq->root == NULL)
		return lack_error();
	if (rq->root->type != JSON_OBJECT)
		return ERR_INTERNAL_ERROR;
	rq->instruction = text_of(json_get(rq->root, "instruction"));
	bool ok = rq->instruction != NULL && read_paths(rq, json_get(rq->root, "allowedPaths")) &&
		  read_checks(rq, json_get(rq->root, "checks"));
	return ok ? ERR_OK : ERR_INTERNAL_ERROR;
}

void request_free(struct request *rq)
{
	arena_free(&rq->arena);
	*rq = (struct request){0};
}

void request_gateway_url(char *out, size_t cap, unsigned port)
{
	snprintf(out, cap, "http://127.0.0.1:%u/internal/v1", port);
}

void request_write(struct buf *out, const struct request *rq, const struct request_facts *f)
{
	struct jw w;
	char url[64];
	request_gateway_url(url, sizeof url, f->gateway_port);
	jw_init(&w, out);
	jw_open(&w, '{');
	jw_kstr(&w, "task_id", f->run);
	jw_kstr(&w, "run_id", f->run);
	jw_kstr(&w, "instruction", rq->instruction);
	jw_kstrs(&w, "allowed_paths", rq->allow, rq->nallow);
	jw_key(&w, "verification");
	jw_open(&w, '[');
	for (size_t i = 0; i < rq->nchecks; i++) {
		jw_open(&w, '{');
		jw_kstr(&w, "name", rq->checks[i].name);
		jw_kstrs(&w, "argv", rq->checks[i].argv, rq->checks[i].argc);
		jw_close(&w, '}');
	}
	jw_close(&w, ']');
	jw_key(&w, "limits");
	jw_open(&w, '{');
	jw_kint(&w, "max_steps", f->max_steps);
	jw_kint(&w, "wall_time_seconds", f->wall_seconds);
	jw_kint(&w, "max_tool_output_bytes", f->tool_output_bytes);
	jw_kint(&w, "max_patch_bytes", f->patch_bytes);
	jw_close(&w, '}');
	jw_kstr(&w, "model", f->model);
	jw_kstr(&w, "gateway_url", url);
	jw_key(&w, "permissions");
	const struct json *permissions = json_get(rq->root, "permissions");
	if (permissions != NULL && permissions->type == JSON_OBJECT) {
		own_buf struct buf text;
		buf_init(&text, REQUEST_BYTES);
		json_write(&text, permissions);
		jw_raw(&w, text.p, text.n);
	} else {
		jw_open(&w, '{');
		jw_close(&w, '}');
	}
	jw_close(&w, '}');
}
