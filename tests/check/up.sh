#!/bin/bash
# What `quickstart up` does with a sandboxd that ends: again and again after growing pauses, but not for ever.
top=${srcdir:-$(dirname "$0")/../..} work=$(mktemp -d) passed=0 failed=0
trap 'rm -rf "$work"' EXIT
check() { if [ "$2" = "$3" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL $1: $2, not $3"; fi; }

# The real functions, with a sandboxd that ends by itself and a web server that stays.
try() ( # try COMMAND: what sandboxd does
	ends=$1
	. "$top/tools/lib/instance.sh"
	say() { echo "$*" >>"$work/said"; }
	stop_with() { say "$*"; kill "$pid_web"; exit 1; }
	start_web() { sleep 1000 & pid_web=$!; inst_since[web]=$SECONDS; }
	start_sandboxd() { echo >>"$work/starts"; "$ends" & pid_sandboxd=$!; inst_since[sandboxd]=$SECONDS; }
	start_sandboxd
	start_web
	instance_wait
)
: >"$work/said"
: >"$work/starts"
try true
check "status of giving up" $? 1
check "starts" "$(wc -l <"$work/starts")" 6
check "pauses" "$(sed -n 's/.*again in \(.*\) ms/\1/p' "$work/said" | xargs)" "100 200 400 800 1600"
check "says why" "$(grep -c 'six times in a row' "$work/said")" 1
: >"$work/said"
: >"$work/starts"
unfit() { return 78; }
try unfit
check "status of one that is to be mended" $? 1
check "its starts" "$(wc -l <"$work/starts")" 1
check "says that" "$(grep -c 'what to mend' "$work/said")" 1
echo "$passed passed, $failed failed"
[ $failed = 0 ]
