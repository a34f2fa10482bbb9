#!/bin/bash
# doors.sh [WALL...]: opens one wall of a box after the other, each by one edit in a copy of the tree, runs an instance with
# the pinfold-sandboxd of that copy, and asks pinfold doctor: it must name that wall. A wall that is opened unnoticed is
# a failure, and so is an edit that no longer finds its place. As root, with a build in PINFOLD_BUILD (default: build). No
# program of such a copy is ever installed outside the instance, which is gone at the end.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
say() { printf '%s\n' "$*" >&2; }
work=$(mktemp -d /tmp/pinfold-doors.XXXXXX) || exit 1
chmod 711 "$work"
up=
finish() {
	[ -z "$up" ] || { kill "$up" 2>/dev/null && wait "$up" 2>/dev/null; }
	rm -rf --one-file-system "$work"
}
trap finish EXIT
trap 'exit 143' TERM INT

# wall|file below sandboxd|edit
doors='cgroup-limits|box_cg.c|s/"a", "pids.max", V_PIDS, NULL, true/"a", "pids.max", V_FIXED, "max", true/
namespaces|box_build.c|s/CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC/CLONE_NEWPID | CLONE_NEWNET/
listener|box_exec.c|s/^	if (p->listener)$/	if (false)/
root|box_fs.c|/mount_attr ro = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};/s/MOUNT_ATTR_RDONLY | //
binds|box_fs.c|/mount_attr attr = {/s/MOUNT_ATTR_RDONLY | //
etc|box_fs.c|s/{"hostname", "box.n"},/&\n    {"shadow", "x\\n"},/
dev|box_fs.c|s/{"dev.null", 3},/&{"dev\/mem", 1}, /
proc|box_fs.c|s/"hidepid=2,subset=pid"/"subset=pid"/
workspace|box_fs.c|s/,nr_inodes=1024//
pivot_root|box_fs.c|s/^    {"\/lib64", true, false},/&\n    {"\/home", true, false},/
user-namespace|box_ids.c|s/0 %u 1.n1000 %u 1/0 %u 1\\n1000 %u 2/
rlimits|box_exec.c|s/{RLIMIT_SIGPENDING, 1024}/{RLIMIT_SIGPENDING, 4096}/
capabilities|box_ids.c|s/for (unsigned long c = 0; prctl(PR_CAPBSET_DROP/for (unsigned long c = 22; prctl(PR_CAPBSET_DROP/
landlock|box_exec.c|s/STEP_LANDLOCK, box_landlock())/STEP_LANDLOCK, true)/
session|box_exec.c|s/&& setsid() >= 0 &&/\&\&/
seccomp|box_exec.c|s/filter_load(&p->place->filter) &&/true \&\&/'

mkdir -p "$work/tree" "$work/build" || exit 1
(cd "$top" && git ls-files -z | xargs -0 cp -p --parents -t "$work/tree") || exit 1
(cd "$work/tree" && autoreconf -fi && cd "$work/build" && ../tree/configure -q --prefix=/usr --sysconfdir=/etc \
	--localstatedir=/var --libexecdir=/usr/libexec CFLAGS="-O1 -g" && make -j"$(nproc)" sandboxd/pinfold-sandboxd) >"$work/log" 2>&1 ||
	{ tail -n 20 "$work/log"; echo "FAIL the copy does not build"; exit 1; }

"$top/quickstart" up --root "$work/root" >"$work/out" 2>"$work/err" &
up=$!
for _ in $(seq 600); do
	url=$(sed -n 's/^ready .*"url":"\([^"]*\)".*/\1/p' "$work/out")
	[ -z "$url" ] && kill -0 $up 2>/dev/null || break
	sleep 0.2
done
[ -n "$url" ] || { tail -n 20 "$work/err"; echo "FAIL the instance does not start"; exit 1; }

sandboxd=$work/root/usr/sbin/pinfold-sandboxd
pid_of() { local p; for p in /proc/[0-9]*; do [ "$p/exe" -ef "$sandboxd" ] && { basename "$p"; return; }; done; }
# swap PROGRAM: the instance goes on with it.
swap() {
	local old
	old=$(pid_of)
	cp "$1" "$sandboxd.new" && mv "$sandboxd.new" "$sandboxd"
	kill -KILL "$old"
	for _ in $(seq 300); do
		[ -n "$(pid_of)" ] && [ "$(curl -s --noproxy '*' -o /dev/null -w '%{http_code}' "$url/readyz")" = 200 ] && return 0
		sleep 0.1
	done
	return 1
}
# What is said of walls: those that are errors, one a line.
opened() {
	PINFOLD_ROOT=$work/root "$work/root/usr/bin/pinfold" --server "$url" doctor --json >"$work/doctor" 2>>"$work/log"
	python3 -c 'import json, sys
v = {c["id"]: c for c in json.load(open(sys.argv[1]))["checks"]}
if v["box.start"]["status"] != "ok": print("no box:", v["box.start"]["detail"])
for i, c in v.items():
    if i.startswith("wall.") and c["status"] == "error": print(i[5:])' "$work/doctor"
}

bad=0 seen=0
result() {
	seen=$((seen + 1))
	if case " $(echo $2) " in *" $3 "*) true ;; *) [ "$2" = "$3" ] ;; esac; then
		echo "ok $1: $(python3 -c 'import json, sys
print(next((c["detail"] for c in json.load(open(sys.argv[1]))["checks"] if c["id"] == "wall." + sys.argv[2]), "none is open"))' "$work/doctor" "$1") $([ "$2" = "$3" ] || echo "(and $(echo $2 | sed "s/\b$3\b//"))")"
	else
		bad=$((bad + 1))
		echo "FAIL $1: doctor names <$(echo $2)>"
		tail -n 5 "$work/err"
	fi
}
result "every wall stands" "$(opened)" ""
while IFS='|' read -r wall file edit; do
	case " $* " in "  " | *" $wall "*) ;; *) continue ;; esac
	cp -p "$work/tree/sandboxd/$file" "$work/saved"
	sed -i "$edit" "$work/tree/sandboxd/$file"
	if cmp -s "$work/saved" "$work/tree/sandboxd/$file"; then
		result "$wall" "the edit does not find its place" "$wall"
	elif ! make -C "$work/build" sandboxd/pinfold-sandboxd CFLAGS="-O1 -g -w" >"$work/log" 2>&1; then
		tail -n 10 "$work/log"
		result "$wall" "the copy does not build" "$wall"
	elif ! swap "$work/build/sandboxd/pinfold-sandboxd"; then
		result "$wall" "the service does not start" "$wall"
	else
		result "$wall" "$(opened)" "$wall"
	fi
	cp "$work/saved" "$work/tree/sandboxd/$file"
done <<<"$doors"
echo "$((seen - bad)) passed, $bad failed"
[ $bad -eq 0 ]
