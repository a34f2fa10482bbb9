/* Doctor: the running processes, seen from /proc and through the admin socket. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/admin.h"
#include "cli/attack.h"
#include "cli/doctor.h"
#include "config.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/place.h"

enum { DAY_MS = 86400000, SOON_DAYS = 14, CHILDREN = 5 };

static const char *const children[CHILDREN] = {"pinfold-stored", "pinfold-gateway", "pinfold-fcgi", "pinfold-steward",
					       "pinfold-push"};

/* A small file of /proc; its length, or -1. */
static ssize_t proc_read(pid_t pid, const char *name, char *out, size_t room)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	own_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, room - 1);
	out[n > 0 ? n : 0] = '\0';
	return n;
}

/* The program that a process runs, without what Linux adds when its file is gone. */
static bool runs(pid_t pid, const char *name, char exe[700], bool *gone)
{
	static const char deleted[] = " (deleted)";
	char link[64];

	snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
	ssize_t n = readlink(link, exe, 699);
	if (n <= 0)
		return false;
	exe[n] = '\0';
	size_t tail = sizeof deleted - 1;
	*gone = (size_t)n > tail && strcmp(exe + n - tail, deleted) == 0;
	if (*gone)
		exe[(size_t)n - tail] = '\0';
	const char *base = strrchr(exe, '/');
	return base != NULL && strcmp(base + 1, name) == 0;
}

/* state and parent: what follows the name in parentheses. */
static bool stat_of(pid_t pid, char *state, pid_t *parent)
{
	char text[1024];
	int ppid;

	if (proc_read(pid, "stat", text, sizeof text) <= 0)
		return false;
	const char *end = strrchr(text, ')');
	if (end == NULL || sscanf(end + 1, " %c %d", state, &ppid) != 2)
		return false;
	*parent = ppid;
	return true;
}

/* Calls take for each process until it says true. */
static pid_t each_process(bool (*take)(pid_t pid, void *with), void *with)
{
	DIR *dir = opendir("/proc");
	pid_t hit = 0;

	for (struct dirent *e; hit == 0 && dir != NULL && (e = readdir(dir)) != NULL;) {
		uint64_t pid;
		if (num_u64(e->d_name, strlen(e->d_name), 1, INT32_MAX, &pid) && take((pid_t)pid, with))
			hit = (pid_t)pid;
	}
	if (dir != NULL)
		closedir(dir);
	return hit;
}

/* This instance's: by the PINFOLD_ROOT that it was started with. */
static bool is_sandboxd(pid_t pid, void *with)
{
	static char env[65536]; /* too large for the stack */
	char exe[700], want[400];
	bool gone;

	(void)with;
	if (!runs(pid, "pinfold-sandboxd", exe, &gone))
		return false;
	ssize_t n = proc_read(pid, "environ", env, sizeof env);
	snprintf(want, sizeof want, "PINFOLD_ROOT=%s", place_root());
	for (const char *p = env; n > 0 && p < env + n; p += strlen(p) + 1) {
		size_t len = strlen(p);
		if (strncmp(p, "PINFOLD_ROOT=", 13) != 0)
			continue;
		if (len > 14 && p[len - 1] == '/')
			len--;
		return len == strlen(want) && strncmp(p, want, len) == 0;
	}
	return n >= 0 && place_root()[0] == '\0';
}

struct child {
	pid_t parent;
	const char *name;
};

static bool is_child(pid_t pid, void *with)
{
	const struct child *c = with;
	char exe[700], state;
	bool gone;
	pid_t parent;

	return runs(pid, c->name, exe, &gone) && stat_of(pid, &state, &parent) && parent == c->parent;
}

static pid_t child_of(const struct doctor *d, const char *name)
{
	return each_process(is_child, &(struct child){d->sandboxd, name});
}

