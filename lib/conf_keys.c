/*
 * Real keys in an agent's box (credential_mode = env): which there are and how its inline configuration refers to them.
 * The text holds names alone; a reference to anything but what the profile declares is refused, so that nothing else of
 * the box or of this machine can be meant. Values are not known here.
 */
#include "lib/conf.h"
#include "lib/keymask.h"
#include <stdio.h>
#include <string.h>

static const char *no(const struct cf_agent *a, const char *what, const char *name)
{
	static char why[400];

	snprintf(why, sizeof why, "agent %s: %s%s%.64s%s", a->name, what, *name ? " \"" : "", name, *name ? "\"" : "");
	return why;
}

static bool variable_name(const char *s, size_t n)
{
	if (n < 1 || n > 64 || (s[0] >= '0' && s[0] <= '9'))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!((s[i] >= 'A' && s[i] <= 'Z') || (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= '0' && s[i] <= '9') ||
		      s[i] == '_'))
			return false;
	return true;
}

struct conf_reference conf_reference(const char *text)
{
	struct conf_reference r = {.at = NULL};
	const char *env = strstr(text, "{env:"), *file = strstr(text, "{file:");

	r.file = file != NULL && (env == NULL || file < env);
	r.at = r.file ? file : env;
	if (r.at == NULL)
		return r;
	const char *name = r.at + (r.file ? sizeof "{file:" : sizeof "{env:") - 1;
	size_t n = strcspn(name, "{}\"\\\n");
	r.n = (size_t)(name + n + 1 - r.at);
	r.whole = name[n] == '}' && n > 0 && n < sizeof r.name;
	snprintf(r.name, sizeof r.name, "%.*s", (int)(n < sizeof r.name ? n : 0), name);
	return r;
}

static bool in_environment(const struct cf_agent *a, const char *name)
{
	size_t n = strlen(name);
	for (uint32_t i = 0; i < a->env_n; i++)
		if (strncmp(a->env[i], name, n) == 0 && a->env[i][n] == '=')
			return true;
	return false;
}

static bool is_token(const struct cf_agent *a, const char *name)
{
	return !a->token_wire && (strcmp(name, a->model_token_file) == 0 || strcmp(name, a->event_token_file) == 0 ||
				  strcmp(name, a->approval_token_file) == 0);
}

static const char *take_keys(const struct cf_agent *a, struct conf_key out[CONF_KEYS])
{
	for (uint32_t i = 0; i < a->credentials_n; i++) {
		const char *name = a->credentials[i], *eq = strchr(name, '=');
		size_t n = eq != NULL ? (size_t)(eq - name) : 0;
		if (eq == NULL || !variable_name(name, n) || eq[1] == '\0' || eq[1] == '.' || strchr(eq + 1, '/'))
			return no(a, "credential_secret holds VARIABLE=SECRET, a secret by its file's name, not", name);
		out[i] = (struct conf_key){.secret = eq + 1};
		memcpy(out[i].variable, name, n);
		for (uint32_t k = 0; k < i; k++)
			if (strcmp(out[k].variable, out[i].variable) == 0)
				return no(a, "credential_secret says twice what is in", out[i].variable);
		if (in_environment(a, out[i].variable) || strcmp(a->inline_variable, out[i].variable) == 0)
			return no(a, "environment and credential_secret both say what is in", out[i].variable);
	}
	return NULL;
}

static const char *take_references(const struct cf_agent *a, struct conf_key out[CONF_KEYS])
{
	bool by_env[CONF_KEYS] = {false};
	for (const char *at = a->inline_config;;) {
		struct conf_reference r = conf_reference(at);
		uint32_t i = 0;
		if (r.at == NULL)
			return NULL;
		while (i < a->credentials_n && strcmp(out[i].variable, r.name) != 0)
			i++;
		bool key = i < a->credentials_n;
		if (!r.whole || !(key || (r.file ? is_token(a, r.name) : in_environment(a, r.name))))
			return no(
			    a, "inline_config refers to what neither credential_secret nor environment has:", r.name);
		if (key && (r.file ? by_env[i] : out[i].file))
			return no(a, "inline_config has both {env:} and {file:} of", r.name);
		if (key && r.file)
			out[i].file = true;
		else if (key)
			by_env[i] = true;
		at = r.at + r.n;
	}
}

static bool says_key(const struct cf_agent *a, const struct keymask *k)
{
	bool holds = keymask_holds(k, a->inline_config, strlen(a->inline_config));
	for (uint32_t i = 0; i < a->env_n; i++)
		holds = holds || keymask_holds(k, a->env[i], strlen(a->env[i]));
	for (uint32_t i = 0; i < a->argv_n; i++)
		holds = holds || keymask_holds(k, a->argv[i], strlen(a->argv[i]));
	for (uint32_t i = 0; i < a->files_n; i++)
		holds = holds || keymask_holds(k, a->files[i], strlen(a->files[i]));
	return holds;
}

const struct cf_agent *conf_key_itself(const struct conf *c, const struct keymask *k)
{
	for (uint32_t i = 0; i < c->nagents; i++)
		if (says_key(&c->agents[i], k))
			return &c->agents[i];
	return NULL;
}

const char *conf_keys(const struct cf_agent *a, struct conf_key out[CONF_KEYS])
{
	if (a->env_mode != (a->credentials_n > 0))
		return no(a, "credential_mode = env and credential_secret go together", "");
	if (a->env_mode && !a->token_wire)
		return no(a, "credential_mode = env needs token_delivery = wire: its agent shows its key, no token",
			  "");
	if ((a->inline_variable[0] == '\0') != (a->inline_config[0] == '\0'))
		return no(a, "inline_config and inline_config_variable go together", "");
	if (a->inline_variable[0] != '\0' &&
	    (!variable_name(a->inline_variable, strlen(a->inline_variable)) || in_environment(a, a->inline_variable)))
		return no(a, "inline_config_variable must be a name that environment does not have, not",
			  a->inline_variable);
	/* A caller's words could refer to what the profile does not. */
	if (strstr(a->inline_config, "{instruction}") != NULL)
		return no(a, "inline_config must not hold {instruction}", "");
	const char *why = take_keys(a, out);
	return why != NULL ? why : take_references(a, out);
}
