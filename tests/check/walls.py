#!/usr/bin/python3
"""Shows that a wall that is open is noticed: by "pinfold attack", and by name by "pinfold doctor".

    walls.py [--short] [--build DIR] [NAME...]

In a copy of the tree each wall, or part of the service, is opened by a few edits, the copy is built, an instance of it is
started in a folder of its own, attacks are tried there, and doctor looks. DIR is a build inside the tree to begin with.
At least one of the attacks that lean on what was opened (spec/attacks.tab) must be reported as not held, and if it is a
wall of a box (spec/walls.tab), doctor must call that wall an error. In the end all together: each wall was opened, or
CANNOT says why not on this machine; an attack that never succeeded anywhere shows nothing when it fails, and is named,
which is a failure unless OUT_OF_REACH says why. Nothing of the copy is installed anywhere else. As root.
"""
import ctypes, json, os, re, shutil, signal, socket, subprocess, sys, tempfile, time

TOP = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
FLAGS = "sandboxd/box_build.c"
EXEC = "sandboxd/box_exec.c"
FS = "sandboxd/box_fs.c"
LAUNCH = "runner/launch.c"
HTTP = "gateway/head.c"
CAPS_STEP = "need(p, STEP_CAPABILITIES, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && box_caps());"
# The agent keeps what the runner has.
KEEP_CAPS = [
    (EXEC, CAPS_STEP, "need(p, STEP_CAPABILITIES, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && box_caps != NULL);"),
    (LAUNCH, "	if (setresgid(uid, uid, uid) || setresuid(",
     "	prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);\n	if (setresgid(uid, uid, uid) || setresuid("),
    (LAUNCH, "	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);\n",
     "	syscall(SYS_capget, &head, none);\n	none[0].effective = none[0].inheritable = none[0].permitted;\n"
     "	none[1].effective = none[1].inheritable = none[1].permitted;\n"),
    (LAUNCH, "	return getuid() == uid && geteuid() == uid && setresuid(0, 0, 0) != 0;",
     "	for (unsigned long c = 0; c < 64; c++)\n		prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, c, 0, 0);\n"
     "	return getuid() == uid && geteuid() == uid;"),
]
NO_USERNS = [
    (EXEC, "setgroups(0, NULL) == 0 && unshare(CLONE_NEWUSER) == 0 && maps_written", "setgroups(0, NULL) == 0 && maps_written"),
    ("sandboxd/box_ids.c", 'return write_map(pid, "uid_map", first)', 'return first != 0 || write_map(pid, "uid_map", first)'),
    (FS, "l->workspace_inodes, p->uid + 1, p->uid + 1);", "l->workspace_inodes, 1000u, 1000u);"),
]
NO_LANDLOCK = [("sandboxd/box_landlock.c", "	return landlock_enter(rules, sizeof rules / sizeof rules[0], 0);",
                "	return rules[0].path != NULL;")]
NO_SECCOMP = [(EXEC, "filter_load(&p->place->filter) && ", "")]
NO_HIDING = [(FS, '"hidepid=2,subset=pid"', '""')]
NO_PIVOT = [(FS, 'syscall(SYS_pivot_root, ".", ".") == 0 && umount2(".", MNT_DETACH) == 0 && ', 'syscall(SYS_pivot_root, ".", "var") == 0 && ')]
WRITABLE = [(FS, ".attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};\n	return tree >= 0", ".attr_set = 0};\n	return tree >= 0"),
            (FS, "	struct mount_attr ro = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};\n	return syscall",
             "	struct mount_attr ro = {.attr_set = 0};\n	return syscall")]
AGENT_IS_ROOT = [
    ("runner/launch.h", "LAUNCH_UID = 1000,", "LAUNCH_UID = 0,"),
    (LAUNCH, "	return getuid() == uid && geteuid() == uid && setresuid(0, 0, 0) != 0;", "	return true;"),
    (FS, "l->workspace_inodes, p->uid + 1, p->uid + 1);", "l->workspace_inodes, p->uid, p->uid);"),
]
# What the profile says of each process, behind the box's own limits.
NO_LOWER = [(LAUNCH, "	return most == 0 || (!getrlimit(", "	return most == 0 || what < RLIM_NLIMITS || (!getrlimit(")]
NO_RLIMITS = NO_LOWER + [(EXEC, "		if (setrlimit(rows[i].what, &r) != 0)", "		if (r.rlim_max != 1 && l == NULL && setrlimit(rows[i].what, &r) != 0)")]

