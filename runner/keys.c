/*
 * See keys.h. A value is here, in the memory of process 1, which nobody in the box may look into, and in what the agent
 * is given: its environment at exec, or a file of its own that goes as soon as it was read. Never in an argument, never
 * in the result. What it is used for is the agent's affair; that its children see what it has, is not to be hindered.
 */
#include "runner/keys.h"
#include "lib/num.h"
#include "lib/own.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

static const char workspace[] = "/workspace/";

/* Is it what a configuration text can hold whatever is done to it: printable ASCII without a quote or a backslash? */
static bool plain(const struct secret *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->p[i] < 0x21 || s->p[i] > 0x7e || strchr("\"'\\`{}$", s->p[i]) != NULL)
			return false;
	return true;
}

/* A value into the agent's environment, which cannot hold a NUL. */
static bool export(struct keys *k, struct plan *p, size_t i)
{
	char line[64 + 1 + KEYMASK_MOST + 1];
	const struct secret *s = &k->value[i];
	size_t n = strlen(p->keys[i].variable), at = 0;
	if (memchr(s->p, 0, s->n) != NULL || n > 64 || s->n > KEYMASK_MOST)
		return false;
	memcpy(line, p->keys[i].variable, n);
	line[n] = '=';
	memcpy(line + n + 1, s->p, s->n);
	line[n + 1 + s->n] = 0;
	bool ok = secret_set(&k->variable[i], line, n + s->n + 2);
	wipe(line, sizeof line);
	while (p->agent.env[at])
		at++;
	if (!ok || at >= PLAN_ENV)
		return false;
	p->agent.env[at] = (const char *)k->variable[i].p;
	p->agent.env[at + 1] = NULL;
	return true;
}

static const char *take_one(struct keys *k, struct plan *p, size_t i, const struct secrets *given)
{
	const struct plan_key *w = &p->keys[i];
	const struct secret *s = secrets_find(given, w->secret);
	if (w->made_up == KEY_REAL && (!s || !keymask_add(&k->mask, s->p, s->n)))
		return "a key of the agent is missing, or too short or too long to be one";
	if (w->made_up == KEY_REAL && w->plain && !plain(s))
		return "a key of the agent holds what its configuration could take for something else";
	if (w->made_up == KEY_UNSET)
		return NULL;
	if (!secret_set(&k->value[i], w->made_up ? w->value.p : s->p, w->made_up ? w->value.n : s->n) ||
	    (*w->variable && !export(k, p, i)))
		return "a key of the agent cannot be held";
	return NULL;
}

const char *keys_take(struct keys *k, struct plan *p, int from)
{
	struct secrets given = {.n = 0};
	const char *why = NULL;
	*k = (struct keys){.plan = p, .watch = -1};
	bool real = false;
	for (uint32_t i = 0; i < p->keys_n; i++)
		real = real || p->keys[i].made_up == KEY_REAL;
	if (real && !secrets_read(&given, from))
		why = "sandboxd gave no keys";
	for (uint32_t i = 0; i < p->keys_n && !why; i++)
		why = take_one(k, p, i, &given);
	secrets_wipe(&given);
	return why;
}

int keys_write(const void *arg)
{
	const struct keys *k = arg;
	own_fd int dir = open(workspace, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	for (uint32_t i = 0; dir >= 0 && i < k->plan->keys_n; i++) {
		const struct plan_key *w = &k->plan->keys[i];
		if (!*w->file || w->made_up == KEY_UNSET)
			continue;
		own_fd int fd = openat(dir, w->file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 || !write_all(fd, k->value[i].p, k->value[i].n)) {
			dprintf(2, "cannot write a key's file: %s", strerror(errno));
			return 1;
		}
	}
	return dir < 0;
}

static void path_of(const struct plan_key *w, char out[sizeof workspace + 80])
{
	snprintf(out, sizeof workspace + 80, "%s%s", workspace, w->file);
}

void keys_watch(struct keys *k)
{
	char path[sizeof workspace + 80];
	k->until = timer_ms() + KEYS_FILE_MS;
	for (uint32_t i = 0; i < k->plan->keys_n; i++) {
		const struct plan_key *w = &k->plan->keys[i];
		k->of[i] = -1;
		if (!*w->file || w->made_up == KEY_UNSET)
			continue;
		if (k->watch < 0)
			k->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
		path_of(w, path);
		k->of[i] = k->watch < 0 ? -1 : inotify_add_watch(k->watch, path, IN_CLOSE);
		k->files |= 1u << i;
		/* Unwatched it would stay its whole time. */
		if (k->of[i] < 0)
			k->until = timer_ms() + KEYS_FILE_MS / 10;
	}
}

/* As the agent, whose folder it is in, and so as nobody who could remove more than the agent can itself. */
static void forget(struct keys *k, uint32_t i)
{
	char path[sizeof workspace + 80];
	path_of(&k->plan->keys[i], path);
	k->files &= ~(1u << i);
	if (!launch_as(LAUNCH_UID))
		return;
	(void)unlink(path);
	launch_as(0);
}

void keys_noticed(struct keys *k, uint64_t now)
{
	char told[4096] __attribute__((aligned(8)));
	ssize_t n = k->watch < 0 ? 0 : read(k->watch, told, sizeof told);
	for (ssize_t at = 0; n > 0 && at + (ssize_t)sizeof(struct inotify_event) <= n;) {
		const struct inotify_event *e = (const void *)(told + at);
		at += (ssize_t)(sizeof *e + e->len);
		for (uint32_t i = 0; i < k->plan->keys_n; i++)
			if ((k->files & 1u << i) && k->of[i] == e->wd)
				forget(k, i);
	}
	for (uint32_t i = 0; i < k->plan->keys_n && now >= k->until; i++)
		if (k->files & 1u << i)
			forget(k, i);
	if (!k->files && k->watch >= 0)
		close(steal_fd(&k->watch));
}

void keys_wipe(struct keys *k)
{
	for (size_t i = 0; i < PLAN_KEYS; i++) {
		secret_wipe(&k->value[i]);
		secret_wipe(&k->variable[i]);
	}
	keymask_wipe(&k->mask);
}
