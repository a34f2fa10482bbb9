/* Doctor: the configuration. What is wrong with it is named by the parser itself, with file and line. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/conf_read.h"
#include "cli/doctor.h"
#include "lib/bridged.h"
#include "lib/chan.h"
#include "lib/digest.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/place.h"

enum { SAID_LINES = 3, NOBODY = 65534 };

/* What the parser says is wrong, as the check's detail. */
static bool read_quietly(struct doctor *d, int fd)
{
	static struct conf_files f;
	size_t said = 0;

	conf_files_read(&f, NULL);
	bool good = conf_files_write(&f, fd);
	for (size_t i = 0; i < f.notes.n && i < CONF_NOTES && said < SAID_LINES; i++) {
		const struct conf_note *n = &f.notes.v[i];
		char line[16] = "";
		if (!n->error)
			continue;
		if (n->at.line > 0)
			snprintf(line, sizeof line, ":%u", n->at.line);
		found(d, DOCTOR_ERROR, "%s%s: %s", n->at.file, line, n->text);
		said++;
	}
	if (f.notes.errors > said)
		found(d, DOCTOR_ERROR, "and %zu more", f.notes.errors - said);
	conf_files_free(&f);
	return good;
}

/* Settings that are good by themselves and undo each other. */
static void together(struct doctor *d)
{
	const struct cf_global *g = &d->conf.global;

	if (g->model_heartbeat_seconds > 0 && g->model_heartbeat_seconds >= g->model_idle_seconds) {
		char where[900];
		found(d, DOCTOR_WARN,
		      "model_heartbeat_seconds (%u) is not less than model_idle_seconds (%u): no stream lives to see a "
		      "sign of life",
		      g->model_heartbeat_seconds, g->model_idle_seconds);
		remedy(d, "make model_heartbeat_seconds less, in %s, then systemctl reload pinfold",
		       doctor_where(where, NULL, "", "model_heartbeat_seconds"));
	}
}

static void files(struct doctor *d)
{
	own_fd int fd = bundle_new("pinfold-conf");

	if (fd < 0 || !read_quietly(d, fd) || !bundle_seal(fd)) {
		char path[512];
		if (d->now.verdict == DOCTOR_OK)
			found(d, DOCTOR_ERROR, "cannot be read: %s", strerror(errno));
		snprintf(path, sizeof path, "%s/pinfold.conf", place_dir(PLACE_SYSCONF));
		if (access(path, F_OK) != 0)
			remedy(d, "pinfold setup writes %s; or bring yours back from a backup", path);
		return;
	}
	uint64_t size;
	const char *why = conf_load(&d->conf, fd);
	d->have_conf = why == NULL && sha256_fd(fd, d->conf_digest, &size);
	if (why != NULL)
		found(d, DOCTOR_ERROR, "%s does not fit together: %s", place_dir(PLACE_SYSCONF), why);
	else
		together(d);
	if (d->have_conf)
		found(d, DOCTOR_OK, "%u tenants, %u model profiles, %u agents, %u providers", d->conf.ntenants,
		      d->conf.nprofiles, d->conf.nagents, d->conf.nproviders);
}

static void mode_of(struct doctor *d, const char *path, gid_t reader)
{
	struct stat st;

	if (stat(path, &st) != 0) {
		found(d, DOCTOR_ERROR, "%s: %s", path, strerror(errno));
		return;
	}
	unsigned mode = st.st_mode & 07777u;
	if (st.st_uid != 0) {
		found(d, DOCTOR_ERROR, "%s is owned by uid %u, not by root", path, st.st_uid);
		remedy(d, "chown root %s", path);
	}
	if ((mode & 022) != 0) {
		found(d, DOCTOR_ERROR, "%s may be written by others (mode %04o)", path, mode);
		remedy(d, "chmod go-w %s", path);
	}
	unsigned need = S_ISDIR(st.st_mode) ? 5 : 4;
	if ((mode & need) != need && !(st.st_gid == reader && reader != 0 && (mode >> 3 & need) == need)) {
		found(d, DOCTOR_ERROR, "%s cannot be read by the parser, which is nobody (mode %04o)", path, mode);
		remedy(d, "chmod o+r%s %s", need == 5 ? "x" : "", path);
	}
}

