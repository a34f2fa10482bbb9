/* See doctor_seen.h. Reads /proc only; a box's own files are opened without following links. */
#include "cli/doctor_seen.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/own.h"
#include "lib/place.h"

const char *const seen_spaces[SEEN_SPACES] = {"mnt", "pid", "net", "ipc", "uts", "cgroup", "user"};

static void take_names(pid_t pid, const char *folder, char *out, size_t room)
{
	char path[128];
	size_t n = 0;

	snprintf(path, sizeof path, "/proc/%d/root/%s", (int)pid, folder);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	out[0] = '\0';
	for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
		if (e->d_name[0] != '.' && n + strlen(e->d_name) + 2 < room)
			n += (size_t)snprintf(out + n, room - n, "%s ", e->d_name);
	if (dir != NULL)
		closedir(dir);
}

/* How many of these descriptors of a process lead there. */
static unsigned count_fds(pid_t pid, const char *target)
{
	char path[64], to[256];
	unsigned n = 0;

	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	DIR *dir = opendir(path);
	for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
		ssize_t len = readlinkat(dirfd(dir), e->d_name, to, sizeof to - 1);
		to[len > 0 ? len : 0] = '\0';
		n += strcmp(to, target) == 0;
	}
	if (dir != NULL)
		closedir(dir);
	return n;
}

static void take_fds(pid_t pid, char *out, size_t room)
{
	char path[64], to[256];
	size_t n = 0;

	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	DIR *dir = opendir(path);
	out[0] = '\0';
	for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
		ssize_t len = e->d_name[0] == '.' ? -1 : readlinkat(dirfd(dir), e->d_name, to, sizeof to - 1);
		if (len < 0)
			continue;
		to[len] = '\0';
		if (n + (size_t)len + 20 < room)
			n += (size_t)snprintf(out + n, room - n, "%s %s\n", e->d_name, to);
	}
	if (dir != NULL)
		closedir(dir);
}

/* The group of a controller: a v1 line "N:list:path", or the v2 line. Where its tree is mounted comes from our own
 * mounts. */
static void group_file(const struct seen *s, const char *controller, const char *v1_file, const char *v2_file,
		       char *value, size_t room)
{
	char list[128], path[512], mounts[8192], at[256], type[32], opts[512], file[1200];

	value[0] = '\0';
	seen_text(getpid(), "mounts", mounts, sizeof mounts);
	for (int v2 = 0; v2 <= 1; v2++)
		for (const char *p = s->groups; p != NULL && *p != '\0';
		     p = (p = strchr(p, '\n')) != NULL ? p + 1 : NULL) {
			bool is =
			    v2 ? sscanf(p, "0::%511[^\n]", path) == 1
			       : sscanf(p, "%*d:%127[^:]:%511[^\n]", list, path) == 2 && strcmp(list, controller) == 0;
			for (const char *m = is ? mounts : NULL; m != NULL && *m != '\0';
			     m = (m = strchr(m, '\n')) != NULL ? m + 1 : NULL) {
				if (sscanf(m, "%*s %255s %31s %511s", at, type, opts) != 3 ||
				    strcmp(type, v2 ? "cgroup2" : "cgroup") != 0 ||
				    (!v2 && strstr(opts, controller) == NULL))
					continue;
				snprintf(file, sizeof file, "%s%s/%s", at, path, v2 ? v2_file : v1_file);
				own_fd int fd = open(file, O_RDONLY | O_CLOEXEC);
				ssize_t n = fd < 0 ? -1 : read(fd, value, room - 1);
				value[n > 0 ? n : 0] = '\0';
				if (n > 0)
					return;
			}
		}
}

