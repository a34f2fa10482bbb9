/*
 * Reads request.json. Trusts its sender, the control plane, but not its own luck: every bound is checked,
 * since what is read here decides what may be written and run. Keys that are not known are left alone.
 */
#include "agent/task.h"
#include "lib/json.h"
#include "lib/num.h"
#include "lib/path.h"
#include <stdlib.h>
#include <string.h>

enum { REQUEST_BYTES = 1000000, REQUEST_NODES = 4000 };

const char *const tool_names[TOOL__COUNT] = {
    [TOOL_LIST_FILES] = "list_files", [TOOL_READ_FILE] = "read_file", [TOOL_WRITE_FILE] = "write_file",
    [TOOL_EDIT_FILE] = "edit_file",   [TOOL_SEARCH] = "search",       [TOOL_RUN_CHECK] = "run_check",
    [TOOL_FINISH] = "finish",
};

enum tool tool_find(const char *name)
{
	int i = 0;
	while (i < TOOL__COUNT && strcmp(tool_names[i], name) != 0)
		i++;
	return (enum tool)i;
}

static const char *text(const struct json *object, const char *key)
{
	const struct json *v = json_get(object, key);
	return v != NULL && v->type == JSON_STRING && v->len > 0 ? v->text : NULL;
}

static bool limit(const struct json *limits, const char *key, int64_t max, int64_t otherwise, int64_t *out)
{
	const struct json *v = limits != NULL ? json_get(limits, key) : NULL;
	*out = otherwise;
	return v == NULL || json_int(v, 1, max, out);
}

static const char *read_allowed(struct task *t, const struct json *list)
{
	if (list == NULL || list->type != JSON_ARRAY || list->count == 0 || list->count > TASK_PATHS)
		return "allowed_paths must be a list of 1 to 64 paths";
	for (const struct json *v = list->child; v != NULL; v = v->next) {
		if (v->type != JSON_STRING || !path_allow_valid(v->text, v->len))
			return "allowed_paths holds a bad path";
		t->allowed[t->allowed_n++] = v->text;
	}
	return NULL;
}

static const char *read_checks(struct task *t, const struct json *list)
{
	if (list == NULL || list->type != JSON_ARRAY || list->count > TASK_CHECKS)
		return "verification must be a list of at most 16 checks";
	for (const struct json *v = list->child; v != NULL; v = v->next) {
		struct task_check *check = &t->checks[t->checks_n++];
		const struct json *argv = v->type == JSON_OBJECT ? json_get(v, "argv") : NULL;
		check->name = argv != NULL ? text(v, "name") : NULL;
		if (check->name == NULL || argv->type != JSON_ARRAY || argv->count == 0 || argv->count > TASK_ARGS)
			return "a check needs a name and 1 to 16 arguments";
		size_t n = 0;
		for (const struct json *arg = argv->child; arg != NULL; arg = arg->next) {
			if (arg->type != JSON_STRING)
				return "an argument of a check must be a string";
			check->argv[n++] = arg->text;
		}
	}
	return NULL;
}

static const char *read_permissions(struct task *t, const struct json *map)
{
	static const char *const words[] = {[PERMIT_ALLOW] = "allow", [PERMIT_ASK] = "ask", [PERMIT_DENY] = "deny"};
	if (map == NULL)
		return NULL;
	if (map->type != JSON_OBJECT)
		return "permissions must be an object";
	for (const struct json *v = map->child; v != NULL; v = v->next) {
		enum tool tool = tool_find(v->key);
		if (tool == TOOL__COUNT)
			continue;
		/* A word that is not known never widens what the agent may do. */
		enum permission p = PERMIT_DENY;
		for (int i = PERMIT_ALLOW; v->type == JSON_STRING && i <= PERMIT_DENY; i++)
			if (strcmp(v->text, words[i]) == 0)
				p = (enum permission)i;
		t->permission[tool] = p;
	}
	return NULL;
}

const char *task_parse(struct task *t, const void *json, size_t n)
{
	*t = (struct task){0};
	arena_init(&t->arena, 8 * REQUEST_BYTES);
	const struct json *root = json_parse(&t->arena, json, n, JSON_DEPTH, REQUEST_NODES, NULL);
	if (root == NULL || root->type != JSON_OBJECT)
		return "request.json is not one JSON object";
	t->id = text(root, "task_id");
	t->instruction = text(root, "instruction");
	t->model = text(root, "model");
	t->gateway = text(root, "gateway_url");
	if (t->id == NULL || !id_valid(t->id))
		return "task_id is missing or bad";
	if (t->instruction == NULL || t->model == NULL)
		return "instruction or model is missing";
	if (t->gateway == NULL || strncmp(t->gateway, "http://", 7) != 0 || t->gateway[strlen(t->gateway) - 1] == '/')
		return "gateway_url must be an http URL without a slash at its end";
	const char *why = read_allowed(t, json_get(root, "allowed_paths"));
	if (why == NULL)
		why = read_checks(t, json_get(root, "verification"));
	if (why == NULL)
		why = read_permissions(t, json_get(root, "permissions"));
	if (why != NULL)
		return why;
	const struct json *limits = json_get(root, "limits");
	int64_t steps, wall, output, patch;
	if (limits != NULL && limits->type != JSON_OBJECT)
		return "limits must be an object";
	if (!limit(limits, "max_steps", 100000, 20, &steps) ||
	    !limit(limits, "wall_time_seconds", 1000000, 220, &wall) ||
	    !limit(limits, "max_tool_output_bytes", 10000000, 200000, &output) ||
	    !limit(limits, "max_patch_bytes", 10000000, 100000, &patch))
		return "a limit is not a whole number above 0";
	t->max_steps = (uint32_t)steps;
	t->wall_seconds = (uint32_t)wall;
	t->max_output = (size_t)output;
	t->max_patch = (size_t)patch;
	return NULL;
}

const char *task_read(struct task *t, int workspace)
{
	size_t n = 0;
	char *json = file_read(workspace, "request.json", REQUEST_BYTES, &n);
	if (json == NULL) {
		*t = (struct task){0};
		return "request.json cannot be read";
	}
	const char *why = task_parse(t, json, n);
	free(json);
	return why;
}

void task_free(struct task *t)
{
	arena_free(&t->arena);
}

bool task_allows(const struct task *t, const char *path)
{
	for (size_t i = 0; i < t->allowed_n; i++)
		if (path_allow_covers(t->allowed[i], path))
			return true;
	return false;
}