NO_SCOPES = [("lib/landlock.c", "		attr.scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL;", "		attr.scoped = 0;")]

NO_NETNS = [
    (FLAGS, "CLONE_NEWNET | ", ""), (EXEC, 'sethostname("box", 3) == 0 && loopback_up()', 'sethostname("box", 3) == 0 && loopback_up != NULL'),
    (EXEC, "	if (s < 0 || bind(s, (struct sockaddr *)&a", "	int one = 1;\n	setsockopt(s, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);\n	if (s < 0 || bind(s, (struct sockaddr *)&a")]
ANY_TOKEN = [(HTTP, "	if (!shown(call, h, &value, &n) || n > TOKEN_MAX)\n		return ERR_INVALID_RUN_TOKEN;", "	(void)shown(call, h, &value, &n);\n	if (h != NULL) {\n		snprintf(call->claims.run, sizeof call->claims.run, \"%s\", call->box->run);\n		snprintf(call->claims.tenant, sizeof call->claims.tenant, \"%s\", call->box->tenant);\n		snprintf(call->claims.model, sizeof call->claims.model, \"%s\", call->terms->targets[0].profile->model);\n		*old = false;\n		return ERR_OK;\n	}")]

REUSE = "	if (s < 0 || bind(s, (struct sockaddr *)&a"

