#!/bin/bash
# All measurements, as ratios within one run; see README.md beside this. Run as root on an idle machine.
top=$(cd "$(dirname "$0")/.." && pwd)
build=${PINFOLD_BUILD:-$top/build}
say() { printf '%s\n' "$*" >&2; }
stop_with() { say "bench: $*"; exit 1; }
. "$top/tools/lib/build.sh"
. "$top/tools/lib/packages.sh"
install_packages base bench || exit 1
build_tree "$build" || exit 1
cd "$build" || exit 1
echo "== a box, against bwrap --unshare-all"
./bench/box
echo "== what others feel while one run takes all it can get"
PINFOLD_BUILD=$build "$top/bench/storms.py"
echo "== a durable consume through the whole client path, against the disk's fsync"
./bench/consume
echo "== a durable consume, against SQLite and LMDB behind the same socket"
make bench/engines >bench/engines.log 2>&1 || { tail -n 5 bench/engines.log >&2; exit 1; }
./bench/engines
echo "== the store after SIGKILL, with a million events"
./bench/recovery
echo "== an instance after SIGKILL of each process, and beside live runs"
PINFOLD_BUILD=$build "$top/bench/service.py"
echo "== a model call through the gateway, against nginx and the npm gateway before the same provider"
"$top/bench/gateway.py"
echo "== HTTP behind each web server, against a trivial libfcgi responder behind the same"
PINFOLD_BUILD=$build "$top/bench/web.py"
echo "== events: from append to frame, against a bare server of streams behind the same"
PINFOLD_BUILD=$build "$top/bench/stream.py"
echo "== memory of each idle process"
work=$(mktemp -d /tmp/pinfold-bench.XXXXXX) && chmod 711 "$work"
"$top/quickstart" up --root "$work/root" >"$work/out" 2>"$work/err" &
up=$!
trap 'kill $up 2>/dev/null; wait $up; rm -rf --one-file-system "$work"' EXIT
for n in $(seq 300); do
	grep -q '^ready ' "$work/out" && break
	kill -0 $up 2>/dev/null || { cat "$work/err" >&2; exit 1; }
	sleep 0.1
done
PINFOLD_INSTANCE=$work/root "$top/bench/memory.sh"
