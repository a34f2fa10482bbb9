#!/bin/bash
# run.sh DIR [SUITE] [vm]: the Debian package, as root: built from a clean copy of this tree in a fresh Debian (SUITE, bookworm by
# default) which has nothing but what debian/control asks for, without a network, and once more elsewhere, byte for byte the same;
# seen by lintian; then installed, used, upgraded from an older version, removed and purged (guest.sh) in another fresh one, with
# systemd in namespaces of its own, or with vm in a virtual machine. The older version is the last commit with another form of the
# store (or PINFOLD_OLDER, a commit), where git knows it. Systems are made of packages that this machine's own apt takes Debian from,
# and kept in DIR; remove it for newer ones. Last line: N passed, N failed.
set -u
stop_with() { printf 'run.sh: %s\n' "$*" >&2; exit 1; }
here=$(cd "$(dirname "$0")" && pwd) && top=$(cd "$here/../.." && pwd) || exit 1
dir=$(mkdir -p "${1:?usage: run.sh DIR [SUITE] [vm]}" && cd "$1" && pwd) && suite=${2:-bookworm} where=${3-} || exit 1
# shellcheck source=tests/vm/qemu.sh
. "$top/tests/vm/qemu.sh"
[ "$(id -u)" = 0 ] || stop_with "must be run by root"
for tool in mmdebstrap apt-get dpkg-deb unshare nsenter ${where:+qemu-system-x86_64 mke2fs}; do
	command -v $tool >/dev/null || stop_with "$tool is missing"