static void modes(struct doctor *d)
{
	static const char *const folders[] = {"", "/providers.d", "/profiles.d", "/tenants.d"};
	struct stat st;
	gid_t reader = stat(place_dir(PLACE_SYSCONF), &st) == 0 ? st.st_gid : 0;

	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
		char path[512], file[800];
		snprintf(path, sizeof path, "%s%s", place_dir(PLACE_SYSCONF), folders[i]);
		mode_of(d, path, reader);
		DIR *dir = opendir(path);
		for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
			size_t n = strlen(e->d_name);
			snprintf(file, sizeof file, "%s/%s", path, e->d_name);
			if (e->d_name[0] != '.' && n > 5 && strcmp(e->d_name + n - 5, ".conf") == 0)
				mode_of(d, file, reader);
		}
		if (dir != NULL)
			closedir(dir);
	}
}

/* Where a box finds it, this machine has it: see sandboxd/box_fs.c. */
static void agent_program(struct doctor *d, const char *agent, const char *program)
{
	static const char inside[] = "/opt/pinfold/";
	char path[900], where[900];

	if (strncmp(program, "/workspace/", 11) == 0 || strncmp(program, "/tmp/", 5) == 0)
		return;
	if (strncmp(program, inside, sizeof inside - 1) == 0)
		snprintf(path, sizeof path, "%s/box/%s", place_dir(PLACE_LIBEXEC), program + sizeof inside - 1);
	else
		snprintf(path, sizeof path, "%s", program);
	if (access(path, X_OK) == 0)
		return;
	found(d, DOCTOR_ERROR, "agent %s: %s: %s", agent, path, strerror(errno));
	remedy(d, "install it (pinfold agent list), or correct command in %s, or remove that profile",
	       doctor_where(where, "agent", agent, "command"));
}

static void agents(struct doctor *d)
{
	if (!need_conf(d))
		return;
	for (uint32_t i = 0; i < d->conf.nagents; i++) {
		const struct cf_agent *a = &d->conf.agents[i];
		/* Behind a bridge there is a second program, the agent's own. */
		uint32_t bridge = bridged_words(a->argv, a->argv_n);
		agent_program(d, a->name, a->argv[0]);
		if (bridge > 0)
			agent_program(d, a->name, a->argv[bridge]);
	}
	if (d->conf.nagents == 0)
		found(d, DOCTOR_ERROR, "no agent is configured");
	for (uint32_t i = 0; i < d->conf.ntenants; i++)
		if (conf_agent(&d->conf, d->conf.tenants[i].t.default_agent) == NULL)
			found(d, DOCTOR_ERROR, "tenant %s has no agent", d->conf.tenants[i].t.name);
}

static bool in_range(const struct cf_global *g, uint64_t id)
{
	return id >= g->box_uid_base && id < (uint64_t)g->box_uid_base + (uint64_t)BOX_UIDS * g->max_boxes;
}

static void roles(struct doctor *d)
{
	if (!need_conf(d))
		return;
	for (uint32_t i = 0; i < d->conf.nroles; i++) {
		const struct cf_role *r = &d->conf.roles[i];
		if (r->uid == 0 || r->gid == 0 || r->uid == NOBODY)
			found(d, DOCTOR_ERROR, "%s would run as %s", r->name, r->uid == NOBODY ? "nobody" : "root");
		if (in_range(&d->conf.global, r->uid) || in_range(&d->conf.global, r->gid))
			found(d, DOCTOR_ERROR, "the user of %s (%u) is one of the boxes'", r->name, r->uid);
		for (uint32_t j = 0; j < i; j++)
			if (d->conf.roles[j].uid == r->uid)
				found(d, DOCTOR_ERROR, "%s and %s are the same user (%u)", d->conf.roles[j].name,
				      r->name, r->uid);
	}
	if (d->now.verdict != DOCTOR_OK) {
		char where[900];
		remedy(d, "give each role a user of its own in \"users\", %s, and systemctl restart pinfold",
		       doctor_where(where, NULL, "", "users"));
	}
	if (d->conf.shared_gid == 0 || d->conf.global.web_gid == 0)
		found(d, DOCTOR_ERROR, "web_group and shared_group must not be root's");
	if (d->conf.shared_gid == d->conf.global.web_gid)
		found(d, DOCTOR_ERROR, "web_group and shared_group are the same: the web server could reach the store");
}

