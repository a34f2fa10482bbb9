#!/bin/bash
# run.sh: the tests of Pinfold as a service, in a virtual machine: Debian 12 with its own kernel and systemd, emulated (no KVM
# needed). For make check-vm: run in a build folder with the ordinary prefix, as root. The machine gets two disks, both forgotten
# afterwards: the system (build.sh), and what `make install` makes of this build, with the tests. Everything is in
# ./vm; the tests' lines come back over a serial line, the console is in vm/console. Last line: N passed, N failed.
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
cp -r "$top/tests/instance" "$top/tests/vm" "$payload/tests/" && cp -r "$top/examples" "$payload/" || exit 1
printf '%s\n' "$@" >"$payload/only"
mke2fs -q -t ext4 -d "$payload" "$dir/second" 400M >"$dir/install.log" 2>&1 || stop_with "mke2fs failed; see $dir/install.log"

: >"$dir/console" && : >"$dir/results"
nice -n 5 qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 2048 -nodefaults -no-user-config -display none -nic none \
	-drive file="$base/disk",format=raw,if=virtio,snapshot=on -drive file="$dir/second",format=raw,if=virtio,snapshot=on \
	-kernel "$base/vmlinuz" -initrd "$base/initrd" \
	-append "root=/dev/vda rw console=ttyS0 quiet loglevel=3 panic=-1 systemd.show_status=no" \
	-serial file:"$dir/console" -serial file:"$dir/results" 9>&- &
qemu=$!
# Shows the lines as they come. A machine that hangs is a failure, not a wait without end.
shown=0
for _ in $(seq "${VM_SECONDS:-1500}"); do
	lines=$(wc -l <"$dir/results")
	[ "$lines" = $shown ] || { sed -n "$((shown + 1)),${lines}p" "$dir/results" | tr -d '\r'; shown=$lines; }
	kill -0 $qemu 2>/dev/null || break
	sleep 1
done
passed=$(grep -ac '^ok ' "$dir/results") failed=$(grep -ac '^FAIL ' "$dir/results")
if ! grep -aq '^the end' "$dir/results"; then
	echo "FAIL the machine did not come to its end; its console:"
	tail -n 40 "$dir/console"
	failed=$((failed + 1))
elif [ "$failed" -gt 0 ]; then
	tail -n 60 "$dir/console"
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
