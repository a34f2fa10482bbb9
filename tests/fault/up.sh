#!/bin/bash
# up.sh ROOT PORT: an instance as "quickstart up" makes it, but with the faulty daemons. Used again with the same ROOT
# it goes on with what is there. Two things differ: what ends is started again at once, however often it did, and
# sandboxd only when there is no ROOT/fault/hold. Prints "ready" as quickstart does.
set -u
umask 022
here=$(cd "$(dirname "$0")" && pwd) || exit 1
top=$(cd "$here/../.." && pwd) || exit 1
say() { printf '%s\n' "$*" >&2; }
stop_with() { say "up.sh: $*"; exit 1; }
# shellcheck source=tools/lib/instance.sh
. "$top/tools/lib/instance.sh"
build=${PINFOLD_BUILD:?the build folder}
inst_root=$1 inst_port=$2 inst_config=$here/chaos.conf inst_scenario=$here/scenario.json

# The ids stay the instance's own also when it was killed and another instance was started meanwhile.
take_uid_range() {
	local k n
	k=$(cat "$inst_root/fault/ids" 2>/dev/null || echo $((100 + RANDOM % 100)))
	for n in $(seq 100); do
		take 8 "/run/lock/pinfold-ids-$k" && break
		[ "$n" -lt 100 ] || stop_with "another instance has the ids $k"
		[ -e "$inst_root/fault/ids" ] && sleep 0.1 || k=$((100 + RANDOM % 100))
	done
	inst_uid_base=$((1600000000 + k * 1000))
	echo "$k" >"$inst_root/fault/ids"
}
make() {
	[ -e "$inst_root/fault/installed" ] || command make "$@" || return 1
	: >"$inst_root/fault/installed"
}
start_sandboxd() {
	local name
	if [ ! -e "$inst_root/fault/replaced" ]; then
		for name in stored gateway fcgi steward push; do
			install -m 0711 "$build/tests/fault/faulty-$name" "$inst_root/usr/libexec/pinfold/pinfold-$name" || exit 1
		done
		install -m 0755 "$build/tests/fault/faulty-sandboxd" "$inst_root/usr/sbin/pinfold-sandboxd" || exit 1
		: >"$inst_root/fault/replaced"
	fi
	PINFOLD_ROOT=$inst_root child "$inst_root/usr/sbin/pinfold-sandboxd" >&2 &
	pid_sandboxd=$!
}
again() {
	say "up.sh: $1 ended"
	while [ "$1" = sandboxd ] && [ -e "$inst_root/fault/hold" ]; do sleep 0.02; done
	sleep 0.05
	"start_$1"
}
instance_serve