bool seen_take(const struct doctor *d, struct seen *s, pid_t pid)
{
	char path[64], mine[64], theirs[64];
	uid_t uid;

	*s = (struct seen){0};
	bool there = seen_uid(pid, &s->uid);
	s->stranger = !seen_is_box(&d->conf, s->uid);
	for (size_t i = 0; i < SEEN_SPACES; i++) {
		snprintf(path, sizeof path, "/proc/self/ns/%s", seen_spaces[i]);
		ssize_t a = readlink(path, mine, sizeof mine);
		snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)pid, seen_spaces[i]);
		ssize_t b = readlink(path, theirs, sizeof theirs);
		s->space[i] = a > 0 && b > 0 && (a != b || memcmp(mine, theirs, (size_t)a) != 0);
	}
	seen_text(pid, "mountinfo", s->mounts, sizeof s->mounts);
	seen_text(pid, "limits", s->limits, sizeof s->limits);
	seen_text(pid, "cgroup", s->groups, sizeof s->groups);
	seen_text(seen_parent(pid), "cgroup", s->runner_groups, sizeof s->runner_groups);
	seen_text(pid, "net/dev", s->net, sizeof s->net);
	seen_text(pid, "net/tcp", s->tcp, sizeof s->tcp);
	seen_text(pid, "uid_map", s->uid_map, sizeof s->uid_map);
	group_file(s, "memory", "memory.limit_in_bytes", "memory.max", s->memory, sizeof s->memory);
	group_file(s, "pids", "pids.max", "pids.max", s->pids, sizeof s->pids);
	group_file(s, "none of v1", "", "memory.oom.group", s->oom_group, sizeof s->oom_group);
	take_fds(pid, s->fds, sizeof s->fds);
	take_names(pid, "etc", s->etc, sizeof s->etc);
	take_names(pid, "dev", s->dev, sizeof s->dev);
	seen_text(pid, "root/etc/resolv.conf", s->resolv, sizeof s->resolv);
	seen_text(pid, "stat", s->stat, sizeof s->stat);
	if ((s->parent = seen_parent(pid)) != 0) {
		snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)pid);
		ssize_t k = readlink(path, theirs, sizeof theirs - 1);
		theirs[k > 0 ? k : 0] = '\0';
		s->template = count_fds(seen_parent(s->parent), theirs);
		s->watches = count_fds(seen_parent(s->parent), "anon_inode:[eventfd]");
		snprintf(path, sizeof path, "/proc/%d/exe", (int)s->parent);
		ssize_t n = readlink(path, s->runner, sizeof s->runner - 1);
		s->runner[n > 0 ? n : 0] = '\0';
	}
	/* Last: it is there all the while, and no longer what it was before exec. */
	if (seen_text(pid, "status", s->status, sizeof s->status) <= 0 || !there || !seen_uid(pid, &uid) ||
	    uid != s->uid || s->mounts[0] == '\0' || strstr(s->status, "\nState:\tZ") != NULL)
		return false;
	s->pid = pid;
	return true;
}

/* The value of a line that begins with this, in text; NULL: none. */
static const char *line_of(const char *text, const char *begin)
{
	size_t n = strlen(begin);

	for (const char *p = text; p != NULL && *p != '\0'; p = (p = strchr(p, '\n')) != NULL ? p + 1 : NULL)
		if (strncmp(p, begin, n) == 0)
			return p + n + strspn(p + n, " \t");
	return NULL;
}

static bool in_line(const char *line, const char *word)
{
	const char *hit = line != NULL ? strstr(line, word) : NULL, *end = line != NULL ? strchr(line, '\n') : NULL;

	return hit != NULL && (end == NULL || hit < end);
}

/* The line of mountinfo for a mount point; options and source behind it. */
static const char *mount_of(const struct seen *s, const char *point)
{
	char at[256];

	for (const char *p = s->mounts; *p != '\0'; p = strchr(p, '\n') + 1) {
		if (sscanf(p, "%*s %*s %*s %*s %255s", at) == 1 && strcmp(at, point) == 0)
			return p;
		if (strchr(p, '\n') == NULL)
			return NULL;
	}
	return NULL;
}

