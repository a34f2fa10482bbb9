/* Doctor: folders, sockets and programs, held against what pinfold-sandboxd makes and needs (sandboxd/main.c). */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "lib/own.h"
#include "lib/place.h"

enum owner { ROOT, STORED };
enum group { G_ROOT, G_STORED, G_WEB, G_SHARED };

struct want {
	enum place in;
	const char *name;
	mode_t type, mode;
	enum owner owner;
	enum group group;
};

static const struct want state_rows[] = {{PLACE_STATE, "", S_IFDIR, 0711, ROOT, G_ROOT},
					 {PLACE_STATE, "/store", S_IFDIR, 0700, STORED, G_STORED}};
static const struct want log_rows[] = {{PLACE_LOG, "", S_IFDIR, 0700, STORED, G_STORED}};
static const struct want run_rows[] = {{PLACE_RUN, "", S_IFDIR, 0711, ROOT, G_ROOT},
				       {PLACE_RUN, "/public", S_IFDIR, 0750, ROOT, G_WEB},
				       {PLACE_RUN, "/store", S_IFDIR, 0710, STORED, G_SHARED},
				       {PLACE_RUN, "/admin", S_IFDIR, 0700, ROOT, G_ROOT},
				       {PLACE_RUN, "/box", S_IFDIR, 0700, ROOT, G_ROOT}};
static const struct want socket_rows[] = {{PLACE_RUN, "/" PLACE_FCGI_SOCK, S_IFSOCK, 0660, ROOT, G_WEB},
					  {PLACE_RUN, "/" PLACE_STORE_SOCK, S_IFSOCK, 0660, ROOT, G_SHARED},
					  {PLACE_RUN, "/" PLACE_ADMIN_SOCK, S_IFSOCK, 0600, ROOT, G_ROOT}};

static void one(struct doctor *d, const struct want *w)
{
	const struct cf_role *stored = conf_role(&d->conf, "stored");
	uid_t uid = w->owner == ROOT ? 0 : stored->uid;
	gid_t gid = w->group == G_ROOT     ? 0
		    : w->group == G_STORED ? stored->gid
		    : w->group == G_WEB    ? d->conf.global.web_gid
					   : d->conf.shared_gid;
	char path[800];
	struct stat st;

	snprintf(path, sizeof path, "%s%s", place_dir(w->in), w->name);
	if (lstat(path, &st) != 0) {
		/* What the service makes at its start may be missing before. */
		found(d, d->sandboxd != 0 ? DOCTOR_ERROR : DOCTOR_WARN, "%s: %s", path, strerror(errno));
		remedy(d, "systemctl restart pinfold makes it");
		return;
	}
	unsigned mode = st.st_mode & 07777u;
	if ((st.st_mode & S_IFMT) != w->type) {
		found(d, DOCTOR_ERROR, "%s is no %s", path, w->type == S_IFDIR ? "folder" : "socket");
		remedy(d, "mv %s aside, and systemctl restart pinfold", path);
	} else if (st.st_uid != uid || (st.st_gid != gid && (mode & 070) != 0)) {
		found(d, DOCTOR_ERROR, "%s belongs to %u:%u, not to %u:%u", path, st.st_uid, st.st_gid, uid, gid);
		remedy(d, "chown %s%u:%u %s", w->owner == STORED && w->in != PLACE_RUN ? "-R " : "", uid, gid, path);
	} else if ((mode & ~w->mode) != 0) {
		found(d, DOCTOR_ERROR, "%s is open to others (mode %04o, not %04o)", path, mode, w->mode);
		remedy(d, "chmod %04o %s", w->mode, path);
	} else if ((mode & w->mode) != w->mode) {
		found(d, DOCTOR_ERROR, "%s is closed to those who need it (mode %04o, not %04o)", path, mode, w->mode);
		remedy(d, "chmod %04o %s", w->mode, path);
	}
}

