#!/bin/bash
# Builds every fuzz target with clang into build-fuzz and runs each for SECONDS (20), two at once.
#
#   tools/fuzz.sh [SECONDS] [NAME...]     NAME such as json: only these
#
# Seeds are tests/fuzz/corpus/NAME, what tests/fuzz/seeds writes from the tables, and what earlier runs found. An input
# that breaks a target is kept in build-fuzz/found, and so is what the target said. Ends with: N passed, N failed
set -u
top=$(cd "$(dirname "$0")/.." && pwd) || exit 1
dir=${PINFOLD_FUZZ_BUILD:-$top/build-fuzz}
say() { printf '%s\n' "$*" >&2; }
stop_with() { say "fuzz: $*"; printf '0 passed, 1 failed\n'; exit 1; }

seconds=${1:-20}
[ $# -eq 0 ] || shift
case $seconds in '' | *[!0-9]* | 0) stop_with "SECONDS is a number from 1 on" ;; esac
command -v clang >/dev/null || stop_with "clang is missing: install the Debian packages clang and libclang-rt-14-dev"

mkdir -p "$dir" || exit 1
exec 9>"$dir/.lock" 8<"$top/configure.ac"
flock 9
flock 8
log=$dir/build.log
if [ ! -x "$top/configure" ] || [ "$top/configure.ac" -nt "$top/configure" ] || [ ! -e "$top/Makefile.in" ]; then
	(cd "$top" && autoreconf -fi) >"$log" 2>&1 || { tail -n 20 "$log"; stop_with "autoreconf failed"; }
fi
exec 8<&-
if [ ! -e "$dir/Makefile" ]; then
	(cd "$dir" && CC=clang "$top/configure" -q --enable-fuzz --enable-sanitize=fuzzer-no-link,address,undefined) >"$log" 2>&1 ||
		{ tail -n 20 "$log"; stop_with "configure failed"; }
fi
make -C "$dir" -j2 gen-all >"$log" 2>&1 && make -C "$dir" -j2 fuzz-targets >>"$log" 2>&1 ||
	{ grep -E 'error|Error' "$log" | head -n 20; stop_with "the build failed; all of it is in $log"; }

# Each target looks for what its inputs are made of.
work=$(mktemp -d /tmp/pinfold-fuzz.XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'kill $(jobs -rp) 2>/dev/null; exit 143' TERM INT
"$dir/tests/fuzz/seeds" "$work/seeds" || stop_with "tests/fuzz/seeds failed"
for stem in store.msg sandbox.msg bundle.msg conf.msg records.rec; do
	awk -v out=dict -v base=gen/x -f "$top/tools/gen-msg.awk" "$top/spec/$stem" >"$work/$stem.dict" || stop_with "gen-msg.awk failed"
done
dict_of() {
	case $1 in
	store_msg | sandbox_msg | bundle_msg | conf_msg) echo "$work/${1%_msg}.msg.dict" ;;
	runner_bundle | judge) echo "$work/bundle.msg.dict" ;;
	records) echo "$work/records.rec.dict" ;;
	schema | run_create | events | model | policy | agent | bridge) echo "$top/tests/fuzz/dict/bodies.dict" ;;
	json | token) echo "$top/tests/fuzz/dict/json.dict" ;;
	path | text | uri) echo "$top/tests/fuzz/dict/text.dict" ;;
	gate) echo "$top/tests/fuzz/dict/gate.dict" ;;
	esac
}

# run_one NAME: exit status of the target; its words in $work/NAME.log.
run_one() {
	local name=$1 dict folders=() folder
	dict=$(dict_of "$name")
	mkdir -p "$dir/corpus/$name" "$dir/found"
	for folder in "$top/tests/fuzz/corpus/$name" "$work/seeds/$name"; do
		[ ! -d "$folder" ] || folders+=("$folder")
	done
	ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1 \
		"$dir/tests/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2000 -max_len=20000 -print_final_stats=1 \
		-artifact_prefix="$dir/found/$name-" ${dict:+-dict="$dict"} "$dir/corpus/$name" "${folders[@]}" >"$work/$name.log" 2>&1 9>&-
	echo $? >"$work/$name.rc"
}

names=("$@")
[ ${#names[@]} -gt 0 ] || mapfile -t names < <(cd "$dir/tests/fuzz" && ls fuzz_* | sed -n 's/^fuzz_\([a-z_]*\)$/\1/p')
for name in "${names[@]}"; do
	[ -x "$dir/tests/fuzz/fuzz_$name" ] || stop_with "there is no target $name"
	while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n; done
	run_one "$name" &
done
wait

passed=0 failed=0
for name in "${names[@]}"; do
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$name.log")
	cover=$(grep -o 'cov: [0-9]*' "$work/$name.log" | tail -n 1)
	if [ "$(cat "$work/$name.rc")" -eq 0 ]; then
		passed=$((passed + 1))
		printf 'ok    %-14s %9s inputs, %s\n' "$name" "${runs:-?}" "${cover:-}"
	else
		failed=$((failed + 1))
		cp "$work/$name.log" "$dir/found/$name.log"
		printf 'FAIL  %-14s %s\n' "$name" "$(sed -n 's/.*Test unit written to /the input is /p' "$work/$name.log" | tail -n 1)"
		grep -E 'ERROR|Sanitizer|runtime error|^ +#[0-9]+ .*(lib|gateway|fcgi|handlers|steward|runner|tests)/' "$work/$name.log" | grep -v 'fuzzer::' | head -n 12 | sed 's/^/      /'
		echo "      what it said: $dir/found/$name.log"
	fi
done
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