# name, what is opened (as in the table of attacks), edits (file, text that is there once, text instead), which attacks.
OPENINGS = [
    ("group of the box", "cgroup", [(FLAGS, "CLONE_INTO_CGROUP | CLONE_PIDFD", "CLONE_PIDFD")]),
    ("pid namespace", "namespaces", [(FLAGS, "CLONE_NEWPID | ", ""), ("runner/main.c", "getpid() != 1 || ", "")]),
    ("network namespace", "network", NO_NETNS),
    ("ipc namespace", "namespaces", [(FLAGS, "CLONE_NEWIPC | ", "")]),
    ("uts namespace", "namespaces", [(FLAGS, "CLONE_NEWUTS |", ""), (EXEC, 'sethostname("box", 3) == 0 && ', "")]),
    ("cgroup namespace", "namespaces", [(EXEC, "unshare(CLONE_NEWCGROUP) == 0", "true")]),
    # Boxes mount over each other: two runs at most.
    ("mount namespace", "namespaces", [(FS, " || unshare(CLONE_NEWNS) != 0", "")], ["near-mnt", "near-pid"]),
    ("limits of groups", "cgroup limits", [("sandboxd/box_cg.c", "(limits[i].what & t->what) == 0)", "(limits[i].what & t->what) == 0 || l != NULL)")]),
    ("what is out of memory", "oom group", [
        ("sandboxd/box_cg.c", '    {true, CG_MEMORY, "a", "memory.oom.group", V_FIXED, "1", false},\n', ""),
        ("sandboxd/box_cg.c", "		if ((c->tree[i].what & CG_MEMORY) == 0)\n", "		if (c->trees > 0)\n")]),
    ("listener", "listener", [
        (EXEC, REUSE, "	int one = 1;\n	setsockopt(s, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);\n" + REUSE),
        (EXEC, "(listener = make_listener(p->place->port)) >= 0)", "(listener = make_listener(p->place->port)) >= 0 && fchown(listener, p->uid + 1, p->uid + 1) == 0)")]),
    ("session", "session", [(EXEC, "setsid() >= 0 && ", ""), (LAUNCH, "	setsid();\n", "")]),
    ("root", "root", [(FS, "	struct mount_attr ro = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};\n	return syscall",
                       "	struct mount_attr ro = {.attr_set = 0};\n	return syscall"),
                      (FS, '"dev", "proc", "tmp",     "workspace", "var"};', '"dev", "proc", "tmp",     "workspace", "var", "var/lib"};')]),
    ("binds", "binds", WRITABLE[:1]),
    ("etc", "etc", [(FS, '    {"/etc/alternatives", true, false},', '    {"/etc/alternatives", true, false},\n    {"/etc/shadow", false, true},'),
                    (FS, 'nobody:x:65534:65534:the host:/:/usr/sbin/nologin\\n"', 'nobody:x:65534:65534:the host:/:/usr/sbin/nologin\\n"\n	       "somebody:x:1:1::/:\\n"'),
                    (FS, '"# There is no name service in a box.\\n"', '"nameserver 192.0.2.53\\n"')]),
    ("dev", "dev", [(FS, '{"dev/urandom", 9}};', '{"dev/urandom", 9}, {"dev/mem", 3}, {"dev/tty", 3}, {"dev/console", 3}, {"dev/ptmx", 3}, {"dev/vsock", 3}, {"dev/rtc", 3}};'),
                    (FS, "	struct mount_attr ro = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC};", "	struct mount_attr ro = {.attr_set = 0};")]),
    ("proc", "proc", NO_HIDING),
    ("workspace", "workspace", NO_LOWER + [(FS, '"mode=0755,size=%llu,nr_inodes=%u,uid=%u,gid=%u", (unsigned long long)l->workspace_bytes,\n		 l->workspace_inodes, p->', '"mode=0755,uid=%u,gid=%u", p->'),
                                (FS, 'snprintf(o, sizeof o, "mode=1777,size=%llu,nr_inodes=%u", (unsigned long long)l->workspace_bytes,\n		 l->workspace_inodes);', 'snprintf(o, sizeof o, "mode=1777%s", l != NULL ? "" : "x");'),
                                (FS, "flags | MS_NOEXEC, \"mode=1777,size=16m,nr_inodes=1024\"", 'flags, "mode=1777"'),
                                (FS, "	unsigned long flags = MS_NOSUID | MS_NODEV;", "	unsigned long flags = 0;")]),
    ("folders that boxes share", "workspace", [
        (FS, "mkdirat(root, name, 0755) == 0 ||", "mkdirat(root, name, 01777) == 0 ||"), WRITABLE[1],
        (FS, 'return mount("tmp", "tmp", "tmpfs", flags, o) == 0 &&', "return flags != 0 &&")], ["near-files"]),
    ("pivot_root", "pivot_root", NO_PIVOT),
    ("a folder of the machine", "pivot_root", [(FS, '    {"/lib64", true, false},', '    {"/lib64", true, false},\n    {"/home", true, false},')]),
    ("user namespace", "user namespace", NO_USERNS),
    ("one id more", "user namespace", [("sandboxd/box_ids.c", '"0 %u 1\\n1000 %u 2\\n"', '"0 %u 1\\n1000 %u 3\\n"')]),
    ("ids of boxes", "ids", [(FLAGS, ".uid = b->all->uid_base + BOX_UIDS * b->slot,", ".uid = b->all->uid_base,"),
                             (FLAGS, "box_ids_map(b->pid, b->all->uid_base + BOX_UIDS * b->slot)", "box_ids_map(b->pid, b->all->uid_base)")]),
    ("ids in a box", "ids", AGENT_IS_ROOT),
    ("rlimits", "rlimits", NO_RLIMITS),
    ("one limit", "rlimits", [(EXEC, "{RLIMIT_SIGPENDING, 1024}", "{RLIMIT_SIGPENDING, 4096}")]),
    ("landlock", "landlock", NO_LANDLOCK),
    ("landlock truncate", "landlock truncate", [("lib/landlock.c", "		attr.fs |= RIGHT_TRUNCATE;", "		attr.fs |= 0;")]),
    ("landlock ioctl", "landlock ioctl", [("lib/landlock.c", "		attr.fs |= RIGHT_IOCTL_DEV;", "		attr.fs |= 0;")]),
    # Scopes are the second wall behind the network namespace: seen only without it.
    ("landlock scopes", "landlock scopes", NO_NETNS + NO_SCOPES),
    ("core scheduling", "core scheduling", [(EXEC, "prctl(PR_SCHED_CORE, PR_SCHED_CORE_CREATE, 0, PIDTYPE_TGID, 0) == 0", "PIDTYPE_TGID == 1")]),
    ("death signal", "death signal", [(EXEC, "return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && poll", "return poll"),
                                      (LAUNCH, "	prctl(PR_SET_PDEATHSIG, SIGKILL);\n	prctl(PR_SET_DUMPABLE, 0);", "	prctl(PR_SET_DUMPABLE, 0);")], ["use-outlive"]),
    ("capabilities", "capabilities", KEEP_CAPS),
    ("bounding set", "capabilities", [("sandboxd/box_ids.c", "for (unsigned long c = 0; prctl(PR_CAPBSET_DROP", "for (unsigned long c = 22; prctl(PR_CAPBSET_DROP")]),
    ("no_new_privs", "capabilities", [
        (EXEC, CAPS_STEP, "need(p, STEP_CAPABILITIES, box_caps != NULL);"),
        (LAUNCH, "|| prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)", ""),
        ("runner/main.c", "prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1", "false")]),
    ("seccomp", "seccomp", NO_SECCOMP),
    ("descriptors", "descriptors", [("runner/main.c", "!fcntl(fd, F_SETFD, FD_CLOEXEC)", "!fcntl(fd, F_SETFD, 0)"),
                                    (LAUNCH, "dup2(null, 0) == 0 && dup2(out, 1) == 1", "dup2(out, 0) == 0 && dup2(null, 1) == 1")]),
    ("folder", "descriptors", [("runner/main.c", '.cwd = "/workspace/source",\n			   .limit_ms = (uint64_t)', '.cwd = "/",\n			   .limit_ms = (uint64_t)')]),
    ("environment", "exec", [(LAUNCH, "	environ = (char **)(uintptr_t)l->env;", "	environ = (char **)(uintptr_t)l->env;\n	setenv(\"TZ\", \"UTC\", 1);"), (LAUNCH, "#include <string.h>", "#include <stdlib.h>\n#include <string.h>")]),
    # Several at once: what is held twice is seen to succeed only where both are open.
    ("the machine's tree, as one who may read all", "pivot_root", NO_PIVOT + NO_LANDLOCK + NO_USERNS + KEEP_CAPS),
    ("writable, as one who may write all", "binds", WRITABLE + NO_LANDLOCK + NO_USERNS + KEEP_CAPS + NO_RLIMITS + NO_HIDING),
    ("system calls, as one who has capabilities", "seccomp", NO_SECCOMP + NO_LANDLOCK + KEEP_CAPS),
    ("capabilities of the machine", "capabilities", NO_USERNS + KEEP_CAPS),
    ("ipc namespace, landlock", "namespaces", [(FLAGS, "CLONE_NEWIPC | ", "")] + NO_LANDLOCK),
    ("network, landlock", "network", NO_NETNS + NO_LANDLOCK),
    ("proc, as root", "proc", AGENT_IS_ROOT + NO_LANDLOCK + NO_HIDING + [("runner/launch.c", "prctl(PR_SET_DUMPABLE, 0);", "prctl(PR_SET_DUMPABLE, 1);")]),
    # Parts of the service.
    ("gateway: any token", "gateway", ANY_TOKEN),
    ("gateway: policy", "gateway", [("gateway/admit.c", "	if (e == ERR_OK && !model_known", "	e = e == ERR_OK ? e : ERR_OK;\n	buf_reset(&request);\n	buf_adds(&request, \"{}\");\n	if (e == ERR_OK && call == NULL && !model_known")]),
    ("gateway: routes", "gateway", ANY_TOKEN + [
        (HTTP, "	if ((*e = take_path(call->path, path, sizeof path)) != ERR_OK)\n		return HEAD_REFUSED;", "	if ((*e = take_path(call->path, path, sizeof path)) != ERR_OK)\n		snprintf(path, sizeof path, \"/x\");"),
        (HTTP, "	if (!call->found.route)\n		return HEAD_REFUSED;", "	if (!call->found.route)\n		route_find(routes_internal, \"GET\", \"/internal/v1/models\", &call->found);"),
        (HTTP, "	if (raw[0] != '/')\n		return ERR_INVALID_REQUEST;", "	if (raw[0] != '/')\n		raw = \"/x\";"),
        (HTTP, "return transfer || length > 0 ? ERR_INVALID_REQUEST : ERR_OK;", "return ERR_OK;")]),
    ("gateway: two lengths", "gateway", [(HTTP, "if (h.twice || ", "if (")]),
    ("gateway: budget", "gateway", [("store/op_capability.c", "	if (cap.used_requests >= cap.max_requests)", "	if (cap.used_requests >= cap.max_requests + 1000)")]),
    ("gateway: events", "gateway", [("lib/names.c", "	for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)\n", "	for (size_t i = 0; i < sizeof families / sizeof families[0] && type == NULL; i++)\n"),
                                    ("store/t_event.c", "	r->last_sequence++;", "	r->last_sequence += strcmp(type, \"number\") == 0 ? 2 : 1;")]),
    ("gateway: events of any run", "gateway", ANY_TOKEN + [
        (HTTP, "strcmp(call->found.arg[0], call->claims.run) != 0)", "call->found.arg[0] == NULL)"),
        ("gateway/agent_events.c", "strcmp(task->text, run) != 0)", "run == NULL)"),
        ("gateway/agent_events.c", "m = {.tenant = call->box->tenant, .run = call->box->run};\n	struct st_events_taken",
         "m = {\n	    .tenant = strcmp(call->found.arg[0], call->box->run) == 0 ? call->box->tenant : \"attack-neighbour\",\n	    .run = call->found.arg[0]};\n	struct st_events_taken")]),
    ("text", "text", [("lib/text.c", "		if (len == 0 || dropped(code, kind)) {", "		if (len == 0 || (dropped(code, kind) && out == NULL)) {")]),
    ("tokens' mode", "gateway", [("runner/unpack.c", "it->token.token, 0600)", "it->token.token, 0640)")]),
    ("tenancy", "tenancy", [("store/t_run.c", "	if (!table_get(t, T_RUN, &k, &v))\n		return t->failed", "	if (!table_get(t, T_RUN, &k, &v) && (k = run_key(\"attack-neighbour\", run), !table_get(t, T_RUN, &k, &v)))\n		return t->failed")]),
    ("tenancy: cancel", "tenancy", [("handlers/runs.c", "struct st_run_cancel question = {\n	    .tenant = rq->who->tenant,", "struct st_run_cancel question = {\n	    .tenant = \"attack-neighbour\",")]),
    ("any token at the API", "tenancy", [("handlers/authority.c", "	if (e != ERR_OK)\n		return e;\n	/* The only thing that was",
                                         "	if (e != ERR_OK) {\n		*who = (struct principal){.kind = PRINCIPAL_API};\n		snprintf(who->tenant, sizeof who->tenant, \"attack\");\n		return ERR_OK;\n	}\n	/* The only thing that was")]),
    ("tenancy: lists", "tenancy", [("store/op_runs.c", "run_by_age_each(t, m->tenant,", "run_by_age_each(t, strcmp(m->tenant, \"attack\") == 0 ? \"attack-neighbour\" : m->tenant,")]),
    ("judge and checks", "collector", [("steward/judge.c", "	if (after != NULL && after->type == ENTRY_DIRECTORY)", "	if (d != NULL)\n		return;\n	if (after != NULL && after->type == ENTRY_DIRECTORY)"),
                                       ("runner/collect.c", "		k.full = true;\n	} else {", "		k.full = false;\n	} else {")]),
    ("check results", "checks", [("steward/verdict_checks.c", "	if (!passed)\n", "	if (!passed && nothing)\n")]),
    ("wall time", "runner", [("steward/verdict.c", "	r->agent_ok = m->started && m->status == 0 && !m->timed_out && !m->stopped &&", "	r->agent_ok = m->started || m->stopped ||"),
                             ("steward/verdict.c", "	if (m->timed_out || r->work_timed_out)\n		run_fail", "	if (m == NULL)\n		run_fail")]),
    ("killing what is left", "runner", [(LAUNCH, "		kill(-1, SIGKILL);\n", "		kill(p.last, SIGKILL);\n")]),
    ("the bridge's user", "runner", [("runner/launch.h", "LAUNCH_BRIDGE_UID = 1001", "LAUNCH_BRIDGE_UID = LAUNCH_UID"),
                                     ("steward/pack.c", "(bridged ? TOKEN_EVENTS : TOKEN_AUDIENCE__COUNT) && !r->agent->token_wire", "(bridged ? TOKEN_AUDIENCE__COUNT : TOKEN_AUDIENCE__COUNT)")]),
    ("gateway: the bridge's own", "gateway", [(HTTP, "(!call->box->bridged || call->found", "(call->box || call->found")]),
    ("output", "runner", [("runner/main.c", "	if (!o.clean)\n		broken(a, ERR_SANDBOX_CLEANUP_FAILED", "	if (!o.clean || o.truncated)\n		broken(a, ERR_SANDBOX_CLEANUP_FAILED")]),
]
# What shows that this works; all of them take long.
SHORT = ["landlock"]


