#!/bin/bash
# After an instance has stopped: no process, mount, control group or folder of it is left.
#   leftovers.sh --before FILE    notes what there is before an instance starts
#   leftovers.sh ROOT FILE        compares; what was there before is not this instance's
# shellcheck source=tools/lib/wait.sh
. "$(dirname "$0")/../../tools/lib/wait.sh"
bad=0
note() { printf 'FAIL left behind: %s\n' "$*"; bad=1; }
# Files that nobody holds open.
idle() {
	local f
	for f in /run/pinfold* /run/lock/pinfold*; do
		[ -e "$f" ] && ! fuser -s "$f" 2>/dev/null && echo "$f"
	done
}
if [ "$1" = --before ]; then
	idle | sort >"$2"
	exit 0
fi
root=$1 before=$2
processes() { ps -eo pid,args | grep -F "$root/" | grep -v -e grep -e leftovers.sh; }
mounts() { grep -F "$root" /proc/mounts; }
files() { idle | sort | comm -13 "$before" -; }
# As sandboxd names its groups: by its run folder.
name=$(python3 -c 'import sys
h = 14695981039346656037
for b in (sys.argv[1] + "/run/pinfold").encode(): h = ((h ^ b) * 1099511628211) & 0xFFFFFFFFFFFFFFFF
print("pinfold-%016x" % h)' "$root")
groups() { find /sys/fs/cgroup -maxdepth 4 -type d -name "$name" 2>/dev/null; }
# What is still going, and another instance that ends just now, is waited for.
wait_until eval '[ -z "$(processes; mounts; groups; files)" ]'
left=$(processes) && note "processes: $left"
left=$(mounts) && note "mounts: $left"
[ ! -e "$root" ] || note "the folder $root"
left=$(groups)
[ -z "$left" ] || note "groups: $left"
left=$(files)
[ -z "$left" ] || note "$left"
[ $bad = 0 ] && echo "1 passed, 0 failed"
exit $bad
