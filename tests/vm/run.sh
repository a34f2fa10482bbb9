#!/bin/bash
# run.sh [TEST...]: the tests of an installed Pinfold in a virtual machine: Debian 12 with its own kernel, emulated (no KVM
# needed), first with systemd, then without, with cgroup v2 mounted, and with v1 controllers beside a v2 tree. For make check-vm: run in a build folder with the
# ordinary prefix, as root. The machine gets two disks, both as before afterwards: the system (build.sh), and what `make
# install` makes of this build, with the tests. Everything is in ./vm; the tests' lines come back over a serial line, the
# console is in vm/NAME.console. TEST: also these of tests/instance, under systemd. Last line: N passed, N failed.
set -u
stop_with() { printf 'run.sh: %s\n' "$*" >&2; exit 1; }
here=$(cd "$(dirname "$0")" && pwd) && top=$(cd "$here/../.." && pwd) && dir=$PWD/vm || exit 1
[ "$(id -u)" = 0 ] || stop_with "must be run by root: sudo make check-vm"
[ -e Makefile ] && [ -e cli/pinfold ] || stop_with "must be run in a build folder"
command -v qemu-system-x86_64 >/dev/null || stop_with "qemu-system-x86_64 is missing: install the Debian package qemu-system-x86"
mkdir -p "$dir" || exit 1
exec 9>"$dir/lock"
flock -n 9 || stop_with "another one runs in this folder"
base=$("$here/build.sh" "$dir") || exit 1

# shellcheck source=tests/vm/qemu.sh
. "$here/qemu.sh"

payload=$dir/payload qemu=
finish() {
	[ -z "$qemu" ] || { kill "$qemu" 2>/dev/null; wait "$qemu" 2>/dev/null; }
	rm -rf --one-file-system "$payload" "$dir/second"
}
trap finish EXIT
trap 'exit 143' TERM INT
rm -rf --one-file-system "$payload" "$dir/second"
mkdir -p "$payload/tests" || exit 1
make -s install DESTDIR="$payload/installed" >"$dir/install.log" 2>&1 || { tail -n 5 "$dir/install.log" >&2; stop_with "make install failed"; }
[ -x "$payload/installed/usr/sbin/pinfold-sandboxd" ] || stop_with "this build has not the ordinary prefix (--prefix=/usr --sysconfdir=/etc --localstatedir=/var)"
cp -r "$top/tests/instance" "$top/tests/vm" "$top"/tests/*.py "$payload/tests/" && cp -r "$top/examples" "$payload/" || exit 1
printf '%s\n' "$@" >"$payload/only"
mke2fs -q -t ext4 -d "$payload" "$dir/second" 400M >"$dir/install.log" 2>&1 || stop_with "mke2fs failed; see $dir/install.log"

passed=0 failed=0
# machine NAME [WORD]: boots it, shows the lines as they come, counts. One that hangs is a failure, not a wait without end.
machine() {
	local name=$1 console=$dir/$1.console results=$dir/$1.results bad
	echo "# machine: $name"
	vm_boot "$base/vmlinuz" "$base/initrd" "${2-}" "$console" "$results" "$base/disk" "$dir/second"
	vm_show "$results"
	wait "$qemu"
	qemu=
	bad=$(grep -ac '^FAIL ' "$results")
	if ! grep -aq '^the end' "$results"; then
		echo "FAIL the machine did not come to its end; its console:"
		bad=$((bad + 1))
	fi
	[ "$bad" = 0 ] || tail -n 60 "$console"
	passed=$((passed + $(grep -ac '^ok ' "$results"))) failed=$((failed + bad))
}
machine systemd
machine plain init=/usr/local/sbin/vm-plain
machine v1 "init=/usr/local/sbin/vm-plain vm-v1"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