def no_core_scheduling():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(62, 0, 0, 0, ctypes.byref(ctypes.c_ulonglong())) != 0:  # PR_SCHED_CORE, PR_SCHED_CORE_GET, of ourselves
        return f"the kernel or its processor has no core scheduling ({os.strerror(ctypes.get_errno())})"


def no_landlock(version, since):
    def lacks():
        abi = ctypes.CDLL(None).syscall(444, None, 0, 1)  # landlock_create_ruleset(LANDLOCK_CREATE_RULESET_VERSION)
        return f"Landlock of this kernel has version {abi}; Linux {since} brings {version}" if abi < version else None
    return lacks


# Walls that some machines cannot have: why, or None.
CANNOT = {"core scheduling": no_core_scheduling, "landlock truncate": no_landlock(3, "6.2"), "landlock ioctl": no_landlock(5, "6.10"),
          "landlock scopes": no_landlock(6, "6.12")}
# Attacks that no opening here lets succeed, and why.
OUT_OF_REACH = {
    "ns-mnt": "a box in the machine's mount namespace would mount over the machine's own tree",
    "gate-approve": "held more than once (route, method, body); no opening here takes all of it away yet",
    "tty-steal": "needs a terminal on one of three descriptors that are a pipe and /dev/null",
}
# The same, for want of something on this machine.
MAY_LACK = {
    "call-kexec": "kexec", "call-init-module": "modules", "call-finit-module": "modules", "call-delete-module": "modules", "call-x32": "x32 programs",
    "proc-sysrq": "sysrq", "proc-realtime": "real-time for groups", "call-iopl": "I/O ports", "call-ioperm": "I/O ports", "net-alg": "AF_ALG", "net-key": "PF_KEY", "net-sctp": "SCTP", "net-tcp6-out": "way out by IPv6",
    "net-tcp-out": "way out", "near-core": "core scheduling", "files-cut": "Landlock of Linux 6.2", "files-ioctl": "Landlock of Linux 6.10",
    "sock-abstract-dgram": "Landlock of Linux 6.12", "time-wake": "clock that wakes", "sock-dbus": "D-Bus", "sock-systemd": "systemd", "sock-docker": "container engine",
}