done
exec 9>"$dir/lock"
flock -n 9 || stop_with "another one runs in this folder"
passed=0 failed=0 outer= qemu= group=pinfold-package-$$
groups_of() { # its group in each tree of control groups
	local name
	if [ -e /sys/fs/cgroup/cgroup.controllers ]; then echo /sys/fs/cgroup/$group; return; fi
	while IFS=: read -r _ name _; do name=${name#name=}; echo "/sys/fs/cgroup/${name:-unified}/$group"; done </proc/self/cgroup
}
finish() {
	local path
	# Whoever is in the namespaces dies with their first process, which dies with the one that made it.
	[ -z "$outer" ] || { kill -KILL "$outer" 2>/dev/null; wait "$outer" 2>/dev/null; }
	[ -z "$qemu" ] || { kill "$qemu" 2>/dev/null; wait "$qemu" 2>/dev/null; }
	for path in $(groups_of); do
		for _ in $(seq 100); do
			[ -d "$path" ] || break
			find "$path" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.1
		done
	done
	rm -rf --one-file-system "$dir/machine" "$dir/machine.disk" "$dir/built"
}
trap finish EXIT
trap 'exit 143' TERM INT
say() { # say ok|FAIL WHAT
	echo "$*"
	if [ "$1" = ok ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}
inside() { # inside ROOT [WORD...] -- COMMAND...: in a tree, with /proc and /dev; the words are unshare's
	local root=$1 words=()
	shift
	while [ "$1" != -- ]; do words+=("$1"); shift; done
	shift
	unshare -m "${words[@]}" bash -c 'root=$1; shift; ip link set lo up
		mount --make-rprivate / && mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" && mount -t tmpfs tmpfs "$root/tmp" || exit 1
		exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"' - "$root" "$@"
}
tree() { # tree NAME PACKAGES: a fresh Debian in $dir/NAME, unless it is there
	local root=$dir/$1
	[ ! -e "$root/made" ] || return 0
	rm -rf --one-file-system "$root"
	# Other sources than Debian's have no part in this.
	apt-get indextargets --format '$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)|$(CREATED_BY)' |
		awk -F'|' -v suite="$suite" -v key=/usr/share/keyrings/debian-archive-keyring.gpg '$4 == "Debian" && $5 == "Packages" {
			sub(/^[a-z]+/, suite, $2); print "deb [signed-by=" key "]", $1, $2, $3 }' | sort -u >"$dir/sources.list"
	apt-config dump | grep -iE '^Acquire::[a-z]+::Proxy' >"$dir/apt.conf"
	printf '%s\n' 'Acquire::Languages "none";' 'APT::Sandbox::User "root";' >>"$dir/apt.conf"
	nice mmdebstrap --quiet --variant=apt --aptopt="$dir/apt.conf" --skip=cleanup/apt/lists --include="ca-certificates,systemd,systemd-sysv,$2" \
		"$suite" "$root" "$dir/sources.list" >"$dir/$1.log" 2>&1 || { tail -n 15 "$dir/$1.log"; return 1; }
	cp "$dir/apt.conf" "$root/etc/apt/apt.conf.d/99here"
	: >"$root/made"
}
fetch() { # fetch ROOT COMMAND...: with the network of this machine
	local root=$1
	shift
	cat /etc/resolv.conf >"$root/etc/resolv.conf"
	inside "$root" -- "$@"
}
copy() { (cd "$top" && { git ls-files -z 2>/dev/null || find . -type f -print0; } | tar -c --null -T - -f -) | tar -x -C "$1" -f -; }

# packed FOLDER [WORD...]: dpkg-buildpackage there, in the tree that builds; the words are of its environment.
packed() {
	local folder=$1
	shift
	inside "$build" -n -- env DEB_BUILD_OPTIONS="parallel=$(nproc)" "$@" sh -c 'cd "$1" && dpkg-buildpackage -us -uc -b' - "$folder"
}

# --- built
build=$dir/$suite-build
tree "$suite-build" build-essential,fakeroot,lintian || stop_with "no fresh $suite could be made; see $dir/$suite-build.log"
rm -rf "$build/src" "$build/other" "$build/older" "$build"/pinfold* "$dir/built"
mkdir "$build/src" "$build/other" "$dir/built" && copy "$build/src" && cp -r "$build/src" "$build/other/place" || exit 1
if fetch "$build" sh -c 'apt-get build-dep -y -q /src' >"$dir/build-dep.log" 2>&1; then say ok "what it is built with is in $suite"; else
	tail -n 15 "$dir/build-dep.log"
	say FAIL "what it is built with is in $suite"
fi
if packed /src >"$dir/$suite-built.log" 2>&1; then
	say ok "it builds, and its unit tests pass: $(sed -n 's/^# PASS: *//p' "$dir/$suite-built.log" | tail -n 1) programs"
else
	tail -n 40 "$dir/$suite-built.log"
	say FAIL "dpkg-buildpackage; all of it is in $dir/$suite-built.log"
	echo "$passed passed, $failed failed"
	exit 1
fi
inside "$build" -- sh -c 'lintian --allow-root --fail-on error,warning /*.changes' >"$dir/lintian.log" 2>&1 && say ok lintian || { cat "$dir/lintian.log"; say FAIL lintian; }
cp "$build"/pinfold_*.deb "$dir/built/" && rm -rf "$build/src" "$build"/pinfold* || exit 1
new=$(cd "$dir/built" && echo pinfold_*.deb)

# --- built once more: by somebody else, elsewhere
packed /other/place DEB_BUILD_OPTIONS="nocheck parallel=1" TZ=Pacific/Kiritimati LC_ALL=C HOME=/ >"$dir/$suite-other.log" 2>&1
if cmp "$build/other/$new" "$dir/built/$new"; then say ok "built elsewhere it is the same, byte for byte"; else
	mkdir "$build/other/one" "$build/other/two"
	dpkg-deb -R "$dir/built/$new" "$build/other/one/deb" && dpkg-deb -R "$build/other/$new" "$build/other/two/deb" && diff -rq "$build/other/one" "$build/other/two" | head -n 20
	say FAIL "built elsewhere it is another one"
fi
rm -rf "$build/other"

# --- an older version: of another form of the store
arch=${new##*_}
commit=${PINFOLD_OLDER-$(git -C "$top" log --format=%H -n 1 -G'SCHEMA = [0-9]' -- store/upgrade.h 2>/dev/null)^}
commit=$(git -C "$top" rev-parse -q --verify "$commit^{commit}" 2>/dev/null)
# What is from before there was a package builds in Debian 12 alone.
[ "$suite" = bookworm ] || git -C "$top" cat-file -e "$commit:debian/control" 2>/dev/null || commit=
if [ -n "$commit" ]; then
	kept=$dir/older-$suite-$(echo "$commit" "$(cat "$top"/debian/* 2>/dev/null | sha256sum)" | sha256sum | cut -c1-12).deb
	if [ ! -e "$kept" ]; then
		mkdir "$build/older" && git -C "$top" archive "$commit" | tar -x -C "$build/older" || exit 1
		# From before there was a package: packed as this one is.
		[ -e "$build/older/debian" ] || cp -r "$top/debian" "$build/older/" || exit 1
		# Its number may be ours.
		sed -i '1s/(\(.*\))/(\1~older)/' "$build/older/debian/changelog"
		if packed /older DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" >"$dir/$suite-older.log" 2>&1; then mv "$build"/pinfold_*.deb "$kept"; else
			tail -n 20 "$dir/$suite-older.log"
			say FAIL "the older version is built"
		fi
		rm -rf "$build/older" "$build"/pinfold*
	fi
	form() { sed -n 's/.*SCHEMA = \([0-9]*\).*/\1/p'; }
	echo "# older: $(git -C "$top" log -1 --format='%h, %s' "$commit"); form $(git -C "$top" show "$commit:store/upgrade.h" | form) of the store, now $(form <"$top/store/upgrade.h")"
	old=pinfold_older_$arch
	cp "$kept" "$dir/built/$old" 2>/dev/null
fi
if [ ! -e "$dir/built/${old:-none}" ]; then
	echo "skipped an upgrade from another form of the store: none is known here that builds in $suite"
	# The same with another number, and another example.
	old=pinfold_0.0.1_$arch
	dpkg-deb -R "$dir/built/$new" "$dir/built/older" && sed -i 's/^Version: .*/Version: 0.0.1/' "$dir/built/older/DEBIAN/control" &&
		echo '# as it was' >>"$dir/built/older/etc/pinfold/web-servers/nginx.conf" && dpkg-deb --root-owner-group -b "$dir/built/older" "$dir/built/$old" >/dev/null || exit 1
fi

# --- used
kind=base kernel=
[ "$where" != vm ] || kind=vm kernel=,linux-image-cloud-amd64,kmod
tree "$suite-$kind" "curl,procps$kernel" || stop_with "no fresh $suite could be made; see $dir/$suite-$kind.log"
base=$dir/$suite-$kind machine=$dir/machine log=$dir/$suite-$kind-guest.log
rm -rf --one-file-system "$machine"
cp "$dir/built/$new" "$base/root/"
# The machine has no network: what apt will want is there before.
fetch "$base" sh -c "apt-get install -y -q --download-only /root/$new apache2 lighttpd nginx openssl curl python3 autopkgtest dpkg-dev" >"$dir/download.log" 2>&1 ||
	{ tail -n 15 "$dir/download.log"; say FAIL "what it depends on is in $suite"; }
# By emulation that takes long: there all but Pinfold is installed before. Apache is to have the port at first.
if [ "$where" = vm ] && ! fetch "$base" sh -c 'apt-get satisfy -y -q "$(dpkg-deb -f "/root/$1" Depends), apache2, lighttpd, nginx, openssl, curl, python3, python3-pytest, autopkgtest, dpkg-dev" &&
	systemctl disable lighttpd nginx' - "$new" >"$dir/satisfied.log" 2>&1; then
	tail -n 15 "$dir/satisfied.log"
	say FAIL "what it depends on is installed"
fi
cp -a "$base" "$machine" && mkdir -p "$machine/root/tests/tests" "$machine/root/tests/source" && cp "$here/guest.sh" "$here/walk.sh" "$top/tools/lib/wait.sh" "$top/docs/install.md" "$top/docs/operations.md" "$dir/built/"*.deb "$machine/root/tests/" &&
	cp -r "$top/debian" "$machine/root/tests/source/" && cp -r "$top/tests/instance" "$top"/tests/*.py "$machine/root/tests/tests/" || exit 1
ln -sf /dev/null "$machine/etc/systemd/system/console-getty.service"
: >"$machine.console"
in_guest=(/root/tests/guest.sh "/root/tests/$old" "/root/tests/$new" /root/tests/install.md)

# Systemd in namespaces: guest.sh's lines.
in_namespaces() {
	local first=
	for _ in $(seq 1200); do
		first=$(pgrep -P "$outer") && nsenter -t "$first" -a systemctl is-system-running 2>/dev/null | grep -qE 'running|degraded' && break
		first=
		sleep 0.1
	done
	if [ -n "$first" ]; then timeout 3000 nsenter -t "$first" -a env -i "${in_guest[@]}" 2>&1; else
		tail -n 20 "$machine.console"
		echo "FAIL the machine starts"
	fi
}
if [ "$where" = vm ]; then
	echo pinfold-vm >"$machine/etc/hostname"
	echo 127.0.0.1 localhost pinfold-vm >"$machine/etc/hosts"
	: >"$machine/etc/fstab"
	echo 0123456789abcdef0123456789abcdef >"$machine/etc/machine-id" # else it would be a first boot, with all its presets
	for unit in serial-getty@ttyS0 getty@tty1 e2scrub_reap; do ln -sf /dev/null "$machine/etc/systemd/system/$unit.service"; done
	for unit in apt-daily apt-daily-upgrade dpkg-db-backup e2scrub_all fstrim; do ln -sf /dev/null "$machine/etc/systemd/system/$unit.timer"; done
	printf '%s\n' '[Unit]' 'After=multi-user.target' '[Service]' Type=idle OOMScoreAdjust=-900 \
		"ExecStart=/bin/sh -c 'stty -F /dev/ttyS1 raw -echo; ${in_guest[*]} >/dev/ttyS1 2>&1 </dev/null; sync; systemctl poweroff --force'" \
		>"$machine/etc/systemd/system/package-test.service"
	mkdir -p "$machine/etc/systemd/system/default.target.wants"
	ln -s ../package-test.service "$machine/etc/systemd/system/default.target.wants/"
	mv "$machine"/boot/vmlinuz-* "$dir/vmlinuz" && mv "$machine"/boot/initrd.img-* "$dir/initrd" &&
		mke2fs -q -t ext4 -d "$machine" "$dir/machine.disk" 4G >"$dir/mke2fs.log" 2>&1 || stop_with "no disk could be made; see $dir/mke2fs.log"
	rm -rf --one-file-system "$machine"
	vm_boot "$dir/vmlinuz" "$dir/initrd" "" "$machine.console" "$dir/results" "$dir/machine.disk"
	lines() { vm_show "$dir/results"; }
else
	for path in $(groups_of); do
		mkdir -p "$path"
		# Without them nobody gets into one of v1.
		for file in cpuset.cpus cpuset.mems; do [ ! -e "$path/../$file" ] || cat "$path/../$file" >"$path/$file"; done
	done
	(
		exec 9>&-
		for path in $(groups_of); do echo $BASHPID >"$path/cgroup.procs"; done
		exec unshare -pmCuin --fork --kill-child "$here/boot.sh" "$machine"
	) &
	outer=$!
	lines() { in_namespaces; }
fi
while read -r word rest; do
	case $word in ok | FAIL) say "$word" "$rest" ;; *) echo "$word $rest" ;; esac
done < <(lines | tee "$log")
grep -qx 'the end' "$log" || { tail -n 20 "$machine.console"; say FAIL "it did not come to its end"; }
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