static bool held(void)
{
	own_fd int fd = open(place_dir(PLACE_RUN), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0;
}

static void running(struct doctor *d)
{
	struct st_metrics_are m;
	char state = '?';
	pid_t parent;

	d->sandboxd = each_process(is_sandboxd, NULL);
	if (d->sandboxd == 0) {
		char path[700];
		snprintf(path, sizeof path, "%s/" PLACE_FCGI_SOCK, place_dir(PLACE_RUN));
		found(d, DOCTOR_ERROR, "pinfold-sandboxd does not run%s",
		      held()                    ? ", though something holds its folder"
		      : access(path, F_OK) == 0 ? ", though a socket is left from one that did"
						: "");
		return;
	}
	if (stat_of(d->sandboxd, &state, &parent) && (state == 'T' || state == 'Z')) {
		found(d, DOCTOR_ERROR, "pinfold-sandboxd (%d) is %s", (int)d->sandboxd,
		      state == 'T' ? "stopped" : "dead");
		remedy(d, "kill -CONT %d, or systemctl restart pinfold", (int)d->sandboxd);
	}
	d->admin = admin_open();
	enum err e =
	    d->admin == NULL ? ERR_INTERNAL_ERROR : st_call_stat(d->admin, &(struct st_stat){0}, NULL, &d->stats, NULL);
	if (e != ERR_OK) {
		found(d, DOCTOR_ERROR, "the store does not answer: %s", err_code(e));
		remedy(d, "journalctl -u pinfold says why; then systemctl restart pinfold");
		if (d->admin != NULL)
			ask_free(d->admin);
		d->admin = NULL;
		return;
	}
	if (st_call_metrics(d->admin, &(struct st_metrics){0}, NULL, &m, NULL) == ERR_OK)
		buf_add(&d->metrics, m.text.p, m.text.n);
	found(d, DOCTOR_OK, "pinfold-sandboxd %d, and the store answers", (int)d->sandboxd);
}

bool doctor_metric(struct doctor *d, const char *name, uint64_t *value)
{
	size_t n = strlen(name);
	const char *text = d->metrics.n > 0 ? buf_cstr(&d->metrics) : NULL;

	for (const char *p = text; p != NULL; p = (p = strchr(p, '\n')) != NULL ? p + 1 : NULL)
		if (strncmp(p, name, n) == 0 && p[n] == ' ') {
			*value = strtoull(p + n, NULL, 10);
			return true;
		}
	return false;
}

static void processes(struct doctor *d)
{
	if (d->sandboxd == 0) {
		found(d, DOCTOR_SKIPPED, "the service does not run");
		return;
	}
	for (size_t i = 0; i < CHILDREN; i++) {
		pid_t pid = child_of(d, children[i]), parent;
		char state = '?', name[80];
		uint64_t up = 1;
		snprintf(name, sizeof name, "pinfold_process_up{process=\"%s\"}", children[i] + 8);
		if (pid == 0 || !stat_of(pid, &state, &parent)) {
			found(d, DOCTOR_ERROR, "%s does not run", children[i]);
		} else if (state == 'T' || state == 't' || state == 'Z') {
			found(d, DOCTOR_ERROR, "%s (%d) is %s", children[i], (int)pid,
			      state == 'Z' ? "dead" : "stopped");
			remedy(d, "kill %d: the service starts it again", (int)pid);
		} else if (doctor_metric(d, name, &up) && up == 0 && strcmp(children[i], "pinfold-fcgi") != 0) {
			found(d, DOCTOR_ERROR, "%s has no connection to the store", children[i]);
		}
	}
}

/* What each process must have given up: see lib/confine.c. Builds for tests leave the filter out. */
static void confined(struct doctor *d)
{
	static const struct {
		const char *key, *value, *say;
	} rows[] = {{"\nNoNewPrivs:\t", "1", "may gain rights by running a program"},
		    {"\nSeccomp:\t", "2", "has no list of system calls"},
		    {"\nCapEff:\t", "0000000000000000", "has capabilities"},
		    {"\nCapPrm:\t", "0000000000000000", "has capabilities that it may use"}};
	char text[8192];

	if (d->sandboxd == 0) {
		found(d, DOCTOR_SKIPPED, "the service does not run");
		return;
	}
	for (size_t i = 0; i < CHILDREN; i++) {
		pid_t pid = child_of(d, children[i]);
		if (pid == 0 || proc_read(pid, "status", text, sizeof text) <= 0)
			continue;
		for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
			const char *at = strstr(text, rows[k].key);
			size_t n = strlen(rows[k].value);
			if (at == NULL || strncmp(at + strlen(rows[k].key), rows[k].value, n) != 0)
				found(d, DOCTOR_WARN, "%s %s", children[i], rows[k].say);
		}
	}
}