static void want_mount(struct doctor *d, const struct seen *s, const char *point, const char *const *words)
{
	const char *m = mount_of(s, point);

	if (m == NULL)
		found(d, DOCTOR_ERROR, "%s is no mount of its own", point);
	for (; m != NULL && *words != NULL; words++)
		if (!in_line(m, *words))
			found(d, DOCTOR_ERROR, "%s is mounted without %s", point, *words);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void descriptors(struct doctor *d, const struct seen *s)
{
	for (const char *p = s->fds; *p != '\0'; p = strchr(p, '\n') + 1) {
		int fd = atoi(p);
		const char *to = strchr(p, ' ') + 1;
		if (fd > 2 || (strncmp(to, "/dev/null\n", 10) != 0 && strncmp(to, "pipe:", 5) != 0))
			found(d, DOCTOR_ERROR, "descriptor %.*s", (int)strcspn(p, "\n"), p);
	}
	if (s->fds[0] == '\0')
		found(d, DOCTOR_SKIPPED, "they could not be seen");
}

/* In the v2 tree ".../pinfold-ID/sN/a" for the agent, r for process 1: what is killed is the group above both. */
static void cgroup(struct doctor *d, const struct seen *s)
{
	const char *agent = line_of(s->groups, "0::"), *runner = line_of(s->runner_groups, "0::");
	size_t a = agent != NULL ? strcspn(agent, "\n") : 0, r = runner != NULL ? strcspn(runner, "\n") : 0;

	if (!in_line(agent, "/pinfold-") || a < 2 || strncmp(agent + a - 2, "/a", 2) != 0)
		found(d, DOCTOR_ERROR, "it is in the group %.*s", (int)a, a > 0 ? agent : "");
	else if (r != a || strncmp(agent, runner, a - 1) != 0 || runner[r - 1] != 'r')
		found(d, DOCTOR_ERROR, "its process 1 is in the group %.*s", (int)r, r > 0 ? runner : "");
}

static void namespaces(struct doctor *d, const struct seen *s)
{
	for (size_t i = 0; i + 1 < SEEN_SPACES; i++)
		if (s->space[i] == 0)
			found(d, DOCTOR_ERROR, "it has the machine's own %s namespace", seen_spaces[i]);
	if (s->template != 0)
		found(d, DOCTOR_ERROR, "it has the mnt namespace that pinfold-sandboxd keeps for all");
}

static void cgroup_limits(struct doctor *d, const struct seen *s)
{
	if (s->memory[0] == '\0')
		found(d, DOCTOR_ERROR, "its memory group cannot be seen");
	else if (strncmp(s->memory, "max", 3) == 0 || strtoull(s->memory, NULL, 10) > 1ull << 50)
		found(d, DOCTOR_ERROR, "its memory has no bound");
	if (s->pids[0] == '\0')
		found(d, DOCTOR_ERROR, "its pids group cannot be seen");
	else if (strncmp(s->pids, "max", 3) == 0)
		found(d, DOCTOR_ERROR, "its processes have no bound");
	found(d, DOCTOR_OK, "memory %llu, processes %llu", strtoull(s->memory, NULL, 10), strtoull(s->pids, NULL, 10));
}

static void oom_group(struct doctor *d, const struct seen *s)
{
	/* Where memory is no v2 controller sandboxd watches the counter of each box, by a descriptor of a kind that
	 * it has for nothing else. */
	if (s->oom_group[0] == '\0' && s->watches == 0)
		found(d, DOCTOR_ERROR, "memory is a v1 controller, and pinfold-sandboxd does not watch its counter");
	else if (s->oom_group[0] == '\0')
		found(d, DOCTOR_OK, "memory is a v1 controller; pinfold-sandboxd watches its counter");
	else if (s->oom_group[0] != '1')
		found(d, DOCTOR_ERROR, "memory.oom.group is not set");
}

static void session(struct doctor *d, const struct seen *s)
{
	int sid = 0, tty = -1;
	const char *end = strrchr(s->stat, ')');

	if (end == NULL || sscanf(end + 1, " %*c %*d %*d %d %d", &sid, &tty) != 2 || sid == 0 || sid == getsid(0) ||
	    tty != 0)
		found(d, DOCTOR_ERROR, "session %d, terminal %d", sid, tty);
}

static void network(struct doctor *d, const struct seen *s)
{
	unsigned n = 0;

	for (const char *p = s->net; p != NULL && *p != '\0'; p = (p = strchr(p, '\n')) != NULL ? p + 1 : NULL) {
		const char *colon = strchr(p, ':'), *end = strchr(p, '\n');
		if (colon == NULL || (end != NULL && colon > end))
			continue;
		p += strspn(p, " ");
		n++;
		if (strncmp(p, "lo:", 3) != 0)
			found(d, DOCTOR_ERROR, "it has the interface %.*s", (int)(colon - p), p);
	}
	if (n == 0)
		found(d, DOCTOR_SKIPPED, "its interfaces could not be seen");
}

static void listener(struct doctor *d, const struct seen *s)
{
	char want[32];
	unsigned n = 0, other = 0;

	snprintf(want, sizeof want, "0100007F:%04X", d->conf.global.gateway_port);
	for (const char *p = s->tcp; p != NULL && *p != '\0'; p = (p = strchr(p, '\n')) != NULL ? p + 1 : NULL) {
		char local[64], state[8];
		if (sscanf(p, " %*d: %63s %*s %7s", local, state) != 2 || strcmp(state, "0A") != 0)
			continue;
		n += strcmp(local, want) == 0;
		other += strcmp(local, want) != 0;
	}
	if (n != 1 || other > 0)
		found(d, DOCTOR_ERROR, "%u listeners of the gateway, %u others", n, other);
}

static void root(struct doctor *d, const struct seen *s)
{
	want_mount(d, s, "/", WORDS(" ro,nosuid,nodev", " - tmpfs "));
}

static void binds(struct doctor *d, const struct seen *s)
{
	want_mount(d, s, "/usr", WORDS(" ro,nosuid,nodev"));
	want_mount(d, s, "/opt/pinfold", WORDS(" ro,nosuid,nodev"));
}

/* Names of a folder that are not among the known ones. */
static void only(struct doctor *d, const char *folder, const char *names, const char *known)
{
	char name[128], word[130];

	if (names[0] == '\0')
		found(d, DOCTOR_SKIPPED, "%s could not be seen", folder);
	for (const char *p = names; sscanf(p, "%127s", name) == 1; p += strlen(name) + 1) {
		snprintf(word, sizeof word, " %s ", name);
		if (strstr(known, word) == NULL)
			found(d, DOCTOR_ERROR, "%s/%s is there", folder, name);
	}
}

static void etc(struct doctor *d, const struct seen *s)
{
	only(d, "/etc", s->etc,
	     " alternatives group hostname hosts ld.so.cache localtime nsswitch.conf passwd resolv.conf ssl ");
	if (line_of(s->resolv, "nameserver") != NULL)
		found(d, DOCTOR_ERROR, "/etc/resolv.conf names a server");
}

static void dev(struct doctor *d, const struct seen *s)
{
	only(d, "/dev", s->dev, " fd full null random shm stderr stdin stdout urandom zero ");
	want_mount(d, s, "/dev", WORDS(" ro,nosuid,noexec"));
}

static void proc(struct doctor *d, const struct seen *s)
{
	const char *m = mount_of(s, "/proc");

	want_mount(d, s, "/proc", WORDS("nosuid,nodev,noexec", " - proc ", "subset=pid"));
	if (m != NULL && !in_line(m, "hidepid=invisible") && !in_line(m, "hidepid=2"))
		found(d, DOCTOR_ERROR, "/proc shows other users' processes");
}

static void workspace(struct doctor *d, const struct seen *s)
{
	static const char *const places[] = {"/workspace", "/tmp", "/dev/shm"};

	for (size_t i = 0; i < 3; i++)
		want_mount(d, s, places[i], WORDS("nosuid,nodev", " - tmpfs ", "size=", "nr_inodes="));
}

static void pivot(struct doctor *d, const struct seen *s)
{
	static const char known[] = " / /usr /lib /lib64 /bin /sbin /etc/alternatives /etc/ssl/certs /etc/ld.so.cache "
				    "/etc/localtime /opt/pinfold /dev /dev/shm /proc /workspace /tmp ";
	char at[256], word[260];
	unsigned roots = 0;

	for (const char *p = s->mounts; p != NULL && *p != '\0'; p = (p = strchr(p, '\n')) != NULL ? p + 1 : NULL) {
		if (sscanf(p, "%*s %*s %*s %*s %255s", at) != 1)
			continue;
		snprintf(word, sizeof word, " %s ", at);
		roots += strcmp(at, "/") == 0;
		/* What the machine has mounted below /usr comes along, read-only: binds looks at that. */
		if (strstr(known, word) == NULL && strncmp(at, "/usr/", 5) != 0)
			found(d, DOCTOR_ERROR, "%s of the machine is mounted", at);
	}
	if (roots != 1)
		found(d, DOCTOR_ERROR, "%u roots are mounted", roots);
}

static void userns(struct doctor *d, const struct seen *s)
{
	unsigned lines = 0, ids = 0, inside, outside, count;

	if (s->space[SEEN_SPACES - 1] == 0)
		found(d, DOCTOR_ERROR, "it has the machine's own user namespace");
	for (const char *p = s->uid_map; p != NULL && *p != '\0'; p = (p = strchr(p, '\n')) != NULL ? p + 1 : NULL)
		if (sscanf(p, "%u %u %u", &inside, &outside, &count) == 3) {
			lines++;
			ids += count;
			if (count > 2 || outside == 0)
				found(d, DOCTOR_ERROR, "its id %u is %u outside, and %u more", inside, outside,
				      count - 1);
		}
	if (lines != 2 || ids != BOX_UIDS)
		found(d, DOCTOR_ERROR, "%u ids in %u ranges instead of runner, agent and bridge", ids, lines);
}

static void ids(struct doctor *d, const struct seen *s)
{
	static const char *const kinds[] = {"Uid:", "Gid:"};
	unsigned v[4];

	if (s->stranger)
		found(d, DOCTOR_ERROR, "its user is %u, which is no box's", s->uid);
	for (size_t k = 0; k < 2; k++) {
		const char *line = line_of(s->status, kinds[k]);
		if (line == NULL || sscanf(line, "%u %u %u %u", &v[0], &v[1], &v[2], &v[3]) != 4) {
			found(d, DOCTOR_SKIPPED, "they could not be seen");
			return;
		}
		for (size_t i = 0; i < 4; i++)
			if (v[i] != s->uid)
				found(d, DOCTOR_ERROR, "%s %u beside %u", kinds[k], v[i], s->uid);
	}
	const char *groups = line_of(s->status, "Groups:");
	if (groups != NULL && strspn(groups, " \t") != strcspn(groups, "\n"))
		found(d, DOCTOR_ERROR, "it has groups: %.*s", (int)strcspn(groups, "\n"), groups);
}

static void rlimits(struct doctor *d, const struct seen *s)
{
	static const struct {
		const char *name;
		unsigned long long most;
	} rows[] = {{"Max core file size", 1},
		    {"Max open files", 1024},
		    {"Max file size", 1ull << 50},
		    {"Max pending signals", 1024},
		    {"Max msgqueue size", 65536}};
	char soft[32], hard[32];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *line = line_of(s->limits, rows[i].name);
		if (line == NULL || sscanf(line, "%31s %31s", soft, hard) != 2)
			found(d, DOCTOR_SKIPPED, "%s could not be seen", rows[i].name);
		else if (strcmp(hard, "unlimited") == 0 || strtoull(hard, NULL, 10) > rows[i].most)
			found(d, DOCTOR_ERROR, "%s: %s", rows[i].name, hard);
	}
}

