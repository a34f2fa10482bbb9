#!/bin/bash
# After an instance has stopped: no process, mount, control group or folder of it is left.
#   leftovers.sh --before FILE    notes what there is before an instance starts
#   leftovers.sh ROOT FILE        compares; what was there before is not this instance's
bad=0
note() { printf 'FAIL left behind: %s\n' "$*"; bad=1; }
# Control groups and files that nobody is in or holds open.
idle() {
	local g f
	for f in /run/pinfold* /run/lock/pinfold*; do
		[ -e "$f" ] && ! fuser -s "$f" 2>/dev/null && echo "$f"
	done
	find /sys/fs/cgroup -maxdepth 4 -type d -name 'pinfold*' 2>/dev/null | while read -r g; do
		[ -n "$(find "$g" -name cgroup.procs -exec cat {} + 2>/dev/null)" ] || echo "$g"
	done
}
if [ "$1" = --before ]; then
	idle | sort >"$2"
	exit 0
fi
root=$1
for _ in $(seq 50); do
	left=$(ps -eo pid,args | grep -F "$root/" | grep -v -e grep -e leftovers.sh)
	[ -z "$left" ] && break
	sleep 0.1
done
[ -z "$left" ] || note "processes: $left"
left=$(grep -F "$root" /proc/mounts) && note "mounts: $left"
[ ! -e "$root" ] || note "the folder $root"
left=$(idle | sort | comm -13 "$2" -)
[ -z "$left" ] || note "$left"
[ $bad = 0 ] && echo "1 passed, 0 failed"
exit $bad
