#!/bin/bash
# What pinfold.service leaves to sandboxd is enough to make boxes: tests/box/t_box with the unit's capabilities, its read-only
# kernel settings and its /proc. As root, from the build folder; without root it is skipped.
unit=etc/systemd/pinfold.service
[ "$(id -u)" = 0 ] || { echo "skipped: needs root"; exit 77; }
for tool in setpriv unshare; do command -v $tool >/dev/null || { echo "skipped: $tool is missing (Debian package util-linux)"; exit 77; }; done
caps=$(sed -n 's/^CapabilityBoundingSet=//p' $unit | tr 'A-Z ' 'a-z\n' | sed -n 's/^cap_/,+/p' | tr -d '\n')
[ -n "$caps" ] || { echo "FAIL the unit has no CapabilityBoundingSet"; exit 1; }
for line in ProtectKernelTunables=yes ProtectProc=invisible ProcSubset=pid LimitCORE=1 NoNewPrivileges=yes; do
	grep -qx "$line" $unit || { echo "FAIL the unit does not say $line: see what this test does about it"; exit 1; }
done
# shellcheck disable=SC2016
exec unshare -m --propagation private sh -c '
	mount -t proc -o hidepid=invisible,subset=pid,nosuid,nodev,noexec proc /proc &&
	mount -o remount,bind,ro /sys || { echo "skipped: cannot mount here"; exit 77; }
	ulimit -c 1; exec setpriv --no-new-privs --inh-caps=-all --bounding-set="-all$1" tests/box/t_box' - "$caps"
