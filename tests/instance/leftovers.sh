#!/bin/bash
# After an instance has stopped: no process, mount, control group, namespace file or folder of it is left.
root=$1 bad=0
note() { printf 'FAIL left behind: %s\n' "$*"; bad=1; }
for n in $(seq 50); do
	left=$(ps -eo pid,args | grep -F "$root/" | grep -v -e grep -e leftovers.sh)
	[ -z "$left" ] && break
	sleep 0.1
done
[ -z "$left" ] || note "processes: $left"
grep -F "$root" /proc/mounts && note "mounts"
[ ! -e "$root" ] || note "the folder $root"
ls -d /run/pinfold* /run/lock/pinfold* 2>/dev/null | while read -r f; do
	fuser "$f" >/dev/null 2>&1 || echo "$f"
done | grep . && note "files in /run"
find /sys/fs/cgroup -maxdepth 4 -type d -name 'pinfold*' 2>/dev/null | while read -r g; do
	[ -n "$(find "$g" -name cgroup.procs -exec cat {} + 2>/dev/null)" ] || echo "$g"
done | grep . && note "empty control groups"
[ $bad = 0 ] && echo "1 passed, 0 failed"
exit $bad