static void older(struct doctor *d, const char *name, pid_t pid)
{
	char exe[700], link[64];
	struct stat running_, installed;
	bool gone;

	snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
	if (pid == 0 || !runs(pid, name, exe, &gone) || stat(link, &running_) != 0)
		return;
	if (stat(exe, &installed) != 0)
		found(d, DOCTOR_WARN, "%s runs, and its file %s is gone", name, exe);
	else if (running_.st_ino != installed.st_ino || running_.st_dev != installed.st_dev)
		found(d, DOCTOR_WARN, "%s (%d) is another than the installed one", name, (int)pid);
}

static void version(struct doctor *d)
{
	if (d->sandboxd == 0) {
		found(d, DOCTOR_SKIPPED, "the service does not run");
		return;
	}
	older(d, "pinfold-sandboxd", d->sandboxd);
	for (size_t i = 0; i < CHILDREN; i++)
		older(d, children[i], child_of(d, children[i]));
	found(d, DOCTOR_OK, "what runs is what is installed (%s)", VERSION);
}

/* When a process came to be, in seconds of the wall clock; 0: unknown. */
static time_t born_at(pid_t pid)
{
	char text[4096], line[256];
	unsigned long long ticks = 0, boot = 0;

	if (proc_read(pid, "stat", text, sizeof text) <= 0)
		return 0;
	const char *at = strrchr(text, ')');
	for (int field = 2; at != NULL && field < 22; field++)
		at = strchr(at + 1, ' ');
	FILE *f = fopen("/proc/stat", "re");
	while (f != NULL && fgets(line, sizeof line, f) != NULL)
		if (sscanf(line, "btime %llu", &boot) == 1)
			break;
	if (f != NULL)
		fclose(f);
	if (at == NULL || sscanf(at, " %llu", &ticks) != 1 || boot == 0)
		return 0;
	return (time_t)(boot + ticks / (unsigned long long)sysconf(_SC_CLK_TCK));
}

/* Was a secret written after the process came to be? Once it has been told to read them anew nobody knows. */
static void secrets_since(struct doctor *d)
{
	char dir[512], file[800];
	struct stat st;
	time_t born = born_at(d->sandboxd);

	snprintf(dir, sizeof dir, "%s/secrets", place_dir(PLACE_SYSCONF));
	DIR *list = born != 0 ? opendir(dir) : NULL;
	for (struct dirent *e; list != NULL && (e = readdir(list)) != NULL;) {
		snprintf(file, sizeof file, "%s/%s", dir, e->d_name);
		if (e->d_name[0] != '.' && stat(file, &st) == 0 && S_ISREG(st.st_mode) && st.st_mtim.tv_sec > born + 1)
			found(d, DOCTOR_WARN, "%s was written after the service started", file);
	}
	if (list != NULL)
		closedir(list);
}

/* Is what the files say in force? */
static void applied(struct doctor *d)
{
	struct st_reload_is is;

	if (!need_conf(d) || !need_service(d))
		return;
	enum err e = st_call_reload_state(d->admin, &(struct st_reload_state){0}, NULL, &is, NULL);
	if (e != ERR_OK) {
		found(d, DOCTOR_SKIPPED, "the store does not say what is in force: %s", err_code(e));
		return;
	}
	if (is.number > 0 && !is.going && !is.applied)
		found(d, DOCTOR_WARN, "the last reload was refused: %.200s", is.why);
	if (is.digest.n != sizeof d->conf_digest || memcmp(is.digest.p, d->conf_digest, sizeof d->conf_digest) != 0)
		found(d, DOCTOR_WARN, "what stands in %s is not what is in force", place_dir(PLACE_SYSCONF));
	if (is.number == 0)
		secrets_since(d);
}