static void capabilities(struct doctor *d, const struct seen *s)
{
	static const char *const sets[] = {"CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"};

	for (size_t i = 0; i < 5; i++) {
		const char *v = line_of(s->status, sets[i]);
		if (v == NULL || strtoull(v, NULL, 16) != 0)
			found(d, DOCTOR_ERROR, "%s %.16s", sets[i], v != NULL ? v : "unknown");
	}
	const char *nnp = line_of(s->status, "NoNewPrivs:");
	if (nnp == NULL || nnp[0] != '1')
		found(d, DOCTOR_ERROR, "no_new_privs is off");
}

static void seccomp(struct doctor *d, const struct seen *s)
{
	const char *v = line_of(s->status, "Seccomp:");

	if (v == NULL || v[0] != '2')
		found(d, DOCTOR_ERROR, "no filter is loaded");
}

/* Asked of the scheduler itself. Where cores have one thread, or the kernel has none of it, there is nothing to have.
 */
static void core_scheduling(struct doctor *d, const struct seen *s)
{
	unsigned long long cookie;

	if (!seen_core(s->pid, &cookie))
		found(d, DOCTOR_SKIPPED, "the kernel or this processor has none of it");
	else if (cookie == 0)
		found(d, DOCTOR_WARN, "the box has no cookie of its own");
}

