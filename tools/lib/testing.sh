# Running tests and counting what they say. Sourced by tools/ci, which sets top and work and ends with verdict.
# shellcheck shell=bash disable=SC2154
# shellcheck source=tools/lib/wait.sh
. "$top/tools/lib/wait.sh"
passed=0 failed=0 up_pid=

lane_pids=() owner=$BASHPID doing=building

# break_off SIGNAL PID...: these and all that they have started. A shell acts on it when what it waits for has ended.
break_off() {
	local sig=$1 pid
	shift
	for pid; do
		kill "-$sig" "$pid" 2>/dev/null
		break_off "$sig" $(pgrep -P "$pid")
	done
}

finish() {
	[ "$BASHPID" = "$owner" ] || return # a child that was not yet its own
	[ ${#lane_pids[@]} -eq 0 ] || { break_off TERM "${lane_pids[@]}"; wait "${lane_pids[@]}" 2>/dev/null; }
	[ -z "$up_pid" ] || { kill -TERM "$up_pid" 2>/dev/null; wait "$up_pid" 2>/dev/null; }
	rm -rf --one-file-system "$work"
}
trap finish EXIT
trap 'exit 143' TERM INT

# lane COMMAND WORD...: in a process and a temporary folder of its own; what it counted is its last line, for side_by_side.
lane() {
	owner=$BASHPID work=$work/$BASHPID passed=0 failed=0 up_pid= lane_pids=()
	trap finish EXIT
	trap 'printf "  FAIL  broken off: %s\n" "$doing"; tail -n 15 "$work/one.log" 2>/dev/null; exit 143' TERM INT
	mkdir "$work" && chmod 711 "$work" || exit 1
	"$@"
	printf '%d %d\n' "$passed" "$failed" >"$work.sum"
}

# side_by_side COMMAND "WORD..."...: COMMAND with each list of words, all at once. What each says is shown in one piece, the
# first that is done first. One that does not come to its end within PINFOLD_CHECK_SECONDS of the whole is a failure.
side_by_side() {
	local command=$1 words pid log left good bad
	local -A of=()
	shift
	for words; do
		log=$work/lane.${#of[@]}
		lane "$command" $words >"$log" 2>&1 &
		of[$!]=$log lane_pids+=($!)
		say "beside each other: $words"
	done
	while [ ${#of[@]} -gt 0 ]; do
		for pid in "${!of[@]}"; do
			left=$((${PINFOLD_CHECK_SECONDS:-86400} - SECONDS))
			[ $left -gt 0 ] || break_off TERM "$pid"
			[ $left -gt -40 ] || break_off KILL "$pid"
			! kill -0 "$pid" 2>/dev/null || continue
			wait "$pid"
			cat "${of[$pid]}"
			if [ -e "$work/$pid.sum" ]; then
				read -r good bad <"$work/$pid.sum"
				passed=$((passed + good)) failed=$((failed + bad))
			else
				printf '  FAIL  it was broken off after %d s\n' $SECONDS
				failed=$((failed + 1))
			fi
			unset "of[$pid]"
		done
		sleep 0.2
	done
	lane_pids=()
}

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
		printf '  ok    %-44s %6d%s\n' "$name" "$good" "${took:+$(printf '%6d s' "$took")}"
	else
		printf '  FAIL  %-44s %4d of %d\n' "$name" "$bad" $((good + bad))
		grep -aE 'FAIL|ERROR|  LINE  |Error|error:|not ok|Traceback|runtime error|Sanitizer|expected' "$log" | head -n 30 | sed 's/^/        /'
		tail -n 15 "$log" | sed 's/^/        | /'
	fi
}

# one NAME COMMAND...: runs a test and counts it; limit is its time in seconds.
one() {
	local name=$1 log=$work/one.log
	shift
	local from=$SECONDS status
	doing=$name
	# A test that hangs is a failure, not a wait without end.
	timeout -k 10 "${limit:-600}" "$@" >"$log" 2>&1
	status=$?
	took=$((SECONDS - from)) count "$name" $status "$log"
}

# make_check LABEL DIR [TESTS=...]: automake's list of tests; with is a command to run make with.
make_check() {
	local label=$1 dir=$2 trs log name
	shift 2
	say "testing: $label"
	doing="make check, $label"
	find "$dir/tests" "$dir" -maxdepth 3 -name '*.trs' -delete 2>/dev/null
	# shellcheck disable=SC2086
	${with-} make -C "$dir" -k check -j"$(nproc)" LOG_COMPILER="timeout -k 10 600" "$@" >"$dir/check.log" 2>&1
	local status=$? any=no
	while read -r trs; do
		any=yes
		log=${trs%.trs}.log name=${trs#"$dir"/}
		case $(sed -n 's/^:test-result: //p' "$trs") in
		PASS) count "$label ${name%.trs}" 0 "$log" ;;
		SKIP)
			case " ${may_skip-} " in
			*" ${name%.trs} "*) ;;
			*)
				printf '  FAIL  %s: it may not be skipped\n' "$label ${name%.trs}"
				failed=$((failed + 1))
				;;
			esac
			printf '  skip  %s\n' "$label ${name%.trs}"
			;;
		*) count "$label ${name%.trs}" 1 "$log" ;;
		esac
	done < <(find "$dir" -name '*.trs' | sort)
	if [ $any = no ] || { [ $status -ne 0 ] && [ $failed -eq 0 ]; }; then
		printf '  FAIL  %s: make check\n' "$label"
		grep -aE 'error:|\*\*\*' "$dir/check.log" | head -n 10 | sed 's/^/        /'
		tail -n 30 "$dir/check.log" | sed 's/^/        | /'
		failed=$((failed + 1))
	fi
}

