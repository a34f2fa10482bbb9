/* Doctor: the kernel and the machine. What the kernel has is asked of the kernel, not of its version. */
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "lib/num.h"
#include "lib/own.h"
#include "lib/place.h"

enum { LANDLOCK_VERSION = 1, LANDLOCK_LEAST = 2, FILES_LEAST = 1024, FILES_GOOD = 8192 };

static void kernel(struct doctor *d)
{
	struct utsname u;
	unsigned major = 0, minor = 0;

	if (uname(&u) != 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2)
		found(d, DOCTOR_WARN, "its version cannot be read");
	else if (major < 5 || (major == 5 && minor < 19))
		found(d, DOCTOR_ERROR, "Linux %s; 5.19 is the first that has every wall", u.release);
	else if (major < 6 || (major == 6 && minor < 1))
		found(d, DOCTOR_WARN, "Linux %s; Pinfold is tested from 6.1 on", u.release);
	else
		found(d, DOCTOR_OK, "Linux %s", u.release);
}

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list; (p = strstr(p, word)) != NULL; p += n)
		if ((p == list || strchr(" ,\n", p[-1]) != NULL) && strchr(" ,\n", p[n]) != NULL)
			return true;
	return false;
}

static void cgroups(struct doctor *d)
{
	static const char *const need[] = {"memory", "pids", "cpu"};
	char v2[256] = "", have[512] = "", path[300];
	const char *where[3] = {NULL, NULL, NULL};
	FILE *f = setmntent("/proc/self/mounts", "re");

	for (struct mntent *m; f != NULL && (m = getmntent(f)) != NULL;) {
		if (strcmp(m->mnt_type, "cgroup2") == 0)
			snprintf(v2, sizeof v2, "%s", m->mnt_dir);
		for (size_t i = 0; i < 3; i++)
			if (strcmp(m->mnt_type, "cgroup") == 0 && has_word(m->mnt_opts, need[i]))
				where[i] = "v1";
	}
	if (f != NULL)
		endmntent(f);
	if (v2[0] == '\0') {
		found(d, DOCTOR_ERROR, "no cgroup2 tree is mounted");
		return;
	}
	snprintf(path, sizeof path, "%s/cgroup.controllers", v2);
	FILE *c = fopen(path, "re");
	if (c != NULL && fgets(have, sizeof have, c) == NULL)
		have[0] = '\0';
	if (c != NULL)
		fclose(c);
	for (size_t i = 0; i < 3; i++) {
		if (has_word(have, need[i]))
			where[i] = "v2";
		if (where[i] == NULL) {
			found(d, i < 2 ? DOCTOR_ERROR : DOCTOR_WARN, "the controller %s is missing", need[i]);
			remedy(d,
			       "add cgroup_enable=%s to GRUB_CMDLINE_LINUX in /etc/default/grub and update-grub, or "
			       "mount its tree",
			       need[i]);
		}
	}
	found(d, DOCTOR_OK, "tree %s; memory %s, pids %s, cpu %s", v2, where[0], where[1], where[2]);
}

static void landlock(struct doctor *d)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION);

	if (abi < 0)
		found(d, DOCTOR_ERROR, "the kernel has no Landlock, or it is switched off: %s", strerror(errno));
	else if (abi < LANDLOCK_LEAST)
		found(d, DOCTOR_ERROR, "ABI %ld; %d is needed", abi, LANDLOCK_LEAST);
	else
		found(d, DOCTOR_OK, "ABI %ld", abi);
}

static void seccomp(struct doctor *d)
{
	char text[256] = "";
	FILE *f = fopen("/proc/sys/kernel/seccomp/actions_avail", "re");

	if (f == NULL || fgets(text, sizeof text, f) == NULL)
		text[0] = '\0';
	if (f != NULL)
		fclose(f);
	if (prctl(PR_GET_SECCOMP) < 0)
		found(d, DOCTOR_ERROR, "the kernel has no seccomp: %s", strerror(errno));
	else if (text[0] != '\0' && (!has_word(text, "errno") || !has_word(text, "kill_process")))
		found(d, DOCTOR_ERROR, "the kernel lacks the actions errno and kill_process");
	else
		found(d, DOCTOR_OK, "filters are there");
}

static uint64_t setting(const char *path, uint64_t missing)
{
	char text[64];
	FILE *f = fopen(path, "re");

	if (f == NULL)
		return missing;
	if (fgets(text, sizeof text, f) == NULL)
		text[0] = '\0';
	fclose(f);
	return strtoull(text, NULL, 10);
}

static void namespaces(struct doctor *d)
{
	static const char *const kinds[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};
	char path[128];

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		snprintf(path, sizeof path, "/proc/self/ns/%s", kinds[i]);
		if (access(path, F_OK) != 0)
			found(d, DOCTOR_ERROR, "the kernel has no %s namespaces", kinds[i]);
		snprintf(path, sizeof path, "/proc/sys/user/max_%s_namespaces", kinds[i]);
		uint64_t most = setting(path, 1000);
		if (most < 32) {
			found(d, DOCTOR_ERROR, "user.max_%s_namespaces is %llu", kinds[i], (unsigned long long)most);
			remedy(d, "sysctl user.max_%s_namespaces=10000, and in /etc/sysctl.d", kinds[i]);
		}
	}
}

static void open_files(struct doctor *d)
{
	struct rlimit r;
	unsigned long long most;

	if (d->sandboxd != 0 && prlimit(d->sandboxd, RLIMIT_NOFILE, NULL, &r) == 0)
		most = r.rlim_max;
	else if (getrlimit(RLIMIT_NOFILE, &r) == 0)
		most = r.rlim_max;
	else
		return;
	found(d,
	      most < FILES_LEAST  ? DOCTOR_ERROR
	      : most < FILES_GOOD ? DOCTOR_WARN
				  : DOCTOR_OK,
	      "%llu open files at most", most);
}

static void sync_(struct doctor *d)
{
	struct timex t = {0};
	int state = adjtimex(&t);

	if (state < 0)
		found(d, DOCTOR_SKIPPED, "the kernel does not say: %s", strerror(errno));
	else if (state == TIME_ERROR || (t.status & STA_UNSYNC) != 0)
		found(d, DOCTOR_WARN, "nothing keeps the clock right");
	else
		found(d, DOCTOR_OK, "synchronised to within %ld ms", t.maxerror / 1000);
}

const struct doctor_check doctor_host[] = {
    {"kernel.version", "the kernel is one for which Pinfold is made",
     "apt-get install linux-image-amd64 (6.1 or later), and boot it", kernel},
    {"kernel.cgroups", "a cgroup2 tree, and the controllers in it or in v1 trees beside it",
     "mount -t cgroup2 none /sys/fs/cgroup", cgroups},
    {"kernel.namespaces", "every kind of namespace, and enough of them",
     "apt-get install linux-image-amd64, whose kernel has them, and boot it; in a container: ask its host for them",
     namespaces},
    {"kernel.landlock", "Landlock, ABI 2 or later",
     "add lsm=landlock,... (with what /sys/kernel/security/lsm has) to GRUB_CMDLINE_LINUX in /etc/default/grub; "
     "update-grub",
     landlock},
    {"kernel.seccomp", "seccomp filters",
     "apt-get install linux-image-amd64, whose kernel has CONFIG_SECCOMP_FILTER, and boot it", seccomp},
    {"host.open-files", "enough descriptors for every stream and box",
     "systemctl edit pinfold: LimitNOFILE=65536 below [Service]; then restart it", open_files},
    {"clock.sync", "something keeps the clock right", "apt-get install chrony, or systemd-timesyncd", sync_},
    {0}};