static void deathsig(struct doctor *d, const struct seen *s)
{
	if (s->outlived == NULL)
		found(d, DOCTOR_SKIPPED,
		      "tried only with --kill-service, which ends every run; no box is made without it");
	else
		found(d, s->died ? DOCTOR_OK : DOCTOR_ERROR, "%s", s->outlived);
}

static void exec(struct doctor *d, const struct seen *s)
{
	const char *base = strrchr(s->runner, '/');

	if (base == NULL || strcmp(base + 1, "pinfold-runner") != 0)
		found(d, DOCTOR_ERROR, "its parent is %s", s->runner[0] != '\0' ? s->runner : "unknown");
}

static void (*const looks[STEP__COUNT])(struct doctor *d, const struct seen *s) = {
    [STEP_DESCRIPTORS] = descriptors,
    [STEP_CGROUP] = cgroup,
    [STEP_NAMESPACES] = namespaces,
    [STEP_CGROUP_ENTER] = cgroup_limits,
    [STEP_OOM_GROUP] = oom_group,
    [STEP_SESSION] = session,
    [STEP_NETWORK] = network,
    [STEP_LISTENER] = listener,
    [STEP_ROOT] = root,
    [STEP_BINDS] = binds,
    [STEP_ETC] = etc,
    [STEP_DEV] = dev,
    [STEP_PROC] = proc,
    [STEP_WORKSPACE] = workspace,
    [STEP_PIVOT] = pivot,
    [STEP_USERNS] = userns,
    [STEP_IDS] = ids,
    [STEP_RLIMITS] = rlimits,
    [STEP_CORE_SCHEDULING] = core_scheduling,
    [STEP_CAPABILITIES] = capabilities,
    [STEP_DEATHSIG] = deathsig,
    [STEP_SECCOMP] = seccomp,
    [STEP_EXEC] = exec,
};

bool seen_wall(struct doctor *d, const struct seen *s, enum step wall)
{
	if (looks[wall] != NULL)
		looks[wall](d, s);
	return looks[wall] != NULL;
}