def rows(table):
    with open(os.path.join(TOP, "spec", table)) as f:
        return [l.rstrip("\n").split("\t") for l in f if l.strip() and not l.startswith("#")]


WALLS = [r[1] for r in rows("walls.tab")]
ATTACKS = {r[0]: r for r in rows("attacks.tab")}


def relevant(wall):
    """Against a wall what is tried in one box, and what leans on it in runs of its own; against a part of the service all."""
    return [i for i, (_, _, leans, how, *_) in ATTACKS.items() if leans == wall or how in ("box", "seen")] if wall in WALLS else []


def say(*words):
    print(*words, flush=True)


def run(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, **more)


def copy(tree, build):
    """The tree, with its build where there is one: paths in it are relative, and times are kept, so little is made anew."""
    if build is not None:
        shutil.copytree(TOP, tree, symlinks=True, dirs_exist_ok=True, ignore=lambda d, names: [
            n for n in names if d == TOP and (n == ".git" or n.startswith("build") and n != os.path.basename(build) or n == "autom4te.cache")])
        return
    files = run("git", "ls-files", "-z", cwd=TOP).stdout.split("\0")
    for f in filter(None, files):
        if os.path.lexists(os.path.join(TOP, f)):
            os.makedirs(os.path.dirname(os.path.join(tree, f)), exist_ok=True)
            shutil.copy2(os.path.join(TOP, f), os.path.join(tree, f), follow_symlinks=False)