/* name:first:count, of subuid(5) and subgid(5). */
static void sub_ids(struct doctor *d, const char *path)
{
	char line[512];
	const struct cf_global *g = &d->conf.global;
	uint64_t end = (uint64_t)g->box_uid_base + (uint64_t)BOX_UIDS * g->max_boxes, first, count;
	FILE *f = fopen(path, "re");

	while (f != NULL && fgets(line, sizeof line, f) != NULL) {
		char *name = line, *from = strchr(line, ':'), *many = from != NULL ? strchr(from + 1, ':') : NULL;
		if (many == NULL)
			continue;
		*from++ = *many++ = '\0';
		if (num_u64(from, strlen(from), 0, UINT32_MAX, &first) &&
		    num_u64(many, strcspn(many, "\n"), 0, UINT32_MAX, &count) && first < end &&
		    first + count > g->box_uid_base)
			found(d, DOCTOR_ERROR, "%s gives %s ids from %llu on, among the boxes' own", path, name,
			      (unsigned long long)first);
	}
	if (f != NULL)
		fclose(f);
}

static void range(struct doctor *d)
{
	unsigned users = 0;

	if (!need_conf(d))
		return;
	const struct cf_global *g = &d->conf.global;
	setpwent();
	for (const struct passwd *p; (p = getpwent()) != NULL;)
		if ((in_range(g, p->pw_uid) || in_range(g, p->pw_gid)) && users++ < 3)
			found(d, DOCTOR_ERROR, "the user %s (%u) is among the boxes' ids", p->pw_name, p->pw_uid);
	endpwent();
	setgrent();
	for (const struct group *p; (p = getgrent()) != NULL;)
		if (in_range(g, p->gr_gid) && users++ < 3)
			found(d, DOCTOR_ERROR, "the group %s (%u) is among the boxes' ids", p->gr_name, p->gr_gid);
	endgrent();
	sub_ids(d, "/etc/subuid");
	sub_ids(d, "/etc/subgid");
	if (d->now.verdict != DOCTOR_OK) {
		char where[900];
		remedy(d, "write another box_uid_base, of ids that nobody has, to %s, and systemctl restart pinfold",
		       doctor_where(where, NULL, "", "box_uid_base"));
	}
	found(d, DOCTOR_OK, "ids %u to %u are the boxes' alone", g->box_uid_base,
	      g->box_uid_base + BOX_UIDS * g->max_boxes - 1);
}

const struct doctor_check doctor_conf[] = {
    {"config.files", "the configuration is read, and its names refer to something",
     "correct the line that is named, then run pinfold config check", files},
    {"config.modes", "files and folders of the configuration are root's, and the parser can read them",
     "chown root and chmod go-w what is named", modes},
    {"config.agents", "the program of each agent profile is there",
     "install the program (pinfold agent install NAME), or correct command in profiles.d/*.conf; pinfold agent test "
     "NAME "
     "then tries it",
     agents},
    {"ids.roles", "each process has a user of its own, none is root, nobody or a box's",
     "give each role of \"users\" in pinfold.conf a user of its own", roles},
    {"ids.range", "no user, group or subordinate id is among those of boxes",
     "move box_uid_base in pinfold.conf to ids that nobody has", range},
    {0}};
