#!/bin/bash
# run.sh DIR [SUITE]: the Debian package, as root: built from a clean copy of this tree in a fresh Debian (SUITE, bookworm by default)
# which has nothing but what debian/control asks for, without a network; seen by lintian; then installed, used, upgraded from an
# older version, removed and purged (guest.sh) in another fresh one, with systemd in namespaces of its own. Both are made of
# packages that this machine's own apt takes Debian from, and kept in DIR; remove it for newer ones. Last line: N passed, N failed.
set -u
stop_with() { printf 'run.sh: %s\n' "$*" >&2; exit 1; }
here=$(cd "$(dirname "$0")" && pwd) && top=$(cd "$here/../.." && pwd) || exit 1
dir=$(mkdir -p "${1:?usage: run.sh DIR [SUITE]}" && cd "$1" && pwd) && suite=${2:-bookworm} || exit 1
[ "$(id -u)" = 0 ] || stop_with "must be run by root"
for tool in mmdebstrap apt-get dpkg-deb unshare nsenter; do
	command -v $tool >/dev/null || stop_with "$tool is missing"
done
exec 9>"$dir/lock"
flock -n 9 || stop_with "another one runs in this folder"
passed=0 failed=0 outer= group=pinfold-package-$$
groups_of() { # its group in each tree of control groups
	local name
	if [ -e /sys/fs/cgroup/cgroup.controllers ]; then echo /sys/fs/cgroup/$group; return; fi
	while IFS=: read -r _ name _; do name=${name#name=}; echo "/sys/fs/cgroup/${name:-unified}/$group"; done </proc/self/cgroup
}
finish() {
	local path
	# Whoever is in the namespaces dies with their first process, which dies with the one that made it.
	[ -z "$outer" ] || { kill -KILL "$outer" 2>/dev/null; wait "$outer" 2>/dev/null; }
	for path in $(groups_of); do
		for _ in $(seq 100); do
			[ -d "$path" ] || break
			find "$path" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.1
		done
	done
	rm -rf --one-file-system "$dir/machine" "$dir/built"
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

# --- built
build=$dir/$suite-build
tree "$suite-build" build-essential,fakeroot,lintian || stop_with "no fresh $suite could be made; see $dir/$suite-build.log"
rm -rf "$build/src" "$build"/pinfold*
mkdir "$build/src" && copy "$build/src" || exit 1
if fetch "$build" sh -c 'apt-get build-dep -y -q /src' >"$dir/build-dep.log" 2>&1; then say ok "what it is built with is in $suite"; else
	tail -n 15 "$dir/build-dep.log"
	say FAIL "what it is built with is in $suite"
fi
if inside "$build" -n -- sh -c "cd /src && DEB_BUILD_OPTIONS='parallel=$(nproc)' dpkg-buildpackage -us -uc -b" >"$dir/$suite-built.log" 2>&1; then
	say ok "it builds, and its unit tests pass: $(sed -n 's/^# PASS: *//p' "$dir/$suite-built.log" | tail -n 1) programs"
else
	tail -n 40 "$dir/$suite-built.log"
	say FAIL "dpkg-buildpackage; all of it is in $dir/$suite-built.log"
	echo "$passed passed, $failed failed"
	exit 1
fi
inside "$build" -- sh -c 'lintian --allow-root --fail-on error,warning /*.changes' >"$dir/lintian.log" 2>&1 && say ok lintian || { cat "$dir/lintian.log"; say FAIL lintian; }
rm -rf "$dir/built" && mkdir "$dir/built" && cp "$build"/pinfold_*.deb "$dir/built/" && rm -rf "$build/src" "$build"/pinfold* || exit 1

# --- an older version of the same, with another example
new=$(cd "$dir/built" && echo pinfold_*.deb)
old=pinfold_0.0.1_${new##*_}
dpkg-deb -R "$dir/built/$new" "$dir/built/older" && sed -i 's/^Version: .*/Version: 0.0.1/' "$dir/built/older/DEBIAN/control" &&
	echo '# as it was' >>"$dir/built/older/etc/pinfold/web-servers/nginx.conf" && dpkg-deb --root-owner-group -b "$dir/built/older" "$dir/built/$old" >/dev/null || exit 1

# --- used
tree "$suite-base" curl,procps || stop_with "no fresh $suite could be made; see $dir/$suite-base.log"
base=$dir/$suite-base machine=$dir/machine
rm -rf --one-file-system "$machine"
cp "$dir/built/$new" "$base/root/"
# The machine has no network: what apt will want is there before.
fetch "$base" sh -c "apt-get install -y -q --download-only /root/$new apache2 curl python3" >"$dir/download.log" 2>&1 || { tail -n 15 "$dir/download.log"; say FAIL "what it depends on is in $suite"; }
cp -a "$base" "$machine" && mkdir "$machine/root/tests" && cp "$here/guest.sh" "$top/debian/tests/smoke" "$top/tools/lib/wait.sh" "$top/docs/install.md" "$dir/built/"*.deb "$machine/root/tests/" || exit 1
ln -sf /dev/null "$machine/etc/systemd/system/console-getty.service"
: >"$machine.console"
for path in $(groups_of); do mkdir -p "$path"; done
(
	exec 9>&-
	for path in $(groups_of); do echo $BASHPID >"$path/cgroup.procs"; done
	exec unshare -pmCuin --fork --kill-child "$here/boot.sh" "$machine"
) &
outer=$!
first=
for _ in $(seq 1200); do
	first=$(pgrep -P $outer) && nsenter -t "$first" -a systemctl is-system-running 2>/dev/null | grep -qE 'running|degraded' && break
	first=
	sleep 0.1
done
if [ -n "$first" ]; then
	while read -r word rest; do
		case $word in ok | FAIL) say "$word" "$rest" ;; *) echo "$word $rest" ;; esac
	done < <(timeout 1500 nsenter -t "$first" -a env -i /root/tests/guest.sh /root/tests/$old "/root/tests/$new" /root/tests/install.md 2>&1 | tee "$dir/$suite-guest.log")
	grep -qx 'the end' "$dir/$suite-guest.log" || say FAIL "it did not come to its end"
else
	tail -n 20 "$machine.console"
	say FAIL "the machine starts"
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