def make(tree, build):
    with open(os.path.join(build, "log"), "w") as log:
        if not os.path.exists(os.path.join(build, "Makefile")):
            for words, where in ((("autoreconf", "-fi"), tree), ((os.path.join(tree, "configure"), "-q", "--prefix=/usr", "--sysconfdir=/etc",
                                                                 "--localstatedir=/var", "--libexecdir=/usr/libexec"), build)):
                if subprocess.run(words, cwd=where, stdout=log, stderr=log).returncode != 0:
                    return False
        return subprocess.run(["make", f"-j{os.cpu_count()}"], cwd=build, stdout=log, stderr=log).returncode == 0


def look(tree, build, work, ids, doctor):
    """What the instance of the copy says: the attacks' results, the ids of doctor's errors, or what is wrong."""
    root = os.path.join(work, "root")
    with socket.create_server(("127.0.0.1", 0)) as s:  # not the first free one, which others want as well
        port = str(s.getsockname()[1])
    out = open(os.path.join(work, "up"), "w+")
    err = open(os.path.join(work, "up-err"), "w+")
    up = subprocess.Popen([os.path.join(tree, "quickstart"), "up", "--root", root, "--port", port], stdout=out, stderr=err, env=dict(os.environ, PINFOLD_BUILD=build))
    try:
        end = time.monotonic() + 300
        while time.monotonic() < end and up.poll() is None:
            out.seek(0)
            ready = re.search(r"^ready (.*)$", out.read(), re.M)
            if ready:
                break
            time.sleep(0.1)
        else:
            err.seek(0)
            return None, None, err.read()[-1500:]
        env = dict(os.environ, PINFOLD_ROOT=root, PINFOLD_URL=json.loads(ready.group(1))["url"])
        more = ["--kill-service"] if "use-outlive" in ids else []
        a = run(os.path.join(root, "usr/bin/pinfold"), "attack", "--json", *more, *ids, env=env)
        d = run(os.path.join(root, "usr/bin/pinfold"), "doctor", "--json", *more, env=env) if doctor else None
        err.seek(0)
        said = a.stderr[-800:] + (d.stderr[-800:] if d else "") + err.read()[-800:]
        try:
            return json.loads(a.stdout), {c["id"]: c["detail"] for c in json.loads(d.stdout)["checks"] if c["status"] == "error"} if d else {}, said
        except (ValueError, KeyError, TypeError):
            return None, None, said
    finally:
        up.terminate()
        up.wait()
        shutil.rmtree(root, ignore_errors=True)


