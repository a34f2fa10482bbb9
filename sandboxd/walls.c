/*
 * The walls of a box, all of them required: their names in refusals, the oldest kernel that has them
 * (the baseline is Debian 12's own 6.1) and the reason for each.
 */
#include "sandboxd/walls.h"

const struct wall walls[STEP__COUNT] = {
    [STEP_NONE] = {"nothing", "", false, "not a step"},
    [STEP_DESCRIPTORS] = {"descriptors", "5.9", false, "the box starts with exactly the listed ones (close_range)"},
    [STEP_CGROUP] = {"cgroup", "5.14", true, "cgroup.kill ends a fork bomb at once; memory, processes, CPU weight"},
    [STEP_NAMESPACES] = {"namespaces", "5.7", true, "mount, pid, net, ipc, uts, cgroup; born inside its group"},
    [STEP_CGROUP_ENTER] = {"cgroup limits", "5.14", true, "two groups: a full workspace must not kill the runner"},
    [STEP_SESSION] = {"session", "", false, "no controlling terminal, nothing to type into"},
    [STEP_NETWORK] = {"network", "", true, "an empty network namespace; only its own loopback"},
    [STEP_LISTENER] = {"listener", "", true, "made inside, held outside: a connection is its run"},
    [STEP_ROOT] = {"root", "5.12", true, "a tmpfs of a few pages; nothing of the host is below it unless bound"},
    [STEP_BINDS] = {"binds", "5.12", true, "host programs read-only, nosuid, nodev, with everything mounted below"},
    [STEP_ETC] = {"etc", "", true, "made here: no host names, users, keys or resolvers"},
    [STEP_DEV] = {"dev", "", true, "five devices that hold no state; no terminal, no disk"},
    [STEP_PROC] = {"proc", "5.8", true, "only the box's processes, of others nothing (hidepid), no settings (subset)"},
    [STEP_WORKSPACE] = {"workspace", "", true, "fixed bytes and inodes"},
    [STEP_PIVOT] = {"pivot_root", "", true, "the host's tree is unmounted, not only hidden"},
    [STEP_USERNS] = {"user namespace", "3.8", true, "root of the box is nobody outside; made last, owns nothing"},
    [STEP_IDS] = {"ids", "", true, "two uids shared with no other box"},
    [STEP_RLIMITS] = {"rlimits", "", false, "no core, few descriptors, bounded files; never address space"},
    [STEP_LANDLOCK] = {"landlock", "5.19", true, "a second, independent wall around files (ABI 2 or later)"},
    [STEP_CAPS] = {"capabilities", "4.3", true, "four for the runner, none for what it starts, none to be regained"},
    [STEP_DEATHSIG] = {"death signal", "", false, "the box dies with sandboxd"},
    [STEP_SECCOMP] = {"seccomp", "4.14", true, "a list of calls; whatever is not on it does not exist"},
    [STEP_EXEC] = {"exec", "", false, "the runner"},
};
