#!/bin/bash
# build.sh DIR: the disk of the virtual machine in which Pinfold is tested, as DIR/base-KEY/{disk,vmlinuz,initrd}; prints
# that folder. Debian 12 from the packages that this machine's own apt takes Debian from (its mirrors, its proxy), checked with
# Debian's keys; no mount and no loop device but what mmdebstrap needs. KEY is of this script, so it is made once and again
# after a change; remove the folder for newer packages. Pinfold is not in it: it comes on a second disk (run.sh).
set -u
stop_with() { printf 'build.sh: %s\n' "$*" >&2; exit 1; }
dir=${1:?usage: build.sh DIR}
suite=bookworm
# The kernel and the system; what Pinfold's programs are linked with; what its boxes and the tests run.
packages=linux-image-cloud-amd64,systemd,systemd-sysv,kmod,procps,psmisc,util-linux,iproute2,ca-certificates
packages+=,libfcgi0ldbl,libdb5.3,libyajl2,libcurl4,libmicrohttpd12,libconfuse2,libqrencode4,libarchive13,libunistring2,libidn2-0,libgit2-1.5,libseccomp2,libcap-ng0,libssl3
packages+=,lighttpd,python3,git,curl

[ "$(id -u)" = 0 ] || stop_with "must be run by root"
for tool in mmdebstrap mke2fs apt-get; do
	command -v $tool >/dev/null || stop_with "$tool is missing"
done
base=$dir/base-$(sha256sum <"$0" | cut -c1-12)
if [ ! -e "$base/disk" ]; then
	rm -rf --one-file-system "$dir"/base-*
	mkdir -p "$base/new" || exit 1
	work=$base/new
	trap 'rm -rf --one-file-system "$base"' EXIT
	# Other sources than Debian's have no part in this.
	apt-get indextargets --format '$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(ORIGIN)|$(CREATED_BY)' |
		awk -F'|' -v suite=$suite -v key=/usr/share/keyrings/debian-archive-keyring.gpg \
			'$4 == "Debian" && $5 == "Packages" && index($2, suite) == 1 { print "deb [signed-by=" key "]", $1, $2, $3 }' |
		sort -u >"$work/sources.list"
	[ -s "$work/sources.list" ] || stop_with "apt knows no lists of Debian $suite here: apt-get update"
	apt-config dump | grep -iE '^Acquire::[a-z]+::Proxy' >"$work/apt.conf"
	echo 'Acquire::Languages "none";' >>"$work/apt.conf"
	nice -n 5 mmdebstrap --quiet --variant=apt --aptopt="$work/apt.conf" --dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
		--include=$packages $suite "$work/root" "$work/sources.list" >"$dir/bootstrap.log" 2>&1 || {
		tail -n 15 "$dir/bootstrap.log" >&2
		stop_with "the system could not be made; all of it is in $dir/bootstrap.log"
	}
	root=$work/root
	echo pinfold-vm >"$root/etc/hostname"
	echo 127.0.0.1 localhost pinfold-vm >"$root/etc/hosts"
	: >"$root/etc/fstab"
	echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id" # else it would be a first boot, with all its presets
	# A login on the serial console would eat what tests write; timers of apt and the like have no part here.
	for unit in serial-getty@ttyS0.service getty@tty1.service apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
		fstrim.timer e2scrub_reap.service; do
		ln -sf /dev/null "$root/etc/systemd/system/$unit"
	done
	cat >"$root/etc/systemd/system/vm-test.service" <<'U'
[Unit]
Description=The tests of the second disk
After=multi-user.target
[Service]
Type=idle
ExecStart=/bin/sh -c 'mount -o ro /dev/vdb /mnt && exec /mnt/tests/vm/guest.sh'
# The tests kill much; not this.
OOMScoreAdjust=-900
U
	# Instead of systemd: nothing but what a kernel needs, and the tests. With the word vm-v1, v1 controllers beside a v2 tree.
	cat >"$root/usr/local/sbin/vm-plain" <<'P'
#!/bin/bash
for fs in proc:/proc sysfs:/sys devtmpfs:/dev tmpfs:/run tmpfs:/tmp; do
	grep -q " ${fs#*:} " /proc/mounts || mount -t "${fs%:*}" none "${fs#*:}"
done
mode=plain
if grep -qw vm-v1 /proc/cmdline; then
	mode=v1
	mount -t tmpfs none /sys/fs/cgroup
	mkdir /sys/fs/cgroup/unified
	mount -t cgroup2 none /sys/fs/cgroup/unified
	for controllers in memory pids cpu,cpuacct blkio; do
		mkdir /sys/fs/cgroup/$controllers
		mount -t cgroup -o $controllers none /sys/fs/cgroup/$controllers
	done
else
	mount -t cgroup2 none /sys/fs/cgroup
fi
ip link set lo up
mount -o ro /dev/vdb /mnt
/mnt/tests/vm/guest.sh $mode
systemctl poweroff --force --force
P
	chmod 755 "$root/usr/local/sbin/vm-plain"
	mkdir -p "$root/etc/systemd/system/default.target.wants"
	ln -sf /etc/systemd/system/vm-test.service "$root/etc/systemd/system/default.target.wants/"
	cp "$root"/boot/vmlinuz-* "$base/vmlinuz" && cp "$root"/boot/initrd.img-* "$base/initrd" || stop_with "there is no one kernel in the image"
	rm -rf "${root:?}"/boot/* "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/*
	mke2fs -q -t ext4 -d "$root" "$work/disk" 2500M >>"$dir/bootstrap.log" 2>&1 || stop_with "mke2fs failed; see $dir/bootstrap.log"
	mv "$work/disk" "$base/disk" || exit 1
	rm -rf --one-file-system "$work"
	trap - EXIT
fi
printf '%s\n' "$base"