static void soon(struct doctor *d, const char *tenant, const struct st_token_item *t, uint64_t now)
{
	if (t->expires_at == 0 || t->expires_at > now + (uint64_t)SOON_DAYS * DAY_MS)
		return;
	found(d, DOCTOR_WARN, "token %s of %s expires in %" PRIu64 " hours", t->token_id, tenant,
	      (t->expires_at - now) / 3600000);
}

static void tokens(struct doctor *d)
{
	uint64_t now = clock_ms();

	if (!need_conf(d) || !need_service(d))
		return;
	for (uint32_t i = 0; i < d->conf.ntenants; i++) {
		const char *tenant = d->conf.tenants[i].t.name;
		/* Those of the attacks have one only while these go on. */
		if (strcmp(tenant, ATTACK_TENANT) == 0 || strcmp(tenant, ATTACK_NEAR_TENANT) == 0)
			continue;
		struct st_tokens_are got;
		struct wire_bytes part;
		bool bad = false;
		unsigned valid = 0;
		enum err e = st_call_token_list(d->admin, &(struct st_token_list){.tenant = tenant}, NULL, &got, NULL);
		if (e != ERR_OK && e != ERR_TENANT_NOT_FOUND) {
			found(d, DOCTOR_WARN, "tokens of %s cannot be listed: %s", tenant, err_code(e));
			continue;
		}
		while (e == ERR_OK && wire_list_next(&got.items, &part, &bad)) {
			struct st_token_item t;
			if (!st_get_token_item(part.p, part.n, &t) || t.revoked ||
			    (t.expires_at != 0 && t.expires_at <= now))
				continue;
			valid++;
			soon(d, tenant, &t, now);
		}
		if (valid == 0) {
			found(d, DOCTOR_WARN, "tenant %s has no valid token", tenant);
			remedy(d, "pinfold token create --tenant %s", tenant);
		}
	}
}

/* Without any, nobody at all can answer; that one tenant has none may be as it should. */
static void devices(struct doctor *d)
{
	const char *first = NULL;
	unsigned with = 0;

	if (!need_conf(d) || !need_service(d))
		return;
	for (uint32_t i = 0; i < d->conf.ntenants; i++) {
		const char *tenant = d->conf.tenants[i].t.name;
		struct st_devices_are got;
		enum err e = st_call_device_list(d->admin, &(struct st_device_list){.tenant = tenant, .limit = 1}, NULL,
						 &got, NULL);
		if (e == ERR_OK && got.items.n > 0)
			with++;
		else if (first == NULL && strcmp(tenant, ATTACK_TENANT) != 0 && strcmp(tenant, ATTACK_NEAR_TENANT) != 0)
			first = tenant;
	}
	if (with > 0 || first == NULL) {
		found(d, DOCTOR_OK, "%u tenants have devices", with);
	} else {
		found(d, DOCTOR_WARN, "no tenant has a paired device: nobody can answer what agents ask");
		remedy(d, "pinfold --server URL device pair --tenant %s, if agents shall ask people", first);
	}
}

const struct doctor_check doctor_service[] = {
    {"service.processes", "stored, gateway, fcgi and steward run and are connected",
     "journalctl -u pinfold says why a process ends", processes},
    {"service.confined", "each process has given up what it does not need",
     "make install of an ordinary build (apt-get install --reinstall pinfold): those for tests leave walls out",
     confined},
    {"service.version", "the programs that run are those that are installed", "systemctl restart pinfold", version},
    {"service.configuration", "what the configuration's files say is in force",
     "pinfold config check, then systemctl reload pinfold; it says what needs a restart", applied},
    {"tokens", "each tenant has a token, and none is about to expire",
     "pinfold token create --tenant NAME, then pinfold token revoke the old one", tokens},
    {"devices", "somebody has a paired device, to answer what agents ask", "pinfold device pair --tenant NAME",
     devices},
    {0}};
/* Comes first of all: others say more where a service runs. */
const struct doctor_check doctor_running[] = {
    {"service.running", "pinfold-sandboxd runs, and the store answers", "systemctl start pinfold", running}, {0}};