# What sanitizers say goes to files, since many processes here have their standard error elsewhere or nowhere.
# sanitizers_say LEAKS(0|1): sets their options; leaks are looked for only where processes end in an orderly way and
# may be traced, which daemons may not.
sanitizers_say() {
	mkdir -p "$work/reports" && chmod 1777 "$work/reports"
	export ASAN_OPTIONS="detect_leaks=$1:log_path=$work/reports/asan" UBSAN_OPTIONS="print_stacktrace=1:log_path=$work/reports/ubsan"
	export TSAN_OPTIONS="log_path=$work/reports/tsan"
}

# reports LABEL: what they said since is a failure each.
reports() {
	local file
	for file in "$work"/reports/*; do
		[ -s "$file" ] || continue
		printf '  FAIL  %s: a sanitizer says\n' "$1"
		head -n 30 "$file" | sed 's/^/        /'
		failed=$((failed + 1))
		rm -f "$file"
	done
	if grep -aE 'Sanitizer|runtime error:' "$work/up.err" >"$work/said" 2>/dev/null; then
		printf '  FAIL  %s: a sanitizer says\n' "$1"
		head -n 30 "$work/said" | sed 's/^/        /'
		failed=$((failed + 1))
	fi
	: >"$work/up.err"
}

# What several instances share: each takes the next test from one list.
# queue FILE TEST...: writes the list.
queue() { printf '%s\n' "${@:2}" >"$1"; }
# next_test FILE: takes the first of what is left, and says it; 1 when nothing is.
next_test() {
	local first
	(
		flock 9
		read -r first <"$1" || exit 1
		sed -i 1d "$1"
		printf '%s\n' "$first"
	) 9>"$1.lock"
}

up_or_down() { line=$(sed -n 's/^ready //p' "$work/up.out"); [ -n "$line" ] || ! kill -0 "$up_pid" 2>/dev/null; }
# with_instance LABEL DIR WEB-SERVER QUEUE: a running instance, and the tests that it takes from there.
with_instance() {
	local label=$1 dir=$2 web=$3 queue=$4 line test
	say "testing: $label, a running instance behind $web"
	doing="starting an instance, $label"
	"$top/tests/instance/leftovers.sh" --before "$work/before"
	: >"$work/up.out"
	PINFOLD_BUILD=$dir "$top/quickstart" up --root "$work/root" --web-server "$web" --config "$top/tests/instance/extra.conf" >"$work/up.out" 2>"$work/up.err" &
	up_pid=$!
	wait_until up_or_down
	if [ -z "$line" ]; then
		printf '  FAIL  %s: the instance does not start\n' "$label"
		tail -n 30 "$work/up.err"
		failed=$((failed + 1))
		return
	fi
	export PINFOLD_URL PINFOLD_INSTANCE PINFOLD_CLI PINFOLD_UP_PID=$up_pid
	PINFOLD_URL=$(printf '%s' "$line" | sed 's/.*"url":"\([^"]*\)".*/\1/')
	PINFOLD_INSTANCE=$work/root PINFOLD_CLI=$work/root/usr/bin/pinfold
	while test=$(next_test "$queue"); do
		PINFOLD_BUILD=$dir one "$label ${test#"$top"/}" "$test"
	done
	reports "$label"
	kill -TERM "$up_pid"
	wait "$up_pid" 2>/dev/null
	up_pid=
	rm -rf --one-file-system "$work/root"
	one "$label nothing is left behind" "$top/tests/instance/leftovers.sh" "$work/root" "$work/before"
}

# one_of_two: of build_and_test. What sanitizers say of it is in its own folder.
one_of_two() {
	sanitizers_say 0
	with_instance "$label" "$dir" lighttpd "$to_take"
}

# build_and_test LABEL DIR CONFIGURE...: but for the tests of an instance that $leave_out names
build_and_test() {
	local label=$1 dir=$2 to_take=$work/queue test tests=()
	shift 2
	# What takes longest first, so that both instances end at about the same time.
	for test in "$top"/tests/instance/{t_page.sh,t_stream.py,t_restart.py,t_sandboxd.py,t_follow.py,t_doctor.py,t_wait.py} "$top"/tests/instance/t_*; do
		case " ${leave_out-} ${tests[*]##*/} " in *" ${test##*/} "*) ;; *) tests+=("$test") ;; esac
	done
	if build_tree "$dir" "$@"; then
		make_check "$label" "$dir"
		queue "$to_take" "${tests[@]}"
		# Most of each test is waiting.
		side_by_side one_of_two first second
	else
		printf '  FAIL  %s does not build\n' "$dir"
		failed=$((failed + 1))
	fi
}

# unit_programs DIR: the built test programs that start no other process and need no root.
unit_programs() {
	local f
	for f in "$1"/tests/unit/t_* "$1"/tests/steward/t_judge "$1"/tests/steward/t_patch "$1"/tests/steward/t_parts "$1"/tests/runner/t_plan; do
		case $f in *.o | *.log | *.trs | *.Po | *.gcno | *.gcda) continue ;; esac
		[ -f "$f" ] && [ -x "$f" ] && printf '%s\n' "$f"
	done
}

# verdict: the last line of everything.
verdict() {
	printf '%d passed, %d failed\n' "$passed" "$failed"
	[ "$failed" -eq 0 ]
}