def edited(tree, edits):
    """({file: its text with the edits made}, None, or what is wrong with one)."""
    texts = {}
    for file, old, new in edits:
        if file not in texts:
            with open(os.path.join(tree, file)) as f:
                texts[file] = f.read()
        if texts[file].count(old) != 1:
            return texts, f"the edit does not find its place in {file}: {old.strip()[:80]!r}"
        texts[file] = texts[file].replace(old, new)
    return texts, None


def write(tree, texts):
    """Writes these; what was there before."""
    back = {}
    for file, text in texts.items():
        with open(os.path.join(tree, file)) as f:
            back[file] = f.read()
        with open(os.path.join(tree, file), "w") as f:
            f.write(text)
    return back


def open_one(name, wall, edits, ids, tree, build, work):
    """(fine, which attacks were seen to succeed)."""
    texts, wrong = edited(tree, edits)
    back = write(tree, texts) if wrong is None else {}
    if wrong is None and not make(tree, build):
        with open(os.path.join(build, "log")) as f:
            wrong = "it does not build: " + f.read()[-1500:]
    got = errors = None
    if wrong is None:
        got, errors, wrong = look(tree, build, work, ids, wall in WALLS)
    write(tree, back)
    if got is None:
        say(f"FAIL {name} ({wall}): {wrong}")
        return False, set()
    lost = [a for a in got["attacks"] if a["outcome"] == "open"]
    noticed = [a["id"] for a in lost if a["wall"] == wall]
    others = [a["id"] for a in lost if a["wall"] != wall]
    id = "wall." + wall.replace(" ", "-")
    fine = bool(noticed) and (wall not in WALLS or id in errors)
    say(f"{'ok' if fine else 'FAIL'} {name} ({wall}): {got['total'] - len(lost)} of {got['total']} held; noticed by {', '.join(noticed) or 'none'}"
        + (f"; and by {', '.join(others)}" if others else ""))
    if wall in WALLS:
        also = [i for i in errors if i.startswith("wall.") and i != id]
        say(f"     doctor: {id}: {errors[id]}" if id in errors else f"     doctor does not name {id}: {errors}", *(["; also " + ", ".join(also)] if also else []))
    unknown = [f"{a['id']} ({a['detail']})" for a in got["attacks"] if a["outcome"] == "unknown"]
    if unknown:
        say(f"     came not so far: {', '.join(unknown)[:600]}")
    return fine, {a["id"] for a in lost}


