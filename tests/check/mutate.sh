#!/bin/bash
# A broken row shows in what whole programs do: the gateway, the public side, a store under its clock or a full log.
# (Every row in every way, by the tests made for that: mutate.py.) In a copy of the tree one row at a time is changed,
# what depends on it is built again, and the tests that should notice are run. passed: noticed by all those named.
#
#   tests/check/mutate.sh [WORD]     only changes whose line has WORD
#
# Needs root, as the tests do. Not part of make check: it builds the tree again for every change.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
only=${1-}
work=$(mktemp -d /tmp/pinfold-mutate.XXXXXX) || exit 1
chmod 711 "$work"
trap 'rm -rf "$work"' EXIT
trap 'exit 143' TERM INT
tree=$work/tree build=$work/build log=$work/log
passed=0 failed=0

# file | what is replaced | by what | tests, of which each must notice; TEST:CASE is one case of a program of many.
changes() {
	cat <<'T'
spec/routes.tab|	DELETE	/v1/runs/{runId}	api	|	DELETE	/v1/runs/{runId}	api,device	|tests/fcgi/t_routes.sh
spec/routes.tab|	POST	/v1/runs	api	|	POST	/v1/runs	api,device	|tests/fcgi/t_routes.sh
spec/routes.tab|	0	-	metrics	metrics|	0	-	-	metrics|tests/fcgi/t_routes.sh
spec/routes.tab|	768000	|	768001	|tests/fcgi/t_ingress.sh
spec/routes.tab|completions	run	model	16000000	|completions	run	events	16000000	|tests/gateway/t_gateway.py:test_audiences
spec/routes.tab|	run	events	128000	|	run	events	128001	|tests/gateway/t_gateway.py:test_events
spec/schema.tab|event_append	lines	array	yes	1	128	|event_append	lines	array	yes	1	129	|tests/gateway/t_gateway.py:test_events
spec/errors.tab|	run_not_found	404	|	run_not_found	403	|tests/fcgi/t_routes.sh
spec/errors.tab|	unauthorized	401	|	unauthorized	400	|tests/fcgi/t_routes.sh
spec/limits.tab|reservedBytes	64000|reservedBytes	0|tests/store/t_store_events
spec/limits.tab|idempotencySeconds	86400|idempotencySeconds	3600|tests/store/t_store_clock
spec/limits.tab|treeBytes	512000|treeBytes	512001|tests/fcgi/t_ingress.sh
spec/audit.tab|auth.denied	note	optional	fcgi,gateway|auth.denied	note	optional	fcgi,gateway,steward|tests/store/t_store_audit
spec/audit.tab|field	label	str	redact|field	label	str	keep|tests/store/t_store_audit
spec/audit.tab|state,reason,error|state,reason|tests/store/t_store_audit
T
}

# build TEST...: only what these tests run.
build() {
	local test programs=pinfold-stored
	for test; do
		case $test in
		tests/fcgi/*) programs="$programs pinfold-fcgi" ;;
		tests/gateway/*) programs="$programs pinfold-gateway pinfold-scripted-model tests/gateway/harness tests/gateway/gateway-clock" ;;
		tests/store/t_store_clock) programs="$programs $test tests/store/stored-clock" ;;
		*) programs="$programs $test" ;;
		esac
	done
	programs=$(printf '%s\n' $programs | sort -u)
	make -C "$build" -j"$(nproc)" gen-all >"$log" 2>&1 && make -C "$build" -j"$(nproc)" $programs >>"$log" 2>&1
}

echo "copying and building once"
mkdir "$tree" "$build" || exit 1
(cd "$top" && { git ls-files -co --exclude-standard 2>/dev/null || find . -type f ! -path './build*'; } | tar -cf - -T -) | tar -C "$tree" -xf - || exit 1
(cd "$tree" && autoreconf -fi) >"$log" 2>&1
all=$(changes | grep -F -- "$only" | awk -F '|' '{ print $4 }' | tr ' ' '\n' | sort -u)
(cd "$build" && ../tree/configure -q CFLAGS=-O0) >"$log" 2>&1 && build $all || {
	tail -n 20 "$log"
	echo "0 passed, 1 failed"
	exit 1
}

# run TEST: its exit status; 124 or 137 where it did not come to an end.
run() {
	local program=${1%%:*} case=
	[ "$program" = "$1" ] || case=${1#*:}
	case $program in *.sh | *.py) program=../tree/$program ;; *) program=./$program ;; esac
	(cd "$build" && srcdir=../tree PINFOLD_BUILD="$build" timeout -k 5 300 "$program" $case) >"$log" 2>&1
}
# notices TEST: does it fail? One that is merely too slow has noticed nothing; but where a store has died, what comes
# after the first failure only waits.
notices() {
	run "$1"
	case $? in
	0) return 1 ;;
	124 | 137) grep -qE '^(\[  FAILED  \]|FAIL)' "$log" ;;
	esac
}

# A test that fails anyway would notice everything.
for test in $all; do
	run "$test" || {
		tail -n 20 "$log"
		echo "$test fails as it is"
		echo "0 passed, 1 failed"
		exit 1
	}
done

while IFS='|' read -r -u 3 file from to tests; do
	case $file$from in *"$only"*) ;; *) continue ;; esac
	name="$file: $from -> $to"
	cp -p "$tree/$file" "$work/kept"
	FROM=$from TO=$to perl -0pi -e 's/\Q$ENV{FROM}\E/$ENV{TO}/' "$tree/$file"
	missed=
	if cmp -s "$tree/$file" "$work/kept"; then
		missed="the row is no longer there: mend this list"
	elif build $tests; then
		for test in $tests; do notices "$test" || missed="$missed $test"; done
	fi
	if [ -z "$missed" ]; then
		passed=$((passed + 1))
		printf 'ok    %s\n' "$name"
	else
		failed=$((failed + 1))
		printf 'FAIL  %s: not noticed by %s\n' "$name" "$missed"
	fi
	cp "$work/kept" "$tree/$file"
done 3< <(changes)
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
