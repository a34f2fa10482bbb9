#!/bin/bash
# boot.sh ROOT: systemd as process 1 of the tree ROOT, in namespaces of its own (run.sh makes them): processes, mounts, control
# groups, names, and a network that has only its loopback. What systemd says goes to ROOT.console.
root=$1
mount --make-rprivate / && mount --bind "$root" "$root" || exit 1
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t tmpfs -o mode=755 dev "$root/dev"
for device in null zero full random urandom tty; do
	touch "$root/dev/$device"
	mount --bind "/dev/$device" "$root/dev/$device"
done
ln -s /proc/self/fd "$root/dev/fd"
for n in 0/stdin 1/stdout 2/stderr; do ln -s "fd/${n%/*}" "$root/dev/${n#*/}"; done
mkdir "$root/dev/shm" "$root/dev/pts"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
touch "$root/dev/console" && mount --bind "$root.console" "$root/dev/console"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
# As on this machine: one v2 tree, or v1 controllers beside one.
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
	mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
else
	mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup"
	while IFS=: read -r _ name _; do
		case $name in '') kind=cgroup2 name=unified options=rw ;; *) kind=cgroup options=$name name=${name#name=} ;; esac
		mkdir "$root/sys/fs/cgroup/$name" && mount -t $kind -o "$options" cgroup "$root/sys/fs/cgroup/$name"
	done </proc/self/cgroup
fi
ip link set lo up
cd "$root" && pivot_root . mnt && umount -l /mnt || exit 1
exec env -i container=pinfold PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --log-target=console </dev/null >/dev/console 2>&1