static void some(struct doctor *d, const struct want *rows, size_t n)
{
	if (!need_conf(d) || conf_role(&d->conf, "stored") == NULL)
		return;
	for (size_t i = 0; i < n; i++)
		one(d, &rows[i]);
}

#define SOME(d, rows) some(d, rows, sizeof(rows) / sizeof *(rows))

static void state(struct doctor *d)
{
	SOME(d, state_rows);
}

static void log_folder(struct doctor *d)
{
	SOME(d, log_rows);
}

static void run(struct doctor *d)
{
	if (d->sandboxd == 0)
		found(d, DOCTOR_SKIPPED, "no service runs that would have made them");
	else
		SOME(d, run_rows);
}

static void sockets(struct doctor *d)
{
	if (d->sandboxd == 0)
		found(d, DOCTOR_SKIPPED, "no service runs that would have made them");
	else
		SOME(d, socket_rows);
}

/* Who may write to a folder on the way may exchange what is below it. */
static void ways(struct doctor *d)
{
	static const enum place places[] = {PLACE_SYSCONF, PLACE_STATE, PLACE_LOG, PLACE_RUN, PLACE_LIBEXEC};
	char part[800];
	struct stat st;

	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		const char *path = place_dir(places[i]);
		for (const char *end = strchr(path + 1, '/'); end != NULL; end = strchr(end + 1, '/')) {
			snprintf(part, sizeof part, "%.*s", (int)(end - path), path);
			if (lstat(part, &st) != 0)
				break;
			unsigned mode = st.st_mode & 07777u;
			/* Systems have links such as /var/run; the service names those that it refuses. */
			if (S_ISLNK(st.st_mode))
				found(d, DOCTOR_WARN, "%s is a link", part);
			else if (st.st_uid != 0 || ((mode & 022) != 0 && (mode & S_ISVTX) == 0))
				found(d, DOCTOR_ERROR, "%s: uid %u, mode %04o: others may exchange what is below it",
				      part, st.st_uid, mode);
			else if ((mode & 01) == 0)
				found(d, DOCTOR_ERROR, "%s: mode %04o: the service's users cannot pass", part, mode);
		}
	}
}

static void programs(struct doctor *d)
{
	static const char *const names[] = {"pinfold-stored",     "pinfold-fcgi",     "pinfold-gateway",
					    "pinfold-steward",    "pinfold-push",     "pinfold-conf",
					    "box/pinfold-runner", "box/pinfold-agent"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char path[800];
		struct stat st;
		snprintf(path, sizeof path, "%s/%s", place_dir(PLACE_LIBEXEC), names[i]);
		if (lstat(path, &st) != 0)
			found(d, DOCTOR_ERROR, "%s: %s", path, strerror(errno));
		else if (!S_ISREG(st.st_mode) || (st.st_mode & 0111) != 0111)
			found(d, DOCTOR_ERROR, "%s is no program that others may run (mode %04o)", path,
			      st.st_mode & 07777u);
		else if (st.st_uid != 0 || (st.st_mode & 022) != 0)
			found(d, DOCTOR_ERROR, "%s may be changed by others than root (uid %u, mode %04o)", path,
			      st.st_uid, st.st_mode & 07777u);
	}
}

const struct doctor_check doctor_files[] = {
    {"files.programs", "the service's programs are installed, and root's alone",
     "install Pinfold again: apt-get install --reinstall pinfold, or make install", programs},
    {"files.ways", "nobody else can exchange a folder on the way to Pinfold's own", "chown root and chmod go-w it",
     ways},
    {"files.state", "the store's folder is its user's alone", "chown and chmod it as said", state},
    {"files.log", "the audit log's folder is the store's user's alone", "chown and chmod it as said", log_folder},
    {"files.run", "folders of sockets and boxes let in whom they should, and nobody else",
     "systemctl restart pinfold makes them right", run},
    {"files.sockets", "the sockets are there and let in whom they should", "systemctl restart pinfold", sockets},
    {0}};
