#!/bin/bash
# Every test, in the conditions that matter: an ordinary build with warnings as errors, then one with
# address and undefined-behaviour sanitizers; each as unit tests and as a running instance behind
# lighttpd, the plain one behind Apache and nginx too. Ends with one line: N passed, N failed.
set -u
top=$(cd "$(dirname "$0")/.." && pwd) || exit 1
work=$(mktemp -d /tmp/pinfold-check.XXXXXX) || exit 1
chmod 711 "$work"
passed=0 failed=0 up_pid=
say() { printf '%s\n' "$*" >&2; }
stop_with() { say "check: $*"; exit 1; }
. "$top/tools/lib/build.sh"

finish() {
	[ -z "$up_pid" ] || { kill -TERM "$up_pid" 2>/dev/null; wait "$up_pid" 2>/dev/null; }
	rm -rf --one-file-system "$work"
}
trap finish EXIT
trap 'exit 143' TERM INT

# count NAME STATUS LOG: adds what a test's log says it did; a test that says no number counts as one.
count() {
	local name=$1 status=$2 log=$3 good bad last
	good=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test(s).*/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
	bad=$(sed -n 's/^\[  FAILED  \].* \([0-9]*\) test(s).*/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
	last=$(grep -aE '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1)
	if [ -n "$last" ]; then
		set -- $last
		good=$1 bad=$3
	fi
	[ "$status" -eq 0 ] && [ "$bad" -eq 0 ] && [ "$good" -eq 0 ] && good=1
	[ "$status" -ne 0 ] && [ "$bad" -eq 0 ] && bad=1
	passed=$((passed + good)) failed=$((failed + bad))
	if [ "$bad" -eq 0 ]; then
		printf '  ok    %-44s %4d\n' "$name" "$good"
	else
		printf '  FAIL  %-44s %4d of %d\n' "$name" "$bad" $((good + bad))
		grep -aE 'FAIL|ERROR|Error|not ok|Traceback|runtime error|Sanitizer|expected' "$log" | head -n 30 | sed 's/^/        /'
		tail -n 15 "$log" | sed 's/^/        | /'
	fi
}

one() { # one NAME COMMAND...
	local name=$1 log=$work/one.log
	shift
	# A test that hangs is a failure, not a wait without end.
	timeout -k 10 600 "$@" >"$log" 2>&1
	count "$name" $? "$log"
}

# make_check LABEL DIR: automake's list of tests.
make_check() {
	local label=$1 dir=$2 trs log name
	say "testing: $label"
	find "$dir/tests" "$dir" -maxdepth 3 -name '*.trs' -delete 2>/dev/null
	make -C "$dir" -k check -j"$(nproc)" >"$dir/check.log" 2>&1
	local status=$? any=no
	while read -r trs; do
		any=yes
		log=${trs%.trs}.log name=${trs#"$dir"/}
		case $(sed -n 's/^:test-result: //p' "$trs") in
		PASS) count "$label ${name%.trs}" 0 "$log" ;;
		SKIP) printf '  skip  %s\n' "$label ${name%.trs}"; failed=$((failed + 1)) ;;
		*) count "$label ${name%.trs}" 1 "$log" ;;
		esac
	done < <(find "$dir" -name '*.trs' | sort)
	if [ $any = no ] || [ $status -ne 0 -a $failed -eq 0 ]; then
		tail -n 30 "$dir/check.log"
		failed=$((failed + 1))
	fi
}

# with_instance LABEL DIR WEB-SERVER TEST...: these tests, with a running instance.
with_instance() {
	local label=$1 dir=$2 web=$3 n line test
	shift 3
	say "testing: $label, a running instance behind $web"
	: >"$work/up.out"
	PINFOLD_BUILD=$dir "$top/quickstart" up --root "$work/root" --web-server "$web" --config "$top/tests/instance/extra.conf" >"$work/up.out" 2>"$work/up.err" &
	up_pid=$!
	for n in $(seq 600); do
		line=$(sed -n 's/^ready //p' "$work/up.out")
		[ -n "$line" ] || ! kill -0 $up_pid 2>/dev/null && break
		sleep 0.1
	done
	if [ -z "$line" ]; then
		tail -n 30 "$work/up.err"
		failed=$((failed + 1))
		return
	fi
	export PINFOLD_URL PINFOLD_INSTANCE PINFOLD_CLI PINFOLD_UP_PID=$up_pid
	PINFOLD_URL=$(printf '%s' "$line" | sed 's/.*"url":"\([^"]*\)".*/\1/')
	PINFOLD_INSTANCE=$work/root PINFOLD_CLI=$work/root/usr/bin/pinfold
	for test; do
		one "$label ${test#"$top"/}" "$test"
	done
	if grep -aE 'Sanitizer|runtime error:' "$work/up.err" >"$work/san"; then
		printf '  FAIL  %s: sanitizer reports\n' "$label"
		head -n 20 "$work/san" | sed 's/^/        /'
		failed=$((failed + 1))
	fi
	kill -TERM "$up_pid"
	wait "$up_pid" 2>/dev/null
	up_pid=
	rm -rf --one-file-system "$work/root"
	one "$label nothing is left behind" "$top/tests/instance/leftovers.sh" "$work/root"
}

build_and_test() { # LABEL DIR CONFIGURE...
	local label=$1 dir=$2
	shift 2
	if build_tree "$dir" "$@"; then
		make_check "$label" "$dir"
		with_instance "$label" "$dir" lighttpd "$top"/tests/instance/t_*
	else
		failed=$((failed + 1))
	fi
}

# Leaks are looked for where processes end in an orderly way; a killed child of a test is none.
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1
build_and_test plain "$top/build-check" --enable-werror
# What comes over HTTP, behind the other two as well.
http=()
for test in t_ingress.sh t_fcgi.sh t_web.py t_runs.py t_openapi.sh t_openapi.py t_json.py t_utf8.py t_paths.py t_tokens.py t_naughty.py; do
	[ ! -e "$top/tests/instance/$test" ] || http+=("$top/tests/instance/$test")
done
for web in apache nginx; do
	[ ! -x "$top/build-check/cli/pinfold" ] || with_instance "plain, $web" "$top/build-check" $web "${http[@]}"
done
build_and_test sanitized "$top/build-asan" --enable-sanitize=address,undefined
one "quickstart --once" "$top/tests/check/once.sh"
one "fuzz, 20 s a target" "$top/tools/fuzz.sh" 20

printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