def together(opened, seen):
    """Was each wall opened, and each attack seen to succeed? How many of these two questions come to no."""
    bad = 0
    shut = [w for w in WALLS if w not in opened]
    for w in shut:
        why = CANNOT[w]() if w in CANNOT else None
        bad += why is None
        say(f"{'not on this machine' if why else 'FAIL never opened'}: {w}: {why or 'no opening of it was noticed and named'}")
    say(f"{len(WALLS) - len(shut)} of {len(WALLS)} walls were opened, noticed by an attack and named by doctor")
    never = [i for i in ATTACKS if i not in seen]
    say(f"{len(ATTACKS) - len(never)} of {len(ATTACKS)} attacks were seen to succeed")
    reasons = dict(OUT_OF_REACH, **{i: f"this machine has no {what}" for i, what in MAY_LACK.items()})
    for i in never:
        say(f"{'out of reach' if i in reasons else 'FAIL never seen'} {i}: {reasons.get(i, 'no opening lets it succeed')}")
    return (bad > 0) + bool(set(never) - set(reasons))


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started ends too
    words = sys.argv[1:]
    short = "--short" in words
    built = os.path.realpath(words.pop(words.index("--build") + 1)) if "--build" in words[:-1] else None
    names = SHORT if short else [w for w in words if not w.startswith("-")]
    if built is not None and os.path.dirname(built) != TOP:
        say("--build takes a folder in the tree itself")
        return 2
    unknown = set(names) - {o[0] for o in OPENINGS}
    if unknown or os.geteuid() != 0:
        say(f"there is no {unknown}" if unknown else "as root")
        return 2
    work = tempfile.mkdtemp(prefix="pinfold-walls.")
    os.chmod(work, 0o711)
    good = bad = 0
    seen, opened = set(), set()
    try:
        tree = os.path.join(work, "tree")
        build = os.path.join(tree, os.path.basename(built or "build"))
        copy(tree, built)
        # Of those, too, that are not asked for now: whoever changes the source sees at once which opening goes with it.
        adrift = {name: wrong for name, _, edits, *_ in OPENINGS for _, wrong in [edited(tree, edits)] if wrong}
        for name, wrong in adrift.items():
            say(f"FAIL {name}: {wrong}")
        bad += len(adrift)
        os.makedirs(build, exist_ok=True)
        if not make(tree, build):
            with open(os.path.join(build, "log")) as f:
                say("FAIL the copy does not build", f.read()[-1500:])
            return 1
        for name, wall, edits, *ids in OPENINGS:
            if names and name not in names or name in adrift:
                continue
            lacks = CANNOT[wall]() if wall in CANNOT else None
            if lacks:
                say(f"not on this machine: {name}: {lacks}")
                continue
            fine, lost = open_one(name, wall, edits, ids[0] if ids else relevant(wall), tree, build, work)
            good, bad, seen = good + fine, bad + (not fine), seen | lost
            opened |= {wall} if fine else set()
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if not names:
        wrong = together(opened, seen)
        good, bad = good + 2 - wrong, bad + wrong
    say(f"{good} passed, {bad} failed")
    return 1 if bad or not good else 0


sys.exit(main())
